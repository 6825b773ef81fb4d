"""Splits of a categorical column: which of the categories in a node go left.

- One response (two classes, or one output by squared error): in the order of the mean response, some prefix is the
  best of all subsets (Fisher; Breiman), so one scan finds it.
- Several classes or outputs: all subsets, where the node holds at most `EXHAUSTIVE` categories; beyond, the best
  prefix in the orders of each class share (each mean output). Finding the best of all is then out of reach.
- Absolute error: the best prefix in the order of the medians.

Equal means keep the order of the categories.
"""

import numpy as np
from numba import njit

from empirisk.trees.criteria import purity
from empirisk.trees.describe import DEVIATION, VARIANCE
from empirisk.trees.deviation import scan_absolute
from empirisk.trees.presort import ROW
from empirisk.trees.scan import HEAVIER, LEFT, NO_SPLIT, RIGHT, scan_sums, scan_variance, two_purities

EXHAUSTIVE = 8


@njit(cache=True, nogil=True)
def find_subset(target, keys, gone, ordered, total, missing, limits, in_left):
    """Best subset for a column; ``keys`` are the rows present, by category, ``gone`` the missing ones.

    Marks in ``in_left`` the ranks that go left, and returns the gain and where missing rows go.
    """
    ranks = _distinct(keys)
    if target.form == DEVIATION:
        return _by_median(target, keys, gone, ordered, total, limits, ranks, in_left)
    table = _group(target, keys, len(ranks), len(total))
    if target.form == VARIANCE:
        order = np.argsort(table[:, 1] / table[:, 0], kind="mergesort")
        gain, cut, _, side = scan_variance(_keys_in(order), table, total, missing, limits)
        in_left[ranks[order[: cut + 1]]] = True
        return gain, side
    outputs = len(total) - 1
    if len(ranks) <= EXHAUSTIVE and outputs > 2:
        return _by_enumeration(target.criterion, table, total, missing, limits, ranks, in_left)
    slots = np.empty((len(ranks), outputs), dtype=np.int32)
    slots[:] = np.arange(outputs).astype(np.int32)
    best, best_side = NO_SPLIT, np.int64(HEAVIER)
    # The share of one of two classes orders like the other's, reversed: one order is enough.
    for output in range(1 if outputs == 2 else 0, outputs):
        order = np.argsort(table[:, 1 + output] / table[:, 0], kind="mergesort")
        gain, cut, _, side = scan_sums(target.criterion, _keys_in(order), table, slots, total, missing, limits)
        if gain > best + limits[1]:
            best, best_side = gain, side
            in_left[:] = False
            in_left[ranks[order[: cut + 1]]] = True
    return best, best_side


@njit(cache=True, nogil=True)
def _distinct(keys):
    """The ranks that occur in sorted keys."""
    ranks = np.empty(len(keys), dtype=np.int64)
    count = 0
    for key in keys:
        if count == 0 or key >> 32 != ranks[count - 1]:
            ranks[count] = key >> 32
            count += 1
    return ranks[:count]


@njit(cache=True, nogil=True)
def _keys_in(order):
    """Keys of the groups, ranked by their place in the order."""
    keys = np.empty(len(order), dtype=np.int64)
    for place in range(len(order)):
        keys[place] = place << 32 | order[place]
    return keys


@njit(cache=True, nogil=True)
def _group(target, keys, count, width):
    """Weight and sums of each category, as if it were one row."""
    table = np.zeros((count, width))
    group = -1
    previous = np.int64(-1)
    for key in keys:
        if key >> 32 != previous:
            group += 1
            previous = key >> 32
        row = key & ROW
        table[group, 0] += target.rows[row, 0]
        for j in range(target.slots.shape[1]):
            table[group, 1 + target.slots[row, j]] += target.rows[row, 1 + j]
    return table


@njit(cache=True, nogil=True)
def _by_enumeration(criterion, table, total, missing, limits, ranks, in_left):
    """The best of all subsets; the first category always goes left, so each division is met once."""
    best, best_side, count = -np.inf, np.int64(HEAVIER), len(ranks)
    has_missing = missing[0] > 0.0
    for subset in range((1 << (count - 1)) if has_missing else (1 << (count - 1)) - 1):
        left = table[0].copy()
        for group in range(1, count):
            if subset >> (group - 1) & 1:
                left += table[group]
        whole = subset == (1 << (count - 1)) - 1  # all present: only "missing on the right" divides
        for side in range(RIGHT if whole or not has_missing else LEFT, RIGHT - 1, -1):
            part = left + missing if side == LEFT else left
            gain = two_purities(criterion, part, total - part, limits[0])
            if gain > best + limits[1]:
                best, best_side = gain, np.int64(side) if has_missing else np.int64(HEAVIER)
                for group in range(count):
                    in_left[ranks[group]] = group == 0 or subset >> (group - 1) & 1 == 1
    if best == -np.inf:
        return NO_SPLIT, best_side
    return max(0.0, best - purity(criterion, total[1:], total[0])), best_side


@njit(cache=True, nogil=True)
def _by_median(target, keys, gone, ordered, total, limits, ranks, in_left):
    """The best prefix of the categories in the order of their medians."""
    group_at = np.full(len(ordered), -1, dtype=np.int64)
    weights = np.zeros(len(ranks))
    group = -1
    previous = np.int64(-1)
    for key in keys:
        if key >> 32 != previous:
            group += 1
            previous = key >> 32
        weights[group] += target.rows[key & ROW, 0]
        group_at[target.places[key & ROW]] = group
    weight_at = np.zeros(len(ordered))
    for key in keys:
        weight_at[target.places[key & ROW]] = target.rows[key & ROW, 0]
    medians, below = np.zeros(len(ranks)), np.zeros(len(ranks))
    for place in range(len(ordered)):
        group = group_at[place]
        if group >= 0:
            if below[group] < 0.5 * weights[group]:
                medians[group] = ordered[place]
            below[group] += weight_at[place]
    order = np.argsort(medians, kind="mergesort")
    arranged = _arranged(keys, order)
    gain, cut, _, side = scan_absolute(arranged, gone, target.rows, target.places, ordered, total, limits)
    in_left[ranks[order[: cut + 1]]] = True
    return gain, side


@njit(cache=True, nogil=True)
def _arranged(keys, order):
    """The keys with their groups in the order given, ranked by it."""
    ends = np.zeros(len(order) + 1, dtype=np.int64)
    group = 0
    for i in range(1, len(keys)):
        if keys[i] >> 32 != keys[i - 1] >> 32:
            group += 1
            ends[group] = i
    ends[len(order)] = len(keys)
    arranged = np.empty(len(keys), dtype=np.int64)
    filled = 0
    for place in range(len(order)):
        for i in range(ends[order[place]], ends[order[place] + 1]):
            arranged[filled] = place << 32 | (keys[i] & ROW)
            filled += 1
    return arranged
