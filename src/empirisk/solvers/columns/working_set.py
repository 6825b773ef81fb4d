"""The columns a solver works on: which can matter, by their correlations with the slopes, and their Gram matrix."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.chosen_columns import Array, Chosen, Columns, EveryColumn, columns_of, correlations, reading_cost
from empirisk.linalg.design import Design

Mask = NDArray[np.bool_]
#: How many slopes are remembered, and how many numbers in all, before all columns are correlated again.
EPOCHS, REMEMBERED = 32, 1 << 23
#: What the norms are raised by, so that no rounding makes a bound too small.
ROUNDING = 1e-9
#: With ``only_near``, columns are read whose last correlation was at least this share of l1.
NEAR_SHARE = 0.7


class Screening:
    """Gap-safe screening: the correlations A'u for one u after another, and the columns that are proven to be zero.

    A column matters only where |a_j'u| reaches l1, and |a_j'u| <= |a_j'v| + |a_j| |u - v| for the v of its last
    correlation. So once the norms are known, only the columns that this bound lets through are read; the others keep
    their last correlation, which is below l1 too.

    Parameters
    ----------
    design : Design
        The matrix A.

    Attributes
    ----------
    values : array
        The correlations, exact where they matter.
    zero : array of bool
        Columns proven to have zero weights at the solution.
    complete : bool
        Whether every correlation that may exceed l1 is exact.
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
        """Drop what holds for one C only: the proofs, and which correlations matter."""
        self.zero: Mask = np.zeros(self._design.shape[1], dtype=bool)
        self.complete = False

    def update(self, u: Array, l1: float, needed: Mask, only_near: bool = False) -> None:
        """The correlations with u: exact where ``needed`` or where they may exceed l1.

        With ``likely`` only where they were near l1 the last time; `complete` tells whether that is all that matters.
        """
        if self._norms is None and self._passes >= max(self.early, 1):
            self._norms = (1 + ROUNDING) * self._design.lengths
        full = len(self._slopes) >= min(EPOCHS, REMEMBERED // len(u))
        if not self._passes or full or not self._update_some(u, l1, needed, only_near):
            self.values = self._design.tdot(u)
            self._bounds, self._slopes = np.abs(self.values), [u]
            self._epoch[:] = 0
            self._passes += 1
            self.complete = True

    def _update_some(self, u: Array, l1: float, needed: Mask, only_near: bool) -> bool:
        """Correlate the columns that may matter; False if they are too many for that to be cheaper."""
        bounds = self._bounds_at(u)
        matter = (bounds >= l1) & ~self.zero
        chosen = np.flatnonzero(needed | (matter & (np.abs(self.values) >= NEAR_SHARE * l1) if only_near else matter))
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
        """The largest that |a_j'u| can be; infinite while the norms are not known."""
        if self._norms is None:
            return np.full(len(self.values), np.inf)
        distances = np.array([np.linalg.norm(u - old) for old in self._slopes])
        return np.abs(self.values) + self._norms * distances[self._epoch]

    @property
    def can_prove(self) -> bool:
        """Whether the norms and all correlations that matter are known."""
        return self._norms is not None and self.complete

    def prove(self, radius: float, l1: float) -> None:
        """Mark the columns that are zero at a solution whose slopes are within ``radius`` of the last u.

        This is safe: |a_j'u*| <= |a_j'u| + |a_j| radius < l1 leaves no weight but zero.
        """
        if self._norms is not None and np.isfinite(radius):
            self.zero |= self._bounds + self._norms * radius < l1


#: Curvatures may move by this share of their sum before the Gram matrix is made again.
#: Less for narrow sets, whose Gram matrix costs no more than a step.
REUSE, REUSE_NARROW, NARROW = 0.15, 0.03, 128
#: A centred diagonal below this share of the uncentred one is rounding: the column is constant.
CONSTANT = 1e-13
#: The most columns a set should have: above, time and memory go into the Gram matrix.
LARGEST = 4096


class WorkingSet:
    """Columns of a design, with  G = A' diag(curvatures) A  of them, centred if the intercept is free.

    Centring takes the intercept out of a quadratic model: with t = sum curvatures and the means m = A' curvatures / t
    the matrix is G - t m m'.

    Attributes
    ----------
    chosen : array
        Which columns, in the order in which they came.
    matrix : array
        G, in the leading corner; the rest is spare room.
    diagonal : array
        The diagonal of G, exactly zero for columns that are constant but for rounding.
    means : array
        m, zero without an intercept.
    curvatures, total : array, float
        What G was made with, and t.
    """

    def __init__(self, design: Design, intercept: bool):
        self._design, self._intercept = design, intercept
        self.curvatures = np.empty(0)
        self.chosen: Chosen = np.empty(0, dtype=np.intp)
        self._columns: Columns | EveryColumn = columns_of(design, self.chosen)
        self.matrix = np.empty((0, 0))
        self.diagonal = self.means = np.empty(0)
        self.total = 0.0

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def bytes(self) -> int:
        """About how much memory the set takes."""
        return self.matrix.nbytes + 8 * len(self) * self._design.shape[0]

    def dot(self, w: Array) -> Array:
        """A w for weights of the chosen columns."""
        return self._columns.dot(w)

    def tdot(self, u: Array) -> Array:
        """A' u for the chosen columns."""
        return self._columns.tdot(u)

    def update(self, new: Chosen, curvatures: Array, idle: NDArray[np.bool_], afresh: bool) -> None:
        """Take in more columns, and make G again if the curvatures have moved by more than a little.

        ``idle`` tells which of all columns may leave the set when G is made again; ``afresh`` that it must be.
        """
        known = len(self)
        if afresh or self._moved(curvatures):
            self.curvatures, self.total, known = curvatures, float(curvatures.sum()), 0
            self._shrink(idle[self.chosen])
        if len(new):
            known = self._take(new, known)
        if known < len(self):
            self._fill(known)

    def _moved(self, curvatures: Array) -> bool:
        if not len(self.curvatures):
            return True
        allowed = REUSE if len(self) > NARROW else REUSE_NARROW
        return float(np.abs(curvatures - self.curvatures).sum()) > allowed * self.total

    def _shrink(self, idle: NDArray[np.bool_]) -> None:
        """Drop idle columns if they are many: the Gram matrix is the expensive part."""
        if 10 * np.count_nonzero(idle) > len(idle):
            self.chosen = self.chosen[~idle]
            self._columns = columns_of(self._design, self.chosen)
            self.diagonal, self.means = self.diagonal[~idle], self.means[~idle]

    def _take(self, new: Chosen, known: int) -> int:
        """Take in new columns; returns for how many G is known."""
        everything = self._design.shape[1]
        if everything < min(2 * (len(self) + len(new)), LARGEST):
            self.chosen, self._columns = np.arange(everything), EveryColumn(self._design)
            return 0
        self.chosen = np.append(self.chosen, new)
        self._columns.add(new)
        return known

    def _fill(self, known: int) -> None:
        """The rows and columns of G from ``known`` on."""
        size = len(self)
        self._reserve(known)
        new = self.matrix[:size, known:size]
        self._columns.gram(self.curvatures, known, new)
        raw = new[known:].diagonal().copy()
        self.means = np.zeros(size)
        if self._intercept and self.total > 0:
            self.means = self._columns.tdot(self.curvatures) / self.total
        if self.means.any():
            new -= np.multiply.outer(self.total * self.means, self.means[known:])
        self.matrix[known:size, :known] = new[:known].T
        diagonal = new[known:].diagonal()
        self.diagonal = np.append(self.diagonal[:known], np.where(diagonal > CONSTANT * raw, diagonal, 0.0))

    def _reserve(self, known: int) -> None:
        """Room in the matrix for every column, keeping the leading corner of ``known`` ones."""
        if len(self) > len(self.matrix):
            room = len(self) if known == 0 else 2 * len(self)
            matrix = np.empty((room, room))
            matrix[:known, :known] = self.matrix[:known, :known]
            self.matrix = matrix
