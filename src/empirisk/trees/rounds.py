"""Rounds of boosting: each adds one tree for every output, grown on the gradient of the loss."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.resample import draw_groups
from empirisk.linalg.threads import parallel_map, workers
from empirisk.trees.binned.bins import Binning
from empirisk.trees.binned.splits import RULES, SCORE, TARGET, TIMES, WEIGHT, unit
from empirisk.trees.binned.together import TeamGrower
from empirisk.trees.linear_leaves import FOLDS, PRIOR_ROWS, GrownTree, fit_slopes
from empirisk.trees.objectives import Objective, Renewal
from empirisk.trees.predict import Ensemble
from empirisk.trees.target_statistics import Packing

Array = NDArray[np.float64]


BLOCK = 1 << 16  # rows of which gradients are computed at a time
WATCHED = 1 << 12  # training rows on which the loss is reported
LEAF_ROWS, LEAF_SHARE = 20.0, 0.05  # least size of a leaf unless it is given: rows, or a share of all if less
SMOOTH_ROWS = 10.0  # rows added to a category where categories are ordered, so that rare ones stay near the middle
MOST_SEEDS = 1 << 52  # of random cuts: floats hold them exactly
ROUNDING = 1e-12  # a gain below this part of the score is rounding


@dataclass(frozen=True)
class BoostingPlan:
    """How trees are grown; see `empirisk.BoostingClassifier`.

    ``max_features`` is a number of columns, ``monotone`` has a sign or 0 for each of them,
    ``groups`` a bit for each group in which it may be split with others, and ``numeric`` whether it holds numbers.
    """

    learning_rate: float
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: float | None
    min_impurity_decrease: float
    l2: float
    subsample: float
    max_features: int
    monotone: NDArray[np.int8]
    groups: NDArray[np.int64]
    numeric: NDArray[np.bool_]
    random_cuts: bool = False
    leaves: str = "constant"

    def of_columns(self, sources: NDArray[np.intp]) -> "BoostingPlan":
        """The plan for a table whose columns come from these."""
        every = self.max_features == len(self.monotone)
        count = len(sources) if every else self.max_features
        columns = {name: getattr(self, name)[sources] for name in ("monotone", "groups", "numeric")}
        return replace(self, max_features=count, **columns)


class GrowthRules:
    """What every tree of boosting keeps to, wherever the rows are.

    Parameters
    ----------
    binning : Binning
        How the values of the table become bins.
    plan : BoostingPlan
        How to grow trees.
    rows, count : int
        The rows, and for how many equal ones they stand.
    weight, whole : float
        The sum of the weights, and the curvature of a typical row of weight 1.
    random : Generator
        Draws rows and columns.
    """

    def __init__(
        self,
        binning: Binning,
        plan: BoostingPlan,
        rows: int,
        count: int,
        weight: float,
        whole: float,
        random: np.random.Generator,
    ):
        self.binning, self.plan, self.random, self.n_rows = binning, plan, random, rows
        self._count, self._weight, self._whole = count, weight, whole
        leaf = plan.min_samples_leaf
        self._leaf = min(LEAF_ROWS, max(1.0, LEAF_SHARE * self._count)) if leaf is None else leaf

    def _draw_features(self) -> NDArray[np.int32]:
        count = len(self.binning.counts)
        if self.plan.max_features == count:
            return np.arange(count, dtype=np.int32)
        chosen = self.random.choice(count, self.plan.max_features, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int32)

    def _most_leaves(self) -> int:
        """No tree has more leaves than this."""
        limits = [self.n_rows] if self.plan.max_leaf_nodes is None else [self.n_rows, self.plan.max_leaf_nodes]
        if self._leaf >= 1:
            limits.append(int(self._count / self._leaf))
        if self.plan.max_depth is not None and self.plan.max_depth < 31:
            limits.append(1 << self.plan.max_depth)
        return max(1, min(limits))

    def _draw_cuts(self) -> int:
        """The seed of the cuts of a tree; 0 where it takes the best."""
        return int(self.random.integers(1, MOST_SEEDS)) if self.plan.random_cuts else 0

    def _rules(self, sums: Array, cuts: int) -> NDArray[np.void]:
        plan, rules = self.plan, np.zeros(1, dtype=RULES)
        rules["cuts"] = cuts
        unit_g, unit_h = unit(sums[0], self._count), unit(sums[1], self._count)
        rules["gradient_unit"], rules["curvature_unit"] = unit_g, unit_h
        rules["true_l2"], rules["rate"] = plan.l2, plan.learning_rate
        rules["l2"] = plan.l2 / unit_h
        rules["least"] = self._leaf * (1 - 1e-9)
        rules["least_gain"] = 2.0 * plan.min_impurity_decrease * self._weight * unit_h / unit_g / unit_g
        rules["noise"] = ROUNDING
        rules["smoothing"] = SMOOTH_ROWS * self._whole / unit_h
        rules["max_depth"] = np.inf if plan.max_depth is None else plan.max_depth
        rules["max_leaf_nodes"] = self._most_leaves()
        return rules


class Rounds(GrowthRules):
    """The scores  F = baseline + sum of trees  on the training rows, and how to add to them.

    Parameters
    ----------
    X, binning : array, Binning
        The training table, and how its values become bins.
    objective : Objective
        The loss on the training rows.
    times : array of int32
        For how many equal rows each row stands; empty if each stands for itself.
    plan : Plan
        How to grow trees.
    groups : array of int
        Which rows are drawn together: equal ones have the same number.
    random : Generator
        Draws rows and columns.
    stop : callable
        Asked between pieces of work; true ends the growth of a tree without a result.
    """

    def __init__(
        self,
        X: Array,
        binning: Binning,
        objective: Objective,
        times: NDArray[np.int32],
        plan: BoostingPlan,
        groups: NDArray[np.intp],
        random: np.random.Generator,
        stop: Callable[[], bool] = lambda: False,
    ):
        count, weight = int(times.sum()) if len(times) else len(X), float(objective.weights.sum())
        super().__init__(binning, plan, len(X), count, weight, objective.whole, random)
        X = X if plan.leaves == "constant" else np.ascontiguousarray(X)
        self.X, self.objective, self.n_outputs, self._groups = X, objective, objective.n_outputs, groups
        self.stop = stop
        self.baseline = objective.start()
        self._data = np.empty((self.n_outputs, TIMES + (len(times) > 0), self.n_rows))
        if len(times):
            self._data[:, TIMES] = times
        self._data[:, TARGET], self._data[:, WEIGHT] = objective.targets, objective.weights
        self.scores = self._data[:, SCORE]
        self.scores[:] = self.baseline[:, None]
        threads, leaves, width = workers(), self._most_leaves(), plan.max_features
        # Trees of many outputs are independent: whole trees go to the threads, not parts of one.
        self._apart = self.n_outputs >= threads > 1
        each, growers = (1, threads) if self._apart else (threads, 1)
        self._fold = folds_of(groups) if plan.leaves == "auto" else np.zeros(0, dtype=np.int8)
        table = binning.codes(X)
        self._growers = [
            TeamGrower(binning, table, plan.monotone, plan.groups, width, leaves, each, self._must_stop)
            for _ in range(growers)
        ]

    def _must_stop(self) -> bool:
        """Asks ``stop``, which the fit that goes on replaces."""
        return self.stop()

    def loss(self) -> float:
        """Mean loss of the training rows, or of 4 096 of them at equal distances."""
        rows = slice(None, None, -(-self.n_rows // WATCHED))
        return self.objective.value(rows, self.scores[:, rows])

    def add(self) -> list[GrownTree] | None:
        """One round: a tree for each output, already added to the scores; None if it was stopped."""
        sums = self._differentiate()
        rows, features = self._draw_rows(), [self._draw_features() for _ in range(self.n_outputs)]
        cuts, free = [self._draw_cuts() for _ in range(self.n_outputs)], list(self._growers)

        def run(output: int) -> GrownTree | None:
            grower = free.pop()
            tree = self._tree(grower, output, rows, features[output], self._rules(sums[:, output], cuts[output]))
            free.append(grower)
            return tree

        trees = parallel_map(run, range(self.n_outputs)) if self._apart else [run(k) for k in range(self.n_outputs)]
        made = [tree for tree in trees if tree is not None]
        return made if len(made) == len(trees) else None

    def _differentiate(self) -> Array:
        """Gradient and curvature of every row; returns the sums of |gradient| and curvature by output."""
        if self.objective.logistic:
            return np.array(self._growers[0].differentiate(self._data[0]))[:, None]

        def block(start: int) -> Array:
            rows = slice(start, start + BLOCK)
            gradient, curvature = self._data[:, 0, rows], self._data[:, 1, rows]
            self.objective.derivatives(rows, self.scores[:, rows], gradient, curvature)
            return np.array([np.abs(gradient).sum(axis=1), curvature.sum(axis=1)])

        if self.n_rows <= BLOCK:
            return block(0)
        return np.sum(parallel_map(block, range(0, self.n_rows, BLOCK)), axis=0)

    def _draw_rows(self) -> NDArray[np.int32] | None:
        if self.plan.subsample == 1.0:
            return None
        return np.flatnonzero(draw_groups(self._groups, self.plan.subsample, self.random)).astype(np.int32)

    def _tree(
        self,
        grower: TeamGrower,
        output: int,
        rows: NDArray[np.int32] | None,
        features: NDArray[np.int32],
        rules: NDArray[np.void],
    ) -> GrownTree | None:
        data, renewal = self._data[output], self.objective.renewal
        tree = grower.grow(data, rows, features, rules, values=renewal is None)
        if tree is None:
            return None
        unit_g, unit_h = float(rules["gradient_unit"][0]), float(rules["curvature_unit"][0])
        tree["gain"] *= unit_g * unit_g / unit_h  # the units differ from tree to tree
        if renewal is not None:
            tree["value"] = self.plan.learning_rate * self._renewed(grower, tree, output, renewal)
            if rows is None:
                grower.add(tree, data)
        slopes = None
        if self.plan.leaves != "constant":
            penalty, rate, columns = self.plan.l2 + PRIOR_ROWS * self._whole, self.plan.learning_rate, self.plan.numeric
            slopes = fit_slopes(
                tree, self.X, data, grower.buffers, columns, self._fold, penalty, rate, add=rows is None
            )
        grown = GrownTree(tree, slopes)
        if rows is not None:
            add_trees([grown], Packing(self.binning), self.X, self.scores[output][None])
        return grown

    def _renewed(self, grower: TeamGrower, tree: NDArray[np.void], output: int, renewal: Renewal) -> Array:
        """The best constants of the loss in the leaves.

        Under constraints, children stay on both sides of the mean of their own best constants, as they did while the
        tree grew; but the bounds found there are those of Newton steps.
        """
        left = tree["left"]
        signs = np.where(left < 0, 0, tree["sign"])
        wanted, value = np.flatnonzero(left < 0), np.zeros(len(left))
        rows = {int(node): grower.rows(tree[node]) for node in wanted}
        if signs.any():
            wanted = np.arange(len(left))
            for node in reversed(np.flatnonzero(left >= 0)):  # the buffers hold the rows of leaves only
                rows[int(node)] = np.sort(np.concatenate([rows[int(left[node]) + side] for side in range(2)]))
        parts = [rows[int(node)] for node in wanted]
        value[wanted] = parallel_map(lambda part: renewal(output, part, self.scores[output]), parts)
        low, high = np.full(len(value), -np.inf), np.full(len(value), np.inf)
        for node in np.flatnonzero(left >= 0):  # parents come before children
            children = [left[node], left[node] + 1]
            low[children], high[children] = low[node], high[node]
            if signs[node]:
                cut = float(np.clip(value[children], low[node], high[node]).mean())
                below, above = children[:: signs[node]]
                high[below] = low[above] = cut
        return np.clip(value, low, high)


def folds_of(groups: NDArray[np.intp]) -> NDArray[np.int8]:
    """The part of every row, the same for rows of a group: always the same draw, as folds need no luck."""
    numbers = np.random.default_rng(0).permutation(int(groups.max(initial=0)) + 1) % FOLDS
    return numbers[groups].astype(np.int8)


def add_trees(trees: list[GrownTree], pack: Packing, X: Array, scores: Array) -> None:
    """Add the trees of one round, one for each output, to the scores (n_outputs, n_rows) of rows."""
    for tree, own in zip(trees, scores, strict=True):
        own += Ensemble(pack([tree]), 1).add(X, np.zeros((len(X), 1)))[:, 0]
