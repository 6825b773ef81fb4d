"""Explicit feature maps: they give phi(x) itself."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.kernels.base import require_positive
from empirisk.validation import validate_data

FLOATS = (np.float64, np.float32)
MOST_HARMONICS = 10_000  # that a file may ask for: each makes two columns of one


class FloatMap(TransformerMixin, BaseEstimator):
    """A map that gives numbers in the precision of those that it takes."""

    takes_sparse: ClassVar[bool] = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Polynomial(FloatMap):
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

    _state = state.State(expansion_=state.part(PolynomialFeatures, columns="columns", width="width"))

    def __init__(self, degree: int | tuple[int, int] = 2, *, interaction_only: bool = False):
        self.degree = degree
        self.interaction_only = interaction_only

    @state.renewing
    def fit(self, X: ArrayLike, y: Any = None) -> "Polynomial":
        """Note the columns and list the monomials."""
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS)
        expansion = PolynomialFeatures(self.degree, interaction_only=self.interaction_only, include_bias=False)
        with config_context(assume_finite=True):
            self.expansion_ = expansion.fit(X)
        return self

    def transform(self, X: ArrayLike) -> Any:
        """The monomials of each row."""
        check_is_fitted(self)
        rows: Any = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, reset=False)
        if sparse.issparse(rows) and not rows.has_canonical_format:  # scikit-learn multiplies what is stored
            rows = rows.copy()
            rows.sum_duplicates()
        with config_context(assume_finite=True):
            return self.expansion_.transform(rows)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names such as ``x0 x1`` and ``x0^2``."""
        check_is_fitted(self)
        return self.expansion_.get_feature_names_out(_check_feature_names_in(self, input_features))


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
    def fit(self, X: ArrayLike, y: Any = None) -> "Periodic":
        """Check the parameters and note the columns."""
        if not (isinstance(self.harmonics, (int, np.integer)) and self.harmonics >= 1):
            raise EmpiriskError(f"harmonics={self.harmonics!r} must be a whole number of at least 1.")
        require_positive(self.period, "period")
        validate_data(self, X, dtype=FLOATS)
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        """The waves: for each column and multiple k, the sine and the cosine."""
        check_is_fitted(self)
        columns: NDArray = validate_data(self, X, dtype=FLOATS, reset=False)
        multiples = np.arange(1, self.harmonics + 1, dtype=columns.dtype)
        angles = columns[:, :, None] * (multiples * columns.dtype.type(2 * np.pi / self.period))
        return np.stack([np.sin(angles), np.cos(angles)], axis=3).reshape(len(columns), -1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names such as ``sin(2 x0)``: the multiple of the base frequency and the column."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array(
            [f"{wave}({k} {name})" for name in names for k in range(1, self.harmonics + 1) for wave in ("sin", "cos")],
            dtype=object,
        )
