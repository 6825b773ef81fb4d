"""Kinks: the corners of losses and penalties, a slope to the left and a slope to the right of each place."""

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.linalg import blocks
from empirisk.linalg.threads import in_threads
from empirisk.losses.base import Loss
from empirisk.problem import Problem

Array = NDArray[np.float64]
#: Rows of the state, of the targets and of the step.
P, Q, BELOW, ABOVE = 0, 1, 2, 3
LOW, HIGH = 0, 1
DV, DP, DQ = 0, 1, 2
#: What a pass reads and writes for each kink: eight numbers.
ENTRY_BYTES = 64


def corners_of(loss: Loss) -> dict[float, tuple[float, float]]:
    """The kinks max(left a, right a), a = z - place, that the ramps of a loss add up to."""
    corners: dict[float, list[float]] = {}
    for ramp in loss.corners:
        slopes = corners.setdefault(-ramp.offset / ramp.slope, [0.0, 0.0])
        slopes[ramp.slope > 0] += ramp.slope * ramp.height
    return {place: (left, right) for place, (left, right) in corners.items()}


def spread_of(problem: Problem) -> float:
    """The size of the numbers z that a loss sees: 1 for margins, the mean deviation of y for residuals."""
    if problem.loss.margin_form:
        return 1.0
    # Targets that are all alike have no size; any positive one will do.
    return float(np.abs(problem.y - problem.origin().b).mean()) + 1e-8


@njit(cache=True, nogil=True, error_model="numpy")
def kink_curvatures(state, out, start, stop):
    """dv/da on the central path, into ``out``."""
    for i in range(start, stop):
        out[i] = 1.0 / (state[Q, i] / state[ABOVE, i] + state[P, i] / state[BELOW, i])


@njit(cache=True, nogil=True, error_model="numpy")
def kink_offsets(state, targets, out, start, stop):
    """g with dv = curvature (da + g), aiming at the targets."""
    for i in range(start, stop):
        pull = targets[LOW, i] / state[BELOW, i] - targets[HIGH, i] / state[ABOVE, i]
        out[i] = state[Q, i] - state[P, i] + pull


@njit(cache=True, nogil=True, error_model="numpy")
def kink_directions(state, targets, curvature, e, step, start, stop):
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
def kink_gap_after(state, step, t, start, stop):
    """The sum of p (v - left) + q (right - v) after going t along the step."""
    total = 0.0
    for i in range(start, stop):
        dv = t * step[DV, i]
        total += (state[P, i] + t * step[DP, i]) * (state[BELOW, i] + dv)
        total += (state[Q, i] + t * step[DQ, i]) * (state[ABOVE, i] - dv)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def correct_targets(targets, step, mu, start, stop):
    """Mehrotra's corrector: aim at mu less the second-order terms of the predictor's step."""
    for i in range(start, stop):
        targets[LOW, i] = mu - step[DP, i] * step[DV, i]
        targets[HIGH, i] = mu + step[DQ, i] * step[DV, i]


@njit(cache=True, nogil=True, error_model="numpy")
def move_kinks(state, step, t, start, stop):
    """Go t along the step."""
    for i in range(start, stop):
        state[P, i] += t * step[DP, i]
        state[Q, i] += t * step[DQ, i]
        state[BELOW, i] += t * step[DV, i]
        state[ABOVE, i] -= t * step[DV, i]


@njit(cache=True, nogil=True, error_model="numpy")
def absorb_rounding(state, a, start, stop):
    """Let p or q grow by what is missing of a = q - p."""
    for i in range(start, stop):
        missing = a[i] - (state[Q, i] - state[P, i])
        if missing > 0.0:
            state[Q, i] += missing
        else:
            state[P, i] -= missing


class Kinks:
    """Kinks of one kind, one per entry:  max(left a, right a) = max of v a over left <= v <= right.

    Kept are the distances v - left and right - v, because near a bound v itself has no digits left, and the slacks
    p, q > 0 with a = q - p. They start in the middle of the slopes, with the given slack on both sides of a.
    """

    def __init__(self, a: Array, left: Array, right: Array, slack: Array | float):
        self.left, self.right, self.size = left, right, len(a)
        half = 0.5 * (right - left)
        self._state = np.stack([np.maximum(-a, 0) + slack, np.maximum(a, 0) + slack, half, half])
        self._targets, self._step = np.zeros((2, self.size)), np.zeros((3, self.size))
        self._curvature, self._offset = np.empty(self.size), np.empty(self.size)

    def _sweep(self, kernel: Callable, *arrays) -> list:
        """Run a compiled pass over fixed blocks in threads; the results in order."""

        def run(group: list[slice]):
            return kernel(*arrays, group[0].start, group[-1].stop)

        return in_threads(run, blocks.groups(self.size, ENTRY_BYTES))

    @property
    def v(self) -> Array:
        """The slope: between left and right."""
        _, _, below, above = self._state
        return np.where(below < above, self.left + below, self.right - above)

    @property
    def bound(self) -> Array:
        """The nearer of the two slopes."""
        return np.where(self._state[BELOW] < self._state[ABOVE], self.left, self.right)

    def gap(self) -> float:
        """The sum of p (v - left) + q (right - v): the duality gap of these kinks."""
        p, q, below, above = self._state
        return float(p @ below + q @ above)

    def gap_after(self, t: float) -> float:
        """The gap after going t along the step."""
        return float(sum(self._sweep(kink_gap_after, self._state, self._step, t)))

    def curvature(self) -> Array:
        """dv/da on the central path, computed again."""
        self._sweep(kink_curvatures, self._state, self._curvature)
        return self._curvature

    def predict(self) -> None:
        """Aim at complementarity zero."""
        self._targets.fill(0.0)

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before."""
        self._sweep(correct_targets, self._targets, self._step, mu)

    def offset(self) -> Array:
        """g, such that dv = curvature (da + g) aims at the targets."""
        self._sweep(kink_offsets, self._state, self._targets, self._offset)
        return self._offset

    def direct(self, e: Array) -> float:
        """Compute the step for e = da + g, and return the longest t <= 1 that keeps everything positive."""
        return min(self._sweep(kink_directions, self._state, self._targets, self._curvature, e, self._step))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self._sweep(move_kinks, self._state, self._step, t)

    def absorb(self, a: Array) -> None:
        """Take the position as it is, and let p or q grow by what rounding left of a - (q - p).

        So p and q never fall below the rounding of the predictions, and the curvatures stay in bounds.
        """
        self._sweep(absorb_rounding, self._state, a)

    def inside(self) -> NDArray[np.bool_]:
        """Where v is strictly between its slopes while p and q vanish: the kink holds the position at its corner."""
        p, q, below, above = self._state
        size = p.mean() + q.mean() + np.finfo(float).tiny
        reach = self.right - self.left
        return (p / size < below / reach) & (q / size < above / reach)
