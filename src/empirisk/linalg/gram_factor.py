"""One square array for a Gram matrix and a Cholesky factor: symmetric matrices need half of it each."""

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from empirisk.lazy import lazy
from empirisk.linalg import lapack, tiled
from empirisk.linalg.blocks import Array, over_rows, places, slices
from empirisk.linalg.threads import parallel_map

#: Rows that are written at once, by a thread.
ROWS = 256


class FactoredGram:
    """K in one triangle and the factor of K + diag(ridge) in the other, in the memory of K.

    Parameters
    ----------
    K : array n x n, C-ordered float64
        A symmetric matrix; it is overwritten.
    ridge : array of n
        What is added to the diagonal.

    Examples
    --------
    >>> system = FactoredGram(np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones(2))
    >>> system.solve(np.array([4.0, 4.0])), system.product(np.array([1.0, 1.0]))
    (array([1., 1.]), array([3., 3.]))
    """

    exact = True

    def __init__(self, K: Array, ridge: Array):
        self._K, self._diagonal = K, K.diagonal().copy()
        K.flat[:: len(K) + 1] += ridge
        tiled.factor(K)

    def solve(self, right: Array) -> Array:
        """(K + diag(ridge))^-1 right."""
        return tiled.solve(self._K, right)

    @lazy
    def response(self) -> Array:
        """The solution for ones."""
        return self.solve(np.ones(len(self._K)))

    def restored(self) -> Array:
        """K in the memory that it came in; the factor is lost."""
        np.fill_diagonal(self._K, self._diagonal)
        tiled.mirror(self._K)
        return self._K

    def product(self, v: Array) -> Array:
        """K v, for a vector or for several as columns."""
        strips = slices(len(v), ROWS)

        def run(strip: slice) -> tuple[Array, Array]:
            middle, right = np.triu(self._K[strip, strip], 1), self._K[strip, strip.stop :]
            middle += middle.T + np.diag(self._diagonal[strip])
            return middle @ v[strip] + right @ v[strip.stop :], right.T @ v[strip]

        out = np.zeros(v.shape)
        for strip, (own, below) in zip(strips, parallel_map(run, strips), strict=True):
            out[strip] += own
            out[strip.stop :] += below
        return out


class ScaledGram:
    """The factor of  diag(ridge) + D^1/2 K D^1/2  beside an untouched K; renewed in the same memory for every D.

    Parameters
    ----------
    K : array n x n, C-ordered float64
        A symmetric positive semidefinite matrix.
    dtype : data type
        The precision of the factor: float32 takes half the time, for solutions that are refined.

    Examples
    --------
    >>> system = ScaledGram(np.eye(2))
    >>> system.renew(np.array([1.0, 2.0]), 1.0)
    >>> system.solve(np.array([2.0, 5.0]))
    array([1., 1.])
    """

    def __init__(self, K: Array, dtype: Any = np.float64):
        self._K, self.dtype = K, dtype
        self._factor = np.empty(K.shape, dtype)

    def renew(self, root: Array | None, ridge: Array | float) -> None:
        """Factor the matrix for D^1/2 = diag(root); None is the identity."""

        def fill(rows: slice) -> None:
            part, block = self._factor[rows, : rows.stop], self._K[rows, : rows.stop]
            if root is None:
                part[:] = block
            else:
                np.multiply(block, root[: rows.stop], out=part, casting="same_kind")
                part *= root[rows, None].astype(self.dtype)

        parallel_map(fill, slices(len(self._K), ROWS))
        self._factor.flat[:: len(self._K) + 1] += np.asarray(ridge, self.dtype)
        tiled.factor(self._factor)

    def solve(self, right: Array) -> Array:
        """The solution for one or several right-hand sides; about it in float32."""
        size = float(np.abs(right).max(initial=0.0)) or 1.0
        return size * tiled.solve(self._factor, right / size).astype(np.float64)


def inverse(matrix: Array) -> Array:
    """The inverse of a positive definite matrix, C-ordered, in its own memory; scaled to unit diagonal on the way.

    >>> inverse(np.array([[2.0, 1.0], [1.0, 2.0]])).round(4)
    array([[ 0.6667, -0.3333],
           [-0.3333,  0.6667]])
    """
    if len(places(lambda rows: np.logical_or.reduce(~np.isfinite(matrix[rows]), axis=1), len(matrix), 8 * len(matrix))):
        raise LinAlgError("the matrix is not finite")
    scale = 1.0 / np.sqrt(matrix.diagonal())
    scale_both(matrix, scale)
    tiled.factor(matrix)
    lapack.invert_product(matrix)
    tiled.mirror(matrix.T)
    scale_both(matrix, scale)
    return matrix


def scale_both(matrix: Array, scale: Array) -> None:
    """Multiply the rows and the columns of a square matrix by the same numbers, in its own memory.

    >>> matrix = np.ones((2, 2))
    >>> scale_both(matrix, np.array([1.0, 2.0]))
    >>> matrix
    array([[1., 2.],
           [2., 4.]])
    """

    def run(rows: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # a thread does not inherit what its caller ignores
            matrix[rows] *= scale
            matrix[rows] *= scale[rows, None]

    over_rows(run, len(matrix), 8 * len(matrix))
