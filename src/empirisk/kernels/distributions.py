"""Kernels on probability distributions that are known by samples."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk import state
from empirisk.errors import EmpiriskError, OutOfRange, Singular
from empirisk.kernels.algebra import Wrapper
from empirisk.kernels.base import Kernel, require_positive
from empirisk.kernels.items import Parts, Ragged, as_finite, as_matrix
from empirisk.kernels.tiles import by_rows, dtype_of, require_same_columns, result
from empirisk.kernels.vectors import Gaussian
from empirisk.kernels.wrappers import Cosine, inverse_roots
from empirisk.linalg.tiled import mirror

RANGE = 700.0  # exp of more is no number any more
POINTS = 4096  # on each side of a block of points


def _samples(X: Any) -> list[NDArray]:
    """Every sample as a table of points with the same number of columns."""
    if not hasattr(X, "__len__") or len(X) == 0:
        raise EmpiriskError("X must be a list of samples, each a table with one row per point; it holds none.")
    samples = [as_matrix(sample, False, f"X[{i}]") for i, sample in enumerate(X)]
    for i, sample in enumerate(samples):
        if sample.shape[1] != samples[0].shape[1]:
            raise EmpiriskError(
                f"X[{i}] has {sample.shape[1]} columns and X[0] has {samples[0].shape[1]}; samples must agree."
            )
    return samples


@dataclass(eq=False, repr=False)
class MeanEmbedding(Cosine, Wrapper):
    """The inner product of mean features: k(P, Q) = mean over x in P and z in Q of k(x, z).

    Parameters
    ----------
    kernel : Kernel or None
        The kernel on points; `Gaussian` if None.
    normalise : bool
        Whether to divide by sqrt(k(P, P) k(Q, Q)).

    Examples
    --------
    >>> er.kernels.MeanEmbedding(er.kernels.Linear())([[[1.0], [3.0]], [[2.0]]])
    array([[4., 4.],
           [4., 4.]])
    """

    _state = state.State(kernel=state.maybe(state.part(Kernel)))

    kernel: Kernel | None = None

    takes: ClassVar[str] = "samples"
    sparse: ClassVar[bool] = False
    pack = Kernel.pack

    def child(self, name):
        return Gaussian() if getattr(self, name) is None else super().child(name)

    @state.renewing
    def fit(self, X, y=None):
        self.check()
        self.kernel_ = clone(self.child("kernel")).fit(np.concatenate(_samples(X)))
        return self

    def plain_items(self, X):
        samples = _samples(X)
        return Ragged(self.child("kernel").prepare(np.concatenate(samples)), [len(sample) for sample in samples])

    def plain_block(self, A, B, out):
        others, symmetric = (A, True) if B is None else (B, False)
        out = result(len(A), len(others), dtype_of(A.values), out)
        for rows in A.ranges(POINTS):
            for columns in others.ranges(POINTS):
                if not (symmetric and columns[0] < rows[0]):
                    out[slice(*rows), slice(*columns)] = self._means(A, others, rows, columns)
        if symmetric:
            mirror(out)
        return out

    def _means(self, A: Ragged, B: Ragged, rows: tuple[int, int], columns: tuple[int, int]) -> NDArray:
        block = self.child("kernel").between(A.part(*rows), B.part(*columns))
        here, there = A.starts[rows[0] : rows[1]] - A.starts[rows[0]], B.starts[columns[0] : columns[1]]
        sums = np.add.reduceat(block, there - B.starts[columns[0]], axis=1, dtype=np.float64)
        sums = np.add.reduceat(sums, here, axis=0)
        return sums / np.multiply.outer(A.counts[slice(*rows)], B.counts[slice(*columns)])

    def plain_diagonals(self, A):
        values = [self._means(A, A, (i, i + 1), (i, i + 1))[0, 0] for i in range(len(A))]
        return np.array(values, dtype=dtype_of(A.values))

    def term_diagonals(self, A):
        samples, squares = A if self.normalise else (A, np.ones(len(A)))
        lengths = np.sqrt(self.child("kernel").term_diagonals(samples.values))
        # The mean over pairs of points is at most the square of the mean length of a point.
        return (np.add.reduceat(lengths, samples.starts[:-1]) / samples.counts * inverse_roots(squares)) ** 2


@dataclass(eq=False, repr=False)
class ExpectedLikelihood(Cosine):
    """The integral of p(x) q(x) for the Gaussian densities p and q fitted to two samples.

    k(P, Q) = N(mean_P - mean_Q; 0, covariance_P + covariance_Q). An item is a sample, or a tuple (mean, covariance).

    Parameters
    ----------
    ridge : float
        Added to the diagonal of every covariance; positive, because few points have a singular one.
    normalise : bool
        Whether to divide by sqrt(k(P, P) k(Q, Q)); advisable in many dimensions, where densities are tiny or huge.

    Examples
    --------
    >>> wide, far = ([0.0], [[1.0]]), ([3.0], [[1.0]])
    >>> er.kernels.ExpectedLikelihood(normalise=True)([wide, far]).round(4)
    array([[1.    , 0.1078],
           [0.1078, 1.    ]])
    """

    _state = state.State(ridge=state.number(0))

    takes = "samples"

    ridge: float = 0.01

    def check(self):
        require_positive(self.ridge, "ridge", zero=True)

    def prepare(self, X):
        self.check()
        moments = [_moments(item, i) for i, item in enumerate(X)] if hasattr(X, "__len__") else []
        if len({len(mean) for mean, _ in moments}) != 1:
            raise EmpiriskError("X must be a list of samples with the same number of columns, at least one.")
        means = np.array([mean for mean, _ in moments])
        covariances = np.array([covariance for _, covariance in moments]) + self.ridge * np.eye(means.shape[1])
        items = Parts(means, covariances)
        beyond = np.flatnonzero(np.abs(self._logarithms(items, items)) > RANGE)
        if len(beyond):
            raise OutOfRange(
                f"the density of X[{beyond[0]}] in {means.shape[1]} dimensions is beyond the range of floating-point "
                "numbers; use ExpectedLikelihood(normalise=True)."
            )
        return items

    def between(self, A, B=None, out=None):
        others = A if B is None else B
        require_same_columns(A.groups[0], others.groups[0])

        def fill_row(i: int, start: int, line: NDArray) -> None:
            line[start:] = np.exp(self._logarithms(A[i : i + 1], others[start:]))

        return by_rows(A, B, out, fill_row)

    def diagonals(self, A):
        return np.exp(self._logarithms(A, A))

    def _logarithms(self, A: Parts, B: Parts) -> NDArray:
        """log k of paired items; with ``normalise`` the norms are taken off here, where nothing overflows."""
        value = _log_overlap(A, B)
        return value - 0.5 * (_log_overlap(A, A) + _log_overlap(B, B)) if self.normalise else value


def _log_overlap(A: Parts, B: Parts) -> NDArray:
    """The logarithm of the integral of the product of two Gaussian densities, item by item."""
    (means, covariances), (other_means, other_covariances) = A, B
    both = covariances + other_covariances
    difference = means - other_means
    try:
        factor = np.linalg.cholesky(both)
    except np.linalg.LinAlgError as problem:
        raise Singular("a covariance in X is singular or not positive; choose a larger ridge.") from problem
    white = np.linalg.solve(factor, difference[..., None])[..., 0]
    logarithm = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * (white**2).sum(axis=1) - logarithm - 0.5 * difference.shape[1] * np.log(2 * np.pi)


def _moments(item: Any, place: int) -> tuple[NDArray, NDArray]:
    """Mean and covariance of a sample, or those given."""
    if not (isinstance(item, tuple) and len(item) == 2):
        sample = as_matrix(item, False, f"X[{place}]").astype(np.float64, copy=False)
        return sample.mean(axis=0), np.atleast_2d(np.cov(sample, rowvar=False, bias=True))
    mean = as_finite(item[0], f"the mean in X[{place}]").astype(np.float64, copy=False)
    covariance = as_matrix(item[1], False, f"the covariance in X[{place}]").astype(np.float64)
    if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)) or not np.array_equal(covariance, covariance.T):
        raise EmpiriskError(f"X[{place}] must be (mean, covariance) with a symmetric matrix of matching size.")
    return mean, covariance
