"""Moments in time: dates, with a time of day or without."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.tables.kinds.base import (
    JUNK_SHARE,
    LOOKED_AT,
    Forms,
    Input,
    Sample,
    by_form,
    cleaned,
    mostly,
    shown,
    spread_out,
)
from empirisk.tables.kinds.ordered import Ordered

if TYPE_CHECKING:
    from empirisk.tables.understanding.column import Column

DAYS = ("%d.%m.", "%m/%d/", "%d/%m/", "%m-%d-", "%d-%m-", "%d-%b-", "%d %B ", "%B %d, ")
TIMES = ("", " %H:%M", " %H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p")
DATE_FORMATS = (
    *(f"%Y-%m-%dT%H:%M{rest}" for rest in ("", ":%S%.f", ":%S%.fZ", ":%S%.f%:z")),
    "%Y-%m-%d %H:%M:%S%.f%:z",
    *(day + time for time in TIMES for day in ("%Y-%m-%d", "%Y/%m/%d")),
    *(day + year + time for time in TIMES for day in DAYS for year in ("%Y", "%y")),
    *("%Y-%m", "%Y/%m", "%m/%Y"),
)
#: Years that a month without a day may have: other pairs of numbers are codes.
MONTH_YEARS = (1800, 2199)
#: Those that are read in every column of an exported graph.
ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")
#: Formats whose order of day and month a reader should look at, by how they begin.
DAY_ORDERS = {"%m/%d": "month/day", "%d/%m": "day/month", "%m-%d": "month-day", "%d-%m": "day-month"}
A_DATE_LOOKS = r"\d.*[-/. ].*\d"  # like this, at the least
EARLIEST = 1000  # the first year of four digits
DAY = 86_400_000_000  # microseconds
YEAR = 365.2425  # days, with leap years
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONDAY = 4  # the epoch was a Thursday: day 4 after it is a Monday
A_DATE = "2024-05-31"  # an example where the range is not known


class Date(Ordered):
    """Moments, in microseconds since 1970."""

    name = "date"
    dtype = pl.Datetime("us")
    dtypes = (pl.Date, pl.Datetime)
    expected = "a date"
    drawn = "dates"
    parts = ("days", "year sin", "year cos", "day sin", "day cos")
    indicators = WEEKDAYS

    def recognise(self, sample: Sample) -> str | None:
        few = sample.few
        # As in a date: most columns of words end here.
        if not len(few) or not few.head(50).str.contains(A_DATE_LOOKS).all():
            return None
        fits = (
            form
            for form in DATE_FORMATS
            if not parse_dates(few, form).null_count() and not parse_dates(sample.strict, form).null_count()
        )
        return next(fits, None)

    def recognise_most(self, sample: Sample) -> str | None:
        cells = sample.present.filter(~sample.present.is_in(self.markers))
        some = spread_out(cells, LOOKED_AT)
        if not len(some) or some.str.contains(A_DATE_LOOKS).mean() < 1 - 2 * JUNK_SHARE:  # type: ignore[operator]
            return None
        form = min(DATE_FORMATS, key=lambda form: parse_dates(some, form).null_count())
        return form if mostly(cells, parse_dates(cells, form).is_not_null()) else None

    def forms(self, series: pl.Series) -> list[str]:
        return list(DATE_FORMATS)

    def parse(self, series: pl.Series, form: str) -> pl.Series:
        """Moments, in the form of the column or in another one."""
        if series.dtype in (pl.Date, pl.Datetime):
            plain = series.dt.replace_time_zone(None) if getattr(series.dtype, "time_zone", None) else series
            return plain.cast(pl.Datetime("us"))
        text = cleaned(series, self.markers)
        moments = parse_dates(text, form)
        for other in DATE_FORMATS:
            if moments.null_count() == text.null_count():
                break
            known = moments.is_not_null()
            moments = moments.zip_with(known, parse_dates(text.set(known, None), other))
        return moments

    def as_numbers(self, series: pl.Series) -> NDArray[np.float64]:
        return series.cast(pl.Int64).cast(pl.Float64).to_numpy()

    def written(self, value: float, form: str) -> str:
        return str(datetime(1970, 1, 1) + timedelta(microseconds=value))[:10]  # the day

    def remark(self, column: "Column") -> str:
        order = next((words for start, words in DAY_ORDERS.items() if column.form.startswith(start)), "")
        return f"Dates of {column.name!r} were read as {order}, as in {column.examples[0]!r}." if order else ""

    def target_problem(self, column: "Column") -> str:
        return "holds dates; turn them into a number or a class first"

    def numbers(self, columns: list[pl.Series]) -> NDArray[np.float64]:
        """Days, and the phases of the year and of the day.

        >>> from datetime import datetime
        >>> float(Date().numbers([pl.Series([datetime(2024, 1, 1)])])[0, 0])
        19723.0
        """
        return phases(self._days(columns))

    def indicate(self, columns: list[pl.Series]) -> NDArray[np.float64]:
        """One of seven weekdays.

        >>> from datetime import datetime
        >>> WEEKDAYS[int(Date().indicate([pl.Series([datetime(2024, 1, 1)])])[0].argmax())]
        'Monday'
        """
        return weekdays(self._days(columns))

    def graph_numbers(self, x: Any, column: "Column", words: Any) -> Any:
        return phases(words.days(x, self._graph_forms(column)))

    def graph_indicators(self, x: Any, column: "Column", words: Any) -> Any:
        return weekdays(words.days(x, self._graph_forms(column)))

    def _graph_forms(self, column: "Column") -> list[str]:
        """The forms in which an exported graph reads dates: that of the column, and those of ISO 8601."""
        return [form for form in dict.fromkeys((column.form, *ISO)) if form]

    def graph_trials(self, column: "Column", levels: list[str]) -> list[Any]:
        iso = ["2024-02-29", "1999-12-31", "2031-07-04 17:45:30"]
        low, high = (0.0, 1e15) if column.low is None or column.high is None else (column.low, column.high)
        days = [self.written(moment, column.form) for moment in np.linspace(low, high, 5)]
        return [*column.examples, *days, *iso]

    def _days(self, columns: list[pl.Series]) -> NDArray[np.float64]:
        return np.column_stack([self.as_numbers(column) for column in columns]) / DAY

    def example(self, column: "Column", words: list[str]) -> Any:
        if column.low is None or column.high is None:
            return A_DATE
        return column.written((column.low / 2 + column.high / 2) // 60 * 60)

    def as_json(self, value: Any) -> Any:
        return None if value is None else str(value).removesuffix(" 00:00:00")

    def input(self, words: list[str]) -> Input:
        return Input()

    def texts_of(self, given: list[Any], form: str) -> set[Any]:
        texts = {value.strip() for value in given if isinstance(value, str)}
        return {text for text in texts if iso_date(text) is None}

    def read(self, value: Any, column: "Column", known: Forms) -> datetime:
        if isinstance(value, str):
            with suppress(ValueError):
                return iso_date(value) or by_form(value, column, known)
        raise ValueError(f"{shown(value)} is not a date; write it like {A_DATE!r}")


def phases(days: Any) -> Any:
    """Days, and the phases of the year and of the day, five columns for one."""
    turn, hour = 2 * np.pi * days / YEAR, 2 * np.pi * (days - np.floor(days))
    numbers = np.stack([days, np.sin(turn), np.cos(turn), np.sin(hour), np.cos(hour)], axis=2)
    return numbers.reshape(len(days), 5 * days.shape[1])


def weekdays(days: Any) -> Any:
    """One of seven, as indicators."""
    whole = np.floor(days) - MONDAY
    weekday = whole - 7 * np.floor(whole / 7)
    return (weekday[:, :, None] == np.arange(7)).astype(np.float64).reshape(len(days), 7 * days.shape[1])


def iso_date(text: str) -> datetime | None:
    """The moment that a text names in the form of ISO 8601, which is read fastest.

    >>> iso_date("2024-05-31"), iso_date("31.5.2024")
    (datetime.datetime(2024, 5, 31, 0, 0), None)
    """
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=None)
    return None


def parse_dates(text: pl.Series, form: str) -> pl.Series:
    """Text as moments in a format of `strptime`, null where it does not fit.

    >>> import polars as pl
    >>> parse_dates(pl.Series(["31.12.2020"]), "%d.%m.%Y").to_list()
    [datetime.datetime(2020, 12, 31, 0, 0)]
    >>> parse_dates(pl.Series(["12/2020", "12/9920"]), "%m/%Y").to_list()
    [datetime.datetime(2020, 12, 1, 0, 0), None]
    """
    if not form:
        return pl.Series(text.name, [None] * len(text), dtype=pl.Datetime("us"))
    if "%y" in form:
        after = r"\s*\d?\d:" if "%M" in form else "$"
        text = text.set(~text.str.contains(rf"[^\d:]\d\d{after}"), None)  # the 3 of 1.2.3 is no year
    if form.endswith("%:z"):  # moments of several zones are compared in one
        zoned = text.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC")
        moments = zoned.dt.replace_time_zone(None)
    elif "%M" in form:
        moments = text.str.to_datetime(form, strict=False, time_unit="us", time_zone=None, exact=True)
    elif "%d" in form:
        moments = text.str.to_date(form, strict=False, exact=True).cast(pl.Datetime("us"))
    else:  # the first of a month
        days = (text + " 1").str.to_date(f"{form} %d", strict=False, exact=True)
        moments = days.set(~days.dt.year().is_between(*MONTH_YEARS), None).cast(pl.Datetime("us"))
    return moments.set(moments.dt.year() < EARLIEST, None)
