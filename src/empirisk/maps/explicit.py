"""Explicit feature maps: they give phi(x) itself."""

from __future__ import annotations

from math import comb, factorial, prod, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import TransformerMixin
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from empirisk import state
from empirisk.errors import EmpiriskError, OutOfRange
from empirisk.kernels.base import require_positive, require_whole
from empirisk.names import Estimator
from empirisk.settings import require
from empirisk.validation import validate_data

FLOATS = (np.float64, np.float32)
MOST_FACTORS = 100  # of a monomial: the factorials of more are no numbers
MOST_HARMONICS = 10_000  # that a file may ask for: each makes two columns of one


class FloatMap(TransformerMixin, Estimator):
    """A map that gives numbers in the precision of those that it takes."""

    takes_sparse: ClassVar[bool] = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Monomials(FloatMap):
    """Products of powers of the columns, by scikit-learn's `PolynomialFeatures`."""

    _state = state.State(expansion_=state.part(PolynomialFeatures, columns="columns", width="width"))

    def _expansion(self) -> PolynomialFeatures:
        """Which of them."""
        raise NotImplementedError

    def _require(self, rows: int, columns: int) -> None:
        """Raise where a table of that shape would have too many."""

    @state.renewing
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Note the columns and list the monomials."""
        rows: Any = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS)
        self._require(1 if sparse.issparse(rows) else rows.shape[0], rows.shape[1])
        expansion = self._expansion()
        with config_context(assume_finite=True):
            self.expansion_ = expansion.fit(rows)
        return self

    def transform(self, X: ArrayLike) -> Any:
        """The monomials of each row."""
        check_is_fitted(self)
        rows: Any = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, reset=False)
        if sparse.issparse(rows) and not rows.has_canonical_format:  # scikit-learn multiplies what is stored
            rows = rows.copy()
            rows.sum_duplicates()
        self._require(1 if sparse.issparse(rows) else rows.shape[0], rows.shape[1])
        with config_context(assume_finite=True), np.errstate(over="ignore"):
            return _without_overflow(self.expansion_.transform(rows))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names such as ``x0 x1`` and ``x0^2``."""
        check_is_fitted(self)
        return self.expansion_.get_feature_names_out(_check_feature_names_in(self, input_features))


def _without_overflow(monomials: Any) -> Any:
    """The products, if all of them are numbers."""
    values = monomials.data if sparse.issparse(monomials) else monomials
    # The sum is finite for most data and costs one pass without a temporary.
    with np.errstate(over="ignore", invalid="ignore"):
        quick = np.isfinite(values.sum(dtype=np.float64))
    if not quick and not np.isfinite(values).all():
        raise OutOfRange("Products of the columns of X overflow; divide X by its size, or lower the degree.")
    return monomials


class Polynomial(Monomials):
    """All monomials of the columns up to a degree: phi(x) = (x_1, ..., x_d, x_1^2, x_1 x_2, ...).

    scikit-learn's `PolynomialFeatures` without the constant, which the intercept of a machine stands for.

    Parameters
    ----------
    degree : int or (int, int)
        Largest degree, or smallest and largest.
    interaction_only : bool
        Whether powers of a single column are left out.

    Attributes
    ----------
    expansion_ : PolynomialFeatures
        The fitted expansion; its ``powers_`` tell the exponents of each monomial.

    Examples
    --------
    >>> er.maps.Polynomial(2).fit_transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> square = er.LeastSquares(features=er.maps.Polynomial(2)).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> square.predict([[3.0]]).round(6)
    array([9.])
    """

    def __init__(self, degree: int | tuple[int, int] = 2, *, interaction_only: bool = False):
        self.degree = degree
        self.interaction_only = interaction_only

    def _expansion(self) -> PolynomialFeatures:
        return PolynomialFeatures(self.degree, interaction_only=self.interaction_only, include_bias=False)


