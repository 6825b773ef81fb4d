"""What a node holds: weight, value, impurity; and its responses as whole numbers, so that sums are exact.

Sums of floats depend on the order of the rows: a row of weight 2 and the same row twice, or two columns that divide
the rows alike, would gain almost the same, and rounding would break the tie. So weights are multiplied by a power of
two and rounded once, and the responses of a node are centred, scaled and rounded when the node is described: every
sum is then a whole number below 2^53, exact in any order. What rounding costs, 2^-52 of the node's range times its
weight, is less than what sums of floats lose.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.trees.criteria import ABSOLUTE, GINI, SQUARED, class_impurity
from empirisk.trees.presort import ROW

VARIANCE, SUMS, DEVIATION = range(3)  # the three scans
BITS = 52  # sums stay below 2^BITS
SLACK = 1e-12  # gains this close, as a part of the largest possible gain, are equal


class Target(NamedTuple):
    """What the rows are to be divided by, for compiled code.

    ``rows[:, 0]`` are the weights as whole numbers, ``rows[:, 1:]`` what a row adds to the sums ``slots``. ``y`` are the
    outputs of a regression (empty for classes). ``places`` and ``ordered`` belong to the absolute criterion: the place
    of each row in the order of y within its node, and the responses in that order.
    """

    criterion: int
    form: int
    unit: float  # a whole-number weight times this is the weight given
    rows: NDArray[np.float64]
    slots: NDArray[np.int32]
    y: NDArray[np.float64]
    places: NDArray[np.int32]
    ordered: NDArray[np.float64]


@njit(cache=True, nogil=True)
def scale_for(reach, weight):
    """The power of two that brings ``weight * reach`` just below 2^BITS."""
    return math.ldexp(1.0, min(BITS - math.frexp(reach)[1] - math.frexp(weight)[1], 1000))


@njit(cache=True, nogil=True)
def describe_classes(target, keys, total, limits, value):
    """Sums of a node of classes; returns its impurity and whether it is pure.

    Writes the weight and sums to ``total``, the class shares to ``value``, and to ``limits[1:]`` the slack of gains, the
    unit of weights and the factor from gains in the scan's numbers to weight times impurity.
    """
    total[:] = 0.0
    for key in keys:
        row = key & ROW
        total[0] += target.rows[row, 0]
        total[1 + target.slots[row, 0]] += target.rows[row, 1]
    if target.form == VARIANCE:
        value[1] = total[1] / total[0]
        value[0] = 1.0 - value[1]
    else:
        value[:] = total[1:] / total[0]
    impurity = class_impurity(target.criterion, value, 1.0)
    # The variance of a 0/1 response is p (1 - p), half the gini impurity of two classes.
    limits[1] = SLACK * total[0]
    limits[2] = target.unit
    limits[3] = 2.0 * target.unit if target.form == VARIANCE else target.unit
    return impurity, value.max() >= 1.0


@njit(cache=True, nogil=True)
def describe_means(target, keys, total, limits, value):
    """As `describe_classes`, for outputs that are predicted by their means; also writes the responses."""
    y = target.y
    outputs = y.shape[1]
    low, high = np.full(outputs, np.inf), np.full(outputs, -np.inf)
    total[:] = 0.0
    for key in keys:
        row = key & ROW
        total[0] += target.rows[row, 0]
        for j in range(outputs):
            low[j], high[j] = min(low[j], y[row, j]), max(high[j], y[row, j])
    weight = total[0] * target.unit
    value[:] = 0.0
    for key in keys:  # measured from the lowest, so that equal outputs have that very mean
        row = key & ROW
        for j in range(outputs):
            value[j] += target.rows[row, 0] * (y[row, j] - low[j])
    value[:] = low + value / total[0]
    centre = 0.5 * low + 0.5 * high
    reach = (0.5 * high - 0.5 * low).max()
    if reach == 0.0:
        return 0.0, True
    scale = scale_for(reach, weight)
    spread = 0.0
    for key in keys:
        row = key & ROW
        for j in range(outputs):
            whole = np.rint((y[row, j] - centre[j]) * scale)
            target.rows[row, 1 + j] = np.rint(whole * target.rows[row, 0] * target.unit)
            total[1 + j] += target.rows[row, 1 + j]
            spread += target.rows[row, 0] * ((y[row, j] - value[j]) * scale) ** 2
    limits[1] = SLACK * spread * target.unit * target.unit
    limits[2] = target.unit
    limits[3] = 1.0 / (scale * scale * target.unit)
    return spread / total[0] / (scale * scale), False


@njit(cache=True, nogil=True)
def describe_median(target, keys, ordered, total, limits, value):
    """As `describe_means`, for one output predicted by its median; ``keys`` are in the order of y."""
    y, rows = target.y, target.rows
    count = len(keys)
    low, high = y[keys[0] & ROW, 0], y[keys[count - 1] & ROW, 0]
    total[:] = 0.0
    for key in keys:
        total[0] += rows[key & ROW, 0]
    value[0] = _median(keys, rows, y, 0.5 * total[0])
    reach = 0.5 * high - 0.5 * low
    if reach == 0.0:
        return 0.0, True
    centre, scale = 0.5 * low + 0.5 * high, scale_for(reach, total[0] * target.unit)
    middle = (value[0] - centre) * scale
    for i in range(count):
        row = keys[i] & ROW
        whole = np.rint((y[row, 0] - centre) * scale)
        rows[row, 1] = np.rint(whole * rows[row, 0] * target.unit)
        target.places[row] = i
        ordered[i] = whole
        total[1] += rows[row, 1]
        total[2] += abs(whole - middle) * rows[row, 0] * target.unit
    limits[1] = SLACK * total[2]
    limits[2] = target.unit
    limits[3] = 1.0 / scale
    return total[2] / (total[0] * target.unit * scale), False


@njit(cache=True, nogil=True)
def _median(keys, rows, y, half):
    """The point that halves the weight; midway where an interval of points does."""
    below = 0.0
    for i in range(len(keys)):
        below += rows[keys[i] & ROW, 0]
        if below > half:
            return y[keys[i] & ROW, 0]
        if below == half:
            return 0.5 * y[keys[i] & ROW, 0] + 0.5 * y[keys[i + 1] & ROW, 0]
    return y[keys[len(keys) - 1] & ROW, 0]


@njit(cache=True, nogil=True)
def describe(target, keys, start, total, limits, value):
    """Describe a node by the keys of its rows, the first of which is number ``start``; see `describe_classes`."""
    if target.form == DEVIATION:
        return describe_median(target, keys, target.ordered[start : start + len(keys)], total, limits, value)
    if target.y.shape[0] > 0:
        return describe_means(target, keys, total, limits, value)
    return describe_classes(target, keys, total, limits, value)


def form_of(criterion: int, outputs: int) -> int:
    """The scan for a criterion with so many classes or outputs."""
    if criterion == ABSOLUTE:
        return DEVIATION
    return VARIANCE if {GINI: 2, SQUARED: 1}.get(criterion) == outputs else SUMS
