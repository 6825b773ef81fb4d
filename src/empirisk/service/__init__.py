"""Predictions over HTTP."""

from empirisk.extras import need

need("A service", "serve", "starlette", "uvicorn")
