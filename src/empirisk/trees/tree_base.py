"""What classification and regression trees share: growing, pruning, views."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_count, check_number, count_features
from empirisk.contract.importances import Importances
from empirisk.contract.inputs import check_weights
from empirisk.errors import EmpiriskError
from empirisk.fits.fit import interruptible
from empirisk.trees import prune, views
from empirisk.trees.categories import Columns, read_new, wrong_categories
from empirisk.trees.grow import Grower, Limits
from empirisk.trees.nodes import Nodes

Array = NDArray[np.float64]


class Tree(Importances, BaseEstimator, ABC):
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
    )

    criterion: str
    max_depth: int | None
    max_leaves: int | None
    min_samples_leaf: float
    min_weight_fraction_leaf: float
    min_gain: float
    max_features: Any
    ccp_alpha: Any
    cv: Any
    categorical_features: Any
    random_state: Any
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

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The node (a leaf) that each row reaches."""
        check_is_fitted(self)
        return self.nodes_.predict_leaf(read_new(self, X))[:, 0]

    def decision_path(self, X: Any) -> csr_array:
        """The nodes that each row passes: a sparse indicator, rows by nodes."""
        leaves, parents = self.apply(X), self.nodes_.parents()
        paths = {}
        for leaf in np.unique(leaves).tolist():
            path, node = [], leaf
            while node >= 0:
                path.append(node)
                node = int(parents[node])
            paths[leaf] = path[::-1]
        passed = [paths[leaf] for leaf in leaves.tolist()]
        ends = np.concatenate([[0], np.cumsum([len(path) for path in passed])])
        nodes = np.concatenate([*passed, []]).astype(np.int64)
        return csr_array((np.ones(len(nodes), dtype=np.int64), nodes, ends), shape=(len(leaves), len(self.nodes_)))

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
        splits = ~self.nodes_.is_leaf
        gains = np.bincount(self.nodes_.feature[splits], self.nodes_.gain[splits], minlength=len(self.columns_.names))
        return gains / max(gains.sum(), np.finfo(np.float64).tiny)

    def text(self, max_depth: int | None = None) -> str:
        """The tree as indented lines, down to a depth if given."""
        return views.text(self._labels(), check_count("max_depth", max_depth, 0, optional=True))

    def rules(self) -> pl.DataFrame:
        """One row for each leaf: the rule that leads to it, its depth, weight, impurity and prediction."""
        return views.rules(self._labels())

    def cost_complexity_path(self) -> pl.DataFrame:
        """The trees that cost-complexity pruning leaves as the price of a leaf rises.

        Columns: ``alpha``, the price from which on the tree is this one, its ``leaves`` and its ``impurity``, the sum
        over leaves of weight * impurity / total weight. Fit with ``ccp_alpha=alpha`` to get it.
        """
        check_is_fitted(self)
        return prune.path_table(self.nodes_)

    def prune(self, holdout: tuple[Any, Any], sample_weight: ArrayLike | None = None) -> "Tree":
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

    def _limits(self, n_features: int) -> Limits:
        return Limits(
            max_depth=check_count("max_depth", self.max_depth, 0, optional=True),
            max_leaves=check_count("max_leaves", self.max_leaves, 1, optional=True),
            min_samples_leaf=check_number("min_samples_leaf", self.min_samples_leaf, 0),
            min_weight_fraction_leaf=check_number("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0, 0.5),
            min_gain=check_number("min_gain", self.min_gain, 0),
            max_features=count_features(self.max_features, n_features),
            seed=0 if self.max_features is None else int(check_random_state(self.random_state).randint(2**31)),
        )

    def _labels(self) -> views.Labels:
        check_is_fitted(self)
        return views.Labels(self.nodes_, self.columns_, getattr(self, "classes_", None))

    def _fit(self, X: Array, y: Array, weights: Array) -> None:
        """Grow, and prune by cost and complexity where asked."""
        choose = isinstance(self.ccp_alpha, str)
        if choose and self.ccp_alpha != "cv":
            raise EmpiriskError(f"ccp_alpha={self.ccp_alpha!r} is not known; give a number or 'cv'.")
        self.ccp_alpha_ = 0.0 if choose else check_number("ccp_alpha", self.ccp_alpha, 0)
        if not weights.all():
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        with interruptible() as stopped:
            self.nodes_ = self.grow_on(self.grower(X, self.columns_.counts, stopped), y, weights)
            self.pruned_ = None
            if choose and not stopped():
                self.ccp_alpha_ = self._choose_alpha(X, y, weights, stopped)
        if self.ccp_alpha_ > 0:
            cuts = prune.cuts_at(prune.collapse_alphas(self.nodes_), self.ccp_alpha_)
            impurities = prune.impurity(self.nodes_), prune.impurity(self.nodes_.cut(cuts))
            self._shorten(cuts, "cost complexity", impurities, self.ccp_alpha_)
        if stopped():
            warnings.warn(
                f"{type(self).__name__} was interrupted with {self.n_leaves_} leaves; the tree is usable as it is, "
                "fit again for all of it.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _choose_alpha(self, X: Array, y: Array, weights: Array, stopped: Callable[[], bool]) -> float:
        """The price of a leaf with the least cross-validated loss; the larger of two as good."""
        alphas = prune.prices(prune.collapse_alphas(self.nodes_))
        middles = np.append(np.sqrt(alphas[:-1] * alphas[1:]), alphas[-1])  # each stands for the prices up to the next
        losses = np.zeros(len(middles))
        for train, test in check_cv(self.cv, y[:, 0], classifier=hasattr(self, "classes_")).split(X, y[:, 0]):
            nodes = self.grow_on(self.grower(X[train], self.columns_.counts, stopped), y[train], weights[train])
            held_out = prune.node_losses(nodes, X[test], y[test], weights[test], self._loss())
            losses += prune.losses_along(nodes, held_out, middles)
        self.cv_results_ = pl.DataFrame({"alpha": alphas, "loss": losses / weights.sum()})
        return float(alphas[np.flatnonzero(losses <= losses.min() * prune.ROUNDING)[-1]])

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
