"""What a node holds: weight, value, impurity; and its responses as whole numbers, so that sums are exact.

Sums of floats depend on the order of the rows: a row of weight 2 and the same row twice, or two columns that divide
the rows alike, would gain almost the same, and rounding would break the tie. So weights are multiplied by a power of
two and rounded once, and the responses of a node are centred, scaled and rounded when the node is described: every
sum is then a whole number below 2^53, exact in any order. What rounding costs, 2^-52 of the node's range times its
weight, is less than what sums of floats lose.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from empirisk.trees.compiled import inner
from empirisk.trees.exact.criteria import class_impurity
from empirisk.trees.exact.presort import ROW

BITS = 52  # sums stay below 2^BITS
SLACK = 1e-12  # gains this close, as a part of the largest possible gain, are equal


class Target(NamedTuple):
    """What the rows are to be divided by, for compiled code; the fields that are given decide how.

    Attributes
    ----------
    criterion : int
        Code of the criterion, see `empirisk.trees.exact.criteria`.
    unit : float
        A whole-number weight times this is the weight given.
    rows : (n_rows, 1 + n_entries)
        Weight of a row as a whole number, then what the row adds to the sums.
    slots : (n_rows, n_entries) int32 or None
        The sums that a row adds to; None where there is one response, and gains are those of its variance.
    y : (n_rows, n_outputs) or None
        Outputs of a regression; None for classes.
    places, ordered : (n_rows,) or None
        For the absolute criterion: the place of each row in the order of y within its node, and the responses in
        that order.
    """

    criterion: int
    unit: float
    rows: NDArray[np.float64]
    slots: NDArray[np.int32] | None = None
    y: NDArray[np.float64] | None = None
    places: NDArray[np.int32] | None = None
    ordered: NDArray[np.float64] | None = None


def lacks(target: Any, field: str) -> bool:
    """Whether a target's field is None, as compiled code sees its type."""
    return isinstance(target.types[target.fields.index(field)], types.NoneType)


@inner
def scale_for(reach, weight):
    """The power of two that brings ``weight * reach`` just below 2^BITS."""
    return math.ldexp(1.0, min(BITS - math.frexp(reach)[1] - math.frexp(weight)[1], 1000))


@inner
def clear(sums):
    """Set all to zero: a loop compiles faster than NumPy's fill."""
    for k in range(len(sums)):
        sums[k] = 0.0


@inner
def describe_classes(target, keys, total, limits, value):
    """Sums of a node of classes; returns its impurity and whether it is pure.

    Writes the weight and sums to ``total``, the class shares to ``value``, and to ``limits[1:]`` the slack of gains,
    the unit of weights and the factor from gains in the scan's numbers to weight times impurity.
    """
    clear(total)
    for key in keys:
        row = key & ROW
        total[0] += target.rows[row, 0]
        total[1 + target.slots[row, 0]] += target.rows[row, 1]
    for k in range(len(value)):
        value[k] = total[1 + k] / total[0]
    impurity = class_impurity(target.criterion, value, 1.0)
    limits[1], limits[2], limits[3] = SLACK * total[0], target.unit, target.unit
    return impurity, impurity == 0.0


@inner
def describe_two_classes(target, keys, total, limits, value):
    """As `describe_classes`, where the response is 1 for the second of two classes and 0 for the first."""
    clear(total)
    for key in keys:
        row = key & ROW
        total[0] += target.rows[row, 0]
        total[1] += target.rows[row, 1]
    value[1] = total[1] / total[0]
    value[0] = 1.0 - value[1]
    impurity = class_impurity(target.criterion, value, 1.0)
    # The variance of the response is p (1 - p), half the gini impurity.
    limits[1], limits[2], limits[3] = SLACK * total[0], target.unit, 2.0 * target.unit
    return impurity, impurity == 0.0


@inner
def describe_means(target, keys, total, limits, value):
    """As `describe_classes`, for outputs that are predicted by their means; also writes the responses."""
    y = target.y
    outputs = y.shape[1]
    low, high = np.empty(outputs), np.empty(outputs)
    low.fill(np.inf)
    high.fill(-np.inf)
    clear(total)
    for key in keys:
        row = key & ROW
        total[0] += target.rows[row, 0]
        for j in range(outputs):
            low[j], high[j] = min(low[j], y[row, j]), max(high[j], y[row, j])
    weight = total[0] * target.unit
    clear(value)
    for key in keys:  # measured from the lowest, so that equal outputs have that very mean
        row = key & ROW
        for j in range(outputs):
            value[j] += target.rows[row, 0] * (y[row, j] - low[j])
    reach = 0.0
    for j in range(outputs):
        value[j] = low[j] + value[j] / total[0]
        reach = max(reach, 0.5 * high[j] - 0.5 * low[j])
    if reach == 0.0:
        return 0.0, True
    scale = scale_for(reach, weight)
    spread = 0.0
    for key in keys:
        row = key & ROW
        for j in range(outputs):
            whole = np.rint((y[row, j] - (0.5 * low[j] + 0.5 * high[j])) * scale)
            target.rows[row, 1 + j] = np.rint(whole * target.rows[row, 0] * target.unit)
            total[1 + j] += target.rows[row, 1 + j]
            spread += target.rows[row, 0] * ((y[row, j] - value[j]) * scale) ** 2
    limits[1] = SLACK * spread * target.unit * target.unit
    limits[2] = target.unit
    limits[3] = 1.0 / (scale * scale * target.unit)
    return spread / total[0] / (scale * scale), False


@inner
def describe_median(target, keys, ordered, total, limits, value):
    """As `describe_means`, for one output predicted by its median; ``keys`` are in the order of y."""
    y, rows = target.y, target.rows
    count = len(keys)
    low, high = y[keys[0] & ROW, 0], y[keys[count - 1] & ROW, 0]
    clear(total)
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


@inner
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


def describe(target, keys, start, total, limits, value) -> Any:
    """Describe a node by the keys of its rows, the first of which is number ``start``; see `describe_classes`."""
    raise TypeError("describe is for compiled code only.")


@overload(describe)
def _describe(target, keys, start, total, limits, value):
    if not lacks(target, "ordered"):
        return lambda target, keys, start, total, limits, value: describe_median(
            target, keys, target.ordered[start : start + len(keys)], total, limits, value
        )
    if not lacks(target, "y"):
        return lambda target, keys, start, total, limits, value: describe_means(target, keys, total, limits, value)
    if lacks(target, "slots"):
        return lambda target, keys, start, total, limits, value: describe_two_classes(
            target, keys, total, limits, value
        )
    return lambda target, keys, start, total, limits, value: describe_classes(target, keys, total, limits, value)
