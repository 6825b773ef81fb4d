"""A target in order of time: what is known before each row (lags, rolling means, the calendar), and what comes next."""

from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count, islice
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.tables.kinds.date import DAY, YEAR
from empirisk.tables.understanding.column import Column

Array = NDArray[np.float64]

#: Moments that are looked back at one by one; a season, and two of them, are added.
LAGS = (1, 2, 3)
#: Moments whose mean is taken where there is no season, and how many times as many the longer mean has.
WINDOW, LONGER = 7, 4
#: The share of the moments that a lag or a mean may reach back: more would be missing in most rows.
MAX_REACH = 1 / 6
#: Moments that may lie between what is known and what is asked for: each is predicted from the ones before it.
MAX_STEPS = 10_000
#: How many moments ahead of the last known value of the target a row is; in no table of a user.
STEPS = "\0steps ahead"
#: Moments of a season that are looked for: quarters, weekdays, months, hours, half hours, weeks, hours of a week, days.
SEASONS = (4, 7, 12, 24, 48, 52, 168, 365)
#: Autocorrelation of the changes from which a season is one, the share of the best that is as good, and the times that
#: it must have been seen.
CLEAR, NEARLY, MIN_TIMES = 0.3, 0.8, 3
WORKDAYS, MONTHS, MONTH_DAYS = 5, 12, 31  # the days of the longest month
EPOCH = datetime(1970, 1, 1)
#: Parts of a date as Polars writes them; years that must have been seen for the month to tell something.
PARTS, MIN_YEARS = {"hour": "%H", "weekday": "%A", "month": "%B"}, 2


def _wrong_order(its: Mapping[str, Any]) -> str | None:
    """What is wrong with the moments of a history from a file."""
    if its["time"].type.drawn not in ("dates", "numbers"):
        return "time is a column that cannot be counted on"
    return "moments do not rise" if np.any(np.diff(its["moments"]) <= 0) else None


