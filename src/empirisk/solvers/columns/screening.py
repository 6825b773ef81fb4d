"""Prices of columns: their correlations A'u with the slopes, computed only where they can matter."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.columns import Array, correlations, reading_cost
from empirisk.linalg.design import Design

Mask = NDArray[np.bool_]
#: How many slopes are remembered, and how many numbers in all, before all columns are priced again.
EPOCHS, REMEMBERED = 32, 1 << 23
#: What the norms are raised by, so that no rounding makes a bound too small.
ROUNDING = 1e-9
#: Columns are likely to matter if their last price was at least this share of l1.
LIKELY = 0.7


class Screening:
    """The correlations A'u for one u after another, and the columns that are proven to be zero.

    A column matters only where |a_j'u| reaches l1, and |a_j'u| <= |a_j'v| + |a_j| |u - v| for the v at which it was
    priced last. So once the norms are known, only the columns that this bound lets through are read; for the others
    the last price stands, which is below l1 too.

    Parameters
    ----------
    design : Design
        The matrix A.

    Attributes
    ----------
    values : array
        The prices, exact where they matter.
    zero : array of bool
        Columns proven to have zero weights at the solution.
    complete : bool
        Whether every price that may exceed l1 is exact.
    """

    #: Passes over all columns before their norms are worth a pass of their own.
    early: ClassVar[int] = 12

    def __init__(self, design: Design):
        self._design = design
        self._cost = reading_cost(design)
        self._passes = 0
        self._norms: Array | None = None
        self._slopes: list[Array] = []
        self._epoch = np.zeros(design.shape[1], dtype=np.intp)
        self._bounds = self.values = np.empty(0)
        self.forget()

    def forget(self) -> None:
        """Drop what holds for one C only: the proofs, and which prices matter."""
        self.zero: Mask = np.zeros(self._design.shape[1], dtype=bool)
        self.complete = False

    def update(self, u: Array, l1: float, needed: Mask, likely: bool = False) -> None:
        """The prices at u: exact where ``needed`` or where they may exceed l1.

        With ``likely`` only where they were near l1 the last time; `complete` tells whether that is all that matters.
        """
        if self._norms is None and self._passes >= max(self.early, 1):
            self._norms = (1 + ROUNDING) * np.sqrt(self._design.squared_columns())
        full = len(self._slopes) >= min(EPOCHS, REMEMBERED // len(u))
        if not self._passes or full or not self._update_some(u, l1, needed, likely):
            self.values = self._design.tdot(u)
            self._bounds, self._slopes = np.abs(self.values), [u]
            self._epoch[:] = 0
            self._passes += 1
            self.complete = True

    def _update_some(self, u: Array, l1: float, needed: Mask, likely: bool) -> bool:
        """Price the columns that may matter; False if they are too many for that to be cheaper."""
        bounds = self._bounds_at(u)
        matter = (bounds >= l1) & ~self.zero
        chosen = np.flatnonzero(needed | (matter & (np.abs(self.values) >= LIKELY * l1) if likely else matter))
        if self._cost * len(chosen) > len(bounds):
            return False
        self.values = self.values.copy()
        self.values[chosen] = correlations(self._design, chosen, u)
        bounds[chosen] = np.abs(self.values[chosen])
        self._epoch[chosen] = len(self._slopes)
        self._slopes.append(u)
        self._bounds = bounds
        matter[chosen] = False
        self.complete = not matter.any()
        return True

    def _bounds_at(self, u: Array) -> Array:
        """What the prices at u can be at most; infinite while the norms are not known."""
        if self._norms is None:
            return np.full(len(self.values), np.inf)
        distances = np.array([np.linalg.norm(u - old) for old in self._slopes])
        return np.abs(self.values) + self._norms * distances[self._epoch]

    @property
    def can_prove(self) -> bool:
        """Whether the norms and all prices that matter are known."""
        return self._norms is not None and self.complete

    def prove(self, radius: float, l1: float) -> None:
        """Mark the columns that are zero at a solution whose slopes are within ``radius`` of the last u.

        This is safe: |a_j'u*| <= |a_j'u| + |a_j| radius < l1 leaves no weight but zero.
        """
        if self._norms is not None and np.isfinite(radius):
            self.zero |= self._bounds + self._norms * radius < l1
