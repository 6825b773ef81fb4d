"""Finding out what the columns of a table hold."""

import re

import polars as pl

from empirisk.errors import EmpiriskError
from empirisk.tables.columns import (
    CANONICAL,
    DATE_FORMATS,
    LASTING,
    MARKERS,
    NUMBERS,
    SOFT_MARKERS,
    Column,
    code_form,
    parse_dates,
    parse_numbers,
    parse_truth,
)

TYPED = {pl.Boolean: "boolean", pl.Duration: "number", pl.Time: "number", pl.Date: "date", pl.Datetime: "date"}
SAMPLE = 1000  # values looked at before a whole column is tried
FEW = 20  # rows below which nothing is called an identifier
WORDS_IN_TEXT = 3.0  # on average: names have one or two
ID_NAME = re.compile(
    r"(?i:(^|[_\s.-])(id|ids|key|uuid|guid|index|idx|rownames?|row|nr|no|serial)$|^unnamed)|[a-z]I[dD]$"
)
#: Whole numbers of such a name are codes, where they repeat.
CODE_NAME = re.compile(
    r"(?i:(^|[_\s.-])(ids?|key|zip|zipcode|post(al)?code|plz|code|cd|type|category|class|cluster|store|shop)$)"
    r"|[a-z](I[dD]|Code|Type|Class)$"
)
AMOUNT = r"[$€£]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?"
#: What numbers look like, by the form in which they are written; those of the first are told by their value alone.
PATTERNS = {
    "": "",
    "thousands": r"^[$€£]?\s?[+-]?[$€£]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?\s?[%€$£]?$",
    "comma": r"^[€$£]?\s?[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?\s?[%€$£]?$",
    "brackets": rf"^{AMOUNT}$|^\({AMOUNT}\)$",
    "short": rf"^[+-]?{AMOUNT}\s?[kKMB]?$",
    "clock": LASTING["clock"],
}
#: A number and its unit.
UNIT = r"^[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?\s?([A-Za-zµ°²³/]{1,8})$"
REPEATED = 2  # rows for each of the codes, at the least
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
        elif kinds == len(series) and series.dtype.is_integer() and _names_rows(series):
            kind = "identifier"
        elif 2 < kinds <= count / REPEATED and series.dtype.is_integer() and CODE_NAME.search(series.name):
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
    name, dtype = series.name, series.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        return Column(name, "nested")
    if dtype.is_numeric():
        return _numbers([series])[name]
    if dtype.base_type() in TYPED:
        return _finish(series, Column(name, TYPED[dtype.base_type()]))
    text = series.cast(pl.String).str.strip_chars()
    return _finish(series, _from_text(name, text.set(text.is_in(MARKERS), None)))


