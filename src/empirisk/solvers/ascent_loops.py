"""The compiled loops of dual ascent."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from empirisk.solvers.rows import row_add, row_dot

Array = NDArray[np.float64]


class Terms(NamedTuple):
    """What the dual says of each u_i:  linear u + tube |u| + bend u^2 / 2  between low and high."""

    linear: Array
    bend: Array
    low: Array
    high: Array
    #: The second derivative of the negative dual in u_i.
    curvature: Array


class Shape(NamedTuple):
    """What all u_i share: the tube, the penalty, and the stiffness of the intercept."""

    tube: float
    l1: float
    l2: float
    stiffness: float


class Iterate(NamedTuple):
    """u, p = -A'u, the rows in the order of their visits, and a memory of a few numbers."""

    u: Array
    p: Array
    order: NDArray[np.intp]
    memory: Array


# Places in the memory: the intercept, the sum of u, how many rows are still visited and which is next, the largest
# violation in this pass, how far inside the optimum's side a row must be to be left out, whether this pass began with
# all rows, and the seed of the next pass.
INTERCEPT, SUM, ACTIVE, NEXT, WORST, LIMIT, FULL, SEED = range(8)
PLACES = 8


def row_dot_shrunk(rows, i, p, l1):
    """<a_i, sign(p) max(0, |p| - l1)>; inside compiled loops only."""


@overload(row_dot_shrunk)
def _row_dot_shrunk(rows, i, p, l1):
    def dense(rows, i, p, l1):
        X, shift = rows
        total = 0.0
        for j in range(len(p)):
            total += (X[i, j] - shift[j]) * (p[j] - min(max(p[j], -l1), l1))
        return total

    def sparse(rows, i, p, l1):
        data, indices, indptr = rows
        total = 0.0
        for q in range(indptr[i], indptr[i + 1]):
            value = p[indices[q]]
            total += data[q] * (value - min(max(value, -l1), l1))
        return total

    return dense if "X" in rows.fields else sparse


@njit(cache=True, nogil=True)
def shuffle(order, active, memory):
    """Permute the first rows in place, with a small generator of its own (splitmix64)."""
    seed = np.uint64(memory[SEED])
    state = seed * np.uint64(0x9E3779B97F4A7C15)
    for k in range(active - 1, 0, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        z = state
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        other = np.int64(z % np.uint64(k + 1))
        order[k], order[other] = order[other], order[k]
    memory[SEED] += 1.0


@njit(cache=True, nogil=True)
def best(u, gradient, curvature, tube, low, high):
    """The u' that maximises the dual along one coordinate."""
    target = u - gradient / curvature
    threshold = tube / curvature
    target = target - min(max(target, -threshold), threshold)
    return min(max(target, low), high)


@njit(cache=True, nogil=True)
def stays(u, gradient, tube, low, high, limit):
    """Whether u rests at a bound, or at the corner of the tube, so firmly that it will not move soon."""
    if u == 0:
        return (high == 0 or gradient + tube > limit) and (low == 0 or gradient - tube < -limit)
    return (u == low and gradient - tube > limit) or (u == high and gradient + tube < -limit)


@njit(cache=True, nogil=True)
def visit(rows, terms, shape, iterate, visits):
    """Maximise the dual in one u_i after the other, until the pass or the visits end; how many visits are left."""
    linear, bend, low, high, curvature = terms
    us, p, order, memory = iterate
    active, k, worst, limit = int(memory[ACTIVE]), int(memory[NEXT]), memory[WORST], memory[LIMIT]
    intercept = memory[INTERCEPT]
    while k < active and visits > 0:
        visits -= 1
        i = order[k]
        u = us[i]
        product = row_dot(rows, i, p) if shape.l1 == 0 else row_dot_shrunk(rows, i, p, shape.l1)
        gradient = linear[i] - product / shape.l2 - intercept + bend[i] * u
        change = best(u, gradient, curvature[i], shape.tube, low[i], high[i]) - u
        if change != 0.0:
            us[i] = u + change
            row_add(rows, i, -change, p)
            memory[SUM] += change
            intercept -= shape.stiffness * change
            worst = max(worst, abs(change) * curvature[i])
        elif stays(u, gradient, shape.tube, low[i], high[i], limit):
            active -= 1
            order[k], order[active] = order[active], i
            continue
        k += 1
    memory[ACTIVE], memory[NEXT], memory[WORST], memory[INTERCEPT] = active, k, worst, intercept
    return visits


@njit(cache=True, nogil=True)
def sweep(rows, terms, shape, iterate, goal, visits):
    """Visit rows at random until ``visits`` are used up, or a whole pass finds no violation above ``goal``.

    Rows that stay at their bounds are left out, until the others meet the goal: then all are looked at again.
    Returns how many visits are left; -1 if the goal is met.
    """
    memory = iterate.memory
    while visits > 0:
        if memory[NEXT] == 0:
            shuffle(iterate.order, int(memory[ACTIVE]), memory)
        visits = visit(rows, terms, shape, iterate, visits)
        if memory[NEXT] >= memory[ACTIVE] and finish(iterate, shape, goal):
            return -1
    return visits


@njit(cache=True, nogil=True)
def finish(iterate, shape, goal):
    """End a pass: move the intercept by its multiplier, and choose the rows of the next pass; True at the goal."""
    memory = iterate.memory
    correction = shape.stiffness * memory[SUM]
    memory[INTERCEPT] -= correction
    worst, full = max(memory[WORST], abs(correction)), memory[FULL] > 0
    memory[NEXT], memory[WORST], memory[FULL] = 0.0, 0.0, 0.0
    memory[LIMIT] = worst + abs(correction)
    if worst > goal:
        return False
    memory[ACTIVE], memory[FULL] = float(len(iterate.order)), 1.0
    return full
