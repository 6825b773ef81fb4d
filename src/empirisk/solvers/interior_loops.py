"""Compiled passes over the kinks of an interior-point method; see `interior` for the formulas.

The rows of ``state`` are p, q, v - left and right - v; those of ``targets`` what p (v - left) and q (right - v) aim at;
those of ``step`` the changes of v, p and q. Each pass covers entries start..stop, so that threads share the work in
fixed blocks.
"""

from numba import njit

P, Q, BELOW, ABOVE = 0, 1, 2, 3
LOW, HIGH = 0, 1
DV, DP, DQ = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def curvatures(state, out, start, stop):
    """dv/da on the central path, into ``out``."""
    for i in range(start, stop):
        out[i] = 1.0 / (state[Q, i] / state[ABOVE, i] + state[P, i] / state[BELOW, i])


@njit(cache=True, nogil=True, error_model="numpy")
def offsets(state, targets, out, start, stop):
    """g with dv = curvature (da + g), aiming at the targets."""
    for i in range(start, stop):
        pull = targets[LOW, i] / state[BELOW, i] - targets[HIGH, i] / state[ABOVE, i]
        out[i] = state[Q, i] - state[P, i] + pull


@njit(cache=True, nogil=True, error_model="numpy")
def directions(state, targets, curvature, e, step, start, stop):
    """The step for e = da + g and the targets; returns the longest t <= 1 that keeps the state positive."""
    longest = 1.0
    for i in range(start, stop):
        p, q, below, above = state[P, i], state[Q, i], state[BELOW, i], state[ABOVE, i]
        dv = curvature[i] * e[i]
        dp = (targets[LOW, i] - p * dv) / below - p
        dq = (targets[HIGH, i] + q * dv) / above - q
        if dv < 0.0:
            longest = min(longest, -below / dv)
        elif dv > 0.0:
            longest = min(longest, above / dv)
        if dp < 0.0:
            longest = min(longest, -p / dp)
        if dq < 0.0:
            longest = min(longest, -q / dq)
        step[DV, i], step[DP, i], step[DQ, i] = dv, dp, dq
    return longest


@njit(cache=True, nogil=True, error_model="numpy")
def gap_after(state, step, t, start, stop):
    """The sum of p (v - left) + q (right - v) after going t along the step."""
    total = 0.0
    for i in range(start, stop):
        dv = t * step[DV, i]
        total += (state[P, i] + t * step[DP, i]) * (state[BELOW, i] + dv)
        total += (state[Q, i] + t * step[DQ, i]) * (state[ABOVE, i] - dv)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def correct(targets, step, mu, start, stop):
    """Mehrotra's corrector: aim at mu less the second-order terms of the predictor's step."""
    for i in range(start, stop):
        targets[LOW, i] = mu - step[DP, i] * step[DV, i]
        targets[HIGH, i] = mu + step[DQ, i] * step[DV, i]


@njit(cache=True, nogil=True, error_model="numpy")
def move(state, step, t, start, stop):
    """Go t along the step."""
    for i in range(start, stop):
        state[P, i] += t * step[DP, i]
        state[Q, i] += t * step[DQ, i]
        state[BELOW, i] += t * step[DV, i]
        state[ABOVE, i] -= t * step[DV, i]


@njit(cache=True, nogil=True, error_model="numpy")
def settle(state, a, start, stop):
    """Let p or q grow by what is missing of a = q - p."""
    for i in range(start, stop):
        missing = a[i] - (state[Q, i] - state[P, i])
        if missing > 0.0:
            state[Q, i] += missing
        else:
            state[P, i] -= missing
