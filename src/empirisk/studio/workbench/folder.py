"""The folder of the studio: tables that were dropped, and runs; whatever is here is shown again after a restart."""

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.files.atomic import whole_file
from empirisk.service.bodies import Refusal
from empirisk.tables.reading import datasets

NAME = "empirisk-studio"
MAX_NAME_LETTERS = 100  # of a table or run: file systems take 255 bytes
ENDINGS = (
    "csv",
    "tsv",
    "txt",
    "parquet",
    "arrow",
    "feather",
    "jsonl",
    "ndjson",
    "xlsx",
    "gz",
    "bz2",
    "xz",
    "zip",
    "zst",
)
ID_BYTES = 6  # of the name of a run's folder: no two are alike


class StudioFolder:
    """Tables and runs in a folder.

    Parameters
    ----------
    parent : Path
        Where the studio was started; the folder is made when something is written.
    given : dict
        Tables that were named in the shell, by the name on the page.
    """

    def __init__(self, parent: Path, given: Mapping[str, Path] | None = None):
        self.path, self.given = parent.absolute() / NAME, dict(given or {})

    def make_own(self) -> None:
        """Make the folder, which other users of the machine do not enter."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    # --- tables -------------------------------------------------------------------------------------------------------

    def tables(self) -> list[dict[str, str]]:
        """Every table: its name, what it is about, and where it comes from."""
        kept = sorted(self._tables.iterdir()) if self._tables.is_dir() else []
        own = [{"name": name, "about": "given in the shell", "kind": "given"} for name in self.given]
        own += [{"name": one.name, "about": _size(one), "kind": "own"} for one in kept if not one.name.startswith(".")]
        bundled = [{"name": name, "about": datasets.about(name).about, "kind": "bundled"} for name in datasets.NAMES]
        return own + bundled

    def table(self, name: str) -> str:
        """What `read` takes for a table of the page: one of those listed, never a path of the client."""
        if name in self.given:
            return str(self.given[name])
        known = {one["name"] for one in self.tables()}
        if name not in known:
            raise Refusal(404, f"There is no table {name[:LETTERS]!r}; drop it again.")
        return name if name in datasets.NAMES else str(self._tables / name)

    def typed(self, path: str) -> str:
        """A file as people type it in the folder where the studio was started; a bundled table by its name."""
        parent = f"{self.path.parent.absolute()}{os.sep}"
        return path.removeprefix(parent)

    def free_name(self, wanted: str) -> str:
        """A name for a new table like the one of the file that was dropped, without anything of a path."""
        name = re.sub(r"[^\w.+() -]", "_", re.split(r"[/\\]", wanted)[-1]).strip(". ")[-MAX_NAME_LETTERS:]
        stem, dot, ending = name.partition(".")
        if not stem or not dot or ending.rpartition(".")[2].lower() not in ENDINGS:
            raise Refusal(
                415, f"The file {wanted[-LETTERS:]!r} is no table; drop a CSV, Parquet, Arrow, JSON-lines or XLSX file."
            )
        taken, number = {one["name"] for one in self.tables()}, 1
        while name in taken:
            number += 1
            name = f"{stem} {number}.{ending}"
        return name

    def place(self, name: str) -> Path:
        """Where a new table is written."""
        self.make_own()
        self._tables.mkdir(exist_ok=True)
        return self._tables / name

    def delete_table(self, name: str) -> None:
        """Delete a table that was dropped; runs keep their models."""
        self._kept(name).unlink()

    def rename_table(self, name: str, wanted: str) -> str:
        """Give a table that was dropped another name, of the same kind; runs that learned from it know the new one."""
        old = self._kept(name)
        ending = "".join(old.suffixes)
        new = self._tables / self.free_name(f"{wanted.removesuffix(ending)}{ending}")
        old.rename(new)
        for run in self.runs():
            about = read_json(run / "run.json")
            if about.get("table") == name:
                request = about["request"] | {"data": str(new)}
                write_json(run / "run.json", about | {"table": new.name, "request": request})
        return new.name

    def _kept(self, name: str) -> Path:
        kept = {one.name: one for one in self._tables.iterdir()} if self._tables.is_dir() else {}
        if name not in kept:
            raise Refusal(404, f"The table {name[:LETTERS]!r} was not dropped here, and stays.")
        return kept[name]

    @property
    def _tables(self) -> Path:
        return self.path / "tables"

    # --- runs ---------------------------------------------------------------------------------------------------------

    def runs(self) -> list[Path]:
        """The folders of all runs, the latest first."""
        root = self.path / "runs"
        found = [one for one in root.iterdir() if (one / "run.json").is_file()] if root.is_dir() else []
        return sorted(found, key=lambda one: read_json(one / "run.json").get("created", ""), reverse=True)

    def run(self, identity: str) -> Path:
        """The folder of a run."""
        for found in self.runs():
            if found.name == identity:
                return found
        raise Refusal(404, "There is no such run; it may have been deleted.")

    def new_run(self, about: Mapping[str, Any]) -> Path:
        """Make the folder of a run."""
        folder = self.path / "runs" / secrets.token_hex(ID_BYTES)
        self.make_own()
        folder.mkdir(parents=True)
        try:
            write_json(folder / "run.json", {**about, "created": datetime.now(UTC).isoformat(timespec="seconds")})
        except EmpiriskError:
            folder.rmdir()  # a folder without what it is about would never be shown, or deleted
            raise
        return folder

    def delete_run(self, identity: str) -> None:
        """Delete a run with its model and report."""
        shutil.rmtree(self.run(identity))


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size // 1000, 1)} kB"


def read_json(path: Path) -> dict[str, Any]:
    """A file that `write_json` wrote; an error that names it if something else has."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise EmpiriskError(f"{path.name!r} in the folder of the studio is damaged; delete its folder.") from None


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as file:
        file.write(json.dumps(content, ensure_ascii=True, indent=1).encode())
