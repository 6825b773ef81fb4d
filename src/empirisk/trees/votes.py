"""Votes of many machines: who wins, how clear it is, and why many are better than one; and a vote of different ones."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from empirisk import state
from empirisk.contract.inputs import check_weights, sorted_classes
from empirisk.contract.members import check_table, check_target, member_tags
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.linalg.threads import in_order
from empirisk.machines.centroid import NearestCentroid
from empirisk.machines.classifiers import LogisticRegression
from empirisk.machines.multiclass import elected, untied
from empirisk.machines.outputs import as_columns, squared_errors
from empirisk.machines.regressors import SVR, Ridge

Array = NDArray[np.float64]


def numbered(y: NDArray, classes: NDArray) -> NDArray[np.int64]:
    """The number of each label among the sorted classes, -1 for a label that is none of them."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[places] == y, places, -1)


def vote_margins(shares: Array, labels: NDArray[np.int64]) -> Array:
    """The share of the right class minus the largest share of another."""
    rows, others = np.arange(len(shares)), shares.copy()
    others[rows, labels] = -np.inf
    rival = others.max(axis=1) if shares.shape[1] > 1 else np.zeros(len(shares))
    return shares[rows, labels] - rival


class Spread(NamedTuple):
    """Why a vote is better than its members.

    Attributes
    ----------
    strength : float
        Mean margin of the members (classes), or minus the mean squared error of their mean (numbers).
    correlation : float
        Mean correlation between the margins (the errors) of two members over the rows; NaN for one member.
    variance : float
        Mean over the rows of the variance of the margins (the predictions) over the members.
    """

    strength: float
    correlation: float
    variance: float


class Members(ABC):
    """What ensembles can tell about their members."""

    @abstractmethod
    def _each_answer(self, X: Any) -> Iterator[tuple[float, Array]]:
        """The say of each member, and what it says of rows: class shares (n_rows, n_classes) or numbers (n_rows, 1)."""

    def _labels(self, y: ArrayLike) -> NDArray:
        """The numbers of the classes of rows, or the numbers themselves."""
        classes = getattr(self, "classes_", None)
        if classes is None:
            return check_target(self, y, numbers=True, several=True)
        if isinstance(classes, list):
            raise Unsuitable("Margins, spreads and staged errors are those of one label, and y had several columns.")
        labels = numbered(column_or_1d(y), classes)
        if (labels < 0).any():
            raise EmpiriskError("y holds classes that were not in the training data; give rows of known classes.")
        return labels

    def staged_errors(self, X: Any, y: ArrayLike) -> Array:
        """The error of the first 1, 2, ... members together: share of wrong classes, or mean squared error.

        Of several outputs the mean over them, here and in `spread`.
        """
        labels, errors, total, say = self._labels(y), [], 0.0, 0.0
        for weight, answers in self._each_answer(X):
            check_consistent_length(answers, labels)
            total, say = total + weight * answers, say + weight
            if hasattr(self, "classes_"):
                errors.append(np.mean(elected(total, np.arange(total.shape[1])) != labels))
            else:
                errors.append(np.mean(squared_errors(total / say, labels)))
        return np.array(errors)

    def spread(self, X: Any, y: ArrayLike) -> Spread:
        """How strong the vote is on rows, and how much its members agree: see `Spread`.

        The error of a vote is at most about  correlation * (1 - s^2) / s^2  with s the strength (Breiman): members
        should be good, and should not err together.
        """
        labels, classes = self._labels(y), hasattr(self, "classes_")
        count, total, squares, deviations = 0, 0.0, 0.0, []
        for _, answers in self._each_answer(X):
            check_consistent_length(answers, labels)
            own = vote_margins(answers, labels) if classes else (answers - as_columns(labels)).ravel()
            count, total, squares = count + 1, total + own, squares + own**2
            deviations.append(own.std())
        strength = np.mean(total) / count if classes else -np.mean((total / count) ** 2)
        sizes = np.array(deviations)
        room = sizes.sum() ** 2 - (sizes**2).sum()
        correlation = (np.var(total) - (sizes**2).sum()) / room if room > 0 else np.nan
        return Spread(float(strength), float(correlation), float(np.mean(squares / count - (total / count) ** 2)))


