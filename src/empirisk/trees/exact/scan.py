"""The best place to divide a sorted list of keys: criteria, and one pass over the list.

A criterion is written as the purity P of a set, the part of ``-weight * impurity`` that depends on how rows are
divided; a split gains  P(left) + P(right) - P(node) >= 0, so children count by their size.

============ ========================================== =======================================
criterion    impurity of a set with class shares p      purity P, with class weights s, W = sum
============ ========================================== =======================================
gini         sum_k p_k (1 - p_k)                        sum_k s_k^2 / W
entropy      - sum_k p_k log2 p_k                       sum_k s_k log2 (s_k / W)
error        1 - max_k p_k                              max_k s_k
squared      mean of (y - mean)^2, over outputs         sum_k t_k^2 / W,  t = sum of w y
absolute     mean of |y - median|                       - sum of w |y - median|
============ ========================================== =======================================

Each scan takes the keys of the rows whose value is present, in order, and what the missing rows add. It tries every
boundary between two ranks, with the missing rows on the left and on the right, and last "present" against "missing". It
writes to ``offer`` the gain of the best division, the last rank on the left, the first rank on the right, and where
missing rows go. There it finds the criterion, the least weight of a child, and the slack: a later division wins only
if it gains more than that, so that ties go to the lowest threshold although sums of different rows are rounded
differently.

For the absolute criterion a Fenwick tree over the rows in the order of y holds weights and weighted responses, so that
adding a row and asking for the deviation of all rows added so far from their weighted median both cost O(log n).
"""

import numpy as np

from empirisk.errors import EmpiriskError, did_you_mean
from empirisk.linalg.compiled import inner, plain
from empirisk.names import spelled

MISSING = np.int64((1 << 31) - 1)  # rank of a missing value: after all others
ROW = (1 << 32) - 1  # mask of the row in a key

#: Codes of the criteria in compiled loops.
GINI, ENTROPY, ERROR, SQUARED, ABSOLUTE = range(5)
CLASSIFICATION = {"gini": GINI, "entropy": ENTROPY, "error": ERROR}
REGRESSION = {"squared": SQUARED, "absolute": ABSOLUTE}


def find(criterion: str, table: dict[str, int]) -> int:
    """The code of a criterion in compiled code, or a sentence that names the choices.

    >>> find("entropy", CLASSIFICATION)
    1
    """
    name = spelled("criterion", criterion)
    if name in table:
        return table[name]
    hint = did_you_mean(criterion, table, f"choose one of {sorted(table)}.")
    raise EmpiriskError(f"criterion={criterion!r} is not known; {hint}")


@plain
def purity(criterion, sums):
    """P of a set from its weight, which is positive, and its sums (see the table above)."""
    total, weight = 0.0, sums[0]
    for k in range(1, len(sums)):
        amount = sums[k]
        if criterion == ENTROPY:
            total += amount * np.log2(amount / weight) if amount > 0.0 else 0.0
        elif criterion == ERROR:
            total = amount if amount > total else total
        else:
            total += amount * amount
    return total if criterion == ENTROPY or criterion == ERROR else total / weight  # noqa: SIM109 - a tuple takes longer to compile


RIGHT, LEFT, HEAVIER = np.arange(3)  # where missing rows go; HEAVIER: there were none, so with the heavier child
NO_SPLIT = -1.0  # a gain below every other
NOWHERE = np.int64(-1)  # the place of no split
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
    weight, gone, gone_response, least, bar = total[0], missing[0], missing[1], offer.least, NO_SPLIT
    mean, slack = total[1] / weight, offer.slack / weight
    has_missing = gone > 0.0
    side = RIGHT if has_missing else HEAVIER
    note(offer, NO_SPLIT, NOWHERE, NOWHERE, LEFT if has_missing else HEAVIER)
    left, response, previous = 0.0, 0.0, keys[start] >> 32
    for k in range(start, stop):
        key = keys[k]
        rank, row = key >> 32, key & ROW
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


# --- absolute deviations ----------------------------------------------------------------------------------------------


