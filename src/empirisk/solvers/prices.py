"""Prices of columns: their correlations A'u with the slopes, computed only where they can matter."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.design import Design
from empirisk.solvers.columns import Array, columns_of, reading_cost

Mask = NDArray[np.bool_]
#: Passes over all columns before their norms are worth a pass of their own.
EARLY = 20
ROUNDING = 1e-9


class Prices:
    """The correlations A'u for one u after another, and the columns that are proven to be zero.

    A column matters only where |a_j'u| reaches l1, and |a_j'u| <= |a_j'v| + |a_j| |u - v|. So once the norms are
    known, only the columns that this bound lets through are read; for the others the last known price stands, which
    is below l1 too.

    Parameters
    ----------
    design : Design
        The matrix A.
    early : int
        Passes over all columns before their norms are computed.

    Attributes
    ----------
    values : array
        The prices, exact where they matter.
    zero : array of bool
        Columns proven to have zero weights at the solution.
    """

    def __init__(self, design: Design, early: int = EARLY):
        self._design, self._early = design, early
        self._cost = reading_cost(design)
        self._passes = 0
        self._norms: Array | None = None
        self._u = self._known = self._bounds = np.empty(0)
        self.values = np.empty(0)
        self.forget()

    def forget(self) -> None:
        """Drop the proofs, which hold for one C only."""
        self.zero: Mask = np.zeros(self._design.shape[1], dtype=bool)

    def update(self, u: Array, l1: float, needed: Mask) -> None:
        """The prices at u: exact where ``needed`` or where they may exceed l1."""
        if self._norms is None and self._passes >= self._early:
            self._norms = (1 + ROUNDING) * np.sqrt(self._design.squared_columns())
        if self._norms is not None and self._passes:
            bounds = np.abs(self._known) + self._norms * np.linalg.norm(u - self._u)
            chosen = np.flatnonzero(needed | ((bounds >= l1) & ~self.zero))
            if self._cost * len(chosen) < len(bounds):
                self.values, self._bounds = self._known.copy(), bounds
                self.values[chosen] = columns_of(self._design, chosen).tdot(u)
                self._bounds[chosen] = np.abs(self.values[chosen])
                return
        self.values = self._known = self._design.tdot(u)
        self._u, self._bounds = u, np.abs(self.values)
        self._passes += 1

    @property
    def can_prove(self) -> bool:
        """Whether the norms are known."""
        return self._norms is not None

    def prove(self, radius: float, l1: float) -> None:
        """Mark the columns that are zero at a solution whose slopes are within ``radius`` of the last u.

        This is safe: |a_j'u*| <= |a_j'u| + |a_j| radius < l1 leaves no weight but zero.
        """
        if self._norms is not None and np.isfinite(radius):
            self.zero |= self._bounds + self._norms * radius < l1
