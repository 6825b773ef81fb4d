"""Compiled steps of growing a tree on histograms: split the rows of a node, fill histograms, look for splits."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.trees.bins import WIDTH
from empirisk.trees.histogram import WORDS, Found, accumulate, curvature_of, no_splits, subtract
from empirisk.trees.histogram_split import best_value, is_marked, search

SCRATCH = 2  # histograms that a task may overwrite, at the head of the list of free ones that it gets


class Growth(NamedTuple):
    """A tree while it grows. Nodes are numbered so that the split with number p makes the nodes 2p + 1 and 2p + 2.

    ``rows`` holds the rows of node k between ``start[k]`` and ``stop[k]``; ``packed`` the gradient and curvature of
    each row of the table, ``times`` for how many equal rows it stands (nothing where each stands for itself);
    ``histograms`` a pool, of which node k owns number ``slot[k]`` (-1: none). ``sum`` is the packed sum, ``count`` the
    number of rows, ``low`` and ``high`` bound the value, ``left`` is the left child (0: not split), ``found`` the
    best splits, whose places after those of the nodes serve parts of a search.
    """

    rows: NDArray[np.int32]
    spare: NDArray[np.int32]
    packed: NDArray[np.int64]
    times: NDArray[np.int32]
    histograms: NDArray[np.int64]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    depth: NDArray[np.int32]
    slot: NDArray[np.int32]
    left: NDArray[np.int32]
    sum: NDArray[np.int64]
    count: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    found: Found


def new_growth(rows: int, times: NDArray[np.int32], nodes: int, features: int, slots: int) -> Growth:
    """Room for a tree with ``nodes`` nodes on ``rows`` rows and ``features`` columns."""
    ints = [np.zeros(nodes, dtype=np.int32) for _ in range(5)]
    return Growth(
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int64),
        times,
        np.empty((slots, features, WIDTH), dtype=np.int64),
        *ints,
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes),
        np.zeros(nodes),
        no_splits(nodes + 2 * features),
    )


@njit(cache=True, nogil=True)
def part_rows(column, rows, spare, start, stop, marks):
    """Bring the rows whose bin is marked to the front and the others, in order, to ``spare``; returns how many of each.

    `join_rows` completes the division, for one block or for several that different threads have divided.
    """
    goes_left = np.empty(WIDTH, dtype=np.uint64)
    for b in range(WIDTH):
        goes_left[b] = is_marked(marks, b)
    begin, one = np.uint64(start), np.uint64(1)
    lefts, rights = begin, begin
    # Every row is written to both sides and one of the ends moves: no branch that the processor would mispredict.
    for k in range(begin, np.uint64(stop)):
        row = rows[k]
        step = goes_left[column[np.uint64(row)]]
        rows[lefts] = row
        spare[rights] = row
        lefts += step
        rights += one - step
    return np.int64(lefts - begin), np.int64(rights - begin)


@njit(cache=True, nogil=True)
def join_rows(rows, spare, starts, lefts, rights):
    """Move the divided blocks together, all left parts before all right parts; returns where the latter begin."""
    middle = np.int64(starts[0])
    for block in range(starts.shape[0]):
        for k in range(lefts[block]):
            rows[middle + k] = rows[starts[block] + k]
        middle += lefts[block]
    place = middle
    for block in range(starts.shape[0]):
        for k in range(rights[block]):
            rows[place + k] = spare[starts[block] + k]
        place += rights[block]
    return middle


@njit(cache=True, nogil=True)
def count_rows(growth, start, stop):
    """Number of rows between two places, those that stand for several counted so often."""
    if growth.times.shape[0] == 0:
        return np.int64(stop - start)
    count = np.int64(0)
    for k in range(start, stop):
        count += growth.times[growth.rows[k]]
    return count


@njit(cache=True, nogil=True)
def may_split(growth, limits, node):
    """Whether depth and leaf size leave room for a split."""
    enough = growth.count[node] >= 2 * limits.leaf and curvature_of(growth.sum[node]) > 1
    return enough and growth.stop[node] - growth.start[node] > 1 and growth.depth[node] < limits.depth


@njit(cache=True, nogil=True)
def divide(table, growth, node):
    """Divide the rows of a node; returns where those of the right child begin."""
    start = growth.start[node]
    column, marks = table.by_column[growth.found.feature[node]], growth.found.left[node]
    left, right = part_rows(column, growth.rows, growth.spare, start, growth.stop[node], marks)
    return join_rows(growth.rows, growth.spare, np.array([start]), np.array([left]), np.array([right]))


@njit(cache=True, nogil=True)
def open_children(table, growth, limits, node, middle, split, slot):
    """Make the children of a node whose rows are divided; ``slot`` (or -1) is for the histogram of the smaller one.

    Returns whether the parent's histogram is there to subtract from.
    """
    found, child = growth.found, 2 * split + 1
    feature = found.feature[node]
    start, stop = growth.start[node], growth.stop[node]
    on_left = count_rows(growth, start, middle)
    growth.left[node] = child
    low, high = growth.low[node], growth.high[node]
    left_sum, right_sum = found.left_sum[node], growth.sum[node] - found.left_sum[node]
    cut = 0.5 * (best_value(left_sum, limits, low, high) + best_value(right_sum, limits, low, high))
    sign = 0 if table.categorical[feature] else table.monotone[feature]
    for side in range(2):
        growth.start[child + side] = start if side == 0 else middle
        growth.stop[child + side] = middle if side == 0 else stop
        growth.sum[child + side] = left_sum if side == 0 else right_sum
        growth.count[child + side] = on_left if side == 0 else growth.count[node] - on_left
        growth.depth[child + side] = growth.depth[node] + 1
        growth.left[child + side] = 0
        # Under a constraint the children keep to their own sides of the cut, and so do all nodes below them.
        upper = (side == 0) == (sign > 0)
        growth.low[child + side] = cut if sign != 0 and not upper else low
        growth.high[child + side] = cut if sign != 0 and upper else high
    small = child if middle - start <= stop - middle else child + 1
    growth.slot[small] = slot
    growth.slot[2 * child + 1 - small] = growth.slot[node]
    return growth.slot[node] >= 0


@njit(cache=True, nogil=True)
def evaluate(table, features, growth, limits, node, subtracting, part, scratch):
    """Fill the histograms of a node's children and look for their splits.

    ``part`` is (first, last, place, place): the features to look at, and where to note what is found for each child.
    """
    first, last, left_place, _ = part
    child = growth.left[node]
    left_rows = growth.stop[child] - growth.start[child]
    small = child if left_rows <= growth.stop[child + 1] - growth.start[child + 1] else child + 1
    large = 2 * child + 1 - small
    live_small, live_large = may_split(growth, limits, small), may_split(growth, limits, large)
    columns = features[first:last]
    chosen = growth.slot[small] if growth.slot[small] >= 0 else scratch[0]
    histogram = growth.histograms[chosen][first:last]
    if live_small or (live_large and subtracting):
        rows = growth.rows[growth.start[small] : growth.stop[small]]
        accumulate(table.by_row, growth.packed, rows, first, histogram)
    chosen = growth.slot[large] if subtracting else scratch[1]
    other = growth.histograms[chosen][first:last]
    if live_large and subtracting:
        subtract(other, histogram)
    elif live_large:
        rows = growth.rows[growth.start[large] : growth.stop[large]]
        accumulate(table.by_row, growth.packed, rows, first, other)
    for k in range(2):
        side, live = (small, live_small) if k == 0 else (large, live_large)
        place = left_place if side == child else part[3]
        growth.found.gain[place] = 0.0
        if live:
            bounds = (growth.low[side], growth.high[side])
            source = histogram if k == 0 else other
            about = (growth.sum[side], growth.count[side])
            search(source, table, columns, limits, about, bounds, growth.found, place)


@njit(cache=True, nogil=True)
def evaluate_root(table, features, growth, limits, part):
    """Fill the histogram of the root and look for its split, as `evaluate` does for children."""
    first, last, place, _ = part
    histogram = growth.histograms[growth.slot[0]][first:last]
    rows = growth.rows[growth.start[0] : growth.stop[0]]
    accumulate(table.by_row, growth.packed, rows, first, histogram)
    bounds = (growth.low[0], growth.high[0])
    about = (growth.sum[0], growth.count[0])
    search(histogram, table, features[first:last], limits, about, bounds, growth.found, place)


@njit(cache=True, nogil=True)
def merge_parts(found, place, first, count):
    """Copy to ``place`` the best of the splits noted at first, first + 2, ...; the earliest of equals."""
    best = first
    for k in range(1, count):
        if found.gain[first + 2 * k] > found.gain[best]:
            best = first + 2 * k
    found.gain[place] = found.gain[best]
    found.feature[place] = found.feature[best]
    found.bin[place] = found.bin[best]
    found.left_sum[place] = found.left_sum[best]
    for word in range(WORDS):
        found.left[place, word] = found.left[best, word]


@njit(cache=True, nogil=True)
def release(growth, node, free, count):
    """Give back the histograms of a split node's children that will not be split; returns how many are free now."""
    child = growth.left[node]
    for side in range(child, child + 2):
        if growth.found.gain[side] == 0.0 and growth.slot[side] >= 0:
            free[count] = growth.slot[side]
            growth.slot[side] = -1
            count += 1
    return count


