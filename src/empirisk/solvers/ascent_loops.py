"""The compiled loops of dual ascent."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from empirisk.solvers.rows import SUMS, row_add, row_dot

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
    """u, p = -A'u, the rows in the order of their visits, and the few numbers of `Memory`."""

    u: Array
    p: Array
    order: NDArray[np.intp]
    memory: Array


class Memory:
    """Places in the memory: intercept, sum of u, rows still visited, next of them, violations now and before, seed."""

    INTERCEPT, SUM, ACTIVE, NEXT, WORST, LIMIT, SEED = range(7)
    SIZE = 7


INTERCEPT, SUM, ACTIVE, NEXT, WORST, LIMIT, SEED = range(Memory.SIZE)


def row_dot_shrunk(rows, i, p, l1):
    """<a_i, sign(p) max(0, |p| - l1)>."""
    raise NotImplementedError


@overload(row_dot_shrunk, jit_options=SUMS)
def _row_dot_shrunk(rows, i, p, l1):
    def dense(rows, i, p, l1):
        x = rows.X[i]
        total = 0.0
        for j in range(len(p)):
            total += (x[j] - rows.shift[j]) * (p[j] - min(max(p[j], -l1), l1))
        return total

    def sparse(rows, i, p, l1):
        total = 0.0
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            value = p[rows.indices[q]]
            total += rows.data[q] * (value - min(max(value, -l1), l1))
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
    if u == low and low < 0 and gradient - tube > limit:
        return True
    if u == high and high > 0 and gradient + tube < -limit:
        return True
    below = tube if low < 0 else np.inf
    above = tube if high > 0 else np.inf
    return u == 0 and gradient > limit - above and gradient < below - limit
