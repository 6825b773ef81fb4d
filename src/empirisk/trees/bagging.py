"""Bagging: the same machine on many bootstrap samples, and their vote or mean."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from empirisk import state
from empirisk.contract.inputs import check_weights, class_weights
from empirisk.contract.members import check_table, check_target
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.trees.bagging_base import Bagging
from empirisk.trees.tree import TreeClassifier, TreeRegressor, numbered

Array = NDArray[np.float64]


class BaggingClassifier(ClassifierMixin, Bagging):
    """Many classifiers of one kind, each fitted to a bootstrap sample; they vote.

        P(k | x) = share of the members that say k      (or the mean of their probabilities)

    A sample draws as many rows as there are, with replacement, in proportion to their weights; weights that are whole
    numbers count rows, so that weight 2 equals the row twice. About a third of the rows are outside each sample: what
    their members say of them is an honest judgement that costs no data.

    Parameters
    ----------
    estimator : classifier or None
        The machine to bag; None takes `TreeClassifier`, fully grown.
    n_estimators : int
        Number of members.
    vote : "majority" or "mean"
        Whether members vote, or their probabilities are averaged.
    max_samples : float
        Size of a sample, as a part of the rows.
    class_weight : None, "balanced" or dict
        Factors of the rows' chances to be drawn, by class.
    oob_importances : bool
        Whether to compute ``feature_importances_``.
    max_time : float or None
        Seconds after which no further member is awaited.
    random_state : int, RandomState or None
        Decides the samples, and the members' own random states.

    Attributes
    ----------
    estimators_ : list
        The members.
    classes_ : array
        The classes, sorted.
    oob_score_, oob_error_ : float
        Share of rows that the members that have not seen them get right, or wrong; NaN where each saw every row.
    oob_decision_function_ : (n_rows, n_classes)
        What those members say; NaN for a row that all have seen.
    feature_importances_ : (n_features,)
        How much a member's error outside its sample rises when the column is shuffled there, with
        ``oob_importances=True``. Unbiased: about zero for noise.

    Examples
    --------
    >>> X = np.arange(20.0)[:, None]
    >>> bag = er.BaggingClassifier(n_estimators=25, random_state=0).fit(X, X[:, 0] > 9)
    >>> bag.predict([[3.0], [15.0]])
    array([False,  True])
    """

    _state = state.State(
        vote=state.text("majority", "mean"),
        classes_=state.labels("classes"),
        oob_decision_function_=state.array("f8", None, "classes", finite=False),
    )

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 100,
        *,
        vote: str = "majority",
        max_samples: float = 1.0,
        class_weight: dict | str | None = None,
        oob_importances: bool = False,
        max_time: float | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.vote = vote
        self.max_samples = max_samples
        self.class_weight = class_weight
        self.oob_importances = oob_importances
        self.max_time = max_time
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "BaggingClassifier":
        """Fit the members."""
        if self.vote not in ("majority", "mean"):
            raise EmpiriskError(f"vote={self.vote!r} is not known; use 'majority' or 'mean'.")
        if self.vote == "mean" and not hasattr(self._machine(), "predict_proba"):
            raise EmpiriskError(f"vote='mean' needs probabilities, which {self._machine()!r} lacks; use 'majority'.")
        table, target = check_table(self, X, reset=True), check_target(self, y)
        check_consistent_length(table, target)
        check_classification_targets(target)
        weights = check_weights(sample_weight, len(target))
        self.classes_ = np.unique(target[weights > 0])
        labels = numbered(target, self.classes_)
        factors = class_weights(self.class_weight, self.classes_, labels, weights)
        self._fit(table, target, weights, np.where(labels < 0, 0.0, factors[labels]))
        return self

    def predict_proba(self, X: Any) -> Array:
        """The share of the votes for each class, or the mean of the members' probabilities."""
        return self._mean_answer(X)

    def predict(self, X: Any) -> NDArray:
        """The class with the most votes; the first of two with as many."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _default(self) -> TreeClassifier:
        return TreeClassifier()

    def _answers(self, machine: Any, X: Any) -> Array:
        if self.vote == "majority":
            labels = numbered(np.asarray(machine.predict(X)), self.classes_)
            return (labels[:, None] == np.arange(len(self.classes_))).astype(np.float64)
        shares = np.asarray(machine.predict_proba(X), dtype=np.float64)
        answers = np.zeros((len(shares), len(self.classes_)))
        answers[:, numbered(machine.classes_, self.classes_)] = shares
        return answers

    def _losses(self, answers: Array, y: NDArray) -> Array:
        return (self.classes_[answers.argmax(axis=1)] != y).astype(np.float64)

    def _judge(self, answers: Array, seen: NDArray[np.bool_], y: NDArray, weights: Array) -> None:
        judged = weights * seen
        self.oob_error_ = float(judged @ self._losses(answers, y) / judged.sum()) if judged.any() else np.nan
        self.oob_score_ = 1.0 - self.oob_error_
        self.oob_decision_function_ = np.where(seen[:, None], answers, np.nan)

    def _acceptable(self, y: NDArray, rows: NDArray[np.intp]) -> bool:
        return len(self.classes_) == 1 or bool((y[rows] != y[rows[0]]).any())


class BaggingRegressor(RegressorMixin, Bagging):
    """Many regression machines of one kind, each fitted to a bootstrap sample; the mean of what they predict.

    See `BaggingClassifier` for the samples and for the judgement on rows outside them.

    Parameters
    ----------
    estimator : regressor or None
        The machine to bag; None takes `TreeRegressor`, fully grown.
    n_estimators, max_samples, oob_importances, max_time, random_state
        As for `BaggingClassifier`.

    Attributes
    ----------
    estimators_ : list
        The members.
    oob_score_, oob_error_ : float
        R^2 and mean squared error on the rows of the members that have not seen them; NaN where each saw every row.
    oob_prediction_ : array
        What those members predict; NaN for a row that all have seen.
    feature_importances_ : (n_features,)
        How much a member's squared error outside its sample rises when the column is shuffled there, with
        ``oob_importances=True``.

    Examples
    --------
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> bag = er.BaggingRegressor(n_estimators=30, random_state=0).fit(X, X[:, 0] ** 2)
    >>> bag.predict([[0.5]]).round(1)
    array([0.2])
    """

    _state = state.State(oob_prediction_=state.array("f8", None, finite=False))

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 100,
        *,
        max_samples: float = 1.0,
        oob_importances: bool = False,
        max_time: float | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.oob_importances = oob_importances
        self.max_time = max_time
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "BaggingRegressor":
        """Fit the members."""
        table, target = check_table(self, X, reset=True), check_target(self, y, numbers=True)
        check_consistent_length(table, target)
        self._fit(table, target, check_weights(sample_weight, len(target)), None)
        return self

    def predict(self, X: Any) -> Array:
        """The mean of what the members predict."""
        return self._mean_answer(X)[:, 0]

    def _default(self) -> TreeRegressor:
        return TreeRegressor()

    def _answers(self, machine: Any, X: Any) -> Array:
        return np.asarray(machine.predict(X), dtype=np.float64).reshape(-1, 1)

    def _losses(self, answers: Array, y: NDArray) -> Array:
        return (answers[:, 0] - y) ** 2

    def _judge(self, answers: Array, seen: NDArray[np.bool_], y: NDArray, weights: Array) -> None:
        judged = weights * seen
        self.oob_error_ = self.oob_score_ = np.nan
        if judged.any():
            self.oob_error_ = float(judged @ self._losses(answers, y) / judged.sum())
            spread = judged @ (y - judged @ y / judged.sum()) ** 2 / judged.sum()
            self.oob_score_ = 1.0 - self.oob_error_ / spread if spread > 0 else np.nan
        self.oob_prediction_ = np.where(seen, answers[:, 0], np.nan)

    def _acceptable(self, y: NDArray, rows: NDArray[np.intp]) -> bool:
        return True
