"""Exact growing: from sorted columns and a target to the nodes of a tree."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.settings import settings
from empirisk.trees.criteria import ABSOLUTE, SQUARED
from empirisk.trees.describe import BITS, DEVIATION, VARIANCE, Target, form_of
from empirisk.trees.expand import (
    DONE,
    FULL,
    LARGE,
    LEAVES,
    NODE,
    NODES,
    OFFER,
    WORDS,
    Rules,
    Search,
    Sorted,
    Tree,
    choose_columns,
    grow_small,
    open_node,
    partition_columns,
    pop,
    scan_columns,
    settle,
    split_node,
)
from empirisk.trees.nodes import Nodes
from empirisk.trees.presort import presort

Array = NDArray[np.float64]

LARGE_NODE = 1 << 18  # values in a node from which its columns are shared among threads
PATIENCE = 1 << 25  # values looked at between two returns to Python
ROOM = 1 << 10  # nodes to start with


@dataclass(frozen=True)
class Limits:
    """When an exact tree stops growing; see `empirisk.TreeClassifier` for the meaning."""

    max_depth: int | None = None
    max_leaves: int | None = None
    min_samples_leaf: float = 1
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
    """

    def __init__(self, X: Array, counts: NDArray[np.int32], limits: Limits):
        self._presorted = presort(X)
        self._counts = np.ascontiguousarray(counts, dtype=np.int32)
        self._limits = limits

    def classes(self, labels: NDArray[np.integer], n_classes: int, weights: Array, criterion: int) -> Nodes:
        """A classification tree for labels 0, ..., n_classes - 1."""
        whole, unit = whole_weights(weights)
        form = form_of(criterion, n_classes)
        rows = np.column_stack([whole, whole])
        slots = labels.astype(np.int32)[:, None]
        if form == VARIANCE:
            rows[:, 1] *= labels
            slots = np.zeros_like(slots)
        nothing = np.zeros((0, 0))
        target = Target(criterion, form, unit, rows, slots, nothing, np.zeros(0, np.int32), np.zeros(0))
        return self._grow(target, 1 if form == VARIANCE else n_classes, n_classes, weights)

    def outputs(self, y: Array, weights: Array, criterion: int = SQUARED) -> Nodes:
        """A regression tree for outputs of shape (n_rows, n_outputs)."""
        whole, unit = whole_weights(weights)
        outputs = y.shape[1]
        rows = np.column_stack([whole, np.zeros_like(y)])
        slots = np.broadcast_to(np.arange(outputs, dtype=np.int32), y.shape).copy()
        size = len(y) if criterion == ABSOLUTE else 0
        room = (np.zeros(size, np.int32), np.zeros(size))
        target = Target(criterion, form_of(criterion, outputs), unit, rows, slots, np.ascontiguousarray(y), *room)
        sums = 2 if criterion == ABSOLUTE else outputs
        return self._grow(target, sums, outputs, weights)

    def _grow(self, target: Target, n_sums: int, n_values: int, weights: Array) -> Nodes:
        keys = self._presorted.keys
        if target.form == DEVIATION:
            keys = np.vstack([keys, presort(target.y).keys])
        elif self._limits.max_depth != 1:
            keys = keys.copy()  # divided in place as the tree grows; a single split reads them only
        sorted_columns = Sorted(keys, self._presorted.values, self._presorted.first, self._counts)
        rules = _rules(self._limits, len(self._counts), target, weights)
        search = _search(sorted_columns, n_sums, self._limits.seed, settings().threads)
        with ThreadPoolExecutor(settings().threads) as pool:
            tree = _Growth(sorted_columns, target, rules, search, pool).run(n_values)
        return _finished(tree, self._counts)


def whole_weights(weights: Array) -> tuple[Array, float]:
    """Weights as whole numbers whose sum is below 2^BITS, and the unit that turns them back."""
    exponent = BITS - int(np.frexp(weights.sum())[1])
    return np.rint(np.ldexp(weights, exponent)), float(np.ldexp(1.0, -exponent))


def _rules(limits: Limits, n_features: int, target: Target, weights: Array) -> Rules:
    # One row is always enough for a leaf, whatever its weight; 1 is the least whole-number weight.
    least = limits.min_samples_leaf / target.unit if limits.min_samples_leaf > 1 else 1.0
    depth = np.iinfo(np.int32).max if limits.max_depth is None else limits.max_depth
    features = n_features if limits.max_features is None else limits.max_features
    return Rules(depth, limits.max_leaves or 0, least, limits.min_gain * float(weights.sum()), features)


