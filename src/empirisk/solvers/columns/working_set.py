"""The columns a solver works on: a changing part of a design, and its Gram matrix."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.columns import Array, Chosen, Columns, EveryColumn, columns_of
from empirisk.linalg.design import Design

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
            new -= np.outer(self.total * self.means, self.means[known:])
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
