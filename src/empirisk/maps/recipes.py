"""One-line recipes: scikit-learn's steps around a machine, for features, targets and texts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

from empirisk.errors import EmpiriskError


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
    return make_pipeline(FunctionTransformer(_log, feature_names_out="one-to-one"), machine)


def box_cox_features(machine: Any, *, positive: bool = True) -> Pipeline:
    """The machine on columns made as normal as a power can make them, and standardised.

        (x^lambda - 1) / lambda,  with the likeliest lambda for each column

    Parameters
    ----------
    machine : estimator
        What comes after.
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
    return make_pipeline(PowerTransformer(method="box-cox" if positive else "yeo-johnson"), machine)


def log_target(machine: Any) -> TransformedTargetRegressor:
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
    return TransformedTargetRegressor(machine, func=_log_positive, inverse_func=np.exp, check_inverse=False)


def box_cox_target(machine: Any) -> TransformedTargetRegressor:
    """The regressor on the Box-Cox transform of a positive y, standardised; predictions are turned back.

        (y^lambda - 1) / lambda,  with the likeliest lambda

    Parameters
    ----------
    machine : regressor
        Fitted to the transformed targets.

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
    return TransformedTargetRegressor(machine, transformer=_PowerOfTarget(method="box-cox"), check_inverse=False)


def bag_of_words(machine: Any, *, words: int | None = None, weighted: bool = True, pairs: bool = False) -> Pipeline:
    """The machine on how often each word occurs in a text.

    Parameters
    ----------
    machine : estimator
        What comes after; it must take sparse tables.
    words : int or None
        Keep the most frequent words only.
    weighted : bool
        Whether counts are weighted by how rare a word is, and texts scaled to length 1 (tf-idf).
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
    counter = TfidfVectorizer if weighted else CountVectorizer
    return make_pipeline(counter(max_features=words, ngram_range=(1, 2 if pairs else 1)), machine)


class _PowerOfTarget(PowerTransformer):
    """Box-Cox of a target; predictions beyond what any target can become turn into the nearest target seen."""

    def fit(self, X, y=None):
        self.seen_ = float(np.min(X)), float(np.max(X))
        return super().fit(X, y)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)

    def inverse_transform(self, X):
        y = super().inverse_transform(X)
        # (y^lambda - 1) / lambda ends at -1 / lambda: above for a negative power, below for a positive one.
        return np.where(np.isfinite(y), y, self.seen_[int(self.lambdas_[0] < 0)])


def _log(X: ArrayLike) -> np.ndarray:
    X = np.asarray(X, dtype=float)
    if np.any(X <= -1):
        raise EmpiriskError("log_features needs numbers above -1; shift the column, or use box_cox_features.")
    return np.log1p(X)


def _log_positive(y: ArrayLike) -> np.ndarray:
    y = np.asarray(y, dtype=float)
    if np.any(y <= 0):
        raise EmpiriskError("log_target needs positive targets; shift y, or leave it as it is.")
    return np.log(y)
