"""Rows of a request: every field checked against the schema before a machine sees it."""

from difflib import get_close_matches
from typing import Any

import polars as pl

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.tables.columns import Column
from empirisk.tables.kinds.base import Forms
from empirisk.tables.schema import Schema

PROBLEMS = 20  # told at most

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
        self._dtypes = {column.name: column.type.dtype for column in self.columns}

    def check(self, rows: list[Any]) -> tuple[pl.DataFrame, list[Problem]]:
        """The rows as a frame in the form that encoders take, and what is wrong with them."""
        problems: list[Problem] = []
        values: dict[str, list[Any]] = {name: [] for name in self._dtypes}
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
        return pl.DataFrame(values, schema=self._dtypes), []

    def _value(self, row: dict[str, Any], column: Column, known: Forms) -> Any:
        """The value of a field in the form that encoders take, None where it is missing."""
        if column.name not in row:
            raise ValueError(f"is required; send null if it is not known{self._hint(column.name, row)}")
        value = row[column.name]
        if isinstance(value, str):
            value = value.strip()
            value = None if value in column.type.markers else value
        return None if value is None else column.type.read(value, column, known)

    def _hint(self, name: str, row: dict[str, Any]) -> str:
        """Fields beyond those of the model are not used, but one of them may be misspelt."""
        others = [other[:LETTERS] for other in row if other not in self._dtypes]
        close = get_close_matches(name, others, n=1)
        return f", or rename {close[0]!r} if it is that" if close else ""


def read_forms(column: Column, rows: list[Any]) -> Forms:
    """The values of a field that are written in the way of the column, all read at once: one by one takes a second.

    Nothing if they cannot be read together, for then one is wrong, and is read alone.
    """
    values = column.type.texts_of([row.get(column.name) for row in rows if isinstance(row, dict)], column.form)
    if not values:
        return {}
    kind = pl.String if isinstance(next(iter(values)), str) else pl.Float64
    try:
        found = column.parse(pl.Series(column.name, list(values), dtype=kind, strict=False))
    except (EmpiriskError, UnicodeEncodeError):
        return {}
    return dict(zip(values, found.to_list(), strict=True))
