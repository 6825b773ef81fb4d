"""Rows of a request: every field checked against the schema before a machine sees it."""

import math
from collections.abc import Callable
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import polars as pl

from empirisk.errors import EmpiriskError
from empirisk.tables.columns import CANONICAL, FALSE, LASTING, MARKERS, SOFT_MARKERS, TRUE, Column
from empirisk.tables.schema import Schema

LONGEST = 100_000  # characters of one value
PROBLEMS = 20  # told at most
GAPS = frozenset(MARKERS + SOFT_MARKERS)
EARLIEST, LATEST = 1, 9999  # years

Problem = dict[str, Any]


class Fields:
    """The fields of a model's schema, and the check of rows against them.

    >>> from empirisk.tables import understand
    >>> fields = Fields(understand({"age": [30.0, 41.0], "town": ["Ulm", "Bonn"]}))
    >>> fields.check([{"age": "old", "town": "Ulm"}])[1]
    [{'row': 0, 'field': 'age', 'problem': "'old' is not a number"}]
    """

    def __init__(self, schema: Schema):
        self.columns = schema.used
        self._kinds = {column.name: CANONICAL[column.kind] for column in self.columns}

    def check(self, rows: list[Any]) -> tuple[pl.DataFrame, list[Problem]]:
        """The rows as a frame in the form that encoders take, and what is wrong with them."""
        problems: list[Problem] = []
        values: dict[str, list[Any]] = {name: [] for name in self._kinds}
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                problems.append({"row": number, "field": None, "problem": "a row must be an object of fields"})
                continue
            self._read(row, number, values, problems)
            if len(problems) >= PROBLEMS:
                break
        if problems:
            return pl.DataFrame(), problems[:PROBLEMS]
        return pl.DataFrame(values, schema=self._kinds), []

    def _read(self, row: dict[str, Any], number: int, values: dict[str, list[Any]], problems: list[Problem]) -> None:
        for column in self.columns:
            if column.name not in row:
                problem = f"is required; send null if it is not known{self._hint(column.name, row)}"
                problems.append({"row": number, "field": column.name, "problem": problem})
                continue
            try:
                values[column.name].append(_READERS[column.kind](row[column.name], column))
            except ValueError as error:
                problems.append({"row": number, "field": column.name, "problem": str(error)})

    def _hint(self, name: str, row: dict[str, Any]) -> str:
        """Fields beyond those of the model are not used, but one of them may be misspelt."""
        others = [other[:80] for other in row if other not in self._kinds]
        close = get_close_matches(name, others, n=1)
        return f", or rename {close[0]!r} if it is that" if close else ""


def _number(value: Any, column: Column) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        if text in GAPS:
            return None
        try:
            value = float(text) if not column.form else _by_column(text, column)
        except ValueError:
            how = "a time; write it like '1:30'" if column.form in LASTING else "a number"
            raise ValueError(f"{_shown(value)} is not {how}") from None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{_shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{_shown(value)} is not a finite number")
    return number


def _boolean(value: Any, column: Column) -> float | None:
    text = str(value).strip().lower() if isinstance(value, (str, int, float)) else ""
    if value is None or (isinstance(value, str) and value.strip() in GAPS):
        return None
    if text in TRUE:
        return 1.0
    if text in FALSE:
        return 0.0
    raise ValueError(f"{_shown(value)} is neither true nor false")


def _date(value: Any, column: Column) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{_shown(value)} is not a date; write it like '2024-05-31'")
    text = value.strip()
    if text in GAPS:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        pass
    try:
        found = _by_column(text, column)
    except ValueError:
        raise ValueError(f"{_shown(value)} is not a date; write it like '2024-05-31'") from None
    if not EARLIEST <= found.year <= LATEST:
        raise ValueError(f"{_shown(value)} is not a date of our time")
    return found


def _words(value: Any, column: Column) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{_shown(value)} is not a text")
    text = value.strip() if isinstance(value, str) else _by_column(value, column) or ""
    if len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half a character") from None
    return None if text in MARKERS else text


def _by_column(value: str | float, column: Column) -> Any:
    """A value in the way that the column of the table was written."""
    try:
        return column.convert(pl.Series(column.name, [value]))[0]
    except EmpiriskError as error:
        raise ValueError(str(error)) from None
    except (OverflowError, pl.exceptions.PolarsError):
        raise ValueError(f"{_shown(value)} is no number of a usual size") from None


def _shown(value: Any) -> str:
    return repr(value)[:60]


_READERS: dict[str, Callable[[Any, Column], Any]] = {
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "category": _words,
    "text": _words,
}
