"""Finding out what the columns of a table hold."""

from dataclasses import replace

import polars as pl

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.tables.kinds import KINDS, USED
from empirisk.tables.kinds.base import MARKERS, SOFT_MARKERS, Sample, counted, spread_out
from empirisk.tables.kinds.category import holds_codes
from empirisk.tables.kinds.unused import numbers_rows
from empirisk.tables.kinds.worded import NUMBERS
from empirisk.tables.understanding.column import Column, as_missing

SAMPLE = 1000  # values looked at before a whole column is tried
LEADING_ZERO = r"^0\d+$"
DROPPED_SHOWN = 2  # texts that could not be read and are told


def guess_all(columns: list[pl.Series], missing: tuple[str, ...] = ()) -> list[Column]:
    """What each column holds, some values standing for missing ones; numbers are looked at many columns at a time.

    >>> import polars as pl
    >>> [column.kind for column in guess_all([pl.Series("a", [1.0, 2.0]), pl.Series("b", ["x", "y"])])]
    ['number', 'category']
    """
    plain = [as_missing(series, missing) for series in columns if series.dtype.is_numeric()]
    found = _numbers(plain, missing) if plain else {}
    return [found.get(series.name) or guess(series, missing) for series in columns]


def _numbers(columns: list[pl.Series], gone: tuple[str, ...]) -> dict[str, Column]:
    """Columns of numbers, by name."""
    table, number = pl.DataFrame(columns), pl.all().cast(pl.Float64)
    number = pl.when(number.is_finite()).then(number)  # infinities are no values to learn from
    found, sought = {}, (number.null_count(), number.n_unique(), number.min(), number.max())
    for series, missing, kinds, low, high in zip(columns, *(table.select(one).row(0) for one in sought), strict=True):
        count, kinds = len(series) - missing, kinds - (missing > 0)  # a missing value is not one more
        kind, form = "number", ""
        if kinds == 0 or (kinds == 1 and missing == 0):
            kind = "constant"
        elif missing == 0 and series.dtype.is_integer() and numbers_rows(series, kinds):
            kind = "identifier"
        elif holds_codes(series, kinds, count):
            kind, low, high, form = "category", None, None, NUMBERS
        shown = tuple(dict.fromkeys(str(value) for value in series.head(20).to_list() if value is not None))[:3]
        found[series.name] = Column(series.name, kind, missing, kinds, shown, low, high, form, missing_values=gone)
    return found


def guess(series: pl.Series, missing: tuple[str, ...] = ()) -> Column:
    """What one column holds, some values standing for missing ones.

    >>> import polars as pl
    >>> guess(pl.Series("when", ["2020-01-01", "2020-02-01", "", "2021-01-01"])).kind
    'date'
    """
    series = as_missing(series, missing)
    if series.dtype.is_numeric():
        return _numbers([series], missing)[series.name]
    typed = next((kind.name for kind in KINDS.values() if kind.claims(series.dtype)), None)
    if typed is not None:
        return _finish(series, Column(series.name, typed, missing_values=missing))
    text = series.cast(pl.String).str.strip_chars()
    column = _from_text(series.name, text.set(text.is_in(MARKERS), None))
    return _finish(series, replace(column, missing_values=missing))


def _from_text(name: str, text: pl.Series) -> Column:
    """The kind of a column of text: the first that recognises it."""
    present = text.drop_nulls()
    distinct = present.unique(maintain_order=True)
    strict = distinct.filter(~distinct.is_in(SOFT_MARKERS))
    few = strict.gather_every(max(len(strict) // SAMPLE, 1)).head(SAMPLE)
    if strict.str.contains(LEADING_ZERO).any():
        few = few.clear()
    sample = Sample(present, strict, few)
    sure = ((kind, kind.recognise(sample)) for kind in KINDS.values())
    kind, form = next((kind, form) for kind, form in sure if form is not None)
    if kind.any_text:  # a few cells of junk make words of numbers
        most = ((other, other.recognise_most(sample)) for other in KINDS.values())
        kind, form = next(((other, its) for other, its in most if its is not None), (kind, form))
    return Column(name, kind.name, form=form)


def read_as(series: pl.Series, kind: str, missing: tuple[str, ...] = ()) -> Column:
    """The column as a kind that was asked for; values that are no such thing are missing, unless all are.

    >>> import polars as pl
    >>> read_as(pl.Series("zip", [89073, 89075, 89073]), "category").kind
    'category'
    >>> read_as(pl.Series("x", ["1.5", "n.b.", "2"]), "number").dropped_examples
    ('n.b.',)
    """
    if kind not in USED:
        raise EmpiriskError(f"types: {series.name!r} cannot be {kind!r}; choose one of {', '.join(USED)}.")
    series = as_missing(series, missing)
    columns = [Column(series.name, kind, form=form, missing_values=missing) for form in KINDS[kind].forms(series)]
    some = spread_out(series.drop_nulls(), SAMPLE)
    for cells in (some, series):  # most ways of writing are ruled out by a few cells
        gaps = [column.parse(cells).null_count() for column in columns] if len(columns) > 1 else [0]
        columns = [column for column, gap in zip(columns, gaps, strict=True) if gap == min(gaps)]
    column, values = columns[0], columns[0].parse(series)
    if values.null_count() < len(values):
        return _finish(series, column)
    try:
        column.convert(series)
    except EmpiriskError as error:
        reason = str(error).split(" as in the table")[0]
        raise EmpiriskError(f"types: {reason}; choose another kind for it.") from error
    return _finish(series, column)


def _finish(series: pl.Series, column: Column) -> Column:
    """The column with its counts; one value only, or one value for each row, is not learned from."""
    if not column.used and not column.type.names_rows:
        return replace(column, missing=series.null_count())
    values = column.parse(series)
    if column.type.expected and values.null_count() > series.null_count():
        column = _with_dropped(column, column.lost(series, values).drop_nulls())
    if values.dtype == pl.Float64:
        values = values.set(~values.is_finite() & values.is_not_null(), None)  # no values to learn from
    missing, present = values.null_count(), values.drop_nulls()
    distinct = present.n_unique()
    examples = _examples(series, present)
    if distinct == 0 or (distinct == 1 and missing == 0):
        return replace(column, kind="constant", missing=missing, distinct=distinct, examples=examples)
    form = column.type.final_form(series, present, column.form)
    low, high = column.type.range(present)
    return replace(column, missing=missing, distinct=distinct, examples=examples, low=low, high=high, form=form)


def _with_dropped(column: Column, lost: pl.Series) -> Column:
    """The column with what could not be read, the most frequent texts first."""
    shown = tuple(text[:LETTERS] for text in counted(lost)["value"].head(DROPPED_SHOWN).to_list())
    return replace(column, dropped=len(lost), dropped_examples=shown)


def column_words(series: pl.Series) -> pl.Series:
    """The values as words, missing ones null."""
    return Column(series.name, "category").convert(series)


def _examples(series: pl.Series, present: pl.Series) -> tuple[str, ...]:
    if len(present) == 0:
        return ()
    # Enough values to show a few different ones, and enough letters to know them by.
    shown = dict.fromkeys(str(value)[:40] for value in series.drop_nulls().head(200).to_list())
    return tuple(value for value in shown if value.strip())[:3]
