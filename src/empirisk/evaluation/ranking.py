"""How well scores rank: dominance of ROC curves, their convex hull, cost curves, gains, lift and precision at k."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from empirisk.contract.inputs import Array
from empirisk.errors import EmpiriskError
from empirisk.evaluation.scored import ClassScores, scored_one
from empirisk.theory.bound import check_rate

ROUNDING = 1e-12  # rates that differ by less are equal


# --- the convex hull ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ROCHull:
    """The convex hull of a ROC curve: what thresholds reach, and what a coin between two of them reaches.

    Attributes
    ----------
    false_positive_rate, true_positive_rate : arrays
        The corners, from (0, 0) to (1, 1).
    thresholds : array
        The threshold of each corner: rows with a score of at least this are called positive. Infinity calls none.
    area : float
        The area below it, never less than that of the curve.

    Examples
    --------
    >>> hull = er.evaluation.roc_hull([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> hull.false_positive_rate, hull.true_positive_rate, hull.thresholds
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]), array([inf, 0.9, 0.4, 0.1]))
    >>> hull.at(0.25)
    Randomised(thresholds=(0.9, 0.4), probability=0.5, false_positive_rate=0.25, true_positive_rate=0.75)
    """

    false_positive_rate: Array
    true_positive_rate: Array
    thresholds: Array

    @property
    def area(self) -> float:
        """The area below the hull."""
        return float(np.trapezoid(self.true_positive_rate, self.false_positive_rate))

    def at(self, false_positive_rate: float) -> Randomised:
        """The best classifier with this false positive rate: a coin that chooses between two thresholds.

        Parameters
        ----------
        false_positive_rate : float
            From 0 to 1.
        """
        rate = check_rate("false_positive_rate", false_positive_rate)
        f, t = self.false_positive_rate, self.true_positive_rate
        right = min(int(np.searchsorted(f, rate, side="right")), len(f) - 1)
        left = right - 1
        gap = f[right] - f[left]
        share = float((rate - f[left]) / gap) if gap > 0 else 1.0
        pair = float(self.thresholds[left]), float(self.thresholds[right])
        return Randomised(pair, share, rate, float(t[left] + share * (t[right] - t[left])))


@dataclass(frozen=True)
class Randomised:
    """A classifier that tosses a coin between two thresholds.

    Attributes
    ----------
    thresholds : (float, float)
        The two.
    probability : float
        Of the second.
    false_positive_rate, true_positive_rate : float
        What is expected of it.

    Examples
    --------
    >>> er.evaluation.roc_hull([0, 1], [0.2, 0.7]).at(0.0).true_positive_rate
    1.0
    """

    thresholds: tuple[float, float]
    probability: float
    false_positive_rate: float
    true_positive_rate: float

    def predict(self, scores: ArrayLike, random_state: Any = None) -> Any:
        """Whether each row is called positive; every row has a toss of its own.

        Parameters
        ----------
        scores : array of n
            The scores of the rows.
        random_state : int or None
            Decides the tosses.
        """
        values = np.asarray(scores, dtype=np.float64)
        second = np.random.default_rng(random_state).random(len(values)) < self.probability
        return values >= np.where(second, self.thresholds[1], self.thresholds[0])


def roc_hull(
    truth: Any, scores: ArrayLike | None = None, *, positive: Any = None, sample_weight: ArrayLike | None = None
) -> ROCHull:
    """The convex hull of the ROC curve, with the thresholds that reach its corners.

    A threshold is the best for some costs of errors and some rate of positives if and only if it is a corner.

    Parameters
    ----------
    truth : array of n, or the result of an evaluation
        The true classes.
    scores : array of n, or n x classes
        Scores or probabilities, higher for the positive class. Not needed with a result.
    positive : class, optional
        The class to find; None takes the second of two.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.

    Returns
    -------
    ROCHull

    Examples
    --------
    >>> er.evaluation.roc_hull([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]).area
    0.875
    """
    return hull_of(scored_one(truth, scores, positive, sample_weight))


def hull_of(one: ClassScores) -> ROCHull:
    """The convex hull of one class's ROC curve."""
    thresholds, hits, alarms = one.steps()
    kept: list[int] = []
    for place in range(len(thresholds)):
        # Upper hull by a monotone chain: drop points on or below the line from the point before to the new one.
        while len(kept) > 1 and _turn(hits, alarms, kept[-2], kept[-1], place) >= 0:
            kept.pop()
        kept.append(place)
    return ROCHull(alarms[kept] / alarms[-1], hits[kept] / hits[-1], thresholds[kept])


