"""Compiled growth of one tree of a forest, in slices: each node looks at a few columns drawn at random."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.bins import MISSING, WIDTH
from empirisk.trees.compiled import loop
from empirisk.trees.forest_split import (
    Scratch,
    class_part,
    class_term,
    cut_categories,
    cut_classes,
    cut_sums,
    entropy_purity,
    gather,
    new_scratch,
    rank_categories,
    sums_by_bin,
    target_in,
    weight_in,
)
from empirisk.trees.histogram import WORDS
from empirisk.trees.histogram_split import is_marked, mark

NODES, OPEN, SETS = range(3)  # places of the counters in `Sprout.count`


class Rules(NamedTuple):
    """How a tree grows: ``classes`` is 0 where rows carry packed sums; ``leaf`` is the least weight of a leaf in units,
    ``gain`` the least gain of a split, ``features`` the columns to look at; ``leaves`` is 0 for no limit."""

    classes: int
    entropy: bool
    leaf: float
    gain: float
    depth: int
    leaves: int
    features: int


class Bag(NamedTuple):
    """The rows of one tree, those of a node side by side, and room to divide them."""

    rows: NDArray[np.int32]
    packed: NDArray[np.int64]
    spare_rows: NDArray[np.int32]
    spare_packed: NDArray[np.int64]
    scratch: Scratch


def new_bag(rows: NDArray[np.int32], packed: NDArray[np.int64], classes: int) -> Bag:
    """The rows of a sample, each with its packed target and number of draws."""
    return Bag(rows, packed, np.empty_like(rows), np.empty_like(packed), new_scratch(len(rows), classes))


class Sprout(NamedTuple):
    """A tree while it grows: arrays by node, the list ``open`` of nodes that have a split but no children yet.

    ``feature`` is -1 where no split was found, ``left`` -1 where there are no children; ``by_set`` says that the split
    is categorical, and ``set`` which row of ``marks`` (bins that go left) it has. ``columns`` is a shuffled list of
    the columns, ``seed`` the state of the random numbers, ``count`` the counters.
    """

    feature: NDArray[np.int32]
    bin: NDArray[np.uint8]
    missing_left: NDArray[np.bool_]
    by_set: NDArray[np.bool_]
    set: NDArray[np.int32]
    left: NDArray[np.int32]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    depth: NDArray[np.int32]
    gain: NDArray[np.float64]
    open: NDArray[np.int32]
    marks: NDArray[np.uint64]
    columns: NDArray[np.int32]
    seed: NDArray[np.uint64]
    count: NDArray[np.int64]


def new_sprout(rows: int, n_features: int, categorical: bool, seed: int) -> Sprout:
    """Room for a tree on so many rows."""
    nodes = 2 * rows
    ints = {
        name: np.full(nodes, -1, dtype=np.int32)
        for name in ("feature", "set", "left", "start", "stop", "depth", "open")
    }
    return Sprout(
        bin=np.zeros(nodes, dtype=np.uint8),
        missing_left=np.zeros(nodes, dtype=bool),
        by_set=np.zeros(nodes, dtype=bool),
        gain=np.zeros(nodes),
        marks=np.zeros((nodes if categorical else 1, WORDS), dtype=np.uint64),
        columns=np.arange(n_features, dtype=np.int32),
        seed=np.array([seed], dtype=np.uint64),
        count=np.zeros(3, dtype=np.int64),
        **ints,
    )


@loop
def draw(seed, below):
    """A random whole number below ``below`` (splitmix64)."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = seed[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(32)
    return np.int64((bits * np.uint64(below)) >> np.uint64(32))


@loop
def describe(bag, rules, start, stop):
    """Weight, packed sum (for sums), purity of some rows, and whether they are all alike; fills the class sums."""
    packed, node, alike = bag.packed, np.int64(0), True
    first_target, first_weight = target_in(packed[start]), weight_in(packed[start])
    if rules.classes > 0:
        sums = bag.scratch.node
        sums[:] = 0.0
        for k in range(start, stop):
            sums[target_in(packed[k])] += weight_in(packed[k])
        weight = sums.sum()
        own = class_part(sums, rules.entropy)
        own = own - class_term(weight, rules.entropy) if rules.entropy else own / weight
        return weight, node, own, sums.max() == weight
    for k in range(start, stop):
        node += packed[k]
        # Equal but for the rounding of both targets by half a unit.
        gap = float(target_in(packed[k])) * first_weight - float(first_target) * weight_in(packed[k])
        alike &= 2.0 * abs(gap) < first_weight + weight_in(packed[k])
    weight, amount = float(weight_in(node)), float(target_in(node))
    return weight, node, entropy_purity(node) if rules.entropy else amount * amount / weight, alike


