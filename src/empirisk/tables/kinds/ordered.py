"""What kinds with an order share: numbers, truth values and dates."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.tables.kinds.base import Kind

if TYPE_CHECKING:
    from empirisk.tables.understanding.column import Column

#: Parts of equal size that the values of a column are cut into.
PARTS = 10
#: A value is far outside when it is beyond the range by more than this share of its width.
FAR = 0.5
#: Values tried for an effect run between these quantiles: beyond them there are few rows to learn from.
OUTER = (0.02, 0.98)


class Ordered(Kind):
    """Values that can be put in order: they have quantiles and a range."""

    def as_numbers(self, series: pl.Series) -> NDArray[np.float64]:
        """The values as floats, NaN where missing."""
        return series.to_numpy()

    def ranks(self, series: pl.Series) -> NDArray[np.float64] | None:
        values = self.as_numbers(series)
        return np.where(np.isfinite(values), values, np.nan)

    def range(self, present: pl.Series) -> tuple[float | None, float | None]:
        values = self.as_numbers(present)
        return float(values.min()), float(values.max())

    def profile(self, series: pl.Series) -> dict[str, Any] | None:
        values = self.as_numbers(series)
        known = values[np.isfinite(values)]
        cuts = np.unique(np.quantile(known, np.arange(1, PARTS) / PARTS)) if len(known) else np.zeros(0)
        return {"cuts": cuts.tolist(), "dates": self.drawn == "dates"}

    def unusual(self, column: "Column", series: pl.Series, kept: dict[str, Any]) -> Iterator[tuple[int, str]]:
        if column.low is None or column.high is None:
            return
        room, values = FAR * (column.high - column.low), self.as_numbers(series)
        with np.errstate(invalid="ignore"):
            outside = (values < column.low - room) | (values > column.high + room)
        for row in np.flatnonzero(outside):
            value, low, high = map(column.written, (values[row], column.low, column.high))
            yield int(row), f"{column.name}={value} is far outside {low} to {high}"

    def trial_values(self, series: pl.Series, most: int) -> list[Any]:
        ordered = series.drop_nulls().sort()
        if not len(ordered):
            return []
        # Values that as many rows have, and values as far apart: either leaves gaps where the other has none.
        numbers = self.as_numbers(ordered)
        shares = np.round(np.linspace(*OUTER, most) * (len(ordered) - 1)).astype(int)
        even = np.linspace(numbers[shares[0]], numbers[shares[-1]], most)
        nearest = np.minimum(np.searchsorted(numbers, even), shares[-1])
        return ordered.gather(np.unique(np.concatenate([shares, nearest]))).unique().sort().to_list()

    def sizes(self, series: pl.Series) -> NDArray[np.float64] | None:
        return self.as_numbers(series)

    def quarters(self, series: pl.Series) -> Iterator[tuple[float, float, NDArray[np.bool_]]]:
        """The quarters of the values: from where to where each reaches, and the rows in it."""
        values = self.as_numbers(series)
        known = values[np.isfinite(values)]
        edges = np.unique(np.quantile(known, [0, 0.25, 0.5, 0.75, 1])) if len(known) else np.zeros(0)
        for k, (low, high) in enumerate(pairwise(edges)):
            above = values > low if k else values >= low
            yield float(low), float(high), above & (values <= high)
