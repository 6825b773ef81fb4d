"""What a model of numbers in order of time must beat: the value one season before (the seasonal-naive guess)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Rows of a season that are looked for: weeks, months of a year, hours, weeks of a year, days of a year.
SEASONS = (7, 12, 24, 52, 365)
CLEAR = 0.3  # autocorrelation of the changes from which a season is one
MIN_TIMES = 3  # that a season must have been seen


class Naive(NamedTuple):
    """The seasonal-naive guess: rows of a season (1 without one), and what it says of each row of the test."""

    season: int
    guesses: Array


def seasonal_naive(before: Array, rows: int) -> Naive:
    """The last season before the test, again and again; without a season the last value.

    >>> week = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 6.0])
    >>> found = seasonal_naive(np.tile(week, 5), 9)
    >>> found.season, found.guesses.tolist()
    (7, [1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 6.0, 1.0, 1.0])
    """
    season = season_of(before)
    return Naive(season, np.resize(before[-season:], rows))


def season_of(values: Array) -> int:
    """The rows after which changes repeat most clearly; 1 where they do not."""
    changes = np.diff(values) - np.diff(values).mean() if len(values) > 2 else np.zeros(0)
    spread = float(changes @ changes)
    found = {
        season: float(changes[season:] @ changes[:-season]) / spread
        for season in SEASONS
        if spread > 0 and len(values) >= MIN_TIMES * season
    }
    best = max(found, key=found.__getitem__, default=1)
    return best if found.get(best, 0.0) >= CLEAR else 1
