"""Compiled passes over the kinks of an interior-point method; see `interior` for the formulas.

Each pass covers entries start..stop, so that threads share the work in fixed blocks.
"""

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def curvatures(p, q, below, above, out, start, stop):
    """dv/da on the central path, into ``out``."""
    for i in range(start, stop):
        out[i] = 1.0 / (q[i] / above[i] + p[i] / below[i])


@njit(cache=True, nogil=True, error_model="numpy")
def offsets(p, q, below, above, low, high, out, start, stop):
    """g with dv = curvature (da + g), aiming at p (v - left) = low and q (right - v) = high."""
    for i in range(start, stop):
        out[i] = q[i] - p[i] + low[i] / below[i] - high[i] / above[i]


@njit(cache=True, nogil=True, error_model="numpy")
def directions(p, q, below, above, low, high, curvature, e, dv, dp, dq, start, stop):
    """The step (dv, dp, dq) for e = da + g and the targets of `offsets`; returns the longest t <= 1."""
    longest = 1.0
    for i in range(start, stop):
        step = curvature[i] * e[i]
        left = (low[i] - p[i] * step) / below[i] - p[i]
        right = (high[i] + q[i] * step) / above[i] - q[i]
        if step < 0.0:
            longest = min(longest, -below[i] / step)
        elif step > 0.0:
            longest = min(longest, above[i] / step)
        if left < 0.0:
            longest = min(longest, -p[i] / left)
        if right < 0.0:
            longest = min(longest, -q[i] / right)
        dv[i] = step
        dp[i] = left
        dq[i] = right
    return longest


@njit(cache=True, nogil=True, error_model="numpy")
def gap_after(p, q, below, above, dv, dp, dq, t, start, stop):
    """The sum of p (v - left) + q (right - v) after going t along the step."""
    total = 0.0
    for i in range(start, stop):
        total += (p[i] + t * dp[i]) * (below[i] + t * dv[i]) + (q[i] + t * dq[i]) * (above[i] - t * dv[i])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def correct(low, high, dv, dp, dq, mu, start, stop):
    """Mehrotra's corrector: aim at mu less the second-order terms of the predictor's step."""
    for i in range(start, stop):
        low[i] = mu - dp[i] * dv[i]
        high[i] = mu + dq[i] * dv[i]


@njit(cache=True, nogil=True, error_model="numpy")
def move(p, q, below, above, dv, dp, dq, t, start, stop):
    """Go t along the step."""
    for i in range(start, stop):
        p[i] += t * dp[i]
        q[i] += t * dq[i]
        below[i] += t * dv[i]
        above[i] -= t * dv[i]


@njit(cache=True, nogil=True, error_model="numpy")
def settle(p, q, a, start, stop):
    """Let p or q grow by what is missing of a = q - p."""
    for i in range(start, stop):
        missing = a[i] - (q[i] - p[i])
        if missing > 0.0:
            q[i] += missing
        else:
            p[i] -= missing
