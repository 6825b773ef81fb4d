"""Exact growing: from sorted columns and a target to the nodes of a tree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import in_threads
from empirisk.settings import settings
from empirisk.trees.exact.criteria import ABSOLUTE, GINI, SQUARED
from empirisk.trees.exact.describe import BITS
from empirisk.trees.exact.expand import (
    COLUMN,
    DIVIDE_LARGE,
    DONE,
    FULL,
    NODE,
    SCAN_LARGE,
    STATE,
    Growth,
    grow,
    partition,
    scan_column,
)
from empirisk.trees.exact.presort import LARGE_NODE, MISSING, presort
from empirisk.trees.exact.scan import EXACT
from empirisk.trees.nodes import Nodes, gather_sets

Array = NDArray[np.float64]

PATIENCE = 1 << 25  # values looked at between two returns to Python
ROOM = 1 << 10  # nodes to start with


class Target(NamedTuple):
    """What the rows are divided by (see `empirisk.trees.exact.expand`); how many sums and values a node has."""

    criterion: int
    unit: float
    rows: Array
    sums: int
    values: int
    slots: NDArray[np.int64] | None = None
    y: Array | None = None
    median: tuple[NDArray[np.int64], Array] | None = None


@dataclass(frozen=True)
class Limits:
    """When an exact tree stops growing; see `empirisk.TreeClassifier` for the meaning."""

    max_depth: int | None = None
    max_leaves: int | None = None
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    min_gain: float = 0.0
    max_features: int | None = None
    seed: int = 0


class Grower:
    """Exact trees on the same rows: the columns are sorted once, for any number of trees.

    Parameters
    ----------
    X : (n_rows, n_features) float64
        Numbers and category codes; NaN is missing.
    counts : (n_features,) int
        Number of categories of each column, 0 for a numeric one.
    limits : Limits
        When to stop.
    stopped : callable
        Asked now and then; once it says yes, nodes that wait for their split stay leaves.
    reuse : bool
        Whether there will be more than one tree; otherwise the first one uses the sorted columns up.
    """

    def __init__(
        self,
        X: Array,
        counts: NDArray[np.int32],
        limits: Limits,
        stopped: Callable[[], bool] = lambda: False,
        reuse: bool = False,
    ):
        self._presorted = presort(X)
        self._reuse = reuse
        self._counts = np.ascontiguousarray(counts, dtype=np.int32)
        self._limits = limits
        self._stopped = stopped
        # Numbers, none of them missing: the rows that go left come first already.
        self._in_place = (self._counts == 0) & (self._presorted.keys[:, -1] >> 32 != MISSING)

    def classes(self, labels: NDArray[np.integer], n_classes: int, weights: Array, criterion: int) -> Nodes:
        """A classification tree for labels 0, ..., n_classes - 1."""
        whole, unit = whole_weights(weights)
        if criterion == GINI and n_classes == 2:
            return self._grow(Target(criterion, unit, np.column_stack([whole, whole * labels]), 1, 2), weights)
        rows, slots = np.column_stack([whole, whole]), labels.astype(np.int64)[:, None]
        return self._grow(Target(criterion, unit, rows, n_classes, n_classes, slots), weights)

    def outputs(self, y: Array, weights: Array, criterion: int = SQUARED) -> Nodes:
        """A regression tree for outputs of shape (n_rows, n_outputs)."""
        whole, unit = whole_weights(weights)
        y = np.ascontiguousarray(y, dtype=np.float64)
        n_rows, n_outputs = y.shape
        rows = np.column_stack([whole, np.zeros_like(y)])
        if criterion == ABSOLUTE:
            median = np.zeros(n_rows, np.int64), np.zeros(n_rows)
            return self._grow(Target(criterion, unit, rows, 2, 1, None, y, median), weights)
        slots = None if n_outputs == 1 else np.tile(np.arange(n_outputs), (n_rows, 1))
        return self._grow(Target(criterion, unit, rows, n_outputs, n_outputs, slots, y), weights)

    def _grow(self, target: Target, weights: Array) -> Nodes:
        keys = self._presorted.keys
        if target.median is not None and target.y is not None:
            keys = np.vstack([keys, presort(target.y).keys])
        elif self._reuse and self._limits.max_depth != 1:
            keys = keys.copy()  # they are divided in place as the tree grows
        growth = self._run(self._room(keys, target, weights), target)
        split = growth.nodes["feature"][0]
        if self._limits.max_depth == 1 and split >= 0 and not self._in_place[split]:
            keys[split].sort()  # the one column that a stump divides, in order again
        return _finished(growth, self._counts)

    def _room(self, keys: NDArray[np.int64], target: Target, weights: Array) -> Growth:
        """The memory in which a tree grows; compiled code looks at nothing else."""
        n_features, n_rows = len(self._counts), keys.shape[1]
        columns = np.zeros(n_features, COLUMN)
        columns["first"], columns["distinct"] = self._presorted.first[:-1], np.diff(self._presorted.first)
        columns["categories"] = self._counts
        state = _state(self._limits, self._counts, target, weights)
        return Growth(
            state=state,
            keys=keys,
            values=self._presorted.values,
            columns=columns,
            rows=target.rows,
            nodes=np.zeros(ROOM, NODE),
            value=np.zeros((ROOM, target.values)),
            category_bits=np.zeros(8 * int(state["set_words"][0]), np.uint64),
            sums=np.zeros((2 + 3 * settings().threads, 1 + target.sums)),
            goes_left=np.zeros(n_rows, np.bool_),
            scratch=np.zeros((settings().threads, n_rows), np.int64),
            random=np.array([self._limits.seed], np.uint64),
        )

    def _run(self, growth: Growth, target: Target) -> Growth:
        """Grow the whole tree: compiled code grows it, and hands the columns of large nodes to threads."""
        most, lanes = int(self._counts.max()), range(len(growth.scratch))
        in_left = np.zeros((len(self._counts), most), np.bool_) if most else None
        state, columns = growth.state[0], growth.columns

        def divide(lane: int) -> None:
            node = growth.nodes[state["node"]]
            for column in range(lane, len(columns), len(lanes)):
                if column != node["column"]:
                    rows = int(node["start"]), int(node["stop"])
                    partition(growth.keys[column], *rows, growth.goes_left, growth.scratch[lane])

        def scan(lane: int) -> None:
            # Each column's offer is found on its own, and the best is taken in their order: threads change nothing.
            for place in range(lane, int(state["chosen"]), len(lanes)):
                scan_column(growth, target.slots, target.median, in_left, int(columns["chosen"][place]), lane)

        while (reason := grow(growth, target.slots, target.y, target.median, in_left)) != DONE:
            if self._stopped():
                break
            if reason == FULL:
                growth = _enlarged(growth)
            elif reason in (DIVIDE_LARGE, SCAN_LARGE):
                in_threads(divide if reason == DIVIDE_LARGE else scan, lanes)
        return growth


def whole_weights(weights: Array) -> tuple[Array, float]:
    """Weights as whole numbers, and the unit that turns them back.

    Their sum is at most `EXACT` where that loses nothing, as for counts of rows, else below 2^BITS.
    """
    for bits in (EXACT.bit_length() - 1, BITS):
        exponent = bits - int(np.frexp(weights.sum())[1])
        scaled = np.ldexp(weights, exponent)
        whole = np.rint(scaled)
        if np.array_equal(whole, scaled):
            break
    return whole, float(np.ldexp(1.0, -exponent))


def _state(limits: Limits, counts: NDArray[np.int32], target: Target, weights: Array) -> NDArray[np.void]:
    """The rules, and where growing starts."""
    unit, state = target.unit, np.zeros(1, STATE)
    # One row is always enough for a leaf, whatever its weight; 1 is the least whole-number weight.
    least = limits.min_samples_leaf / unit if limits.min_samples_leaf > 1 else 1.0
    # Rounded down, so that half the weight can be asked of both children.
    state["least"] = max(least, np.floor(limits.min_weight_fraction_leaf * weights.sum() / unit))
    state["max_depth"] = np.iinfo(np.int64).max if limits.max_depth is None else limits.max_depth
    state["max_leaves"] = limits.max_leaves or 0
    state["max_features"] = len(counts) if limits.max_features is None else limits.max_features
    state["min_gain"], state["set_words"] = limits.min_gain * float(weights.sum()), (int(counts.max()) + 63) // 64
    state["criterion"], state["unit"] = target.criterion, unit
    state["large"], state["patience"] = LARGE_NODE, PATIENCE
    return state


def _enlarged(growth: Growth) -> Growth:
    """Twice the room for nodes and sets of categories."""
    names = ("nodes", "value", "category_bits")
    return growth._replace(**{name: np.concatenate([getattr(growth, name)] * 2) for name in names})


def _finished(growth: Growth, counts: NDArray[np.int32]) -> Nodes:
    """The nodes in arrays of their own."""
    nodes = growth.nodes[: growth.state["nodes"][0]]
    names = ("feature", "threshold", "left", "missing_left", "weight", "impurity", "gain")
    words = (counts[nodes["feature"]] + 63) // 64
    start = np.where(nodes["feature"] >= 0, nodes["category_start"], -1)
    start, bits = gather_sets(start, words, growth.category_bits)
    return Nodes.from_splits(
        **{name: nodes[name] for name in names},
        value=growth.value[: len(nodes)].copy(),
        n_features=len(counts),
        category_start=start,
        category_bits=bits,
        category_counts=counts,
    )
