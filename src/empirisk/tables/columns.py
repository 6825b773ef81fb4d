"""What a column holds: its kind, and how its values become numbers, words or moments."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from empirisk import state
from empirisk.errors import LETTERS, EmpiriskError

#: Text that stands for "missing" wherever it is met.
MARKERS = ("", "NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "Null", "?", "#N/A")
#: Text that stands for "missing" among numbers, dates and truth values only; among words it may be a word.
SOFT_MARKERS = ("-", "--", ".", "none", "None", "NONE", "missing", "unknown", "*")
DAYS = ("%d.%m.", "%m/%d/", "%d/%m/", "%m-%d-", "%d-%m-", "%d-%b-", "%d %B ", "%B %d, ")
TIMES = ("", " %H:%M", " %H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p")
DATE_FORMATS = (
    *(f"%Y-%m-%dT%H:%M{rest}" for rest in ("", ":%S%.f", ":%S%.fZ", ":%S%.f%:z")),
    "%Y-%m-%d %H:%M:%S%.f%:z",
    *(day + time for time in TIMES for day in ("%Y-%m-%d", "%Y/%m/%d")),
    *(day + year + time for time in TIMES for day in DAYS for year in ("%Y", "%y")),
)
EARLIEST = 1000  # the first year of four digits
#: What stands for thousands, millions and thousands of millions.
SHORT = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
#: Times and durations: 13:05, 1:05 PM, 2 days 03:04:05; 1h 30m, PT1H30M.
LASTING = {
    "clock": (
        r"(?i)^(?:(?P<days>\d+) days?,? )?(?P<hours>\d{1,3}):(?P<minutes>[0-5]\d)"
        r"(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?(?:\s?[ap]\.?m\.?)?$"
    ),
    "duration": (
        r"(?i)^P?(?:(?P<days>\d+)\s?d(?:ays?)?)?\s?T?(?:(?P<hours>\d+)\s?h(?:ours?|rs?)?)?"
        r"\s?(?:(?P<minutes>\d+)\s?m(?:ins?|inutes?)?)?\s?(?:(?P<seconds>\d+(?:\.\d+)?)\s?s(?:ecs?|econds?)?)?$"
    ),
}
SECONDS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
HALF = SECONDS["days"] / 2  # of a day: times before and after noon
FEW = 64  # values that are handled one by one
TRUE, FALSE = ("true", "yes", "y", "t", "1", "1.0"), ("false", "no", "n", "f", "0", "0.0")
UNUSED = {
    "identifier": "it names rows",
    "constant": "it has one value",
    "nested": "its values are no single values",
}
CANONICAL: dict[str, pl.DataType] = {
    "number": pl.Float64(),
    "boolean": pl.Float64(),
    "date": pl.Datetime("us"),
    "category": pl.String(),
    "text": pl.String(),
}
#: What a value of these kinds is called where one is not understood.
READ_AS = {"number": "a number", "boolean": "true or false", "date": "a date"}


def written(value: float) -> str:
    """A number as people write it.

    >>> written(1455440.0), written(0.25), written(1e20)
    ('1,455,440', '0.25', '1e+20')
    """
    whole = value == round(value) if abs(value) < 1e6 else True
    return f"{value:,.0f}" if whole and 1e4 <= abs(value) < 1e15 else f"{value:.6g}"


def number(value: float, digits: int = 3) -> str:
    """A number as people write it, rounded to some digits.

    >>> number(48_592.3), number(0.0312345), number(1.5e12)
    ('48,600', '0.0312', '1.5e+12')
    """
    if not math.isfinite(value):
        return "-"
    short = f"{value:.{digits}g}"
    return f"{float(short):,.0f}" if 1e3 <= abs(value) < 1e9 else short


def counted(series: pl.Series) -> pl.DataFrame:
    """The values of a column and the rows that have each, the most frequent first; a column may have any name.

    >>> import polars as pl
    >>> counted(pl.Series("rows", ["b", "a", "b", None])).rows()
    [('b', 2), ('a', 1)]
    """
    counts = series.drop_nulls().alias("value").value_counts(name="rows")
    return counts.sort(["rows", "value"], descending=[True, False])


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, what it holds, and how it was written.

    Attributes
    ----------
    name : str
        The name in the header.
    kind : str
        "number", "boolean", "category", "date" or "text"; "identifier", "constant" and "nested" are not learned from.
    missing, distinct : int
        Missing and distinct values met when the schema was made.
    examples : tuple of str
        A few values.
    low, high : float or None
        Range of numbers, or of moments in microseconds since 1970.
    form : str
        How numbers or dates are written: see `parse_numbers` for numbers, a format of `strptime` for dates. For
        categories, how a number stands for a word, see `code_form`.

    Examples
    --------
    >>> column = er.tables.Column("age", "number", low=18.0, high=90.0)
    >>> column.used, str(column)
    (True, 'age: number from 18 to 90')
    """

    _state = state.State(name=state.text(), kind=state.text(*CANONICAL, *UNUSED), form=state.text())

    name: str
    kind: str
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    form: str = ""

    @property
    def used(self) -> bool:
        """Whether machines learn from the column."""
        return self.kind in CANONICAL

    def __str__(self) -> str:
        text = f"{self.name}: {self.kind}"
        if not self.used:
            empty = self.kind == "constant" and self.distinct == 0
            text += f", not used: {'it is empty' if empty else UNUSED[self.kind]}"
        elif self.low is not None and self.high is not None:
            text += f" from {self.written(self.low)} to {self.written(self.high)}"
        elif self.kind in ("category", "text"):
            text += f", {self.distinct} different"
        return text + (f", {self.missing} missing" if self.missing else "")

    def written(self, value: float) -> str:
        """A number of the column as people write it; a moment as its day, a time as hours and minutes."""
        if self.kind == "date":
            return str(datetime(1970, 1, 1) + timedelta(microseconds=value))[:10]  # the day
        if self.form in LASTING:
            minutes, seconds = divmod(round(value), 60)
            return f"{minutes // 60}:{minutes % 60:02d}" + (f":{seconds:02d}" if seconds else "")
        return written(value)

    def convert(self, series: pl.Series) -> pl.Series:
        """The values in the form that machines learn from; a value of another kind is an error that names it."""
        found = self.parse(series)
        if self.kind in READ_AS and found.null_count() > series.null_count():
            self._refuse_others(series, found)
        return found

    def parse(self, series: pl.Series) -> pl.Series:
        """The values in the form that machines learn from, null where one is missing or of another kind."""
        if series.dtype == CANONICAL[self.kind] and series.dtype != pl.String:
            return series  # words are cleaned each time: they may be raw
        readers = {"number": self._number, "boolean": self._boolean, "date": self._date}
        return readers.get(self.kind, self._words)(series)

    def _refuse_others(self, series: pl.Series, found: pl.Series) -> None:
        """Raise for the first value that is there and was not understood."""
        text = self._text(series, MARKERS + SOFT_MARKERS)
        lost = text.is_not_null() & found.is_null()
        if lost.any():
            row = int(lost.arg_max() or 0)
            raise EmpiriskError(
                f"Column {self.name!r} holds {str(text[row])[:LETTERS]!r} in row {row + 1}, which is not "
                f"{READ_AS[self.kind]} as in the table that was learned from; correct the value or leave it empty."
            )

    def _number(self, series: pl.Series) -> pl.Series:
        if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
            return series.cast(pl.Float64, strict=False)
        if series.dtype == pl.Duration:
            return series.dt.total_microseconds().cast(pl.Float64) / 1e6
        if series.dtype == pl.Time:
            return series.cast(pl.Int64).cast(pl.Float64) / 1e9
        return parse_numbers(self._text(series, MARKERS + SOFT_MARKERS), self.form)

    def _boolean(self, series: pl.Series) -> pl.Series:
        if series.dtype == pl.Boolean:
            return series.cast(pl.Float64)
        return parse_truth(self._text(series, MARKERS + SOFT_MARKERS))

    def _date(self, series: pl.Series) -> pl.Series:
        if series.dtype in (pl.Date, pl.Datetime):
            plain = series.dt.replace_time_zone(None) if getattr(series.dtype, "time_zone", None) else series
            return plain.cast(pl.Datetime("us"))
        return self._moments(self._text(series, MARKERS + SOFT_MARKERS))

    def _moments(self, text: pl.Series) -> pl.Series:
        """Text as moments, in the form of the column or in another one."""
        moments = parse_dates(text, self.form)
        for form in DATE_FORMATS:
            if moments.null_count() == text.null_count():
                break
            known = moments.is_not_null()
            moments = moments.zip_with(known, parse_dates(text.set(known, None), form))
        return moments

    def _words(self, series: pl.Series) -> pl.Series:
        if not series.dtype.is_numeric():
            text = self._text(series, MARKERS)
            return _shortest_words(text) if self.form == NUMBERS else text
        if self.form == AS_WRITTEN:
            raise EmpiriskError(
                f"Column {self.name!r} holds numbers, but words in the table that was learned from, of which two are "
                "the same number; read it as text, as er.tables.read does."
            )
        words = shortest(series)
        return words.str.zfill(int(self.form)) if self.form.isdecimal() else words

    def _text(self, series: pl.Series, markers: tuple[str, ...]) -> pl.Series:
        if series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object):
            raise EmpiriskError(f"Column {self.name!r} holds lists or other nested values; give single values.")
        text = series.cast(pl.String)
        if len(text) <= FEW:  # one row to be predicted soon: a query costs more than a loop
            words = [None if word is None else word.strip() for word in text.to_list()]
            return pl.Series(series.name, [None if word in markers else word for word in words], dtype=pl.String)
        text = text.str.strip_chars()
        return text.set(text.is_in(list(markers)), None)


