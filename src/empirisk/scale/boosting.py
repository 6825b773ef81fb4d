"""Boosting on rows that lie in blocks: trees grow here from histograms of whole numbers that are summed there.

A row has its bins, its scores, and the place of the tree where it is. A round is a pass that packs gradient and
curvature and sums them for the root, one for each level of the tree, and two over the scores alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk.contract.inputs import generator
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.scale.blocks import Blocked, ConstantVector, TableRows, add, chained
from empirisk.scale.fitting import numbered_classes
from empirisk.scale.table import BlockedTable, total_weights
from empirisk.settings import require, settings
from empirisk.stop import Deadline, Stopped, interruptible, stopping
from empirisk.trees.binned.bins import WIDTH, Binning, edge_rows
from empirisk.trees.binned.levels import PLACE, LevelTree, derive_block, divide_block
from empirisk.trees.binned.splits import HALF, describe_columns
from empirisk.trees.binned.together import COARSE, GOLDEN, PART
from empirisk.trees.boosted import BoostingWork
from empirisk.trees.boosting import MOST_ROWS
from empirisk.trees.linear_leaves import GrownTree
from empirisk.trees.objectives import Objective
from empirisk.trees.rounds import WATCHED, BoostingPlan, GrowthRules
from empirisk.trees.table_columns import note_number_columns

Array = NDArray[np.float64]

#: The share of the memory budget that the histograms of one pass may take in a block.
HISTOGRAM_SHARE = 32
#: TableRows whose packed sums leave room for a unit each.
MOST_PACKED = 1 << 29


def fit_boosting(machine: Any, table: BlockedTable) -> None:
    """Boost on the rows of a table where they lie."""
    width, name = table.rows.shape[1], type(machine).__name__
    note_number_columns(machine, width, table.names)
    plan = machine._plan(width)
    machine.learns_from_bins(MOST_PACKED, width)
    if table.place.count > MOST_PACKED:
        raise Unsuitable(f"{name} takes {MOST_PACKED} rows at most, and X has {table.place.count}; take some of them.")
    times = _times(table)
    if hasattr(machine, "class_weight"):
        machine.classes_, codes, weights = numbered_classes(machine, table)
        table, kept = BlockedTable(table.rows, codes, weights).counting_with(times)
    elif table.labels is not None:
        raise EmpiriskError("y holds what is no number; give numbers, or take a classifier.")
    else:
        machine._several, kept = False, times
    with interruptible():
        deadline = Deadline(machine.max_time)
        rounds = BlockedRounds(machine, table, kept, plan, generator(machine.random_state), deadline)
        machine._boost(BoostingWork(rounds), deadline, {"X": None, "y": None, "metadata": {}})


def _times(table: BlockedTable) -> Blocked | None:
    """For how many equal rows each stands, where the weights are whole; None where each stands for itself."""
    if isinstance(table.weights, ConstantVector) and table.weights.value == 1.0:
        return None
    total, broken = table.place.run(
        lambda w: np.array([w.sum(), np.count_nonzero(w != np.rint(w))]), table.weights, combine=add
    )
    return table.weights if table.place.count < total < MOST_ROWS and not broken else None


@dataclass(frozen=True)
class BlockObjective:
    """The loss of a machine on the rows of a block."""

    machine: Any

    def of(self, y: Array, weights: Array) -> Objective:
        """The objective of some rows."""
        classes = hasattr(self.machine, "classes_")
        return self.machine._objective(y.astype(np.intp) if classes else y, np.ascontiguousarray(weights))

    def derivatives(self, y: Array, weights: Array, scores: Array) -> tuple[Array, Array]:
        """Gradient and curvature, each (n_outputs, n_rows)."""
        objective = self.of(y, weights)
        if objective.logistic:
            nothing = np.empty(len(y))
            data = np.stack([nothing, nothing, scores[:, 0], objective.targets[0], weights])
            derive_block(data, np.zeros(1, dtype=PART))
            return data[:1], data[1:2]
        gradient, curvature = np.empty((2, objective.n_outputs, len(y)))
        with np.errstate(over="ignore"):
            objective.derivatives(slice(None), np.ascontiguousarray(scores.T), gradient, curvature)
        return gradient, curvature


class BlockedRounds(GrowthRules):
    """What `empirisk.trees.rounds.Rounds` does, of rows in blocks; for the same bins it finds the same trees.

    Parameters
    ----------
    machine : Boosting
        The machine, with its classes.
    table : BlockedTable
        The rows; targets are numbers, or class numbers.
    times : Blocked or None
        For how many equal rows each stands.
    plan, random, stop
        As for `Rounds`.
    """

    def __init__(
        self,
        machine: Any,
        table: BlockedTable,
        times: Blocked | None,
        plan: BoostingPlan,
        random: np.random.Generator,
        stop: Callable[[], bool],
    ):
        self.place, self.stop = table.place, stop
        self._y, self._weights, self._times = table.targets(), table.weights, times
        self._firsts = Blocked(self.place, np.cumsum((0, *self.place.lengths))[:-1].tolist())
        block = clone(machine)
        if hasattr(machine, "classes_"):
            block.classes_ = machine.classes_
        self._loss = BlockObjective(block)
        self.objective, self.baseline = self._start(machine)
        if self.objective.renewal is not None:
            raise Unsuitable(
                f"loss={machine.loss!r} takes the values of leaves from all of their rows, which must be in memory; "
                "use 'squared', or of classes 'logistic' or 'exponential'."
            )
        self.n_outputs = self.objective.n_outputs
        binning = self._binning(table, machine.max_bins)
        weight = self._weights.sum()
        count = self.place.count if times is None else int(times.sum())
        super().__init__(binning, plan, self.place.count, count, float(weight), self.objective.whole, random)
        self._columns = describe_columns(binning, plan.monotone, plan.groups)
        kept = 8 * WIDTH * plan.max_features
        require(kept * self._most_leaves(), "The histograms of a tree", "set max_leaf_nodes or max_features")
        self._most = max(1, settings().memory // HISTOGRAM_SHARE // kept)
        self._places = np.int16 if 4 * self._most_leaves() < np.iinfo(np.int16).max else np.int32
        bins = self.place.run(_codes_of(binning), table.rows, outputs=1)
        self._codes = TableRows(self.place, bins.base, bins.shape[1:], bins.read)
        self._scores: Blocked = ConstantVector(self.place, self.baseline)
        self._update([], [])

    def _start(self, machine: Any) -> tuple[Objective, Array]:
        """The objective of a row of each kind, which tells what holds for all, and the best constants of all rows."""
        if hasattr(machine, "classes_"):
            count = len(machine.classes_)
            totals = total_weights(self.place, self._y, self._weights, count)
            kinds = self._loss.of(np.arange(float(count)), totals)
            return kinds, kinds.start()
        kinds: Any = self._loss.of(np.array(self.place.extremes(self._y)), np.ones(2))
        return kinds, np.array([self.place.best_constant(kinds.loss, self._y, self._weights)])

    def _binning(self, table: BlockedTable, max_bins: int) -> Binning:
        """The bins that the same rows have in memory: the rows that decide their edges come here."""
        chosen = edge_rows(self.place.count)

        def some(first: int, X: NDArray, weights: Array) -> list[tuple[NDArray, Array]]:
            here = chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, first + len(X))] - first
            return [(X[here], weights[here])]

        found = self.place.run(some, self._firsts, table.rows, self._weights, combine=chained)
        X, weights = (np.concatenate(each) for each in zip(*found, strict=True))
        return Binning.of(X.astype(np.float64), weights, np.zeros(X.shape[1], dtype=np.int32), max_bins)

    def loss(self) -> float:
        """Mean loss of the training rows, or of 4 096 of them at equal distances."""
        return self._watched

    def add(self) -> list[GrownTree] | None:
        """One round: a tree for each output, already added to the scores; None if it was stopped."""
        try:
            with stopping(self.stop):
                return [GrownTree(tree) for tree in self._add()]
        except Stopped:
            return None

    def _add(self) -> list[NDArray[np.void]]:
        features = [self._draw_features() for _ in range(self.n_outputs)]
        rules = [self._rules(self._sums[:, k], self._draw_cuts()) for k in range(self.n_outputs)]
        *packed, (totals, histograms) = self._packed(features, rules)
        grown, trees, ats = [], [], []
        for k in range(self.n_outputs):
            tree = LevelTree(
                self._columns[features[k]], rules[k], self.n_rows, self._count, int(totals[k]), histograms[k]
            )
            rows = _TreeRows(self, packed[k], features[k])
            trees.append(tree.grow(rows.divide, self._most))
            ats.append(rows.at)
            grown.append(tree)
        values = self._values(trees, [np.array(tree.owner) for tree in grown], ats, rules)
        self._update(values, ats)
        return trees

    def _packed(self, features: list[NDArray[np.int32]], rules: list[NDArray[np.void]]) -> Any:
        """Gradient and curvature in whole units, and of each output their sum and the histogram of the root."""
        loss, alternate, root = self._loss, self._count > COARSE, np.zeros(1, dtype=PLACE)
        root["child"] = -1
        units = [(float(rule["gradient_unit"][0]), float(rule["curvature_unit"][0])) for rule in rules]

        def run(first: int, codes: NDArray, y: Array, weights: Array, scores: Array, *times: Array) -> tuple:
            # TableRows are rounded up and down in turns, by their number: see `pack_rows` of the team.
            offset = ((np.arange(first, first + len(y)) * GOLDEN) & 0xFFFF) / 65536.0 if alternate else 0.5
            often = np.rint(times[0]).astype(np.int64) if times else np.int64(1)
            both, sums = [], []
            for k, (gradient, curvature) in enumerate(zip(*loss.derivatives(y, weights, scores), strict=True)):
                g, h = (
                    np.floor(each / unit / often + offset).astype(np.int64)
                    for each, unit in zip((gradient, curvature), units[k], strict=True)
                )
                both.append(((g << HALF) + h) * often)
                at, none = np.zeros(len(y), dtype=np.int16), np.zeros(0, dtype=np.int64)
                sums.append(divide_block(codes, _some(codes, features[k]), both[k], at, none, root)[1][1][0])
            return *both, (np.array([each.sum() for each in both]), np.stack(sums))

        inputs = (self._firsts, self._codes, self._y, self._weights, self._scores, *self._times_there())
        return self.place.run(run, *inputs, outputs=self.n_outputs, combine=add)

    def _times_there(self) -> tuple[Blocked, ...]:
        return () if self._times is None else (self._times,)

    def _values(self, trees: list, owners: list[NDArray], ats: list[Blocked], rules: list) -> list[Array]:
        """Give the leaves Newton steps; the step at each place of every tree."""
        loss, size = self._loss, max(map(len, owners))

        def run(y: Array, weights: Array, scores: Array, *ats: NDArray) -> Array:
            pairs = zip(zip(*loss.derivatives(y, weights, scores), strict=True), ats, strict=True)
            return np.array([[np.bincount(at, each, size) for each in both] for both, at in pairs], dtype=np.float64)

        sums = self.place.run(run, self._y, self._weights, self._scores, *ats, combine=add)
        steps = []
        for tree, owner, (g, h), rule in zip(trees, owners, sums, rules, strict=True):
            g, h = (np.bincount(owner, each[: len(owner)], len(tree)) for each in (g, h))
            weight, unit = h + rule["true_l2"], rule["gradient_unit"] / rule["curvature_unit"]
            with np.errstate(invalid="ignore", divide="ignore"):
                value = np.where(weight > 0, -g / weight, 0.0)
            value = rule["rate"] * np.clip(value, tree["lowest"] * unit, tree["highest"] * unit)
            tree["value"] = np.where(tree["left"] < 0, value, 0.0)
            tree["gain"] *= unit * rule["gradient_unit"]
            steps.append(tree["value"][owner])
        return steps

    def _update(self, values: list[Array], ats: list[Blocked]) -> None:
        """Add the trees to the scores; note the sums of |gradient| and curvature there, and the loss of some rows."""
        loss, every = self._loss, -(-self.n_rows // WATCHED)

        def run(first: int, y: Array, weights: Array, scores: Array, *ats: NDArray) -> tuple:
            scores = np.array(scores)
            for k, at in enumerate(ats):
                scores[:, k] += values[k][at]
            gradient, curvature = loss.derivatives(y, weights, scores)
            some = slice(-first % every, None, every)
            watched = np.zeros(2)
            if len(y[some]):
                total = float(weights[some].sum())
                watched[:] = total * loss.of(y[some], weights[some]).value(slice(None), scores[some].T), total
            return scores, (np.array([np.abs(gradient).sum(axis=1), curvature.sum(axis=1)]), watched)

        inputs = (self._firsts, self._y, self._weights, self._scores, *ats)
        self._scores, (self._sums, watched) = self.place.run(run, *inputs, outputs=1, combine=add)
        self._watched = float(watched[0] / watched[1])


class _TreeRows:
    """The rows of one tree, wherever they are in it."""

    def __init__(self, rounds: BlockedRounds, packed: Blocked, features: NDArray[np.int32]):
        self.rounds, self.packed, self.features = rounds, packed, features
        self.at: Blocked = ConstantVector(rounds.place, 0.0)

    def divide(self, places: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Move the rows of some places to those of the children: see `empirisk.trees.binned.levels`."""
        features, kind = self.features, self.rounds._places

        def run(codes: NDArray, packed: NDArray, at: NDArray, *times: Array) -> tuple:
            often = np.rint(times[0]).astype(np.int64) if times else np.zeros(0, dtype=np.int64)
            return divide_block(codes, _some(codes, features), packed, at.astype(kind), often, places)

        inputs = (self.rounds._codes, self.packed, self.at, *self.rounds._times_there())
        self.at, found = self.rounds.place.run(run, *inputs, outputs=1, combine=add)
        return found


def _some(codes: NDArray[np.uint8], features: NDArray[np.int32]) -> NDArray[np.uint8]:
    """The bins of some columns."""
    return codes if len(features) == codes.shape[1] else np.ascontiguousarray(codes[:, features])


def _codes_of(binning: Binning) -> Callable[[NDArray], NDArray[np.uint8]]:
    def run(X: NDArray) -> NDArray[np.uint8]:
        rows = np.ascontiguousarray(X, dtype=np.float64)
        return np.ascontiguousarray(binning.codes(rows).by_row[:, : X.shape[1]])

    return run
