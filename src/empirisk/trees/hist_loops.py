"""Compiled steps of growing a tree on histograms: split the rows of a node, fill histograms, look for splits."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.bins import WIDTH
from empirisk.trees.compiled import loop
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
    by_node = {name: np.zeros(nodes, dtype=np.int32) for name in ("start", "stop", "depth", "slot", "left")}
    return Growth(
        rows=np.empty(rows, dtype=np.int32),
        spare=np.empty(rows, dtype=np.int32),
        packed=np.empty(rows, dtype=np.int64),
        times=times,
        histograms=np.empty((slots, features, WIDTH), dtype=np.int64),
        sum=np.zeros(nodes, dtype=np.int64),
        count=np.zeros(nodes, dtype=np.int64),
        low=np.zeros(nodes),
        high=np.zeros(nodes),
        found=no_splits(nodes + 2 * features),
        **by_node,
    )


@loop
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


@loop
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


@loop
def count_rows(growth, start, stop):
    """Number of rows between two places, those that stand for several counted so often."""
    if growth.times.shape[0] == 0:
        return np.int64(stop - start)
    count = np.int64(0)
    for k in range(start, stop):
        count += growth.times[growth.rows[k]]
    return count


@loop
def may_split(growth, limits, node):
    """Whether depth and leaf size leave room for a split."""
    enough = growth.count[node] >= 2 * limits.leaf and curvature_of(growth.sum[node]) > 1
    return enough and growth.stop[node] - growth.start[node] > 1 and growth.depth[node] < limits.depth


@loop
def divide(table, growth, node):
    """Divide the rows of a node; returns where those of the right child begin."""
    start = growth.start[node]
    column, marks = table.by_column[growth.found.feature[node]], growth.found.left[node]
    left, right = part_rows(column, growth.rows, growth.spare, start, growth.stop[node], marks)
    return join_rows(growth.rows, growth.spare, np.array([start]), np.array([left]), np.array([right]))


@loop
def open_children(table, growth, limits, node, middle, split, slot):
    """Make the children of a node whose rows are divided; ``slot`` (or -1) is for the histogram of the smaller one.

    Returns whether the parent's histogram is there to subtract from.
    """
    found, child = growth.found, 2 * split + 1
    feature = found.feature[node]
    start, stop = np.int64(growth.start[node]), np.int64(growth.stop[node])
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
    small, large = siblings(growth, node)
    growth.slot[small], growth.slot[large] = slot, growth.slot[node]
    return growth.slot[node] >= 0


@loop
def evaluate(table, features, growth, limits, pair, subtracting, part, scratch, pieces):
    """Fill the histograms of a pair of siblings and look for their splits.

    ``pair`` is the smaller and the larger node, or -1 and the root. ``subtracting`` says that the larger one's slot
    holds its parent's histogram. ``part`` is (first, last, place, place): the features to look at, and where to note
    what is found for each of the pair. ``pieces`` lists histograms that add up to that of the smaller node (or of the
    root), if they are there.
    """
    first, last, columns = part[0], part[1], features[part[0] : part[1]]
    live = (pair[0] >= 0 and may_split(growth, limits, pair[0]), may_split(growth, limits, pair[1]))
    for side in range(2):
        node, place = pair[side], part[2 + side]
        if node < 0:
            continue
        growth.found.gain[place] = 0.0
        slot = growth.slot[node] if growth.slot[node] >= 0 else scratch[side]
        histogram = growth.histograms[slot][first:last]
        if side == 1 and live[1] and subtracting:
            other = growth.slot[pair[0]] if growth.slot[pair[0]] >= 0 else scratch[0]
            subtract(histogram, growth.histograms[other][first:last])
        elif live[side] or (side == 0 and live[1] and subtracting):
            if pieces.shape[0] > 0 and (side == 0 or pair[0] < 0):
                add_up(growth.histograms, pieces, first, histogram)
            else:
                rows = growth.rows[growth.start[node] : growth.stop[node]]
                accumulate(table.by_row, growth.packed, rows, first, histogram)
        if live[side]:
            about, bounds = (growth.sum[node], growth.count[node]), (growth.low[node], growth.high[node])
            search(histogram, table, columns, limits, about, bounds, growth.found, place)


@loop
def add_up(histograms, pieces, first, histogram):
    """Fill ``histogram[k]`` with the sums of column ``first + k`` in some other histograms, or in itself and others."""
    for j in range(histogram.shape[0]):
        for b in range(WIDTH):
            total = np.int64(0)
            for k in range(pieces.shape[0]):
                total += histograms[pieces[k], first + j, b]
            histogram[j, b] = total


@loop
def siblings(growth, node):
    """The children of a node: the smaller and the larger one."""
    child = np.int64(growth.left[node])
    left, right = growth.stop[child] - growth.start[child], growth.stop[child + 1] - growth.start[child + 1]
    return (child, child + 1) if left <= right else (child + 1, child)


@loop
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


@loop
def release(growth, node, free, count):
    """Give back the histograms of a split node's children that will not be split; returns how many are free now."""
    child = growth.left[node]
    for side in range(child, child + 2):
        if growth.found.gain[side] == 0.0 and growth.slot[side] >= 0:
            free[count] = growth.slot[side]
            growth.slot[side] = -1
            count += 1
    return count


@loop
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
        pair = siblings(growth, node)
        part = (np.int64(0), features.shape[0], pair[0], pair[1])
        evaluate(table, features, growth, limits, pair, subtracting, part, free, free[:0])
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


@loop
def take_columns(by_row, columns):
    """Some columns of a table, side by side."""
    taken = np.empty((by_row.shape[0], columns.shape[0]), dtype=np.uint8)
    for row in range(by_row.shape[0]):
        for k in range(columns.shape[0]):
            taken[row, k] = by_row[row, columns[k]]
    return taken


@loop
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


@loop
def add_leaf_values(rows, start, stop, value, scores):
    """Add to the scores of the rows in each leaf its value."""
    for leaf in range(start.shape[0]):
        for k in range(start[leaf], stop[leaf]):
            scores[np.uint64(rows[k])] += value[leaf]


@loop
def add_values(left, feature, marks, value, by_row, scores):
    """Add to the score of every row the value of the leaf that it reaches by its bins."""
    for row in range(by_row.shape[0]):
        node = 0
        while left[node] >= 0:
            step = 0 if is_marked(marks[node], np.int64(by_row[row, feature[node]])) else 1
            node = left[node] + step
        scores[row] += value[node]
