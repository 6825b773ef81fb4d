"""One decision tree, grown exactly: every split of every column is tried."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from empirisk import state
from empirisk.contract.inputs import check_weights, class_weights
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.trees import criteria
from empirisk.trees.categories import read_training
from empirisk.trees.grow import Grower
from empirisk.trees.nodes import Nodes
from empirisk.trees.tree_base import Tree

Array = NDArray[np.float64]


class TreeClassifier(ClassifierMixin, Tree):
    """A classification tree: each leaf predicts the class shares of its training rows.

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
    max_leaves : int or None
        Most leaves; the splits that gain most are then made first.
    min_samples_leaf : float
        Least weight in a leaf. It counts weights, so that weight 2 equals the row twice; up to 1 it restricts nothing.
    min_weight_fraction_leaf : float
        Least weight in a leaf, as a part of the weight of all rows.
    min_gain : float
        Least gain of a split, as a part of the weight of all rows.
    max_features : None, int, float or "sqrt"
        How many columns, drawn anew for each node from those that vary there, a split looks at; None for all.
    ccp_alpha : float or "cv"
        Price of a leaf in cost-complexity pruning: 0 prunes nothing, "cv" chooses it by cross-validated error.
    cv : int, splitter or list of splits
        The folds for ``ccp_alpha="cv"``.
    class_weight : None, "balanced" or dict
        Factors of the weights by class.
    categorical_features : "auto", None, or indices, names or a mask of columns
        Columns that hold categories; "auto" takes the text and category columns of a data frame.
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
    cv_results_ : polars.DataFrame
        Prices and their cross-validated errors, with ``ccp_alpha="cv"``.
    pruned_ : Pruned or None
        What pruning took away.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> tree = er.TreeClassifier(max_depth=1).fit(X, ["no", "no", "yes", "yes"])
    >>> print(tree.text())
    x0 <= 2.5  weight 4
    ├─ yes: no (1)  weight 2
    └─ no:  yes (1)  weight 2
    """

    _state = state.State(classes_=state.labels("outputs"), sizes={"classes": lambda its: len(its["classes_"])})

    def __init__(
        self,
        criterion: str = "gini",
        *,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_gain: float = 0.0,
        max_features: int | float | str | None = None,
        ccp_alpha: float | str = 0.0,
        cv: Any = 5,
        class_weight: dict | str | None = None,
        categorical_features: Any = "auto",
        random_state: Any = None,
    ):
        self.criterion = criterion
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_gain = min_gain
        self.max_features = max_features
        self.ccp_alpha = ccp_alpha
        self.cv = cv
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "TreeClassifier":
        """Grow the tree."""
        criteria.find(self.criterion, criteria.CLASSIFICATION)
        codes, y = read_training(self, X, y, self.categorical_features)
        check_classification_targets(y)
        weights = check_weights(sample_weight, len(y))
        self.classes_ = np.unique(y[weights > 0])
        labels = numbered(y, self.classes_)
        factors = class_weights(self.class_weight, self.classes_, labels, weights)
        weights = weights * np.where(labels < 0, 0.0, factors[labels])
        if not weights.any():
            raise EmpiriskError("class_weight is zero for every class with rows of positive weight; raise one of them.")
        self._fit(codes, labels[:, None].astype(np.float64), weights)
        return self

    def predict_proba(self, X: Any) -> Array:
        """The class shares in the leaf that each row reaches."""
        leaves = self.apply(X)
        return self.nodes_.value[leaves]

    def predict(self, X: Any) -> NDArray:
        """The class with the largest share; the first of two as large."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def grow_on(self, grower: Grower, y: Array, weights: Array) -> Nodes:
        criterion = criteria.find(self.criterion, criteria.CLASSIFICATION)
        return grower.classes(y[:, 0].astype(np.int64), len(self.classes_), weights, criterion)

    def _loss(self) -> int:
        return criteria.ERROR

    def _targets(self, y: Any) -> Array:
        return numbered(column_or_1d(y), self.classes_)[:, None].astype(np.float64)


class TreeRegressor(RegressorMixin, Tree):
    """A regression tree: each leaf predicts the mean (or median) of its training rows.

    It is grown like `TreeClassifier`, with the impurity

    - "squared": the mean of (y - mean)^2, summed over the outputs where there are several;
    - "absolute": the mean of abs(y - median), for one output.

    Parameters
    ----------
    criterion : "squared" or "absolute"
        Impurity of a node; it also decides the prediction of a leaf, and the loss by which pruning judges.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, min_gain, max_features, ccp_alpha, cv
        As for `TreeClassifier`; ``min_gain`` and ``ccp_alpha`` are in the units of the impurity.
    categorical_features, random_state
        As for `TreeClassifier`.

    Attributes
    ----------
    nodes_, columns_, depth_, n_leaves_, feature_importances_, ccp_alpha_, cv_results_, pruned_
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

    def __init__(
        self,
        criterion: str = "squared",
        *,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_gain: float = 0.0,
        max_features: int | float | str | None = None,
        ccp_alpha: float | str = 0.0,
        cv: Any = 5,
        categorical_features: Any = "auto",
        random_state: Any = None,
    ):
        self.criterion = criterion
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_gain = min_gain
        self.max_features = max_features
        self.ccp_alpha = ccp_alpha
        self.cv = cv
        self.categorical_features = categorical_features
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "TreeRegressor":
        """Grow the tree; ``y`` may have several columns with the squared criterion."""
        criterion = criteria.find(self.criterion, criteria.REGRESSION)
        several = criterion == criteria.SQUARED
        codes, y = read_training(self, X, y, self.categorical_features, multi_output=several, y_numeric=True)
        self._several = y.ndim == 2
        self._fit(codes, y.reshape(len(y), -1).astype(np.float64), check_weights(sample_weight, len(y)))
        return self

    def predict(self, X: Any) -> Array:
        """The value of the leaf that each row reaches."""
        leaves = self.apply(X)
        value = self.nodes_.value[leaves]
        return value if self._several else value[:, 0]

    def grow_on(self, grower: Grower, y: Array, weights: Array) -> Nodes:
        return grower.outputs(y, weights, criteria.find(self.criterion, criteria.REGRESSION))

    def _loss(self) -> int:
        return criteria.find(self.criterion, criteria.REGRESSION)

    def _targets(self, y: Any) -> Array:
        y = check_array(y, dtype=np.float64, ensure_2d=False)
        outputs = y.reshape(len(y), -1)
        if outputs.shape[1] != self.nodes_.value.shape[1]:
            raise EmpiriskError(f"holdout has {outputs.shape[1]} outputs, the tree {self.nodes_.value.shape[1]}.")
        return outputs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.criterion == "squared"
        return tags


def numbered(y: NDArray, classes: NDArray) -> NDArray[np.int64]:
    """The number of each label among the sorted classes, -1 for a label that is none of them."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[places] == y, places, -1)
