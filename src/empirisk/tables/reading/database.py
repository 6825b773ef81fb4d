"""Tables of SQLite databases."""

import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl

from empirisk.errors import EmpiriskError, did_you_mean, listed
from empirisk.tables.reading.frames import as_frame

#: What such files begin with, and what stands between a file and the name of a table.
MARK, SEPARATOR = b"SQLite format 3\x00", "::"


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
        rows = database.execute(f'SELECT * FROM "{quoted}"')
        columns = [entry[0] for entry in rows.description]
        found = list(zip(*rows.fetchall(), strict=True)) or [()] * len(columns)
    return as_frame({column: list(values) for column, values in zip(columns, found, strict=True)})