@njit(cache=True, nogil=True)
def expand(table, features, growth, limits, node, splits, free, bar, work):
    """Split a node, then the best node below it that gains more than ``bar``, and so on.

    ``splits`` lists the numbers that new splits may take, ``free`` the histograms that they may take (and a place for
    each that comes back). The function returns after about ``work`` elementary steps, or when the splits are used up:
    the number of splits made, and the number of histograms that are free.
    """
    free_count, used, spent = 0, 0, 0
    while free[free_count] >= 0:
        free_count += 1
    while node >= 0:
        slot = -1
        if free_count > SCRATCH:
            free_count -= 1
            slot = free[free_count]
        middle = divide(table, growth, node)
        subtracting = open_children(table, growth, limits, node, middle, splits[used], slot)
        part = (0, features.shape[0], growth.left[node], growth.left[node] + 1)
        evaluate(table, features, growth, limits, node, subtracting, part, free)
        free_count = release(growth, node, free, free_count)
        spent += (growth.stop[node] - growth.start[node] + 2 * WIDTH) * features.shape[0]
        used += 1
        if used == splits.shape[0] or spent > work:
            break
        node, best = -1, bar
        for k in range(used):
            for candidate in range(2 * splits[k] + 1, 2 * splits[k] + 3):
                if growth.left[candidate] == 0 and growth.found.gain[candidate] > best:
                    node, best = candidate, growth.found.gain[candidate]
    return used, free_count


