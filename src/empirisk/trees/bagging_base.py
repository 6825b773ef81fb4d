"""What the two bagging machines share: bootstrap samples, members on threads, out-of-bag judgement."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from empirisk import state
from empirisk.contract.arguments import check_count, check_number, check_time
from empirisk.contract.clock import Clock, Watch, warn_if_stopped
from empirisk.contract.importances import Importances
from empirisk.contract.inputs import generator
from empirisk.contract.members import check_table, seeded, shuffled, take_rows
from empirisk.fits.fit import interruptible
from empirisk.linalg.threads import in_order
from empirisk.trees.resample import Groups

Array = NDArray[np.float64]

REDRAWS = 100  # attempts to draw a sample that holds two classes, where there are two


class Member(NamedTuple):
    """One fitted machine, and what it says about the rows outside its sample."""

    machine: Any
    rows: NDArray[np.intp]
    predictions: NDArray
    importances: Array


class Bagging(CallbackSupportMixin, Importances, BaseEstimator, ABC):
    """What the two bagging machines share; see `BaggingClassifier` and `BaggingRegressor`."""

    _state = state.State(
        estimator=state.maybe(state.part(has="fit", fitted=False)),
        n_features_in_=state.size("columns"),
        estimators_=state.several(state.part(has="predict", columns="columns"), "members"),
        feature_importances_=state.optional(state.array("f8", "columns", finite=False)),
        oob_error_=state.number(finite=False),
        oob_score_=state.number(finite=False),
    )

    estimator: Any
    n_estimators: int
    max_samples: float
    oob_importances: bool
    max_time: float | None
    random_state: Any
    estimators_: list

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

    def _machine(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def _fit(self, X: Any, y: NDArray, weights: Array, factors: Array | None) -> None:
        """Fit the members; ``factors`` multiply the chances of the rows without counting as rows."""
        check_count("n_estimators", self.n_estimators)
        part = check_number("max_samples", self.max_samples, 0, 1, above=True)
        check_time(self.max_time)
        random = generator(self.random_state)
        groups = Groups.of(X, y, weights, factors)
        # Drawn one by one as they are needed: all of them at once can be larger than the table.
        samples = (
            (self._sample(groups, part, y, random), int(random.integers(2**31))) for _ in range(self.n_estimators)
        )
        answers, seen = None, np.zeros(len(y))
        self.estimators_, importances = [], []
        watch = Watch(self, self.n_estimators, {"X": X, "y": y, "metadata": {"sample_weight": weights}})
        with interruptible() as interrupted:
            clock = Clock(self.max_time, interrupted)
            members = in_order(lambda sample: self._member(groups, sample[0], sample[1], X, y), samples, clock)
            for member in members:
                watch.begin("machine")
                self.estimators_.append(member.machine)
                importances.append(member.importances)
                if answers is None:
                    answers = np.zeros((len(y), member.predictions.shape[1]))
                answers[member.rows] += member.predictions
                seen[member.rows] += 1
                fitted = list(self.estimators_)
                if watch.end(lambda fitted=fitted: {"estimators_": fitted}) or clock():
                    members.close()
                    break
        self._judge(answers / np.maximum(seen, 1)[:, None], seen > 0, y, weights)
        if self.oob_importances:
            self.feature_importances_ = np.mean(importances, axis=0)
        watch.close()
        warn_if_stopped(self, clock.reason, len(self.estimators_), "machines")

    def _sample(self, groups: Groups, part: float, y: NDArray, random: np.random.Generator) -> NDArray[np.int64]:
        for _ in range(REDRAWS):
            counts = groups.draw(part, random)
            if self._acceptable(y, groups.first[counts > 0]):
                break
        return counts

    def _member(self, groups: Groups, counts: NDArray[np.int64], seed: int, X: Any, y: NDArray) -> Member:
        """Fit one machine on its sample, and ask it about the rows outside."""
        drawn = np.flatnonzero(counts)
        # Where a sample holds a single class, many machines refuse: its member is the constant that it asks for.
        learnable = self._acceptable(y, groups.first[drawn])
        machine = seeded(self._machine(), seed) if learnable else DummyClassifier(strategy="most_frequent")
        if has_fit_parameter(machine, "sample_weight"):
            rows = groups.first[drawn]
            machine.fit(take_rows(X, rows), y[rows], sample_weight=counts[drawn].astype(np.float64))
        else:
            rows = np.repeat(groups.first[drawn], counts[drawn])
            machine.fit(take_rows(X, rows), y[rows])
        outside = np.flatnonzero(counts[groups.member] == 0)
        if not len(outside):
            return Member(machine, outside, self._answers(machine, take_rows(X, groups.first[:1]))[:0], np.zeros(0))
        table = take_rows(X, outside)
        answers = self._answers(machine, table)
        importances = self._shuffle_losses(machine, table, y[outside], answers, np.random.default_rng(seed))
        return Member(machine, outside, answers, importances)

    def _shuffle_losses(self, machine: Any, X: Any, y: NDArray, answers: Array, random: np.random.Generator) -> Array:
        """How much the mean loss rises when each column is shuffled among rows outside the sample."""
        if not self.oob_importances:
            return np.zeros(0)
        before, order = self._losses(answers, y).mean(), random.permutation(len(y))
        return np.array(
            [
                self._losses(self._answers(machine, shuffled(X, column, order)), y).mean() - before
                for column in range(self.n_features_in_)
            ]
        )

    def _mean_answer(self, X: Any) -> Array:
        check_is_fitted(self)
        table = check_table(self, X, reset=False)
        answers = list(in_order(lambda machine: self._answers(machine, table), self.estimators_))
        return np.sum(answers, axis=0) / len(answers)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self._machine())
        for name in ("sparse", "allow_nan", "positive_only", "string"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        return tags
