"""Exact growing: from sorted columns and a target to the nodes of a tree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import in_threads
from empirisk.settings import settings
from empirisk.trees.exact.criteria import ABSOLUTE, GINI, SQUARED
from empirisk.trees.exact.describe import BITS, Target
from empirisk.trees.exact.expand import (
    CHILD,
    CHILDREN,
    CHOSEN,
    DIVIDE_LARGE,
    DONE,
    FULL,
    NODE,
    NODES,
    RECORD,
    SCAN_LARGE,
    Room,
    Rules,
    Tree,
    grow,
    partition,
)
from empirisk.trees.exact.offers import OFFER, Search, Sorted, scan_columns
from empirisk.trees.exact.presort import LARGE_NODE, MISSING, presort
from empirisk.trees.exact.scan import EXACT
from empirisk.trees.nodes import Nodes, gather_sets

Array = NDArray[np.float64]

PATIENCE = 1 << 25  # values looked at between two returns to Python
ROOM = 1 << 10  # nodes to start with


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
            return self._grow(Target(criterion, unit, np.column_stack([whole, whole * labels])), 1, 2, weights)
        slots = labels.astype(np.int32)[:, None]
        return self._grow(
            Target(criterion, unit, np.column_stack([whole, whole]), slots), n_classes, n_classes, weights
        )

    def outputs(self, y: Array, weights: Array, criterion: int = SQUARED) -> Nodes:
        """A regression tree for outputs of shape (n_rows, n_outputs)."""
        whole, unit = whole_weights(weights)
        y = np.ascontiguousarray(y, dtype=np.float64)
        n_rows, n_outputs = y.shape
        rows = np.column_stack([whole, np.zeros_like(y)])
        if criterion == ABSOLUTE:
            places, ordered = np.zeros(n_rows, np.int32), np.zeros(n_rows)
            return self._grow(Target(criterion, unit, rows, None, y, places, ordered), 2, 1, weights)
        slots = None if n_outputs == 1 else np.tile(np.arange(n_outputs, dtype=np.int32), (n_rows, 1))
        return self._grow(Target(criterion, unit, rows, slots, y), n_outputs, n_outputs, weights)

    def _grow(self, target: Target, n_sums: int, n_values: int, weights: Array) -> Nodes:
        keys = self._presorted.keys
        if target.ordered is not None and target.y is not None:
            keys = np.vstack([keys, presort(target.y).keys])
        elif self._reuse and self._limits.max_depth != 1:
            keys = keys.copy()  # they are divided in place as the tree grows
        columns = Sorted(keys, self._presorted.values, self._presorted.first, self._counts)
        rules = _rules(self._limits, self._counts, target.unit, weights)
        tree = _Growth(columns, target, rules, self._limits.seed, self._stopped).run(n_sums, n_values)
        split = tree.nodes[0]["feature"]
        if self._limits.max_depth == 1 and split >= 0 and not self._in_place[split]:
            keys[split].sort()  # the one column that a stump divides, in order again
        return _finished(tree, self._counts)


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


def _rules(limits: Limits, counts: NDArray[np.int32], unit: float, weights: Array) -> Rules:
    # One row is always enough for a leaf, whatever its weight; 1 is the least whole-number weight.
    least = limits.min_samples_leaf / unit if limits.min_samples_leaf > 1 else 1.0
    # Rounded down, so that half the weight can be asked of both children.
    least = max(least, np.floor(limits.min_weight_fraction_leaf * weights.sum() / unit))
    depth = np.iinfo(np.int32).max if limits.max_depth is None else limits.max_depth
    features = len(counts) if limits.max_features is None else limits.max_features
    gain, words = limits.min_gain * float(weights.sum()), (int(counts.max()) + 63) // 64
    return Rules(depth, limits.max_leaves or 0, least, gain, features, words)


class _Growth:
    """One tree in the making: compiled code grows it, and hands the columns of large nodes to threads."""

    def __init__(self, columns: Sorted, target: Target, rules: Rules, seed: int, stopped: Callable[[], bool]):
        self._columns, self._target, self._rules, self._stopped = columns, target, rules, stopped
        self._lanes = settings().threads
        n_features, n_rows = len(columns.counts), columns.keys.shape[1]
        self._room = Room(
            chosen=np.zeros(n_features, np.int32),
            goes_left=np.zeros(n_rows, np.bool_),
            scratch=np.zeros((self._lanes, n_rows), np.int64),
            random=np.array([seed], np.uint64),
        )

    def run(self, n_sums: int, n_values: int) -> Tree:
        """Grow the whole tree."""
        columns = self._columns
        categories = int(columns.counts.max())
        search = Search(
            offers=np.zeros(len(columns.counts), OFFER),
            in_left=np.zeros((len(columns.counts), categories), np.bool_) if categories else None,
            total=np.zeros((2, 1 + n_sums)),
            limits=np.zeros((2, 4)),
        )
        tree = _room(ROOM, n_values, 8 * self._rules.words)
        pace = np.array([LARGE_NODE, PATIENCE])
        work = (columns, self._target, self._rules)
        while (reason := grow(*work, tree, search, self._room, pace)) != DONE and not self._stopped():
            if reason == FULL:
                tree = _enlarged(tree)
            elif reason == DIVIDE_LARGE:
                self._divide(tree.nodes[tree.counters[NODE]])
            elif reason == SCAN_LARGE:
                self._scan(tree, search)
        return tree

    def _divide(self, node: Any) -> None:
        """Divide the columns of a large node that was split."""
        rows = slice(node["start"], node["stop"])

        def divide(lane: int) -> None:
            for column in range(lane, len(self._columns.counts), self._lanes):
                if column != node["column"]:
                    partition(self._columns.keys[column, rows], self._room.goes_left, self._room.scratch[lane])

        in_threads(divide, range(self._lanes))

    def _scan(self, tree: Tree, search: Search) -> None:
        """Look for the best split of a large node.

        Each column's offer is found on its own, and the best is taken in their order: threads change nothing.
        """
        child = tree.counters[CHILD]
        node = tree.nodes[tree.counters[CHILDREN] + child]
        chosen = self._room.chosen[: tree.counters[CHOSEN]]

        def scan(lane: int) -> None:
            for place in range(lane, len(chosen), self._lanes):
                one = chosen[place : place + 1]
                scan_columns(self._columns, self._target, search, child, node["start"], node["stop"], one)

        in_threads(scan, range(self._lanes))


def _room(nodes: int, n_values: int, words: int) -> Tree:
    return Tree(
        counters=np.zeros(10, np.int64),
        nodes=np.zeros(nodes, RECORD),
        value=np.zeros((nodes, n_values)),
        category_bits=np.zeros(words, np.uint64),
        waiting=np.zeros(nodes, np.int32),
    )


def _enlarged(tree: Tree) -> Tree:
    larger = _room(2 * len(tree.nodes), tree.value.shape[1], 2 * len(tree.category_bits))
    for name in Tree._fields:
        array = getattr(tree, name)
        getattr(larger, name)[: len(array)] = array
    return larger


def _finished(tree: Tree, counts: NDArray[np.int32]) -> Nodes:
    """The nodes in arrays of their own."""
    nodes = tree.nodes[: tree.counters[NODES]]
    names = ("feature", "threshold", "left", "missing_left", "weight", "impurity", "gain")
    words = (counts[nodes["feature"]] + 63) // 64
    start = np.where(nodes["feature"] >= 0, nodes["category_start"], -1)
    start, bits = gather_sets(start, words, tree.category_bits)
    return Nodes.from_splits(
        **{name: nodes[name] for name in names},
        value=tree.value[: len(nodes)].copy(),
        n_features=len(counts),
        category_start=start,
        category_bits=bits,
        category_counts=counts,
    )
