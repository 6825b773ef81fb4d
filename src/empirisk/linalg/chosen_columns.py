"""Some columns of a design, with the products that coordinate descent needs."""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import loop_with
from empirisk.linalg.design import Array, DenseDesign, Design, SparseDesign, sparse_gram
from empirisk.linalg.threads import parallel_map

Chosen = NDArray[np.intp]
#: Columns that a thread takes at a time.
CHUNK = 128
#: With this many times more rows than columns, a Gram matrix is summed over blocks of rows.
TALL = 8
#: Sparse matrices with fewer columns are never cut.
NARROW = 1000


class DenseColumns:
    """Columns copied next to each other, with room for more."""

    def __init__(self, design: Design, chosen: Chosen):
        self._design = design
        self._store = design.columns(chosen)
        self.count = len(chosen)

    def _part(self, known: int = 0) -> DenseDesign:
        return DenseDesign(self._store[:, known : self.count])

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
        return self._part().dot(w)

    def tdot(self, u: Array) -> Array:
        """A' u."""
        return self._part().tdot(u)

    def gram(self, curvatures: Array, known: int, out: Array) -> None:
        """Write the columns from ``known`` on of A' diag(curvatures) A."""
        new = self._part(known)
        starts = list(range(0, known, CHUNK))
        if len(curvatures) > TALL * self.count:
            out[known:] = new.gram(curvatures)
        else:
            starts += range(known, self.count, CHUNK)
        scaled = new.X * curvatures[:, None] if starts else new.X

        def run(start: int) -> None:
            stop = min(start + CHUNK, known if start < known else self.count)
            first = max(start - known, 0)
            block = self._store[:, start:stop].T @ scaled[:, first:]
            out[start:stop, first:] = block
            if start >= known:
                out[stop:, start - known : stop - known] = block[:, stop - start :].T

        parallel_map(run, starts)


class SparseColumns:
    """Columns of a sparse matrix, which stays as it is unless they hold few of its entries."""

    def __init__(self, design: SparseDesign, chosen: Chosen):
        self._design, self._all = design, chosen
        self._arrange()

    def _arrange(self) -> None:
        whole = self._design.by_row
        if whole.shape[1] <= NARROW or 4 * self._entries() > whole.nnz:
            self._matrix, self._places = whole, self._all
        else:
            self._matrix, self._places = self._design.by_column[:, self._all].tocsr(), np.arange(len(self._all))

    def _entries(self) -> int:
        return int(np.diff(self._design.by_column.indptr)[self._all].sum())

    @property
    def count(self) -> int:
        """How many columns there are."""
        return len(self._all)

    def add(self, chosen: Chosen) -> None:
        """Take in more columns."""
        self._all = np.append(self._all, chosen)
        self._arrange()

    def dot(self, w: Array) -> Array:
        """A w."""
        scattered = np.zeros(self._matrix.shape[1])
        scattered[self._places] = w
        return self._matrix @ scattered

    def tdot(self, u: Array) -> Array:
        """A' u."""
        return (self._matrix.T @ u)[self._places]

    def gram(self, curvatures: Array, known: int, out: Array) -> None:
        """Write the columns from ``known`` on of A' diag(curvatures) A."""
        out[:] = sparse_gram(self._matrix, curvatures, self._places)[:, known:]


class EveryColumn:
    """All columns of a design, without a copy; there are none to add."""

    def __init__(self, design: Design):
        self._design = design
        self.count = design.shape[1]
        self.dot, self.tdot = design.dot, design.tdot

    def add(self, chosen: Chosen) -> None:
        """Nothing: every column is there."""

    def gram(self, curvatures: Array, known: int, out: Array) -> None:
        """Write the columns from ``known`` on of A' diag(curvatures) A."""
        out[:] = self._design.gram(curvatures)[:, known:]


Columns = DenseColumns | SparseColumns


@singledispatch
def columns_of(design: Design, chosen: Chosen) -> Columns:
    """The chosen columns of a design."""
    return DenseColumns(design, chosen)


@columns_of.register
def _(design: SparseDesign, chosen: Chosen) -> Columns:
    return SparseColumns(design, chosen)


@singledispatch
def correlations(design: Design, chosen: Chosen, u: Array) -> Array:
    """A'u for the chosen columns."""
    X, shift = design.X, design.shift  # type: ignore[attr-defined]
    if not X.flags.f_contiguous or X.dtype != np.float64:
        return DenseColumns(design, chosen).tdot(u)
    out = np.empty(len(chosen))

    def run(start: int) -> None:
        column_products(X.T, chosen[start : start + CHUNK], u, out[start : start + CHUNK])

    parallel_map(run, range(0, len(chosen), CHUNK))
    return out if shift is None else out - shift[chosen] * u.sum()


@correlations.register
def _(design: SparseDesign, chosen: Chosen, u: Array) -> Array:
    return design.by_column[:, chosen].T @ u


@singledispatch
def reading_cost(design: Design) -> float:
    """What it costs to read one column by itself, in units of its share of reading all of them."""
    return 1.5 if design.X.flags.f_contiguous else 20.0  # type: ignore[attr-defined]


@reading_cost.register
def _(design: SparseDesign) -> float:
    return 4.0 if design.shape[1] > NARROW else np.inf


# Sums may be reordered, which lets a processor add several numbers at once; NaN and infinity stay exact.
@loop_with({"reassoc", "contract"})
def column_products(rows, chosen, u, out):
    """out_k = <rows[chosen_k], u>."""
    for k in range(len(chosen)):
        row = rows[chosen[k]]
        total = 0.0
        for i in range(len(u)):
            total += row[i] * u[i]
        out[k] = total
