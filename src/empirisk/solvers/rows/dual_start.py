"""Feasible dual points to start from, exact balance, and the best intercept for given products."""

from collections.abc import Callable
from struct import pack, unpack

import numpy as np

from empirisk.problem import Array, Point, Problem
from empirisk.solvers.rows.row_cache import gram

#: Entries that take the rounding of a sum: the first nearly always takes all of it.
SETTLING = 8
LOWEST = -(1 << 63)  # the bits of minus zero, as a whole number
#: How far out, in units of the first guess, an intercept is looked for.
REASON = 1e30


def dual_terms(problem: Problem) -> tuple[Array, float, Array, Array, Array]:
    """What the dual says of each u_i:  linear u + tube |u| + bend u^2 / 2  between low and high."""
    slope, tube, bend = problem.loss.dual_quadratic or (0.0, 0.0, 0.0)
    linear = slope * problem.y if problem.loss.margin_form else problem.y + slope
    return linear, tube, bend / problem.scale, *problem.bounds()


def beginning(problem: Problem, low: Array, high: Array, start: Point | None) -> tuple[Array, Array]:
    """A feasible dual point and its A w: that of a warm start, stretched as far as its bounds allow, or near zero.

    Along a path of C most variables at a bound stay there, so that stretching moves them to their new bound.
    """
    zero = np.zeros(len(low))
    if start is not None and start.u is not None and start.u.shape == low.shape and start.u.any():
        stretch = _stretch(start.u, low, high)
        u = np.clip(stretch * start.u, low, high)
        products = stretch * problem.design.dot(-start.u / problem.penalty.l2)
        if problem.intercept:
            u = balanced(u, low, high, -problem.tilt)
        # A sum that is zero but for rounding.
        is_balanced = not problem.intercept or abs(u.sum() + problem.tilt) <= 1e-12 * np.abs(u).sum()
        if is_balanced and problem.conjugate_sum(u) - 0.5 * float(u @ products) <= 0:
            return u, products
    if not problem.intercept or not problem.tilt:
        return zero, zero.copy()
    u, design = _filled(low, high, -problem.tilt), gram(problem)
    # Single precision does for a beginning.
    return u, (design if design.keeps_matrix else design.single).dot(-u / problem.penalty.l2).astype(np.float64)


def _stretch(u: Array, low: Array, high: Array) -> float:
    """The largest factor at which u keeps its bounds; 1 where there are none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(u > 0, high / u, np.where(u < 0, low / u, np.inf))
    stretch = float(limits.min())
    return stretch if np.isfinite(stretch) else 1.0


def _filled(low: Array, high: Array, aim: float) -> Array:
    """u that sums to ``aim``: one variable after the other at its bound."""
    room = high if aim > 0 else -low
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    return np.sign(aim) * np.clip(abs(aim) - before, 0.0, room)


def balanced(u: Array, low: Array, high: Array, aim: float) -> Array:
    """u with the rounding of its sum taken off the entries with most room, if that can be done exactly."""
    u = u.copy()
    room = np.minimum(np.minimum(u - low, high - u), np.abs(u))  # a conjugate may have its kink at zero
    order = np.argsort(-room)[:SETTLING]
    for place in order:
        missing = aim - u.sum()
        if missing == 0 or abs(missing) > room[place]:
            break
        u[place] = np.clip(u[place] + missing, low[place], high[place])
    return u


def best_intercept(problem: Problem, products: Array, *around: float) -> float:
    """argmin_b  sum_i s_i loss(y_i, products_i + b) + tilt b, by bisection of its slope, from about given values."""

    # What the sum of all slopes is off by, with digits to spare.
    rounding = 1e-13 * (float(problem.scale.sum()) + abs(problem.tilt))
    y, scale, f, fixed = problem.y, problem.scale, products, problem.tilt

    def slope(b: float) -> float:
        # No product of vectors: starting its threads takes longer than the sum.
        total = float(np.sum(scale * problem.loss.derivative(y, f + b))) + fixed
        return total if abs(total) > rounding else 0.0

    # An open end stands as 1e100 and more, and says nothing of b.
    known = [value for value in around if abs(value) < 1e100] or [0.0]
    left, right = min(known), max(known)
    # The first reach only saves doublings: a millionth of the value, of 1e-6 where that is zero.
    reach = max(right - left, 1e-6 * max(abs(left), abs(right), 1e-6))
    left, right = _bracket(slope, left, right, reach)
    # Slopes rise with b: those that are equal at both ends are fixed between them, and few others are left.
    low, high = (scale * problem.loss.derivative(y, f + b) for b in (left, right))
    moving = np.flatnonzero(low != high)
    fixed += float(np.sum(low)) - float(np.sum(low[moving]))
    y, scale, f = y[moving], scale[moving], f[moving]
    first = _threshold(lambda b: slope(b) >= 0, left, right)
    last = first if slope(first[1]) > 0 else _threshold(lambda b: slope(b) > 0, first[0], right)
    if slope(left) == 0 or slope(right) == 0:
        return last[0] if slope(left) == 0 else first[1]  # it stays as good for ever to one side
    if last[0] > first[1]:
        return 0.5 * (first[1] + last[0])  # every intercept in between is as good
    return min(first, key=lambda b: problem.loss_sum(products + b) + problem.tilt * b)


def _threshold(holds: Callable[[float], bool], left: float, right: float) -> tuple[float, float]:
    """The neighbouring numbers between which a condition begins to hold.

    Their ranks are halved, not the numbers: towards zero those would be halved a thousand times.
    """
    low, high = _rank(left), _rank(right)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(_of_rank(middle)) else (middle, high)
    return _of_rank(low), _of_rank(high)


def _rank(number: float) -> int:
    """The place of a number among all: its bits, which count downwards from zero where it is negative."""
    (bits,) = unpack("<q", pack("<d", number))
    return bits if bits >= 0 else LOWEST - bits


def _of_rank(rank: int) -> float:
    return unpack("<d", pack("<q", rank if rank >= 0 else LOWEST - rank))[0]


def _bracket(slope: Callable[[float], float], left: float, right: float, reach: float) -> tuple[float, float]:
    """Two intercepts with slopes of different sign, if there are any within reason."""
    step = reach
    while slope(left) >= 0 and step < REASON * reach:
        left, step = left - step, 4 * step
    step = reach
    while slope(right) <= 0 and step < REASON * reach:
        right, step = right + step, 4 * step
    return left, right
