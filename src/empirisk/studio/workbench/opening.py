"""What the studio is started with: nothing, a table, or a model."""

import os
import shutil
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from urllib.parse import quote

from empirisk.errors import EmpiriskError
from empirisk.files.models import load
from empirisk.studio.workbench.folder import StudioFolder
from empirisk.studio.workbench.job import RESULT
from empirisk.tables.model import TableModel
from empirisk.tables.reading import datasets

MODEL = ".model"
GO_ON = (
    '<!doctype html><meta charset="utf-8"><title>Empirisk studio</title><meta http-equiv="refresh" content="0; url={}">'
)


def open_source(parent: Path, source: Path | None) -> tuple[StudioFolder, str]:
    """The folder of the studio, and where its page begins."""
    if source is None:
        return StudioFolder(parent), ""
    if str(source) in datasets.NAMES and not source.exists():
        return StudioFolder(parent), f"#table={source}"
    if not source.exists():
        raise EmpiriskError(f"{str(source)!r} does not exist; give a table, or a model that `empirisk learn` wrote.")
    if source.suffix == MODEL:
        return _with_model(StudioFolder(parent), source)
    return StudioFolder(parent, {source.name: source.absolute()}), f"#table={quote(source.name, safe='')}"


def _with_model(folder: StudioFolder, source: Path) -> tuple[StudioFolder, str]:
    """A model becomes a run without a table; the file itself stays where it is."""
    if not isinstance(load(source), TableModel):
        raise EmpiriskError(f"{str(source)!r} was saved without a table; open one that `empirisk learn` wrote.")
    made = folder.new_run({"name": source.stem})
    shutil.copyfile(source, made / f"{RESULT}{MODEL}")
    return folder, f"#run={made.name}"


@contextmanager
def in_browser(folder: StudioFolder, address: str) -> Iterator[None]:
    """Open an address in the browser by a file that leads to it, which is there until the end.

    The address holds the key to the studio, and every user of a machine can read what a browser was started with.
    """
    path = folder.path / "open.html"
    with suppress(OSError):  # where nothing can be written, people open the address that was printed
        folder.make_own()
        path.unlink(missing_ok=True)  # of a studio that was killed
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(GO_ON.format(escape(address)))
        webbrowser.open(path.as_uri())
    try:
        yield
    finally:
        with suppress(OSError):  # something else is kept in the folder
            path.unlink(missing_ok=True)
            path.parent.rmdir()
