"""What a node holds: weight, value, impurity; and its responses as whole numbers, so that sums are exact.

Sums of floats depend on the order of the rows: a row of weight 2 and the same row twice, or two columns that divide
the rows alike, would gain almost the same, and rounding would break the tie. So weights are multiplied by a power of
two and rounded once, and the responses of a node are centred, scaled and rounded when the node is described: every
sum is then a whole number below 2^53, exact in any order. What rounding costs, 2^-52 of the node's range times its
weight, is less than what sums of floats lose.
"""

import math

import numpy as np

from empirisk.linalg.compiled import plain
from empirisk.trees.exact.scan import ENTROPY, ROW, purity

BITS = 52  # sums stay below 2^BITS
SLACK = 1e-12  # gains this close, as a part of the largest possible gain, are equal


@plain
def scale_for(reach, weight):
    """The power of two that brings ``weight * reach`` just below 2^BITS."""
    exponent = BITS - math.frexp(reach)[1] - math.frexp(weight)[1]
    return math.ldexp(1.0, exponent if exponent < 1000 else 1000)


@plain
def describe_classes(state, node, keys, rows, slots, labels, total, value):
    """Sums of a node of classes, its impurity, and whether it is pure.

    Writes the weight and sums to ``total``, the class shares to ``value``; to the node its impurity, the slack of gains
    and the factor from gains in the scan's numbers to weight times impurity. Without ``slots`` the response is 1 for
    the second of two classes and 0 for the first: its variance is p (1 - p), half the gini impurity.
    """
    for k in range(len(total)):
        total[k] = 0.0
    for k in range(node.start, node.stop):
        row = keys[k] & ROW
        total[0] += rows[row, 0]
        if slots is None:
            total[1] += rows[row, 1]
        else:
            total[1 + labels[row]] += rows[row, 1]
    factor, share, weight, pure = 1.0, 0.0, total[0], False
    if slots is None:
        factor, second = 2.0, total[1] / weight
        first = 1.0 - second
        value[0] = first
        value[1] = second
        share, pure = first * first + second * second, first == 1.0 or second == 1.0
    else:
        for k in range(len(value)):
            value[k] = total[1 + k] / weight
            pure |= value[k] == 1.0
        share = purity(state.criterion, total) / weight
    impurity = -share if state.criterion == ENTROPY else 1.0 - share
    node.impurity = 0.0 if pure or impurity < 0.0 else impurity
    node.slack = SLACK * weight
    node.factor = factor * state.unit
    return pure


@plain
def describe_means(state, node, keys, rows, y, total, value):
    """As `describe_classes`, for outputs that are predicted by their means; also writes the responses."""
    reach, spread, unit = 0.0, 0.0, state.unit
    total[0] = 0.0
    for k in range(node.start, node.stop):
        total[0] += rows[keys[k] & ROW, 0]
    for j in range(len(value)):
        low, high = np.inf, -np.inf
        for k in range(node.start, node.stop):
            number = y[keys[k] & ROW, j]
            low, high = number if number < low else low, number if number > high else high
        amount = 0.0
        for k in range(node.start, node.stop):  # measured from the lowest, so that equal outputs have that very mean
            row = keys[k] & ROW
            amount += rows[row, 0] * (y[row, j] - low)
        value[j] = low + amount / total[0]
        total[1 + j] = 0.5 * low + 0.5 * high
        half = 0.5 * high - 0.5 * low
        reach = half if half > reach else reach
    node.impurity = 0.0
    if reach == 0.0:
        return True
    scale = scale_for(reach, total[0] * unit)
    for j in range(len(value)):
        centre, total[1 + j] = total[1 + j], 0.0
        for k in range(node.start, node.stop):
            row = keys[k] & ROW
            whole = np.rint((y[row, j] - centre) * scale)
            rows[row, 1 + j] = np.rint(whole * rows[row, 0] * unit)
            total[1 + j] += rows[row, 1 + j]
            spread += rows[row, 0] * ((y[row, j] - value[j]) * scale) ** 2
    node.slack = SLACK * spread * unit * unit
    node.factor = 1.0 / (scale * scale * unit)
    node.impurity = spread / total[0] / (scale * scale)
    return False


@plain
def describe_median(state, node, keys, rows, median, total, value):
    """As `describe_means`, for one output predicted by its median; ``keys`` are in the order of y."""
    start, stop, unit, places, ordered, y = node.start, node.stop, state.unit, median[0], median[1], median[2]
    low, high = y[keys[start] & ROW, 0], y[keys[stop - 1] & ROW, 0]
    for k in range(3):
        total[k] = 0.0
    for k in range(start, stop):
        total[0] += rows[keys[k] & ROW, 0]
    value[0] = _median(keys, start, stop, rows, y, 0.5 * total[0])
    reach, centre = 0.5 * high - 0.5 * low, 0.5 * low + 0.5 * high
    node.impurity = 0.0
    if reach == 0.0:
        return True
    scale = scale_for(reach, total[0] * unit)
    middle = (value[0] - centre) * scale
    for k in range(start, stop):
        row = keys[k] & ROW
        whole = np.rint((y[row, 0] - centre) * scale)
        rows[row, 1] = np.rint(whole * rows[row, 0] * unit)
        places[row] = k - start
        ordered[k] = whole
        total[1] += rows[row, 1]
        total[2] += abs(whole - middle) * rows[row, 0] * unit
    node.slack = SLACK * total[2]
    node.factor = 1.0 / scale
    node.impurity = total[2] / (total[0] * unit * scale)
    return False


@plain
def _median(keys, start, stop, rows, y, half):
    """The point that halves the weight; midway where an interval of points does."""
    below = 0.0
    for k in range(start, stop):
        below += rows[keys[k] & ROW, 0]
        if below > half:
            return y[keys[k] & ROW, 0]
        if below == half:
            return 0.5 * y[keys[k] & ROW, 0] + 0.5 * y[keys[k + 1] & ROW, 0]
    return y[keys[stop - 1] & ROW, 0]
