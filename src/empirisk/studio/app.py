"""The application: pages, files of the pages, and the routes of both rooms behind the guard."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from threading import Thread

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from empirisk.service import connections
from empirisk.service.app import always, problem
from empirisk.studio.guard import Guard
from empirisk.studio.playground.fitting import load_loops
from empirisk.studio.playground.routes import routes as playground
from empirisk.studio.workbench.folder import StudioFolder
from empirisk.studio.workbench.routes import Workbench, routes
from empirisk.templates import render

ROOM = "empirisk.studio"
KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
PAGES = {"/": ("workbench.html", "Workbench"), "/playground": ("playground.html", "Playground")}
WRONG = {404: "There is no such page in the studio.", 405: "This page takes another method."}


def pages() -> list[BaseRoute]:
    """The pages, which are the same for everybody."""
    rooms = [(path, title) for path, (_, title) in PAGES.items()]
    return [
        Route(path, always(HTMLResponse(render(ROOM, name, title=title, here=path, rooms=rooms))))
        for path, (name, title) in PAGES.items()
    ]


def static() -> list[BaseRoute]:
    """The files of the pages: those of the package by their names, so that no path of a client is opened."""
    found: list[BaseRoute] = []
    for file in (files("empirisk").joinpath("palette.css"), *files(ROOM).joinpath("static").iterdir()):
        kind = KINDS[file.name.rpartition(".")[2]]
        found.append(Route(f"/static/{file.name}", always(Response(file.read_bytes(), media_type=kind))))
    return found


def make_studio(port: int, announce: Callable[[str], None], folder: StudioFolder) -> Guard:
    """The application that listens on a port; ``announce`` hears of the address to open, ``folder`` keeps the runs."""
    workbench = Workbench(folder)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        Thread(target=load_loops, name="loops", daemon=True).start()  # before somebody waits for them
        yield
        workbench.runs.close()

    app = Starlette(
        routes=[*pages(), *static(), *playground(), *routes(workbench)],
        middleware=[Middleware(connections.TimedAnswers)],
        exception_handlers={status: always(problem(status, sentence)) for status, sentence in WRONG.items()},
        lifespan=lifespan,
    )
    return Guard(app, port, announce)