def _turn(hits: Array, alarms: Array, a: int, b: int, c: int) -> float:
    """Cross product of two edges: positive for a turn to the left, zero on a line (up to rounding)."""
    first = (alarms[b] - alarms[a]) * (hits[c] - hits[a])
    second = (hits[b] - hits[a]) * (alarms[c] - alarms[a])
    return 0.0 if abs(first - second) <= ROUNDING * max(first, second) else first - second


# --- dominance ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Dominance:
    """Which of two ROC curves lies above the other, or where they cross.

    Attributes
    ----------
    winner : {"first", "second", "equal", "neither"}
        Whose curve is nowhere below the other's; "neither" where they cross.
    roc_crossings : array, crossings x 2
        Where they cross: false and true positive rate.
    pr_crossings : array, crossings x 2
        The same points as recall and precision.
    areas : (float, float)
        The areas below the ROC curves.

    Examples
    --------
    >>> found = er.evaluation.dominance([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], [0.1, 0.3, 0.2, 0.4])
    >>> found.winner, found.areas
    ('first', (1.0, 0.75))
    """

    winner: str
    roc_crossings: Array
    pr_crossings: Array
    areas: tuple[float, float]

    def __str__(self) -> str:
        if self.winner == "neither":
            places = ", ".join(f"{f:.3g}" for f, _ in self.roc_crossings)
            return f"Neither dominates: the curves cross at false positive rates of {places}; costs decide."
        if self.winner == "equal":
            return "The curves are equal."
        return f"The {self.winner} dominates: its ROC and precision-recall curves are nowhere below the other's."