def _from_text(name: str, text: pl.Series) -> Column:
    """The kind of a column of text: numbers, truth, dates, else words."""
    present = text.drop_nulls()
    if len(present) == 0:
        return Column(name, "constant")
    distinct = present.unique(maintain_order=True)
    strict = distinct.filter(~distinct.is_in(SOFT_MARKERS))
    # The first values and some from all over the column: a quick no for most columns of words.
    few = strict.gather_every(max(len(strict) // SAMPLE, 1)).head(SAMPLE)
    if len(few):
        if strict.str.contains(LEADING_ZERO).any():  # codes: as numbers, 007 and 7 would be the same
            return Column(name, _words(present))
        for form in forms_of(few):
            if written_as(few, form).all() and parse_numbers(strict, form).null_count() == 0:
                return Column(name, "number", form=form)
        if few.n_unique() <= 8 and _fits(few, strict, parse_truth):
            return Column(name, "boolean")
        if few.head(50).str.contains(r"\d.*[-/. ].*\d").all():  # as in a date: most columns of words end here
            for form in DATE_FORMATS:
                if _fits(few, strict, lambda part, form=form: parse_dates(part, form)):
                    return Column(name, "date", form=form)
    return Column(name, _words(present))


def read_as(series: pl.Series, kind: str) -> Column:
    """The column as a kind that was asked for; a value that is no such thing is an error that names it.

    >>> import polars as pl
    >>> read_as(pl.Series("zip", [89073, 89075, 89073]), "category").kind
    'category'
    """
    if kind not in CANONICAL:
        raise EmpiriskError(f"types: {series.name!r} cannot be {kind!r}; choose one of {', '.join(CANONICAL)}.")
    forms = {"number": ("",), "date": DATE_FORMATS}.get(kind, ("",))
    if kind == "number" and series.dtype == pl.String:
        few = series.drop_nulls().str.strip_chars().head(SAMPLE)
        few = few.filter(~few.is_in(MARKERS + SOFT_MARKERS))
        forms = [form for form in forms_of(few) if written_as(few, form).all()] or [""]
    for form in forms:
        try:
            return _finish(series, Column(series.name, kind, form=form))
        except EmpiriskError as error:
            reason = str(error).split(" as in the table")[0]
    raise EmpiriskError(f"types: {reason}; choose another kind for it.")


def forms_of(few: pl.Series) -> list[str]:
    """Ways in which the numbers of a column may be written; 90 min are minutes before they are a duration."""
    units = few.str.extract(UNIT).drop_nulls().unique()
    return [*PATTERNS, *(f"unit {unit}" for unit in units if len(units) == 1), "duration"]


def _fits(few: pl.Series, whole: pl.Series, parse) -> bool:
    return parse(few).null_count() == 0 and parse(whole).null_count() == 0


def written_as(text: pl.Series, form: str) -> pl.Series:
    """Which words are numbers of a form, with commas and signs where it has them."""
    return text.str.contains((PATTERNS | LASTING).get(form, UNIT)) & parse_numbers(text, form).is_not_null()


def _words(present: pl.Series) -> str:
    """Category, text or identifier."""
    distinct, count = present.n_unique(), len(present)
    # Texts are seldom equal; of numbers for rows a tenth may be there twice by mistake.
    if distinct > max(0.2 * count, FEW):
        words = float(present.str.count_matches(r"\S+").mean())  # type: ignore[arg-type]
        if words >= WORDS_IN_TEXT:
            return "text"
    if (count >= FEW and distinct == count) or (count >= 5 * FEW and distinct > 0.9 * count):
        return "identifier"
    return "category"


def _finish(series: pl.Series, column: Column) -> Column:
    """The column with its counts; one value only, or one value for each row, is not learned from."""
    if not column.used and column.kind != "identifier":
        return Column(column.name, column.kind, len(series), 0)
    values = column_words(series) if column.kind == "identifier" else column.convert(series)
    if values.dtype == pl.Float64:
        values = values.set(~values.is_finite() & values.is_not_null(), None)  # no values to learn from
    missing, present = values.null_count(), values.drop_nulls()
    distinct = present.n_unique()
    kind = column.kind
    if distinct == 0 or (distinct == 1 and missing == 0):
        kind = "constant"
    low = high = None
    form = column.form
    if kind == "category":
        form = NUMBERS if series.dtype.is_numeric() else code_form(present)
    if kind in ("number", "date"):
        numbers = present.cast(pl.Int64) if kind == "date" else present
        low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    return Column(column.name, kind, missing, distinct, _examples(series, present), low, high, form)


def column_words(series: pl.Series) -> pl.Series:
    """The values as words, missing ones null."""
    return Column(series.name, "category").convert(series)


def _names_rows(series: pl.Series) -> bool:
    """Whether whole numbers that are all different only number the rows: they count them, or are named like that."""
    named = ID_NAME.search(series.name) is not None
    return len(series) >= FEW and (named or (series[0] in (0, 1) and bool((series.diff().drop_nulls() == 1).all())))


def _examples(series: pl.Series, present: pl.Series) -> tuple[str, ...]:
    if len(present) == 0:
        return ()
    # Enough values to show a few different ones, and enough letters to know them by.
    shown = dict.fromkeys(str(value)[:40] for value in series.drop_nulls().head(200).to_list())
    return tuple(value for value in shown if value.strip())[:3]
