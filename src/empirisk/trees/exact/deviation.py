"""Scans for the absolute criterion: the sum of absolute deviations from the weighted median, kept up to date.

A Fenwick tree over the rows in the order of y holds weights and weighted responses, so that adding a row and asking
for the deviation of all rows added so far both cost O(log n).
"""

import numpy as np

from empirisk.linalg.compiled import inner
from empirisk.trees.exact.presort import MISSING, ROW
from empirisk.trees.exact.scan import HEAVIER, LEFT, NO_SPLIT, NOWHERE, RIGHT, note


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