@loop
def look(table, bag, sprout, rules, node):
    """Find a split of a node among columns drawn at random; columns that are constant here do not count."""
    start, stop = sprout.start[node], sprout.stop[node]
    weight, total, own, alike = describe(bag, rules, start, stop)
    if alike or sprout.depth[node] >= rules.depth or weight < 2 * rules.leaf:
        return
    best, looked, place = -np.inf, 0, 0
    while looked < rules.features and place < sprout.columns.shape[0]:
        other = place + draw(sprout.seed, sprout.columns.shape[0] - place)
        column = sprout.columns[other]
        sprout.columns[other] = sprout.columns[place]
        sprout.columns[place] = column
        place += 1
        if rules.classes > 0:
            score = try_classes(table, bag, sprout, rules, node, column, best)
        else:
            score = try_sums(table, bag, sprout, rules, node, column, best, total)
        looked += not np.isnan(score)
        best = max(best, score) if score == score else best
    if sprout.feature[node] >= 0:
        sprout.gain[node] = max(best - own, 0.0)
        if rules.gain > 0.0 and best - own < rules.gain:
            sprout.feature[node] = -1


@loop
def try_sums(table, bag, sprout, rules, node, column, best, total):
    """Purity of the best split in a column, noted if it is above ``best``; NaN for a constant column."""
    start, stop, scratch = sprout.start[node], sprout.stop[node], bag.scratch
    count = sums_by_bin(table.by_column[column], bag.rows[start:stop], bag.packed[start:stop], scratch)
    if count < 2:
        return np.nan
    if table.categorical[column]:
        score, heavier = cut_categories(scratch, count, total, rules.leaf, rules.entropy)
        if score > best:
            note_set(sprout, node, column, scratch.ranks, np.int64(0), heavier)
        return score
    score, cut, missing_left = cut_sums(scratch, count, total, rules.leaf, rules.entropy)
    if score > best:
        note_cut(sprout, node, column, cut, missing_left)
    return score


@loop
def try_classes(table, bag, sprout, rules, node, column, best):
    """As `try_sums`, for more than two classes; categories are ordered by the share of a class drawn at random."""
    start, stop, scratch = sprout.start[node], sprout.stop[node], bag.scratch
    codes, packed, order = scratch.codes[start:stop], bag.packed[start:stop], scratch.order[start:stop]
    if not gather(table.by_column[column], bag.rows[start:stop], codes):
        return np.nan
    categorical = table.categorical[column]
    if categorical:
        rank_categories(codes, packed, draw(sprout.seed, rules.classes), scratch.ranks)
    score, cut, missing_left, heavier = cut_classes(codes, packed, order, scratch, rules.leaf, rules.entropy)
    if score > best and categorical:
        note_set(sprout, node, column, scratch.ranks, cut, heavier)
    elif score > best:
        note_cut(sprout, node, column, cut, missing_left)
    return score


@loop
def note_cut(sprout, node, column, cut, missing_left):
    """Keep a numeric split."""
    sprout.feature[node] = column
    sprout.by_set[node] = False
    sprout.bin[node] = cut
    sprout.missing_left[node] = missing_left


@loop
def note_set(sprout, node, column, ranks, cut, empty_left):
    """Keep the split whose left side is the bins of rank at most ``cut``; bins without rows here follow the heavier."""
    sprout.feature[node] = column
    sprout.by_set[node] = True
    if sprout.set[node] < 0:
        sprout.set[node] = sprout.count[SETS]
        sprout.count[SETS] += 1
    marks = sprout.marks[sprout.set[node]]
    marks[:] = 0
    for b in range(WIDTH):
        if (ranks[b] >= 0 and ranks[b] <= cut) or (ranks[b] < 0 and empty_left):
            mark(marks, b)
    sprout.missing_left[node] = is_marked(marks, MISSING)


