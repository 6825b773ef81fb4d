"""What a model of numbers in order of time must beat: the value one season before (the seasonal-naive guess)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from empirisk.league.rows.split import Plan
from empirisk.tables.history import mean_by_moment, season_of

Array = NDArray[np.float64]

#: Moments ahead that forecasts are tried at most, and moments of the test from which they begin.
MAX_AHEAD, ORIGINS = 24, 50
MIN_AHEAD = 2  # a forecast of one moment is what the test is


class Naive(NamedTuple):
    """The seasonal-naive guess: moments of a season (1 without one), and what it says of each row of the test."""

    season: int
    guesses: Array

    @property
    def words(self) -> str:
        """What it guesses."""
        return "the value before" if self.season == 1 else f"the value {self.season} moments before"


def seasonal_naive(plan: Plan) -> Naive:
    """The target one season before each row of the test, which is known by then; without a season the last value."""
    assert plan.times is not None
    ranks = plan.times.astype(np.float64)
    moments, values = mean_by_moment(ranks, plan.y)
    past = mean_by_moment(ranks[plan.train], plan.y[plan.train])[1]
    season = season_of(past)
    places = np.searchsorted(moments, ranks[plan.test])
    return Naive(season, values[np.maximum(places - season, 0)])


class Backtest(NamedTuple):
    """Forecasts that begin at moments of the test and know nothing from there on, moments x steps ahead.

    Attributes
    ----------
    truth, said, naive : arrays
        What was, what the model said, each step from the ones before it, and the last season again and again.
    """

    truth: Array
    said: Array
    naive: Array

    @property
    def growth(self) -> Array:
        """How many times as large errors are so many steps ahead as one step ahead; never falling."""
        errors = np.sqrt(np.mean((self.truth - self.said) ** 2, axis=0))
        return np.maximum.accumulate(np.maximum(errors / max(errors[0], np.finfo(float).tiny), 1.0))

    @property
    def told(self) -> list[int]:
        """The steps ahead that are told of: 1, 2, 4, 8 and so on, and the last.

        >>> Backtest(*np.zeros((3, 2, 12))).told
        [1, 2, 4, 8, 12]
        """
        ahead = self.truth.shape[1]
        return sorted({*(2**k for k in range(ahead.bit_length()) if 2**k <= ahead), ahead})


def backtest(plan: Plan, pipeline: Pipeline) -> Backtest | None:
    """Forecasts of a fitted pipeline from moments of the test; None where it has too few of them."""
    history, times = plan.history, plan.times
    if history is None or times is None:
        return None
    places = times - 1  # the number of each row's moment; -1 where it has none
    first = int(places[plan.train].max()) + 1
    ahead = min(MAX_AHEAD, (len(history.moments) - first) // 2)
    if ahead < MIN_AHEAD:
        return None
    origins = np.unique(np.linspace(first, len(history.moments) - ahead, ORIGINS).astype(int))
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(len(history.moments) + 1))
    values = np.tile(history.values, (len(origins), 1))  # from its beginning on each forecasts its own
    said = np.empty((len(origins), ahead))
    for step in range(ahead):
        rows = [order[starts[place] : starts[place + 1]] for place in origins + step]
        earlier = [history.before(np.array([place]), own) for place, own in zip(origins + step, values, strict=True)]
        counts = [len(some) for some in rows]
        moments = np.repeat(history.moments[origins + step], counts)
        made = history.columns(np.repeat(np.vstack(earlier), counts, axis=0), moments)
        found = np.asarray(pipeline.predict(plan.frame[np.concatenate(rows)].with_columns(made)), dtype=np.float64)
        said[:, step] = [part.mean() for part in np.split(found, np.cumsum(counts)[:-1])]
        values[np.arange(len(origins)), origins + step] = said[:, step]
    steps = np.arange(ahead)
    back = history.season * (steps // history.season + 1)
    here = origins[:, None] + steps
    return Backtest(history.values[here], said, history.values[np.maximum(here - back, 0)])
