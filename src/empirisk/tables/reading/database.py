"""Tables of SQLite databases."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl

from empirisk.errors import EmpiriskError, did_you_mean, listed
from empirisk.settings import require
from empirisk.tables.reading.frames import as_frame

#: What such files begin with, and what stands between a file and the name of a table.
MARK, SEPARATOR = b"SQLite format 3\x00", "::"
LONGEST = 1 << 20  # bytes of a cell
CELL = 64  # bytes that a cell takes beside those of its text
PATIENCE = 60.0  # seconds that a view may take for its next row
STEPS = 1_000_000  # of SQLite between two looks at the clock, at which Ctrl-C is heard too


def read_database(path: Path, name: str = "") -> pl.DataFrame:
    """A table, or a view, of a database: the one named, or the only one."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        names = [row[0] for row in database.execute(query)]
        if name not in names and (name or len(names) != 1):
            example = f"name one, such as {f'{path}{SEPARATOR}{names[0]}'!r}" if names else "give another file"
            hint = did_you_mean(name, names, f"{example}.") if name else f"{example}."
            raise EmpiriskError(f"The database {str(path)!r} holds the tables {listed(names) or '(none)'}; {hint}")
        quoted = (name or names[0]).replace('"', '""')
        columns, *rows = _measured(database, quoted, str(path))
        found = list(zip(*rows, strict=True)) or [()] * len(columns)
    return as_frame({column: list(values) for column, values in zip(columns, found, strict=True)})


def _measured(database: sqlite3.Connection, table: str, name: str) -> Iterator[tuple]:
    """The names of the columns, and the rows, as many as the memory allows.

    A view can have more rows than its file has bytes, or look for the next one without end.
    """
    size, since = 0, time.monotonic()
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    database.set_progress_handler(lambda: time.monotonic() > since + PATIENCE, STEPS)
    rows = database.execute(f'SELECT * FROM "{table}"')
    yield tuple(entry[0] for entry in rows.description)
    for row in rows:
        size += sum(CELL + (len(value) if isinstance(value, (str, bytes)) else 0) for value in row)
        require(size, f"The table {name!r}", "give a part of it, or raise the limit")
        since = time.monotonic()
        yield row
