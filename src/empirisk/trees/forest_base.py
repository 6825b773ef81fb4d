"""What the two forests share: trees on threads, out-of-bag judgement, compact storage."""

from abc import ABC, abstractmethod
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from empirisk.contract.arguments import check_count, check_number, check_time, count_features
from empirisk.contract.clock import Clock, Watch, warn_if_stopped
from empirisk.contract.importances import Importances
from empirisk.contract.inputs import generator
from empirisk.errors import EmpiriskError
from empirisk.fits.fit import interruptible
from empirisk.linalg.threads import in_order
from empirisk.trees.bins import Binning, check_bins
from empirisk.trees.categories import Columns, read_new
from empirisk.trees.ensemble_predict import PackedTrees
from empirisk.trees.forest_grow import GrownTree, Planter, Target, pack_trees
from empirisk.trees.forest_loops import Rules
from empirisk.trees.forest_outside import Outside, Training
from empirisk.trees.resample import Groups

Array = NDArray[np.float64]

UNLIMITED = np.iinfo(np.int32).max


class Forest(PackedTrees, CallbackSupportMixin, Importances, BaseEstimator, ABC):
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
    max_time: float | None
    random_state: Any
    columns_: Columns
    n_estimators_: int

    @abstractmethod
    def _judge(self, answers: Array, y: NDArray, weights: Array) -> None:
        """Note how good the answers of trees that did not see a row are."""

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
        check_bins(self.max_bins)
        check_time(self.max_time)
        if self.bootstrap not in (True, False):
            raise EmpiriskError(f"bootstrap={self.bootstrap!r} must be True or False.")
        part = check_number("max_samples", self.max_samples, 0, 1, above=True)
        if part < 1.0 and not self.bootstrap:
            raise EmpiriskError(f"max_samples={part:g} needs bootstrap=True; without it every tree sees all rows.")
        return part

    def _fit(self, X: Array, target: Target, groups: Groups, rules: Rules, weights: Array, data: dict) -> None:
        """Grow the trees, in order and on all threads."""
        part, random = self._check(), generator(self.random_state)
        some = slice(None) if (weights > 0).all() else weights > 0
        binning = Binning.of(X[some], weights[some], self.columns_.counts, random, self.max_bins)
        planter = Planter(binning, binning.codes(X), target, groups, rules, self.bootstrap, part)
        seeds = random.integers(2**63, size=self.n_estimators).tolist()
        said, trees = Outside.nothing(len(X), max(target.several, 1)), list[GrownTree]()
        watch = Watch(self, self.n_estimators, data)

        def plant(seed: int) -> tuple[GrownTree, NDArray[np.int32], Array] | None:
            tree = planter.plant(seed, clock)
            if tree is None:
                return None
            outside = planter.outside(tree)
            return tree, outside, tree.answers(planter.table.by_row, outside, target.several)

        with interruptible() as interrupted:
            clock = Clock(self.max_time, interrupted)
            with closing(in_order(plant, seeds, clock)) as grown:
                for planted in grown:
                    if planted is None:
                        break
                    watch.begin("tree")
                    trees.append(planted[0])
                    said.add(*planted[1:])
                    if watch.end(lambda: self._fitted(trees, binning, target)) or clock():
                        break
        if not trees:
            trees.append(planter.leaf(seeds[0]))  # stopped at once: a single leaf is a model too
        for name, value in self._fitted(trees, binning, target).items():
            setattr(self, name, value)
        self._importances = None
        self._training = Training(planter.without_columns(), trees, weights) if self.bootstrap else None
        self._judge(said.mean(), target.y, weights)
        watch.close()
        warn_if_stopped(self, clock.reason, len(trees), "trees")

    def _fitted(self, trees: list[GrownTree], binning: Binning, target: Target) -> dict[str, Any]:
        return {"packed_": pack_trees(trees, binning, target.several), "n_estimators_": len(trees)}

    # --- what the trees are -----------------------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Array:
        """How much the loss on out-of-bag rows rises when a column is shuffled: wrong classes, or squared error.

        About zero for noise. Computed at the first access, from the training rows that the forest keeps in bins for
        this; a forest read from a file has it only if it was computed before.
        """
        check_is_fitted(self)
        if self._importances is None:
            training = self.__dict__.get("_training")
            if training is None:
                raise AttributeError(
                    "feature_importances_ needs the out-of-bag rows of a forest fitted here with bootstrap=True; "
                    "call importances(X, y) on held-out rows."
                )
            self._importances = training.importances()
        return self._importances

    def __getstate__(self):
        # Training rows stay in memory, not in files.
        return {name: value for name, value in super().__getstate__().items() if name != "_training"}

    def _mean(self, X: ArrayLike, outputs: int) -> Array:
        """Mean answer of the trees."""
        check_is_fitted(self)
        X = read_new(self, X)
        return self._ensemble(outputs).add(X, np.zeros((len(X), outputs))) / self.n_estimators_
