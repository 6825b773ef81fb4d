"""Bayes rule: the answers with the least expected cost where the distribution is known, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import softmax
from scipy.stats import norm

from empirisk.contract.inputs import Array, generator
from empirisk.errors import EmpiriskError
from empirisk.theory.bound import Bound, check_open, check_whole

DRAWS = 1 << 18  # rows of a Monte Carlo estimate: the half-width of its interval is at most 0.2 % of the largest cost
AT_ONCE = 1 << 14  # of them at a time, so that the memory stays small
ROUNDING = 1e-12  # probabilities, covariances and directions that differ by less are the same


@dataclass(frozen=True)
class Risk(Bound):
    """An expected cost, exact or with the interval of its estimate.

    Attributes
    ----------
    value : float
        The expected cost of an answer; with the usual costs, the probability of an error.
    low, high : float
        The limits of the estimate; equal where the value is exact.
    vacuous : bool
        Whether the best constant answer costs no more.
    meaning : str
        One sentence.

    Examples
    --------
    >>> er.theory.GaussianBayes([[0.0], [2.0]], 1.0).error().interval
    (0.15865525393145707, 0.15865525393145707)
    """

    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high


class BayesRule:
    """What finite and Gaussian distributions share: posteriors decide, and expected costs grade.

    A subclass states `predict_proba`, `sample` and `_expected`.
    """

    classes_: NDArray
    priors: Array
    costs: Array

    def predict_proba(self, X: Any) -> Array:
        """P[class | x], rows x classes."""
        raise NotImplementedError

    def sample(self, n: int, random_state: Any = None) -> tuple[NDArray, NDArray]:
        """n independent rows and their classes."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray:
        """The class with the least expected cost given x; of equally good ones the first."""
        return self.classes_[_actions(self.predict_proba(X), self.costs)]

    def risk(self, machine: Any = None, *, confidence: float = 0.95, random_state: Any = 0) -> Risk:
        """The expected cost of this rule, the least there is; or of another machine that predicts these classes.

        Parameters
        ----------
        machine : fitted classifier, optional
            Whose answers are to be graded; None grades the rule itself.
        confidence : float
            Of the interval, where the value is a Monte Carlo estimate.
        random_state : int, RandomState or None
            Draws its rows.
        """
        return self._graded(machine, self.costs, "expected cost", confidence, random_state)

    def error(self, machine: Any = None, *, confidence: float = 0.95, random_state: Any = 0) -> Risk:
        """The probability that the answer is wrong: the Bayes error, or that of another machine.

        Parameters
        ----------
        machine, confidence, random_state
            As for `risk`.
        """
        wrong = 1.0 - np.eye(len(self.classes_))
        return self._graded(machine, wrong, "probability of an error", confidence, random_state)

    def _graded(self, machine: Any, costs: Array, what: str, confidence: float, random_state: Any) -> Risk:
        check_open("confidence", confidence)
        value, half = self._expected(machine, costs, confidence, random_state)
        constant = float((self.priors @ costs).min())
        who = "Bayes rule" if machine is None else f"this {type(machine).__name__}"
        sure = f" +- {half:.2g}, with {100 * confidence:g} % confidence" if half else ""
        text = f"The {what} of {who} is {value:.6g}{sure}; the best constant answer has {constant:.6g}."
        return Risk(value, value + half >= constant * (1 - ROUNDING), text, value - half, value + half)

    def _expected(self, machine: Any, costs: Array, confidence: float, random_state: Any) -> tuple[float, float]:
        """The expected cost, and half the width of its interval."""
        raise NotImplementedError

    def _answers(self, machine: Any, X: NDArray) -> NDArray[np.intp]:
        """The numbers of the classes that a machine says."""
        said = np.asarray(machine.predict(X))
        places = {label: number for number, label in enumerate(self.classes_.tolist())}
        strange = [label for label in np.unique(said).tolist() if label not in places]
        if strange:
            raise EmpiriskError(f"machine predicts {strange[0]!r}, which is none of the classes {list(places)}.")
        return np.array([places[label] for label in said.tolist()], dtype=np.intp)