@dataclass(frozen=True, eq=False)
class History:
    """The values of a target over time, from which columns are made that are known before each row.

    They are the target 1, 2, 3 moments, one and two seasons before, the means of the last season and of four, and of
    dates the hour, the weekday and the month, as far as they differ. A row is given values of earlier moments only;
    rows of one moment see the same, and count as their mean. The moment itself is no column: no later row has it.

    Attributes
    ----------
    time : Column
        The column that orders the rows: dates or numbers.
    target : str
        The column that is predicted.
    moments, values : arrays
        The known moments, rising, and the mean of the target at each.
    season : int
        Moments after which the target repeats; 1 without a season.
    growth : array
        How many times as large errors are 1, 2, ... moments ahead of what is known as one moment ahead.

    Examples
    --------
    >>> history = History(Column("t", "number"), "y", np.arange(30.0), np.arange(30.0) ** 2, 1)
    >>> history.names
    ['y 1 before', 'y 2 before', 'y 3 before']
    >>> history.before(np.array([2]))[0].tolist()
    [1.0, 0.0, nan]
    >>> history.following(2).tolist()
    [30.0, 31.0]
    """

    _state = state.State(
        _wrong_order,
        filled=("moments", "steps"),
        time=state.part(Column),
        target=state.text(),
        moments=state.array("f8", "moments"),
        values=state.array("f8", "moments"),
        season=state.whole(1),
        growth=state.array("f8", "steps", low=0.0),
    )

    time: Column
    target: str
    moments: Array
    values: Array
    season: int
    growth: Array = field(default_factory=lambda: np.ones(1))

    @classmethod
    def of(cls, time: Column, target: str, moments: Array, y: Array, season: int) -> "History":
        """The history of rows with a moment, NaN where it is not known, and a target each."""
        return cls(time, target, *mean_by_moment(moments, y), season)

    @property
    def _reach(self) -> tuple[list[int], list[int]]:
        """How many moments before lie the lags, and how many the means are of."""
        lags = {*LAGS, self.season, 2 * self.season} if self.season > 1 else {*LAGS}
        window = self.season if self.season > 1 else WINDOW
        most = MAX_REACH * len(self.moments)
        return sorted(k for k in lags if k <= most), [k for k in (window, LONGER * window) if k <= most]

    @property
    def reach(self) -> int:
        """How many moments the columns reach back."""
        return max(map(max, filter(None, self._reach)), default=0)

    @property
    def earlier(self) -> list[str]:
        """The names of the columns of earlier values."""
        lags, windows = self._reach
        return [f"{self.target} {k} before" for k in lags] + [f"{self.target}, mean of {k} before" for k in windows]

    @property
    def calendar(self) -> dict[str, str]:
        """The names of the columns that the calendar gives, and how their values are written."""
        if self.time.type.drawn != "dates":
            return {}
        hours, years = self._gap < DAY, np.ptp(self.moments) >= MIN_YEARS * YEAR * DAY
        parts = {"hour": hours, "weekday": self._gap <= DAY, "month": years and self._gap <= MONTH_DAYS * DAY}
        return {f"{self.time.name}: {part}": PARTS[part] for part, told in parts.items() if told}

    @property
    def names(self) -> list[str]:
        """The names of all columns that are made."""
        return [*self.earlier, *self.calendar]

    def before(self, places: NDArray[np.int64], values: Array | None = None) -> Array:
        """What was before moments of these numbers, a column for each that is `earlier`; NaN where nothing was.

        ``values`` are those of all moments, where there are more by now.
        """
        known = self.values if values is None else values
        lags, windows = self._reach
        sums = np.concatenate([[0.0], np.cumsum(known)])
        lagged = [np.where(places >= k, known[np.maximum(places - k, 0)], np.nan) for k in lags]
        means = [np.where(places >= k, (sums[places] - sums[np.maximum(places - k, 0)]) / k, np.nan) for k in windows]
        return np.column_stack([np.empty((len(places), 0)), *lagged, *means])

    def columns(self, earlier: Array, moments: Array) -> pl.DataFrame:
        """The columns of rows with these values `before` them, at these moments; missing where a moment is."""
        known = ~np.isnan(moments)
        found = {name: np.where(known, earlier[:, k], np.nan) for k, name in enumerate(self.earlier)}
        made = [pl.Series(name, values, nan_to_null=True) for name, values in found.items()]
        times = self.times(np.where(known, moments, 0.0)).set(pl.Series(~known), None)
        return pl.DataFrame([*made, *(times.dt.to_string(form).alias(name) for name, form in self.calendar.items())])

    def known_before(self, moments: Array) -> pl.DataFrame:
        """The columns of rows of these moments."""
        return self.columns(self.before(np.searchsorted(self.moments, moments)), moments)

    def complete(
        self, frame: pl.DataFrame, truth: pl.Series | None, predict: Callable[[pl.DataFrame], Array]
    ) -> pl.DataFrame:
        """The rows with the columns of earlier values, and how many `STEPS` ahead of known values each is.

        What the target was is known from the history, and from ``truth`` where the rows hold it. Between that and the
        rows asked for, moment after moment is predicted from the ones before it.
        """
        if all(name in frame.columns for name in self.names):
            return frame
        if self.time.name not in frame.columns:
            raise EmpiriskError(f"The table lacks the column {self.time.name!r}, which says when each row is; add it.")
        frame = frame.with_columns(self.time.convert(frame[self.time.name]).alias(self.time.name))
        moments = moments_of(self.time, frame[self.time.name])
        times, values = self._timeline(moments, truth)
        numbers, unknown = np.arange(len(times)), np.isnan(values)
        for place in np.flatnonzero(unknown[:-1]):  # nothing comes after the last one
            rows = frame.filter(pl.Series(moments == times[place]))
            rows = rows if rows.height else self._row_of(times[place], frame)
            start = max(place - self.reach, 0)
            earlier = self.before(np.full(rows.height, place - start), values[start : place + 1])
            made = self.columns(earlier, np.full(rows.height, times[place]))
            values[place] = np.mean(predict(rows.hstack(made)))
        places = np.searchsorted(times, moments)
        found = self.before(places, values)
        last_known = np.maximum.accumulate(np.append(-1, np.where(unknown, -1, numbers)))
        steps = np.where(np.isnan(moments), 1, places - last_known[places])
        return frame.hstack(self.columns(found, moments)).with_columns(pl.Series(STEPS, steps))

    def _timeline(self, moments: Array, truth: pl.Series | None) -> tuple[Array, Array]:
        """All moments up to the last one asked for, and the target at each, NaN where it is not known."""
        last, given = self.moments[-1], np.full(len(moments), np.nan) if truth is None else truth.to_numpy()
        asked = np.unique(moments[moments > last])
        new, said = mean_by_moment(np.where(np.isnan(given) | (moments <= last), np.nan, moments), given)
        lacking, end = [], asked[-1] if len(asked) else last
        for number, moment in enumerate(self._after(last)):
            if moment >= end:
                break
            near = asked[max(np.searchsorted(asked, moment) - 1, 0) :][:2]
            lacking += [moment] if np.abs(near - moment).min() > self._gap / 2 else []
            if number >= MAX_STEPS:
                raise EmpiriskError(
                    f"{self.time.name} {self.time.written(end)} is more than {MAX_STEPS:,} moments after the last one "
                    f"that is known, {self.time.written(last)}; give rows that are nearer."
                )
        times = np.concatenate([self.moments, np.union1d(asked, lacking)])
        values = np.full(len(times), np.nan)
        values[np.searchsorted(times, self.moments)], values[np.searchsorted(times, new)] = self.values, said
        return times, values

    def following(self, rows: int) -> Array:
        """The next moments after the last known one."""
        return np.array(list(islice(self._after(self.moments[-1]), rows)))

    def times(self, moments: Array) -> pl.Series:
        """Moments as the column that orders rows has them once it is read."""
        dated = self.time.type.drawn == "dates"
        return pl.Series(self.time.name, moments.astype(np.int64) if dated else moments).cast(self.time.type.dtype)

    def wider(self, steps: NDArray[np.int64]) -> Array:
        """How many times as wide intervals are so many moments ahead; beyond what was tried, by the root of time."""
        most = len(self.growth)
        return self.growth[np.minimum(steps, most) - 1] * np.sqrt(np.maximum(steps / most, 1.0))

    def _row_of(self, moment: float, like: pl.DataFrame) -> pl.DataFrame:
        """A row of a moment, with the columns of another table, missing but for the time."""
        return like.clear(1).with_columns(self.times(np.array([moment])))

    @property
    def _gap(self) -> float:
        """The usual time between two moments."""
        return float(np.median(np.diff(self.moments))) if len(self.moments) > 1 else 1.0

    def _after(self, moment: float) -> Iterator[float]:
        """The moments after one: by months where all lie on one day of a month, else by the usual gap.

        Where no moment was on a weekend, none will be.
        """
        gap, dated = self._gap, self.time.type.drawn == "dates"
        months = self._months if dated else 0
        working = dated and gap == DAY and bool((_weekdays(self.moments) < WORKDAYS).all())
        last = moment
        for k in count(1):
            moment = _months_later(last, k * months, self._month_end) if months else moment + gap
            while working and _weekdays(np.array([moment]))[0] >= WORKDAYS:
                moment += gap
            yield moment

    @property
    def _month_end(self) -> bool:
        return all((_date(moment) + timedelta(days=1)).day == 1 for moment in self.moments[-24:])

    @property
    def _months(self) -> int:
        """The usual number of months between moments that all lie on one day of a month, or at its end; else 0."""
        dates = [_date(moment) for moment in self.moments]
        if len(dates) < 2 or (len({(one.day, one.time()) for one in dates}) > 1 and not self._month_end):
            return 0
        return int(np.median(np.diff([MONTHS * one.year + one.month for one in dates])))


