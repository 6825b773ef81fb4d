"""What the studio is started with: nothing, a table, or a model."""

import shutil
from pathlib import Path
from urllib.parse import quote

from empirisk.errors import EmpiriskError
from empirisk.files.models import load
from empirisk.studio.workbench.folder import StudioFolder
from empirisk.studio.workbench.job import RESULT
from empirisk.tables.model import TableModel
from empirisk.tables.reading import datasets

MODEL = ".model"


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
