"""A column of a table: its name, what it holds, and how its values are written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from empirisk import state
from empirisk.errors import LETTERS, EmpiriskError
from empirisk.tables.kinds import KINDS, Kind
from empirisk.tables.kinds.base import Forms, cleaned


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, what it holds, and how it was written.

    Attributes
    ----------
    name : str
        The name in the header.
    kind : str
        "number", "boolean", "category", "several" (several words in a cell), "date", "sequence" (letters of a small
        alphabet, such as DNA) or "text"; "identifier", "constant" and "nested" are not learned from.
    missing, distinct : int
        Missing and distinct values met when the schema was made.
    examples : tuple of str
        A few values.
    low, high : float or None
        Range of numbers, or of moments in microseconds since 1970.
    dropped : int
        Cells that were of no value of the kind, such as "ERR" among numbers, and were taken as missing.
    dropped_examples : tuple of str
        Some of them.
    missing_values : tuple of str
        Values that stand for a missing one, as the user said.
    form : str
        How values are written: of numbers as `parse_numbers` says, of dates a format of `strptime`, of several values
        what separates them. For categories, how a number stands for a word, see `code_form`.

    Examples
    --------
    >>> column = er.tables.Column("age", "number", low=18.0, high=90.0)
    >>> column.used, str(column)
    (True, 'age: number from 18 to 90')
    """

    _state = state.State(name=state.text(), kind=state.text(*KINDS), form=state.text())

    name: str
    kind: str
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    form: str = ""
    dropped: int = 0
    dropped_examples: tuple[str, ...] = ()
    missing_values: tuple[str, ...] = ()

    @property
    def type(self) -> Kind:
        """All that depends on the kind."""
        return KINDS[self.kind]

    @property
    def used(self) -> bool:
        """Whether machines learn from the column."""
        return self.type.used

    def __str__(self) -> str:
        text = f"{self.name}: {self.kind}"
        if self.used:
            text += self.type.describe(self)
        else:
            text += f", not used: {self.type.why_not(self)}"
        text += f", {self.missing} missing" if self.missing else ""
        return text + (f", {self.dropped_cells} among them" if self.dropped else "")

    @property
    def dropped_cells(self) -> str:
        """How many cells were dropped, and which, in words.

        >>> Column("x", "number", dropped=49, dropped_examples=("ERR", "---")).dropped_cells
        "49 cells such as 'ERR' and '---'"
        """
        cells = "1 cell" if self.dropped == 1 else f"{self.dropped:,} cells"
        return f"{cells} such as {' and '.join(map(repr, self.dropped_examples))}"

    def remarks(self) -> Iterator[str]:
        """How the values were read, where a user should look whether that is right."""
        if self.dropped:
            kind = self.type.expected.removeprefix("a ")
            yield f"Column {self.name!r}: {self.dropped_cells}, no {kind}, taken as missing."
        yield from filter(None, [self.type.remark(self)])

    def written(self, value: float) -> str:
        """A value of the column as people write it; a moment as its day, a time as hours and minutes."""
        return self.type.written(value, self.form)

    def parse(self, series: pl.Series) -> pl.Series:
        """The values in the form that machines learn from, null where one is missing or of another kind."""
        series = as_missing(series, self.missing_values)
        if series.dtype == self.type.dtype and series.dtype != pl.String:
            return series  # words are cleaned each time: they may be raw
        return as_missing(self.type.parse(series.alias(self.name), self.form), self.missing_values)

    def convert(self, series: pl.Series) -> pl.Series:
        """The values in the form that machines learn from; a value of another kind is an error that names it.

        Where the table that was learned from had such values, which were dropped, they are missing here too.
        """
        found = self.parse(series)
        if self.type.expected and not self.dropped and found.null_count() > series.null_count():
            self._refuse_others(series, found)
        return found

    def read(self, value: Any, known: Forms) -> Any:
        """A value of JSON in the form that machines learn from; a `ValueError` says what is wrong with it.

        >>> Column("x", "number", missing_values=("-999",)).read("-999.0", {}) is None
        True
        """
        if isinstance(value, str):
            value = value.strip()
            value = None if value in self.type.markers else value
        plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        if plain and self.missing_values and as_missing(pl.Series([value]), self.missing_values)[0] is None:
            value = None
        try:
            return None if value is None else self.type.read(value, self, known)
        except ValueError:
            if isinstance(value, str) and self.dropped:  # as when it learned
                return None
            raise

    def _refuse_others(self, series: pl.Series, found: pl.Series) -> None:
        """Raise for the first value that is there and was not understood."""
        text = self.lost(series, found)
        if text.null_count() < len(text):
            row = int(text.is_not_null().arg_max() or 0)
            raise EmpiriskError(
                f"Column {self.name!r} holds {str(text[row])[:LETTERS]!r} in row {row + 1}, which is not "
                f"{self.type.expected} as in the table that was learned from; correct the value or leave it empty."
            )

    def lost(self, series: pl.Series, found: pl.Series) -> pl.Series:
        """The text of every value that is there and was not understood, null elsewhere."""
        text = cleaned(as_missing(series, self.missing_values), self.type.markers)
        return text.set(found.is_not_null(), None)


def as_missing(series: pl.Series, values: Sequence[str]) -> pl.Series:
    """A column in which some values stand for a missing one, which they become.

    >>> as_missing(pl.Series(["a", " ERR", "-999.0"]), ["ERR", "-999"]).to_list()
    ['a', None, None]
    >>> as_missing(pl.Series([3, -999]), ["ERR", "-999"]).to_list()
    [3, None]
    """
    if not values or series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object):
        return series
    words = [value.strip() for value in values]
    numbers = pl.Series(words, dtype=pl.String).cast(pl.Float64, strict=False).drop_nulls().to_list()
    if series.dtype.is_numeric():
        return series.set(series.cast(pl.Float64).is_in(numbers), None)
    text = (series.dt.date() if series.dtype == pl.Datetime else series).cast(pl.String).str.strip_chars()
    known = text.cast(pl.Float64, strict=False).is_in(numbers).fill_null(value=False)
    return series.set(text.is_in(words) | known, None)
