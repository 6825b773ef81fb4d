"""Values that may stand for a missing one, such as -999 or 1900-01-01: far from all others, and met again and again."""

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from empirisk.errors import option
from empirisk.tables.understanding.column import Column
from empirisk.tables.understanding.schema import Schema

#: Numbers that people write where they know none: 99, -999, 9999, 8888 and so on.
NUMBERS = re.compile(r"^-?(9{2,}|8{3,}|7{3,})$")
#: Days on which nothing happened.
DAYS = ("1753-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1901-01-01", "1970-01-01", "2099-12-31", "9999-12-31")
LEAST = 2  # rows that have it


def stand_ins(frame: pl.DataFrame, schema: Schema) -> Iterator[str]:
    """Questions about values that may stand for missing ones, of a table as `Schema.features` makes it.

    >>> table = {"t": [21.5, 19.0, -999.0, 20.5, -999.0]}
    >>> schema = er.tables.understand(table)
    >>> next(stand_ins(schema.features(table), schema))
    "Column 't' holds -999 in 2 rows, far from 19 to 21.5: if it means missing, say so with missing=['-999']."
    """
    for column in schema.used:
        for end in (column.low, column.high):
            if end is not None and (NUMBERS.match(column.written(end)) or column.written(end) in DAYS):
                yield from _question(column, frame[column.name], end)


def _question(column: Column, series: pl.Series, end: float) -> Iterator[str]:
    """The question about the least or the largest value of a column, if it is far from the others."""
    ranks = column.type.ranks(series)
    values = np.zeros(0) if ranks is None else ranks[np.isfinite(ranks)]
    day = 86_400e6 if column.type.drawn == "dates" else 0.0  # a stand-in has midnight, or any time of that day
    alike = np.abs(values - end) <= day
    others, rows = values[~alike], int(alike.sum())
    if rows < LEAST or not len(others):
        return
    low, high = float(others.min()), float(others.max())
    far = max(low - end, end - high) > (365 * day if day else high - low)
    if far:
        written = column.written(end)
        yield (
            f"Column {column.name!r} holds {written} in {rows:,} rows, far from {column.written(low)} to "
            f"{column.written(high)}: if it means missing, say so with {option('missing', [written])}."
        )
