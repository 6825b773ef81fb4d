"""Gradient boosting: a sum of small trees, each a Newton step on the loss of the sum so far."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if

from empirisk import losses, state
from empirisk.contract.arguments import weigh_classes
from empirisk.contract.inputs import check_weights
from empirisk.contract.transaction import all_or_nothing
from empirisk.losses.base import Loss
from empirisk.machines.multiclass import winners
from empirisk.trees.bins import MAX_BINS
from empirisk.trees.boost_loss import Objective, classes_objective, numbers_objective, probabilities
from empirisk.trees.boosting_base import Boosting
from empirisk.trees.categories import read_training

Array = NDArray[np.float64]


def _has_probabilities(machine: "BoostingClassifier") -> bool:
    if losses.find(machine.loss).probabilistic:
        return True
    raise AttributeError(f"loss={machine.loss!r} implies no probabilities; use loss='logistic' or calibrate.")


class BoostingClassifier(ClassifierMixin, Boosting):
    """Gradient boosting for classes:  f(x) = baseline + sum of trees.

    Each round grows, on histograms of gradient and curvature, the tree that lowers

        sum_i c_i (g_i f(x_i) + 1/2 h_i f(x_i)^2) + l2/2 sum of squared leaf values

    and adds ``learning_rate`` times it to f. Two classes: one f, with any loss of the margin. More classes: a tree for
    each class in every round, with the softmax for the logistic loss and one-vs-rest for the others. What a column is
    worth, `importances` says on rows held out.

    Parameters
    ----------
    loss : str or Loss
        "logistic" (with more classes: softmax), "exponential", "soft_hinge", "squared_hinge", "squared", "hinge", or
        an object of `empirisk.losses`. Leaves of a loss with corners (the hinge) get its best constants.
    learning_rate : float
        Share of each step that is taken.
    n_estimators : int
        Number of rounds.
    max_leaves, max_depth : int or None
        Limits of each tree; trees grow by their best split first.
    min_samples_leaf : float or None
        Least number of rows in a leaf; None is 20, or a twentieth of the rows if that is less. A row of weight 2 counts
        twice. Histograms do not count rows: those of a child are taken to be in proportion to its curvature, which is
        exact for the squared loss.
    min_gain : float
        Least decrease of the mean loss by a split.
    l2 : float
        Penalty on leaf values.
    subsample : float
        Share of the rows that each round looks at, drawn at random; equal rows are drawn together.
    max_features : int, float, "sqrt" or None
        Columns that each tree looks at, drawn at random.
    max_bins : int
        Intervals into which a numeric column is cut, at most 255.
    categorical_features : "auto", list of columns or mask
        Columns that hold categories; "auto" takes the text and category columns of a data frame. Beyond 255
        categories the rarest count as missing, as do categories that were not there in training.
    monotone_constraints : list of -1, 0, 1, or dict by column name
        Columns with which f may only fall (-1) or rise (+1).
    class_weight : dict, "balanced" or None
        Factors on the weights of the classes.
    early_stopping : bool
        Whether to hold out a part of the rows, stop when their loss has not fallen for ``patience`` rounds, and keep
        the best number of rounds.
    validation_fraction : float
        The share held out; equal rows stay together, and classes keep their shares.
    patience : int
        Rounds to wait.
    max_time : float or None
        Seconds after which the fit ends with the trees that it has.
    random_state : int, RandomState or None
        Seed of the draws. The same seed gives the same bits with any number of threads.

    Attributes
    ----------
    classes_ : array
        The classes.
    packed_ : dict of arrays
        The trees, round after round, about 15 bytes a node; `nodes_` unpacks them.
    baseline_ : array
        The constant that f starts from.
    n_estimators_ : int
        Rounds kept.
    history_ : dict of arrays
        After each round: mean ``loss`` of the training rows (of up to 4 096 of them), ``seconds``, and with early
        stopping ``validation_loss``.
    stopped_by_ : str
        What ended the fit: "n_estimators", "early_stopping", "callback", "max_time" or "interrupted".

    Examples
    --------
    >>> X, y = np.arange(100.0)[:, None], np.repeat(["low", "high"], 50)
    >>> machine = er.BoostingClassifier(n_estimators=20).fit(X, y)
    >>> machine.predict([[3.0], [70.0]])
    array(['low', 'high'], dtype='<U4')
    """

    _state = state.State(
        lambda its: (
            None
            if len(its["baseline_"]) == (len(its["classes_"]) if len(its["classes_"]) > 2 else 1)
            else "baseline_ has not one number for each class"
        ),
        classes_=state.labels("classes"),
    )

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        max_leaves: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: float | None = None,
        min_gain: float = 0.0,
        l2: float = 0.01,
        subsample: float = 1.0,
        max_features: int | float | str | None = None,
        max_bins: int = MAX_BINS,
        categorical_features: Any = "auto",
        monotone_constraints: Any = None,
        class_weight: dict | str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        max_time: float | None = None,
        random_state: Any = None,
    ):
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.l2 = l2
        self.subsample = subsample
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotone_constraints = monotone_constraints
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.max_time = max_time
        self.random_state = random_state
        self.class_weight = class_weight

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "BoostingClassifier":
        """Learn from labelled rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n
            Labels of any type.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        rows, labels = read_training(self, X, y, self.categorical_features)
        weights = check_weights(sample_weight, len(labels))
        self.classes_, codes, factors = weigh_classes(labels, weights, self.class_weight)
        kept = slice(None) if (weights * factors > 0).all() else weights * factors > 0
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        self._fit(rows[kept], codes[kept], (weights * factors)[kept], weights[kept], data)
        return self

    def _objective(self, target: NDArray, weights: Array) -> Objective:
        return classes_objective(losses.find(self.loss), target, len(self.classes_), weights)

    def decision_function(self, X: ArrayLike) -> Array:
        """f(x): for two classes one number, positive for ``classes_[1]``; else a score per class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of each row; for two classes f = 0 is the second one."""
        return winners(self.decision_function(X), self.classes_)

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes."""
        return probabilities(losses.find(self.loss), self._scores(X), len(self.classes_))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray]:
        """The classes after each round."""
        for scores in self._staged_scores(X):
            yield winners(scores[:, 0] if len(self.classes_) == 2 else scores, self.classes_)

    @available_if(_has_probabilities)
    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Array]:
        """The probabilities after each round."""
        for scores in self._staged_scores(X):
            yield probabilities(losses.find(self.loss), scores, len(self.classes_))


class BoostingRegressor(RegressorMixin, Boosting):
    """Gradient boosting for numbers:  f(x) = baseline + sum of trees;  see `BoostingClassifier`.

    Parameters
    ----------
    loss : str or Loss
        "squared", "absolute", "power", "epsilon_insensitive", "squared_absolute", or an object of
        `empirisk.losses`. Leaves of a loss with corners get its best constants: the weighted median of the residuals
        for the absolute loss.
    learning_rate, n_estimators, max_leaves, max_depth, min_samples_leaf, min_gain, l2, subsample, max_features, \
