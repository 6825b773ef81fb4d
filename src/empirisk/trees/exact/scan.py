"""One pass over a sorted list of keys: the best place to divide it.

Each scan takes the keys of the rows whose value is present, in order, and what the missing rows add. It tries every
boundary between two ranks, with the missing rows on the left and on the right, and last "present" against "missing". It
writes to ``offer`` the gain of the best division, the last rank on the left, the first rank on the right, and where
missing rows go. There it finds the criterion, the least weight of a child, and the slack: a later division wins only
if it gains more than that, so that ties go to the lowest threshold although sums of different rows are rounded
differently.
"""

import numpy as np

from empirisk.linalg.compiled import plain
from empirisk.trees.exact.criteria import GINI, purity
from empirisk.trees.exact.presort import MISSING, ROW

RIGHT, LEFT, HEAVIER = np.arange(3)  # where missing rows go; HEAVIER: there were none, so with the heavier child
NO_SPLIT = -1.0
NOWHERE = np.int64(-1)
EXACT = 1 << 26  # weight up to which the squares of whole-number sums are exact


@plain
def note(offer, gain, cut, upper, side):
    """Keep a division that is better than those before."""
    offer.gain = gain
    offer.cut = cut
    offer.upper = upper
    offer.side = side


@plain
def scan_variance(keys, start, stop, rows, total, missing, offer):
    """Best division for one response r: the gain is  d^2 W / (W_L W_R)  with  d = r_L - W_L r / W.

    ``rows[:, 0]`` are weights and ``rows[:, 1]`` responses (both whole numbers, so that sums are exact in any order);
    ``total`` and ``missing`` are their sums.
    """
    weight, mean, least, slack = total[0], total[1] / total[0], offer.least, offer.slack / total[0]
    gone, gone_response, bar = missing[0], missing[1], NO_SPLIT
    has_missing = gone > 0.0
    side = RIGHT if has_missing else HEAVIER
    note(offer, NO_SPLIT, NOWHERE, NOWHERE, LEFT if has_missing else HEAVIER)
    left, response, previous = 0.0, 0.0, keys[start] >> 32
    for k in range(start, stop):
        rank, row = keys[k] >> 32, keys[k] & ROW
        if rank != previous:
            if has_missing:
                heavy = left + gone
                light, away = weight - heavy, response + gone_response - heavy * mean
                if heavy >= least and light >= least and away * away > bar * heavy * light:
                    note(offer, away * away / (heavy * light), previous, rank, LEFT)
                    bar = offer.gain + slack
            right, away = weight - left, response - left * mean
            if away * away > bar * left * right and left >= least and right >= least:
                note(offer, away * away / (left * right), previous, rank, side)
                bar = offer.gain + slack
            previous = rank
        left += rows[row, 0]
        response += rows[row, 1]
    away = response - left * mean
    if has_missing and left >= least and gone >= least and away * away > bar * left * gone:
        note(offer, away * away / (left * gone), previous, MISSING, RIGHT)
    offer.gain = offer.gain * weight if offer.gain >= 0.0 else NO_SPLIT


@plain
def scan_sums(keys, start, stop, rows, slots, total, room, offer):
    """Best division by the purity of sums: a row adds ``rows[row, 1 + j]`` to the sum ``slots[row, j]``.

    ``total`` and the first line of ``room``, for the missing rows, hold the weight, then the sums; two more lines are
    for the sides.
    """
    missing, left, right = room[0], room[1], room[2]
    criterion, least, slack = offer.criterion, offer.least, offer.slack
    has_missing, before, best = missing[0] > 0.0, purity(criterion, total), -np.inf
    side = RIGHT if has_missing else HEAVIER
    note(offer, NO_SPLIT, NOWHERE, NOWHERE, HEAVIER)
    for k in range(len(total)):
        left[k] = 0.0
        right[k] = total[k]
    previous = keys[start] >> 32
    for k in range(start, stop + 1 if has_missing else stop):
        rank = keys[k] >> 32 if k < stop else MISSING
        if rank != previous:
            if has_missing and k < stop:
                move(missing, right, left)
                gain = two_purities(criterion, left, right, least) - before
                if gain > best + slack:
                    best = gain
                    note(offer, gain, previous, rank, LEFT)
                move(missing, left, right)
            gain = two_purities(criterion, left, right, least) - before
            if gain > best + slack:
                best = gain
                note(offer, gain, previous, rank, side)
            previous = rank
        if k < stop:
            row = keys[k] & ROW
            left[0] += rows[row, 0]
            right[0] -= rows[row, 0]
            for j in range(slots.shape[1]):
                left[1 + slots[row, j]] += rows[row, 1 + j]
                right[1 + slots[row, j]] -= rows[row, 1 + j]
    offer.gain = NO_SPLIT if best == -np.inf else best if best > 0.0 else 0.0


@plain
def scan_squares(keys, start, stop, rows, slots, total, room, offer):
    """`scan_sums` for gini and several classes, with no row missing and a weight of at most `EXACT`.

    Squares of sums are then exact, so that each row changes their total in one step, however many the classes.
    """
    left, right, before, best = room[1], room[2], purity(GINI, total), -np.inf
    least, slack = offer.least, offer.slack
    squares_left, squares_right = 0.0, -total[0] * total[0]
    note(offer, NO_SPLIT, NOWHERE, NOWHERE, HEAVIER)
    for k in range(len(total)):
        left[k] = 0.0
        right[k] = total[k]
        squares_right += total[k] * total[k]
    previous = keys[start] >> 32
    for k in range(start, stop):
        rank, row = keys[k] >> 32, keys[k] & ROW
        if rank != previous:
            if left[0] >= least and right[0] >= least:
                gain = squares_left / left[0] + squares_right / right[0] - before
                if gain > best + slack:
                    best = gain
                    note(offer, gain, previous, rank, HEAVIER)
            previous = rank
        weight, slot = rows[row, 0], 1 + slots[row, 0]
        squares_left += weight * (2.0 * left[slot] + weight)
        squares_right -= weight * (2.0 * right[slot] - weight)
        left[0] += weight
        right[0] -= weight
        left[slot] += weight
        right[slot] -= weight
    offer.gain = NO_SPLIT if best == -np.inf else best if best > 0.0 else 0.0


@plain
def two_purities(criterion, left, right, least):
    """Purity of two children, minus infinity where one is lighter than allowed."""
    if left[0] < least or right[0] < least:
        return -np.inf
    return purity(criterion, left) + purity(criterion, right)


@plain
def move(amount, source, target):
    """Move sums from one side to the other; whole numbers, so moving them back restores every bit."""
    for k in range(len(amount)):
        source[k] -= amount[k]
        target[k] += amount[k]