class PolynomialKernel(Monomials):
    """The explicit map of `kernels.Polynomial`: <phi(x), phi(z)> = (<x, z> + constant)^degree.

    phi holds the monomials x^a of total degree |a| <= degree, each times the root of its multinomial coefficient

        degree! / (a_1! ... a_d! (degree - |a|)!)  *  constant^(degree - |a|),

    so that a linear machine on it is the kernel machine, with a weight for every monomial to read.

    Parameters
    ----------
    degree : int
        The power, at least 1.
    constant : float
        At least 0; with 0 only monomials of exactly that degree remain.

    Attributes
    ----------
    expansion_ : PolynomialFeatures
        The monomials; its ``powers_`` tell the exponents of each.
    weights_ : array
        The roots, one for each monomial.

    Examples
    --------
    >>> phi = er.maps.PolynomialKernel(2).fit([[1.0, 2.0]])
    >>> phi.transform([[1.0, 2.0]]).round(3)
    array([[1.   , 1.414, 2.828, 1.   , 2.828, 4.   ]])
    >>> (phi.transform([[1.0, 2.0]]) @ phi.transform([[3.0, 0.0]]).T).round(6)
    array([[16.]])
    """

    _state = state.State(
        degree=state.whole(1, MOST_FACTORS), constant=state.number(0), weights_=state.array("f8", "width", low=0)
    )

    def __init__(self, degree: int = 2, constant: float = 1.0):
        self.degree = degree
        self.constant = constant

    def _expansion(self) -> PolynomialFeatures:
        least = 0 if self.constant > 0 else int(self.degree)
        return PolynomialFeatures((least, int(self.degree)), include_bias=self.constant > 0)

    def fit(self, X: ArrayLike, y: Any = None) -> PolynomialKernel:
        """Note the columns, list the monomials and weigh them."""
        require_whole(self.degree, "degree", 1, MOST_FACTORS)
        require_positive(self.constant, "constant", zero=True)
        super().fit(X)
        self.weights_ = np.array([self._weight(powers) for powers in self.expansion_.powers_])
        return self

    def transform(self, X: ArrayLike) -> Any:
        """phi(x) of each row."""
        monomials = super().transform(X)
        weights = self.weights_.astype(monomials.dtype)
        if sparse.issparse(monomials):
            return _without_overflow(monomials.multiply(weights).asformat(monomials.format))
        with np.errstate(over="ignore"):
            return _without_overflow(monomials * weights)

    def _require(self, rows: int, columns: int) -> None:
        """Raise `TooLarge` where the monomials of so many rows, or their exponents, have no room."""
        degree = int(self.degree)
        count = comb(columns + degree, degree) if self.constant > 0 else comb(columns + degree - 1, degree)
        require(
            8 * count * max(rows, columns),
            f"the map of PolynomialKernel, with {count} monomials of {columns} columns,",
            f"use features=kernels.Polynomial({degree}, {self.constant:g}), which has the same machine without them",
        )

    def _weight(self, powers: NDArray) -> float:
        """The root of the coefficient of one monomial; whole numbers are divided as such."""
        left = int(self.degree) - int(powers.sum())
        coefficient = factorial(int(self.degree)) // (prod(factorial(int(power)) for power in powers) * factorial(left))
        return sqrt(coefficient) * sqrt(float(self.constant)) ** left


class Periodic(FloatMap):
    """Waves of every column: phi(x) = (sin(2 pi k x / period), cos(2 pi k x / period)) for k = 1..harmonics.

    With the default period of 2 pi these are sin(k x) and cos(k x). Of numbers a billion times the period the waves
    know few digits.

    Parameters
    ----------
    harmonics : int
        Number of multiples of the base frequency.
    period : float
        Length after which the features repeat.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> er.maps.Periodic(harmonics=1).fit_transform([[0.0]])
    array([[0., 1.]])
    """

    _state = state.State(
        harmonics=state.whole(1, MOST_HARMONICS),
        period=state.number(1e-300),
        n_features_in_=state.size("columns"),
        sizes={"width": lambda its: 2 * its["harmonics"] * its["n_features_in_"]},
    )

    takes_sparse = False

    def __init__(self, harmonics: int = 3, period: float = 2 * np.pi):
        self.harmonics = harmonics
        self.period = period

    @state.renewing
    def fit(self, X: ArrayLike, y: Any = None) -> Periodic:
        """Check the parameters and note the columns."""
        if not (isinstance(self.harmonics, (int, np.integer)) and self.harmonics >= 1):
            raise EmpiriskError(f"harmonics={self.harmonics!r} must be a whole number of at least 1.")
        require_positive(self.period, "period")
        validate_data(self, X, dtype=FLOATS)
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The waves: for each column and multiple k, the sine and the cosine."""
        check_is_fitted(self)
        columns: NDArray = validate_data(self, X, dtype=FLOATS, reset=False)
        multiples = np.arange(1, self.harmonics + 1, dtype=columns.dtype)
        angles = columns[:, :, None] * (multiples * columns.dtype.type(2 * np.pi / self.period))
        return np.stack([np.sin(angles), np.cos(angles)], axis=3).reshape(len(columns), -1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names such as ``sin(2 x0)``: the multiple of the base frequency and the column."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array(
            [f"{wave}({k} {name})" for name in names for k in range(1, self.harmonics + 1) for wave in ("sin", "cos")],
            dtype=object,
        )
