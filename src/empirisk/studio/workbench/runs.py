"""Runs: started in processes of their own, followed by their file of events, finished, stopped and taken up again."""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.league.jobs import STOPPED
from empirisk.league.request import Request
from empirisk.service.bodies import Refusal
from empirisk.studio.workbench.folder import MAX_NAME_LETTERS, StudioFolder, read_json, write_json
from empirisk.studio.workbench.job import DISK_FULL, EVENTS, OPTIONS

OVER = ("done", "failed")
CUT_OFF = "The run was cut off before its end. What was played is kept: go on where it was."
NO_ROOM = "The disk is full, and the run ended. What was played is kept: make room, and go on where it was."
KILL_SECONDS = 5.0  # that a process has to end after it was told to


class Runs:
    """All runs of a folder, and the processes of those that are going on."""

    def __init__(self, folder: StudioFolder):
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._begun: dict[str, float] = {}

    def start(self, table: str, options: Mapping[str, Any]) -> str:
        """Start a run on a table of the page; its name in the folder."""
        request = Request(self.folder.table(table), **chosen_options(options)).to_dict()
        folder = self.folder.new_run(
            {"name": f"{table}: {request.get('target', '')}", "table": table, "request": request}
        )
        self._launch(folder)
        return folder.name

    def resume(self, identity: str) -> None:
        """Run the request of a run again; folds that were played are not played again."""
        folder = self.folder.run(identity)
        if self.state(folder) == "running":
            raise Refusal(409, "The run is going on.")
        self._launch(folder)

    def tell(self, identity: str, word: str) -> None:
        """Say "finish" or "stop" to a run."""
        folder = self.folder.run(identity)
        process = self._processes.get(folder.name)
        if process is None or process.poll() is not None or process.stdin is None:
            raise Refusal(409, "The run has ended.")
        process.stdin.write(f"{word}\n")
        process.stdin.flush()

    def rename(self, identity: str, name: Any) -> None:
        """Give a run another name."""
        if not isinstance(name, str) or not name.strip():
            raise EmpiriskError("name must be a text of at least one letter.")
        folder = self.folder.run(identity)
        write_json(folder / "run.json", read_json(folder / "run.json") | {"name": name.strip()[:MAX_NAME_LETTERS]})

    def delete(self, identity: str) -> None:
        """Delete a run; one that is going on is stopped."""
        self._end(self.folder.run(identity).name)
        self.folder.delete_run(identity)

    def close(self) -> None:
        """End all processes: what they have played is in their journals."""
        for name in list(self._processes):
            self._end(name)

    # --- what is known ------------------------------------------------------------------------------------------------

    def listed(self) -> list[dict[str, Any]]:
        """Every run in short."""
        return [self.about(folder) for folder in self.folder.runs()]

    def about(self, folder: Path) -> dict[str, Any]:
        """A run in short: name, state, and what came out."""
        kept, events = read_json(folder / "run.json"), self.events(folder)
        found = {"id": folder.name, "name": kept["name"], "created": kept["created"], "table": kept.get("table")}
        found |= {"state": self.state(folder, events), "target": kept.get("request", {}).get("target")}
        found["events"] = len(events)
        last = events[-1] if events else {}
        if last.get("event") == "done":
            told = last["about"]
            found |= {"summary": told["summary"], "winner": told["winner"], "score": told["test"][0]}
        if last.get("event") == "failed":
            found["summary"] = NO_ROOM if os.strerror(errno.ENOSPC) in last["about"] else last["about"]
        if found["state"] == "running":
            found["seconds"] = time.monotonic() - self._begun[folder.name]
        if found["state"] == "cut off":
            process = self._processes.get(folder.name)
            found["summary"] = NO_ROOM if process is not None and process.poll() == DISK_FULL else CUT_OFF
        return found

    def state(self, folder: Path, events: list[dict[str, Any]] | None = None) -> str:
        """ "running", "done", "stopped", "failed", "cut off", or "model" for one that was not learned here."""
        if "request" not in read_json(folder / "run.json"):
            return "model"
        events = self.events(folder) if events is None else events
        if events and events[-1]["event"] in OVER:
            return "stopped" if events[-1]["about"] == STOPPED else events[-1]["event"]
        process = self._processes.get(folder.name)
        return "running" if process is not None and process.poll() is None else "cut off"

    def events(self, folder: Path, start: int = 0) -> list[dict[str, Any]]:
        """The events of a run so far; a line that is being written is left for later."""
        try:
            lines = (folder / EVENTS).read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[start:]]

    def _launch(self, folder: Path) -> None:
        self._end(folder.name)  # closes what is left of a process that was killed
        (folder / EVENTS).unlink(missing_ok=True)
        self._begun[folder.name] = time.monotonic()
        with (folder / "log.txt").open("w") as log:
            self._processes[folder.name] = subprocess.Popen(
                [sys.executable, "-m", "empirisk.studio.workbench.job", str(folder.absolute())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                encoding="utf-8",
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same, in Windows
            )

    def _end(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def chosen_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a page has sent, without those left empty; one that is not known is an error."""
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise EmpiriskError(f"{unknown[0][:LETTERS]!r} is no option here.")
    return {name: value for name, value in options.items() if value not in (None, "", [], {})}
