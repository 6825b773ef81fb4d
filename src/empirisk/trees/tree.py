"""One decision tree, grown exactly: every split of every column is tried."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import RegressorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from empirisk import state
from empirisk.contract.arguments import check_count, check_number, check_time, count_features
from empirisk.contract.inputs import Array, as_numbers, check_weights, class_codes, class_weights, sorted_classes
from empirisk.contract.outputs import (
    CLASSES,
    LabelsClassifier,
    LogProbabilities,
    classes_of_columns,
    indicators,
    label_columns,
    predicted,
    probabilities_of,
    wrong_classes,
)
from empirisk.contract.progress import reported, warn_if_unfinished
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.explain.permutation import Importances
from empirisk.names import Estimator, spelled
from empirisk.stop import Deadline, Ending, Stopped, check_stop, interruptible, stopping
from empirisk.trees import prune
from empirisk.trees import text as words
from empirisk.trees.exact import scan
from empirisk.trees.exact.grow import Grower, TreeLimits
from empirisk.trees.nodes import Nodes, paths_to
from empirisk.trees.table_columns import Columns, read_new, read_training, wrong_categories
from empirisk.validation import check_array

if TYPE_CHECKING:
    import polars as pl


@dataclass(eq=False, repr=False)
class TreeParameters:
    """The parameters that classification and regression trees share."""

    criterion: str = "gini"
    _: KW_ONLY
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_features: int | float | str | None = None
    ccp_alpha: float | str = 0.0
    cv: Any = 5
    categorical_features: Any = "auto"
    max_time: float | None = None
    random_state: Any = None


class BaseTree(TreeParameters, CallbackSupportMixin, Importances, Estimator, ABC):
    """What the two trees share; see `TreeClassifier` and `TreeRegressor`."""

    _state = state.State(
        lambda its: wrong_categories(its["columns_"], its["nodes_"].category_counts),
        lambda its: None if its["nodes_"].n_trees == 1 else "nodes_ is not one tree",
        n_features_in_=state.size("columns"),
        columns_=state.part(Columns, columns="columns"),
        nodes_=state.part(Nodes, columns="columns", outputs="outputs"),
        ccp_alpha_=state.optional(state.number(0)),
        cv_results_=state.optional(state.anything()),
        pruned_=state.optional(state.maybe(state.part(prune.Pruned))),
        column_gains_=state.optional(state.array("f8", "columns", finite=False)),  # of a tree out of a forest
        stopped_=state.optional(state.text()),  # files of older versions lack it
    )

    columns_: Columns
    nodes_: Nodes

    @abstractmethod
    def grow_on(self, grower: Grower, y: Array, weights: Array) -> Nodes:
        """Grow a tree on columns sorted before; ``y`` has shape (n_rows, n_outputs), class numbers for classes."""

    def grower(
        self,
        X: Array,
        counts: NDArray[np.int32],
        stopped: Callable[[], bool] = lambda: False,
        reuse: bool = False,
    ) -> Grower:
        """Sort the columns of checked rows, of which ``counts`` tells the numbers of categories; see `Grower`."""
        return Grower(X, counts, self._limits(X.shape[1]), stopped, reuse)

    @abstractmethod
    def _loss(self) -> int:
        """The criterion by which rows held out are judged."""

    @abstractmethod
    def _targets(self, y: Any) -> Array:
        """The target of rows held out, in the form that `grow_on` takes."""

    def get_depth(self) -> int:
        """``depth_``, by the method that scikit-learn has."""
        return self.depth_

    def get_n_leaves(self) -> int:
        """``n_leaves_``, by the method that scikit-learn has."""
        return self.n_leaves_

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """The prices of a leaf at which the tree that is grown on these rows loses one, and the impurity from there on.

        The tree itself stays as it is; `cost_complexity_path` tells of the tree that is there.

        Returns
        -------
        Bunch
            ``ccp_alphas`` and ``impurities``.
        """
        grown = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        alphas, _, impurities = prune.path_arrays(grown.nodes_)
        return Bunch(ccp_alphas=alphas, impurities=impurities)

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The node (a leaf) that each row reaches."""
        check_is_fitted(self)
        return self.nodes_.predict_leaf(read_new(self, X))[:, 0]

    def decision_path(self, X: Any) -> csr_array:
        """The nodes that each row passes: a sparse indicator, rows by nodes."""
        return paths_to(self.nodes_, self.apply(X))

    @property
    def depth_(self) -> int:
        """Splits on the longest way from the root to a leaf."""
        check_is_fitted(self)
        depth = np.zeros(len(self.nodes_), dtype=int)
        for node, parent in enumerate(self.nodes_.parents()):
            depth[node] = depth[parent] + 1 if parent >= 0 else 0
        return int(depth.max())

    @property
    def n_leaves_(self) -> int:
        """Number of leaves."""
        check_is_fitted(self)
        return int(self.nodes_.is_leaf.sum())

    @property
    def feature_importances_(self) -> Array:
        """Share of each column in the gain of all splits on the training rows; all zero for a single leaf.

        It favours columns with many values, noise among them; `importances` on rows held out does not.
        """
        check_is_fitted(self)
        gains, splits = getattr(self, "column_gains_", None), ~self.nodes_.is_leaf
        if gains is None:
            gains = np.bincount(self.nodes_.feature[splits], self.nodes_.gain[splits], minlength=self.n_features_in_)
        return gains / max(gains.sum(), np.finfo(np.float64).tiny)

    def text(self, max_depth: int | None = None) -> str:
        """The tree as indented lines, down to a depth if given."""
        return words.text(self._labels(), check_count("max_depth", max_depth, 0, optional=True))

    def rules(self) -> pl.DataFrame:
        """One row for each leaf: the rule that leads to it, its depth, weight, impurity and prediction."""
        return words.rules(self._labels())

    def cost_complexity_path(self) -> pl.DataFrame:
        """The trees that cost-complexity pruning leaves as the price of a leaf rises.

        Columns: ``alpha``, the price from which on the tree is this one, its ``leaves`` and its ``impurity``, the sum
        over leaves of weight * impurity / total weight. Fit with ``ccp_alpha=alpha`` to get it.
        """
        check_is_fitted(self)
        return prune.path_table(self.nodes_)

    def prune(self, holdout: tuple[Any, Any], sample_weight: ArrayLike | None = None) -> BaseTree:
        """Remove, from the bottom up, every split whose removal does not raise the loss on rows held out.

        The loss is the share of errors for classes, else the squared (or absolute) error. Splits that no held-out row
        reaches go too. ``pruned_`` tells what went.

        Parameters
        ----------
        holdout : (X, y)
            Rows that were not used in `fit`.
        sample_weight : array, optional
            Weights of those rows.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if not isinstance(holdout, tuple) or len(holdout) != 2:
            raise EmpiriskError("holdout must be the pair (X, y) of a table and its target.")
        X, y = read_new(self, holdout[0]), self._targets(holdout[1])
        check_consistent_length(X, y)
        weights = check_weights(sample_weight, len(y))
        losses = prune.node_losses(self.nodes_, X, y, weights, self._loss())
        cuts, after = prune.holdout_cuts(self.nodes_, losses)
        before = losses[self.nodes_.is_leaf].sum()
        self._shorten(cuts, "holdout", (before / weights.sum(), after / weights.sum()), None)
        return self

    def _limits(self, n_features: int) -> TreeLimits:
        return TreeLimits(
            max_depth=check_count("max_depth", self.max_depth, 0, optional=True),
            max_leaf_nodes=check_count("max_leaf_nodes", self.max_leaf_nodes, 1, optional=True),
            min_samples_split=check_number("min_samples_split", self.min_samples_split, 0),
            min_samples_leaf=check_number("min_samples_leaf", self.min_samples_leaf, 0),
            min_weight_fraction_leaf=check_number("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0, 0.5),
            min_impurity_decrease=check_number("min_impurity_decrease", self.min_impurity_decrease, 0),
            max_features=count_features(self.max_features, n_features),
            seed=0 if self.max_features is None else int(check_random_state(self.random_state).randint(2**31)),
        )

    def _labels(self) -> words.Labels:
        check_is_fitted(self)
        return words.Labels.of(self)

    def _fit(self, X: Array, y: Array, weights: Array) -> None:
        """Grow, and prune by cost and complexity where asked."""
        choose = isinstance(self.ccp_alpha, str)
        if choose and self.ccp_alpha != "cv":
            raise EmpiriskError(f"ccp_alpha={self.ccp_alpha!r} is not known; give a number or 'cv'.")
        self.ccp_alpha_ = 0.0 if choose else check_number("ccp_alpha", self.ccp_alpha, 0)
        if not weights.all():
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        check_time(self.max_time)
        with interruptible():
            stopped = Deadline(self.max_time)
            self.nodes_ = self.grow_on(self.grower(X, self.columns_.counts, stopped), y, weights)
            self.pruned_ = None
            if choose and not stopped():
                self.ccp_alpha_ = self._choose_alpha(X, y, weights, stopped)
        if self.ccp_alpha_ > 0:
            cuts = prune.cuts_at(prune.collapse_alphas(self.nodes_), self.ccp_alpha_)
            impurities = prune.impurity(self.nodes_), prune.impurity(self.nodes_.cut(cuts))
            self._shorten(cuts, "cost complexity", impurities, self.ccp_alpha_)
        self.stopped_ = stopped.reason or Ending.FINISHED
        warn_if_unfinished(self, self.stopped_, f"{self.n_leaves_} leaves")

    def _choose_alpha(self, X: Array, y: Array, weights: Array, stopped: Callable[[], bool]) -> float:
        """The price of a leaf with the least cross-validated loss; the larger of two as good."""
        folds = self._folds(X, y[:, 0])
        alphas, losses, tested = np.zeros(1), np.zeros(1), 0.0
        with suppress(Stopped), stopping(stopped):
            alphas = prune.pruning_alphas(prune.collapse_alphas(self.nodes_))
            middles = np.append(np.sqrt(alphas[:-1] * alphas[1:]), alphas[-1])  # each for the prices up to the next
            losses = np.zeros(len(middles))
            for train, test in folds:
                nodes = self.grow_on(self.grower(X[train], self.columns_.counts, stopped), y[train], weights[train])
                check_stop()  # pruning alphas need the whole tree
                held_out = prune.node_losses(nodes, X[test], y[test], weights[test], self._loss())
                losses += prune.losses_along(nodes, held_out, middles)
                tested += weights[test].sum()
        if not tested:
            return 0.0
        self.cv_results_ = {"alpha": alphas, "loss": losses / tested}
        return float(alphas[np.flatnonzero(losses <= losses.min() * prune.ROUNDING)[-1]])

    def _folds(self, X: Array, y: Array) -> list[tuple[NDArray, NDArray]]:
        """The rows to grow on and those to judge by, for every fold."""
        with warnings.catch_warnings():
            # A class with fewer rows than folds is no reason to worry here.
            warnings.simplefilter("ignore", UserWarning)
            try:
                return list(check_cv(self.cv, y, classifier=hasattr(self, "classes_")).split(X, y))
            except ValueError as error:
                raise EmpiriskError(
                    f"cv={self.cv!r} does not divide the {len(y)} rows, by which ccp_alpha='cv' is chosen ({error}); "
                    "give fewer folds, or ccp_alpha as a number."
                ) from error

    def _shorten(self, cuts: NDArray[np.bool_], method: str, losses: tuple[float, float], alpha: float | None) -> None:
        """Make the marked nodes leaves and note what went."""
        gone = prune.removed(self._labels(), cuts)
        before, self.nodes_ = self.n_leaves_, self.nodes_.cut(cuts)
        self.pruned_ = prune.Pruned(method, before, self.n_leaves_, float(losses[0]), float(losses[1]), alpha, gone)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


@dataclass(eq=False, repr=False)
class TreeClassifier(LogProbabilities, LabelsClassifier, BaseTree):
    """A classification tree: each leaf predicts the class shares of its training rows.

    Where y has several columns of labels, one tree predicts all of them: the impurity is the sum of theirs,
    ``classes_`` and the probabilities are lists with one array for each, and pruning judges by squared error.

    A node is split where  W * impurity - W_left * impurity_left - W_right * impurity_right  is largest, W the weights
    of the rows, over all columns and all thresholds (midpoints between neighbouring values), or sets of categories.
    Ties go to the first column, then to the lowest threshold. Rows with a missing value are tried on both sides of
    every split, and "present" against "missing" is a split of its own; where training saw no missing value, they
    follow the heavier child. Categories that training did not see count as missing.

    Parameters
    ----------
    criterion : "gini", "entropy" or "error"
        Impurity of a node: sum p (1 - p), - sum p log2 p, or 1 - max p.
    max_depth : int or None
        Most splits on the way to a leaf.
    max_leaf_nodes : int or None
        Most leaves; the splits that gain most are then made first.
    min_samples_split : float
        Least weight of a node that is split; below 1, as a part of the weight of all rows.
    min_samples_leaf : float
        Least weight in a leaf; below 1, as a part of the weight of all rows. It counts weights, so that weight 2 equals
        the row twice.
    min_weight_fraction_leaf : float
        Least weight in a leaf, as a part of the weight of all rows.
    min_impurity_decrease : float
        Least gain of a split, as a part of the weight of all rows.
    max_features : None, int, float, "sqrt" or "log2"
        How many columns, drawn anew for each node from those that vary there, a split looks at; None for all.
    ccp_alpha : float or "cv"
        Price of a leaf in cost-complexity pruning: 0 prunes nothing, "cv" chooses it by cross-validated error.
    cv : int, splitter or list of splits
        The folds for ``ccp_alpha="cv"``.
    class_weight : None, "balanced" or dict
        Factors of the weights by class.
    categorical_features : "auto", None, or indices, names or a mask of columns
        Columns that hold categories; "auto" takes the text and category columns of a data frame.
    max_time : float or None
        Seconds after which the fit ends with the splits that it has.
    random_state : int, RandomState or None
        Decides the columns drawn by ``max_features``.

    Attributes
    ----------
    nodes_ : Nodes
        The tree as public arrays, see `empirisk.trees.nodes.Nodes`.
    classes_ : array
        The classes, sorted.
    columns_ : Columns
        Names and categories of the columns.
    depth_, n_leaves_ : int
        Size of the tree.
    feature_importances_ : array
        Share of each column in the gain on the training rows; see `importances` for an unbiased measure.
    ccp_alpha_ : float
        The price of a leaf that was used.
    cv_results_ : dict of arrays
        Prices and their cross-validated errors, with ``ccp_alpha="cv"``.
    pruned_ : Pruned or None
        What pruning took away.
    stopped_ : str
        Why it ended: "finished", "max_time" or "interrupted".

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> tree = er.TreeClassifier(max_depth=1).fit(X, ["no", "no", "yes", "yes"])
    >>> print(tree.text())
    x0 <= 2.5  weight 4
    ├─ yes: no (1)  weight 2
    └─ no:  yes (1)  weight 2
    """

    _state = state.State(
        lambda its: wrong_classes(its["classes_"], its["nodes_"].value.shape[1]),
        classes_=CLASSES,
        sizes={"classes": lambda its: len(its["classes_"])},
    )

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TreeClassifier:
        """Grow the tree; ``y`` may have several columns of labels with the Gini criterion."""
        criterion = scan.find(self.criterion, scan.CLASSIFICATION)
        y, several = label_columns(y)
        if several and criterion != scan.GINI:
            raise Unsuitable(f"criterion={self.criterion!r} knows one column of labels, and y has several; use 'gini'.")
        codes, y = read_training(self, X, y, self.categorical_features, multi_output=several)
        weights = check_weights(sample_weight, len(y))
        if several:
            self.classes_ = classes_of_columns(y, weights, self.class_weight)
            self._fit(codes, indicators(y, self.classes_).astype(np.float64), weights)
            return self
        self.classes_ = sorted_classes(y, weights)
        labels = class_codes(y, self.classes_)
        factors = class_weights(self.class_weight, self.classes_, labels, weights)
        weights = weights * np.where(labels < 0, 0.0, factors[labels])
        self._fit(codes, labels[:, None].astype(np.float64), weights)
        return self

    def _scores(self, X: Any) -> Array:
        leaves = self.apply(X)
        return self.nodes_.value[leaves]

    def predict_proba(self, X: Any) -> Any:
        """The class shares in the leaf that each row reaches; of several columns of labels a list, one array each."""
        return probabilities_of(self._scores(X), self.classes_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest share; of two classes with as much the second."""
        return predicted(self.predict_proba(X), self.classes_)

    def grow_on(self, grower: Grower, y: Array, weights: Array) -> Nodes:
        if isinstance(self.classes_, list):
            return grower.outputs(y, weights)
        criterion = scan.find(self.criterion, scan.CLASSIFICATION)
        return grower.classes(y[:, 0].astype(np.int64), len(self.classes_), weights, criterion)

    def _loss(self) -> int:
        return scan.SQUARED if isinstance(self.classes_, list) else scan.ERROR

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        several = self.criterion == "gini" and self.class_weight is None
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = several
        return tags

    def _targets(self, y: Any) -> Array:
        if isinstance(self.classes_, list):
            labels = check_array(label_columns(y)[0], dtype=None)
            if labels.shape[1] != len(self.classes_):
                raise EmpiriskError(f"holdout has {labels.shape[1]} columns of labels, the tree {len(self.classes_)}.")
            return indicators(labels, self.classes_).astype(np.float64)
        return class_codes(column_or_1d(y), self.classes_)[:, None].astype(np.float64)


