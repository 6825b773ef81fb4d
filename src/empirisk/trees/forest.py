"""Random forests: trees on bootstrap samples, each split among a few columns drawn at random."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.machines.fitting import interruptible
from empirisk.machines.inputs import check_weights, class_weights, generator
from empirisk.settings import settings
from empirisk.trees.arguments import check_count, check_number, count_features, number_classes
from empirisk.trees.bins import MAX_BINS, Binning
from empirisk.trees.categories import read_new, read_training
from empirisk.trees.criteria import CLASSIFICATION, ENTROPY
from empirisk.trees.criteria import find as find_criterion
from empirisk.trees.ensemble_predict import Ensemble, ready
from empirisk.trees.forest_grow import GrownTree, Planter, Target, pack_trees
from empirisk.trees.forest_loops import Rules
from empirisk.trees.forest_outside import Outside, Training
from empirisk.trees.importance import Importances
from empirisk.trees.nodes import Nodes
from empirisk.trees.resample import Groups
from empirisk.trees.watch import Clock, Watch, warn_if_stopped

Array = NDArray[np.float64]

UNLIMITED = np.iinfo(np.int32).max
CRITERIA = {name: code for name, code in CLASSIFICATION.items() if name != "error"}


class Forest(CallbackSupportMixin, Importances, BaseEstimator, ABC):
    """What the two forests share; see `ForestClassifier` and `ForestRegressor`."""

    n_estimators: int
    max_features: Any
    max_depth: int | None
    max_leaves: int | None
    min_samples_leaf: float
    min_gain: float
    bootstrap: bool
    max_samples: float
    max_bins: int
    categorical_features: Any
    max_time: float | None
    random_state: Any

    @abstractmethod
    def _judge(self, answers: Array, y: NDArray, weights: Array) -> None:
        """Note how good the answers of trees that did not see a row are."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    # --- fitting ----------------------------------------------------------------------------------------------------

    def _rules(self, n_features: int, classes: int, entropy: bool) -> Rules:
        depth = check_count("max_depth", self.max_depth, 1, optional=True)
        return Rules(
            classes=classes,
            entropy=entropy,
            leaf=check_number("min_samples_leaf", self.min_samples_leaf, 0),
            gain=check_number("min_gain", self.min_gain, 0),
            depth=UNLIMITED if depth is None else depth,
            leaves=check_count("max_leaves", self.max_leaves, 2, optional=True) or 0,
            features=count_features(self.max_features, n_features),
        )

    def _check(self) -> float:
        check_count("n_estimators", self.n_estimators)
        check_number("max_bins", check_count("max_bins", self.max_bins, 2), 2, MAX_BINS)
        if self.max_time is not None:
            check_number("max_time", self.max_time, 0, above=True)
        if self.bootstrap not in (True, False):
            raise EmpiriskError(f"bootstrap={self.bootstrap!r} must be True or False.")
        part = check_number("max_samples", self.max_samples, 0, 1, above=True)
        if part < 1.0 and not self.bootstrap:
            raise EmpiriskError(f"max_samples={part:g} needs bootstrap=True; without it every tree sees all rows.")
        return part

    def _fit(self, X: Array, target: Target, groups: Groups, rules: Rules, y: NDArray, weights: Array, data: dict):
        """Grow the trees, in order and on all threads."""
        part, random = self._check(), generator(self.random_state)
        some = slice(None) if (weights > 0).all() else weights > 0
        binning = Binning.of(X[some], weights[some], self.columns_.counts, random, self.max_bins)
        rows = binning.codes(X)
        planter = Planter(binning, rows, target, groups, rules, self.bootstrap, part)
        seeds = random.integers(2**63, size=self.n_estimators)
        outputs = max(target.several, 1)
        outside, trees = Outside.nothing(len(X), outputs), []
        watch = Watch(self, self.n_estimators, data)

        def plant(seed: int, stop: Callable[[], bool]) -> tuple[GrownTree | None, Array]:
            tree = planter.plant(seed, stop)
            return tree, np.zeros((0, outputs)) if tree is None else tree.answers(rows.by_row, tree.outside, target.several)

        with interruptible() as interrupted:
            clock = Clock(self.max_time, interrupted)
            with closing(_in_order(plant, seeds.tolist(), clock)) as grown:
                for tree, answers in grown:
                    watch.begin("tree")
                    trees.append(tree)
                    outside.add(tree.outside, answers)
                    if watch.end(lambda: self._fitted(trees, binning, target)):
                        break
        if not trees:  # stopped at once: a single leaf is a model too
            planter.rules = rules._replace(depth=0)
            trees.append(planter.plant(int(seeds[0]), lambda: False))
        for name, value in self._fitted(trees, binning, target).items():
            setattr(self, name, value)
        if self.bootstrap:
            self._judge(outside.mean(), y, weights)
        self._training = Training(trees, rows.by_row, target, weights, int(seeds[-1] >> 32)) if self.bootstrap else None
        watch.close()
        warn_if_stopped(self, clock.reason, len(trees), "trees")

    def _fitted(self, trees: list[GrownTree], binning: Binning, target: Target) -> dict[str, Any]:
        return {"packed_": pack_trees(trees, binning, target.several), "n_estimators_": len(trees)}

    # --- what the trees are -----------------------------------------------------------------------------------------

    @property
    def nodes_(self) -> Nodes:
        """All trees as public flat arrays, unpacked from `packed_` on each access."""
        check_is_fitted(self)
        return Nodes.unpack(self.packed_)

    @property
    def feature_importances_(self) -> Array:
        """How much the loss on out-of-bag rows rises when a column is shuffled: wrong classes, or squared error.

        About zero for noise. Computed at the first access, from the training rows that the forest keeps in bins for
        this; a forest read from a file has it only if it was computed before.
        """
        check_is_fitted(self)
        found = self.__dict__.get("_importances")
        if found is None:
            training = self.__dict__.get("_training")
            if training is None:
                raise AttributeError(
                    "feature_importances_ needs the out-of-bag rows of a forest fitted here with bootstrap=True; "
                    "call importances(X, y) on held-out rows."
                )
            found = self._importances = training.importances()
        return found

    def __getstate__(self):
        # Training rows stay in memory, not in files.
        return {name: value for name, value in super().__getstate__().items() if name != "_training"}

    def _mean(self, X: ArrayLike, outputs: int) -> Array:
        """Mean answer of the trees."""
        check_is_fitted(self)
        X = read_new(self, X)
        ensemble = ready(self, self.packed_, lambda: Ensemble(self.packed_, outputs))
        return ensemble.add(X, np.zeros((len(X), outputs))) / self.n_estimators_


