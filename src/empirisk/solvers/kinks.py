"""Kinks: the corners of losses and penalties as an interior-point method sees them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg import blocks
from empirisk.solvers import interior_loops as loops

Array = NDArray[np.float64]
ENTRY_BYTES = 64


def _sweep(kernel: Callable, arrays: tuple, size: int) -> list:
    """Run a compiled pass over fixed blocks in threads; the results in order."""

    def run(group: list[slice]):
        return kernel(*arrays, group[0].start, group[-1].stop)

    return blocks.in_threads(run, blocks.groups(size, ENTRY_BYTES))


class Kinks:
    """Kinks of one kind, one per entry:  max(left a, right a) = max of v a over left <= v <= right.

    Kept are the distances below = v - left and above = right - v, because near a bound v itself has no digits left,
    and the slacks p, q > 0 with a = q - p. The targets low and high are what p (v - left) and q (right - v) aim at; the
    step (dv, dp, dq) is the last direction computed.
    """

    def __init__(self, a: Array, left: Array, right: Array, slack: Array | float):
        """Start in the middle of the slopes, with the given slack on both sides of a."""
        self.left, self.right, self.size = left, right, len(a)
        self.below = 0.5 * (right - left)
        self.above = self.below.copy()
        self.p, self.q = np.maximum(-a, 0) + slack, np.maximum(a, 0) + slack
        self.low, self.high = np.zeros(self.size), np.zeros(self.size)
        self.dv, self.dp, self.dq = np.zeros(self.size), np.zeros(self.size), np.zeros(self.size)
        self._curvature, self._offset = np.empty(self.size), np.empty(self.size)

    @property
    def state(self) -> tuple[Array, Array, Array, Array]:
        """p, q, below, above."""
        return self.p, self.q, self.below, self.above

    @property
    def v(self) -> Array:
        """The slope: between left and right."""
        return np.where(self.below < self.above, self.left + self.below, self.right - self.above)

    @property
    def bound(self) -> Array:
        """The nearer of the two slopes."""
        return np.where(self.below < self.above, self.left, self.right)

    def gap(self) -> float:
        """The sum of p (v - left) + q (right - v): the duality gap of these kinks."""
        return float(self.p @ self.below + self.q @ self.above)

    def gap_after(self, t: float) -> float:
        """The gap after going t along the step."""
        return float(sum(_sweep(loops.gap_after, (*self.state, *self._step, t), self.size)))

    @property
    def _step(self) -> tuple[Array, Array, Array]:
        return self.dv, self.dp, self.dq

    def curvature(self) -> Array:
        """dv/da on the central path, computed anew."""
        _sweep(loops.curvatures, (*self.state, self._curvature), self.size)
        return self._curvature

    def predict(self) -> None:
        """Aim at complementarity zero."""
        self.low.fill(0.0)
        self.high.fill(0.0)

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before."""
        _sweep(loops.correct, (self.low, self.high, *self._step, mu), self.size)

    def offset(self) -> Array:
        """g, such that dv = curvature (da + g) aims at the targets."""
        _sweep(loops.offsets, (*self.state, self.low, self.high, self._offset), self.size)
        return self._offset

    def direct(self, e: Array) -> float:
        """Compute the step for e = da + g, and return the longest t <= 1 that keeps everything positive."""
        arrays = (*self.state, self.low, self.high, self._curvature, e, *self._step)
        return min(_sweep(loops.directions, arrays, self.size))

    def move(self, t: float) -> None:
        """Go t along the step."""
        _sweep(loops.move, (*self.state, *self._step, t), self.size)

    def settle(self, a: Array) -> None:
        """Take the position as it is, and let p or q grow by what rounding left of a - (q - p).

        So p and q never fall below the rounding of the predictions, and the curvatures stay in bounds.
        """
        _sweep(loops.settle, (self.p, self.q, a), self.size)

    def inside(self) -> Array:
        """Where v is strictly between its slopes while p and q vanish: the kink holds the position at its corner."""
        size = self.p.mean() + self.q.mean() + np.finfo(float).tiny
        reach = self.right - self.left
        return (self.p / size < self.below / reach) & (self.q / size < self.above / reach)