class ClassMembers(Members):
    """What ensembles of classifiers can tell about their members."""

    def margins(self, X: Any, y: ArrayLike) -> Array:
        """How clear the vote for the right class is: its share minus the largest of another, from -1 to 1."""
        shares, labels = self.predict_proba(X), self._labels(y)  # type: ignore[attr-defined]
        check_consistent_length(shares, labels)
        return vote_margins(shares, labels)


# --- a vote of different machines -------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class VoteParameters:
    """The parameters that the two votes share."""

    estimators: list | None = None
    _: KW_ONLY
    weights: Any = None


class Vote(VoteParameters, Members, BaseEstimator):
    """What the two votes share; see `VoteClassifier` and `VoteRegressor`."""

    _state = state.State(
        filled=("members",),
        n_features_in_=state.size("columns"),
        estimators_=state.several(state.part(has="predict", columns="columns"), "members"),
        weights_=state.array("f8", "members", low=0),
    )

    estimators_: list
    weights_: Array

    @abstractmethod
    def _answers(self, machine: Any, X: Any) -> Array:
        """What a member says about rows: (n_rows, n_outputs)."""

    @abstractmethod
    def _default(self) -> list:
        """The machines that vote where none are given."""

    def _machines(self) -> list:
        given = self._default() if self.estimators is None else self.estimators
        return list(given) if isinstance(given, (list, tuple)) else []

    def _fit(self, X: Any, y: NDArray, sample_weight: ArrayLike | None) -> None:
        machines = self._machines()
        if not machines or not all(hasattr(machine, "fit") for machine in machines):
            raise EmpiriskError(
                "estimators must be a list of one machine or more, such as [er.SVM(), er.TreeClassifier()]."
            )
        say = np.ones(len(machines)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if say.shape != (len(machines),) or not np.isfinite(say).all() or say.min() < 0 or say.max() == 0:
            raise EmpiriskError("weights must be one number for each machine, none negative and not all zero.")
        self.weights_ = say / say.sum()
        options = {}
        if sample_weight is not None:
            options = {"sample_weight": check_weights(sample_weight, len(y))}
            deaf = [machine for machine in machines if not has_fit_parameter(machine, "sample_weight")]
            if deaf:
                raise EmpiriskError(f"sample_weight was given, but {deaf[0]!r} does not take it; leave either out.")
        self.estimators_ = list(in_order(lambda machine: clone(machine).fit(X, y, **options), machines))

    def _each_answer(self, X: Any) -> Iterator[tuple[float, Array]]:
        check_is_fitted(self)
        table = check_table(self, X, reset=False)
        for machine, weight in zip(self.estimators_, self.weights_, strict=True):
            yield float(weight), self._answers(machine, table)

    def _scores(self, X: Any) -> Array:
        """The mean answer of the machines."""
        return np.sum([weight * answers for weight, answers in self._each_answer(X)], axis=0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = [member_tags("estimators", machine).input_tags for machine in self._machines()]
        for name in ("sparse", "allow_nan", "string"):
            setattr(tags.input_tags, name, bool(inner) and all(getattr(one, name) for one in inner))
        tags.input_tags.positive_only = any(one.positive_only for one in inner)
        return tags


def _is_soft(machine: "VoteClassifier") -> bool:
    if machine.vote == "soft":
        return True
    raise AttributeError("vote='hard' counts votes, which are no probabilities; use vote='soft'.")


@dataclass(eq=False, repr=False)
class VoteClassifier(ClassMembers, ClassifierMixin, Vote):
    """A vote of different classifiers, each fitted to all rows.

        P(k | x) = sum of the weights of the machines that say k      (or the weighted mean of their probabilities)

    Parameters
    ----------
    estimators : list of classifiers or None
        The machines that vote; None takes logistic regression and the nearest centroid.
    vote : "hard" or "soft"
        Whether machines vote, or their probabilities are averaged.
    weights : array or None
        The say of each machine; None is the same for all.

    Attributes
    ----------
    estimators_ : list
        The fitted machines.
    weights_ : array
        Their say, adding up to one.
    classes_ : array
        The classes, sorted.

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> vote = er.VoteClassifier([er.SVM(), er.KNNClassifier(3), er.TreeClassifier()]).fit(X, X[:, 0] > 9)
    >>> vote.predict([[3.0], [15.0]])
    array([False,  True])
    >>> vote.margins([[3.0]], [False])
    array([1.])
    """

    _state = state.State(vote=state.text("hard", "soft"), classes_=state.labels("classes"))

    _: KW_ONLY
    vote: str = "hard"

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "VoteClassifier":
        """Fit the machines."""
        if self.vote not in ("hard", "soft"):
            raise EmpiriskError(f"vote={self.vote!r} is not known; use 'hard' or 'soft'.")
        table, target = check_table(self, X, reset=True), check_target(self, y)
        check_consistent_length(table, target)
        mute = [machine for machine in self._machines() if not hasattr(machine, "predict_proba")]
        if self.vote == "soft" and mute:
            raise EmpiriskError(f"vote='soft' needs probabilities, which {mute[0]!r} lacks; use vote='hard'.")
        self.classes_ = sorted_classes(target, np.ones(len(target)))
        self._fit(table, target, sample_weight)
        return self

    def _default(self) -> list:
        return [LogisticRegression(), NearestCentroid()]

    def _answers(self, machine: Any, X: Any) -> Array:
        if self.vote == "soft":
            return np.asarray(machine.predict_proba(X), dtype=np.float64)
        said = numbered(np.asarray(machine.predict(X)), self.classes_)
        return (said[:, None] == np.arange(len(self.classes_))).astype(np.float64)

    def vote_shares(self, X: Any) -> Array:
        """The share of the votes for each class, or the mean probabilities."""
        return self._scores(X)

    @available_if(_is_soft)
    def predict_proba(self, X: Any) -> Array:
        """The weighted mean of the probabilities."""
        return untied(self._scores(X))

    def predict(self, X: Any) -> NDArray:
        """The class with the most votes; of two classes with as many the second."""
        return elected(self._scores(X), self.classes_)

    def margins(self, X: Any, y: ArrayLike) -> Array:
        """How clear the vote for the right class is: its share minus the largest of another, from -1 to 1."""
        shares, labels = self._scores(X), self._labels(y)
        check_consistent_length(shares, labels)
        return vote_margins(shares, labels)


class VoteRegressor(RegressorMixin, Vote):
    """The weighted mean of different regression machines, each fitted to all rows.

    Parameters
    ----------
    estimators : list of regressors or None
        The machines; None takes ridge regression and the support vector machine for numbers.
    weights : array or None
        The say of each machine; None is the same for all.

    Attributes
    ----------
    estimators_, weights_
        As for `VoteClassifier`.

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> vote = er.VoteRegressor([er.Ridge(), er.TreeRegressor()], weights=[1, 3]).fit(X, 2 * X[:, 0])
    >>> vote.predict([[4.0]]).round(1)
    array([8.])
    """

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "VoteRegressor":
        """Fit the machines."""
        table, target = check_table(self, X, reset=True), check_target(self, y, numbers=True)
        check_consistent_length(table, target)
        self._fit(table, target, sample_weight)
        return self

    def _default(self) -> list:
        return [Ridge(), SVR()]

    def _answers(self, machine: Any, X: Any) -> Array:
        return np.asarray(machine.predict(X), dtype=np.float64).reshape(-1, 1)

    def predict(self, X: Any) -> Array:
        """The weighted mean of what the machines predict."""
        return self._scores(X)[:, 0]