@inner
def _add(sums, place, weight, response):
    """Add one row to the Fenwick tree."""
    index = place + 1
    while index < sums.shape[0]:
        sums[index, 0] += weight
        sums[index, 1] += response
        index += index & -index


@inner
def _deviation(sums, weight, response, ordered, unit):
    """Sum of w |r - median| of the rows in the Fenwick tree, whose weights and responses add up to those given.

    ``ordered`` are the responses of unit weight in the order of y; ``unit`` turns weights into theirs.
    """
    size = sums.shape[0] - 1
    step = 1
    while 2 * step <= size:
        step *= 2
    place, below, below_response = 0, 0.0, 0.0
    while step > 0:  # the last place whose weight up to it is still less than half
        if place + step <= size and below + sums[place + step, 0] < 0.5 * weight:
            place += step
            below += sums[place, 0]
            below_response += sums[place, 1]
        step //= 2
    median = ordered[place]
    above, above_response = weight - below, response - below_response
    return (above_response - median * above * unit) + (median * below * unit - below_response)


@inner
def _deviations(keys, start, rows, places, ordered, unit, out):
    """Write to ``out[i]`` the deviation of the ``start`` rows and the first i keys, wherever the rank changes."""
    sums = np.zeros((len(ordered) + 1, 2))
    weight, response = 0.0, 0.0
    for key in start:
        row = key & ROW
        weight += rows[row, 0]
        response += rows[row, 1]
        _add(sums, places[row], rows[row, 0], rows[row, 1])
    for i in range(len(keys)):
        if weight > 0.0 and (i == 0 or keys[i] >> 32 != keys[i - 1] >> 32):
            out[i] = _deviation(sums, weight, response, ordered, unit)
        row = keys[i] & ROW
        weight += rows[row, 0]
        response += rows[row, 1]
        _add(sums, places[row], rows[row, 0], rows[row, 1])
    out[len(keys)] = _deviation(sums, weight, response, ordered, unit)


@inner
def scan_absolute(keys, gone, rows, places, ordered, total, offer):
    """Best division by absolute deviation; see `empirisk.trees.exact.scan` for what a scan writes to ``offer``.

    ``gone`` are the keys of the missing rows, ``places`` the place of each row in the order of y within the node,
    ``ordered`` the responses of unit weight in that order; ``total`` holds the node's weight, response and deviation.
    """
    count, nothing, lost, best = len(keys), keys[:0], 0.0, -np.inf
    least, slack, unit = offer.least, offer.slack, offer.unit
    for key in gone:
        lost += rows[key & ROW, 0]
    prefix, suffix = np.zeros((2, count + 1)), np.zeros((2, count + 1))
    backward = keys[::-1].copy()
    ways = 2 if len(gone) > 0 else 1
    note(offer, NO_SPLIT, NOWHERE, NOWHERE, HEAVIER)
    for way in range(ways):  # 0: missing rows on the right (or none), 1: on the left
        _deviations(keys, gone if way == LEFT else nothing, rows, places, ordered, unit, prefix[way])
        _deviations(backward, nothing if way == LEFT else gone, rows, places, ordered, unit, suffix[way])
    left = 0.0
    for i in range(1, count):
        left += rows[keys[i - 1] & ROW, 0]
        if keys[i] >> 32 == keys[i - 1] >> 32:
            continue
        for way in range(ways - 1, -1, -1):
            weight = left + (lost if way == LEFT else 0.0)
            gain = total[2] - prefix[way, i] - suffix[way, count - i]
            if weight >= least and total[0] - weight >= least and gain > best + slack:
                best = gain
                note(offer, gain, keys[i - 1] >> 32, keys[i] >> 32, np.int64(way) if ways == 2 else HEAVIER)
    if ways == 2 and total[0] - lost >= least and lost >= least:
        gain = total[2] - prefix[RIGHT, count] - suffix[RIGHT, 0]
        if gain > best + slack:
            best = gain
            note(offer, gain, keys[count - 1] >> 32, MISSING, RIGHT)
    offer.gain = NO_SPLIT if best == -np.inf else best if best > 0.0 else 0.0
