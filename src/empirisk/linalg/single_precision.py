"""Factors and normal matrices in float32 of data in float64: half the time, for solutions that are refined."""

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import lapack

from empirisk.lazy import lazy
from empirisk.linalg import blocks
from empirisk.linalg.design import DenseDesign, Design
from empirisk.linalg.threads import in_threads, single_threaded_blas

Array = NDArray[np.float64]
Single = NDArray[np.float32]
#: Rows of a tile, which one thread converts, factors or divides; rows or columns that it subtracts at once.
ROWS, STRIP = 256, 1024
#: Below this size a factor in float64 takes no time either.
LEAST = 1000
#: The largest rounding error of the factor, in units of the ridge, that a few rounds of refinement make up for.
COARSE = 0.05
EPSILON = float(np.finfo(np.float32).eps)
#: Numbers that float32 is at ease with.
SMALLEST, LARGEST = 1e-20, 1e30
#: Normal matrices with fewer products are summed in no time.
WORTHWHILE = 1e7
#: The largest rounding error of a normal matrix, in units of the ridge, that spoils no step of Newton's method.
ROUGH = 0.2


class SingleFactor:
    """The factor of  diag(ridge) + D^1/2 K D^1/2  in float32 beside an untouched K; renewed in the same memory.

    Parameters
    ----------
    K : array n x n, C-ordered float64
        A symmetric positive semidefinite matrix.

    Examples
    --------
    >>> system = SingleFactor(np.eye(2))
    >>> system.renew(np.array([1.0, 2.0]), 1.0)
    >>> system.solve(np.array([2.0, 5.0])).round(5)
    array([1., 1.])
    """

    def __init__(self, K: Array):
        self._K = K
        self._factor = np.empty(K.shape, np.float32)

    def renew(self, root: Array | None, ridge: Array | float) -> None:
        """Factor the matrix for D^1/2 = diag(root); None is the identity."""
        rows = len(self._K)

        def fill(start: int) -> None:
            stop = min(start + ROWS, rows)
            part, block = self._factor[start:stop, :stop], self._K[start:stop, :stop]
            if root is None:
                part[:] = block
            else:
                np.multiply(block, root[:stop], out=part, casting="same_kind")
                part *= root[start:stop, None].astype(np.float32)

        with single_threaded_blas():
            in_threads(fill, range(0, rows, ROWS))
            self._factor.flat[:: rows + 1] += np.asarray(ridge, np.float32)
            self._inverses = [self._eliminate(start) for start in range(0, rows, ROWS)]

    def _eliminate(self, start: int) -> Single:
        """Columns of the factor L, whose products leave the rest of the matrix; the inverse of their diagonal tile.

        Tiles are multiplied by inverses, which LAPACK would not do: the ridge keeps these far from singular.
        """
        L, stop = self._factor, min(start + ROWS, len(self._K))
        tile, failed = lapack.spotrf(L[start:stop, start:stop], lower=1, clean=1)
        if failed:
            raise LinAlgError("the matrix is not positive definite in single precision")
        L[start:stop, start:stop] = tile
        inverse = np.ascontiguousarray(lapack.strtri(tile, lower=1)[0])

        def divide(first: int) -> None:
            part = L[first : first + ROWS, start:stop]
            part[:] = part @ inverse.T

        def subtract(strip: tuple[int, int]) -> None:
            rows, columns = slice(strip[0], strip[0] + ROWS), slice(strip[1], min(strip[1] + STRIP, strip[0] + ROWS))
            L[rows, columns] -= L[rows, start:stop] @ L[columns, start:stop].T

        below = range(stop, len(L), ROWS)
        in_threads(divide, below)
        in_threads(subtract, [(row, column) for row in below for column in range(stop, row + 1, STRIP)])
        return inverse

    def solve(self, right: Array) -> Array:
        """About the solution for one or several right-hand sides."""
        size = float(np.abs(right).max(initial=0.0)) or 1.0
        x = (right / size).astype(np.float32)
        with single_threaded_blas():
            self._solve_lower(x)
            self._solve_upper(x)
        return size * x.astype(np.float64)

    def _solve_lower(self, x: Single) -> None:
        """L^-1 x in its place: some columns by one thread, then what they leave of the rows below by all."""
        L = self._factor
        for first in range(0, len(L), STRIP):
            end = min(first + STRIP, len(L))
            for start in range(first, end, ROWS):
                stop = min(start + ROWS, end)
                x[start:stop] = self._inverses[start // ROWS] @ x[start:stop]
                x[stop:end] -= L[stop:end, start:stop] @ x[start:stop]

            def run(row: int, first: int = first, end: int = end) -> None:
                x[row : row + STRIP] -= L[row : row + STRIP, first:end] @ x[first:end]

            in_threads(run, range(end, len(L), STRIP))

    def _solve_upper(self, x: Single) -> None:
        """L'^-1 x in its place, from the end."""
        L = self._factor
        for first in range((len(L) - 1) // STRIP * STRIP, -1, -STRIP):
            end = min(first + STRIP, len(L))
            for start in range((end - 1) // ROWS * ROWS, first - 1, -ROWS):
                stop = min(start + ROWS, end)
                x[start:stop] = self._inverses[start // ROWS].T @ x[start:stop]
                x[first:start] -= L[start:stop, first:start].T @ x[start:stop]

            def run(column: int, first: int = first, end: int = end) -> None:
                x[column : column + STRIP] -= L[first:end, column : column + STRIP].T @ x[first:end]

            in_threads(run, range(0, first, STRIP))


class SingleGram:
    """K, untouched, and the float32 factor of K + diag(ridge).

    Parameters
    ----------
    K : array n x n, C-ordered float64
        A symmetric matrix.
    ridge : array of n
        What is added to the diagonal.

    Examples
    --------
    >>> system = SingleGram(np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones(2))
    >>> system.solve(np.array([4.0, 4.0])).round(5), system.product(np.array([1.0, 1.0]))
    (array([1., 1.]), array([3., 3.]))
    """

    exact = False

    def __init__(self, K: Array, ridge: Array):
        self._K = K
        self._factor = SingleFactor(K)
        self._factor.renew(None, ridge)
        self.solve = self._factor.solve

    @lazy
    def response(self) -> Array:
        """About the solution for ones."""
        return self.solve(np.ones(len(self._K)))

    def restored(self) -> Array:
        """K in the memory that it came in."""
        return self._K

    def product(self, v: Array) -> Array:
        """K v, for a vector or for several as columns."""
        return DenseDesign(self._K).dot(v)


def single_suffices(K: Array, root: Array, ridge: float) -> bool:
    """Whether the float32 factor of  ridge + D^1/2 K D^1/2  is worth its while: the matrix is large, and so its ridge.

    >>> single_suffices(np.eye(2), np.ones(2), 1.0)  # not large
    False
    """
    if len(K) < LEAST or ridge < SMALLEST:
        return False
    # Kernels are mostly positive: the first eigenvector is then near the root itself.
    direction = root * root
    largest = float(direction @ DenseDesign(K).dot(direction)) / float(direction.sum())
    largest = max(largest, float((K.diagonal() * direction).max()))
    return EPSILON * largest <= COARSE * ridge and largest < LARGEST


class CoarseDesign(DenseDesign):
    """A dense design that sums its normal matrix in float32.

    >>> CoarseDesign(np.array([[1.0], [2.0]])).gram()
    array([[5.]])
    """

    def gram(self, weights=None):
        root = None if weights is None else np.sqrt(weights)

        def run(group: list[slice]) -> NDArray[np.float32]:
            total = np.zeros((self.shape[1], self.shape[1]), np.float32)
            for rows in group:
                part = self._block(rows, root).astype(np.float32)
                total += part.T @ part
            return total

        return blocks.sum_over_rows(run, self.shape[0], self._row_bytes // 2).astype(np.float64)


def coarse(design: Design, weights: Array, ridge: float) -> Design:
    """The design with its normal matrix in float32, if beside the ridge its rounding is small; else as it is."""
    if not isinstance(design, DenseDesign) or design.shape[0] * design.shape[1] ** 2 < WORTHWHILE or ridge < SMALLEST:
        return design
    total = float(weights @ design.squared_rows())
    fine = EPSILON * total <= ROUGH * ridge and total < LARGEST
    return CoarseDesign(design.X, design.shift) if fine else design
