"""Kinks: the corners of losses and penalties, a slope to the left and a slope to the right of each place."""

import numpy as np
from numpy.typing import NDArray

from empirisk.losses.base import Loss
from empirisk.problem import Problem

Array = NDArray[np.float64]
TINY = np.finfo(float).tiny


def corners_of(loss: Loss) -> dict[float, tuple[float, float]]:
    """The kinks max(left a, right a), a = z - place, that the ramps of a loss add up to."""
    corners: dict[float, list[float]] = {}
    for ramp in loss.corners:
        slopes = corners.setdefault(-ramp.offset / ramp.slope, [0.0, 0.0])
        slopes[ramp.slope > 0] += ramp.slope * ramp.height
    return {place: (left, right) for place, (left, right) in corners.items()}


def spread_of(problem: Problem) -> float:
    """The size of the numbers z that a loss sees: 1 for margins, the mean deviation of y for residuals."""
    if problem.classes or problem.loss.margin_form:
        return 1.0
    # Targets that are all alike have no size; any positive one will do.
    return float(np.abs(problem.y - problem.origin().b).mean()) + 1e-8


class Kinks:
    """Kinks of one kind, one per entry:  max(left a, right a) = max of v a over left <= v <= right.

    Kept are the distances v - left and right - v, because near a bound v itself has no digits left, and the slacks
    p, q > 0 with a = q - p. They start in the middle of the slopes, with the given slack on both sides of a. On the
    central path p (v - left) = q (right - v) = mu.
    """

    def __init__(self, a: Array, left: Array, right: Array, slack: Array | float):
        self.left, self.right, self.size = left, right, 2 * a.size
        self.below = self.above = 0.5 * (right - left)
        self.p, self.q = np.maximum(-a, 0) + slack, np.maximum(a, 0) + slack
        self.low: Array | float = 0.0
        self.high: Array | float = 0.0
        self.dv = self.dp = self.dq = np.zeros(a.shape)

    @property
    def v(self) -> Array:
        """The slope: between left and right."""
        return np.where(self.below < self.above, self.left + self.below, self.right - self.above)

    @property
    def bound(self) -> Array:
        """The nearer of the two slopes."""
        return np.where(self.below < self.above, self.left, self.right)

    def curvature(self) -> Array:
        """dv/da on the central path."""
        return 1.0 / (self.q / self.above + self.p / self.below)

    def aim(self, mu: float) -> None:
        """Aim at complementarity mu, without second-order terms."""
        self.low = self.high = mu

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before (Mehrotra's corrector)."""
        self.low, self.high = mu - self.dp * self.dv, mu + self.dq * self.dv

    def centralise(self, t: float, mu: float) -> None:
        """Aim also at bringing back the products that the step, gone t along, would throw far off mu."""
        below, above = self.below + t * self.dv, self.above - t * self.dv
        self.low = self.low + recentred((self.p + t * self.dp) * below, mu)
        self.high = self.high + recentred((self.q + t * self.dq) * above, mu)

    def offset(self) -> Array:
        """h, such that dv = curvature (da + h) aims at the targets."""
        return self.q - self.p + self.low / self.below - self.high / self.above

    def direct(self, x: Array) -> float:
        """Compute the step for x = da + h, and return the longest t <= 1 that keeps everything positive."""
        self.dv = self.curvature() * x
        self.dp = (self.low - self.p * self.dv) / self.below - self.p
        self.dq = (self.high + self.q * self.dv) / self.above - self.q
        parts = ((self.below, self.dv), (self.above, -self.dv), (self.p, self.dp), (self.q, self.dq))
        return min(longest(values, changes) for values, changes in parts)

    def gap_after(self, t: float) -> float:
        """The sum of p (v - left) + q (right - v), their duality gap, after going t along the step."""
        below, above = self.below + t * self.dv, self.above - t * self.dv
        return float(np.vdot(self.p + t * self.dp, below) + np.vdot(self.q + t * self.dq, above))

    def barrier(self, t: float, mu: float) -> float:
        """right q - left p - mu (log p + log q), which the central path minimises, after going t along the step."""
        p, q = self.p + t * self.dp, self.q + t * self.dq
        return float(np.sum(self.right * q - self.left * p) - mu * np.sum(np.log(p) + np.log(q)))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self.below, self.above = self.below + t * self.dv, self.above - t * self.dv
        self.p, self.q = self.p + t * self.dp, self.q + t * self.dq

    def absorb(self, a: Array) -> None:
        """Take the position as it is, and let p or q grow by what rounding left of a - (q - p).

        So p and q never fall below the rounding of the predictions, and the curvatures stay in bounds.
        """
        missing = a - (self.q - self.p)
        self.p, self.q = self.p + np.maximum(-missing, 0), self.q + np.maximum(missing, 0)

    def inside(self) -> NDArray[np.bool_]:
        """Where v is strictly between its slopes while p and q vanish: the kink holds the position at its corner."""
        size = self.p.mean() + self.q.mean() + TINY
        reach = self.right - self.left
        return (self.p / size < self.below / reach) & (self.q / size < self.above / reach)


def longest(values: Array, changes: Array) -> float:
    """The largest t <= 1 with values + t changes >= 0."""
    shrinking = changes < 0
    return min(1.0, float((values[shrinking] / -changes[shrinking]).min(initial=np.inf)))


def recentred(products: Array, mu: float) -> Array:
    """What brings products into [mu/10, 10 mu]; far above it, no more than 10 mu is taken off (Gondzio's corrector)."""
    return np.maximum(np.clip(products, mu / 10, 10 * mu) - products, -10 * mu)