def _search(columns: Sorted, n_sums: int, seed: int, threads: int) -> Search:
    n_features, n_rows = len(columns.counts), columns.keys.shape[1]
    return Search(
        chosen=np.zeros(n_features, np.int32),
        offers=np.zeros(n_features, OFFER),
        in_left=np.zeros((n_features, columns.counts.max(initial=0)), np.bool_),
        total=np.zeros((2, 1 + n_sums)),
        limits=np.zeros((2, 4)),
        goes_left=np.zeros(n_rows, np.bool_),
        scratch=np.zeros((threads, n_rows), np.int64),
        random=np.array([seed], np.uint64),
    )


class _Growth:
    """One tree in the making: large nodes column by column on threads, small ones in compiled code."""

    def __init__(self, columns: Sorted, target: Target, rules: Rules, search: Search, pool: ThreadPoolExecutor):
        self._work = (columns, target, rules)
        self._search = search
        self._pool = pool
        self._lanes = len(search.scratch)

    def run(self, n_values: int) -> Tree:
        """Grow the whole tree."""
        columns, target, rules = self._work
        search = self._search
        words = 2 * ((search.in_left.shape[1] + 63) // 64)
        self._tree = tree = _room(ROOM, n_values, 64 * words)
        tree.nodes[0]["stop"], tree.counters[NODES], tree.counters[LEAVES] = columns.keys.shape[1], 1, 1
        described = len(columns.counts) if target.form == DEVIATION else 0
        if open_node(columns, target, rules, tree, search, 0, 0, described):
            self._scan(0, 0)
        patience = np.array([LARGE_NODE, PATIENCE])
        while (reason := grow_small(*self._work, self._tree, search, patience)) != DONE:
            if reason == FULL:
                self._tree = _enlarged(self._tree)
            if reason == LARGE:
                self._expand_large()
        return self._tree

    def _expand_large(self) -> None:
        columns, target, rules = self._work
        tree = self._tree
        if tree.counters[NODES] + 2 > len(tree.nodes) or 2 * tree.counters[WORDS] > len(tree.category_bits):
            self._tree = tree = _enlarged(tree)
        node = int(pop(rules, tree))
        alive = split_node(columns, target, rules, tree, self._search, node)
        if not alive:
            return
        start, stop, split = tree.nodes[node]["start"], tree.nodes[node]["stop"], tree.nodes[node]["column"]
        lanes = [
            self._pool.submit(partition_columns, columns, self._search, lane, start, stop, split, part)
            for lane, part in enumerate(_shared(np.arange(len(columns.counts), dtype=np.int32), self._lanes))
        ]
        _wait(lanes)
        for child in (1, 0):
            if alive >> child & 1:
                self._scan(int(tree.nodes[node]["left"]) + child, child)

    def _scan(self, node: int, child: int) -> None:
        columns, target, rules = self._work
        start, stop = self._tree.nodes[node]["start"], self._tree.nodes[node]["stop"]
        chosen = choose_columns(columns, rules, self._search, start, stop).copy()
        # Each column's offer is found on its own and the best is taken in their order: threads change nothing.
        _wait(
            [
                self._pool.submit(scan_columns, columns, target, self._search, child, start, stop, part)
                for part in _shared(chosen, self._lanes if len(chosen) * (stop - start) >= LARGE_NODE else 1)
            ]
        )
        settle(columns, rules, self._tree, self._search, child, node, chosen)


def _shared(columns: NDArray[np.int32], lanes: int) -> list[NDArray[np.int32]]:
    return [np.ascontiguousarray(columns[lane::lanes]) for lane in range(lanes)]


def _wait(lanes: list) -> None:
    for lane in lanes:
        lane.result()


def _room(nodes: int, n_values: int, words: int) -> Tree:
    return Tree(
        counters=np.zeros(4, np.int64),
        nodes=np.zeros(nodes, NODE),
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
    """The nodes in arrays of their own; sets of categories that no split uses are left out."""
    nodes = tree.nodes[: tree.counters[NODES]]
    start = np.where(nodes["feature"] >= 0, nodes["category_start"], -1)
    used = np.flatnonzero(start >= 0)
    words = (counts[nodes["feature"][used]] + 63) // 64
    chunks = [tree.category_bits[start[node] : start[node] + count] for node, count in zip(used, words, strict=True)]
    start[used] = np.cumsum(words) - words
    return Nodes.from_splits(
        **{
            name: nodes[name] for name in ("feature", "threshold", "left", "missing_left", "weight", "impurity", "gain")
        },
        value=tree.value[: len(nodes)].copy(),
        n_features=len(counts),
        category_start=start,
        category_bits=np.concatenate(chunks) if chunks else [],
        category_counts=counts,
    )
