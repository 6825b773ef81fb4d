"""Gram matrices that the user has computed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import state
from empirisk.errors import EmpiriskError, NotAKernel
from empirisk.kernels.base import Kernel
from empirisk.kernels.checks import FEW_DIGITS, check, refuse
from empirisk.kernels.items import as_matrix
from empirisk.kernels.tiles import result
from empirisk.linalg.blocks import slices

WHOLE = 2000  # rows whose eigenvalues take about a second; of more, half as many are looked at
ROWS = 256  # compared with their columns at a time, from the cache


class GramRows:
    """Rows of a Gram matrix, and the columns that are the items themselves, where they are among the columns.

    >>> GramRows(np.eye(3), np.arange(3))[1:].columns
    array([1, 2])
    """

    def __init__(self, values: NDArray, columns: NDArray | None):
        self.values, self.columns = values, columns

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, chosen) -> "GramRows":
        return GramRows(self.values[chosen], None if self.columns is None else self.columns[chosen])

    def astype(self, dtype: Any, copy: bool = True) -> "GramRows":
        """The rows in another precision."""
        return GramRows(self.values.astype(dtype, copy=copy), self.columns)


class Precomputed(Kernel):
    """A Gram matrix as the data: X holds k(x_i, x_j) for `fit` and k(x, x_j) of new x for `predict`.

    x_j are the samples of `fit`, in their order. Splitters of scikit-learn cut rows and columns alike. By name:
    ``features="precomputed"``. Up to 2000 samples the eigenvalues are checked, above that those of 1000 samples and the
    bounds k(x, z)^2 <= k(x, x) k(z, z) of all.

    Attributes
    ----------
    size_ : int
        Number of samples of `fit`.
    diagonal_ : array
        k(x, x) of the samples of `fit`, by which their matrix is told from one of as many new items.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> machine = er.SVM(features="precomputed").fit(X @ X.T, y)
    >>> machine.predict(np.array([[2.5]]) @ X.T)
    array([1])
    """

    _state = state.State(
        size_=state.optional(state.size("columns")), diagonal_=state.optional(state.array("f", "columns"))
    )

    takes = "gram"

    @state.renewing
    def fit(self, X, y=None):
        """Check that X is the Gram matrix of a kernel."""
        K = as_matrix(X, False)
        if K.shape[0] != K.shape[1]:
            raise EmpiriskError(
                f"X has shape {K.shape}; features='precomputed' needs the square matrix of all k(x_i, x_j) to fit."
            )
        if len(K) > WHOLE:
            _require_bounds(K)
            some = np.sort(np.random.default_rng(0).choice(len(K), WHOLE // 2, replace=False))
        refuse(check(K if len(K) <= WHOLE else K[np.ix_(some, some)]), "X")
        self.size_, self.diagonal_ = len(K), K.diagonal().copy()
        return self

    def prepare(self, X):
        if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind == "i":
            return GramRows(np.empty((len(X), 0)), X)  # samples of the fit, by number
        K = as_matrix(X, False)
        if K.shape[1] != getattr(self, "size_", K.shape[1]):
            raise EmpiriskError(
                f"X has {K.shape[1]} columns, but there were {self.size_} samples in fit; give k(x, x_j) for each."
            )
        same = K.shape[0] == K.shape[1] and np.array_equal(K.diagonal(), getattr(self, "diagonal_", K.diagonal()))
        return GramRows(K, np.arange(len(K)) if same else None)

    def between(self, A, B=None, out=None):
        columns = (A if B is None else B).columns
        if columns is None:
            raise EmpiriskError(
                "the similarities among new items are not in X; features='precomputed' knows k(x, x_j) only."
            )
        if A.values.shape[1] == 0:
            raise EmpiriskError(
                "the rows of X are not kept after fit; change a Gram matrix before fit, as with kernels.centre."
            )
        out = result(len(A), len(columns), A.values.dtype, out)
        return np.take(A.values, columns, axis=1, out=out)

    def diagonals(self, A):
        if A.columns is None:
            raise EmpiriskError("k(x, x) of new items is not in X; features='precomputed' knows k(x, x_j) only.")
        return self.diagonal_[A.columns] if hasattr(self, "diagonal_") else A.values[np.arange(len(A)), A.columns]


def _require_bounds(K: NDArray) -> None:
    """Raise unless K is symmetric with |k_ij| <= sqrt(k_ii k_jj), a block of rows at a time."""
    diagonal = K.diagonal()
    if diagonal.min() < 0:
        raise NotAKernel(f"X is not a kernel: its diagonal holds {diagonal.min():.3g}, but k(x, x) >= 0.")
    roots = np.sqrt(diagonal)
    largest = float(diagonal.max())
    for rows in slices(len(K), ROWS):
        if np.abs(K[rows] - K[:, rows].T).max() > FEW_DIGITS * largest:
            raise NotAKernel("X is not a kernel: it is not symmetric.")
        excess = np.abs(K[rows]) - roots[rows, None] * roots
        if excess.max() > FEW_DIGITS * largest:
            i, j = np.unravel_index(excess.argmax(), excess.shape)
            i += rows.start
            raise NotAKernel(f"X is not a kernel: k({i}, {j}) = {K[i, j]:.3g} exceeds sqrt(k({i}, {i}) k({j}, {j})).")
