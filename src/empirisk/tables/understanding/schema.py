"""The schema: which columns a model expects, and what each holds."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from empirisk import state
from empirisk.errors import EmpiriskError, closest, listed
from empirisk.lazy import lazy
from empirisk.tables.kinds import Kind
from empirisk.tables.reading.frames import as_frame
from empirisk.tables.understanding.column import Column, as_missing
from empirisk.tables.understanding.guess import guess_all, read_as

__all__ = ["Column", "Schema", "find_column", "understand"]


@dataclass(frozen=True)
class Schema:
    """The columns of a table, what each holds, and which of them machines learn from.

    Examples
    --------
    >>> schema = er.tables.understand({"age": [30, 41, 22], "town": ["Ulm", "Ulm", "Bonn"]})
    >>> [column.kind for column in schema.columns]
    ['number', 'category']
    >>> er.tables.Schema.from_json(schema.to_json()) == schema
    True
    """

    _state = state.State(columns=state.several(state.part(Column)))

    columns: tuple[Column, ...]

    @lazy
    def used(self) -> tuple[Column, ...]:
        """The columns that machines learn from."""
        return tuple(column for column in self.columns if column.used)

    @lazy
    def _position(self) -> dict[str, int]:
        return {column.name: number for number, column in enumerate(self.columns)}

    def __getitem__(self, name: str) -> Column:
        return self.columns[self._position[find_column(name, list(self._position), "column")]]

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Schema({len(self.columns)} columns, {len(self.used)} used)"

    def __deepcopy__(self, memo: dict) -> Schema:
        return self  # nothing in it changes; a clone of an encoder need not copy ten thousand columns

    def named(self, asked: Callable[[Kind], bool]) -> list[str]:
        """The names of the used columns whose kind is as asked, in order."""
        return [column.name for column in self.used if asked(column.type)]

    def of_kind(self, *kinds: str) -> list[str]:
        """The names of the columns of these kinds, in order."""
        return [column.name for column in self.columns if column.kind in kinds]

    def features(self, table: Any) -> pl.DataFrame:
        """The used columns of a table in the form that machines learn from.

        Columns may come in any order, and others may be there. A missing one, or a value of another kind than in the
        table that the schema was made from, is an error that names the column.
        """
        if not self.used:
            raise EmpiriskError("The table has no column to learn from: all are constant or name rows; add some.")
        frame = as_frame(table)
        given = {column.name: column for column in frame.get_columns()}
        lacking = [column.name for column in self.used if column.name not in given]
        if lacking:
            raise EmpiriskError(_lacks(lacking, [name for name in given if name not in self._position]))
        return pl.DataFrame([column.convert(given[column.name]) for column in self.used])

    def example(self, features: pl.DataFrame) -> dict[str, Any]:
        """A row of `features` as JSON holds it: the first of those with the fewest missing values.

        Numbers are rounded and texts left out, so that whoever sees it is not told the row of a person.
        """
        row = features[int(features.select(pl.sum_horizontal(pl.all().is_null())).to_series().arg_min() or 0)]
        values = row.row(0, named=True).items()
        return {name: self[name].type.as_json(value) for name, value in values if not self[name].type.wide}

    def to_json(self) -> str:
        """The schema as JSON text."""
        return json.dumps([asdict(column) for column in self.columns])

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema that `to_json` wrote."""
        return cls(tuple(Column(**_tuples(entry)) for entry in json.loads(text)))


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of a column, lists as the tuples that they were."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}


def understand(
    table: Any, without: Iterable[str] = (), types: Mapping[str, str] | None = None, missing: Iterable[str] = ()
) -> Schema:
    """Find out what the columns of a table hold.

    Parameters
    ----------
    table : polars or pandas frame, dict of columns
        The table, as `read` returns it.
    without : names
        Columns to leave out, such as the target.
    types : dict, optional
        What some columns hold, where the guess is wrong, such as ``{"zip": "category"}``. What is of another kind there
        is taken as missing.
    missing : texts
        Values that stand for a missing one in all columns, such as "ERR" or "-999".

    Examples
    --------
    >>> str(er.tables.understand({"x": [1.5, None, 2.0]})["x"])
    'x: number from 1.5 to 2, 1 missing'
    """
    values = tuple(map(str, missing))
    frame = as_frame(table)
    left_out = {find_column(name, frame.columns, "column") for name in without}
    asked = {find_column(name, frame.columns, "types"): kind for name, kind in (types or {}).items()}
    others = [column for column in frame.get_columns() if column.name not in left_out and column.name not in asked]
    found = {column.name: column for column in guess_all(others, values)}
    found |= {name: read_as(frame[name], kind, values) for name, kind in asked.items() if name not in left_out}
    return Schema(tuple(found[name] for name in frame.columns if name in found))


def with_missing(frame: pl.DataFrame, values: Sequence[str]) -> pl.DataFrame:
    """A table in which some values stand for missing ones, which they become."""
    return frame.with_columns(as_missing(column, values) for column in frame.get_columns()) if values else frame


def find_column(name: str, names: list[str], argument: str = "target") -> str:
    """The column that a name means: itself, or the only one that differs in case or blanks; else a suggestion.

    >>> find_column("Price", ["price", "size"])
    'price'
    """
    if name in names:
        return name
    wanted = _folded(name)
    alike = [known for known in names if _folded(known) == wanted]
    if len(alike) == 1:
        return alike[0]
    hint = _suggest(name, names)
    raise EmpiriskError(
        f"{argument}={name!r} is not a column of the table; "
        + (f"did you mean {hint!r}?" if hint else f"the table has {listed(list(map(repr, names)))}.")
    )


def _folded(name: Any) -> str:
    """A name without blanks around it, capitals and accents."""
    letters = unicodedata.normalize("NFKD", str(name).strip().casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _suggest(name: Any, names: list[str]) -> str | None:
    """The name that looks most like a misspelt one, if one does."""
    folded = {_folded(known): known for known in reversed(names)}
    close = closest(_folded(name), folded)
    return None if close is None else folded[close]


def _lacks(lacking: list[str], others: list[str]) -> str:
    shown = listed(list(map(repr, lacking)))
    close = _suggest(lacking[0], others)
    hint = (
        f"rename {close!r} if it is that"
        if close
        else f"add {'them' if len(lacking) > 1 else 'it'}, with empty values where it is not known"
    )
    return f"The table lacks the column{'s' if len(lacking) > 1 else ''} {shown}; {hint}."
