"""Reading tables: CSV, TSV, Parquet, Arrow, JSON lines, frames of other libraries, or a bundled table by name."""

import io
import os
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from empirisk.errors import LETTERS, EmpiriskError, did_you_mean
from empirisk.settings import require
from empirisk.tables.kinds.base import MARKERS
from empirisk.tables.reading import datasets
from empirisk.tables.reading.database import MARK, SEPARATOR, read_database
from empirisk.tables.reading.frames import as_frame, flat
from empirisk.tables.reading.sniff import (
    check_depth,
    check_rows,
    decode,
    find_delimiter,
    first_row,
    read_header,
    without_title,
)
from empirisk.tables.reading.unpack import sound, unpacked, whole
from empirisk.tables.reading.workbook import CONTENTS, read_workbook
from empirisk.tables.understanding.guess import LEADING_ZERO

#: How the names of files end that may be meant by a name which is not there.
ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".data", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow")
ENDINGS += (".feather", ".ipc", ".xlsx", ".gz", ".bz2", ".xz", ".zip", ".db", ".sqlite", ".sqlite3")
CELL = 8  # bytes of a cell in memory, most often
LOOKED_AT = 10_000  # rows whose types are tried first; reading twice now and then beats looking at all of them


def read(source: Any, *, header: bool = True) -> pl.DataFrame:
    """Read a table.

    Parameters
    ----------
    source : path, name or frame
        A file (CSV with any usual delimiter and encoding, TSV, Parquet, Arrow or Feather, JSON lines, also packed as
        .gz, .bz2, .xz or .zip; a workbook .xlsx, which needs ``pip install 'empirisk[excel]'``), one file of an archive
        ("months.zip/may.csv"), a table of an SQLite database ("shop.db::orders"), a folder of Parquet files, "-" for
        standard input, the name of a bundled table (see `datasets`), or a frame, which becomes one of Polars.
    header : bool
        Whether the first row of a text table names the columns; else they are column_1, column_2, ...

    Examples
    --------
    >>> er.tables.read("iris").shape
    (150, 5)
    """
    if not isinstance(source, (str, os.PathLike)):
        return _checked(as_frame(source), "the table")
    name = os.fspath(source)
    try:
        return _of_name(name, header)
    except OSError as error:
        reason = error.strerror or "unknown"
        raise EmpiriskError(f"The table {name[:LETTERS]!r} cannot be read ({reason}); give another.") from error


def read_bytes(data: bytes, name: str) -> pl.DataFrame:
    """The table that the bytes of a file of this name are: text with a header, JSON lines, Parquet or Arrow."""
    return _checked(_of_bytes(data, name, header=True), name)


def _of_name(name: str, header: bool) -> pl.DataFrame:
    """The table of standard input, a file, a folder, an archive, or of a bundled name."""
    path = Path(name)
    file, found, wanted = name.rpartition(SEPARATOR)
    if found and not path.exists() and Path(file).is_file():
        return _checked(_guarded(name, lambda: read_database(Path(file), wanted)), name)
    if name == "-":
        name = "standard input"
        return _checked(_of_bytes(whole(sys.stdin.buffer, name), name, header), name)
    if not path.exists() and name in datasets.NAMES:
        return datasets.table(name)
    if path.is_dir() and any(path.rglob("*.parquet")):
        return _checked(_guarded(name, lambda: _read_parquet(path / "**/*.parquet", name)), name)
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is not None:
        return _checked(_of_archive(archive, header, path.relative_to(archive).as_posix()), name)
    if not path.is_file():
        raise EmpiriskError(_no_such(name, path))
    return _checked(_of_file(path, header), name)


