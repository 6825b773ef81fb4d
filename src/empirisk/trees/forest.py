"""Random forests: trees on bootstrap samples, each split among a few columns drawn at random."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import (
    check_count,
    check_flag,
    check_number,
    check_splitter,
    check_time,
    count_features,
    sample_part,
    weigh_classes,
)
from empirisk.contract.elsewhere import blockwise, rows_for_trees
from empirisk.contract.ensemble import ClassMembers, ListOfMembers, Members
from empirisk.contract.inputs import Array, as_numbers, check_weights, generator
from empirisk.contract.multiclass import elected
from empirisk.contract.out_of_bag import OutOfBagClasses, OutOfBagNumbers
from empirisk.contract.outputs import (
    CLASSES,
    LabelsClassifier,
    LogProbabilities,
    classes_of_columns,
    ends_of,
    indicators,
    label_columns,
    like,
    predicted,
    probabilities_of,
    wrong_labels,
)
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.resample import Groups
from empirisk.contract.transaction import all_or_nothing
from empirisk.contract.warm import WarmStart
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.explain.permutation import Importances
from empirisk.linalg.threads import ordered_map, workers
from empirisk.names import Estimator
from empirisk.stop import Deadline, Ending, interruptible
from empirisk.trees.binned.bins import MAX_BINS, Binning, check_bins
from empirisk.trees.binned.samples import BinnedTarget, Grown, SampleGrower
from empirisk.trees.binned.splits import RULES
from empirisk.trees.exact import scan
from empirisk.trees.nodes import Nodes, Packed, join
from empirisk.trees.predict import PackedTrees, wrong_outputs
from empirisk.trees.table_columns import Columns, read_new, read_training
from empirisk.trees.tree import TreeClassifier, TreeRegressor

CRITERIA = {name: code for name, code in scan.CLASSIFICATION.items() if name != "error"}


@dataclass(eq=False, repr=False)
class ForestParameters:
    """The parameters that the two forests share."""

    n_estimators: int = 100
    _: KW_ONLY
    splitter: str = "best"
    max_features: int | float | str | None = "sqrt"
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    bootstrap: bool = True
    max_samples: int | float | None = 1.0
    oob_score: bool = True
    max_bins: int = MAX_BINS
    categorical_features: Any = "auto"
    max_time: float | None = None
    n_jobs: int | None = None
    warm_start: bool = False
    random_state: Any = None


@dataclass
class ForestWork:
    """Trees so far, and how to grow more."""

    grower: SampleGrower
    random: np.random.Generator
    total: Array
    seen: NDArray[np.int64]
    trees: list[Packed] = field(default_factory=list)
    rises: list[Array] = field(default_factory=list)
    gains: list[Array] = field(default_factory=list)


class Forest(ForestParameters, PackedTrees, ListOfMembers, Members, CallbackSupportMixin, Importances, Estimator, ABC):
    """What the two forests share; see `ForestClassifier` and `ForestRegressor`."""

    _state = state.State(
        _importances=state.maybe(state.array("f8", "columns", finite=False)),
        _gains=state.optional(state.array("f8", None, "columns", finite=False)),
        stopped_=state.optional(state.text()),  # files of version 0.1 have none of these
        feature_importances_=state.optional(state.array("f8", "columns", low=0)),
    )

    #: Whether tables in files that are larger than memory are taken as X, and rows that are not even bins in memory.
    learns_in_blocks, learns_in_passes = True, False

    columns_: Columns
    n_estimators_: int
    feature_importances_: Array

    def bytes_of_row(self, width: int) -> int:
        """What a row in files takes in memory: its bins, its group, its answers, and its draws for each thread."""
        return width + 96 + 64 * workers()

    def bytes_beside_bins(self, width: int) -> int:
        """The same where the bins are in a file."""
        return self.bytes_of_row(0)

    def learns_from_bins(self, rows: int, width: int) -> bool:
        """Whether the bins of rows in files are enough."""
        return True

    @abstractmethod
    def _judge(self, answers: Array, y: NDArray, weights: Array) -> None:
        """Set the out-of-bag scores: each row is predicted by the trees whose sample does not hold it."""

    # --- fitting ----------------------------------------------------------------------------------------------------

    def _rules(self, n_features: int, entropy: bool = False) -> NDArray[np.void]:
        rules = np.zeros(1, dtype=RULES)
        depth = check_count("max_depth", self.max_depth, 1, optional=True)
        rules["least"] = check_number("min_samples_leaf", self.min_samples_leaf, 0)
        rules["split"] = check_number("min_samples_split", self.min_samples_split, 0)
        rules["least_part"] = check_number("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0, 0.5)
        # A split without gain is a split too, unless a gain is asked for: the next ones may gain.
        rules["least_gain"] = check_number("min_impurity_decrease", self.min_impurity_decrease, 0) or -np.inf
        rules["max_depth"] = np.inf if depth is None else depth
        rules["max_leaf_nodes"] = check_count("max_leaf_nodes", self.max_leaf_nodes, 2, optional=True) or 0
        rules["columns"] = count_features(self.max_features, n_features)
        rules["entropy"] = entropy
        rules["cuts"] = check_splitter(self.splitter)
        return rules

    def _check(self, size: int) -> float:
        check_count("n_estimators", self.n_estimators)
        check_bins(self.max_bins)
        check_flag("oob_score", self.oob_score)
        check_time(self.max_time)
        if self.bootstrap not in (True, False):
            raise EmpiriskError(f"bootstrap={self.bootstrap!r} must be True or False.")
        part = sample_part(self.max_samples, size)
        if part < 1.0 and not self.bootstrap:
            raise EmpiriskError(
                f"max_samples={self.max_samples!r} needs bootstrap=True; without it every tree sees all rows."
            )
        return part

    def _fit(
        self, X: Array, target: BinnedTarget, groups: Groups, rules: NDArray[np.void], weights: Array, data: dict
    ) -> None:
        """Grow the trees, in order and on all threads."""
        part = self._check(groups.size)
        some = slice(None) if (weights > 0).all() else weights > 0
        warm = WarmStart[ForestWork](self, data)
        watch = FitCallbacks(self, self.n_estimators, data)

        def grow(seed: int) -> Grown | None:
            return work.grower.grow(seed, deadline)

        with interruptible():
            deadline = Deadline(self.max_time)
            if warm.work is None:
                binning = Binning.of(X[some], weights[some], self.columns_.counts, self.max_bins)
                grower = SampleGrower(X, binning, target, groups, weights, rules, self.bootstrap, part)
                total, seen = np.zeros((len(X), target.outputs)), np.zeros(len(X), dtype=np.int64)
                work = ForestWork(grower, generator(self.random_state), total, seen)
            else:
                work = warm.work
            trees, rises, gains = work.trees, work.rises, work.gains
            left = range(self.n_estimators - len(trees))
            seeds = (int(work.random.integers(2**63)) for _ in left)  # drawn as trees need them
            with closing(ordered_map(grow, seeds, deadline)) as grown:
                for found in grown:
                    if found is None:
                        break
                    watch.begin("tree")
                    trees.append(found.packed)
                    rises.append(found.rises)
                    gains.append(found.gains)
                    work.total[found.outside] += found.answers
                    work.seen[found.outside] += 1
                    if watch.end(lambda: self._fitted(trees, rises, gains)) or deadline():
                        break
        if not trees:
            trees.append(work.grower.leaf(0))  # stopped at once: a single leaf is a model too
            rises.append(np.zeros(X.shape[1]))
            gains.append(np.zeros(X.shape[1]))
        self.__dict__.update(self._fitted(trees, rises, gains))
        self.stopped_ = Ending.FINISHED if len(trees) == self.n_estimators else deadline.reason or Ending.CALLBACK
        warm.keep(work, self.stopped_ == Ending.FINISHED)
        if self.oob_score:
            answers = np.where(work.seen[:, None] > 0, work.total / np.maximum(work.seen, 1)[:, None], np.nan)
            self._judge(answers, target.y, weights)
        watch.close()
        warn_if_unfinished(self, deadline.reason, f"{len(trees)} of {self.n_estimators} trees")

    def _fitted(self, trees: list[Packed], rises: list[Array], gains: list[Array]) -> dict[str, Any]:
        mean = np.mean(gains, axis=0)
        return {
            "feature_importances_": mean / (mean.sum() or 1.0),
            "_gains": np.array(gains),
            "packed_": join(trees),
            "n_estimators_": len(trees),
            "_importances": np.mean(rises, axis=0) if self.bootstrap else None,
        }

    # --- what the trees are -----------------------------------------------------------------------------------------

    @property
    def oob_importances_(self) -> Array:
        """How much the loss on out-of-bag rows rises when a column is shuffled: wrong classes, or squared error.

        About zero for noise. Each tree is asked about up to 256 rows outside its sample.
        """
        check_is_fitted(self)
        if self._importances is None:
            raise AttributeError(
                "oob_importances_ needs the out-of-bag rows of a forest fitted with bootstrap=True; "
                "call importances(X, y) on held-out rows."
            )
        return self._importances

    @property
    def estimators_(self) -> list[Any]:
        """The trees as machines of their own, made on each access from ``packed_``; splits of theirs have no values."""
        check_is_fitted(self)
        nodes = self.nodes_
        trees = [self._tree(nodes.tree(number)) for number in range(self.n_estimators_)]
        for tree, gains in zip(trees, getattr(self, "_gains", ()), strict=False):  # files of before 0.2 have none
            tree.column_gains_ = gains
        return trees

    @abstractmethod
    def _tree(self, nodes: Nodes) -> Any:
        """One tree as a machine."""

    def _as_tree(self, tree: Any, nodes: Nodes) -> Any:
        names = ("n_features_in_", "feature_names_in_", "columns_", "classes_")
        vars(tree).update({name: vars(self)[name] for name in names if name in vars(self)})
        tree.nodes_, tree.ccp_alpha_, tree.pruned_, tree.stopped_ = nodes, 0.0, None, Ending.FINISHED
        return tree

    def _each_mean(self, X: ArrayLike, outputs: int) -> Iterator[Array]:
        """The answer of each tree."""
        check_is_fitted(self)
        X, ensemble = read_new(self, X), self._ensemble(outputs)
        for tree in range(self.n_estimators_):
            yield ensemble.add(X, np.zeros((len(X), outputs)), tree, tree + 1)

    def _mean(self, X: ArrayLike, outputs: int) -> Array:
        """Mean answer of the trees."""
        check_is_fitted(self)
        X = read_new(self, X)
        return self._ensemble(outputs).add(X, np.zeros((len(X), outputs))) / self.n_estimators_


def _width(classes: NDArray | list[NDArray]) -> int:
    """The numbers in a leaf: one share of two classes tells the other, unless there are several labels."""
    if isinstance(classes, list):
        return ends_of(classes)[-1]
    return len(classes) if len(classes) > 2 else 1


@dataclass(eq=False, repr=False)
class ForestClassifier(LogProbabilities, OutOfBagClasses, ClassMembers, LabelsClassifier, Forest):
    """A random forest for classes: the mean of the class shares in the leaves of many trees.

        P(k | x) = 1/B sum_b (weight of class k in the leaf of x in tree b) / (weight of the leaf)

    Each tree is grown on a bootstrap sample, and each split is the best among ``max_features`` columns drawn at random
    (columns that are constant in the node do not count). Columns are cut into at most 255 bins. Where y has several
    columns of labels, one tree predicts all of them, by the sum of their Gini impurities; ``classes_`` and all
    probabilities are then lists with one array for each, and a row with any label wrong is an error.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    criterion : {"gini", "entropy"}
        Impurity that splits reduce.
    splitter : {"best", "random"}
        Whether a node tries all cuts of a column, or one that is drawn at random; with ``bootstrap=False`` "random" is
        what is called extremely randomised trees.
    max_features : int, float, "sqrt", "log2" or None
        Columns that each split looks at: a number, a share, the square root of their number, or all.
    max_depth, max_leaf_nodes : int or None
        Limits of each tree; with a limit on the leaves the best split comes first.
    min_samples_split, min_samples_leaf : float
        Least weight of a node that is split, and of a leaf; below 1, as a part of the weight of the sample.
    min_weight_fraction_leaf : float
        Least weight of a leaf, as a part of the weight of the sample.
    min_impurity_decrease : float
        Least decrease of the mean impurity by a split.
    bootstrap : bool
        Whether trees see bootstrap samples, or all rows with their weights. A sample draws as many rows as the weights
        add up to where they are whole numbers, in proportion to the weights: weight 2 equals the row twice.
    max_samples : int, float or None
        Size of a sample: a number of rows, or a share of that; None is all of it.
    oob_score : bool
        Whether the answers about rows outside the samples are kept: ``oob_score_`` and its like.
    max_bins : int
        Intervals into which a numeric column is cut, at most 255.
    categorical_features : "auto", list of columns or mask
        Columns that hold categories; "auto" takes the text and category columns of a data frame. Beyond 255
        categories the rarest count as missing, as do categories that were not there in training.
    class_weight : dict, "balanced" or None
        Factors on the weights of the classes.
    max_time : float or None
        Seconds after which the fit ends with the trees that it has.
    n_jobs : int or None
        Threads of a fit, -1 for all; None is that of `er.config`. Answers are the same on any number of them.
    warm_start : bool
        Whether `fit` keeps its work, so that the next one on the same rows, with more trees, adds those alone. The
        machine is the same as without it.
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
        Accuracy and share of errors of each row's mean answer by the trees that did not see it; NaN where each tree
        saw every row.
    oob_decision_function_ : (n_rows, n_classes)
        Those mean answers; NaN for a row that every tree saw.
    feature_importances_ : (n_features,)
        Share of each column in the impurity that splits take away, the mean over the trees; it sums to one, and favours
        columns with many values, noise among them.
    oob_importances_ : (n_features,)
        How much the error of the trees on rows that they did not see rises when a column is shuffled; about zero for
        noise. `importances` does the same on rows of the user's.

    Examples
    --------
    >>> X, y = np.arange(40.0)[:, None], np.repeat(["low", "high"], 20)
    >>> forest = er.ForestClassifier(20, random_state=0).fit(X, y)
    >>> forest.predict([[3.0], [33.0]])
    array(['low', 'high'], dtype='<U4')
    >>> forest.oob_score_ > 0.9
    True
    """

    _state = state.State(
        lambda its: wrong_outputs(its["packed_"], _width(its["classes_"]), its["n_estimators_"]),
        classes_=CLASSES,
        sizes={"classes": lambda its: len(its["classes_"])},
    )

    _: KW_ONLY
    criterion: str = "gini"
    class_weight: dict[Any, float] | str | None = None

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ForestClassifier:
        """Learn from labelled rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n, or n x labels
            Labels of any type, in several columns with the Gini criterion.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        found = rows_for_trees(self, X, y, sample_weight)
        assert found is not None  # what boosting learns in passes over rows elsewhere, forests do not
        X, y, sample_weight = found
        y, several = label_columns(y)
        entropy = scan.find(self.criterion, CRITERIA) == scan.ENTROPY
        if several and entropy:
            raise Unsuitable("criterion='entropy' knows one column of labels, and y has several; use 'gini'.")
        rows, labels = read_training(self, X, y, self.categorical_features, multi_output=several)
        weights = check_weights(sample_weight, len(labels))
        factors = np.ones(len(labels))
        if several:
            self.classes_ = classes_of_columns(labels, weights, self.class_weight)
            codes = indicators(labels, self.classes_)
            target = BinnedTarget(codes, labels=ends_of(self.classes_))
        else:
            self.classes_, codes, factors = weigh_classes(labels, weights, self.class_weight)
            target = BinnedTarget.of_classes(codes, len(self.classes_), entropy)
        rules = self._rules(rows.shape[1], entropy)
        groups = Groups.of(rows, codes, weights, None if self.class_weight is None else factors)
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        self._fit(rows, target, groups, rules, weights * factors, data)
        return self

    def _tree(self, nodes: Nodes) -> TreeClassifier:
        tree = TreeClassifier(self.criterion, max_depth=self.max_depth, max_leaf_nodes=self.max_leaf_nodes)
        return self._as_tree(tree, replace(nodes, value=self._shares(nodes.value)))

    def _shares(self, answers: Array) -> Array:
        """Class probabilities from the mean answers of the trees."""
        if isinstance(self.classes_, list) or len(self.classes_) > 2:
            return answers
        both = np.column_stack([1.0 - answers[:, 0], answers[:, 0]])
        return both if len(self.classes_) == 2 else both[:, :1]

    def _judge(self, answers: Array, y: NDArray, weights: Array) -> None:
        shares = self._shares(answers)
        if isinstance(self.classes_, list):
            wrong = wrong_labels(np.nan_to_num(shares), y, ends_of(self.classes_))
        else:
            wrong = elected(np.nan_to_num(shares), np.arange(len(self.classes_))) != y
        self._judge_classes(shares, wrong, weights * ~np.isnan(shares[:, 0]))

    def _scores(self, X: ArrayLike) -> Array:
        """The mean of the class shares in the leaves."""
        check_is_fitted(self)
        return self._shares(self._mean(X, _width(self.classes_)))

    @blockwise
    def predict_proba(self, X: ArrayLike) -> Any:
        """Probabilities of the classes: the mean of the class shares in the leaves; of several labels a list."""
        return probabilities_of(self._scores(X), self.classes_)

    def _each_answer(self, X: ArrayLike) -> Iterator[tuple[float, Array]]:
        for answers in self._each_mean(X, _width(self.classes_)):
            yield 1.0, self._shares(answers)

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row, or of each label; of two that are equal the second."""
        return predicted(self.predict_proba(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        several = self.criterion == "gini" and self.class_weight is None
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = several
        return tags


@dataclass(eq=False, repr=False)
class ForestRegressor(OutOfBagNumbers, RegressorMixin, MultiOutputMixin, Forest):
    """A random forest for numbers: the mean of the predictions of many trees; see `ForestClassifier`.

        f(x) = 1/B sum_b f_b(x),  f_b(x) the mean of y in the leaf of x in tree b

    Where y has several columns, one tree predicts all of them: splits reduce the sum of their squared errors.

    Parameters
    ----------
    n_estimators, splitter, max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, \
