"""The columns a solver works on: a changing part of a design, and its Gram matrix."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.design import Design
from empirisk.solvers.columns import Array, Columns, cross, join, select

#: Curvatures may move by this share of their sum before the Gram matrix is made anew.
REUSE = 0.1
NARROW = 128
#: A centred diagonal below this share of the uncentred one is rounding: the column is constant.
CONSTANT = 1e-13
#: The most columns a set should have: above, time and memory go into the Gram matrix.
LARGEST = 2048


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
    total : float
        t.
    """

    def __init__(self, design: Design, intercept: bool):
        self._design, self._intercept = design, intercept
        self._parts: list[Design] = []
        self._curvatures: Array | None = None
        self.chosen: Columns = np.empty(0, dtype=np.intp)
        self.matrix = np.empty((0, 0))
        self.diagonal = self.means = np.empty(0)
        self.total = 0.0

    def __len__(self) -> int:
        return len(self.chosen)

    def dot(self, w: Array) -> Array:
        """A w for weights of the chosen columns."""
        ends = np.cumsum([part.shape[1] for part in self._parts])
        return sum(part.dot(piece) for part, piece in zip(self._parts, np.split(w, ends[:-1]), strict=True))

    def tdot(self, u: Array) -> Array:
        """A' u for the chosen columns."""
        return np.concatenate([part.tdot(u) for part in self._parts])

    def update(self, new: Columns, curvatures: Array, idle: NDArray[np.bool_]) -> None:
        """Take in more columns, and make G anew if the curvatures have moved by more than a little.

        ``idle`` tells which of all columns may leave the set when G is made anew.
        """
        known = len(self)
        if self._curvatures is None or np.abs(curvatures - self._curvatures).sum() > self._allowance() * self.total:
            self._curvatures, self.total, known = curvatures, float(curvatures.sum()), 0
            self._shrink(idle[self.chosen])
        everything = self._design.shape[1]
        if len(new) and everything < min(2 * (len(self) + len(new)), LARGEST):
            # More than half of the columns: the design itself will do, without a copy.
            self.chosen, self._parts, known = np.arange(everything), [self._design], 0
        elif len(new):
            self.chosen = np.append(self.chosen, new)
            self._parts.append(select(self._design, new))
        if known < len(self):
            self._fill(known, self._curvatures)

    def _allowance(self) -> float:
        return REUSE if len(self)>NARROW else 0.01

    def _shrink(self, idle: NDArray[np.bool_]) -> None:
        """Drop idle columns if they are many: the Gram matrix is the dear part."""
        if 3 * np.count_nonzero(idle) > len(idle):
            self.chosen = self.chosen[~idle]
            self._parts = [select(self._design, self.chosen)]

    def _fill(self, known: int, curvatures: Array) -> None:
        """The rows and columns of G from ``known`` on, which are those of the last part."""
        size = len(self)
        self._reserve(known)
        while known == 0 and len(self._parts) > 1:
            self._merge()
        *old, last = self._parts
        start = 0
        for part in old:
            stop = start + part.shape[1]
            self.matrix[start:stop, known:size] = cross(part, curvatures, last)
            start = stop
        self.matrix[known:size, known:size] = last.gram(curvatures)
        raw = self.matrix.diagonal()[known:size].copy()
        means = last.tdot(curvatures) / self.total if self._intercept and self.total > 0 else np.zeros(size - known)
        self.means = np.append(self.means[:known], means)
        if means.any():
            self.matrix[:size, known:size] -= np.outer(self.total * self.means, means)
        self.matrix[known:size, :known] = self.matrix[:known, known:size].T
        diagonal = self.matrix.diagonal()[known:size]
        self.diagonal = np.append(self.diagonal[:known], np.where(diagonal > CONSTANT * raw, diagonal, 0.0))
        while len(self._parts) > 1 and self._parts[-2].shape[1] <= 2 * self._parts[-1].shape[1]:
            self._merge()

    def _merge(self) -> None:
        """Join the last two parts: done when the last is not much smaller, so that no column is copied often."""
        right = self._parts.pop()
        self._parts.append(join(self._parts.pop(), right))

    def _reserve(self, known: int) -> None:
        """Room in the matrix for every column, keeping the leading corner of ``known`` ones."""
        if len(self) > len(self.matrix):
            room = len(self) if known == 0 else 2 * len(self)
            matrix = np.empty((room, room))
            matrix[:known, :known] = self.matrix[:known, :known]
            self.matrix = matrix