def _no_such(name: str, path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path()
    tables = [str(file) for file in folder.iterdir() if file.suffix.lower() in ENDINGS or file.is_dir()]
    known = [*datasets.NAMES, *tables]
    otherwise = "give a file, or a name that `empirisk datasets` lists."
    hint = did_you_mean(name, known, otherwise, cutoff=0.7)  # stricter than usual: files have all kinds of names
    return f"There is no table {name!r}; {hint}"


def _read_parquet(source: Any, name: str) -> pl.DataFrame:
    """A Parquet file, or several."""
    _require_room(pl.scan_parquet(source), name)
    return pl.read_parquet(source)


def _read_arrow(source: Any, name: str) -> pl.DataFrame:
    """An Arrow file."""
    _require_room(pl.scan_ipc(source), name)
    return pl.read_ipc(source)


def _require_room(lazy: pl.LazyFrame, name: str) -> None:
    """Raise `TooLarge` where the cells do not fit into memory: a few bytes can stand for millions of equal ones."""
    cells = lazy.select(pl.len()).collect().item() * len(lazy.collect_schema())
    require(cells * CELL, f"The table {name!r}", "give a part of it, or raise the limit")


#: What files begin with, and how those that need no decoding are read.
ARCHIVE = (b"PK\x03\x04", b"PK\x05\x06")
BINARY: dict[bytes, Callable[[Any, str], pl.DataFrame]] = {
    b"PAR1": _read_parquet,
    b"ARROW1": _read_arrow,
    b"\xff\xff\xff\xff": lambda source, name: pl.read_ipc_stream(source),
}


def _of_file(path: Path, header: bool) -> pl.DataFrame:
    """The table in a file: by what it starts with, else by its name."""
    with path.open("rb") as file:
        start = file.read(len(MARK))
    if start == MARK:
        return _guarded(str(path), lambda: read_database(path))
    for mark, reader in BINARY.items():
        if start.startswith(mark):
            return _guarded(str(path), lambda reader=reader: reader(path, str(path)))
    if start.startswith(ARCHIVE):
        return _of_archive(path, header)
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq", ".arrow", ".feather", ".ipc"):
        raise EmpiriskError(f"The table {str(path)!r} is not the {ending[1:]} file that its name says; write it again.")
    with path.open("rb") as file:
        return _of_bytes(whole(file, str(path)), str(path), header)


def _of_bytes(data: bytes, name: str, header: bool) -> pl.DataFrame:
    """The table that some bytes are, unpacked where they are packed."""
    data, name = unpacked(data, name)
    for mark, reader in BINARY.items():
        if data.startswith(mark):
            return _guarded(name, lambda reader=reader: reader(io.BytesIO(data), name))
    lines = name.lower().endswith((".jsonl", ".ndjson", ".json"))
    if lines or data[:8].lstrip(b"\xef\xbb\xbf \n\r\t").startswith(b"{"):
        return _of_lines(data, name)
    return _of_text(data, name, header)


def _of_archive(path: Path, header: bool, wanted: str = "") -> pl.DataFrame:
    """The only table of a zip archive or the one wanted, or the first sheet of a workbook, which is one too."""
    with sound(str(path)), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
        if CONTENTS in names and not wanted:
            return _guarded(str(path), lambda: read_workbook(path, archive, header))
        found = [name for name in names if wanted in ("", name)]
        if len(found) != 1:
            holds = f"{len(names)} files" if not wanted else f"no {wanted!r}"
            hint = f"name one of them, such as {f'{path}/{names[0]}'!r}" if names else "pack the table again"
            raise EmpiriskError(f"The archive {str(path)!r} holds {holds}; {hint}.")
        with archive.open(found[0]) as file:
            data = whole(file, found[0])
    return _of_bytes(data, found[0], header)


def _of_lines(data: bytes, name: str) -> pl.DataFrame:
    data = decode(data, name)
    if not data.strip():
        raise EmpiriskError(f"The table {name!r} is empty; give a file with rows.")
    check_depth(data, name)
    reader = pl.read_json if data.lstrip().startswith(b"[") else pl.read_ndjson
    return _guarded(name, lambda: reader(data, infer_schema_length=None))


def _of_text(data: bytes, name: str, header: bool) -> pl.DataFrame:
    data = decode(data, name)
    data = without_title(data) if header else data
    delimiter = find_delimiter(data, name)
    if b"\n" not in data and b"\r" in data:
        data = data.replace(b"\r", b"\n")  # the lines of old Macintoshes
    if not header:
        width = len(first_row(data, delimiter, name))
        names = [f"column_{number + 1}" for number in range(width)]
        data = delimiter.join(names).encode() + b"\n" + data
    else:
        names = read_header(data, delimiter, name)
    check_rows(data, delimiter, len(names), name)
    return _guarded(name, lambda: _parse(data, delimiter, names))


def _parse(data: bytes, delimiter: str, names: list[str]) -> pl.DataFrame:
    """The columns by the types of their first values or, where a later one does not fit, of all of them."""
    rules = {"separator": delimiter, "new_columns": names, "null_values": list(MARKERS), "raise_if_empty": False}
    # Where a code such as 00123 may stand, which is no number: a search for each, for one of all is slow.
    if any(re.search(re.escape(before) + rb"0[0-9]", data) for before in (delimiter.encode(), b"\n", b'"')):
        text = pl.read_csv(data, infer_schema=False, **rules)
        coded = text.select(pl.all().str.contains(LEADING_ZERO).any()).row(0) if text.height else ()
        rules["schema_overrides"] = {name: pl.String for name, code in zip(names, coded, strict=False) if code}
    try:
        return pl.read_csv(data, infer_schema_length=LOOKED_AT, **rules)
    except pl.exceptions.ComputeError:
        return pl.read_csv(data, infer_schema_length=None, **rules)


def _guarded(name: str, work: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    try:
        return work()
    except EmpiriskError:
        raise
    # A reader in Rust says what it likes: its own errors, those of Python, and panics, which are no `Exception`.
    except (Exception, pl.exceptions.PanicException) as error:
        reason = (str(error).strip().splitlines() or ["unknown"])[0][:LETTERS]
        raise EmpiriskError(f"The table {name!r} cannot be read: {reason}.") from error


def _checked(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    if frame.width == 0 or frame.height == 0:
        raise EmpiriskError(
            f"The table {name!r} has no {'columns' if frame.width == 0 else 'rows'}; give a file with rows."
        )
    frame = flat(frame)
    require(frame.height * frame.width, f"The table {name!r}", "give a part of it, or raise the limit")
    stripped = {column: column.strip() for column in frame.columns}
    return frame.rename(stripped) if len(set(stripped.values())) == frame.width else frame