max_bins, categorical_features, monotone_constraints, early_stopping, validation_fraction, patience, max_time, \
random_state
        As for `BoostingClassifier`.

    Attributes
    ----------
    packed_, baseline_, n_estimators_, history_, stopped_by_
        As for `BoostingClassifier`.

    Examples
    --------
    >>> X = np.arange(200.0)[:, None]
    >>> machine = er.BoostingRegressor(n_estimators=200).fit(X, np.sqrt(X[:, 0]))
    >>> machine.predict([[100.0]]).round(0)
    array([10.])
    """

    _state = state.State(lambda its: None if len(its["baseline_"]) == 1 else "baseline_ has several numbers")

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        max_leaves: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: float | None = None,
        min_gain: float = 0.0,
        l2: float = 0.01,
        subsample: float = 1.0,
        max_features: int | float | str | None = None,
        max_bins: int = MAX_BINS,
        categorical_features: Any = "auto",
        monotone_constraints: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        max_time: float | None = None,
        random_state: Any = None,
    ):
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.l2 = l2
        self.subsample = subsample
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotone_constraints = monotone_constraints
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.max_time = max_time
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "BoostingRegressor":
        """Learn from rows and their numbers.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n
            Numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        rows, numbers = read_training(self, X, y, self.categorical_features, y_numeric=True)
        numbers = numbers.astype(np.float64)
        weights = check_weights(sample_weight, len(numbers))
        kept = slice(None) if (weights > 0).all() else weights > 0
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        self._fit(rows[kept], numbers[kept], weights[kept], weights[kept], data)
        return self

    def _objective(self, target: Array, weights: Array) -> Objective:
        return numbers_objective(losses.find(self.loss), target, weights)

    def predict(self, X: ArrayLike) -> Array:
        """f(x) of each row."""
        return self._scores(X)[:, 0]

    def staged_predict(self, X: ArrayLike) -> Iterator[Array]:
        """f(x) after each round."""
        for scores in self._staged_scores(X):
            yield scores[:, 0]
