"""Splits of a categorical column: which of the categories in a node go left.

- One response (two classes, or one output by squared error): in the order of the mean response, some prefix is the
  best of all subsets (Fisher; Breiman), so one scan finds it.
- Several classes or outputs: all subsets, where the node holds at most `EXHAUSTIVE` categories; beyond, the best
  prefix in the orders of each class share (each mean output). Finding the best of all is then out of reach.
- Absolute error: the best prefix in the order of the medians.

Equal means keep the order of the categories. Each function takes the keys of the rows present, by category; it marks
in ``in_left`` the ranks that go left, and writes the gain and where missing rows go to ``offer``.
"""

import numpy as np

from empirisk.linalg.compiled import inner
from empirisk.trees.exact.scan import (
    ENTROPY,
    ERROR,
    HEAVIER,
    LEFT,
    NO_SPLIT,
    NOWHERE,
    RIGHT,
    ROW,
    move,
    note,
    purity,
    scan_absolute,
    scan_sums,
    scan_variance,
    two_purities,
)

EXHAUSTIVE = 8  # categories: 127 ways to divide them, about as many as a column of numbers has


@inner
def subset_by_mean(keys, rows, total, missing, offer, in_left):
    """Best subset for one response."""
    ranks, groups = group_keys(keys)
    table = np.zeros((len(ranks), 2))
    for place in range(len(keys)):
        row = keys[place] & ROW
        table[groups[place], 0] += rows[row, 0]
        table[groups[place], 1] += rows[row, 1]
    order = _by_share(table, 1)
    scan_variance(order, 0, len(order), table, total, missing, offer)
    _send_left(in_left, ranks, order, offer.cut)


@inner
def subset_by_sums(keys, rows, slots, total, room, offer, in_left):
    """Best subset for several classes or outputs, or for two classes by a criterion other than gini."""
    ranks, groups = group_keys(keys)
    outputs, criterion, slack = len(total) - 1, offer.criterion, offer.slack
    table, places = np.zeros((len(ranks), 1 + outputs)), np.zeros((len(ranks), outputs), dtype=np.int32)
    for place in range(len(keys)):
        row = keys[place] & ROW
        table[groups[place], 0] += rows[row, 0]
        for j in range(slots.shape[1]):
            table[groups[place], 1 + slots[row, j]] += rows[row, 1 + j]
    # The share of one of two classes orders like the other's, reversed: one order is enough, and best.
    two_classes = outputs == 2 and criterion in (ENTROPY, ERROR)
    if len(ranks) <= EXHAUSTIVE and not two_classes:
        _by_enumeration(table, total, room, ranks, offer, in_left)
        return
    for group in range(len(ranks)):
        for output in range(outputs):
            places[group, output] = output
    best, best_side = NO_SPLIT, np.int64(HEAVIER)
    for output in range(1 if two_classes else 0, outputs):
        order = _by_share(table, 1 + output)
        scan_sums(order, 0, len(order), table, places, total, room, offer)
        if offer.gain > NO_SPLIT and (best == NO_SPLIT or offer.gain > best + slack):
            best, best_side = offer.gain, offer.side
            _send_left(in_left, ranks, order, offer.cut)
    note(offer, best, NOWHERE, NOWHERE, best_side)


@inner
def _by_enumeration(table, total, room, ranks, offer, in_left):
    """The best of all subsets; the first category always goes left, so each division is met once."""
    best, best_side, count = -np.inf, np.int64(HEAVIER), len(ranks)
    missing, left, right, criterion = room[0], room[1], room[2], offer.criterion
    has_missing = missing[0] > 0.0
    every = (1 << count) - 1
    for subset in range(1, every + 1 if has_missing else every, 2):
        for k in range(len(total)):
            left[k] = 0.0
            right[k] = total[k]
        for group in range(count):
            if subset >> group & 1:
                move(table[group], right, left)
        for side in range(RIGHT, LEFT + 1):
            way = LEFT - side  # missing rows to the left, then to the right
            if way == LEFT and (subset == every or not has_missing):
                continue
            if way == LEFT:
                move(missing, right, left)
            gain = two_purities(criterion, left, right, offer.least)
            if way == LEFT:
                move(missing, left, right)
            if gain > best + offer.slack:
                best, best_side = gain, np.int64(way) if has_missing else np.int64(HEAVIER)
                for rank in range(len(in_left)):
                    in_left[rank] = False
                for group in range(count):
                    in_left[ranks[group]] = subset >> group & 1 == 1
    gain = max(0.0, best - purity(criterion, total)) if best > -np.inf else NO_SPLIT
    note(offer, gain, NOWHERE, NOWHERE, best_side)


@inner
def subset_by_median(keys, gone, rows, places, ordered, total, offer, in_left):
    """Best subset by absolute deviation; ``gone`` are the keys of the missing rows."""
    ranks, groups = group_keys(keys)
    group_at, weight_at = np.full(len(ordered), -1), np.zeros(len(ordered))
    half, below, medians = np.zeros(len(ranks)), np.zeros(len(ranks)), np.zeros(len(ranks))
    for place in range(len(keys)):
        row = keys[place] & ROW
        half[groups[place]] += 0.5 * rows[row, 0]
        group_at[places[row]] = groups[place]
        weight_at[places[row]] = rows[row, 0]
    for place in range(len(ordered)):
        group = group_at[place]
        if group >= 0:
            if below[group] < half[group]:
                medians[group] = ordered[place]
            below[group] += weight_at[place]
    order = keys_in_order(medians)
    arranged = _arranged(keys, groups, order)
    scan_absolute(arranged, gone, rows, places, ordered, total, offer)
    _send_left(in_left, ranks, order, offer.cut)


@inner
def group_keys(keys):
    """The ranks that occur in sorted keys, and the number of the rank of each key among them."""
    ranks, groups = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    count = 0
    for place in range(len(keys)):
        if count == 0 or keys[place] >> 32 != ranks[count - 1]:
            ranks[count] = keys[place] >> 32
            count += 1
        groups[place] = count - 1
    return ranks[:count], groups


@inner
def _by_share(table, output):
    """Keys of the groups, ranked by their share of a sum."""
    shares = np.empty(len(table))
    for group in range(len(table)):
        shares[group] = table[group, output] / table[group, 0]
    return keys_in_order(shares)


@inner
def keys_in_order(values):
    """Keys of the items ranked by value, equal ones by number: a merge sort, which compiles faster than NumPy's."""
    count = len(values)
    order, merged = np.arange(count), np.empty(count, dtype=np.int64)
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            middle, stop = min(start + width, count), min(start + 2 * width, count)
            left, right = start, middle
            for place in range(start, stop):
                if left < middle and (right == stop or not values[order[right]] < values[order[left]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    for place in range(count):
        order[place] |= place << 32
    return order


@inner
def _send_left(in_left, ranks, order, cut):
    """Mark the ranks of the first groups of an order, up to the place ``cut``."""
    for rank in range(len(in_left)):
        in_left[rank] = False
    for place in range(cut + 1):
        in_left[ranks[order[place] & ROW]] = True


@inner
def _arranged(keys, groups, order):
    """The keys with their groups in the order given, ranked by it."""
    first = np.searchsorted(groups, np.arange(len(order) + 1))
    arranged = np.empty(len(keys), dtype=np.int64)
    filled = 0
    for place in range(len(order)):
        group = order[place] & ROW
        for i in range(first[group], first[group + 1]):
            arranged[filled] = place << 32 | (keys[i] & ROW)
            filled += 1
    return arranged