@loop
def divide(table, bag, sprout, node):
    """Bring the rows that go left to the front of the node; returns where the others begin."""
    column, start = table.by_column[sprout.feature[node]], np.uint64(sprout.start[node])
    cut, missing, one = sprout.bin[node], np.uint64(sprout.missing_left[node]), np.uint64(1)
    by_set, left_bins = sprout.by_set[node], np.zeros(WIDTH if sprout.by_set[node] else 1, dtype=np.uint64)
    if by_set:
        for b in range(WIDTH):
            left_bins[b] = is_marked(sprout.marks[sprout.set[node]], b)
    lefts, rights = start, start
    for k in range(start, np.uint64(sprout.stop[node])):
        row, packed = bag.rows[k], bag.packed[k]
        bag.rows[lefts], bag.packed[lefts] = row, packed
        bag.spare_rows[rights], bag.spare_packed[rights] = row, packed
        code = column[np.uint64(row)]
        step = left_bins[code] if by_set else np.uint64(code <= cut) | (missing & np.uint64(code == MISSING))
        lefts += step
        rights += one - step
    for k in range(rights - start):
        bag.rows[lefts + k] = bag.spare_rows[start + k]
        bag.packed[lefts + k] = bag.spare_packed[start + k]
    return np.int64(lefts)


@loop
def add_node(table, bag, sprout, rules, start, stop, depth):
    """A new node with its split, if there is one."""
    node = sprout.count[NODES]
    sprout.count[NODES] += 1
    sprout.start[node], sprout.stop[node], sprout.depth[node] = start, stop, depth
    look(table, bag, sprout, rules, node)
    if sprout.feature[node] >= 0:
        sprout.open[sprout.count[OPEN]] = node
        sprout.count[OPEN] += 1


@loop
def next_open(sprout, rules):
    """Take a node from the open ones: the last, or with a limit on the leaves the one with the largest gain."""
    chosen = sprout.count[OPEN] - 1
    if rules.leaves > 0:
        for k in range(sprout.count[OPEN]):
            if sprout.gain[sprout.open[k]] > sprout.gain[sprout.open[chosen]]:
                chosen = k
    node = sprout.open[chosen]
    sprout.count[OPEN] -= 1
    sprout.open[chosen] = sprout.open[sprout.count[OPEN]]
    return node


@loop
def grow(table, bag, sprout, rules, work):
    """Grow for about ``work`` steps; whether the tree is complete."""
    if sprout.count[NODES] == 0:
        add_node(table, bag, sprout, rules, np.int64(0), bag.rows.shape[0], np.int64(0))
    spent = 0
    while sprout.count[OPEN] > 0:
        # Two nodes a split: with a limit of L leaves the tree is complete at 2 L - 1 nodes.
        if rules.leaves > 0 and sprout.count[NODES] >= 2 * rules.leaves - 1:
            break
        if spent > work:
            return False
        node = next_open(sprout, rules)
        start, stop = np.int64(sprout.start[node]), np.int64(sprout.stop[node])
        depth = np.int64(sprout.depth[node]) + 1
        middle = divide(table, bag, sprout, node)
        sprout.left[node] = sprout.count[NODES]
        add_node(table, bag, sprout, rules, start, middle, depth)
        add_node(table, bag, sprout, rules, middle, stop, depth)
        spent += (stop - start + WIDTH) * (rules.features + 2)
    return True


@loop
def find_leaf(sprout, by_row, row, column, other):
    """The leaf that a row reaches by its bins, with the bin of ``column`` taken from the row ``other``."""
    node = 0
    while sprout.left[node] >= 0:
        feature = sprout.feature[node]
        code = by_row[other if feature == column else row, feature]
        if sprout.by_set[node]:
            step = 0 if is_marked(sprout.marks[sprout.set[node]], np.int64(code)) else 1
        elif code == MISSING:
            step = 0 if sprout.missing_left[node] else 1
        else:
            step = np.int64(code > sprout.bin[node])
        node = sprout.left[node] + step
    return node


@loop
def find_leaves(sprout, by_row, rows, column, others, leaves):
    """`find_leaf` for many rows."""
    for k in range(rows.shape[0]):
        leaves[k] = find_leaf(sprout, by_row, rows[k], column, others[k])
