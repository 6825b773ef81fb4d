"""The files of a job: model, report and journal."""

from pathlib import Path
from tempfile import TemporaryFile

from empirisk import tables
from empirisk.errors import EmpiriskError, option
from empirisk.files.atomic import whole_file
from empirisk.files.models import save

#: Letters of a fingerprint in the name of a journal, which tell all runs in a folder apart.
MARK_LETTERS = 12


def file_paths(out: Path, force: bool) -> dict[str, Path]:
    """Where the files go; the folder must take them, so that nothing is learned in vain."""
    if not out.name:
        raise EmpiriskError(f"out={str(out)!r} is no name for files; give one such as 'spam'.")
    if not out.parent.is_dir():
        raise EmpiriskError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first.")
    try:
        with TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise EmpiriskError(
            f"out={str(out)!r}: nothing can be written to the folder {str(out.parent)!r} ({error.strerror}); "
            "choose another place."
        ) from error
    paths = {kind: out.with_name(f"{out.name}.{kind}") for kind in ("model", "report.html")}
    if paths["model"].exists() and not force:
        raise EmpiriskError(
            f"out={str(out)!r}: {str(paths['model'])!r} exists; choose another name, or replace it with "
            f"{option('force')}."
        )
    return paths


def write(model: tables.TableModel, report: str, paths: dict[str, Path]) -> None:
    """The report first: where it fails, no model is left without one."""
    with whole_file(paths["report.html"]) as file:
        file.write(report.encode())
    save(model, paths["model"], durations=False)
    begun = [f".{path.name}.{'[0-9a-f]' * 16}.part" for path in paths.values()]  # by runs that were killed
    for pattern in (f"{paths['model'].stem}.{'[0-9a-f]' * MARK_LETTERS}.journal", *begun):
        for file in paths["model"].parent.glob(pattern):
            file.unlink(missing_ok=True)
