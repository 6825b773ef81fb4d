"""One step of a term: sums of gradient and curvature by its cells, and the best piecewise constant function of them."""

import numpy as np

from empirisk.linalg.compiled import plain, plain_loop
from empirisk.trees.binned.bins import MISSING

#: Bins of a column in a pair; the one after them holds missing values.
COARSE = 64
#: A cut is taken for a later one only where it gains more by more than rounding: cells without rows decide nothing.
CLEARLY = 1 + 1e-9


@plain_loop
def logistic_sums(codes, scores, targets, weights, sums):
    """Gradient and curvature of the logistic loss, targets 0 and 1, summed by cell."""
    sums[:] = 0.0
    for row in range(len(codes)):
        share = 1.0 / (1.0 + np.exp(-scores[row]))
        cell = codes[row]
        sums[cell, 0] += weights[row] * (share - targets[row])
        sums[cell, 1] += weights[row] * share * (1.0 - share)


@plain_loop
def squared_sums(codes, scores, targets, weights, sums):
    """Gradient and curvature of the squared loss, summed by cell."""
    sums[:] = 0.0
    for row in range(len(codes)):
        cell, weight = codes[row], 2.0 * weights[row]
        sums[cell, 0] += weight * (scores[row] - targets[row])
        sums[cell, 1] += weight


@plain_loop
def given_sums(codes, gradient, curvature, sums):
    """Gradient and curvature that are known, summed by cell."""
    sums[:] = 0.0
    for row in range(len(codes)):
        sums[codes[row], 0] += gradient[row]
        sums[codes[row], 1] += curvature[row]


@plain_loop
def add_step(codes, step, scores):
    """Add the value of its cell to the score of every row."""
    for row in range(len(codes)):
        scores[row] += step[codes[row]]


@plain
def gain_of(gradient, curvature, l2):
    """Twice what a leaf lowers the loss by."""
    room = curvature + l2
    return gradient * gradient / room if room > 0 else 0.0


@plain
def best_cut(sums, mass, order, start, stop, least, l2, found):
    """The cut of the cells order[start:stop] that gains most: its place in ``found[0]``, the gain in ``found[1]``."""
    gradient = curvature = weight = 0.0
    for k in range(start, stop):
        cell = order[k]
        gradient += sums[cell, 0]
        curvature += sums[cell, 1]
        weight += mass[cell]
    whole = gain_of(gradient, curvature, l2)
    found[0], found[1] = -1.0, 1e-12 * whole
    left_g = left_h = left_w = 0.0
    for k in range(start, stop - 1):
        cell = order[k]
        left_g += sums[cell, 0]
        left_h += sums[cell, 1]
        left_w += mass[cell]
        if left_w >= least and weight - left_w >= least:
            gain = gain_of(left_g, left_h, l2) + gain_of(gradient - left_g, curvature - left_h, l2) - whole
            if gain > found[1] * CLEARLY:
                found[0], found[1] = k + 1, gain


@plain_loop
def column_step(sums, mass, order, leaves, least, l2, sign, work, step):
    """Write the Newton step of a column: constant on at most ``leaves`` runs of its cells in the given order.

    ``sign`` makes it rise (1) or fall (-1) along the order. Missing values have a value of their own. ``work`` is room
    for four numbers of each leaf and two more.
    """
    step[:] = 0.0
    count, found = 1, work[4]
    starts, stops, cuts, gains = work[0], work[1], work[2], work[3]
    starts[0], stops[0] = 0, len(order)
    best_cut(sums, mass, order, 0, len(order), least, l2, found)
    cuts[0], gains[0] = found[0], found[1]
    while count < leaves:
        chosen = -1
        for k in range(count):
            if cuts[k] > 0 and (chosen < 0 or gains[k] > gains[chosen]):
                chosen = k
        if chosen < 0:
            break
        cut, stop = int(cuts[chosen]), int(stops[chosen])
        for k in range(count, chosen + 1, -1):  # leaves stay in the order of their cells
            starts[k], stops[k], cuts[k], gains[k] = starts[k - 1], stops[k - 1], cuts[k - 1], gains[k - 1]
        starts[chosen + 1], stops[chosen + 1], stops[chosen] = cut, stop, cut
        count += 1
        for k in range(chosen, chosen + 2):
            best_cut(sums, mass, order, int(starts[k]), int(stops[k]), least, l2, found)
            cuts[k], gains[k] = found[0], found[1]
    if count > 1:
        write_leaves(sums, order, count, l2, sign, work, step)
    if mass[MISSING] >= least:
        step[MISSING] = -sums[MISSING, 0] / (sums[MISSING, 1] + l2) if sums[MISSING, 1] + l2 > 0 else 0.0


@plain
def write_leaves(sums, order, count, l2, sign, work, step):
    """The values of the leaves; under a constraint, neighbours that break it are pooled (isotonic regression)."""
    starts, stops, gradients, curvatures = work[0], work[1], work[2], work[3]
    kept = 0
    for k in range(count):
        start, stop = int(starts[k]), int(stops[k])
        gradient = curvature = 0.0
        for place in range(start, stop):
            gradient += sums[order[place], 0]
            curvature += sums[order[place], 1]
        while kept > 0 and sign != 0:
            before = -gradients[kept - 1] / (curvatures[kept - 1] + l2)
            if sign * (-gradient / (curvature + l2) - before) >= 0:
                break
            kept -= 1
            start = int(starts[kept])
            gradient += gradients[kept]
            curvature += curvatures[kept]
        starts[kept], stops[kept], gradients[kept], curvatures[kept] = start, stop, gradient, curvature
        kept += 1
    for k in range(kept):
        room = curvatures[k] + l2
        value = -gradients[k] / room if room > 0 else 0.0
        for place in range(int(starts[k]), int(stops[k])):
            step[order[place]] = value


