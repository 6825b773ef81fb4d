"""Rounds of boosting: each adds one tree for every output, grown on the gradient of the loss."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from empirisk.settings import settings
from empirisk.trees.bins import BinnedRows, Binning
from empirisk.trees.boost_loss import Objective, Renewal
from empirisk.trees.crew import Crew
from empirisk.trees.hist_grow import BinnedTree, Grower
from empirisk.trees.hist_loops import add_leaf_values, add_values, leaf_sums, take_columns
from empirisk.trees.histogram import Limits, Table, pack, unit
from empirisk.trees.resample import draw_groups

Array = NDArray[np.float64]

BLOCK = 1 << 15  # rows of which gradients are computed at a time, so that they stay in near memory
WATCHED = 1 << 12  # training rows on which the loss is reported
LEAF_ROWS, LEAF_SHARE = 20.0, 0.05  # least size of a leaf unless it is given: rows, or a share of all if less
COARSE = 1 << 20  # rows from which units are so coarse that the way of rounding matters
UNLIMITED = np.iinfo(np.int32).max
SMOOTHING = 10.0  # rows added to a category where categories are ordered, so that rare ones stay near the middle


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
    binning, rows : Binning, BinnedRows
        The training table in bins.
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
        binning: Binning,
        rows: BinnedRows,
        objective: Objective,
        times: NDArray[np.int32],
        plan: Plan,
        groups: NDArray[np.intp],
        monotone: NDArray[np.int8],
        random: np.random.Generator,
        stop: Callable[[], bool],
    ):
        self.binning, self.objective, self.plan, self.random = binning, objective, plan, random
        self.table = Table(rows.by_row, rows.by_column, binning.counts, binning.categorical, monotone)
        self.n_rows, self.n_outputs = len(rows.by_row), objective.n_outputs
        self.baseline = objective.start()
        self.scores = np.repeat(self.baseline[:, None], self.n_rows, axis=1)
        self._gradient, self._curvature = np.empty_like(self.scores), np.empty_like(self.scores)
        self._weight, self._times, self._groups = float(objective.weights.sum()), times, groups
        self._count = int(times.sum()) if len(times) else self.n_rows
        leaf = plan.min_samples_leaf
        self._leaf = min(LEAF_ROWS, max(1.0, LEAF_SHARE * self._count)) if leaf is None else leaf
        # Trees of different outputs are independent: whole trees go to the threads, not parts of one.
        self.crew = Crew(settings().threads)
        together = min(self.crew.threads, self.n_outputs)
        crews = [Crew(self.crew.threads // together) for _ in range(together)] if together > 1 else [self.crew]
        self._growers = [
            Grower(self.table, self._times, plan.max_features, self._most_leaves(), crew, stop) for crew in crews
        ]

    def loss(self) -> float:
        """Mean loss of the training rows, or of 4 096 of them at equal distances."""
        rows = slice(None, None, -(-self.n_rows // WATCHED))
        return self.objective.value(rows, self.scores[:, rows])

    def add(self) -> list[BinnedTree] | None:
        """One round: a tree for each output, already added to the scores; None if it was stopped."""
        blocks = [slice(start, start + BLOCK) for start in range(0, self.n_rows, BLOCK)]
        sums = np.sum(self.crew.map(self._differentiate, blocks), axis=0)
        rows, features = self._draw_rows(), [self._draw_features() for _ in range(self.n_outputs)]
        tasks = [(k, rows, features[k], sums[:, k]) for k in range(self.n_outputs)]
        free = list(self._growers)

        def run(task):
            grower = free.pop()
            tree = self._tree(grower, *task)
            free.append(grower)
            return tree

        trees = self.crew.map(run, tasks)
        made = [tree for tree in trees if tree is not None]
        return made if len(made) == len(trees) else None

    def _differentiate(self, rows: slice) -> Array:
        """Gradient and curvature of a block of rows; returns the sums of |gradient| and curvature by output."""
        gradient, curvature = self._gradient[:, rows], self._curvature[:, rows]
        self.objective.derivatives(rows, self.scores[:, rows], gradient, curvature)
        return np.stack([np.abs(gradient).sum(axis=1), curvature.sum(axis=1)])

    def _draw_rows(self) -> NDArray[np.int32]:
        if self.plan.subsample == 1.0:
            return np.arange(self.n_rows, dtype=np.int32)
        return np.flatnonzero(draw_groups(self._groups, self.plan.subsample, self.random)).astype(np.int32)

    def _draw_features(self) -> NDArray[np.int32]:
        count = len(self.binning.counts)
        if self.plan.max_features == count:
            return np.arange(count, dtype=np.int32)
        chosen = self.random.choice(count, self.plan.max_features, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int32)

    def _tree(
        self, grower: Grower, output: int, rows: NDArray[np.int32], features: NDArray[np.int32], sums: Array
    ) -> BinnedTree | None:
        units = (unit(sums[0], self._count), unit(sums[1], self._count))
        gradient, curvature = self._gradient[output], self._curvature[output]

        def fill(start: int) -> None:
            part = slice(start, start + BLOCK)
            first = start if self._count > COARSE else -1
            pack(gradient[part], curvature[part], units, self._times[part], first, grower.growth.packed[part])

        grower.crew.map(fill, range(0, self.n_rows, BLOCK))
        whole = len(features) == len(self.binning.counts)
        by_row = self.table.by_row if whole else take_columns(self.table.by_row, features)
        tree = grower.grow(by_row, rows, features, self._limits(units))
        if tree is None:
            return None
        tree = replace(tree, value=self.plan.learning_rate * self._values(tree, output, grower.crew))
        self._update(tree, output, len(rows) == self.n_rows, grower.crew)
        return replace(tree, rows=tree.rows[:0])  # the grower will use that memory again

    def _values(self, tree: BinnedTree, output: int, crew: Crew) -> Array:
        """The value of each leaf: the Newton step, or the best constant of the loss."""
        leaves, value = np.flatnonzero(tree.left < 0), tree.value.copy()
        start, stop = tree.start[leaves], tree.stop[leaves]
        if self.objective.renewal is not None:
            return self._renewed(tree, output, self.objective.renewal, crew)
        gradient, curvature = self._gradient[output], self._curvature[output]
        groups = _equal_groups(stop - start, crew.threads)
        sums = crew.map(lambda k: leaf_sums(tree.rows, start[k], stop[k], gradient, curvature), groups)
        total = np.concatenate(sums)
        weight = total[:, 1] + self.plan.l2
        steps = np.divide(-total[:, 0], weight, out=np.zeros(len(leaves)), where=weight > 0)
        value[leaves] = np.clip(steps, tree.low[leaves], tree.high[leaves])
        return value

    def _renewed(self, tree: BinnedTree, output: int, renewal: Renewal, crew: Crew) -> Array:
        """The best constants of the loss in the leaves.

        Under constraints, children stay on both sides of the mean of their own best constants, as they did while the
        tree grew; but the bounds found there are those of Newton steps.
        """
        signs = np.where(tree.left < 0, 0, self.table.monotone[tree.feature])
        wanted = np.arange(len(tree.left)) if signs.any() else np.flatnonzero(tree.left < 0)
        parts = [tree.rows[tree.start[node] : tree.stop[node]] for node in wanted]
        value = tree.value.copy()
        value[wanted] = crew.map(lambda rows: renewal(output, rows, self.scores[output]), parts)
        low, high = np.full(len(value), -np.inf), np.full(len(value), np.inf)
        for node in np.flatnonzero(tree.left >= 0):  # parents come before children
            children = [tree.left[node], tree.left[node] + 1]
            low[children], high[children] = low[node], high[node]
            if signs[node]:
                cut = float(np.clip(value[children], low[node], high[node]).mean())
                below, above = children[:: signs[node]]
                high[below] = low[above] = cut
        return np.clip(value, low, high)

    def _update(self, tree: BinnedTree, output: int, every_row: bool, crew: Crew) -> None:
        scores = self.scores[output]
        if every_row:
            leaves = np.flatnonzero(tree.left < 0)
            start, stop, value = tree.start[leaves], tree.stop[leaves], tree.value[leaves]
            groups = _equal_groups(stop - start, crew.threads)
            crew.map(lambda k: add_leaf_values(tree.rows, start[k], stop[k], value[k], scores), groups)
        else:
            _add_tree(tree, self.table.by_row, scores, crew)

    def _most_leaves(self) -> int:
        """No tree has more leaves than this."""
        limits = [self.n_rows, self.plan.max_leaves or UNLIMITED]
        if self._leaf >= 1:
            limits.append(int(self._count / self._leaf))
        if self.plan.max_depth is not None and self.plan.max_depth < 31:
            limits.append(1 << self.plan.max_depth)
        return max(1, min(limits))

    def _limits(self, units: tuple[float, float]) -> Limits:
        plan, whole = self.plan, self.objective.whole / units[1]
        return Limits(
            l2=plan.l2 / units[1],
            leaf=self._leaf * (1 - 1e-9),
            gain=2.0 * plan.min_gain * self._weight * units[1] / units[0] / units[0],
            smoothing=SMOOTHING * whole,
            depth=UNLIMITED if plan.max_depth is None else plan.max_depth,
            value=units[0] / units[1],
        )


def _equal_groups(sizes: NDArray[np.int32], groups: int) -> list[slice]:
    """Consecutive items in so many groups of about equal total size."""
    ends = np.searchsorted(np.cumsum(sizes), np.arange(1, groups) * (sizes.sum() / groups)) + 1
    bounds = [0, *np.minimum(ends, len(sizes)).tolist(), len(sizes)]
    return [slice(low, high) for low, high in pairwise(bounds)]


def _add_tree(tree: BinnedTree, by_row: NDArray[np.uint8], scores: Array, crew: Crew) -> None:
    """Add a tree to the scores of binned rows."""

    def run(start: int) -> None:
        rows = slice(start, start + BLOCK)
        add_values(tree.left, tree.feature, tree.marks, tree.value, by_row[rows], scores[rows])

    crew.map(run, range(0, len(by_row), BLOCK))


def add_to(trees: list[BinnedTree], rows: BinnedRows, scores: Array, crew: Crew) -> None:
    """Add the trees of one round to the scores (n_outputs, n_rows) of other rows in the same bins."""
    for output, tree in enumerate(trees):
        _add_tree(tree, rows.by_row, scores[output], crew)
