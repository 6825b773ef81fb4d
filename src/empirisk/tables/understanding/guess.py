"""Finding out what the columns of a table hold."""

import polars as pl

from empirisk.errors import EmpiriskError
from empirisk.tables.kinds import KINDS, USED
from empirisk.tables.kinds.base import MARKERS, SOFT_MARKERS, Sample
from empirisk.tables.kinds.category import holds_codes
from empirisk.tables.kinds.unused import numbers_rows
from empirisk.tables.kinds.worded import NUMBERS
from empirisk.tables.understanding.column import Column

SAMPLE = 1000  # values looked at before a whole column is tried
LEADING_ZERO = r"^0\d+$"


def guess_all(columns: list[pl.Series]) -> list[Column]:
    """What each column holds; columns of numbers are looked at many at a time.

    >>> import polars as pl
    >>> [column.kind for column in guess_all([pl.Series("a", [1.0, 2.0]), pl.Series("b", ["x", "y"])])]
    ['number', 'category']
    """
    plain = [series for series in columns if series.dtype.is_numeric()]
    found = _numbers(plain) if plain else {}
    return [found.get(series.name) or guess(series) for series in columns]


def _numbers(columns: list[pl.Series]) -> dict[str, Column]:
    """Columns of numbers, by name."""
    table, number = pl.DataFrame(columns), pl.all().cast(pl.Float64)
    number = pl.when(number.is_finite()).then(number)  # infinities are no values to learn from
    found, sought = {}, (number.null_count(), number.n_unique(), number.min(), number.max())
    for series, missing, kinds, low, high in zip(columns, *(table.select(one).row(0) for one in sought), strict=True):
        count, kinds = len(series) - missing, kinds - (missing > 0)  # a missing value is not one more
        kind, form = "number", ""
        if kinds == 0 or (kinds == 1 and missing == 0):
            kind = "constant"
        elif kinds == len(series) and series.dtype.is_integer() and numbers_rows(series):
            kind = "identifier"
        elif holds_codes(series, kinds, count):
            kind, low, high, form = "category", None, None, NUMBERS
        shown = tuple(dict.fromkeys(str(value) for value in series.head(20).to_list() if value is not None))[:3]
        found[series.name] = Column(series.name, kind, missing, kinds, shown, low, high, form)
    return found


def guess(series: pl.Series) -> Column:
    """What one column holds.

    >>> import polars as pl
    >>> guess(pl.Series("when", ["2020-01-01", "2020-02-01", "", "2021-01-01"])).kind
    'date'
    """
    if series.dtype.is_numeric():
        return _numbers([series])[series.name]
    typed = next((kind.name for kind in KINDS.values() if kind.claims(series.dtype)), None)
    if typed is not None:
        return _finish(series, Column(series.name, typed))
    text = series.cast(pl.String).str.strip_chars()
    return _finish(series, _from_text(series.name, text.set(text.is_in(MARKERS), None)))


def _from_text(name: str, text: pl.Series) -> Column:
    """The kind of a column of text: the first that recognises it."""
    present = text.drop_nulls()
    distinct = present.unique(maintain_order=True)
    strict = distinct.filter(~distinct.is_in(SOFT_MARKERS))
    few = strict.gather_every(max(len(strict) // SAMPLE, 1)).head(SAMPLE)
    if strict.str.contains(LEADING_ZERO).any():
        few = few.clear()
    sample = Sample(present, strict, few)
    found = ((kind.name, kind.recognise(sample)) for kind in KINDS.values())
    return next(Column(name, kind, form=form) for kind, form in found if form is not None)


def read_as(series: pl.Series, kind: str) -> Column:
    """The column as a kind that was asked for; a value that is no such thing is an error that names it.

    >>> import polars as pl
    >>> read_as(pl.Series("zip", [89073, 89075, 89073]), "category").kind
    'category'
    """
    if kind not in USED:
        raise EmpiriskError(f"types: {series.name!r} cannot be {kind!r}; choose one of {', '.join(USED)}.")
    for form in KINDS[kind].forms(series):
        try:
            return _finish(series, Column(series.name, kind, form=form))
        except EmpiriskError as error:
            reason = str(error).split(" as in the table")[0]
    raise EmpiriskError(f"types: {reason}; choose another kind for it.")


def _finish(series: pl.Series, column: Column) -> Column:
    """The column with its counts; one value only, or one value for each row, is not learned from."""
    if not column.used and not column.type.names_rows:
        return Column(column.name, column.kind, len(series), 0)
    values = column.convert(series)
    if values.dtype == pl.Float64:
        values = values.set(~values.is_finite() & values.is_not_null(), None)  # no values to learn from
    missing, present = values.null_count(), values.drop_nulls()
    distinct = present.n_unique()
    examples = _examples(series, present)
    if distinct == 0 or (distinct == 1 and missing == 0):
        return Column(column.name, "constant", missing, distinct, examples, form=column.form)
    form = column.type.final_form(series, present, column.form)
    return Column(column.name, column.kind, missing, distinct, examples, *column.type.range(present), form)


def column_words(series: pl.Series) -> pl.Series:
    """The values as words, missing ones null."""
    return Column(series.name, "category").convert(series)


def _examples(series: pl.Series, present: pl.Series) -> tuple[str, ...]:
    if len(present) == 0:
        return ()
    # Enough values to show a few different ones, and enough letters to know them by.
    shown = dict.fromkeys(str(value)[:40] for value in series.drop_nulls().head(200).to_list())
    return tuple(value for value in shown if value.strip())[:3]
