"""A column of a table: its name, what it holds, and how its values are written."""

from dataclasses import dataclass

import polars as pl

from empirisk import state
from empirisk.errors import LETTERS, EmpiriskError
from empirisk.tables.kinds import KINDS, Kind
from empirisk.tables.kinds.base import cleaned


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, what it holds, and how it was written.

    Attributes
    ----------
    name : str
        The name in the header.
    kind : str
        "number", "boolean", "category", "several" (several words in a cell), "date" or "text"; "identifier",
        "constant" and "nested" are not learned from.
    missing, distinct : int
        Missing and distinct values met when the schema was made.
    examples : tuple of str
        A few values.
    low, high : float or None
        Range of numbers, or of moments in microseconds since 1970.
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
        return text + (f", {self.missing} missing" if self.missing else "")

    def written(self, value: float) -> str:
        """A value of the column as people write it; a moment as its day, a time as hours and minutes."""
        return self.type.written(value, self.form)

    def parse(self, series: pl.Series) -> pl.Series:
        """The values in the form that machines learn from, null where one is missing or of another kind."""
        if series.dtype == self.type.dtype and series.dtype != pl.String:
            return series  # words are cleaned each time: they may be raw
        return self.type.parse(series.alias(self.name), self.form)

    def convert(self, series: pl.Series) -> pl.Series:
        """The values in the form that machines learn from; a value of another kind is an error that names it."""
        found = self.parse(series)
        if self.type.expected and found.null_count() > series.null_count():
            self._refuse_others(series, found)
        return found

    def _refuse_others(self, series: pl.Series, found: pl.Series) -> None:
        """Raise for the first value that is there and was not understood."""
        text = cleaned(series, self.type.markers)
        lost = text.is_not_null() & found.is_null()
        if lost.any():
            row = int(lost.arg_max() or 0)
            raise EmpiriskError(
                f"Column {self.name!r} holds {str(text[row])[:LETTERS]!r} in row {row + 1}, which is not "
                f"{self.type.expected} as in the table that was learned from; correct the value or leave it empty."
            )
