"""Rows of a request: every field checked against the schema before a machine sees it."""

from typing import Any

import polars as pl

from empirisk.errors import LETTERS, EmpiriskError, closest
from empirisk.tables.kinds.base import Forms
from empirisk.tables.understanding.column import Column
from empirisk.tables.understanding.schema import Schema

MAX_PROBLEMS = 20  # problems listed in one response: the rows after them are not checked

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
        """The rows as a frame for the encoder, and the list of problems with them."""
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
            if len(problems) >= MAX_PROBLEMS:
                break
        if problems:
            return pl.DataFrame(), problems[:MAX_PROBLEMS]
        return pl.DataFrame(values, schema=self._dtypes), []

    def _value(self, row: dict[str, Any], column: Column, known: Forms) -> Any:
        """The value of a field in the form that encoders take, None where it is missing."""
        if column.name not in row:
            hint = self._hint(column.name, row)
            if hint or not self._dtypes.keys() & row.keys():
                raise ValueError(f"is missing{hint or ', as all fields are; send at least one'}")
            return None
        return column.read(row[column.name], known)

    def _hint(self, name: str, row: dict[str, Any]) -> str:
        """A suggestion for a missing field: an extra field of a similar name, which is probably misspelt."""
        others = [other[:LETTERS] for other in row if other not in self._dtypes]
        close = closest(name, others)
        return f", or rename {close!r} if it is that" if close else ""


def read_forms(column: Column, rows: list[Any]) -> Forms:
    """The parsed values of a field in all rows, parsed in one call, since a call for each value takes a second.

    The result is empty if the call fails: one value is then wrong, and the values are parsed one by one to find it.
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
