"""The studio: learning in the browser, on this machine."""

from empirisk.extras import need

need("The studio", "serve", "starlette", "uvicorn")
