"""One square array for a Gram matrix and a Cholesky factor: symmetric matrices need half of it each."""

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from empirisk.lazy import lazy
from empirisk.linalg.threads import in_threads, patiently

Array = NDArray[np.float64]
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
        self._diagonal = K.diagonal().copy()
        K.flat[:: len(K) + 1] += ridge
        # The transpose of a C-ordered array is what LAPACK calls its own, so nothing is copied.
        self._both, failed = patiently(lambda: lapack.dpotrf(K.T, lower=1, overwrite_a=1, clean=0), len(K))
        if failed:
            raise LinAlgError("the matrix is not positive definite to working precision")
        self._excess = self._diagonal - self._both.diagonal()

    def solve(self, right: Array) -> Array:
        """(K + diag(ridge))^-1 right."""
        return lapack.dpotrs(self._both, right, lower=1)[0]

    @lazy
    def response(self) -> Array:
        """The solution for ones."""
        return self.solve(np.ones(len(self._diagonal)))

    def restored(self) -> Array:
        """K in the memory that it came in; the factor is lost."""
        for start in range(0, len(self._both), ROWS):
            rows = slice(start, min(start + ROWS, len(self._both)))
            self._both[rows.stop :, rows] = self._both[rows, rows.stop :].T
            upper = np.triu(self._both[rows, rows], 1)
            self._both[rows, rows] = upper + upper.T
        np.fill_diagonal(self._both, self._diagonal)
        return self._both.T

    def product(self, v: Array) -> Array:
        """K v, for a vector or for several as columns."""
        if v.ndim == 1:
            return blas.dsymv(1.0, self._both, v, lower=0) + self._excess * v
        return blas.dsymm(1.0, self._both, v, lower=0) + self._excess[:, None] * v


class ScaledGram:
    """The factor of  ridge I + D^1/2 K D^1/2  beside an untouched K; renewed in the same memory for every D.

    Parameters
    ----------
    K : array n x n, C-ordered float64
        A symmetric positive semidefinite matrix.

    Examples
    --------
    >>> system = ScaledGram(np.eye(2))
    >>> system.renew(np.array([1.0, 2.0]), 1.0)
    >>> system.solve(np.array([2.0, 5.0]))
    array([1., 1.])
    """

    def __init__(self, K: Array):
        self._K = K
        self._factor = np.empty_like(K)

    def renew(self, root: Array, ridge: float) -> None:
        """Factor the matrix for D^1/2 = diag(root)."""
        rows = len(root)

        def fill(start: int) -> None:
            stop = min(start + ROWS, rows)
            part = self._factor[start:stop, :stop]
            np.multiply(self._K[start:stop, :stop], root[:stop], out=part)
            part *= root[start:stop, None]

        in_threads(fill, range(0, rows, ROWS))
        self._factor.flat[:: rows + 1] += ridge
        self._lapack, failed = patiently(lambda: lapack.dpotrf(self._factor.T, lower=0, overwrite_a=1, clean=0), rows)
        if failed:
            raise LinAlgError("the matrix is not positive definite to working precision")

    def solve(self, right: Array) -> Array:
        """The solution for one or several right-hand sides."""
        return lapack.dpotrs(self._lapack, right, lower=0)[0]


def inverse(matrix: Array) -> Array:
    """The inverse of a positive definite matrix, C-ordered, in its own memory; scaled to unit diagonal on the way.

    >>> inverse(np.array([[2.0, 1.0], [1.0, 2.0]])).round(4)
    array([[ 0.6667, -0.3333],
           [-0.3333,  0.6667]])
    """
    if not np.all(np.isfinite(matrix)):
        raise LinAlgError("the matrix is not finite")
    scale = 1.0 / np.sqrt(matrix.diagonal())
    matrix *= scale
    matrix *= scale[:, None]
    factor, failed = patiently(lambda: lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0), len(matrix))
    if failed:
        raise LinAlgError("the matrix is not positive definite to working precision")
    whole = patiently(lambda: lapack.dpotri(factor, lower=1, overwrite_c=1), len(matrix))[0].T
    for start in range(0, len(whole), ROWS):
        rows = slice(start, min(start + ROWS, len(whole)))
        whole[rows.stop :, rows] = whole[rows, rows.stop :].T
        upper = np.triu(whole[rows, rows])
        whole[rows, rows] = upper + np.triu(upper, 1).T
    whole *= scale
    whole *= scale[:, None]
    return whole