def _in_order(plant: Callable, seeds: list[int], clock: Clock) -> Iterator[tuple[GrownTree, Array]]:
    """Trees in the order of their seeds, grown on threads, until the clock says stop."""
    with ThreadPoolExecutor(settings().threads) as pool:
        futures = [pool.submit(plant, seed, clock) for seed in seeds]
        try:
            for future in futures:
                tree, answers = future.result()
                if tree is None:
                    return
                yield tree, answers
                if clock():
                    return
        finally:
            for future in futures:
                future.cancel()


class ForestClassifier(ClassifierMixin, Forest):
    """A random forest for classes: the mean of the class shares in the leaves of many trees.

    Each tree is grown on a bootstrap sample, and each split is the best among ``max_features`` columns drawn at random
    (columns that are constant in the node do not count). Columns are cut into at most 255 bins.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    criterion : {"gini", "entropy"}
        Impurity that splits reduce.
    max_features : int, float, "sqrt" or None
        Columns that each split looks at: a number, a share, the square root of their number, or all.
    max_depth, max_leaves : int or None
        Limits of each tree; with a limit on the leaves the best split comes first.
    min_samples_leaf : float
        Least weight of a leaf.
    min_gain : float
        Least decrease of the mean impurity by a split.
    bootstrap : bool
        Whether trees see bootstrap samples, or all rows with their weights. A sample draws as many rows as the weights
        add up to where they are whole numbers, in proportion to the weights: weight 2 equals the row twice.
    max_samples : float
        Size of a sample as a share of that.
    max_bins : int
        Intervals into which a numeric column is cut, at most 255.
    categorical_features : "auto", list of columns or mask
        Columns that hold categories; "auto" takes the text and category columns of a data frame. Beyond 255
        categories the rarest count as missing, as do categories that were not there in training.
    class_weight : dict, "balanced" or None
        Factors on the weights of the classes.
    max_time : float or None
        Seconds after which the fit ends with the trees that it has.
    random_state : int, RandomState or None
        Seed of the draws. The same seed gives the same bits with any number of threads.

    Attributes
    ----------
    classes_ : array
        The classes.
    packed_ : dict of arrays
        The trees, about 15 bytes a node; `nodes_` unpacks them.
    n_estimators_ : int
        Number of trees grown.
    oob_score_, oob_error_ : float
        Accuracy and share of errors of each row's mean answer by the trees that did not see it.
    oob_decision_function_ : (n_rows, n_classes)
        Those mean answers; NaN for a row that every tree saw.

    Examples
    --------
    >>> X, y = np.arange(40.0)[:, None], np.repeat(["low", "high"], 20)
    >>> forest = er.ForestClassifier(20, random_state=0).fit(X, y)
    >>> forest.predict([[3.0], [33.0]])
    array(['low', 'high'], dtype='<U4')
    >>> forest.oob_score_ > 0.9
    True
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_features: int | float | str | None = "sqrt",
        max_depth: int | None = None,
        max_leaves: int | None = None,
        min_samples_leaf: float = 1,
        min_gain: float = 0.0,
        bootstrap: bool = True,
        max_samples: float = 1.0,
        max_bins: int = MAX_BINS,
        categorical_features: Any = "auto",
        class_weight: dict | str | None = None,
        max_time: float | None = None,
        random_state: Any = None,
    ):
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_time = max_time
        self.random_state = random_state
        self.criterion = criterion
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "ForestClassifier":
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
        self.classes_, codes = number_classes(labels, weights)
        count, entropy = len(self.classes_), find_criterion(self.criterion, CRITERIA) == ENTROPY
        factors = class_weights(self.class_weight, self.classes_, codes, weights)[codes]
        target = Target.of_classes(codes, count, entropy)
        rules = self._rules(rows.shape[1], target.several, entropy)
        groups = Groups.of(rows, codes, weights, None if self.class_weight is None else factors)
        data = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
        self._fit(rows, target, groups, rules, codes, weights * factors, data)
        return self

    def _shares(self, answers: Array) -> Array:
        """Class probabilities from the mean answers of the trees."""
        if len(self.classes_) > 2:
            return answers
        both = np.column_stack([1.0 - answers[:, 0], answers[:, 0]])
        return both if len(self.classes_) == 2 else both[:, :1]

    def _judge(self, answers: Array, y: NDArray, weights: Array) -> None:
        shares = self._shares(answers)
        judged = weights * ~np.isnan(shares[:, 0])
        wrong = np.nan_to_num(shares).argmax(axis=1) != y
        self.oob_error_ = float(judged @ wrong / judged.sum()) if judged.any() else np.nan
        self.oob_score_ = 1.0 - self.oob_error_
        self.oob_decision_function_ = shares

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes: the mean of the class shares in the leaves."""
        check_is_fitted(self)
        shares = self._shares(self._mean(X, len(self.classes_) if len(self.classes_) > 2 else 1))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray:
        """The most probable class of each row, the first of equals."""
        chosen = self.predict_proba(X).argmax(axis=1)
        return self.classes_[chosen]