@njit(cache=True, nogil=True)
def take_columns(by_row, columns):
    """Some columns of a table, side by side."""
    taken = np.empty((by_row.shape[0], columns.shape[0]), dtype=np.uint8)
    for row in range(by_row.shape[0]):
        for k in range(columns.shape[0]):
            taken[row, k] = by_row[row, columns[k]]
    return taken


@njit(cache=True, nogil=True)
def leaf_sums(rows, start, stop, gradient, curvature):
    """Exact sums of gradient and curvature in each leaf, (n_leaves, 2)."""
    sums = np.zeros((start.shape[0], 2), dtype=np.float64)
    for leaf in range(start.shape[0]):
        g, h = 0.0, 0.0
        for k in range(start[leaf], stop[leaf]):
            row = np.uint64(rows[k])
            g += gradient[row]
            h += curvature[row]
        sums[leaf, 0], sums[leaf, 1] = g, h
    return sums


@njit(cache=True, nogil=True)
def add_leaf_values(rows, start, stop, value, scores):
    """Add to the scores of the rows in each leaf its value."""
    for leaf in range(start.shape[0]):
        for k in range(start[leaf], stop[leaf]):
            scores[np.uint64(rows[k])] += value[leaf]


@njit(cache=True, nogil=True)
def add_values(left, feature, marks, value, by_row, scores):
    """Add to the score of every row the value of the leaf that it reaches by its bins."""
    for row in range(by_row.shape[0]):
        node = 0
        while left[node] >= 0:
            step = 0 if is_marked(marks[node], np.int64(by_row[row, feature[node]])) else 1
            node = left[node] + step
        scores[row] += value[node]
