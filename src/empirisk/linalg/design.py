"""The design matrix: dense or sparse data behind one interface."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.linalg import blocks
from empirisk.linalg.sparse_loops import add_weighted_gram

Array = NDArray[np.float64]


class Design:
    """An n x d matrix A that solvers multiply with.

    A dense design may be shifted: A = X - 1 shift'. With an unpenalised intercept a shift changes nothing but the
    intercept, and shifting by the column means makes the normal equations well conditioned.
    """

    shape: tuple[int, int]

    def dot(self, w: Array) -> Array:
        """A w, in float64."""
        raise NotImplementedError

    def tdot(self, u: Array) -> Array:
        """A' u, in float64."""
        raise NotImplementedError

    def gram(self, weights: Array | None = None) -> Array:
        """A' diag(weights) A, for weights >= 0."""
        raise NotImplementedError

    def outer(self, weights: Array | None = None) -> Array:
        """A diag(weights) A', for weights >= 0 on the columns."""
        raise NotImplementedError

    @cached_property
    def row_products(self) -> Array:
        """A A', kept."""
        return self.outer()

    def squared_columns(self, weights: Array | None = None) -> Array:
        """sum_i weights_i A_ij^2 for every column j."""
        raise NotImplementedError

    def squared_rows(self) -> Array:
        """|a_i|^2 for every row i."""
        raise NotImplementedError

    def columns(self, chosen: NDArray[np.intp] | slice) -> Array:
        """The chosen columns as a dense float64 array in Fortran order."""
        raise NotImplementedError

    def rows(self, chosen) -> "Design":
        """The design of the chosen rows, with the same shift."""
        raise NotImplementedError

    @property
    def shift(self) -> Array | None:
        """What is subtracted from every row; None for nothing."""
        return None


class DenseDesign(Design):
    """A NumPy array, optionally shifted by its column means."""

    def __init__(self, X: NDArray, shift: Array | None = None):
        self.X = X
        self.shape = X.shape
        self._shift = shift
        self._row_bytes = X.shape[1] * 8

    @property
    def shift(self):
        return self._shift

    def _block(self, rows: slice, scale: Array | None = None) -> Array:
        """Rows of A in float64, each multiplied by its scale; a copy if anything is changed."""
        block = self.X[rows]
        if scale is not None:
            used = np.flatnonzero(scale[rows])
            if 2 * len(used) < len(block):
                # Rows that count for nothing are not even read.
                block, scale, rows = block[used], scale[rows][used], slice(None)
        if self._shift is not None:
            block = block - self._shift
            if scale is not None:
                block *= scale[rows, None]
            return block
        if scale is not None:
            return block * scale[rows, None]
        return block.astype(np.float64, copy=False)

    def dot(self, w):
        out = np.empty((self.shape[0], *w.shape[1:]))

        def run(rows: slice) -> None:
            out[rows] = self.X[rows] @ w

        blocks.over_rows(run, self.shape[0], self._row_bytes)
        return out if self._shift is None else out - self._shift @ w

    def tdot(self, u):
        def run(group: list[slice]) -> Array:
            total = np.zeros((self.shape[1], *u.shape[1:]))
            for rows in group:
                total += self.X[rows].T @ u[rows]
            return total

        total = blocks.sum_over_rows(run, self.shape[0], self._row_bytes)
        if self._shift is not None:
            total -= np.multiply.outer(self._shift, u.sum(axis=0))
        return total

    def gram(self, weights=None):
        scale = None if weights is None else np.sqrt(weights)

        def run(group: list[slice]) -> Array:
            total = np.zeros((self.shape[1], self.shape[1]))
            for rows in group:
                block = self._block(rows, scale)
                total += block.T @ block
            return total

        return blocks.sum_over_rows(run, self.shape[0], self._row_bytes)

    def outer(self, weights=None):
        A = self._block(slice(None))
        if weights is not None:
            A = A * np.sqrt(weights)
        return A @ A.T

    def squared_columns(self, weights=None):
        scale = None if weights is None else np.sqrt(weights)

        def run(group: list[slice]) -> Array:
            total = np.zeros(self.shape[1])
            for rows in group:
                block = self._block(rows, scale)
                total += np.einsum("ij,ij->j", block, block)
            return total

        return blocks.sum_over_rows(run, self.shape[0], self._row_bytes)

    def squared_rows(self):
        out = np.empty(self.shape[0])

        def run(rows: slice) -> None:
            block = self._block(rows)
            out[rows] = np.einsum("ij,ij->i", block, block)

        blocks.over_rows(run, self.shape[0], self._row_bytes)
        return out

    def columns(self, chosen):
        chunk = np.asfortranarray(self.X[:, chosen], dtype=np.float64)
        return chunk if self._shift is None else chunk - self._shift[chosen]

    def rows(self, chosen):
        return DenseDesign(self.X[chosen], self._shift)


class SparseDesign(Design):
    """A SciPy CSR or CSC matrix; never shifted, never made dense."""

    def __init__(self, X):
        self.X = X
        self.shape = X.shape

    @cached_property
    def by_row(self) -> sparse.csr_matrix:
        """The matrix in CSR form, float64, without duplicate entries."""
        matrix = self.X.tocsr().astype(np.float64, copy=False)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix

    @cached_property
    def by_column(self) -> sparse.csc_matrix:
        """The matrix in CSC form, float64."""
        return self.by_row.tocsc()

    def dot(self, w):
        return self.by_row @ w

    def tdot(self, u):
        return self.by_row.T @ u

    def gram(self, weights=None):
        matrix = self.by_row
        weights = np.ones(self.shape[0]) if weights is None else weights
        width = self.shape[1]

        def run(group: list[slice]) -> Array:
            total = np.zeros((width, width))
            for rows in group:
                add_weighted_gram(matrix.data, matrix.indices, matrix.indptr, weights, rows.start, rows.stop, total)
            return total

        total = blocks.sum_over_rows(run, self.shape[0], self._row_cost())
        return total + np.triu(total, 1).T

    def _row_cost(self) -> int:
        entries = self.by_row.nnz / max(self.shape[0], 1)
        return int(8 * entries**2) + 8

    def outer(self, weights=None):
        A = self.by_row if weights is None else self.by_row.multiply(np.sqrt(weights)).tocsr()
        return (A @ A.T).toarray()

    def squared_columns(self, weights=None):
        squares = self.by_row.multiply(self.by_row).tocsr()
        return squares.T @ (np.ones(self.shape[0]) if weights is None else weights)

    def squared_rows(self):
        return np.asarray(self.by_row.multiply(self.by_row).sum(axis=1)).ravel()

    def columns(self, chosen):
        return np.asfortranarray(self.by_column[:, chosen].toarray())

    def rows(self, chosen):
        return SparseDesign(self.by_row[chosen])


def design_of(X, centre: bool) -> Design:
    """The design of validated data; ``centre`` shifts dense columns by their means."""
    if sparse.issparse(X):
        return SparseDesign(X)
    if not centre:
        return DenseDesign(X)
    means = np.asarray(DenseDesign(X).tdot(np.ones(len(X))) / len(X), dtype=np.float64)
    # A constant column is shifted to exact zeros: the rounding of its mean would stand beside the intercept.
    for j in np.flatnonzero(np.isclose(means, X[0], rtol=1e-9, atol=0.0)):
        if np.all(X[:, j] == X[0, j]):
            means[j] = X[0, j]
    return DenseDesign(X, means)
