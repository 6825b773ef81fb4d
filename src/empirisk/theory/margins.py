"""Bounds from margins and votes: support vector machines, AdaBoost, majorities, nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.formats import percent
from empirisk.theory.bound import (
    Bound,
    check_above_zero,
    check_open,
    check_rate,
    check_whole,
    error_bound_of,
)
from empirisk.theory.vc import kernel_features, vc_bound, vc_dimension
from empirisk.validation import check_array

Array = NDArray[np.float64]
ROUNDING = 1e-6  # of a reach R^2 / margin^2: radius and margin are known to about so many digits


def margin_dimension(radius: float, margin: float, features: float = math.inf) -> Bound:
    """The VC dimension of hyperplanes that keep a margin from rows in a ball.

        h <= min(R^2 / margin^2, d) + 1

    Parameters
    ----------
    radius : float
        Radius R of a ball that holds the rows.
    margin : float
        Distance from the hyperplane to the nearest row.
    features : float
        Columns d; infinite for a kernel.

    Returns
    -------
    Bound
        ``value`` bounds the VC dimension; never vacuous.

    Examples
    --------
    >>> er.theory.margin_dimension(radius=2.0, margin=0.5, features=100).value
    17.0
    """
    radius, margin = check_above_zero("radius", radius), check_above_zero("margin", margin)
    value = min((radius / margin) ** 2, check_above_zero("features", features)) + 1
    return Bound(
        value,
        math.isinf(value),
        f"Hyperplanes with a margin of {margin:.4g} among rows within {radius:.4g} of one point have a VC dimension of "
        f"at most {value:.4g}.",
    )


def margin_bound(machine: Any, X: ArrayLike, y: ArrayLike, delta: float = 0.05) -> Bound:
    """The true error of a fitted SVM, from its margin on the training rows.

        share of rows with y f(x) < 1  +  sqrt( (h (log(2n / h) + 1) + log(4 h (h + 1) / delta)) / n ),
        h = ceil(min(R^2 / margin^2, d)) + 1,    margin = 1 / |w|

    The data chose the margin, and with it h; h (h + 1) pays for that, so that the bound holds for all h at once.

    Parameters
    ----------
    machine : fitted classifier
        A machine for two classes with one hyperplane, linear or in the space of a kernel.
    X, y : arrays
        Its training rows.
    delta : float
        The probability with which the bound may fail.

    Returns
    -------
    Bound

    Examples
    --------
    >>> X = np.repeat([[-2.0, 0.0], [2.0, 0.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> er.theory.margin_bound(er.SVM(C=1.0).fit(X, y), X, y).vacuous
    False
    """
    check_is_fitted(machine)
    if len(machine.classes_) != 2:
        raise EmpiriskError(f"margin_bound needs two classes, but the machine knows {len(machine.classes_)}.")
    length, radius, features = _geometry(machine, X)
    if length == 0:
        raise EmpiriskError("margin_bound needs a hyperplane, but all weights of the machine are zero; raise C.")
    signs = np.where(np.asarray(y) == machine.classes_[1], 1.0, -1.0)
    # Rows on the margin itself are kept by it, up to the accuracy of the fit.
    missed = float(np.mean(signs * machine.decision_function(X) < 1 - 1e-6))
    reach = min((radius * length) ** 2, features)
    # A reach that is whole but for rounding counts as that number.
    dimension = math.ceil(reach * (1 - ROUNDING)) + 1 if math.isfinite(reach) else reach
    found = vc_bound(dimension, len(signs), missed, check_open("delta", delta) / (dimension * (dimension + 1)))
    return error_bound_of(
        found.value,
        f"A margin of {1 / length:.4g} among rows within {radius:.4g} of one point stands for a VC dimension of "
        f"at most {dimension:.4g}, and {percent(missed)} of {len(signs)} rows miss the margin: the true error is",
        delta,
    )


def _geometry(machine: Any, X: ArrayLike) -> tuple[float, float, float]:
    """|w|, the radius of a ball with the rows, and the number of features."""
    if not hasattr(machine, "coef_"):
        weights = np.atleast_2d(machine.dual_coef_)[0]
        norm2 = float(weights @ machine.features_(machine.support_vectors_) @ weights)
        radius = math.sqrt(float(np.max(machine.features_.diagonal(X))))
        return math.sqrt(max(norm2, 0.0)), radius, kernel_features(machine)
    weights = np.atleast_2d(machine.coef_)
    if len(weights) != 1:
        raise EmpiriskError("margin_bound needs one hyperplane; use a loss that is not joint over the classes.")
    rows = X if machine.features is None else machine.features_.transform(X)
    rows = np.asarray(check_array(rows), dtype=np.float64)
    radius = float(np.linalg.norm(rows - (rows.max(axis=0) + rows.min(axis=0)) / 2, axis=1).max())
    return float(np.linalg.norm(weights)), radius, rows.shape[1]


def adaboost_bound(edges: Any) -> Bound:
    """What the training error of AdaBoost cannot exceed.

        prod_t sqrt(1 - 4 gamma_t^2)  <=  exp(-2 sum_t gamma_t^2),     gamma_t = 1/2 - error of round t

    Parameters
    ----------
    edges : array, or a fitted AdaBoostClassifier
        The edges gamma, or the machine that knows its own.

    Returns
    -------
    Bound
        ``value`` is the product.

    Examples
    --------
    >>> round(er.theory.adaboost_bound([0.3, 0.2, 0.1]).value, 4)
    0.7184
    """
    if hasattr(edges, "bound_"):
        check_is_fitted(edges)
        value, gammas = float(edges.bound_[-1]), np.asarray(edges.edges_)
    else:
        gammas = np.atleast_1d(np.asarray(edges, dtype=float))
        if gammas.ndim != 1 or len(gammas) == 0 or not np.all(np.abs(gammas) <= 0.5):
            raise EmpiriskError("edges must be numbers from -1/2 to 1/2, one for each round: 1/2 minus its error.")
        value = float(np.prod(np.sqrt(1 - 4 * gammas**2)))
    loose = percent(math.exp(-2 * float(np.sum(gammas**2))))
    more = f", and by the sum of squared edges at most {loose}"
    return error_bound_of(value, f"After {len(gammas)} rounds the training error is", more=more)


def adaboost_margin_bound(
    margins: Any,
    X: Any = None,
    y: Any = None,
    *,
    margin: float = 0.5,
    dimension: float | None = None,
    delta: float = 0.05,
) -> Bound:
    """The true error of a weighted vote, from its margins on the training rows; the number of rounds plays no part.

        share of rows with y f(x) / sum |alpha| <= margin  +  2 / margin * sqrt( 2 h log(e n / h) / n )
        +  sqrt( log(1 / delta) / (2 n) ),      h the VC dimension of the weak learners

    Parameters
    ----------
    margins : array, or a fitted AdaBoostClassifier for two classes
        The margins of the training rows, from -1 to 1, or the machine with its training rows ``X`` and ``y``.
    X, y : arrays
        The training rows of a machine.
    margin : float
        The margin to judge by, chosen before the data are seen.
    dimension : float
        VC dimension h of the weak learners; found for trees.
    delta : float
        The probability with which the bound may fail.

    Returns
    -------
    Bound

    Examples
    --------
    >>> found = er.theory.adaboost_margin_bound(np.full(100_000, 0.8), dimension=2)
    >>> round(found.value, 4)
    0.0908
    """
    if hasattr(margins, "estimators_"):
        machine = margins
        if X is None or y is None or len(machine.classes_) != 2:
            raise EmpiriskError("adaboost_margin_bound of a machine needs two classes and its training rows X and y.")
        margins = machine.margins(X, y)
        dimension = dimension or max(vc_dimension(member).value for member in machine.estimators_)
    margins = np.asarray(margins, dtype=float)
    # Shares of votes add up to one but for rounding.
    if margins.ndim != 1 or len(margins) == 0 or not np.all(np.abs(margins) <= 1 + 1e-9):
        raise EmpiriskError("margins must be numbers from -1 to 1, one for each training row.")
    margin, delta = check_open("margin", margin), check_open("delta", delta)
    n, h = len(margins), check_above_zero("dimension", dimension)
    small = float(np.mean(margins <= margin))
    rich = 2 / margin * math.sqrt(2 * h * math.log(math.e * max(n / h, 1)) / n)
    value = small + rich + math.sqrt(math.log(1 / delta) / (2 * n))
    what = f"{percent(small)} of {n} rows have a margin of at most {margin:.3g} in the vote: its true error is"
    return error_bound_of(value, what, delta)


def majority_vote(error: float | Sequence[float], voters: int | None = None) -> Bound:
    """The error of a majority of independent voters.

        P[more than half are wrong] = sum_{k > T/2} binomial(T, k) e^k (1 - e)^(T - k),  a tie counting half

    For e < 1/2 that is at most exp(-T (1/2 - e)^2); see `majority_vote_bound`.

    Parameters
    ----------
    error : float or array
        The error rate e of each voter, or a rate for each.
    voters : int
        Their number T, with one rate for all.

    Returns
    -------
    Bound
        Vacuous where the majority is no better than its voters on average.

    Examples
    --------
    >>> round(er.theory.majority_vote(0.3, voters=11).value, 4)
    0.0782
    """
    rates = np.atleast_1d(np.asarray(error, dtype=float))
    if rates.ndim != 1 or len(rates) == 0 or not np.all((rates >= 0) & (rates <= 1)):
        raise EmpiriskError(f"error={error!r} must be a rate from 0 to 1, or one for each voter.")
    if voters is not None:
        if len(rates) != 1:
            raise EmpiriskError("voters is for one error rate shared by all; leave it out with a rate for each voter.")
        rates = np.full(check_whole("voters", voters), rates[0])
    count, wrong = len(rates), np.arange(len(rates) + 1)
    if np.all(rates == rates[0]):
        chances = binom.pmf(wrong, count, rates[0])
    else:
        chances = reduce(np.convolve, np.column_stack([1 - rates, rates]))
    value = float(chances[2 * wrong > count].sum() + chances[2 * wrong == count].sum() / 2)
    vacuous = count > 1 and value >= rates.mean()
    note = "; no better than one voter, since they are wrong too often" if vacuous else ""
    return Bound(
        value,
        vacuous,
        f"A majority of {count} independent voters with an error of {percent(float(rates.mean()))} is wrong with "
        f"probability {percent(value)}{note}.",
    )


def majority_vote_bound(error: float, voters: int) -> Bound:
    """How fast the error of a majority of independent voters falls with their number.

        P[more than half are wrong] <= exp(-T (1/2 - e)^2),     e < 1/2

    `majority_vote` is the probability itself.

    Parameters
    ----------
    error : float
        The error rate e of each voter.
    voters : int
        Their number T.

    Returns
    -------
    Bound
        Vacuous where the voters are wrong at least every other time.

    Examples
    --------
    >>> round(er.theory.majority_vote_bound(0.3, voters=101).value, 4)
    0.0176
    """
    error, voters = check_rate("error", error), check_whole("voters", voters)
    value = math.exp(-voters * max(0.5 - error, 0.0) ** 2)
    what = f"A majority of {voters} independent voters with an error of {percent(error)} is wrong with probability"
    return error_bound_of(value, what)


def cover_hart(bayes: float | None = None, neighbour: float | None = None, classes: int = 2) -> Bound:
    """Nearest neighbour against the best possible, with many rows.

        R* <= R <= R* (2 - K / (K - 1) R*),     2 R* (1 - R*) for two classes

    Parameters
    ----------
    bayes : float
        The error R* of the best classifier: bounds that of the nearest neighbour from above.
    neighbour : float
        The error R of the nearest neighbour: bounds that of the best classifier from below.
    classes : int
        Number of classes K.

    Returns
    -------
    Bound
        ``value`` is the upper bound on R given R*, or the lower bound on R* given R.

    Examples
    --------
    >>> round(er.theory.cover_hart(bayes=0.1).value, 4)
    0.18
    >>> round(er.theory.cover_hart(neighbour=0.18).value, 4)
    0.1
    """
    K = check_whole("classes", classes, 2)
    if (bayes is None) == (neighbour is None):
        raise EmpiriskError("cover_hart takes one of bayes= and neighbour=, and bounds the other.")
    worst = (K - 1) / K
    name, given = ("bayes", bayes) if neighbour is None else ("neighbour", neighbour)
    rate = check_rate(name, given)
    # A rate that is the worst one but for rounding is allowed.
    if rate > worst + 1e-12:
        raise EmpiriskError(f"{name}={rate!r} exceeds {worst:.4g}, the error of guessing among {K} classes.")
    if neighbour is None:
        value = rate * (2 - rate / worst)
        sentence = f"the nearest neighbour's lies between {percent(rate)} and {percent(value)} with many rows."
        return Bound(value, rate >= worst, f"If the best error is {percent(rate)}, {sentence}")
    value = worst * (1 - math.sqrt(max(0.0, 1 - rate / worst)))
    sentence = f"the best possible lies between {percent(value)} and {percent(rate)}."
    return Bound(value, value == 0, f"If the nearest neighbour's error with many rows is {percent(rate)}, {sentence}")
