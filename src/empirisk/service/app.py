"""The web application: routes, limits, and error responses."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from empirisk.service import connections, pages
from empirisk.service.batching import Batcher
from empirisk.service.bodies import Bodies, Refusal
from empirisk.service.openapi import describe
from empirisk.tables.model import TableModel

MAX_BODY_BYTES = 1_000_000  # of one request: a thousand rows of a wide table
MAX_ROWS = 1000  # of one request: more would keep all other clients waiting
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'",
}


class Service:
    """Request handlers for one model."""

    def __init__(self, model: TableModel, limit: int = MAX_BODY_BYTES, rows: int = MAX_ROWS):
        self.limit = limit
        self.batcher = Batcher(model, Bodies(model.asked, rows))
        self._machine = type(model.machine).__name__

    async def predict(self, request: Request) -> Response:
        """Answer one row, or a list of rows."""
        return await self._guarded(request, "application/json")

    async def table(self, request: Request) -> Response:
        """Answer the rows of a file with a table of predictions."""
        return await self._guarded(request, "text/csv", request.query_params.get("name") or "table.csv")

    async def _guarded(self, request: Request, kind: str, file: str = "") -> Response:
        """The answer to the body of a request, or a response that says what is wrong with it."""
        try:
            body = await asyncio.wait_for(read_body(request, self.limit), connections.CLIENT_SECONDS)
            return Response(await self._answer(body, request, file), media_type=kind)
        except Refusal as refusal:
            return problem(refusal.status, str(refusal), refusal.problems)
        except TimeoutError:
            return problem(408, "The body of the request did not arrive in time.", headers={"Connection": "close"})
        except ClientDisconnect:
            return problem(400, "The request was cut short.")

    async def health(self, request: Request) -> Response:
        """Say that the service is up."""
        return JSONResponse({"status": "ok", "machine": self._machine, "rows": self.batcher.rows})

    async def _answer(self, body: bytes, request: Request, file: str) -> str:
        """The text of the answers; a request whose client leaves meanwhile is dropped."""
        if request.headers.get("content-type", "").startswith("multipart/"):
            raise Refusal(415, "The body is a form; send what is in it alone, as curl --data-binary @rows.csv does.")
        explain = request.query_params.get("explain", "") in ("1", "true", "yes")
        answer = asyncio.ensure_future(self.batcher.ask(body, explain, file))
        left = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait([answer, left], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientDisconnect
            return answer.result()
        finally:
            answer.cancel()
            left.cancel()


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request; reading stops as soon as it is too long."""
    too_long = Refusal(413, f"The body is longer than {limit} bytes; send rows in parts.")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise too_long
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_long
    return bytes(body)


async def _disconnected(request: Request) -> None:
    """Wait until the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def problem(
    status: int,
    sentence: str,
    problems: list[dict[str, Any]] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """An error response: status, a sentence, and the fields that are wrong."""
    content: dict[str, Any] = {"error": sentence}
    if problems:
        content["problems"] = problems
    # A lone surrogate, which JSON may hold as an escape, cannot be encoded as UTF-8; in ASCII it stays an escape.
    return Response(json.dumps(content), status, headers, media_type="application/json")


def always(answer: Response) -> Any:
    """A handler that returns the same response to every request; its content is rendered once."""

    async def give(*_: Any) -> Response:
        return answer

    return give


def make_app(
    model: TableModel, hosts: list[str] | None = None, limit: int = MAX_BODY_BYTES, rows: int = MAX_ROWS
) -> Starlette:
    """The application for a model; ``hosts`` are the names by which it may be called, all if None."""
    service, document = Service(model, limit, rows), describe(model, limit, rows)
    wrong = {
        404: "There is no such page; see /docs.",
        405: "This page takes another method; see /docs.",
        500: "The model could not answer; the log of the service says why.",
    }

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        service.batcher.close()

    return Starlette(
        routes=[
            Route("/", always(HTMLResponse(pages.form(model), headers=SAFE))),
            Route("/form.js", always(Response(pages.script(), media_type="text/javascript", headers=SAFE))),
            Route("/predict", service.predict, methods=["POST"]),
            Route("/table", service.table, methods=["POST"]),
            Route("/health", service.health),
            Route("/openapi.json", always(JSONResponse(document))),
            Route("/docs", always(HTMLResponse(pages.docs(model, document), headers=SAFE))),
        ],
        middleware=[
            Middleware(connections.TimedAnswers),
            # DNS rebinding: a page whose host name is made to point to this machine must not read the responses.
            *([Middleware(TrustedHostMiddleware, allowed_hosts=hosts)] if hosts else []),
        ],
        exception_handlers={status: always(problem(status, sentence)) for status, sentence in wrong.items()},
        lifespan=lifespan,
    )
