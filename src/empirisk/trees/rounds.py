"""Rounds of boosting: each adds one tree for every output, grown on the gradient of the loss."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import in_threads
from empirisk.settings import settings
from empirisk.trees.binned.bins import Binning
from empirisk.trees.binned.cuts import (
    FEATURE,
    GAIN,
    L2,
    LEAST,
    LEAST_GAIN,
    LEFT,
    MAX_DEPTH,
    MAX_LEAVES,
    MONOTONE,
    NOISE,
    RULES,
    SMOOTHING,
    VALUE,
)
from empirisk.trees.binned.finish import Packed, finish
from empirisk.trees.binned.samples import unit
from empirisk.trees.binned.teamwork import GrownTree, TeamGrower
from empirisk.trees.objectives import Objective, Renewal
from empirisk.trees.predict.ensemble import Ensemble
from empirisk.trees.resample import draw_groups

Array = NDArray[np.float64]

BLOCK = 1 << 14  # rows of which gradients are computed at a time, so that they stay in near memory
WATCHED = 1 << 12  # training rows on which the loss is reported
LEAF_ROWS, LEAF_SHARE = 20.0, 0.05  # least size of a leaf unless it is given: rows, or a share of all if less
SMOOTH_ROWS = 10.0  # rows added to a category where categories are ordered, so that rare ones stay near the middle
ROUNDING = 1e-12  # a gain below this part of the score is rounding


@dataclass(frozen=True)
class Plan:
    """How trees are grown; see `empirisk.BoostingClassifier`. ``max_features`` is a number of columns."""

    learning_rate: float
    max_leaves: int | None
    max_depth: int | None
    min_samples_leaf: float | None
    min_gain: float
    l2: float
    subsample: float
    max_features: int


class Rounds:
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
    monotone : (n_features,) int8
        Constraints on the columns.
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
        plan: Plan,
        groups: NDArray[np.intp],
        monotone: NDArray[np.int8],
        random: np.random.Generator,
        stop: Callable[[], bool],
    ):
        self.X, self.binning, self.objective, self.plan, self.random = X, binning, objective, plan, random
        self.n_rows, self.n_outputs = len(X), objective.n_outputs
        self.baseline = objective.start()
        self.scores = np.repeat(self.baseline[:, None], self.n_rows, axis=1)
        self._derivatives = np.empty((self.n_outputs, 2, self.n_rows))
        self._weight, self._times, self._groups = float(objective.weights.sum()), times, groups
        self._count = int(times.sum()) if len(times) else self.n_rows
        leaf = plan.min_samples_leaf
        self._leaf = min(LEAF_ROWS, max(1.0, LEAF_SHARE * self._count)) if leaf is None else leaf
        table = binning.codes(X)
        # Trees of many outputs are independent: whole trees go to the threads, not parts of one.
        threads = settings().threads
        self._apart = self.n_outputs >= threads > 1
        parts = (binning, table, monotone, times, plan.max_features, self._most_leaves())
        self._growers = [
            TeamGrower(*parts, 1 if self._apart else threads, stop) for _ in range(threads if self._apart else 1)
        ]

    def loss(self) -> float:
        """Mean loss of the training rows, or of 4 096 of them at equal distances."""
        rows = slice(None, None, -(-self.n_rows // WATCHED))
        return self.objective.value(rows, self.scores[:, rows])

    def add(self) -> list[GrownTree] | None:
        """One round: a tree for each output, already added to the scores; None if it was stopped."""
        blocks = [slice(start, start + BLOCK) for start in range(0, self.n_rows, BLOCK)]
        sums = np.sum(in_threads(self._differentiate, blocks), axis=0)
        rows, features = self._draw_rows(), [self._draw_features() for _ in range(self.n_outputs)]
        free = list(self._growers)

        def run(output: int) -> GrownTree | None:
            grower = free.pop()
            tree = self._tree(grower, output, rows, features[output], sums[:, output])
            free.append(grower)
            return tree

        trees = in_threads(run, range(self.n_outputs)) if self._apart else [run(k) for k in range(self.n_outputs)]
        made = [tree for tree in trees if tree is not None]
        return made if len(made) == len(trees) else None

    def _differentiate(self, rows: slice) -> Array:
        """Gradient and curvature of a block of rows; returns the sums of |gradient| and curvature by output."""
        gradient, curvature = self._derivatives[:, 0, rows], self._derivatives[:, 1, rows]
        self.objective.derivatives(rows, self.scores[:, rows], gradient, curvature)
        return np.stack([np.abs(gradient).sum(axis=1), curvature.sum(axis=1)])

    def _draw_rows(self) -> NDArray[np.int32] | None:
        if self.plan.subsample == 1.0:
            return None
        return np.flatnonzero(draw_groups(self._groups, self.plan.subsample, self.random)).astype(np.int32)

    def _draw_features(self) -> NDArray[np.int32]:
        count = len(self.binning.counts)
        if self.plan.max_features == count:
            return np.arange(count, dtype=np.int32)
        chosen = self.random.choice(count, self.plan.max_features, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int32)

    def _tree(
        self,
        grower: TeamGrower,
        output: int,
        rows: NDArray[np.int32] | None,
        features: NDArray[np.int32],
        sums: Array,
    ) -> GrownTree | None:
        units = np.array(
            [unit(sums[0], self._count), unit(sums[1], self._count), self.plan.l2, self.plan.learning_rate]
        )
        derivatives, scores, renewal = self._derivatives[output], self.scores[output], self.objective.renewal
        rules = self._rules(units)
        tree = grower.grow(derivatives, rows, features, rules, units, scores if renewal is None else None)
        if tree is None:
            return None
        tree.reals[:, GAIN] *= units[0] * units[0] / units[1]  # the units differ from tree to tree
        if renewal is not None:
            tree.reals[:, VALUE] = self.plan.learning_rate * self._renewed(grower, tree, output, renewal)
            if rows is None:
                grower.add(tree, derivatives, features, rules, scores)
        if rows is not None:
            add_trees([tree], self.binning, self.X, scores[None])
        return tree

    def _renewed(self, grower: TeamGrower, tree: GrownTree, output: int, renewal: Renewal) -> Array:
        """The best constants of the loss in the leaves.

        Under constraints, children stay on both sides of the mean of their own best constants, as they did while the
        tree grew; but the bounds found there are those of Newton steps.
        """
        left = tree.nodes[:, LEFT]
        signs = np.where(left < 0, 0, grower.kinds[tree.nodes[:, FEATURE], MONOTONE])
        wanted, value = tree.leaves, np.zeros(len(left))
        rows = {int(node): grower.rows(tree.nodes[node]) for node in wanted}
        if signs.any():
            wanted = np.arange(len(left))
            for node in reversed(np.flatnonzero(left >= 0)):  # the buffers hold the rows of leaves only
                rows[int(node)] = np.sort(np.concatenate([rows[int(left[node]) + side] for side in range(2)]))
        parts = [rows[int(node)] for node in wanted]
        value[wanted] = in_threads(lambda part: renewal(output, part, self.scores[output]), parts)
        low, high = np.full(len(value), -np.inf), np.full(len(value), np.inf)
        for node in np.flatnonzero(left >= 0):  # parents come before children
            children = [left[node], left[node] + 1]
            low[children], high[children] = low[node], high[node]
            if signs[node]:
                cut = float(np.clip(value[children], low[node], high[node]).mean())
                below, above = children[:: signs[node]]
                high[below] = low[above] = cut
        return np.clip(value, low, high)

    def _most_leaves(self) -> int:
        """No tree has more leaves than this."""
        limits = [self.n_rows] if self.plan.max_leaves is None else [self.n_rows, self.plan.max_leaves]
        if self._leaf >= 1:
            limits.append(int(self._count / self._leaf))
        if self.plan.max_depth is not None and self.plan.max_depth < 31:
            limits.append(1 << self.plan.max_depth)
        return max(1, min(limits))

    def _rules(self, units: Array) -> Array:
        plan, rules = self.plan, np.zeros(RULES)
        rules[L2] = plan.l2 / units[1]
        rules[LEAST] = self._leaf * (1 - 1e-9)
        rules[LEAST_GAIN] = 2.0 * plan.min_gain * self._weight * units[1] / units[0] / units[0]
        rules[NOISE] = ROUNDING
        rules[SMOOTHING] = SMOOTH_ROWS * self.objective.whole / units[1]
        rules[MAX_DEPTH] = np.inf if plan.max_depth is None else plan.max_depth
        rules[MAX_LEAVES] = self._most_leaves()
        return rules


def pack_trees(trees: list[GrownTree], binning: Binning) -> Packed:
    """The trees, end to end."""
    sizes = np.array([len(tree.nodes) for tree in trees], dtype=np.int64)
    shift = np.cumsum(sizes) - sizes
    nodes = np.concatenate([tree.nodes for tree in trees])
    nodes[:, LEFT] += np.where(nodes[:, LEFT] < 0, 0, np.repeat(shift, sizes))
    slot = np.concatenate([tree.reals[:, VALUE] for tree in trees])
    return finish(nodes, slot, shift, np.zeros((0, 1)), binning)


def add_trees(trees: list[GrownTree], binning: Binning, X: Array, scores: Array) -> None:
    """Add the trees of one round, one for each output, to the scores (n_outputs, n_rows) of rows."""
    for tree, own in zip(trees, scores, strict=True):
        own += Ensemble(pack_trees([tree], binning), 1).add(X, np.zeros((len(X), 1)))[:, 0]
