"""Numbers, as people write them: with commas, signs of money, units, as times and durations."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.formats import number, written
from empirisk.tables.kinds.base import (
    JUNK_SHARE,
    LOOKED_AT,
    Forms,
    Sample,
    by_form,
    cleaned,
    mostly,
    shown,
    spread_out,
)
from empirisk.tables.kinds.names import CODE_NAME, ID_NAME
from empirisk.tables.kinds.ordered import Ordered

if TYPE_CHECKING:
    from empirisk.tables.understanding.column import Column

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
SAMPLE = 1000  # values looked at to find the form of numbers
#: Digits of a number of a row that exists, and whole numbers below which many rows share one: years, ages, counts.
ROUNDED, SHARED = 3, 10_000
DIGITS = 2  # of an example in the middle of a range: enough to see the size, too few to be anybody's value


class Number(Ordered):
    """Quantities."""

    name = "number"
    dtype = pl.Float64()
    dtypes = (pl.Duration, pl.Time)
    expected = "a number"
    task = "regression"
    drawn = "numbers"
    parts = ("",)
    json = ("number", "string", "null")
    graph_type = "double"

    def recognise(self, sample: Sample) -> str | None:
        if not len(sample.few):
            return None
        fits = (
            form
            for form in forms_of(sample.few)
            if written_as(sample.few, form).all() and parse_numbers(sample.strict, form).null_count() == 0
        )
        return next(fits, None)

    def recognise_most(self, sample: Sample) -> str | None:
        name = sample.present.name
        if not len(sample.few) or ID_NAME.search(name) or CODE_NAME.search(name):
            return None
        cells = sample.present.filter(~sample.present.is_in(self.markers))
        some = spread_out(cells, LOOKED_AT)
        form = max(forms_of(some), key=lambda form: int(written_as(some, form).sum()))
        if (~written_as(some, form)).sum() > 2 * JUNK_SHARE * len(some):  # most columns end here
            return None
        return form if mostly(cells, written_as(cells, form)) else None

    def forms(self, series: pl.Series) -> list[str]:
        if series.dtype != pl.String:
            return [""]
        few = series.drop_nulls().str.strip_chars().head(SAMPLE)
        few = few.filter(~few.is_in(self.markers))
        fits = {form: int(written_as(few, form).sum()) for form in forms_of(few)}
        return [form for form, most in fits.items() if most == max(fits.values()) > 0] or [""]

    def parse(self, series: pl.Series, form: str) -> pl.Series:
        if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
            return series.cast(pl.Float64, strict=False)
        if series.dtype == pl.Duration:
            return series.dt.total_microseconds().cast(pl.Float64) / 1e6
        if series.dtype == pl.Time:
            return series.cast(pl.Int64).cast(pl.Float64) / 1e9
        return parse_numbers(cleaned(series, self.markers), form)

    def written(self, value: float, form: str) -> str:
        """A number as people write it, a time as hours and minutes."""
        if form not in LASTING:
            return written(value)
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes // 60}:{minutes % 60:02d}" + (f":{seconds:02d}" if seconds else "")

    def remark(self, column: "Column") -> str:
        unit = column.form.removeprefix("unit ")
        return f"Numbers of {column.name!r} were read in {unit}." if unit != column.form else ""

    def numbers(self, columns: list[pl.Series]) -> NDArray[np.float64]:
        return pl.DataFrame(columns).to_numpy()

    def graph_numbers(self, x: Any, column: "Column", words: Any) -> Any:
        return x

    def graph_trials(self, column: "Column", levels: list[str]) -> list[Any]:
        low, high = (0.0, 1.0) if column.low is None or column.high is None else (column.low, column.high)
        return [*np.linspace(low, high, 7).tolist(), low - 1.0, 2 * high, 1e9, -1e300]

    def groups(self, series: pl.Series, most: int) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        for k, (low, high, rows) in enumerate(self.quarters(series)):
            yield f"{'over ' if k else ''}{number(low, 4)} to {number(high, 4)}", rows

    def example(self, column: "Column", words: list[str]) -> Any:
        if column.low is None or column.high is None:
            return None
        middle = column.low / 2 + column.high / 2
        lasts = column.form in LASTING
        return column.written(middle // 60 * 60) if lasts else float(f"{middle:.{DIGITS}g}")

    def as_json(self, value: Any) -> Any:
        if value is None or not np.isfinite(value):
            return None  # as what learns from it takes it
        if value == round(value) and abs(value) < SHARED:
            return value
        return float(f"{value:.{ROUNDED}g}")

    def texts_of(self, given: list[Any], form: str) -> set[Any]:
        return {value.strip() for value in given if isinstance(value, str)} if form else set()

    def read(self, value: Any, column: "Column", known: Forms) -> float:
        if isinstance(value, str):
            try:
                value = by_form(value, column, known) if column.form else float(value)
            except ValueError:
                how = "a time; write it like '1:30'" if column.form in LASTING else self.expected
                raise ValueError(f"{shown(value)} is not {how}") from None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{shown(value)} is not {self.expected}")
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise ValueError(f"{shown(value)} is not a finite number")
        return found


def forms_of(few: pl.Series) -> list[str]:
    """Ways in which the numbers of a column may be written; 90 min are minutes before they are a duration."""
    units = few.str.extract(UNIT).drop_nulls().unique()
    return [*PATTERNS, *(f"unit {unit}" for unit in units if len(units) == 1), "duration"]


def written_as(text: pl.Series, form: str) -> pl.Series:
    """Which words are numbers of a form, with commas and signs where it has them."""
    return text.str.contains((PATTERNS | LASTING).get(form, UNIT)) & parse_numbers(text, form).is_not_null()


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
