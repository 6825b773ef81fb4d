"""A vote of different machines, each fitted to all rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Bunch, check_consistent_length
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from empirisk import state
from empirisk.contract.arguments import check_number
from empirisk.contract.ensemble import ClassMembers, Members, vote_margins
from empirisk.contract.inputs import Array, check_weights, class_codes, sorted_classes
from empirisk.contract.members import check_table, check_target, member_tags
from empirisk.contract.multiclass import elected, untied
from empirisk.contract.progress import reported
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.linalg.threads import ordered_map
from empirisk.machines.centroid import NearestCentroid
from empirisk.machines.classifiers import LogisticRegression
from empirisk.machines.regressors import SVR, Ridge
from empirisk.names import Estimator
from empirisk.validation import available_if

#: Beyond, probabilities would be equal but for rounding.
MAX_TEMPERATURE = 1000.0


@dataclass(eq=False, repr=False)
class VoteParameters:
    """The parameters that the two votes share."""

    estimators: list | None = None
    _: KW_ONLY
    weights: Any = None
    n_jobs: int | None = None


def _is_pair(one: Any) -> bool:
    """Whether a machine was given with a name."""
    return isinstance(one, (tuple, list)) and len(one) == 2 and isinstance(one[0], str)


class Vote(VoteParameters, Members, CallbackSupportMixin, Estimator):
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

    def _given(self) -> list:
        given = self._default() if self.estimators is None else self.estimators
        return list(given) if isinstance(given, (list, tuple)) else []

    def _pairs(self) -> dict[str, Any]:
        """The machines that were given as pairs with a name, by that name."""
        return {one[0]: one[1] for one in self._given() if _is_pair(one)}

    def _machines(self) -> list:
        """The machines that vote; a pair whose machine is "drop" is left out."""
        machines = [one[1] if _is_pair(one) else one for one in self._given()]
        return [machine for machine in machines if not (isinstance(machine, str) and machine == "drop")]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; ``deep``, also the machines by their names, and theirs as ``name__parameter``."""
        found = super().get_params(deep=False)
        for name, machine in self._pairs().items() if deep else ():
            found[name] = machine
            if hasattr(machine, "get_params"):
                found |= {f"{name}__{inner}": value for inner, value in machine.get_params(deep=True).items()}
        return found

    def set_params(self, **parameters: Any) -> Vote:
        """Set parameters, machines by their names, and theirs as ``name__parameter``."""
        if "estimators" in parameters:
            self.estimators = parameters.pop("estimators")
        names = self._pairs()
        new = {name: parameters.pop(name) for name in list(parameters) if name in names}
        if new:
            self.estimators = [(one[0], new.get(one[0], one[1])) if _is_pair(one) else one for one in self._given()]
        for name in [name for name in parameters if name.partition("__")[0] in names]:
            machine, _, inner = name.partition("__")
            self._pairs()[machine].set_params(**{inner: parameters.pop(name)})
        super().set_params(**parameters)
        return self

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted machines that were given as pairs, by their names."""
        check_is_fitted(self)
        voting = [one for one in self._given() if not (_is_pair(one) and isinstance(one[1], str))]
        pairs = zip(voting, self.estimators_, strict=True)
        return Bunch(**{one[0]: fitted for one, fitted in pairs if _is_pair(one)})

    def _fit(self, X: Any, y: NDArray, sample_weight: ArrayLike | None) -> None:
        machines = self._machines()
        if not machines or not all(hasattr(machine, "fit") for machine in machines):
            raise EmpiriskError(
                "estimators must be a list of one machine or more, such as [er.SVM(), er.TreeClassifier()]."
            )
        names = [one[0] for one in self._given() if _is_pair(one)]
        clash = [name for name in names if names.count(name) > 1 or "__" in name or name in self.get_params(deep=False)]
        if clash:
            raise EmpiriskError(
                f"estimators has the name {clash[0]!r}, which another machine or a parameter has, or which holds '__'; "
                "give every machine a name of its own."
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
        self.estimators_ = list(ordered_map(lambda machine: clone(machine).fit(X, y, **options), machines))

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


def _is_soft(machine: VoteClassifier) -> bool:
    if machine.voting == "soft":
        return True
    raise AttributeError("voting='hard' counts votes, which are no probabilities; use voting='soft'.")


@dataclass(eq=False, repr=False)
class VoteClassifier(ClassMembers, ClassifierMixin, Vote):
    """A vote of different classifiers, each fitted to all rows.

        P(k | x) = sum of the weights of the machines that say k      (or the weighted mean of their probabilities)

    A mean of probabilities that agree in the class is less sure of it than it should be, and one of machines that are
    all too sure of themselves too much: with a ``temperature`` T it is  P(k | x)^(1 / T) / sum_j P(j | x)^(1 / T).

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier) pairs, or None
        The machines that vote; parameters of those with names are reached as ``name__parameter``, and "drop" in the
        place of one leaves it out; None takes logistic regression and the nearest centroid.
    voting : "hard" or "soft"
        Whether machines vote, or their probabilities are averaged.
    weights : array or None
        The say of each machine; None is the same for all.
    temperature : float
        Of a soft vote, at most 1000: above 1 its probabilities are nearer to each other, below 1 farther apart; what
        `predict` says stays the same.
    n_jobs : int or None
        Threads of a fit, -1 for all; None is that of `er.config`. Answers are the same on any number of them.

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

    _state = state.State(
        voting=state.text("hard", "soft"),
        temperature=state.optional(state.number(np.finfo(float).tiny, MAX_TEMPERATURE)),  # older files have none
        classes_=state.labels("classes"),
    )

    _: KW_ONLY
    voting: str = "hard"
    temperature: float = 1.0

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> VoteClassifier:
        """Fit the machines."""
        if self.voting not in ("hard", "soft"):
            raise EmpiriskError(f"voting={self.voting!r} is not known; use 'hard' or 'soft'.")
        if check_number("temperature", self.temperature, 0, MAX_TEMPERATURE, above=True) != 1 and self.voting == "hard":
            raise EmpiriskError("temperature is one of probabilities; use voting='soft', or leave it at 1.")
        table, target = check_table(self, X, reset=True), check_target(self, y)
        check_consistent_length(table, target)
        mute = [machine for machine in self._machines() if not hasattr(machine, "predict_proba")]
        if self.voting == "soft" and mute:
            raise EmpiriskError(f"voting='soft' needs probabilities, which {mute[0]!r} lacks; use voting='hard'.")
        self.classes_ = sorted_classes(target, np.ones(len(target)))
        self._fit(table, target, sample_weight)
        return self

    def _default(self) -> list:
        return [LogisticRegression(), NearestCentroid()]

    def _answers(self, machine: Any, X: Any) -> Array:
        if self.voting == "soft":
            return np.asarray(machine.predict_proba(X), dtype=np.float64)
        said = class_codes(np.asarray(machine.predict(X)), self.classes_)
        return (said[:, None] == np.arange(len(self.classes_))).astype(np.float64)

    def vote_shares(self, X: Any) -> Array:
        """The share of the votes for each class, or the mean probabilities, at a temperature of 1."""
        return self._scores(X)

    def _tempered(self, X: Any) -> Array:
        """The shares at the temperature."""
        shares = self._scores(X)
        if self.temperature == 1:
            return shares
        powers = (shares / shares.max(axis=1, keepdims=True)) ** (1 / self.temperature)
        return powers / powers.sum(axis=1, keepdims=True)

    @available_if(_is_soft)
    def predict_proba(self, X: Any) -> Array:
        """The weighted mean of the probabilities, at the temperature."""
        return untied(self._tempered(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the most votes; of two classes with as many the second."""
        return elected(self._tempered(X), self.classes_)

    def margins(self, X: Any, y: ArrayLike) -> Array:
        """How clear the vote for the right class is: its share minus the largest of another, from -1 to 1."""
        shares, labels = self._scores(X), self._labels(y)
        check_consistent_length(shares, labels)
        return vote_margins(shares, labels)


class VoteRegressor(RegressorMixin, Vote):
    """The weighted mean of different regression machines, each fitted to all rows.

        f(x) = sum_m weight_m f_m(x) / sum_m weight_m

    Parameters
    ----------
    estimators : list of regressors, or of (name, regressor) pairs, or None
        The machines that vote; parameters of those with names are reached as ``name__parameter``, and "drop" in the
        place of one leaves it out; None takes ridge regression and the support vector machine for numbers.
    weights : array or None
        The say of each machine; None is the same for all.
    n_jobs : int or None
        As for `VoteClassifier`.

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

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> VoteRegressor:
        """Fit the machines."""
        table, target = check_table(self, X, reset=True), check_target(self, y, numbers=True)
        check_consistent_length(table, target)
        self._fit(table, target, sample_weight)
        return self

    def _default(self) -> list:
        return [Ridge(), SVR()]

    def _answers(self, machine: Any, X: Any) -> Array:
        return np.asarray(machine.predict(X), dtype=np.float64).reshape(-1, 1)

    def weighted_members(self) -> list[tuple[float, Any]]:
        """The machines whose predictions add up to that of the vote, each after its weight in the sum.

        >>> vote = er.VoteRegressor([er.Ridge(), er.TreeRegressor()]).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> vote.weighted_members()
        [(0.5, Ridge()), (0.5, TreeRegressor())]
        """
        check_is_fitted(self)
        return [(float(weight), one) for weight, one in zip(self.weights_, self.estimators_, strict=True)]

    def predict(self, X: Any) -> Array:
        """The weighted mean of what the machines predict."""
        return self._scores(X)[:, 0]
