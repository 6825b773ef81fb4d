"""Routes of the workbench."""

import asyncio
import io
import json
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from empirisk.errors import EmpiriskError
from empirisk.league.records import as_json
from empirisk.service.app import problem
from empirisk.service.bodies import Refusal
from empirisk.studio.answers import answering, taking
from empirisk.studio.workbench import results, tables
from empirisk.studio.workbench.folder import StudioFolder, read_json
from empirisk.studio.workbench.job import RESULT
from empirisk.studio.workbench.lines import compare_lines, learn_lines, nearest_lines, result_lines, row_lines
from empirisk.studio.workbench.runs import Runs, chosen_options
from empirisk.tables.predictions import beside
from empirisk.tables.reading.read import read
from empirisk.tables.reading.spreadsheet import harmless

MAX_UPLOAD_BYTES = 2_000_000_000  # of a table: what fits the memory of a usual machine
SPARE_BYTES = 100_000_000  # that stay free on the disk
POLL_SECONDS = 0.2  # between two looks at the file of events
WORKERS = 4  # views at the same time
#: The report is a page of its own, with a script in it: it gets no access to the studio.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)


class Workbench:
    """The views of the workbench on a folder."""

    def __init__(self, folder: StudioFolder):
        self.folder, self.runs = folder, Runs(folder)

    # --- tables -------------------------------------------------------------------------------------------------------

    def listed(self, request: Request, body: Any) -> Any:
        """Tables and runs."""
        return {"tables": self.folder.tables(), "runs": self.runs.listed(), "folder": str(self.folder.path)}

    def table(self, request: Request, body: Any) -> Any:
        """What a table holds."""
        name, types = str(body.get("name")), body.get("types", {})
        return tables.told(name, self.folder.table(name), types)

    def names(self, request: Request, body: Any) -> Any:
        """Columns of a table whose names hold a part."""
        return tables.names(self.folder.table(str(body.get("name"))), str(body.get("part", "")))

    def notes(self, request: Request, body: Any) -> Any:
        """What `learn` would make of it, and the lines that would do it."""
        name, options = str(body.get("name")), chosen_options(body.get("options", {}))
        source = self.folder.table(name)
        return tables.notes(source, options) | {
            "lines": learn_lines(self.folder.typed(source), options, Path(name).stem)
        }

    def change_table(self, request: Request, body: Any) -> Any:
        """Rename or delete a table that was dropped."""
        name, word = str(body.get("name")), body.get("do")
        if word == "delete":
            self.folder.delete_table(name)
        elif word == "rename":
            return {"name": self.folder.rename_table(name, str(body.get("to", "")))}
        else:
            raise EmpiriskError("do must be rename or delete.")
        return {}

    def fits(self, request: Request, body: Any) -> Any:
        """Whether a file may be sent: a browser that is refused in the middle of one hears no reason."""
        self.folder.free_name(str(body.get("name")))
        size = body.get("size")
        require_room(size if type(size) is int else 0, self._room())
        return {}

    async def upload(self, request: Request) -> Any:
        """Keep a table that was dropped: written whole, or not at all."""
        name = self.folder.free_name(request.query_params.get("name", ""))
        await self._keep(request, self.folder.place(name))
        return {"name": name}

    async def _keep(self, request: Request, path: Path) -> None:
        """Write the body of a request to a file, if it is not too large."""
        announced, room = request.headers.get("content-length", ""), self._room()
        require_room(int(announced) if announced.isdigit() else 0, room)
        part, size = path.with_name(f".{secrets.token_hex(8)}.part"), 0
        try:
            with part.open("xb") as file:
                async for chunk in request.stream():
                    size += len(chunk)
                    require_room(size, room)
                    file.write(chunk)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _room(self) -> int:
        """The bytes that a file may have."""
        self.folder.make_own()
        return max(min(MAX_UPLOAD_BYTES, shutil.disk_usage(self.folder.path).free - SPARE_BYTES), 0)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def learn(self, request: Request, body: Any) -> Any:
        """Start a run."""
        return {"id": self.runs.start(str(body.get("name")), body.get("options", {}))}

    def run(self, request: Request, body: Any) -> Any:
        """What is known of a run."""
        folder = self._folder(request)
        kept = read_json(folder / "run.json")
        asked, learn = kept.get("request", {}), None
        if asked:
            learn = learn_lines(self.folder.typed(str(asked["data"])), asked, Path(str(asked["data"])).stem)
        lines, columns = {} if learn is None else {"learn": learn}, []
        if (folder / f"{RESULT}.model").exists():
            found = results.open_run(folder)
            lines |= result_lines(self._model(found), learn, found.target, found.model.classes)
            columns = [column.name for column in found.model.schema.used]
        return self.runs.about(folder) | {"request": asked, "lines": lines, "columns": columns}

    async def events(self, request: Request) -> Response:
        """The events of a run as they come, from the one after the last that the browser has."""
        try:
            folder = self._folder(request)
        except Refusal as refusal:
            return problem(refusal.status, str(refusal))
        last = request.headers.get("last-event-id", "")
        return StreamingResponse(
            self._stream(folder, int(last) + 1 if last.isdigit() else 0), media_type="text/event-stream"
        )

    async def _stream(self, folder: Path, number: int) -> AsyncIterator[str]:
        while True:
            running = self.runs.state(folder) == "running"
            for event in self.runs.events(folder, number):
                yield f"id: {number}\ndata: {json.dumps(event)}\n\n"
                number += 1
            if not running:
                yield f"event: over\ndata: {json.dumps(as_json(self.runs.about(folder)))}\n\n"
                return
            yield ": waiting\n\n"
            await asyncio.sleep(POLL_SECONDS)

    def tell(self, request: Request, body: Any) -> Any:
        """Finish, stop, take up again, rename or delete a run."""
        identity, word = self._folder(request).name, body.get("do")
        if word in ("finish", "stop"):
            self.runs.tell(identity, word)
        elif word == "resume":
            self.runs.resume(identity)
        elif word == "rename":
            self.runs.rename(identity, body.get("name"))
        elif word == "delete":
            self.runs.delete(identity)
        else:
            raise EmpiriskError("do must be finish, stop, resume, rename or delete.")
        return {}

    def report(self, request: Request, body: Any) -> Any:
        """The report of a run, as a page of its own."""
        path = self._folder(request) / f"{RESULT}.report.html"
        if not path.exists():
            raise Refusal(404, "This run has no report.")
        return Response(path.read_bytes(), media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

    def model(self, request: Request, body: Any) -> Any:
        """The model file of a run."""
        path = self._folder(request) / f"{RESULT}.model"
        return _download(path.read_bytes(), "learned.model")

    # --- results ------------------------------------------------------------------------------------------------------

    def view(self, name: str) -> Callable[[Request, Any], Any]:
        """A view of an open run, by name."""

        def answer(request: Request, body: Any) -> Any:
            return VIEWS[name](results.open_run(self._folder(request)), body)

        return answer

    def what_if(self, request: Request, body: Any) -> Any:
        """What the model makes of one row, and the lines that say the same."""
        run = results.open_run(self._folder(request))
        found = results.what_if(run, body.get("row"))
        return found | {"lines": row_lines(self._model(run), body["row"], "adds" in found, "interval" in found)}

    def nearest(self, request: Request, body: Any) -> Any:
        """The known rows most like a row, and the lines that find them."""
        run = results.open_run(self._folder(request))
        found = results.nearest(run, body.get("row"), body.get("columns", []))
        return found | {"lines": nearest_lines(self._model(run), len(run.rows.test), body["row"])}

    def compare(self, request: Request, body: Any) -> Any:
        """Two runs side by side."""
        pair = [results.open_run(self.folder.run(str(identity))) for identity in body.get("runs", [])[:2]]
        if len(pair) != 2:
            raise EmpiriskError("Choose two runs to compare.")
        lines = compare_lines(list(map(self._model, pair)), pair[0].target, pair[0].classes is not None)
        return results.compare(*pair) | {"lines": lines}

    def file(self, name: str) -> Callable[[Request], Any]:
        """Predict, or score, a file that was dropped; the file is not kept."""

        async def answer(request: Request) -> Any:
            run = results.open_run(self._folder(request))
            wanted = self.folder.free_name(request.query_params.get("name", ""))
            path = self.folder.place(f".{secrets.token_hex(8)}-{wanted}")
            try:
                await self._keep(request, path)
                return await asyncio.to_thread(FILES[name], run, path)
            except EmpiriskError as error:
                status = error.status if isinstance(error, Refusal) else 422
                raise Refusal(status, str(error).replace(str(path), "the file")) from None
            finally:
                path.unlink(missing_ok=True)

        return answer

    def _model(self, run: results.OpenRun) -> str:
        """The model file of a run as people type it."""
        return self.folder.typed(str(run.folder / f"{RESULT}.model"))

    def _folder(self, request: Request) -> Path:
        return self.folder.run(request.path_params["run"])


def require_room(size: int, room: int) -> None:
    """Refuse a file of more bytes than there is room for."""
    if size > room:
        raise Refusal(
            413, f"The file is larger than the {room / 1e6:,.0f} MB that there is room for; drop a part of it."
        )


def _predicted(run: results.OpenRun, path: Path) -> Response:
    written = io.BytesIO()
    harmless(beside(run.model, read(str(path)), keep=True)).write_csv(written)
    return _download(written.getvalue(), "predictions.csv")


def _scored(run: results.OpenRun, path: Path) -> Any:
    return results.scored(run, read(str(path)))


def _download(content: bytes, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


FILES = {"predict": _predicted, "score": _scored}


def _place(body: Any) -> int | None:
    place = body.get("place")
    return place if type(place) is int else None


VIEWS: dict[str, Callable[[results.OpenRun, Any], Any]] = {
    "threshold": lambda run, body: {"threshold": results.threshold(run)},
    "errors": lambda run, body: results.errors(run, body.get("columns", [])),
    "effect": lambda run, body: results.effect(run, str(body.get("column"))),
    "form": lambda run, body: results.form(run, _place(body)),
}


def routes(workbench: Workbench) -> list[BaseRoute]:
    """All of them."""
    worker = ThreadPoolExecutor(WORKERS, "workbench")
    at = "/runs/{run:str}"

    def post(path: str, view: Callable[[Request, Any], Any]) -> Route:
        return Route(path, answering(view, worker), methods=["POST"])

    def get(path: str, view: Callable[[Request, Any], Any]) -> Route:
        return Route(path, answering(view, worker))

    def take(path: str, view: Callable[[Request], Any]) -> Route:
        return Route(path, taking(view), methods=["POST"])

    return [
        get("/list", workbench.listed),
        post("/table", workbench.table),
        post("/table/names", workbench.names),
        post("/table/notes", workbench.notes),
        post("/table/do", workbench.change_table),
        post("/upload/fits", workbench.fits),
        take("/upload", workbench.upload),
        post("/learn", workbench.learn),
        post("/compare", workbench.compare),
        get(at, workbench.run),
        Route(f"{at}/events", workbench.events),
        post(f"{at}/do", workbench.tell),
        Route(f"{at}/report", answering(workbench.report, worker, problem)),
        Route(f"{at}/model", answering(workbench.model, worker, problem)),
        *(post(f"{at}/{name}", workbench.view(name)) for name in VIEWS),
        post(f"{at}/what-if", workbench.what_if),
        post(f"{at}/nearest", workbench.nearest),
        *(take(f"{at}/file/{name}", workbench.file(name)) for name in FILES),
    ]