#: Ways in which a number stands for a word, beside the number of digits of a code.
NUMBERS, AS_WRITTEN = "numbers", "as written"
EXACT_DIGITS = 15  # a float holds all whole numbers of so many digits


def code_form(words: pl.Series) -> str:
    """How numbers stand for the words of a category, should they arrive instead.

    The number of digits, for codes of one length: 1234 is "01234". "numbers", where each word is another number: 1 is
    "1.0" too. "as written", where numbers do not tell words apart. Empty, where no word is a number, or each is its
    number's shortest writing.

    >>> import polars as pl
    >>> code_form(pl.Series(["01234", "56789"])), code_form(pl.Series(["7", "007"])), code_form(pl.Series(["a", "3"]))
    ('5', 'as written', '')
    """
    distinct = words.unique()
    numbers = parse_numbers(distinct)
    are = numbers.is_finite().fill_null(value=False)
    distinct, numbers = distinct.filter(are), numbers.filter(are)
    if len(distinct) == 0 or bool((shortest(numbers) == distinct).all()):
        return ""
    lengths = distinct.str.len_chars()
    if lengths.n_unique() == 1 and bool(distinct.str.contains(r"^\d+$").all()):
        return str(lengths[0])
    return NUMBERS if bool((lengths <= EXACT_DIGITS).all()) and numbers.n_unique() == len(numbers) else AS_WRITTEN


