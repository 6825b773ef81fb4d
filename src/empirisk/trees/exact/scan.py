"""One pass over a sorted list of keys: the best place to divide it.

Each scan takes the keys of the rows whose value is present, in order, and what the missing rows add. It tries every
boundary between two ranks, with the missing rows on the left and on the right, and last "present" against
"missing". It returns ``(gain, cut, upper, side)``: the gain of the best division, the last rank on the left, the
first rank on the right, and where missing rows go. A later division wins only if it gains more than ``slack``, so
that ties go to the lowest threshold although sums of different rows are rounded differently.
"""

import numpy as np

from empirisk.trees.compiled import inner
from empirisk.trees.exact.criteria import GINI, purity
from empirisk.trees.exact.presort import MISSING, ROW

RIGHT, LEFT, HEAVIER = 0, 1, 2  # where missing rows go; HEAVIER: there were none, so with the heavier child
NO_SPLIT = -1.0
EXACT = 1 << 26  # weight up to which the squares of whole-number sums are exact


@inner
def scan_variance(keys, rows, total, missing, limits):
    """Best division for one response r: the gain is  d^2 W / (W_L W_R)  with  d = r_L - W_L r / W.

    ``rows[:, 0]`` are weights and ``rows[:, 1]`` responses (both whole numbers, so that sums are exact in any
    order); ``total`` and ``missing`` are their sums; ``limits`` are the least weight of a child and the slack.
    """
    least, slack = limits[0], limits[1] / total[0]
    weight, mean = total[0], total[1] / total[0]
    gone, gone_response = missing[0], missing[1]
    has_missing = gone > 0.0
    side = LEFT if has_missing else HEAVIER
    best, bar, cut, upper = NO_SPLIT, NO_SPLIT, np.int64(-1), np.int64(-1)
    left, response = 0.0, 0.0
    previous = keys[0] >> 32
    for key in keys:
        rank = key >> 32
        if rank != previous:
            if has_missing:
                heavy = left + gone
                light = weight - heavy
                away = response + gone_response - heavy * mean
                if heavy >= least and light >= least and away * away > bar * heavy * light:
                    best, cut, upper, side = away * away / (heavy * light), previous, rank, LEFT
                    bar = best + slack
            right = weight - left
            away = response - left * mean
            if away * away > bar * left * right and left >= least and right >= least:
                best, cut, upper = away * away / (left * right), previous, rank
                side = RIGHT if has_missing else HEAVIER
                bar = best + slack
            previous = rank
        row = key & ROW
        left += rows[row, 0]
        response += rows[row, 1]
    if has_missing and left >= least and gone >= least:
        away = response - left * mean
        if away * away > bar * left * gone:
            best, cut, upper, side = away * away / (left * gone), previous, np.int64(MISSING), RIGHT
    return best * weight if best >= 0.0 else NO_SPLIT, cut, upper, side


@inner
def scan_sums(criterion, keys, rows, slots, total, missing, limits):
    """Best division by the purity of sums: a row adds ``rows[row, 1 + j]`` to the sum ``slots[row, j]``.

    ``total`` and ``missing`` hold the weight, then the sums.
    """
    least, slack = limits[0], limits[1]
    before = purity(criterion, total[1:], total[0])
    has_missing = missing[0] > 0.0
    left, right = np.zeros(len(total)), total.copy()
    best, cut, upper, side = -np.inf, np.int64(-1), np.int64(-1), np.int64(HEAVIER)
    previous = keys[0] >> 32
    for key in keys:
        rank = key >> 32
        if rank != previous:
            if has_missing:
                move(missing, right, left)
                gain = two_purities(criterion, left, right, least) - before
                if gain > best + slack:
                    best, cut, upper, side = gain, previous, rank, np.int64(LEFT)
                move(missing, left, right)
            gain = two_purities(criterion, left, right, least) - before
            if gain > best + slack:
                best, cut, upper = gain, previous, rank
                side = np.int64(RIGHT) if has_missing else np.int64(HEAVIER)
            previous = rank
        row = key & ROW
        left[0] += rows[row, 0]
        right[0] -= rows[row, 0]
        for j in range(slots.shape[1]):
            left[1 + slots[row, j]] += rows[row, 1 + j]
            right[1 + slots[row, j]] -= rows[row, 1 + j]
    if has_missing:
        gain = two_purities(criterion, left, right, least) - before
        if gain > best + slack:
            best, cut, upper, side = gain, previous, np.int64(MISSING), np.int64(RIGHT)
    return max(best, 0.0) if best > -np.inf else NO_SPLIT, cut, upper, side


@inner
def scan_squares(keys, rows, slots, total, limits):
    """`scan_sums` for gini and several classes, with no row missing and a weight of at most `EXACT`.

    Squares of sums are then exact, so that each row changes their total in one step, however many the classes.
    """
    least, slack = limits[0], limits[1]
    before = purity(GINI, total[1:], total[0])
    left, right = np.zeros(len(total)), total.copy()
    squares_left, squares_right = 0.0, 0.0
    for amount in total[1:]:
        squares_right += amount * amount
    best, cut, upper = -np.inf, np.int64(-1), np.int64(-1)
    previous = keys[0] >> 32
    for key in keys:
        rank = key >> 32
        if rank != previous:
            if left[0] >= least and right[0] >= least:
                gain = squares_left / left[0] + squares_right / right[0] - before
                if gain > best + slack:
                    best, cut, upper = gain, previous, rank
            previous = rank
        row = key & ROW
        weight, slot = rows[row, 0], 1 + slots[row, 0]
        squares_left += weight * (2.0 * left[slot] + weight)
        squares_right -= weight * (2.0 * right[slot] - weight)
        left[0] += weight
        right[0] -= weight
        left[slot] += weight
        right[slot] -= weight
    return max(best, 0.0) if best > -np.inf else NO_SPLIT, cut, upper, np.int64(HEAVIER)


@inner
def two_purities(criterion, left, right, least):
    """Purity of two children, minus infinity where one is lighter than allowed."""
    if left[0] < least or right[0] < least:
        return -np.inf
    return purity(criterion, left[1:], left[0]) + purity(criterion, right[1:], right[0])


@inner
def move(amount, source, target):
    """Move sums from one side to the other; whole numbers, so moving them back restores every bit."""
    for k in range(len(amount)):
        source[k] -= amount[k]
        target[k] += amount[k]
