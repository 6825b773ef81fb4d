"""Rows of a request: every field checked against the schema before a machine sees it."""

import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import polars as pl

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.tables.columns import CANONICAL, FALSE, LASTING, MARKERS, SOFT_MARKERS, TRUE, Column
from empirisk.tables.schema import Schema

LONGEST = 100_000  # characters of one value
PROBLEMS = 20  # told at most
GAPS = frozenset(MARKERS + SOFT_MARKERS)

LARGEST = 1e300  # a number of a larger size has no place in a column of words

Problem = dict[str, Any]
#: What values stand for that are written in the way of a column.
Forms = dict[Any, Any]


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
        forms = [read_forms(column, rows) for column in self.columns]
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                problems.append({"row": number, "field": None, "problem": "a row must be an object of fields"})
                continue
            for column, known in zip(self.columns, forms, strict=True):
                try:
                    values[column.name].append(self._value(row, column, known))
                except ValueError as error:
                    problems.append({"row": number, "field": column.name, "problem": str(error)})
            if len(problems) >= PROBLEMS:
                break
        if problems:
            return pl.DataFrame(), problems[:PROBLEMS]
        return pl.DataFrame(values, schema=self._kinds), []

    def _value(self, row: dict[str, Any], column: Column, known: Forms) -> Any:
        """The value of a field in the form that encoders take, None where it is missing."""
        if column.name not in row:
            raise ValueError(f"is required; send null if it is not known{self._hint(column.name, row)}")
        value = row[column.name]
        if isinstance(value, str):
            value = value.strip()
            if value in (MARKERS if CANONICAL[column.kind] == pl.String else GAPS):
                return None
        return None if value is None else _READERS.get(column.kind, _words)(value, column, known)

    def _hint(self, name: str, row: dict[str, Any]) -> str:
        """Fields beyond those of the model are not used, but one of them may be misspelt."""
        others = [other[:LETTERS] for other in row if other not in self._kinds]
        close = get_close_matches(name, others, n=1)
        return f", or rename {close[0]!r} if it is that" if close else ""


def read_forms(column: Column, rows: list[Any]) -> Forms:
    """The values of a field that are written in the way of the column, all read at once: one by one takes a second."""
    given: list[Any] = [row.get(column.name) for row in rows if isinstance(row, dict)]
    texts: set[str] = set()
    numbers: set[float] = set()
    if column.kind == "date" or (column.kind == "number" and column.form):
        texts = {value.strip() for value in given if isinstance(value, str)}
        texts -= {text for text in texts if column.kind == "date" and _iso_date(text)}
    elif CANONICAL[column.kind] == pl.String:
        numbers = {value for value in given if type(value) in (int, float) and abs(value) < LARGEST}
    return _parsed(column, list(texts), pl.String()) | _parsed(column, list(map(float, numbers)), pl.Float64())


def _parsed(column: Column, values: list[Any], kind: pl.DataType) -> Forms:
    """What values stand for; nothing if they cannot be read together, for then one is wrong, and is read alone."""
    try:
        return dict(zip(values, column.parse(pl.Series(column.name, values, dtype=kind)).to_list(), strict=True))
    except (EmpiriskError, UnicodeEncodeError):
        return {}


def _number(value: Any, column: Column, known: Forms) -> float:
    if isinstance(value, str):
        try:
            value = float(value) if not column.form else _by_column(value, column, known)
        except ValueError:
            how = "a time; write it like '1:30'" if column.form in LASTING else "a number"
            raise ValueError(f"{_shown(value)} is not {how}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{_shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{_shown(value)} is not a finite number")
    return number


def _boolean(value: Any, column: Column, known: Forms) -> float:
    text = str(value).lower() if isinstance(value, (str, int, float)) else ""
    if text not in TRUE + FALSE:
        raise ValueError(f"{_shown(value)} is neither true nor false")
    return float(text in TRUE)


def _date(value: Any, column: Column, known: Forms) -> datetime:
    if isinstance(value, str):
        with suppress(ValueError):
            return _iso_date(value) or _by_column(value, column, known)
    raise ValueError(f"{_shown(value)} is not a date; write it like '2024-05-31'")


def _iso_date(text: str) -> datetime | None:
    """The moment that a text names in the form of ISO 8601, which is read fastest."""
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=None)
    return None


def _words(value: Any, column: Column, known: Forms) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{_shown(value)} is not a text")
    text = value if isinstance(value, str) else _by_column(value, column, known)
    if text is not None and len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise ValueError("holds half a character") from None
    return text


def _by_column(value: str | float, column: Column, known: Forms) -> Any:
    """A value in the way that the column of the table was written."""
    if known.get(value) is not None:
        return known[value]
    try:
        return column.convert(pl.Series(column.name, [value]))[0]
    except EmpiriskError as error:
        raise ValueError(str(error)) from None
    except (OverflowError, pl.exceptions.PolarsError):
        raise ValueError(f"{_shown(value)} is no number of a usual size") from None


def _shown(value: Any) -> str:
    return repr(value)[:LETTERS]


_READERS: dict[str, Callable[[Any, Column, Forms], Any]] = {"number": _number, "boolean": _boolean, "date": _date}
