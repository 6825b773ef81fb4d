"""The application: routes, limits, and answers to everything that can be wrong with a request."""

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

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.service import pages
from empirisk.service.batching import Batcher
from empirisk.service.fields import Fields
from empirisk.service.openapi import describe
from empirisk.tables.model import TableModel

LIMIT = 1_000_000  # bytes of a body
ROWS = 1000  # of a body
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'",
}


class TooLong(EmpiriskError):
    """A body over the limit."""


class Service:
    """The answers to requests about one model."""

    def __init__(self, model: TableModel, limit: int = LIMIT, rows: int = ROWS):
        self.limit, self.most_rows = limit, rows
        self.fields = Fields(model.schema)
        self.batcher = Batcher(model)
        self._machine = type(model.machine).__name__

    async def predict(self, request: Request) -> Response:
        """Answer one row, or a list of rows."""
        try:
            data = parse(await self._body(request))
        except TooLong as error:
            return problem(413, str(error))
        except EmpiriskError as error:
            return problem(400, str(error))
        except ClientDisconnect:
            return problem(400, "The request was cut short.")
        rows = data if isinstance(data, list) else [data]
        if not rows:
            return problem(422, "The list of rows is empty; send at least one row.")
        if len(rows) > self.most_rows:
            return problem(413, f"{len(rows)} rows are more than {self.most_rows}; send them in parts.")
        frame, problems = self.fields.check(rows)
        if problems:
            first = problems[0]
            where = f" in row {first['row']}" if len(rows) > 1 else ""
            return problem(422, f"Field {first['field']!r}{where}: {first['problem']}.", problems)
        answers = await self.batcher.ask(frame)
        return JSONResponse(answers if isinstance(data, list) else answers[0])

    async def health(self, request: Request) -> Response:
        """Say that the service is up."""
        return JSONResponse({"status": "ok", "machine": self._machine, "rows": self.batcher.rows})

    async def _body(self, request: Request) -> bytes:
        """The body, given up as soon as it is too long."""
        too_long = TooLong(f"The body is longer than {self.limit} bytes; send rows in parts.")
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self.limit:
            raise too_long
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self.limit:
                raise too_long
        return bytes(body)


def parse(body: bytes) -> Any:
    """The JSON of a body, without the numbers that JSON does not know.

    >>> parse(b'{"a": 1}')
    {'a': 1}
    """
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:LETTERS]
        raise EmpiriskError(f"The body is not JSON: {reason}.") from error


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def problem(status: int, sentence: str, problems: list[dict[str, Any]] | None = None) -> Response:
    """An answer that says what is wrong."""
    content: dict[str, Any] = {"error": sentence}
    if problems:
        content["problems"] = problems
    # Half a character, which JSON may hold, cannot be sent as UTF-8; ASCII holds it as JSON did.
    return Response(json.dumps(content), status_code=status, media_type="application/json")


def always(answer: Response) -> Any:
    """What gives the same answer to every request, written once."""

    async def give(*_: Any) -> Response:
        return answer

    return give


def make_app(model: TableModel, hosts: list[str] | None = None, limit: int = LIMIT, rows: int = ROWS) -> Starlette:
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
        await service.batcher.close()

    return Starlette(
        routes=[
            Route("/", always(HTMLResponse(pages.form(model), headers=SAFE))),
            Route("/form.js", always(Response(pages.SCRIPT, media_type="text/javascript", headers=SAFE))),
            Route("/predict", service.predict, methods=["POST"]),
            Route("/health", service.health),
            Route("/openapi.json", always(JSONResponse(document))),
            Route("/docs", always(HTMLResponse(pages.docs(model, document), headers=SAFE))),
        ],
        # A page elsewhere that gives itself our address must not read our answers.
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)] if hosts else [],
        exception_handlers={status: always(problem(status, sentence)) for status, sentence in wrong.items()},
        lifespan=lifespan,
    )