@plain_loop
def accumulate(sums, total):
    """Two-dimensional prefix sums: total[a, b] is the sum of sums[:a, :b]."""
    for a in range(sums.shape[0]):
        for b in range(sums.shape[1]):
            for k in range(sums.shape[2]):
                total[a + 1, b + 1, k] = total[a, b + 1, k] + total[a + 1, b, k] - total[a, b, k] + sums[a, b, k]


@plain
def box_gain(total, a, b, c, d, least, l2):
    """The gain of the cells [a, b) x [c, d) as a leaf; -1 where it has too few rows."""
    if total[b, d, 2] - total[a, d, 2] - total[b, c, 2] + total[a, c, 2] < least:
        return -1.0
    gradient = total[b, d, 0] - total[a, d, 0] - total[b, c, 0] + total[a, c, 0]
    curvature = total[b, d, 1] - total[a, d, 1] - total[b, c, 1] + total[a, c, 1]
    return gain_of(gradient, curvature, l2)


@plain
def best_box_cut(total, box, least, l2, found):
    """The better half of a box along either axis: (axis, place) in ``found[:2]``, the gain of both in ``found[2]``."""
    a, b, c, d = box
    found[0], found[1], found[2] = -1.0, 0.0, box_gain(total, a, b, c, d, 0.0, l2)
    for place in range(a + 1, b):
        one, other = box_gain(total, a, place, c, d, least, l2), box_gain(total, place, b, c, d, least, l2)
        if one >= 0 and other >= 0 and one + other > found[2] * CLEARLY:
            found[0], found[1], found[2] = 0.0, place, one + other
    for place in range(c + 1, d):
        one, other = box_gain(total, a, b, c, place, least, l2), box_gain(total, a, b, place, d, least, l2)
        if one >= 0 and other >= 0 and one + other > found[2] * CLEARLY:
            found[0], found[1], found[2] = 1.0, place, one + other


@plain_loop
def pair_step(total, least, l2, work, step):
    """Write the Newton step of a pair of columns: a tree of at most four leaves over the grid of their bins.

    ``total`` holds prefix sums of gradient, curvature and weight; ``work`` is room for 3 x 3 numbers.
    """
    rows, columns = total.shape[0] - 1, total.shape[1] - 1
    step[:] = 0.0
    best, axis, cut = box_gain(total, 0, rows, 0, columns, 0.0, l2), -1, 0
    for side in range(2):
        for place in range(1, rows if side == 0 else columns):
            first = (0, place, 0, columns) if side == 0 else (0, rows, 0, place)
            second = (place, rows, 0, columns) if side == 0 else (0, rows, place, columns)
            one = box_gain(total, first[0], first[1], first[2], first[3], least, l2)
            other = box_gain(total, second[0], second[1], second[2], second[3], least, l2)
            if one < 0 or other < 0:
                continue
            best_box_cut(total, first, least, l2, work[0])
            best_box_cut(total, second, least, l2, work[1])
            if work[0, 2] + work[1, 2] > best * CLEARLY:
                best, axis, cut = work[0, 2] + work[1, 2], side, place
    if axis < 0:
        return
    for half in range(2):
        if axis == 0:
            box = (0, cut, 0, columns) if half == 0 else (cut, rows, 0, columns)
        else:
            box = (0, rows, 0, cut) if half == 0 else (0, rows, cut, columns)
        best_box_cut(total, box, least, l2, work[2])
        where, place = int(work[2, 0]), int(work[2, 1])
        if where < 0:
            fill_box(total, box, l2, step)
        elif where == 0:
            fill_box(total, (box[0], place, box[2], box[3]), l2, step)
            fill_box(total, (place, box[1], box[2], box[3]), l2, step)
        else:
            fill_box(total, (box[0], box[1], box[2], place), l2, step)
            fill_box(total, (box[0], box[1], place, box[3]), l2, step)


@plain
def fill_box(total, box, l2, step):
    """Write the value of a leaf to its cells."""
    a, b, c, d = box
    gradient = total[b, d, 0] - total[a, d, 0] - total[b, c, 0] + total[a, c, 0]
    curvature = total[b, d, 1] - total[a, d, 1] - total[b, c, 1] + total[a, c, 1]
    value = -gradient / (curvature + l2) if curvature + l2 > 0 else 0.0
    for row in range(a, b):
        for column in range(c, d):
            step[row, column] = value


@plain_loop
def interaction(total, least, l2):
    """The most that four quadrants of a grid gain beyond their two cuts taken one by one."""
    rows, columns = total.shape[0] - 1, total.shape[1] - 1
    whole, best = box_gain(total, 0, rows, 0, columns, 0.0, l2), 0.0
    for a in range(1, rows):
        up, down = box_gain(total, 0, a, 0, columns, least, l2), box_gain(total, a, rows, 0, columns, least, l2)
        if up < 0 or down < 0:
            continue
        for b in range(1, columns):
            left, right = box_gain(total, 0, rows, 0, b, least, l2), box_gain(total, 0, rows, b, columns, least, l2)
            corners = (
                box_gain(total, 0, a, 0, b, least, l2),
                box_gain(total, 0, a, b, columns, least, l2),
                box_gain(total, a, rows, 0, b, least, l2),
                box_gain(total, a, rows, b, columns, least, l2),
            )
            if left < 0 or right < 0 or min(corners) < 0:
                continue
            gain = corners[0] + corners[1] + corners[2] + corners[3] - (up + down + left + right - whole)
            best = gain if gain > best else best
    return best
