"""Tables in many files, or larger than memory: a sample of their rows stands for them in the contest."""

import glob
from pathlib import Path
from typing import Any

import polars as pl

from empirisk import tables
from empirisk.scale.scan import READERS, Scan, scan
from empirisk.settings import settings

#: The share of the memory budget that a table may take whole, and that a sample of it takes: folds copy it.
WHOLE_SHARE, SAMPLE_SHARE = 4, 16
#: Bytes of a cell in memory, most often.
CELL = 8


def read_or_sample(data: Any, header: bool) -> tuple[pl.DataFrame, Scan | None, str]:
    """The table; of one that is larger than memory a sample, the files, and a sentence that says so."""
    found = _scan_of(data) if isinstance(data, (str, Path)) and header else None
    if found is None:
        return tables.read(data, header=header), None, ""
    room = settings().memory // (CELL * len(found.schema))
    rows = found.rows()
    if rows <= room // WHOLE_SHARE:
        pattern = glob.has_magic(str(data))
        return (found.sample(rows) if pattern else tables.read(data, header=header)), None, ""
    frame = found.sample(room // SAMPLE_SHARE)
    note = (
        f"The table of {rows:,} rows is larger than the memory budget: the contest and the test are those of a sample "
        f"of {frame.height:,} rows from all over it."
    )
    return frame, found, note


def _scan_of(data: str | Path) -> Scan | None:
    """The files of a pattern, a folder or a large file, where their format can be read in blocks."""
    path = Path(data)
    if glob.has_magic(str(data)) and not path.exists():
        return scan(data)
    if path.is_dir():
        files = [file for file in path.iterdir() if file.suffix.lower() in READERS]
        return scan(data) if files and _large(files) else None
    return scan(data) if path.is_file() and path.suffix.lower() in READERS and _large([path]) else None


def _large(files: list[Path]) -> bool:
    """Whether files may hold more than fits: packed, a byte may stand for ten."""
    return 10 * sum(file.stat().st_size for file in files) > settings().memory // WHOLE_SHARE