def shortest(numbers: pl.Series) -> pl.Series:
    """Numbers as words: a code such as 3 that came back as 3.0, because another row misses it, is still "3".

    >>> import polars as pl
    >>> shortest(pl.Series([3.0, 2.5, None])).to_list()
    ['3', '2.5', None]
    """
    if numbers.dtype.is_integer():
        return numbers.cast(pl.String)
    numbers = numbers.cast(pl.Float64).fill_nan(None)
    whole = (numbers == numbers.round()) & (numbers.abs() < 10.0**EXACT_DIGITS)
    return numbers.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole, numbers.cast(pl.String))


def _shortest_words(text: pl.Series) -> pl.Series:
    """Words, of which those that are numbers are written in the shortest way."""
    numbers = parse_numbers(text)
    return shortest(numbers).zip_with(numbers.is_finite().fill_null(value=False), text)


def parse_numbers(text: pl.Series, form: str = "") -> pl.Series:
    """Text as numbers, null where it is none.

    ``form`` is "comma" (1,5), "thousands" (1,234.5, $3, 20%), "brackets" (the same, and (3) for -3), "short" (25.1k,
    3M), "clock" (1:30 or 1:30:05 PM, in seconds), "duration" (1h 30m, in seconds), or "unit kg" (47 kg, with or without
    the unit).

    >>> parse_numbers(pl.Series(["(1,200)", "7"]), "brackets").to_list()
    [-1200.0, 7.0]
    >>> parse_numbers(pl.Series(["25.1k", "300"]), "short").to_list()
    [25100.0, 300.0]
    >>> parse_numbers(pl.Series(["1:30", "0:00:05"]), "clock").to_list()
    [5400.0, 5.0]
    >>> import polars as pl
    >>> parse_numbers(pl.Series(["1,5", "x"]), "comma").to_list()
    [1.5, None]
    """
    if form == "comma":
        text = text.str.replace_all(r"[.$€£%\s]", "").str.replace(",", ".", literal=True)
    elif form == "thousands":
        text = text.str.replace_all(r"[,$€£%\s]", "")
    elif form == "brackets":
        text = text.str.replace_all(r"[,$€£%\s)]", "").str.replace("(", "-", literal=True)
    elif form == "short":
        size = text.str.extract(r"([kKMB])$").replace_strict(SHORT, default=1.0, return_dtype=pl.Float64)
        return parse_numbers(text.str.replace(r"\s?[kKMB]$", ""), "thousands") * size
    elif form in LASTING:
        parts = text.str.extract_groups(LASTING[form]).struct.unnest().cast(pl.Float64, strict=False)
        some = pl.any_horizontal(pl.all().is_not_null())
        total = pl.sum_horizontal(pl.col(part) * length for part, length in SECONDS.items())
        half = text.str.extract(r"(?i)([ap])\.?m\.?$").str.to_lowercase()
        clock = parts.select(pl.when(some).then(total))[:, 0].alias(text.name)
        return (clock % HALF + HALF * (half == "p")).zip_with(half.is_not_null(), clock)
    elif form.startswith("unit "):
        text = text.str.strip_suffix(form.removeprefix("unit ")).str.replace_all(r"[,\s]", "")
    return text.cast(pl.Float64, strict=False)