min_weight_fraction_leaf, min_impurity_decrease, bootstrap, max_samples, oob_score, max_bins, categorical_features, \
max_time, n_jobs, warm_start, random_state
        As for `ForestClassifier`. Splits reduce the squared error.
    max_features : int, float, "sqrt", "log2" or None
        Columns that each split looks at, a third of them unless said otherwise.

    Attributes
    ----------
    packed_, n_estimators_
        As for `ForestClassifier`.
    oob_score_, oob_error_ : float
        R^2 and mean squared error of each row's mean answer by the trees that did not see it, means over the outputs;
        NaN where each tree saw every row.
    oob_prediction_ : array
        Those mean answers; NaN for a row that every tree saw.
    feature_importances_ : (n_features,)
        As for `ForestClassifier`, with the squared error.

    Examples
    --------
    >>> X = np.arange(100.0)[:, None]
    >>> forest = er.ForestRegressor(50, random_state=0).fit(X, np.sqrt(X[:, 0]))
    >>> forest.predict([[49.0]]).round(0)
    array([7.])
    """

    _state = state.State(lambda its: wrong_outputs(its["packed_"], _columns_of(its), its["n_estimators_"]))

    _: KW_ONLY
    max_features: int | float | str | None = 1 / 3

    def _tree(self, nodes: Nodes) -> TreeRegressor:
        tree = TreeRegressor(max_depth=self.max_depth, max_leaf_nodes=self.max_leaf_nodes)
        tree._several = self._several
        return self._as_tree(tree, nodes)

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ForestRegressor:
        """Learn from rows and their numbers.

        Parameters
        ----------
        X : array, sparse matrix or data frame, n x d
            The rows; NaN is missing.
        y : array of n, or n x outputs
            Numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        found = rows_for_trees(self, X, y, sample_weight)
        assert found is not None  # what boosting learns in passes over rows elsewhere, forests do not
        X, y, sample_weight = found
        rows, numbers = read_training(self, X, y, self.categorical_features, multi_output=True, y_numeric=True)
        numbers, self._several = as_numbers(numbers), numbers.ndim == 2
        weights = check_weights(sample_weight, len(numbers))
        numbers = numbers[:, 0] if self._several and numbers.shape[1] == 1 else numbers
        groups = Groups.of(rows, numbers, weights)
        target = BinnedTarget(numbers, centre=groups.share @ numbers[groups.first])
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        self._fit(rows, target, groups, self._rules(rows.shape[1]), weights, data)
        return self

    def _judge(self, answers: Array, y: NDArray, weights: Array) -> None:
        self._judge_numbers(answers, y, weights * ~np.isnan(answers[:, 0]))

    def _each_answer(self, X: ArrayLike) -> Iterator[tuple[float, Array]]:
        check_is_fitted(self)
        for answers in self._each_mean(X, _columns_of(vars(self))):
            yield 1.0, answers

    @blockwise
    def predict(self, X: ArrayLike) -> Array:
        """The mean prediction of the trees for each row, and for each output where y had several columns."""
        check_is_fitted(self)
        return like(self._mean(X, _columns_of(vars(self))), self._several)


def _columns_of(its: Mapping[str, Any]) -> int:
    """The outputs of a forest of numbers."""
    return its["packed_"]["leaf_values"].shape[1] if its.get("_several") else 1
