"""Reading tables: CSV, TSV, Parquet, Arrow, JSON lines, frames of other libraries, or a bundled table by name."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from empirisk.errors import EmpiriskError
from empirisk.tables import datasets
from empirisk.tables.columns import MARKERS
from empirisk.tables.frames import as_frame
from empirisk.tables.guess import LEADING_ZERO
from empirisk.tables.sniff import check_rows, decode, find_delimiter, read_header

#: Where a code such as 00123 may stand, which is no number.
ZERO_FIRST = re.compile(rb'[\n,;\t|"]0[0-9]')
LOOKED_AT = 10_000  # rows whose types are tried first; reading twice now and then beats looking at all of them


def read(source: Any) -> pl.DataFrame:
    """Read a table.

    Parameters
    ----------
    source : path, name or frame
        A file (CSV with any usual delimiter and encoding, TSV, Parquet, Arrow or Feather, JSON lines), the name of a
        bundled table (see `datasets`), or a frame, which is returned as a Polars frame.

    Examples
    --------
    >>> er.tables.read("iris").shape
    (150, 5)
    """
    if not isinstance(source, (str, os.PathLike)):
        return _checked(as_frame(source), "the table")
    name = os.fspath(source)
    path = Path(name)
    if not path.exists() and name in datasets.NAMES:
        return datasets.table(name)
    if not path.is_file():
        raise EmpiriskError(_no_such(name, path))
    return _checked(_reader(path)(path), name)


def _no_such(name: str, path: Path) -> str:
    from difflib import get_close_matches

    folder = path.parent if path.parent.is_dir() else Path()
    known = [
        *datasets.NAMES,
        *(str(folder / file.name) if path.parent != Path() else file.name for file in folder.iterdir()),
    ]
    close = get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f"did you mean {close[0]!r}?" if close else "give a file, or a name that `empirisk datasets` lists."
    return f"There is no table {name!r}; {hint}"


def _reader(path: Path) -> Callable[[Path], pl.DataFrame]:
    """How to read a file: by what it starts with, else by its name."""
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(b"PAR1"):
        return _read_parquet
    if start.startswith(b"ARROW1"):
        return _read_arrow
    if start.startswith(b"\xff\xff\xff\xff"):
        return _read_stream
    ending = path.suffix.lower()
    if ending in (".jsonl", ".ndjson", ".json") or start.lstrip(b"\xef\xbb\xbf \n\r\t").startswith(b"{"):
        return _read_lines
    if ending in (".parquet", ".pq", ".arrow", ".feather", ".ipc"):
        raise EmpiriskError(f"The table {str(path)!r} is not the {ending[1:]} file that its name says; write it again.")
    return _read_text


def _read_parquet(path: Path) -> pl.DataFrame:
    return _guarded(path, lambda: pl.read_parquet(path))


def _read_arrow(path: Path) -> pl.DataFrame:
    return _guarded(path, lambda: pl.read_ipc(path))


def _read_stream(path: Path) -> pl.DataFrame:
    return _guarded(path, lambda: pl.read_ipc_stream(path))


def _read_lines(path: Path) -> pl.DataFrame:
    data = decode(path.read_bytes(), str(path))
    if not data.strip():
        raise EmpiriskError(f"The table {str(path)!r} is empty; give a file with rows.")
    if data.lstrip().startswith(b"["):
        return _guarded(path, lambda: pl.read_json(data, infer_schema_length=None))
    return _guarded(path, lambda: pl.read_ndjson(data, infer_schema_length=None))


def _read_text(path: Path) -> pl.DataFrame:
    name = str(path)
    data = decode(path.read_bytes(), name)
    delimiter = find_delimiter(data, name)
    names = read_header(data, delimiter, name)
    if b"\n" not in data and b"\r" in data:
        data = data.replace(b"\r", b"\n")  # the lines of old Macintoshes
    check_rows(data, delimiter, len(names), name)
    return _guarded(path, lambda: _parse(data, delimiter, names))


def _parse(data: bytes, delimiter: str, names: list[str]) -> pl.DataFrame:
    """The columns by the types of their first values or, where a later one does not fit, of all of them."""
    rules = {"separator": delimiter, "new_columns": names, "null_values": list(MARKERS), "raise_if_empty": False}
    if ZERO_FIRST.search(data):
        text = pl.read_csv(data, infer_schema=False, **rules)
        coded = text.select(pl.all().str.contains(LEADING_ZERO).any()).row(0) if text.height else ()
        rules["schema_overrides"] = {name: pl.String for name, code in zip(names, coded, strict=False) if code}
    try:
        return pl.read_csv(data, infer_schema_length=LOOKED_AT, **rules)
    except pl.exceptions.ComputeError:
        return pl.read_csv(data, infer_schema_length=None, **rules)


def _guarded(path: Path, work: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    try:
        return work()
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = (str(error).strip().splitlines() or ["unknown"])[0][:160]
        raise EmpiriskError(f"The table {str(path)!r} cannot be read: {reason}.") from error


def _checked(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    if frame.width == 0 or frame.height == 0:
        raise EmpiriskError(
            f"The table {name!r} has no {'columns' if frame.width == 0 else 'rows'}; give a file with rows."
        )
    return frame.rename({column: column.strip() for column in frame.columns}) if _padded(frame) else frame


def _padded(frame: pl.DataFrame) -> bool:
    stripped = {column.strip() for column in frame.columns}
    return any(column != column.strip() for column in frame.columns) and len(stripped) == frame.width
