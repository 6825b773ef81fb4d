"""Where to draw the line: tau in sign(f - tau), by cost or by a score on rows held out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.inputs import Array, check_weights
from empirisk.contract.meta import Around, Whole
from empirisk.contract.progress import reported
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.evaluation.answers import HeldOutAnswers, answers_of
from empirisk.evaluation.data import Data, fit, read_data, seeded, seeds
from empirisk.evaluation.splits import Rows, Split
from empirisk.runs.parallel import parallel_fits


def held_out(machine: Any, data: Data, splits: list[Split], random_state: Any) -> tuple[Rows, HeldOutAnswers]:
    """The test rows of all splits, and what machines trained in each say about them."""
    drawn = seeds(random_state, len(splits))

    def work(number: int) -> HeldOutAnswers:
        inside, outside = data.split(*splits[number])
        return answers_of(fit(seeded(machine, drawn[number]), inside), outside.X, data.classes)

    parts = parallel_fits(work, range(len(splits)))
    return np.concatenate([test for _, test in splits]), HeldOutAnswers.join(parts)


WAYS = ("accuracy", "balanced_accuracy", "f1", "cost")


@dataclass(frozen=True, eq=False)
class ThresholdChoice:
    """Every threshold that makes a difference, and the one chosen.

    Attributes
    ----------
    threshold, value : float
        The threshold chosen, and its score or cost.
    thresholds, values : arrays
        All thresholds, increasing, and their scores or costs.
    true_positive_rate, false_positive_rate, precision : arrays
        The point of each threshold on the ROC curve and on the precision-recall curve.
    index : int
        The place of the one chosen.
    by : str
        What was optimised.

    Examples
    --------
    >>> choice = er.selection.choose_threshold([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], by="cost", cost=(1.0, 5.0))
    >>> round(choice.threshold, 3), choice.value
    (0.225, 1.0)
    """

    threshold: float
    value: float
    thresholds: Array
    values: Array
    true_positive_rate: Array
    false_positive_rate: Array
    precision: Array
    index: int
    by: str


def choose_threshold(
    truth: ArrayLike,
    scores: ArrayLike,
    *,
    by: str = "balanced_accuracy",
    cost: tuple[float, float] | None = None,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    near: float = 0.5,
) -> ThresholdChoice:
    """The threshold tau with the best result when rows with score >= tau are called positive; all of them are tried.

    Parameters
    ----------
    truth : array
        Two classes.
    scores : array
        Probabilities or values of a decision function, larger for the positive class.
    by : {"accuracy", "balanced_accuracy", "f1", "cost"}
        What to make best.
    cost : (float, float)
        The cost of a false positive and of a false negative, for "cost".
    positive : label
        The positive class; the larger of the two by default.
    sample_weight : array
        Weights of the rows.
    near : float
        Of thresholds as good as each other, the nearest to this one is taken.

    Returns
    -------
    ThresholdChoice

    Examples
    --------
    >>> er.selection.choose_threshold([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.9]).threshold
    0.25
    """
    labels, values = np.asarray(truth), np.asarray(scores, dtype=float)
    if labels.shape != values.shape or labels.ndim != 1 or not np.all(np.isfinite(values)):
        raise EmpiriskError("scores must hold one finite number for each label in truth.")
    classes = np.unique(labels)
    if len(classes) != 2 or (positive is not None and positive not in classes):
        raise EmpiriskError(f"truth must hold two classes, the positive one among them; it holds {classes.tolist()}.")
    is_positive = labels == (classes[1] if positive is None else positive)
    weights = check_weights(sample_weight, len(labels))
    levels, place = np.unique(values, return_inverse=True)
    gained = np.bincount(place, weights * is_positive), np.bincount(place, weights * ~is_positive)
    # Counts of rows at or above each level, and of none above the highest.
    hits, alarms = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in gained)
    middles = (levels[1:] + levels[:-1]) / 2
    between = np.where(middles > levels[:-1], middles, levels[1:])  # of neighbouring numbers the middle is one of them
    cuts = np.concatenate([levels[:1], between, np.nextafter(levels[-1:], np.inf)])
    found = _results(by, cost, hits, alarms)
    # Results that differ by rounding are equally good: the cut nearest to the usual one is taken.
    best = np.flatnonzero(found >= found.max() - 1e-12 * max(1.0, abs(found.max())))
    index = int(best[np.argmin(np.abs(cuts[best] - near))])
    shown = -found if by == "cost" else found
    called = hits + alarms
    precision = np.divide(hits, called, out=np.ones_like(hits), where=called > 0)
    rates = (hits / hits[0], alarms / alarms[0], precision)
    return ThresholdChoice(float(cuts[index]), float(shown[index]), cuts, shown, *rates, index, by)


def _results(by: str, cost: tuple[float, float] | None, hits: Array, alarms: Array) -> Array:
    """What each threshold achieves, larger is better, from weights of true and false positives."""
    positives, negatives = hits[0], alarms[0]
    if by == "cost":
        try:
            false_positive, false_negative = (float(part) for part in cost or ())
        except (TypeError, ValueError):
            false_positive = false_negative = np.nan
        if not (false_positive >= 0 and false_negative >= 0):
            raise EmpiriskError(f"cost={cost!r} must be two numbers: of a false positive and of a false negative.")
        return -(false_positive * alarms + false_negative * (positives - hits))
    if by == "accuracy":
        return (hits + negatives - alarms) / (positives + negatives)
    if by == "balanced_accuracy":
        return (hits / positives + 1 - alarms / negatives) / 2
    if by == "f1":
        return 2 * hits / (hits + alarms + positives)
    raise EmpiriskError(f"by={by!r} is not known; use one of {WAYS}.")


@dataclass(eq=False, repr=False)
class Threshold(Whole, ClassifierMixin, Around):
    """A classifier for two classes with its threshold chosen: the second class where  score(x) >= tau.

    The score is the probability of the second class, or the decision function where there are no probabilities. tau is
    chosen on rows held out by cross-validation; the machine is then fitted to all rows. ``decision_function`` is
    score - tau, so that its sign is the prediction; probabilities, which know nothing of tau, are those of
    ``estimator_``.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba`` or ``decision_function``.
    by : {"balanced_accuracy", "accuracy", "f1", "cost"}
        What the threshold makes best.
    cost : (float, float)
        The cost of a false positive and of a false negative, for "cost".
    threshold : float or None
        A threshold given instead of chosen.
    cv : int, "loo", "holdout", "random", splitter or pairs
        As for `evaluate`.
    random_state : int, RandomState or None
        Draws the folds.

    Attributes
    ----------
    threshold_ : float
        tau.
    choice_ : ThresholdChoice or None
        All thresholds with their results; None where it was given.
    estimator_ : classifier
        The machine, fitted to all rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=300) > 1.5
    >>> plain = er.LogisticRegression().fit(X, y)
    >>> careful = er.selection.Threshold(er.LogisticRegression(), by="cost", cost=(1.0, 10.0)).fit(X, y)
    >>> bool(careful.predict(X).sum() > plain.predict(X).sum())
    True
    """

    _state = state.State(
        threshold_=state.number(finite=False),
        choice_=state.maybe(state.part(ThresholdChoice)),
        estimator_=state.part(has="predict", columns="columns", classes="two"),
        sizes={"two": lambda its: 2},
    )

    estimator: Any
    _: KW_ONLY
    by: str = "balanced_accuracy"
    cost: tuple[float, float] | None = None
    threshold: float | None = None
    cv: Any = 5
    random_state: Any = 0

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Threshold:
        """Choose the threshold on rows held out, and fit the machine to all."""
        data = read_data(self.estimator, X, y, sample_weight, groups)
        if data.classes is None or len(data.classes) != 2:
            count = "numbers" if data.classes is None else f"{len(data.classes)} classes"
            # The second sentence is scikit-learn's, which its tools look for.
            raise EmpiriskError(f"Threshold is for two classes, not {count}. Only binary classification is supported.")
        self.choice_ = None
        if self.threshold is not None:
            if not isinstance(self.threshold, Real) or not np.isfinite(self.threshold):
                raise EmpiriskError(f"threshold={self.threshold!r} must be a number, or None to choose it.")
            self.threshold_ = float(self.threshold)
        else:
            splits = data.splits(self.cv, random_state=self.random_state)
            rows, answers = held_out(self.estimator, data, splits, self.random_state)
            scores, near = _scores(answers)
            weights = None if data.weights is None else data.weights[rows]
            rules = {"by": self.by, "cost": self.cost, "positive": data.classes[1], "near": near}
            self.choice_ = choose_threshold(data.y[rows], scores, sample_weight=weights, **rules)
            self.threshold_ = self.choice_.threshold
        self.estimator_ = fit(seeded(self.estimator, 0), data)
        return self

    @property
    def chosen_(self) -> dict[str, Any]:
        """The threshold."""
        return {"threshold": self.threshold_}

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold: not negative where the second class is predicted."""
        check_is_fitted(self)
        if hasattr(self.estimator_, "predict_proba"):
            return self.estimator_.predict_proba(X)[:, 1] - self.threshold_
        return self.estimator_.decision_function(X) - self.threshold_

    def predict(self, X: Any) -> NDArray[Any]:
        """The second class where the score reaches the threshold."""
        reached = (self.decision_function(X) >= 0).astype(int)
        return self.classes_[reached]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _scores(answers: HeldOutAnswers) -> tuple[Array, float]:
    """The score of the second class, and the threshold that a machine would take by itself."""
    if answers.probabilities is not None:
        return answers.probabilities[:, 1], 0.5
    if answers.decisions is None:
        raise EmpiriskError("Threshold needs a machine with predict_proba or decision_function.")
    return answers.decisions, 0.0