class FiniteBayes(BayesRule):
    """Bayes rule of a finite distribution, given by the probability of every value of x with every class.

        predict(x) = argmin_j sum_k P[class k | x] cost(k, j),    risk = sum_x min_j sum_k P[x, class k] cost(k, j)

    Parameters
    ----------
    joint : array, values x classes
        P[x, class], or numbers in proportion to it, such as counts.
    values : list, optional
        The value of x of each row: a number, a text, or a tuple for several columns; 0, 1, ... by default.
    classes : list, optional
        The label of each column; 0, 1, ... by default.
    costs : array, classes x classes, optional
        cost(k, j) of the answer j where k is true; by default 1 for every error.

    Attributes
    ----------
    classes_ : array of K
        The labels.
    priors : array of K
        The probability of each class.

    Examples
    --------
    Two dice: the sum is seen, the larger one asked for.

    >>> dice = [(i, j) for i in range(1, 7) for j in range(1, 7)]
    >>> rule = er.theory.FiniteBayes.of_outcomes(dice, x=sum, y=max)
    >>> rule.predict([2, 7, 12]), round(36 * rule.error().value, 9)
    (array([1, 4, 6]), 16.0)
    """

    def __init__(
        self,
        joint: ArrayLike,
        values: Iterable[Any] | None = None,
        classes: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ):
        table = np.asarray(joint, dtype=np.float64)
        if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all() or table.min() < 0 or table.sum() == 0:
            raise EmpiriskError("joint must be a table of probabilities or counts, values x classes, not all zero.")
        self.joint, self._total = table, float(table.sum())
        self.values = [_key(one) for one in (range(len(table)) if values is None else values)]
        self._places = {value: place for place, value in enumerate(self.values)}
        if len(self._places) != len(table) or len(self.values) != len(table):
            raise EmpiriskError(f"values must hold {len(table)} different values, one for each row of joint.")
        self.classes_ = _labels(classes, table.shape[1], "column of joint")
        self.priors = table.sum(axis=0) / self._total
        self.costs = _costs(costs, len(self.classes_))

    @classmethod
    def of_outcomes(
        cls,
        outcomes: Iterable[Any],
        x: Callable[[Any], Any],
        y: Callable[[Any], Any],
        probabilities: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> FiniteBayes:
        """The rule for y(outcome) where x(outcome) is seen.

        Parameters
        ----------
        outcomes : list
            What can happen, such as pairs of dice.
        x, y : callables
            What is seen of an outcome, and its class.
        probabilities : array, optional
            Of each outcome; equal by default.
        costs : array, optional
            As for the class.
        """
        every = list(outcomes)
        chances = np.ones(len(every)) if probabilities is None else np.asarray(probabilities, dtype=np.float64)
        if not every or chances.shape != (len(every),):
            raise EmpiriskError(f"probabilities must hold one number for each of the {len(every)} outcomes.")
        seen, classes = [_key(x(one)) for one in every], np.array([y(one) for one in every])
        labels, columns = np.unique(classes, return_inverse=True)
        values = list(dict.fromkeys(seen))
        places = {value: place for place, value in enumerate(values)}
        joint = np.zeros((len(values), len(labels)))
        np.add.at(joint, (np.array([places[value] for value in seen]), columns), chances)
        return cls(joint, values, labels, costs)

    def predict_proba(self, X: Any) -> Array:
        """P[class | x] of each of some values, rows x classes."""
        keys = [_key(one) for one in X]
        strange = [key for key in keys if key not in self._places or not self.joint[self._places[key]].any()]
        if strange:
            raise EmpiriskError(f"X holds {strange[0]!r}, a value that has no probability.")
        rows = self.joint[[self._places[key] for key in keys]]
        return rows / rows.sum(axis=1, keepdims=True)

    def sample(self, n: int, random_state: Any = None) -> tuple[NDArray, NDArray]:
        """n independent values of x, rows x columns, and their classes."""
        flat = self.joint.ravel() / self._total
        drawn = generator(random_state).choice(flat.size, check_whole("n", n), p=flat)
        rows, columns = np.unravel_index(drawn, self.joint.shape)
        return self._table()[rows], self.classes_[columns]

    def _expected(self, machine: Any, costs: Array, confidence: float, random_state: Any) -> tuple[float, float]:
        used = self.joint.any(axis=1)
        joint = self.joint[used]
        chosen = _actions(joint, self.costs) if machine is None else self._answers(machine, self._table()[used])
        # Sums before the division: counts, as those of dice, keep every digit.
        return float(np.einsum("ik,ki->", joint, costs[:, chosen]) / self._total), 0.0

    def _table(self) -> NDArray:
        """The values as rows of columns."""
        return np.array([value if isinstance(value, tuple) else (value,) for value in self.values])


class GaussianBayes(BayesRule):
    """Bayes rule of Gaussian classes with known means, covariances and priors.

        predict(x) = argmin_j sum_k prior_k N(x; mean_k, covariance_k) cost(k, j)

    With the costs of errors, classes of one dimension, or of one covariance with means on a line (two means are),
    have an exact risk: the boundaries are roots of quadratics, and normal tails between them are summed. All others
    have a Monte Carlo estimate with its interval, in which the conditional risk, not the error, of every row counts.

    Parameters
    ----------
    means : array, K x d
        The mean of each class.
    covariances : float or array of K, d x d or K x d x d
        A variance for all, a variance for each class, one matrix for all, or one for each; a list of K numbers is read
        as variances.
    priors : array of K, optional
        Probabilities of the classes; equal by default.
    classes : list, optional
        Their labels; 0, 1, ... by default.
    costs : array, K x K, optional
        cost(k, j) of the answer j where k is true; by default 1 for every error.

    Attributes
    ----------
    classes_, priors
        As for `FiniteBayes`.

    Examples
    --------
    >>> rule = er.theory.GaussianBayes([[0.0, 0.0], [2.0, 0.0]], 1.0, priors=[0.9, 0.1])
    >>> rule.predict([[1.0, 0.0], [2.5, 0.0]]), round(rule.error().value, 4)
    (array([0, 1]), 0.0701)
    """

    def __init__(
        self,
        means: ArrayLike,
        covariances: ArrayLike = 1.0,
        priors: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ):
        self.means = np.asarray(means, dtype=np.float64)
        if self.means.ndim != 2 or self.means.size == 0 or not np.isfinite(self.means).all():
            raise EmpiriskError("means must be a table of finite numbers with a row for each class.")
        count, width = self.means.shape
        self.n_features_in_ = width
        self.classes_ = _labels(classes, count, "row of means")
        self.priors = np.full(count, 1 / count) if priors is None else np.asarray(priors, dtype=np.float64)
        positive = self.priors.shape == (count,) and bool((self.priors > 0).all())
        if not positive or abs(self.priors.sum() - 1) > 1e-9:
            raise EmpiriskError(f"priors must be {count} positive numbers with the sum 1.")
        self.covariances = _matrices(np.asarray(covariances, dtype=np.float64), count, width)
        try:
            self._factors: Array = np.linalg.cholesky(self.covariances).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            raise EmpiriskError("covariances must be symmetric and positive definite.") from None
        self.costs = _costs(costs, count)

    def predict_proba(self, X: Any) -> Array:
        """P[class | x], rows x classes."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise EmpiriskError(f"X of shape {rows.shape} must have {self.n_features_in_} columns.")
        return softmax(self._log_joint(rows), axis=1)

    def _log_joint(self, rows: Array) -> Array:
        """ln(prior_k N(x; mean_k, covariance_k)), up to a constant for all classes."""
        found = np.empty((len(rows), len(self.means)))
        for k, (mean, factor) in enumerate(zip(self.means, self._factors, strict=True)):
            white = solve_triangular(factor, (rows - mean).T, lower=True)
            found[:, k] = np.log(self.priors[k]) - np.log(np.diag(factor)).sum() - 0.5 * (white**2).sum(axis=0)
        return found

    def sample(self, n: int, random_state: Any = None) -> tuple[Array, NDArray]:
        """n independent rows and their classes."""
        random = generator(random_state)
        codes = random.choice(len(self.means), check_whole("n", n), p=self.priors / self.priors.sum())
        return self._rows_of(codes, random), self.classes_[codes]

    def _rows_of(self, codes: NDArray[np.intp], random: np.random.Generator) -> Array:
        noise = random.normal(size=(len(codes), self.n_features_in_))
        return self.means[codes] + np.einsum("nij,nj->ni", self._factors[codes], noise)

    def _expected(self, machine: Any, costs: Array, confidence: float, random_state: Any) -> tuple[float, float]:
        line = self._on_a_line() if machine is None else None
        exact = None if line is None else _exact_cost(*line, self.priors, self.costs, costs)
        return (exact, 0.0) if exact is not None else self._estimate(machine, costs, confidence, random_state)

    def _on_a_line(self) -> tuple[Array, Array] | None:
        """Means and deviations of the one number that decides, if there is one."""
        if self.n_features_in_ == 1:
            return self.means[:, 0], self._factors[:, 0, 0]
        if np.abs(self.covariances - self.covariances[0]).max() > ROUNDING * np.abs(self.covariances).max():
            return None
        white = solve_triangular(self._factors[0], (self.means - self.means[0]).T, lower=True).T
        _, sizes, directions = np.linalg.svd(white, full_matrices=False)
        if sizes[1:].max(initial=0.0) > ROUNDING * max(sizes[0], 1.0):
            return None
        return white @ directions[0], np.ones(len(white))

    def _estimate(self, machine: Any, costs: Array, confidence: float, random_state: Any) -> tuple[float, float]:
        """The mean conditional cost of rows drawn class by class in proportion to the priors (a stratified sample)."""
        random, value, variance = generator(random_state), 0.0, 0.0
        for k, prior in enumerate(self.priors):
            left, found = max(2, round(DRAWS * prior)), []
            while left:
                rows = self._rows_of(np.full(min(left, AT_ONCE), k), random)
                posterior = softmax(self._log_joint(rows), axis=1)
                chosen = _actions(posterior, self.costs) if machine is None else self._answers(machine, rows)
                found.append(np.einsum("nk,kn->n", posterior, costs[:, chosen]))
                left -= len(rows)
            each = np.concatenate(found)
            value += prior * float(each.mean())
            variance += prior**2 * float(each.var(ddof=1)) / len(each)
        return value, float(norm.ppf((1 + confidence) / 2) * np.sqrt(variance))


def _exact_cost(means: Array, deviations: Array, priors: Array, costs: Array, graded: Array) -> float | None:
    """The expected cost on a line of the rule that ``costs`` stand for; None where its boundaries have no formula."""
    cuts: list[float] = []
    for first in range(len(means)):
        for second in range(first):
            factors = priors * (costs[:, first] - costs[:, second])
            involved = np.flatnonzero(factors)
            if len(involved) > 2:
                return None
            if len(involved) == 2 and np.prod(factors[involved]) < 0:
                cuts += _crossings(means[involved], deviations[involved], np.abs(factors[involved]))
    edges = np.array([-np.inf, *sorted(set(cuts)), np.inf])
    inner = np.concatenate([[edges[1] - 1.0], 0.5 * (edges[1:-2] + edges[2:-1]), [edges[-2] + 1.0]]) if cuts else [0.0]
    middle = np.asarray(inner)[:, None]
    chosen = _actions(softmax(np.log(priors) + norm.logpdf(middle, means, deviations), axis=1), costs)
    # Differences of the smaller tails keep the digits of rare errors.
    low, high = ((edge[:, None] - means) / deviations for edge in (edges[:-1], edges[1:]))
    mass = np.where(low > 0, norm.sf(low) - norm.sf(high), norm.cdf(high) - norm.cdf(low))
    return float(np.einsum("ik,k,ki->", mass, priors, graded[:, chosen]))


def _crossings(means: Array, deviations: Array, factors: Array) -> list[float]:
    """Where two normal densities, each times its factor, are equal: the roots of a quadratic in x."""
    precisions = 1 / deviations**2
    # Around the middle of the means, so that the coefficients keep their digits.
    centre = means.mean()
    at = means - centre
    heights = np.log(factors) - np.log(deviations) - 0.5 * at**2 * precisions
    a, b, c = (part[0] - part[1] for part in (-0.5 * precisions, at * precisions, heights))
    if a == 0 or (abs(a) <= ROUNDING * precisions.max() and abs(a * c) <= ROUNDING * b * b):
        return [] if b == 0 else [float(centre - c / b)]
    inside = b * b - 4 * a * c
    if inside <= 0:
        return []  # equal at one point at most, where nothing changes
    q = -0.5 * (b + np.copysign(np.sqrt(inside), b))
    return [float(centre + root) for root in ({q / a, c / q} if q else {0.0})]


def _actions(posterior: Array, costs: Array) -> NDArray[np.intp]:
    """The answer with the least expected cost for each row; the first of those equal up to rounding."""
    expected = posterior @ costs
    least = expected.min(axis=1, keepdims=True)
    return (expected <= least + ROUNDING * np.abs(costs).max() * posterior.sum(axis=1, keepdims=True)).argmax(axis=1)


def _costs(costs: ArrayLike | None, count: int) -> Array:
    if costs is None:
        return 1.0 - np.eye(count)
    given = np.asarray(costs, dtype=np.float64)
    if given.shape != (count, count) or not np.isfinite(given).all():
        raise EmpiriskError(f"costs must be {count} x {count} finite numbers: cost[k, j] of saying j where k is true.")
    return given


def _labels(classes: ArrayLike | None, count: int, what: str) -> NDArray:
    labels = np.arange(count) if classes is None else np.asarray(classes)
    if labels.shape != (count,) or len(np.unique(labels)) != count:
        raise EmpiriskError(f"classes must hold {count} different labels, one for each {what}.")
    return labels


def _matrices(given: Array, count: int, width: int) -> Array:
    """The covariance of each class, K x d x d."""
    if given.ndim == 0 or given.shape == (count,):
        return np.broadcast_to(given, count)[:, None, None] * np.eye(width)
    if given.shape in ((width, width), (count, width, width)):
        return np.broadcast_to(given, (count, width, width)).copy()
    raise EmpiriskError(
        f"covariances of shape {given.shape} must be a number, {count} numbers, {width} x {width}, or "
        f"{count} x {width} x {width}."
    )


def _key(value: Any) -> Hashable:
    """A value of x as what a dictionary finds it by: a scalar for one column, a tuple for several."""
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(plain, (list, tuple)):
        return plain[0] if len(plain) == 1 else tuple(plain)
    return plain
