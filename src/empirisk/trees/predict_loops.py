"""Compiled sums over trees, a block of rows at a time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.compiled import loop

Array = NDArray[np.float64]

SIDE = 128  # rows side by side under the masks of one tree: their values stay in the nearest memory
CROWD = 2048  # rows that walk down a tree together: many, so that they share what a tree takes to fetch
STEPS = 3  # levels that they go down before those that have arrived are left behind
LARGEST = np.finfo(np.float64).max
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
RIGHT = 1 << 30  # added to the column of a split that sends missing values right
COLUMN = RIGHT - 1

#: What a step needs to know of a node, in one place of 16 bytes.
RECORD = np.dtype([("threshold", np.float64), ("feature", np.int32), ("left", np.int32)])


class Flat(NamedTuple):
    """Joined trees for compiled code; node k is a leaf where ``left == k``.

    A leaf has column 0 and an infinite threshold, so that a row that has arrived stays. ``value`` is the prediction of
    a leaf, or its row in ``table``.
    """

    roots: NDArray[np.int32]
    node: NDArray[np.void]
    value: Array
    category_start: NDArray[np.int32]
    category_bits: NDArray[np.uint64]
    category_counts: NDArray[np.int32]
    table: Array


class Masks(NamedTuple):
    """The splits of small trees: those of tree t are ``start[t] : start[t + 1]``, its leaves follow ``leaf_start[t]``.

    ``mask`` holds the leaves that remain after going right; ``threshold`` is NaN in a categorical split;
    ``leaf_value`` are the predictions from left to right.
    """

    start: NDArray[np.int64]
    node: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: Array
    mask: NDArray[np.uint64]
    leaf_start: NDArray[np.int64]
    leaf_value: Array


@loop
def make_masks(flat, bounds):
    """The masks of trees of at most 64 leaves each; children come after their parents."""
    node, value = flat.node, flat.value
    trees, count = bounds.shape[0] - 1, node.shape[0]
    feature, threshold = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.float64)
    start, leaf_start = np.zeros(trees + 1, dtype=np.int64), np.zeros(trees + 1, dtype=np.int64)
    split, mask = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.uint64)
    leaf_value = np.empty(count, dtype=np.float64)
    below, place = np.ones(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    splits, leaves = 0, 0
    for tree in range(trees):
        for k in range(bounds[tree + 1] - 1, bounds[tree] - 1, -1):
            if node[k].left != k:
                below[k] = below[node[k].left] + below[node[k].left + 1]
        for k in range(bounds[tree], bounds[tree + 1]):
            left = node[k].left
            if left == k:
                leaf_value[leaves + place[k]] = value[k]
                continue
            place[left], place[left + 1] = place[k], place[k] + below[left]
            gone = ((np.uint64(1) << np.uint64(below[left])) - np.uint64(1)) << np.uint64(place[k])
            split[splits], mask[splits] = k, ~gone
            feature[splits] = node[k].feature
            threshold[splits] = np.nan if flat.category_start[k] >= 0 else node[k].threshold
            splits += 1
        leaves += below[bounds[tree]]
        start[tree + 1], leaf_start[tree + 1] = splits, leaves
    return Masks(start, split[:splits], feature[:splits], threshold[:splits], mask[:splits], leaf_start, leaf_value)


@loop
def in_set(flat, node, value):
    """Whether a category goes left at a categorical split; missing or unknown ones as the split says."""
    feature = flat.node[node].feature
    if value >= 0 and value < flat.category_counts[feature & COLUMN]:
        code = np.int64(value)
        word = flat.category_bits[flat.category_start[node] + (code >> 6)]
        return (word >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)
    return feature < RIGHT


@loop
def fill_columns(X, columns):
    """Columns of a block of rows, twice if values are missing: in the second copy they are above every threshold.

    Returns whether there are missing values.
    """
    width, holes = X.shape[1], False
    for r in range(X.shape[0]):
        for f in range(width):
            columns[f, r] = X[r, f]
            holes |= X[r, f] != X[r, f]
    if holes:
        for f in range(width):
            for r in range(X.shape[0]):
                columns[width + f, r] = columns[f, r] if columns[f, r] == columns[f, r] else np.inf
    return holes


@loop
def add_by_masks(flat, masks, trees, X, out):
    """Add the values of small trees."""
    width = X.shape[1]
    columns = np.zeros((2 * width, SIDE), dtype=np.float64)
    alive = np.empty(SIDE, dtype=np.uint64)
    lowest = np.empty(SIDE, dtype=np.float64)
    bits = lowest.view(np.uint64)
    for first in range(0, X.shape[0], SIDE):
        size = min(SIDE, X.shape[0] - first)
        shift = width if fill_columns(X[first : first + size], columns) else 0
        for tree in range(trees[0], trees[1]):
            alive[:] = ALL
            for k in range(masks.start[tree], masks.start[tree + 1]):
                mask, threshold, feature = masks.mask[k], masks.threshold[k], masks.feature[k]
                column = np.uint64((feature & COLUMN) + (shift if feature >= RIGHT else 0))
                if threshold != threshold:
                    for r in range(size):
                        alive[r] &= ALL if in_set(flat, masks.node[k], columns[feature & COLUMN, r]) else mask
                    continue
                for r in range(SIDE):
                    alive[r] = alive[r] & mask if columns[column, r] > threshold else alive[r]
            # The lowest bit as a float is a power of two, whose exponent is the number of the bit.
            for r in range(SIDE):
                lowest[r] = float(np.int64(alive[r] & (~alive[r] + np.uint64(1))))
            leaf, output = np.uint64(masks.leaf_start[tree]), tree % out.shape[1]
            for r in range(size):
                place = ((bits[r] >> np.uint64(52)) & np.uint64(2047)) - np.uint64(1023)
                out[first + r, output] += masks.leaf_value[leaf + place]


@loop
def add_by_walking(flat, trees, X, out):
    """Add the values of trees of any size."""
    width, outputs = X.shape[1], out.shape[1]
    doubled = np.empty((CROWD, 2 * width), dtype=np.float64)
    place, walkers = np.empty(CROWD, dtype=np.int32), np.empty(CROWD, dtype=np.int32)
    plain = flat.category_bits.shape[0] == 0
    for first in range(0, X.shape[0], CROWD):
        size = min(CROWD, X.shape[0] - first)
        rows, shift = X[first : first + size], np.int32(0)
        if has_holes(rows):
            fill_rows(rows, doubled)
            rows, shift = doubled[:size], np.int32(width)
        for tree in range(trees[0], trees[1]):
            place[:] = flat.roots[tree]
            for r in range(size):
                walkers[r] = r
            count = size
            while count > 0:
                count = (
                    walk(flat.node, rows, shift, place, walkers[:count])
                    if plain
                    else walk_any(flat, rows, shift, place, walkers[:count])
                )
            for r in range(size):
                value = flat.value[place[r]]
                if flat.table.shape[0] == 0:
                    out[first + r, tree % outputs] += value
                else:
                    for output in range(outputs):
                        out[first + r, output] += flat.table[np.int64(value), output]


@loop
def has_holes(X):
    """Whether a value is missing."""
    holes = False
    for r in range(X.shape[0]):
        for f in range(X.shape[1]):
            holes |= X[r, f] != X[r, f]
    return holes


@loop
def fill_rows(X, doubled):
    """Rows of a block, twice side by side: in the second copy missing values are above every threshold."""
    width = X.shape[1]
    for r in range(X.shape[0]):
        for f in range(width):
            doubled[r, f] = X[r, f]
            doubled[r, width + f] = X[r, f] if X[r, f] == X[r, f] else np.inf


@loop
def walk(node, rows, shift, place, walkers):
    """Some steps down numeric splits, side by side; the walkers that have not arrived move to the front."""
    count = 0
    for step in range(STEPS):
        count = 0
        for k in range(walkers.shape[0]):
            r = np.uint64(walkers[k])
            here = np.uint64(place[r])
            feature = node[here].feature
            column = np.uint64((feature & COLUMN) + (feature >> 30) * shift)
            goal = np.int32(node[here].left + (rows[r, column] > node[here].threshold))
            if step == STEPS - 1:
                walkers[count] = walkers[k]
                count += goal != place[r]
            place[r] = goal
    return count


@loop
def walk_any(flat, rows, shift, place, walkers):
    """One step down splits of any kind; the walkers that have not arrived move to the front."""
    count = 0
    for k in range(walkers.shape[0]):
        r = walkers[k]
        here = place[r]
        feature = flat.node[here].feature
        if flat.category_start[here] >= 0:
            step = 0 if in_set(flat, here, rows[r, feature & COLUMN]) else 1
        else:
            column = (feature & COLUMN) + (shift if feature >= RIGHT else 0)
            step = 1 if rows[r, column] > flat.node[here].threshold else 0
        goal = flat.node[here].left + step
        walkers[count] = walkers[k]
        count += goal != here
        place[r] = goal
    return count