def parse_truth(text: pl.Series) -> pl.Series:
    """Text as 1 and 0, null where it is neither true nor false.

    >>> import polars as pl
    >>> parse_truth(pl.Series(["Yes", "no", "perhaps"])).to_list()
    [1.0, 0.0, None]
    """
    lower = text.str.to_lowercase()
    truth = lower.is_in(TRUE).cast(pl.Float64)
    return truth.set(~(lower.is_in(TRUE) | lower.is_in(FALSE)) | lower.is_null(), None)


def parse_dates(text: pl.Series, form: str) -> pl.Series:
    """Text as moments in a format of `strptime`, null where it does not fit.

    >>> import polars as pl
    >>> parse_dates(pl.Series(["31.12.2020"]), "%d.%m.%Y").to_list()
    [datetime.datetime(2020, 12, 31, 0, 0)]
    """
    if not form:
        return pl.Series(text.name, [None] * len(text), dtype=pl.Datetime("us"))
    if form.endswith("%:z"):  # moments of several zones are compared in one
        return text.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC").dt.replace_time_zone(None)
    if "%y" in form:
        text = text.set(~text.str.contains(r"\D\d\d(\s|$)"), None)  # the 3 of 1.2.3 is no year
    if "%M" in form:
        moments = text.str.to_datetime(form, strict=False, time_unit="us", time_zone=None, exact=True)
    else:
        moments = text.str.to_date(form, strict=False, exact=True).cast(pl.Datetime("us"))
    return moments.set(moments.dt.year() < EARLIEST, None)
