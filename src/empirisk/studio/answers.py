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

from empirisk.errors import EmpiriskError, NotWritten
from empirisk.league.records import as_json
from empirisk.service.app import problem, read_body
from empirisk.service.bodies import Refusal, parse

MAX_BODY_BYTES = 1_000_000  # of a question: 300 points are 10 000 bytes
#: The parts of questions that hold others, and what they must be; null is as good as nothing.
PARTS = {
    "options": (dict, "an object of names and values"),
    "types": (dict, "an object of columns and their types"),
    "columns": (list, "a list of names"),
    "runs": (list, "a list of runs"),
}
UNEXPECTED = "Something went wrong that should not; the terminal says what. The studio goes on."
log = logging.getLogger("empirisk.studio")


def json_response(content: Any) -> Response:
    """A response in JSON."""
    return Response(json.dumps(as_json(content), separators=(",", ":")), media_type="application/json")


def told(status: int, sentence: str) -> Response:
    """A sentence that says what is wrong, with what HTTP would call it.

    The status of the response is 200: browsers list others in their console, and a name that is half written, or a
    file of another kind, is no failure of the page.
    """
    return json_response({"error": sentence, "status": status})


def answering(
    view: Callable[[Request, Any], Any], worker: ThreadPoolExecutor, refuse: Callable[[int, str], Response] = told
) -> Callable[[Request], Awaitable[Response]]:
    """A handler that computes a view in a worker thread; the view is given the request and the JSON of its body."""

    async def work(request: Request) -> Any:
        body = asked(parse(await read_body(request, MAX_BODY_BYTES))) if request.method == "POST" else {}
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(worker, lambda: context.run(view, request, body))

    return taking(work, refuse)


def asked(body: Any) -> dict[str, Any]:
    """The body of a question, if it and its parts are what they must be.

    >>> asked({"columns": "size"})
    Traceback (most recent call last):
    empirisk.service.bodies.Refusal: columns must be a list of names.
    """
    if not isinstance(body, dict):
        raise Refusal(400, "A question is an object of names and values.")
    found = {name: part for name, part in body.items() if part is not None or name not in PARTS}
    for name, (kind, words) in PARTS.items():
        if not isinstance(found.get(name, kind()), kind):
            raise Refusal(400, f"{name} must be {words}.")
    return found


def taking(
    view: Callable[[Request], Awaitable[Any]], refuse: Callable[[int, str], Response] = told
) -> Callable[[Request], Awaitable[Response]]:
    """A handler of a view that reads the body of its request itself; ``refuse`` makes the response of a sentence."""

    async def handle(request: Request) -> Response:
        try:
            found = await view(request)
            return found if isinstance(found, Response) else json_response(found)
        except Refusal as refusal:
            return refuse(refusal.status, str(refusal))
        except NotWritten as error:  # its sentence asks for another path, and those of the studio are its own
            return refuse(507, _no_room(error.__cause__ or error))
        except EmpiriskError as error:
            return refuse(422, str(error))
        except ClientDisconnect:
            return refuse(400, "The request was cut short; nothing of it is kept.")
        except OSError as error:
            return refuse(507, _no_room(error))
        except MemoryError:
            return refuse(507, "There is not enough memory; give fewer rows.")
        except Exception:  # one view must not end the studio
            log.exception("a view failed")
            return problem(500, UNEXPECTED)

    return handle


def _no_room(error: BaseException) -> str:
    return f"Reading or writing failed ({getattr(error, 'strerror', '') or error}); make room and try again."
