"""Compiled loops of the decomposition solver: pair steps inside a working set, and products with cached kernel rows.

The gradient G = Q u + c has one number per sample. Moving u_i up costs G_i + lift_i, moving it down gains G_i + drop_i:
beyond a bound lift is +FAR and drop is -FAR, at a kink of the conjugate they are apart. With offsets instead of masks
the searches for the best pair are plain reductions, which the processor does for several samples at once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
FAR = 1e300
BLOCK = 1024


class Local(NamedTuple):
    """A working set: its variables, bounds, gradient and offsets, and its part of Q."""

    Q: NDArray
    diagonal: Array
    u: Array
    low: Array
    high: Array
    G: Array
    lift: Array
    drop: Array
    gains: NDArray


@njit(cache=True, nogil=True)
def set_offsets(u, low, high, tube, lift, drop):
    """The cost of moving each u_i beyond its gradient: that of the tube, or FAR at a bound."""
    for i in range(len(u)):
        lift[i] = FAR if u[i] >= high[i] else (tube if u[i] >= 0 else -tube)
        drop[i] = -FAR if u[i] <= low[i] else (-tube if u[i] <= 0 else tube)


# No number is NaN or infinite here (the caller looks at the rows first), so reductions may be reordered.
@njit(cache=True, nogil=True, fastmath={"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"})
def _advance(G, lift, first, second, step):
    """G += step (first - second), and the smallest G + lift."""
    least = 1e308
    for k in range(len(G)):
        G[k] += step * (first[k] - second[k])
        least = min(least, G[k] + lift[k])
    return least


@njit(cache=True, nogil=True, fastmath={"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"})
def _gains(G, drop, row, diagonal, own, price, flat, gains):
    """What the best step with each partner gains, up to a factor of one half; and the largest violation and gain."""
    worst = -1e308
    best = gains[0] * 0
    for k in range(len(G)):
        violation = G[k] + drop[k] - price
        worst = max(worst, violation)
        violation = max(violation, 0.0)
        both = own + diagonal[k]
        curvature = max(both - 2 * row[k], flat * abs(both) + 1e-300)
        gain = violation * violation / curvature
        gains[k] = gain
        best = max(best, gains[k])
    return worst, best


@njit(cache=True, nogil=True)
def _find(values, value):
    """The first place of a value that is known to be there."""
    for k in range(len(values)):
        if values[k] == value:
            return k
    return -1


@njit(cache=True, nogil=True)
def _find_sum(G, lift, value):
    """The place of the smallest G + lift, given its value; rounding may differ in the last digit."""
    for k in range(len(G)):
        if G[k] + lift[k] <= value:
            return k
    return np.argmin(G + lift)


@njit(cache=True, nogil=True)
def _offsets(u, low, high, tube):
    lift = FAR if u >= high else (tube if u >= 0 else -tube)
    drop = -FAR if u <= low else (-tube if u <= 0 else tube)
    return lift, drop


@njit(cache=True, nogil=True)
def solve_pairs(local, tube, flat, tol, limit):
    """Second-order pair steps until the largest violation is within ``tol``; returns it and the steps taken.

    The first of a pair is the one that is cheapest to lift, the second the one with which the step gains most.
    """
    u, G, lift, drop, diagonal = local.u, local.G, local.lift, local.drop, local.diagonal
    step, i, j = 0.0, 0, 0
    worst = 0.0
    for count in range(limit):
        price = _advance(G, lift, local.Q[i], local.Q[j], step)
        if price >= 0.5 * FAR:
            return 0.0, count
        i = _find_sum(G, lift, price)
        price = G[i] + lift[i]
        worst, best = _gains(G, drop, local.Q[i], diagonal, diagonal[i], price, flat, local.gains)
        if worst <= tol or best <= 0:
            return worst, count
        j = _find(local.gains, best)
        violation = G[j] + drop[j] - price
        both = diagonal[i] + diagonal[j]
        curvature = max(both - 2 * local.Q[i, j], flat * abs(both) + 1e-300)
        ceiling = 0.0 if tube > 0 and u[i] < 0 else local.high[i]
        floor = 0.0 if tube > 0 and u[j] > 0 else local.low[j]
        step = violation / curvature
        up, down = ceiling - u[i], u[j] - floor
        reach = min(step, up, down)
        # A bound is met exactly, so that the offsets see it.
        u[i] = ceiling if reach == up else u[i] + reach
        u[j] = floor if reach == down else u[j] - reach
        step = reach
        lift[i], drop[i] = _offsets(u[i], local.low[i], local.high[i], tube)
        lift[j], drop[j] = _offsets(u[j], local.low[j], local.high[j], tube)
    _advance(G, lift, local.Q[i], local.Q[j], step)
    return worst, limit


@njit(cache=True, nogil=True)
def gather(rows, slots, columns, out):
    """out = rows[slots][:, columns]."""
    for a in range(len(slots)):
        row = rows[slots[a]]
        for b in range(len(columns)):
            out[a, b] = row[columns[b]]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def add_rows(rows, slots, factors, begin, end, G):
    """G[begin:end] += factors' rows[slots], four rows at a time; sums of a block are held in the rows' precision."""
    block = np.empty(BLOCK, dtype=rows.dtype)
    count = len(slots)
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        width = stop - start
        block[:] = 0
        for a in range(0, count - count % 4, 4):
            p, q, r, s = factors[a], factors[a + 1], factors[a + 2], factors[a + 3]
            first, second = rows[slots[a], start:stop], rows[slots[a + 1], start:stop]
            third, fourth = rows[slots[a + 2], start:stop], rows[slots[a + 3], start:stop]
            for k in range(width):
                block[k] += p * first[k] + q * second[k] + r * third[k] + s * fourth[k]
        for a in range(count - count % 4, count):
            p, first = factors[a], rows[slots[a], start:stop]
            for k in range(width):
                block[k] += p * first[k]
        for k in range(width):
            G[start + k] += block[k]


@njit(cache=True, nogil=True)
def narrow(flat, slots, width, columns):
    """Keep some columns of the rows at increasing ``slots`` of a flat buffer, and move the rows together in place.

    What is written lies before what is still to be read: rows and columns only get fewer.
    """
    place = 0
    for slot in slots:
        start = slot * width
        for column in columns:
            flat[place] = flat[start + column]
            place += 1