class ForestRegressor(RegressorMixin, Forest):
    """A random forest for numbers: the mean of the predictions of many trees; see `ForestClassifier`.

    Parameters
    ----------
    n_estimators, max_depth, max_leaves, min_samples_leaf, min_gain, bootstrap, max_samples, max_bins, \
categorical_features, max_time, random_state
        As for `ForestClassifier`. Splits reduce the squared error.
    max_features : int, float, "sqrt" or None
        Columns that each split looks at, a third of them unless said otherwise.

    Attributes
    ----------
    packed_, n_estimators_
        As for `ForestClassifier`.
    oob_score_, oob_error_ : float
        R^2 and mean squared error of each row's mean answer by the trees that did not see it.
    oob_prediction_ : array
        Those mean answers; NaN for a row that every tree saw.

    Examples
    --------
    >>> X = np.arange(100.0)[:, None]
    >>> forest = er.ForestRegressor(50, random_state=0).fit(X, np.sqrt(X[:, 0]))
    >>> forest.predict([[49.0]]).round(0)
    array([7.])
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: int | float | str | None = 1 / 3,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        min_samples_leaf: float = 1,
        min_gain: float = 0.0,
        bootstrap: bool = True,
        max_samples: float = 1.0,
        max_bins: int = MAX_BINS,
        categorical_features: Any = "auto",
        max_time: float | None = None,
        random_state: Any = None,
    ):
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.min_gain = min_gain
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_time = max_time
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "ForestRegressor":
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
        groups = Groups.of(rows, numbers, weights)
        target = Target.of_numbers(numbers, float(groups.size))
        data = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
        self._fit(rows, target, groups, self._rules(rows.shape[1], 0, False), numbers, weights, data)
        return self

    def _judge(self, answers: Array, y: NDArray, weights: Array) -> None:
        seen = ~np.isnan(answers[:, 0])
        judged = weights * seen
        self.oob_error_ = self.oob_score_ = np.nan
        if judged.any():
            self.oob_error_ = float(judged @ np.where(seen, answers[:, 0] - y, 0.0) ** 2 / judged.sum())
            spread = judged @ (y - judged @ y / judged.sum()) ** 2 / judged.sum()
            self.oob_score_ = float(1.0 - self.oob_error_ / spread) if spread > 0 else np.nan
        self.oob_prediction_ = answers[:, 0]

    def predict(self, X: ArrayLike) -> Array:
        """The mean prediction of the trees for each row."""
        return self._mean(X, 1)[:, 0]
