"""Answers in JSON: what a view computes, or one sentence that says what is wrong."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from empirisk.errors import EmpiriskError
from empirisk.league.records import as_json
from empirisk.service.app import problem, read_body
from empirisk.service.bodies import Refusal, parse

MAX_BODY_BYTES = 1_000_000  # of a question: 300 points are 10 000 bytes
UNEXPECTED = "Something went wrong that should not; the terminal says what. The studio goes on."
log = logging.getLogger("empirisk.studio")


def json_response(content: Any) -> Response:
    """A response in JSON."""
    return Response(json.dumps(as_json(content), separators=(",", ":")), media_type="application/json")


def answering(
    view: Callable[[Request, Any], Any], worker: ThreadPoolExecutor, refused: int = 422
) -> Callable[[Request], Awaitable[Response]]:
    """A handler that computes a view in a worker thread; the view is given the request and the JSON of its body.

    ``refused`` is the status of a sentence about what was asked for. Views that answer while somebody types say 200:
    a half-written kernel is no failure, which browsers would list in their console.
    """

    async def handle(request: Request) -> Response:
        try:
            body = parse(await read_body(request, MAX_BODY_BYTES)) if request.method == "POST" else None
            context = copy_context()
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(worker, lambda: context.run(view, request, body))
            return found if isinstance(found, Response) else json_response(found)
        except Refusal as refusal:
            return problem(refusal.status, str(refusal))
        except EmpiriskError as error:
            return problem(refused, str(error))
        except ClientDisconnect:
            return problem(400, "The request was cut short.")
        except OSError as error:
            return problem(507, f"Reading or writing failed ({error.strerror or error}); make room and try again.")
        except MemoryError:
            return problem(507, "There is not enough memory; give fewer rows.")
        except Exception:  # one view must not end the studio
            log.exception("a view failed")
            return problem(500, UNEXPECTED)

    return handle
