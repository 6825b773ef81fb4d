"""The body of a request: JSON, as few rows as are allowed, every field as the model's schema says."""

import json
from typing import Any, NamedTuple

import polars as pl

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.service.fields import Fields
from empirisk.tables.understanding.schema import Schema


class Refusal(EmpiriskError):
    """A request that is refused: the HTTP status, a sentence that says why, and the fields that are wrong."""

    def __init__(self, status: int, sentence: str, problems: list[dict[str, Any]] | None = None):
        super().__init__(sentence)
        self.status, self.problems = status, problems or []


class BodyRows(NamedTuple):
    """Checked rows, and whether they came as a list."""

    frame: pl.DataFrame
    several: bool


class Bodies:
    """Reads bodies of requests for a model with some schema.

    >>> from empirisk.tables import understand
    >>> bodies = Bodies(understand({"age": [30.0, 41.0]}), most_rows=1)
    >>> bodies.read(b'{"age": 25}').frame["age"].to_list()
    [25.0]
    >>> bodies.read(b'[{"age": 25}, {"age": 26}]')
    Traceback (most recent call last):
    empirisk.service.bodies.Refusal: 2 rows are more than 1; send them in parts.
    """

    def __init__(self, schema: Schema, most_rows: int):
        self._fields, self._most_rows = Fields(schema), most_rows

    def read(self, body: bytes) -> BodyRows:
        """The rows of a body; a `Refusal` that says what is wrong with it."""
        data = parse(body)
        rows = data if isinstance(data, list) else [data]
        if not rows:
            raise Refusal(422, "The list of rows is empty; send at least one row.")
        if len(rows) > self._most_rows:
            raise Refusal(413, f"{len(rows)} rows are more than {self._most_rows}; send them in parts.")
        frame, problems = self._fields.check(rows)
        if problems:
            first = problems[0]
            where = f" in row {first['row']}" if len(rows) > 1 else ""
            raise Refusal(422, f"Field {first['field']!r}{where}: {first['problem']}.", problems)
        return BodyRows(frame, isinstance(data, list))


def parse(body: bytes) -> Any:
    """The JSON of a body; NaN and infinity, which Python's parser would accept, are refused.

    >>> parse(b'{"a": 1}')
    {'a': 1}
    """
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:LETTERS]
        raise Refusal(400, f"The body is not JSON: {reason}.") from error


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