def mean_by_moment(moments: Array, y: Array) -> tuple[Array, Array]:
    """The different moments, rising, and the mean of a target at each; rows without a moment are left out.

    >>> mean_by_moment(np.array([2.0, 1.0, 2.0, np.nan]), np.array([1.0, 5.0, 3.0, 9.0]))
    (array([1., 2.]), array([5., 2.]))
    """
    known = ~np.isnan(moments)
    times, places = np.unique(moments[known], return_inverse=True)
    sums = np.bincount(places, y[known], len(times))
    return times, sums / np.maximum(np.bincount(places, minlength=len(times)), 1)


def season_of(values: Array) -> int:
    """The moments after which changes repeat most clearly; 1 where they do not.

    >>> week = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 6.0])
    >>> season_of(np.tile(week, 5))
    7
    """
    changes = np.diff(values) - np.diff(values).mean() if len(values) > 2 else np.zeros(0)
    spread = float(changes @ changes)
    found = {
        season: float(changes[season:] @ changes[:-season]) / spread
        for season in SEASONS
        if spread > 0 and len(values) >= MIN_TIMES * season
    }
    best = max(found.values(), default=0.0)
    # Twice a season is one too: the first that is nearly as clear.
    return 1 if best < CLEAR else next(season for season, clear in found.items() if clear >= NEARLY * best)


def moments_of(time: Column, values: pl.Series) -> Array:
    """The values of a column that orders rows as numbers: of dates microseconds since 1970; NaN where missing."""
    return values.cast(pl.Int64 if time.type.drawn == "dates" else pl.Float64).cast(pl.Float64).to_numpy()


def _date(moment: float) -> datetime:
    return EPOCH + timedelta(microseconds=moment)


def _weekdays(moments: Array) -> NDArray[np.int64]:
    """0 for Monday to 6 for Sunday: 1970 began with a Thursday."""
    return (np.floor(moments / DAY).astype(np.int64) + 3) % 7


def _months_later(moment: float, months: int, at_end: bool) -> float:
    """The same day so many months later, or the last one of the month: of a shorter one, and where all are.

    >>> last_of_january = 30 * DAY
    >>> _months_later(last_of_january, 1, True) / DAY, _months_later(0.0, 2, False) / DAY
    (58.0, 59.0)
    """
    date = _date(moment)
    number = MONTHS * date.year + date.month - 1 + months
    first = datetime(number // MONTHS, number % MONTHS + 1, 1)
    days = monthrange(first.year, first.month)[1]
    day = first.replace(day=days if at_end else min(date.day, days))
    return (datetime.combine(day, date.time()) - EPOCH) / timedelta(microseconds=1)
