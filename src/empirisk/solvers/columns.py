"""Some columns of a design, with the products that coordinate descent needs."""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.blocks import in_threads
from empirisk.linalg.design import Design, SparseDesign
from empirisk.solvers.coordinate_loops import add_chosen_gram

Array = NDArray[np.float64]
Chosen = NDArray[np.intp]
CHUNK = 128
#: Rows are dealt to this many threads at most when a sparse Gram matrix is summed.
SHARES = 4


class DenseColumns:
    """Columns copied next to each other, with room for more."""

    def __init__(self, design: Design, chosen: Chosen):
        self._design = design
        self._store = design.columns(chosen)
        self.count = len(chosen)

    @property
    def _matrix(self) -> Array:
        return self._store[:, : self.count]

    def add(self, chosen: Chosen) -> None:
        """Take in more columns."""
        before, self.count = self.count, self.count + len(chosen)
        if self.count > self._store.shape[1]:
            store = np.empty((self._store.shape[0], 2 * self.count), order="F")
            store[:, :before] = self._store[:, :before]
            self._store = store
        self._store[:, before : self.count] = self._design.columns(chosen)

    def dot(self, w: Array) -> Array:
        """A w."""
        return self._matrix @ w

    def tdot(self, u: Array) -> Array:
        """A' u."""
        return self._matrix.T @ u

    def gram(self, curvatures: Array, known: int) -> Array:
        """The columns from ``known`` on of A' diag(curvatures) A."""
        A, out = self._matrix, np.empty((self.count, self.count - known))
        scaled = A[:, known:] * curvatures[:, None]

        def run(start: int) -> None:
            rows = slice(start, start + CHUNK)
            first = max(start - known, 0)
            out[rows, first:] = A[:, rows].T @ scaled[:, first:]

        in_threads(run, range(0, self.count, CHUNK))
        below = np.tri(self.count - known, k=-1, dtype=bool)
        out[known:][below] = out[known:].T[below]
        return out


class SparseColumns:
    """Columns of a sparse matrix, which stays as it is: the entries of other columns are passed over."""

    def __init__(self, design: SparseDesign, chosen: Chosen):
        self._design = design
        self._chosen = chosen

    @property
    def count(self) -> int:
        """How many columns there are."""
        return len(self._chosen)

    def add(self, chosen: Chosen) -> None:
        """Take in more columns."""
        self._chosen = np.append(self._chosen, chosen)

    def dot(self, w: Array) -> Array:
        """A w."""
        everywhere = np.zeros(self._design.shape[1])
        everywhere[self._chosen] = w
        return self._design.dot(everywhere)

    def tdot(self, u: Array) -> Array:
        """A' u."""
        return self._design.tdot(u)[self._chosen]

    def gram(self, curvatures: Array, known: int) -> Array:
        """The columns from ``known`` on of A' diag(curvatures) A."""
        matrix, size = self._design.by_row, self.count
        places = np.full(self._design.shape[1], -1, dtype=np.intp)
        places[self._chosen] = np.arange(size)

        def run(share: int) -> Array:
            total = np.zeros((size, size))
            first, last = share * len(curvatures) // SHARES, (share + 1) * len(curvatures) // SHARES
            add_chosen_gram(matrix.data, matrix.indices, matrix.indptr, curvatures, places, first, last, total)
            return total

        total = np.add.reduce(in_threads(run, range(SHARES)))
        total += total.T
        total.flat[:: size + 1] /= 2
        return total[:, known:]
