"""One-line recipes: scikit-learn's steps around a machine, for features, targets and texts."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import boxcox, inv_boxcox
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.parts import is_finite, is_number
from empirisk.validation import validate_data

if TYPE_CHECKING:
    from sklearn.compose import TransformedTargetRegressor


def standardised(machine: Any, *, sparse: bool = False) -> Pipeline:
    """The machine on columns of mean 0 and standard deviation 1, learned from the training rows.

    Parameters
    ----------
    machine : estimator
        What comes after.
    sparse : bool
        For sparse tables: columns are scaled, and zeros stay zeros.

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> er.maps.standardised(er.SVM()).fit([[0.0, 1e6], [1.0, 2e6], [2.0, 3e6]], [0, 1, 1]).predict([[2.0, 3e6]])
    array([1])
    """
    return make_pipeline(StandardScaler(with_mean=not sparse), machine)


def log_features(machine: Any) -> Pipeline:
    """The machine on log(1 + x) of every column, for counts and amounts.

    Parameters
    ----------
    machine : estimator
        What comes after.

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> X = np.array([[0.0], [9.0], [99.0], [999.0]])
    >>> er.maps.log_features(er.LeastSquares()).fit(X, [0.0, 1.0, 2.0, 3.0]).predict([[9999.0]]).round(6)
    array([4.])
    """
    return make_pipeline(Logarithm(), machine)


def box_cox_features(machine: Any, *, power: float | None = None, positive: bool = True) -> Pipeline:
    """The machine on columns made as normal as a power can make them, and standardised.

        (x^lambda - 1) / lambda,  with the likeliest lambda for each column, or the one given

    Parameters
    ----------
    machine : estimator
        What comes after.
    power : float or None
        lambda for all columns; None takes the likeliest for each.
    positive : bool
        Whether all numbers are positive, as Box-Cox needs; False takes Yeo-Johnson's form for numbers of both signs.

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> X = np.exp(np.random.default_rng(0).normal(size=(50, 1)))
    >>> er.maps.box_cox_features(er.Ridge()).fit(X, np.log(X[:, 0])).score(X, np.log(X[:, 0])) > 0.95
    True
    """
    if positive:
        return make_pipeline(BoxCox(power), machine)
    if power is not None:
        raise EmpiriskError(
            f"power={power!r} is for Box-Cox; leave positive=True, or power=None for Yeo-Johnson's form."
        )
    return make_pipeline(PowerTransformer(method="yeo-johnson"), machine)


def log_target(machine: Any) -> "TransformedTargetRegressor":
    """The regressor on log(y), for positive targets; predictions are turned back.

    Parameters
    ----------
    machine : regressor
        Fitted to the logarithms.

    Returns
    -------
    TransformedTargetRegressor

    Examples
    --------
    >>> X = np.arange(5.0)[:, None]
    >>> er.maps.log_target(er.LeastSquares()).fit(X, np.exp(X[:, 0])).predict([[5.0]]).round(2)
    array([148.41])
    """
    # Checking the inverse on a part of y would add nothing to logarithms.
    from sklearn.compose import TransformedTargetRegressor  # seldom needed, and slow to import

    return TransformedTargetRegressor(machine, transformer=Logarithm(plus_one=False), check_inverse=False)


def box_cox_target(machine: Any, *, power: float | None = None) -> "TransformedTargetRegressor":
    """The regressor on the Box-Cox transform of a positive y, standardised; predictions are turned back.

        (y^lambda - 1) / lambda,  with the likeliest lambda, or the one given

    Parameters
    ----------
    machine : regressor
        Fitted to the transformed targets.
    power : float or None
        lambda; None takes the likeliest.

    Returns
    -------
    TransformedTargetRegressor

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> machine = er.maps.box_cox_target(er.LeastSquares()).fit(X, np.exp(X[:, 0]))
    >>> machine.score(X, np.exp(X[:, 0])) > 0.99
    True
    """
    from sklearn.compose import TransformedTargetRegressor  # seldom needed, and slow to import

    return TransformedTargetRegressor(machine, transformer=BoxCox(power), check_inverse=False)


def bag_of_words(
    machine: Any, *, words: int | None = None, weighted: bool = True, binary: bool = False, pairs: bool = False
) -> Pipeline:
    """The machine on how often each word occurs in a text, or on whether it does.

    Parameters
    ----------
    machine : estimator
        What comes after; it must take sparse tables.
    words : int or None
        Keep the most frequent words only.
    weighted : bool
        Whether counts are weighted by how rare a word is, and texts scaled to length 1 (tf-idf).
    binary : bool
        Whether a word counts once, however often it occurs; with ``weighted=False`` the numbers are 0 and 1.
    pairs : bool
        Whether pairs of neighbouring words count as words too.

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> texts = ["good film", "bad film", "good play", "bad play"]
    >>> er.maps.bag_of_words(er.SVM()).fit(texts, [1, 0, 1, 0]).predict(["a good day"])
    array([1])
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer  # seldom needed, slow to import

    counter = TfidfVectorizer if weighted else CountVectorizer
    return make_pipeline(counter(max_features=words, binary=binary, ngram_range=(1, 2 if pairs else 1)), machine)


