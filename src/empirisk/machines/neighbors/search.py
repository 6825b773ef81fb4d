"""Exact search for nearest neighbours: matrix products and partial selection, block by block."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.kernels.base import Kernel
from empirisk.kernels.items import size, take
from empirisk.linalg.threads import in_threads
from empirisk.machines.neighbors.loops import select, sort_exactly

Array = NDArray[np.float64]
ROWS, COLUMNS = 256, 1024
EXTRA = 8
BLOCK_BYTES = 1 << 25

#: Squared distances, increasing along each row, and the numbers of the neighbours.
Found = tuple[Array, NDArray[np.intp]]


class EuclideanSearch:
    """The nearest rows of a table.

    Dense rows are compared in float32, with a few candidates more than are asked for, and the candidates by their
    differences in float64. A row whose candidates are not beyond doubt by the rounding of float32 is searched again
    in float64.

    Parameters
    ----------
    X : array or sparse matrix
        The rows among which neighbours are found.
    """

    def __init__(self, X: Any):
        self._X = X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)
        self._rows = X.shape[0]

    def find(self, X: Any, count: int) -> Found:
        """The nearest ``count`` rows of each row of X."""
        count = min(count, self._rows)
        if sparse.issparse(self._X) or sparse.issparse(X):
            return self._find_sparse(sparse.csr_matrix(X), count)
        X = np.ascontiguousarray(X)
        squares, places, sure = self._find_dense(X, count, np.float32)
        doubtful = np.flatnonzero(~sure)
        if len(doubtful):
            squares[doubtful], places[doubtful], _ = self._find_dense(X[doubtful], count, np.float64)
        return squares, places

    def _find_dense(self, X: NDArray, count: int, dtype: Any) -> tuple[Array, NDArray[np.intp], NDArray[np.bool_]]:
        # Norms near one: neither overflow nor more cancellation than need be.
        centre = self._X.mean(axis=0, dtype=np.float64)
        size = float(np.abs(self._X - centre).max(initial=0.0)) or 1.0
        known = ((self._X - centre) / size).astype(dtype)
        norms = np.einsum("ij,ij->i", known, known)
        wanted = min(count + EXTRA, self._rows)
        squares, places = np.full((len(X), wanted), np.inf), np.zeros((len(X), wanted), dtype=np.intp)
        sure = np.ones(len(X), dtype=bool)
        rounding = 2 * (X.shape[1] + 4) * float(np.finfo(dtype).eps)

        def run(start: int) -> None:
            rows = slice(start, min(start + ROWS, len(X)))
            queries = ((X[rows] - centre) / size).astype(dtype)
            values = np.full((len(queries), wanted), np.inf, dtype)
            for first in range(0, self._rows, COLUMNS):
                part = slice(first, first + COLUMNS)
                select(queries @ known[part].T, norms[part], first, values, places[rows])
            sort_exactly(X[rows], self._X, places[rows], squares[rows])
            if wanted < self._rows:
                # No row outside the list is nearer than this.
                own = np.einsum("ij,ij->i", queries, queries).astype(np.float64)
                bound = values[:, -1] + own - rounding * (own + float(norms.max()))
                sure[rows] = squares[rows, count - 1] <= bound * size**2

        in_threads(run, range(0, len(X), ROWS))
        return squares[:, :count], places[:, :count], sure

    def _find_sparse(self, X: Any, count: int) -> Found:
        known = sparse.csr_matrix(self._X).astype(np.float64)
        norms = np.asarray(known.multiply(known).sum(axis=1)).ravel()
        transposed = known.T.tocsr()
        own = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        values, places = _lists(X.shape[0], count)
        step = max(1, BLOCK_BYTES // (8 * self._rows))

        def run(start: int) -> None:
            rows = slice(start, start + step)
            products = (X[rows].astype(np.float64) @ transposed).toarray()
            select(products, norms, 0, values[rows], places[rows])

        in_threads(run, range(0, X.shape[0], step))
        return np.maximum(values + own[:, None], 0.0), places


class KernelSearch:
    """The nearest items by |phi(x) - phi(z)|^2 = k(x, x) - 2 k(x, z) + k(z, z).

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    items : prepared items
        Those among which neighbours are found.
    norms : array
        Their k(z, z).
    """

    def __init__(self, kernel: Kernel, items: Any, norms: Array):
        self._kernel, self._items, self._norms = kernel, items, norms

    def find(self, items: Any, count: int, own: Array | None = None) -> Found:
        """The nearest ``count`` items of each; without ``own`` = k(x, x) squared distances lack that constant."""
        count = min(count, size(self._items))
        rows = size(items)
        values, places = _lists(rows, count)
        step = max(1, BLOCK_BYTES // (8 * size(self._items)))
        for start in range(0, rows, step):
            block = self._kernel.between(take(items, slice(start, start + step)), self._items)
            norms = self._norms.astype(block.dtype)
            here, there = values[start : start + step], places[start : start + step]
            found = np.full(here.shape, np.inf, block.dtype)

            def run(first: int, block=block, norms=norms, found=found, there=there) -> None:
                part = slice(first, first + ROWS)
                select(block[part], norms, 0, found[part], there[part])

            in_threads(run, range(0, len(block), ROWS))
            here[...] = found
        return (values, places) if own is None else (np.maximum(values + own[:, None], 0.0), places)


def _lists(rows: int, count: int) -> Found:
    return np.full((rows, count), np.inf), np.zeros((rows, count), dtype=np.intp)