def dominance(
    truth: Any,
    first: ArrayLike,
    second: ArrayLike,
    *,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Dominance:
    """Whether the ROC curve of one machine is nowhere below that of another on the same rows.

    It is if and only if its precision-recall curve is (Davis and Goadrich): at every true positive rate, fewer false
    positives mean more precision. Between thresholds, ROC curves are straight, and precision-recall curves are what
    these lines become. A machine that dominates is the better one whatever the costs; else the crossings tell where
    each is.

    Parameters
    ----------
    truth : array of n
        The true classes.
    first, second : arrays of n, or n x classes
        Scores of the two machines, higher for the positive class.
    positive, sample_weight
        As for `roc_hull`.

    Returns
    -------
    Dominance

    Examples
    --------
    >>> found = er.evaluation.dominance([0, 0, 0, 1, 1, 1], [1, 2, 5, 3, 4, 6], [1, 2, 3, 0, 5, 6])
    >>> print(found)
    Neither dominates: the curves cross at false positive rates of 0.333; costs decide.
    >>> found.roc_crossings
    array([[0.33333333, 0.66666667]])
    """
    pair = [scored_one(truth, scores, positive, sample_weight) for scores in (first, second)]
    (hits, alarms), (other_hits, other_alarms) = curves = [_rates(one) for one in pair]
    every = np.unique(np.concatenate([alarms, other_alarms]))
    at = every[np.diff(every, prepend=-1.0) > ROUNDING]
    # Rates that differ only by the rounding of sums in another order are set to one value.
    alarms, other_alarms = (at[np.searchsorted(at, part, side="right") - 1] for part in (alarms, other_alarms))
    ours, theirs = _heights(alarms, hits, at), _heights(other_alarms, other_hits, at)
    signs = np.where(np.abs(ours - theirs) <= ROUNDING, 0, np.sign(ours - theirs))
    winners = {(): "equal", (1.0,): "first", (-1.0,): "second", (-1.0, 1.0): "neither"}
    crossings = _crossings(np.repeat(at, 2), ours, theirs, signs)
    areas = [float(np.trapezoid(up, across)) for up, across in curves]
    recall, rate = crossings[:, 1], pair[0].share(pair[0].belongs)
    found, false = rate * recall, (1 - rate) * crossings[:, 0]
    precision = found / np.where(found + false > 0, found + false, 1.0)
    return Dominance(
        winners[tuple(np.unique(signs[signs != 0]).tolist())],
        crossings,
        np.column_stack([recall, precision]),
        (areas[0], areas[1]),
    )


def _rates(one: ClassScores) -> tuple[Array, Array]:
    """True and false positive rates of all thresholds."""
    _, hits, alarms = one.steps()
    return hits / hits[-1], alarms / alarms[-1]


def _heights(across: Array, up: Array, at: Array) -> Array:
    """The height of a rising polyline just before and just after each place, in turns: they differ at a step."""
    first, last = np.searchsorted(across, at, side="left"), np.searchsorted(across, at, side="right") - 1
    between = np.interp(at, across, up)
    corner = first <= last
    before, after = (np.where(corner, up[np.minimum(place, len(up) - 1)], between) for place in (first, last))
    return np.column_stack([before, after]).ravel()


def _crossings(places: Array, ours: Array, theirs: Array, signs: Array) -> Array:
    """Where the sign of the difference of two polylines changes: across and up."""
    apart = np.flatnonzero(signs)
    found = []
    for a, b in pairwise(apart):
        if signs[a] == signs[b]:
            continue
        if b > a + 1:  # they run together for a while
            found.append((places[b - 1], ours[b - 1]))
        elif places[a] == places[b]:  # one rises straight through the other
            found.append((places[a], min(ours[b], theirs[b])))
        else:
            gaps = abs(ours[a] - theirs[a]), abs(ours[b] - theirs[b])
            share = gaps[0] / sum(gaps)
            found.append([line[a] + share * (line[b] - line[a]) for line in (places, ours)])
    return np.array(found, dtype=np.float64).reshape(-1, 2)


# --- costs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CostCurve:
    """The least expected cost of any threshold, for every rate of positives and every ratio of costs.

    Attributes
    ----------
    probability_cost : array of m + 1
        The corners, from 0 to 1, of  p c_FN / (p c_FN + (1 - p) c_FP)  with the rate p of positives where the machine
        is used, and the costs of errors.
    cost : array of m + 1
        The expected cost there, as a share of that of getting everything wrong; straight in between.
    thresholds : array of m
        The best threshold between each two corners.
    area : float
        The mean cost, if all places are equally likely.

    Examples
    --------
    >>> curve = er.evaluation.cost_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> curve.probability_cost, curve.cost
    (array([0. , 0. , 0.5, 1. , 1. ]), array([0.  , 0.  , 0.25, 0.  , 0.  ]))
    >>> curve.at(0.25), curve.threshold_at(0.25)
    (0.125, 0.9)
    """

    probability_cost: Array
    cost: Array
    thresholds: Array

    @property
    def area(self) -> float:
        """The mean cost over all places."""
        return float(np.trapezoid(self.cost, self.probability_cost))

    def at(self, probability_cost: float) -> float:
        """The least expected cost at one place.

        Parameters
        ----------
        probability_cost : float
            From 0 to 1.
        """
        return float(np.interp(check_rate("probability_cost", probability_cost), self.probability_cost, self.cost))

    def threshold_at(self, probability_cost: float) -> float:
        """The best threshold at one place.

        Parameters
        ----------
        probability_cost : float
            From 0 to 1.
        """
        place = check_rate("probability_cost", probability_cost)
        number = int(np.searchsorted(self.probability_cost, place, side="right")) - 1
        return float(self.thresholds[min(number, len(self.thresholds) - 1)])


def cost_curve(
    truth: Any, scores: ArrayLike | None = None, *, positive: Any = None, sample_weight: ArrayLike | None = None
) -> CostCurve:
    """The cost curve of Drummond and Holte: the lower envelope of a line for each threshold.

        cost(z) = min over thresholds of   z (1 - true positive rate) + (1 - z) false positive rate

    Corners of the convex hull of the ROC curve are the lines here, and its edges the corners.

    Parameters
    ----------
    truth, scores, positive, sample_weight
        As for `roc_hull`.

    Returns
    -------
    CostCurve

    Examples
    --------
    >>> er.evaluation.cost_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]).area
    0.125
    """
    return costs_of(scored_one(truth, scores, positive, sample_weight))


def costs_of(one: ClassScores) -> CostCurve:
    """The cost curve of one class."""
    hull = hull_of(one)
    across, up = np.diff(hull.false_positive_rate), np.diff(hull.true_positive_rate)
    places = np.concatenate([[0.0], across / (across + up), [1.0]])
    # The line of each corner of the hull, at the place where it begins; the last one ends at 1.
    costs = places[:-1] * (1 - hull.true_positive_rate) + (1 - places[:-1]) * hull.false_positive_rate
    return CostCurve(places, np.append(costs, 1 - hull.true_positive_rate[-1]), hull.thresholds)


# --- gains, lift and precision at k ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Gains:
    """What is found among the rows with the highest scores.

    Attributes
    ----------
    taken : array
        Shares of the rows, from 0 to 1, highest scores first.
    found : array
        The share of the positives among them: the gains.
    lift : array
        found / taken: how much better than rows drawn by chance; that of the first rows where nothing is taken.
    precision : array
        The share of positives among those taken.
    thresholds : array
        The threshold of each point.
    rate : float
        The share of positives among all rows.

    Examples
    --------
    >>> found = er.evaluation.gains([0, 0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7, 0.9])
    >>> found.taken, found.found
    (array([0. , 0.2, 0.4, 0.6, 0.8, 1. ]), array([0. , 0.5, 0.5, 1. , 1. , 1. ]))
    >>> found.at(0.2), found.lift_at(0.2)
    (0.5, 2.5)
    """

    taken: Array
    found: Array
    thresholds: Array
    rate: float

    @property
    def lift(self) -> Array:
        """found / taken."""
        ratios = self.found[1:] / self.taken[1:]
        return np.concatenate([ratios[:1], ratios])

    @property
    def precision(self) -> Array:
        """The share of positives among those taken."""
        return self.rate * self.lift

    def at(self, taken: float) -> float:
        """The share of the positives among a share of the rows; rows of equal scores in random order.

        Parameters
        ----------
        taken : float
            From 0 to 1.
        """
        return float(np.interp(check_rate("taken", taken), self.taken, self.found))

    def lift_at(self, taken: float) -> float:
        """How many times more positives a share of the rows holds than rows drawn by chance.

        Parameters
        ----------
        taken : float
            Above 0, up to 1.
        """
        share = check_rate("taken", taken)
        return self.at(share) / share if share > 0 else float(self.lift[0])


def gains(
    truth: Any, scores: ArrayLike | None = None, *, positive: Any = None, sample_weight: ArrayLike | None = None
) -> Gains:
    """How many of the positives are among the rows with the highest scores, for every number of rows.

    Parameters
    ----------
    truth, scores, positive, sample_weight
        As for `roc_hull`.

    Returns
    -------
    Gains

    Examples
    --------
    >>> er.evaluation.gains([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7]).lift
    array([2.        , 2.        , 2.        , 1.33333333, 1.        ])
    """
    return gains_of(scored_one(truth, scores, positive, sample_weight))


def gains_of(one: ClassScores) -> Gains:
    """The gains of one class."""
    thresholds, hits, alarms = one.steps()
    taken = (hits + alarms) / (hits[-1] + alarms[-1])
    return Gains(taken, hits / hits[-1], thresholds, float(hits[-1] / (hits[-1] + alarms[-1])))


def precision_at_k(
    truth: Any,
    scores: ArrayLike | None = None,
    k: float = 10,
    *,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The share of positives among the k rows with the highest scores.

    Where rows of equal scores stand at the k-th place, it is the mean over their orders.

    Parameters
    ----------
    truth, scores, positive, sample_weight
        As for `roc_hull`; a row of weight 2 counts as two of the k.
    k : float
        How many rows, at most as many as there are.

    Returns
    -------
    float

    Examples
    --------
    >>> er.evaluation.precision_at_k([0, 0, 1, 1], [0.1, 0.8, 0.7, 0.9], k=2)
    0.5
    """
    _, hits, alarms = scored_one(truth, scores, positive, sample_weight).steps()
    rows = hits + alarms
    if not 0 < k <= rows[-1] * (1 + ROUNDING):
        raise EmpiriskError(f"k={k!r} must be above 0 and at most {rows[-1]:g}, the number of rows.")
    return float(np.interp(k, rows, hits) / k)
