"""Kinks: the corners of losses and penalties as an interior-point method sees them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg import blocks
from empirisk.solvers import interior_loops as loops

Array = NDArray[np.float64]
ENTRY_BYTES = 64


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

        return blocks.in_threads(run, blocks.groups(self.size, ENTRY_BYTES))

    @property
    def v(self) -> Array:
        """The slope: between left and right."""
        _, _, below, above = self._state
        return np.where(below < above, self.left + below, self.right - above)

    @property
    def bound(self) -> Array:
        """The nearer of the two slopes."""
        return np.where(self._state[loops.BELOW] < self._state[loops.ABOVE], self.left, self.right)

    def gap(self) -> float:
        """The sum of p (v - left) + q (right - v): the duality gap of these kinks."""
        p, q, below, above = self._state
        return float(p @ below + q @ above)

    def gap_after(self, t: float) -> float:
        """The gap after going t along the step."""
        return float(sum(self._sweep(loops.gap_after, self._state, self._step, t)))

    def curvature(self) -> Array:
        """dv/da on the central path, computed anew."""
        self._sweep(loops.curvatures, self._state, self._curvature)
        return self._curvature

    def predict(self) -> None:
        """Aim at complementarity zero."""
        self._targets.fill(0.0)

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before."""
        self._sweep(loops.correct, self._targets, self._step, mu)

    def offset(self) -> Array:
        """g, such that dv = curvature (da + g) aims at the targets."""
        self._sweep(loops.offsets, self._state, self._targets, self._offset)
        return self._offset

    def direct(self, e: Array) -> float:
        """Compute the step for e = da + g, and return the longest t <= 1 that keeps everything positive."""
        return min(self._sweep(loops.directions, self._state, self._targets, self._curvature, e, self._step))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self._sweep(loops.move, self._state, self._step, t)

    def settle(self, a: Array) -> None:
        """Take the position as it is, and let p or q grow by what rounding left of a - (q - p).

        So p and q never fall below the rounding of the predictions, and the curvatures stay in bounds.
        """
        self._sweep(loops.settle, self._state, a)

    def inside(self) -> NDArray[np.bool_]:
        """Where v is strictly between its slopes while p and q vanish: the kink holds the position at its corner."""
        p, q, below, above = self._state
        size = p.mean() + q.mean() + np.finfo(float).tiny
        reach = self.right - self.left
        return (p / size < below / reach) & (q / size < above / reach)