@dataclass(eq=False, repr=False)
class TreeRegressor(RegressorMixin, BaseTree):
    """A regression tree: each leaf predicts the mean (or median) of its training rows.

    It is grown like `TreeClassifier`, with the impurity

    - "squared": the mean of (y - mean)^2, summed over the outputs where there are several;
    - "absolute": the mean of abs(y - median), for one output.

    Parameters
    ----------
    criterion : "squared" or "absolute"
        Impurity of a node; it also decides the prediction of a leaf, and the loss by which pruning judges.
    max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, min_impurity_decrease, \
max_features, ccp_alpha, cv
        As for `TreeClassifier`; ``min_impurity_decrease`` and ``ccp_alpha`` are in the units of the impurity.
    categorical_features, max_time, random_state
        As for `TreeClassifier`.

    Attributes
    ----------
    nodes_, columns_, depth_, n_leaves_, feature_importances_, ccp_alpha_, cv_results_, pruned_, stopped_
        As for `TreeClassifier`.

    Examples
    --------
    >>> tree = er.TreeRegressor().fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 6.0])
    >>> tree.predict([[0.0], [3.5], [np.nan]])
    array([0., 6., 0.])
    """

    _state = state.State(
        lambda its: None if its["_several"] or its["nodes_"].value.shape[1] == 1 else "nodes_ has several outputs",
        _several=state.flag(),
    )

    criterion: str = "squared"

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TreeRegressor:
        """Grow the tree; ``y`` may have several columns with the squared criterion."""
        criterion = scan.find(self.criterion, scan.REGRESSION)
        several = criterion == scan.SQUARED
        codes, y = read_training(self, X, y, self.categorical_features, multi_output=several, y_numeric=True)
        self._several = y.ndim == 2
        self._fit(codes, as_numbers(y).reshape(len(y), -1), check_weights(sample_weight, len(y)))
        return self

    def predict(self, X: Any) -> Array:
        """The value of the leaf that each row reaches."""
        leaves = self.apply(X)
        value = self.nodes_.value[leaves]
        return value if self._several else value[:, 0]

    def grow_on(self, grower: Grower, y: Array, weights: Array) -> Nodes:
        return grower.outputs(y, weights, scan.find(self.criterion, scan.REGRESSION))

    def _loss(self) -> int:
        return scan.find(self.criterion, scan.REGRESSION)

    def _targets(self, y: Any) -> Array:
        y = check_array(y, dtype=np.float64, ensure_2d=False)
        outputs = y.reshape(len(y), -1)
        if outputs.shape[1] != self.nodes_.value.shape[1]:
            raise EmpiriskError(f"holdout has {outputs.shape[1]} outputs, the tree {self.nodes_.value.shape[1]}.")
        return outputs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = spelled("criterion", self.criterion) == "squared"
        return tags