class Logarithm(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """log(1 + x) of every column, or log(x).

    Parameters
    ----------
    plus_one : bool
        Whether one is added first, so that zero is allowed.

    Examples
    --------
    >>> from empirisk.maps.recipes import Logarithm
    >>> Logarithm().fit_transform([[0.0], [np.e - 1]]).ravel()
    array([0., 1.])
    """

    _state = state.State(
        plus_one=state.flag(), n_features_in_=state.size("columns"), sizes={"width": lambda its: its["n_features_in_"]}
    )

    def __init__(self, plus_one: bool = True):
        self.plus_one = plus_one

    @state.renewing
    def fit(self, X: ArrayLike, y: Any = None) -> "Logarithm":
        """Note the columns, and refuse numbers that have no logarithm."""
        self._checked(X, reset=True)
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The logarithms."""
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        return np.log1p(checked) if self.plus_one else np.log(checked)

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """The numbers of which these are the logarithms."""
        check_is_fitted(self)
        return np.expm1(X) if self.plus_one else np.exp(X)

    def _checked(self, X: ArrayLike, reset: bool) -> NDArray:
        checked: NDArray = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        if self.plus_one and np.any(checked <= -1):
            raise EmpiriskError("Negative values in data: log_features needs numbers above -1; shift the column.")
        if not self.plus_one and np.any(checked <= 0):
            raise EmpiriskError("log_target needs positive targets; shift y, or leave it as it is.")
        return checked

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only, tags.input_tags.allow_nan = True, True
        return tags


class BoxCox(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """(x^lambda - 1) / lambda of every column, log(x) for lambda = 0, then mean 0 and standard deviation 1.

    Parameters
    ----------
    power : float or None
        lambda; None takes the likeliest for each column.

    Attributes
    ----------
    lambdas_, mean_, scale_ : arrays
        The power of each column, and mean and standard deviation after it.
    seen_ : array, 2 x columns
        Smallest and largest number of each column.

    Examples
    --------
    >>> from empirisk.maps.recipes import BoxCox
    >>> map = BoxCox(power=0.5).fit([[1.0], [4.0], [9.0]])
    >>> map.inverse_transform(map.transform([[16.0]])).round(6)
    array([[16.]])
    """

    _state = state.State(
        n_features_in_=state.size("columns"),
        lambdas_=state.array("f8", "columns"),
        mean_=state.array("f8", "columns"),
        scale_=state.array("f8", "columns", low=np.finfo(np.float64).tiny),
        seen_=state.array("f8", 2, "columns", low=0),
        sizes={"width": lambda its: its["n_features_in_"]},
    )

    def __init__(self, power: float | None = None):
        self.power = power

    @state.renewing
    def fit(self, X: ArrayLike, y: Any = None) -> "BoxCox":
        """Find the powers, and the mean and deviation after them."""
        X = self._checked(X, reset=True)
        if self.power is None:
            self.lambdas_ = PowerTransformer(method="box-cox", standardize=False).fit(X).lambdas_
        elif is_number(self.power) and is_finite(self.power):
            self.lambdas_ = np.full(X.shape[1], float(self.power))
        else:
            raise EmpiriskError(f"power={self.power!r} must be a number, or None for the likeliest.")
        powered = boxcox(X, self.lambdas_)
        self.mean_, spread = powered.mean(axis=0), powered.std(axis=0)
        # A column whose deviation is rounding has one value.
        self.scale_ = np.where(spread > 10 * np.finfo(np.float64).eps * np.abs(self.mean_), spread, 1.0)
        self.seen_ = np.stack([X.min(axis=0), X.max(axis=0)])
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The powers, standardised."""
        check_is_fitted(self)
        return (boxcox(self._checked(X, reset=False), self.lambdas_) - self.mean_) / self.scale_

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """The numbers that have these powers; beyond what any number can become, the nearest one seen."""
        check_is_fitted(self)
        x = inv_boxcox(np.asarray(X) * self.scale_ + self.mean_, self.lambdas_)
        # (x^lambda - 1) / lambda ends at -1 / lambda: above for a negative power, below for a positive one.
        return np.where(np.isfinite(x), x, self.seen_[(self.lambdas_ < 0).astype(int), np.arange(len(self.lambdas_))])

    def _checked(self, X: ArrayLike, reset: bool) -> NDArray:
        checked: NDArray = validate_data(self, X, dtype=np.float64, reset=reset)
        if np.any(checked <= 0):
            raise EmpiriskError("Box-Cox needs positive numbers; shift them, or use positive=False.")
        return checked

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
