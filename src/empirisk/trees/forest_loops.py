"""Compiled growth of one tree of a forest, in slices: each node looks at a few columns drawn at random."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.trees.bins import MISSING, WIDTH
from empirisk.trees.forest_split import (
    class_part,
    class_term,
    gather,
    middle_bin,
    order_rows,
    purity_of,
    rank_categories,
    scan_classes,
    scan_sums,
    sums_by_bin,
)
from empirisk.trees.histogram import WORDS, curvature_of
from empirisk.trees.histogram_split import is_marked, mark

NODES, OPEN, SETS = range(3)  # places of the counters in `Sprout.count`


class Rules(NamedTuple):
    """How a tree grows: ``classes`` is 0 where rows carry packed sums; ``leaf`` is the least weight of a leaf in units,
    ``gain`` the least gain of a split, ``features`` the columns to look at; ``leaves`` is 0 for no limit."""

    classes: int
    entropy: bool
    leaf: int
    gain: float
    depth: int
    leaves: int
    features: int


class Bag(NamedTuple):
    """The rows of one tree, those of a node side by side, and room to divide them."""

    rows: NDArray[np.int32]
    packed: NDArray[np.int64]
    labels: NDArray[np.int32]
    spare_rows: NDArray[np.int32]
    spare_packed: NDArray[np.int64]
    spare_labels: NDArray[np.int32]
    codes: NDArray[np.uint8]
    order: NDArray[np.int32]


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


@njit(cache=True, nogil=True)
def draw(seed, below):
    """A random whole number below ``below`` (splitmix64)."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = seed[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(32)
    return np.int64((bits * np.uint64(below)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def weight_of(bag, rules, start, stop):
    """Total weight and packed sum of some rows."""
    node = np.int64(0)
    for k in range(start, stop):
        node += bag.packed[k]
    return (node if rules.classes > 0 else curvature_of(node)), node


@njit(cache=True, nogil=True)
def is_pure(labels, start, stop):
    """Whether all rows have the same label."""
    for k in range(start + 1, stop):
        if labels[k] != labels[start]:
            return False
    return True


@njit(cache=True, nogil=True)
def look(table, bag, sprout, rules, node):
    """Find a split of a node among columns drawn at random; columns that are constant here do not count."""
    start, stop = sprout.start[node], sprout.stop[node]
    weight, total = weight_of(bag, rules, start, stop)
    if sprout.depth[node] >= rules.depth or weight < 2 * rules.leaf or is_pure(bag.labels, start, stop):
        return
    sums = np.zeros(max(rules.classes, 1), dtype=np.float64)
    own = purity_of(total, rules.entropy)
    if rules.classes > 0:
        for k in range(start, stop):
            sums[bag.labels[k]] += bag.packed[k]
        own = class_part(sums, rules.entropy)
        own = own - class_term(float(weight), True) if rules.entropy else own / weight
    best, looked, place = -np.inf, 0, 0
    while looked < rules.features and place < sprout.columns.shape[0]:
        other = place + draw(sprout.seed, sprout.columns.shape[0] - place)
        column = sprout.columns[other]
        sprout.columns[other] = sprout.columns[place]
        sprout.columns[place] = column
        place += 1
        low, high = gather(table.by_column[column], bag.rows[start:stop], bag.codes[start:stop])
        if low == high:
            continue
        looked += 1
        best = try_column(table, bag, sprout, rules, node, column, best, (low, high, total, sums))
    if sprout.feature[node] >= 0:
        sprout.gain[node] = max(best - own, 0.0)
        if rules.gain > 0.0 and best - own < rules.gain:
            sprout.feature[node] = -1


@njit(cache=True, nogil=True)
def try_column(table, bag, sprout, rules, node, column, best, about):
    """Note the best split in a column if it is better than ``best``; returns the better of the two."""
    low, high, total, sums = about
    part = slice(sprout.start[node], sprout.stop[node])
    codes, packed, labels = bag.codes[part], bag.packed[part], bag.labels[part]
    ranks = np.empty(WIDTH, dtype=np.int64)
    categorical = table.categorical[column]
    if categorical:
        chosen = draw(sprout.seed, rules.classes) if rules.classes > 0 else -1
        low, high = 0, rank_categories(codes, packed, labels, chosen, ranks)
    if rules.classes > 0:
        score, cut, left, light = best_of_classes(codes, packed, labels, bag.order[part], rules, sums, low, high)
    else:
        score, cut, left, light = best_of_sums(codes, packed, rules, total, low, high)
    if not score > best:
        return best
    sprout.feature[node] = column
    sprout.by_set[node] = categorical
    if categorical:
        note_set(sprout, node, ranks, cut, light)
    else:
        sprout.bin[node] = middle_bin(codes, cut)
        sprout.missing_left[node] = left
    return score


@njit(cache=True, nogil=True)
def best_of_sums(codes, packed, rules, total, low, high):
    """Best split by packed sums: score, bin, whether missing values go left, whether the left side is the heavier."""
    bins, sums = np.empty(WIDTH, dtype=np.uint8), np.empty(WIDTH, dtype=np.int64)
    count = sums_by_bin(codes, packed, low, high, bins, sums)
    missing = np.int64(0)
    if bins[count - 1] == MISSING:
        count -= 1
        missing = sums[count]
    # Without missing values the last cut would leave nothing on the right.
    score, place = scan_sums(sums, count if missing != 0 else count - 1, total, np.int64(0), rules.leaf, rules.entropy)
    left = False
    if missing != 0:
        other, other_place = scan_sums(sums, count - 1, total, missing, rules.leaf, rules.entropy)
        if other > score:
            score, place, left = other, other_place, True
    if place < 0:
        return -np.inf, 0, False, False
    on_left = missing if left else np.int64(0)
    for k in range(place + 1):
        on_left += sums[k]
    light = 2 * curvature_of(on_left) > curvature_of(total)
    return score, np.int64(bins[place]), left if missing != 0 else light, light


@njit(cache=True, nogil=True)
def best_of_classes(codes, packed, labels, order, rules, sums, low, high):
    """Best split by class counts; results as in `best_of_sums`."""
    order_rows(codes, low, high, order)
    present = codes.shape[0]
    begin = np.zeros(sums.shape[0], dtype=np.float64)
    while present > 0 and codes[order[present - 1]] == MISSING:
        present -= 1
        begin[labels[order[present]]] += packed[order[present]]
    nothing = np.zeros(sums.shape[0], dtype=np.float64)
    score, cut = scan_classes(codes, packed, labels, order, present, sums, nothing, rules.leaf, rules.entropy)
    left, holes = False, present < codes.shape[0]
    if holes:
        other, other_cut = scan_classes(codes, packed, labels, order, present, sums, begin, rules.leaf, rules.entropy)
        if other > score:
            score, cut, left = other, other_cut, True
    on_left, total = begin.sum() if left else 0.0, sums.sum()
    for k in range(codes.shape[0]):
        if np.int64(codes[k]) <= cut:
            on_left += packed[k]
    light = 2 * on_left > total
    return score, cut, left if holes else light, light


@njit(cache=True, nogil=True)
def note_set(sprout, node, ranks, cut, empty_left):
    """Keep the set of bins of rank at most ``cut``; bins without rows here go to the heavier side."""
    if sprout.set[node] < 0:
        sprout.set[node] = sprout.count[SETS]
        sprout.count[SETS] += 1
    marks = sprout.marks[sprout.set[node]]
    marks[:] = 0
    for b in range(WIDTH):
        if (ranks[b] >= 0 and ranks[b] <= cut) or (ranks[b] < 0 and empty_left):
            mark(marks, b)
    sprout.missing_left[node] = is_marked(marks, MISSING)


@njit(cache=True, nogil=True)
def divide(table, bag, sprout, node):
    """Bring the rows that go left to the front of the node; returns where the others begin."""
    goes_left = np.zeros(WIDTH, dtype=np.bool_)
    for b in range(WIDTH):
        if sprout.by_set[node]:
            goes_left[b] = is_marked(sprout.marks[sprout.set[node]], b)
        else:
            goes_left[b] = b <= sprout.bin[node] or (b == MISSING and sprout.missing_left[node])
    column, start = table.by_column[sprout.feature[node]], sprout.start[node]
    lefts, rights = start, 0
    for k in range(start, sprout.stop[node]):
        row, packed, label = bag.rows[k], bag.packed[k], bag.labels[k]
        bag.rows[lefts], bag.packed[lefts], bag.labels[lefts] = row, packed, label
        place = start + rights
        bag.spare_rows[place], bag.spare_packed[place], bag.spare_labels[place] = row, packed, label
        step = np.int64(goes_left[column[np.uint64(row)]])
        lefts += step
        rights += 1 - step
    for k in range(rights):
        bag.rows[lefts + k] = bag.spare_rows[start + k]
        bag.packed[lefts + k] = bag.spare_packed[start + k]
        bag.labels[lefts + k] = bag.spare_labels[start + k]
    return lefts


@njit(cache=True, nogil=True)
def add_node(table, bag, sprout, rules, start, stop, depth):
    """A new node with its split, if there is one."""
    node = sprout.count[NODES]
    sprout.count[NODES] += 1
    sprout.start[node], sprout.stop[node], sprout.depth[node] = start, stop, depth
    look(table, bag, sprout, rules, node)
    if sprout.feature[node] >= 0:
        sprout.open[sprout.count[OPEN]] = node
        sprout.count[OPEN] += 1


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def grow(table, bag, sprout, rules, work):
    """Grow for about ``work`` steps; whether the tree is complete."""
    if sprout.count[NODES] == 0:
        add_node(table, bag, sprout, rules, 0, bag.rows.shape[0], 0)
    spent = 0
    while sprout.count[OPEN] > 0:
        # Two nodes a split: with a limit of L leaves the tree is complete at 2 L - 1 nodes.
        if rules.leaves > 0 and sprout.count[NODES] >= 2 * rules.leaves - 1:
            break
        if spent > work:
            return False
        node = next_open(sprout, rules)
        start, stop, depth = sprout.start[node], sprout.stop[node], sprout.depth[node] + 1
        middle = divide(table, bag, sprout, node)
        sprout.left[node] = sprout.count[NODES]
        add_node(table, bag, sprout, rules, start, middle, depth)
        add_node(table, bag, sprout, rules, middle, stop, depth)
        spent += (stop - start + WIDTH) * (rules.features + 2)
    return True


@njit(cache=True, nogil=True)
def find_leaf(sprout, by_row, row, column, other):
    """The leaf that a row reaches by its bins, with the bin of ``column`` taken from the row ``other``."""
    node = 0
    while sprout.left[node] >= 0:
        feature = sprout.feature[node]
        code = np.int64(by_row[other if feature == column else row, feature])
        if sprout.by_set[node]:
            goes_left = is_marked(sprout.marks[sprout.set[node]], code)
        elif code == MISSING:
            goes_left = sprout.missing_left[node]
        else:
            goes_left = code <= sprout.bin[node]
        node = sprout.left[node] + (0 if goes_left else 1)
    return node


@njit(cache=True, nogil=True)
def find_leaves(sprout, by_row, rows, column, others, leaves):
    """`find_leaf` for many rows."""
    for k in range(rows.shape[0]):
        leaves[k] = find_leaf(sprout, by_row, rows[k], column, others[k])
