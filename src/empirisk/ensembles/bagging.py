"""Bagging: the same machine on many samples, and their vote or mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from empirisk import state
from empirisk.contract.arguments import check_count, check_flag, check_time, count_features, sample_part
from empirisk.contract.ensemble import ClassMembers, ListOfMembers, Members
from empirisk.contract.inputs import Array, check_weights, class_codes, class_weights, generator, sorted_classes
from empirisk.contract.members import check_table, check_target, member_tags, seeded, take_input_tags
from empirisk.contract.multiclass import elected, untied
from empirisk.contract.out_of_bag import OutOfBagClasses, OutOfBagNumbers
from empirisk.contract.outputs import (
    CLASSES,
    LabelsClassifier,
    LogProbabilities,
    as_columns,
    classes_of_columns,
    ends_of,
    indicators,
    label_columns,
    like,
    predicted,
    probabilities_of,
    squared_errors,
    wrong_labels,
)
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.resample import Groups
from empirisk.contract.transaction import all_or_nothing
from empirisk.contract.warm import WarmStart
from empirisk.errors import EmpiriskError, warn_deprecated
from empirisk.explain.permutation import Importances, falls
from empirisk.linalg.threads import ordered_map
from empirisk.names import SPELLINGS, Estimator, spelled
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.trees.table_columns import require_squares
from empirisk.trees.tree import TreeClassifier, TreeRegressor

REDRAWS = 100  # attempts to draw a sample that holds two classes, where there are two
ASKED = 1024  # rows that a member is asked about between two looks at the deadline: neighbours take a while for each


class Member(NamedTuple):
    """One fitted machine, and what it says about the rows outside its sample."""

    machine: Any
    columns: NDArray[np.int64]
    rows: NDArray[np.intp]
    predictions: NDArray
    importances: Array


def _fitted(members: list[Member]) -> dict[str, list[Any]]:
    return {"estimators_": [one.machine for one in members], "features_": [one.columns for one in members]}


def _wrong_columns(its: Mapping[str, Any]) -> str | None:
    """What is wrong where members from a file do not have the columns that they are given."""
    members = its["estimators_"]
    counts = map(len, its["features_"]) if "features_" in its else [its["n_features_in_"]] * len(members)
    wrong = (getattr(member, "n_features_in_", count) != count for member, count in zip(members, counts, strict=True))
    return "estimators_ have other numbers of columns than features_" if any(wrong) else None


@dataclass(eq=False, repr=False)
class BaggingParameters:
    """The parameters that the two bagging machines share."""

    estimator: Any = None
    n_estimators: int = 100
    _: KW_ONLY
    max_samples: int | float | None = 1.0
    bootstrap: bool = True
    max_features: int | float | str | None = None
    oob_score: bool = True
    oob_importances: bool = False
    max_time: float | None = None
    n_jobs: int | None = None
    warm_start: bool = False
    random_state: Any = None


@dataclass
class BaggingWork:
    """Members so far, what they said of rows outside their samples, and the draws that go on."""

    groups: Groups
    random: np.random.Generator
    seen: Array
    answers: Array | None = None
    members: list[Member] = field(default_factory=list)


class Bagging(BaggingParameters, ListOfMembers, Members, CallbackSupportMixin, Importances, Estimator, ABC):
    """What the two bagging machines share; see `BaggingClassifier` and `BaggingRegressor`."""

    _state = state.State(
        _wrong_columns,
        filled=("members",),
        estimator=state.maybe(state.part(has="fit", fitted=False)),
        n_features_in_=state.size("columns"),
        estimators_=state.several(state.part(has="predict"), "members"),
        # Files of before 0.2 have no list of columns: their members see all of them.
        features_=state.optional(state.several(state.array("i8", None, low=0, below="columns"), "members")),
        feature_importances_=state.optional(state.array("f8", "columns", finite=False)),
        stopped_=state.optional(state.text()),  # files of version 0.1 have none
    )

    estimators_: list[Any]
    feature_importances_: Array

    @abstractmethod
    def _default(self) -> Any:
        """The machine to bag where none is given."""

    @abstractmethod
    def _answers(self, machine: Any, X: Any) -> Array:
        """What a member says about rows: (n_rows, n_outputs)."""

    @abstractmethod
    def _losses(self, answers: Array, y: NDArray) -> Array:
        """The loss of each row's answers."""

    @abstractmethod
    def _judge(self, answers: Array, seen: NDArray[np.bool_], y: NDArray, weights: Array) -> None:
        """Note how good the answers of members that did not see a row are."""

    @abstractmethod
    def _acceptable(self, y: NDArray, rows: NDArray[np.intp]) -> bool:
        """Whether a sample of these rows can be learned from."""

    def _importances(self, measured: list[Array]) -> None:
        """Note what each column is worth, where that was measured or the members know it."""
        if self.oob_importances:
            self.feature_importances_ = np.mean(measured, axis=0)
        elif any(hasattr(member, "feature_importances_") for member in self.estimators_):
            self.feature_importances_ = np.zeros(self.n_features_in_)
            for member, columns in zip(self.estimators_, self._column_lists(), strict=True):
                # The constant that stands for a sample of one class uses no column.
                self.feature_importances_[columns] += getattr(member, "feature_importances_", 0.0)
            self.feature_importances_ /= len(self.estimators_)

    def _column_lists(self) -> list[NDArray[np.int64]]:
        """The columns of each member; in older files each sees all."""
        if hasattr(self, "features_"):
            return self.features_
        return [np.arange(self.n_features_in_)] * len(self.estimators_)

    @property
    def estimators_features_(self) -> list[NDArray[np.int64]]:
        """The columns of each member, by scikit-learn's name."""
        check_is_fitted(self)
        return self._column_lists()

    def _machine(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def _fit(self, X: Any, y: NDArray, weights: Array, factors: Array | None) -> None:
        """Fit the members; ``factors`` multiply the chances of the rows without counting as rows."""
        check_count("n_estimators", self.n_estimators)
        check_flag("oob_score", self.oob_score)
        check_time(self.max_time)
        if self.bootstrap not in (True, False):
            raise EmpiriskError(f"bootstrap={self.bootstrap!r} must be True or False.")
        width = count_features(self.max_features, self.n_features_in_)
        data = {"X": X, "y": y, "metadata": {"sample_weight": weights}}
        warm = WarmStart[BaggingWork](self, data)
        work = warm.work or BaggingWork(
            Groups.of(X, y, weights, factors), generator(self.random_state), np.zeros(len(y))
        )
        groups, random, done = work.groups, work.random, work.members
        part = sample_part(self.max_samples, groups.size)
        # Drawn one by one as they are needed: all of them at once can be larger than the table.
        samples = (
            (self._sample(groups, part, y, random), self._draw_columns(width, random), int(random.integers(2**31)))
            for _ in range(self.n_estimators - len(done))
        )
        watch = FitCallbacks(self, self.n_estimators, data)
        with interruptible():
            deadline = Deadline(self.max_time)
            members = ordered_map(lambda sample: self._member(groups, sample, X, y, deadline), samples, deadline)
            for member in members:
                watch.begin("machine")
                done.append(member)
                if work.answers is None:
                    work.answers = np.zeros((len(y), member.predictions.shape[1]))
                work.answers[member.rows] += member.predictions
                work.seen[member.rows] += 1
                if watch.end(lambda: _fitted(done)) or deadline():
                    members.close()
                    break
        self.__dict__.update(_fitted(done))
        whole = len(done) == self.n_estimators
        warm.keep(work, whole)
        self.stopped_ = Ending.FINISHED if whole else deadline.reason or Ending.CALLBACK
        assert work.answers is not None
        if self.oob_score:
            self._judge(work.answers / np.maximum(work.seen, 1)[:, None], work.seen > 0, y, weights)
        self._importances([member.importances for member in done])
        watch.close()
        warn_if_unfinished(self, deadline.reason, f"{len(self.estimators_)} of {self.n_estimators} machines")

    def _sample(self, groups: Groups, part: float, y: NDArray, random: np.random.Generator) -> NDArray[np.int64]:
        for _ in range(REDRAWS):
            counts = groups.draw(part, random) if self.bootstrap else groups.draw_once(part, random)
            if self._acceptable(y, groups.first[counts > 0]):
                break
        return counts

    def _draw_columns(self, width: int, random: np.random.Generator) -> NDArray[np.int64]:
        if width == self.n_features_in_:
            return np.arange(width)
        return np.sort(random.choice(self.n_features_in_, width, replace=False, shuffle=False))

    def _columns(self, X: Any, columns: NDArray[np.int64]) -> Any:
        """The columns that a member sees."""
        return X if len(columns) == self.n_features_in_ else _safe_indexing(X, columns, axis=1)

    def _member(
        self,
        groups: Groups,
        sample: tuple[NDArray[np.int64], NDArray[np.int64], int],
        X: Any,
        y: NDArray,
        deadline: Deadline,
    ) -> Member:
        """Fit one machine on its sample, and ask it about the rows outside."""
        counts, columns, seed = sample
        drawn, X = np.flatnonzero(counts), self._columns(X, columns)
        # Where a sample holds a single class, many machines refuse: its member is the constant that it asks for.
        learnable = self._acceptable(y, groups.first[drawn])
        machine = seeded(self._machine(), seed) if learnable else DummyClassifier(strategy="most_frequent")
        if has_fit_parameter(machine, "sample_weight"):
            rows = groups.first[drawn]
            machine.fit(_safe_indexing(X, rows), y[rows], sample_weight=counts[drawn].astype(np.float64))
        else:
            rows = np.repeat(groups.first[drawn], counts[drawn])
            machine.fit(_safe_indexing(X, rows), y[rows])
        outside = np.flatnonzero(counts[groups.member] == 0)
        if not len(outside) or not (self.oob_score or self.oob_importances):
            outside = outside[:0]
            said = self._answers(machine, _safe_indexing(X, groups.first[:1]))[:0]
            return Member(machine, columns, outside, said, np.zeros(0))
        answers = self._answers_in_time(machine, X, outside, deadline)
        outside = outside[: len(answers)]
        importances = np.zeros(self.n_features_in_ if self.oob_importances else 0)
        if self.oob_importances:
            single, table = [np.array([column]) for column in range(len(columns))], _safe_indexing(X, outside)
            importances[columns] = falls(machine, table, y[outside], single, self._minus_loss, 1, seed)[:, 0]
        return Member(machine, columns, outside, answers, importances)

    def _answers_in_time(self, machine: Any, X: Any, rows: NDArray[np.intp], deadline: Deadline) -> Array:
        """What a member says about some rows, or about the first of them where the time is up."""
        answers = [self._answers(machine, _safe_indexing(X, rows[:ASKED]))]
        for begin in range(ASKED, len(rows), ASKED):
            if deadline():
                break
            answers.append(self._answers(machine, _safe_indexing(X, rows[begin : begin + ASKED])))
        return np.concatenate(answers)

    def _minus_loss(self, machine: Any, X: Any, y: NDArray) -> float:
        """Minus the mean loss of a member: a score that falls as the loss rises."""
        return -float(self._losses(self._answers(machine, X), y).mean())

    def _each_answer(self, X: Any) -> Iterator[tuple[float, Array]]:
        check_is_fitted(self)
        table = check_table(self, X, reset=False)

        def ask(member: tuple[Any, NDArray[np.int64]]) -> Array:
            return self._answers(member[0], self._columns(table, member[1]))

        for answers in ordered_map(ask, zip(self.estimators_, self._column_lists(), strict=True)):
            yield 1.0, answers

    def _scores(self, X: Any) -> Array:
        """The mean answer of the members."""
        return np.sum([answers for _, answers in self._each_answer(X)], axis=0) / len(self.estimators_)

    def __sklearn_tags__(self):
        return take_input_tags(super().__sklearn_tags__(), "estimator", self._machine())


@dataclass(eq=False, repr=False)
class BaggingClassifier(LogProbabilities, OutOfBagClasses, ClassMembers, LabelsClassifier, Bagging):
    """Many classifiers of one kind, each fitted to a bootstrap sample; they vote.

        P(k | x) = share of the members that say k      (or the mean of their probabilities)

    A sample draws as many rows as there are, with replacement, in proportion to their weights; weights that are whole
    numbers count rows, so that weight 2 equals the row twice. About a third of the rows are outside each sample: what
    their members say of them is an honest judgement that costs no data.

    y may have several columns of labels where the machine takes them; ``classes_`` and all answers about classes are
    then lists with one entry for each column, and an error is a row with a wrong label.

    Parameters
    ----------
    estimator : classifier or None
        The machine to bag; None takes `TreeClassifier`, fully grown.
    n_estimators : int
        Number of members.
    voting : "hard" or "soft"
        Whether members vote, or their probabilities are averaged.
    max_samples : int, float or None
        Size of a sample: a number of rows, or a part of them; None is all.
    bootstrap : bool
        Whether samples are drawn with replacement. Without it a row is at most once in a sample: ``max_samples=0.5``
        gives every member half of the rows.
    max_features : int, float, "sqrt", "log2" or None
        Columns that each member sees, drawn at random: a number, a share, the square root of their number, or all.
    class_weight : None, "balanced" or dict
        Factors of the rows' chances to be drawn, by class.
    oob_score : bool
        Whether the answers about rows outside the samples are kept: ``oob_score_`` and its like.
    oob_importances : bool
        Whether ``feature_importances_`` are measured on rows outside the samples.
    max_time : float or None
        Seconds after which no further member is awaited.
    n_jobs : int or None
        Threads of a fit, -1 for all; None is that of `er.config`. Answers are the same on any number of them.
    warm_start : bool
        Whether `fit` keeps its work, so that the next one on the same rows, with more members, adds those alone. The
        machine is the same as without it.
    random_state : int, RandomState or None
        Decides the samples, and the members' own random states.

    Attributes
    ----------
    estimators_ : list
        The members.
    stopped_ : str
        Why it ended: "finished", "max_time", "interrupted" or "callback".
    features_ : list of arrays
        The columns that each member sees.
    classes_ : array
        The classes, sorted.
    oob_score_, oob_error_ : float
        Share of rows that the members that have not seen them get right, or wrong; NaN where each saw every row.
    oob_decision_function_ : (n_rows, n_classes)
        What those members say; NaN for a row that all have seen.
    feature_importances_ : (n_features,)
        With ``oob_importances=True`` how much a member's error outside its sample rises when the column is shuffled
        there: unbiased, about zero for noise. Otherwise the mean of the members' own, where they have them.

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> bag = er.BaggingClassifier(n_estimators=25, random_state=0).fit(X, X[:, 0] > 9)
    >>> bag.predict([[3.0], [15.0]])
    array([False,  True])
    """

    _state = state.State(
        voting=state.text("hard", "soft", *SPELLINGS["voting"]),
        classes_=CLASSES,
    )

    _: KW_ONLY
    voting: str = "hard"
    class_weight: dict[Any, float] | str | None = None

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BaggingClassifier:
        """Fit the members; ``y`` may have several columns of labels where the machine takes them."""
        voting = spelled("voting", self.voting)
        if voting not in ("hard", "soft"):
            raise EmpiriskError(f"voting={self.voting!r} is not known; use 'hard' or 'soft'.")
        if voting != self.voting:
            warn_deprecated(f"voting={self.voting!r}", f"voting={voting!r}", "2027-12-31")
        if voting == "soft" and not hasattr(self._machine(), "predict_proba"):
            raise EmpiriskError(f"voting='soft' needs probabilities, which {self._machine()!r} lacks; use 'hard'.")
        y, several = label_columns(y)
        several = several and bool(member_tags("estimator", self._machine()).target_tags.multi_output)
        table, target = check_table(self, X, reset=True), check_target(self, y, several=several)
        check_consistent_length(table, target)
        weights = check_weights(sample_weight, len(target))
        if several:
            self.classes_ = classes_of_columns(target, weights, self.class_weight)
            self._fit(table, target, weights, None)
            return self
        self.classes_ = sorted_classes(target, weights)
        labels = class_codes(target, self.classes_)
        factors = class_weights(self.class_weight, self.classes_, labels, weights)
        self._fit(table, target, weights, np.where(labels < 0, 0.0, factors[labels]))
        return self

    def predict_proba(self, X: Any) -> Any:
        """The share of the votes for each class, or the mean of the members' probabilities; of labels a list."""
        shares = self._scores(X)
        return probabilities_of(shares, self.classes_) if isinstance(self.classes_, list) else untied(shares)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the most votes; of two with as many the second; of several labels a column for each."""
        return predicted(self.predict_proba(X), self.classes_)

    def _default(self) -> TreeClassifier:
        return TreeClassifier()

    def _answers(self, machine: Any, X: Any) -> Array:
        if isinstance(self.classes_, list):
            return self._answers_about_labels(machine, X, self.classes_)
        if spelled("voting", self.voting) == "hard":
            labels = class_codes(np.asarray(machine.predict(X)), self.classes_)
            return (labels[:, None] == np.arange(len(self.classes_))).astype(np.float64)
        shares = np.asarray(machine.predict_proba(X), dtype=np.float64)
        answers = np.zeros((len(shares), len(self.classes_)))
        answers[:, class_codes(machine.classes_, self.classes_)] = shares
        return answers

    def _answers_about_labels(self, machine: Any, X: Any, classes: list[NDArray]) -> Array:
        """Votes or probabilities of the classes of all labels, side by side."""
        if spelled("voting", self.voting) == "hard":
            return indicators(np.asarray(machine.predict(X)), classes).astype(np.float64)
        found = []
        for shares, known, names in zip(machine.predict_proba(X), machine.classes_, classes, strict=True):
            part = np.zeros((len(shares), len(names)))
            part[:, class_codes(known, names)] = shares
            found.append(part)
        return np.concatenate(found, axis=1)

    def _losses(self, answers: Array, y: NDArray) -> Array:
        if isinstance(self.classes_, list):
            return wrong_labels(answers, indicators(y, self.classes_), ends_of(self.classes_))
        return (elected(answers, self.classes_) != y).astype(np.float64)

    def _judge(self, answers: Array, seen: NDArray[np.bool_], y: NDArray, weights: Array) -> None:
        self._judge_classes(np.where(seen[:, None], answers, np.nan), self._losses(answers, y), weights * seen)

    def _acceptable(self, y: NDArray, rows: NDArray[np.intp]) -> bool:
        if isinstance(self.classes_, list):  # a machine that takes several labels takes columns of one class too
            return True
        return len(self.classes_) == 1 or bool((y[rows] != y[rows[0]]).any())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = member_tags("estimator", self._machine()).target_tags.multi_output and self.class_weight is None
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = inner
        return tags


class BaggingRegressor(OutOfBagNumbers, RegressorMixin, Bagging):
    """Many regression machines of one kind, each fitted to a bootstrap sample; the mean of what they predict.

        f(x) = 1/B sum_b f_b(x)

    y may have several columns where the machine takes them; errors and scores are then means over the columns.

    See `BaggingClassifier` for the samples and for the judgement on rows outside them.

    Parameters
    ----------
    estimator : regressor or None
        The machine to bag; None takes `TreeRegressor`, fully grown.
    n_estimators, max_samples, bootstrap, max_features, oob_score, oob_importances, max_time, n_jobs, random_state
        As for `BaggingClassifier`.
    warm_start : bool
        As for `BaggingClassifier`.

    Attributes
    ----------
    estimators_ : list
        The members.
    features_ : list of arrays
        The columns that each member sees.
    oob_score_, oob_error_ : float
        R^2 and mean squared error on the rows of the members that have not seen them; NaN where each saw every row.
    oob_prediction_ : array
        What those members predict; NaN for a row that all have seen.
    feature_importances_ : (n_features,)
        As for `BaggingClassifier`, with the squared error.

    Examples
    --------
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> bag = er.BaggingRegressor(n_estimators=30, random_state=0).fit(X, X[:, 0] ** 2)
    >>> bag.predict([[0.5]]).round(1)
    array([0.2])
    """

    _state = state.State(
        estimators_=state.several(state.part(has="predict", outputs="outputs"), "members"),
    )

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BaggingRegressor:
        """Fit the members."""
        several = bool(member_tags("estimator", self._machine()).target_tags.multi_output)
        table, target = check_table(self, X, reset=True), check_target(self, y, numbers=True, several=several)
        check_consistent_length(table, target)
        require_squares(target)
        self._several = target.ndim == 2
        self._fit(table, target, check_weights(sample_weight, len(target)), None)
        return self

    def predict(self, X: Any) -> Array:
        """The mean of what the members predict."""
        return like(self._scores(X), self._several)

    def _default(self) -> TreeRegressor:
        return TreeRegressor()

    def _answers(self, machine: Any, X: Any) -> Array:
        return as_columns(np.asarray(machine.predict(X), dtype=np.float64))

    def _losses(self, answers: Array, y: NDArray) -> Array:
        return squared_errors(answers, y)

    def _judge(self, answers: Array, seen: NDArray[np.bool_], y: NDArray, weights: Array) -> None:
        self._judge_numbers(np.where(seen[:, None], answers, np.nan), y, weights * seen)

    def _acceptable(self, y: NDArray, rows: NDArray[np.intp]) -> bool:
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = member_tags("estimator", self._machine()).target_tags.multi_output
        return tags
