"""The l1 penalty as an interior-point method for joint losses sees it."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Pulls:
    """l1 |w| = max of v w over |v| <= l1, one pull v for every weight w = q - p with slacks p, q > 0.

    On the central path p (v + l1) = q (l1 - v) = mu. Kept are below = v + l1 and above = l1 - v, because near a bound v
    itself has no digits left.
    """

    def __init__(self, w: Array, l1: float, slack: Array):
        self.l1, self.size = l1, 2 * w.size
        self.below, self.above = np.full(w.shape, l1), np.full(w.shape, l1)
        self.p, self.q = np.maximum(-w, 0) + slack, np.maximum(w, 0) + slack
        self.low: Array | float = 0.0
        self.high: Array | float = 0.0
        self.dv = self.dp = self.dq = np.zeros(w.shape)

    @property
    def v(self) -> Array:
        """The pulls, between -l1 and l1."""
        return np.where(self.below < self.above, self.below - self.l1, self.l1 - self.above)

    def curvature(self) -> Array:
        """dv/dw on the central path."""
        return 1.0 / (self.q / self.above + self.p / self.below)

    def aim(self, mu: float) -> None:
        """Aim at complementarity mu, without second-order terms."""
        self.low = self.high = mu

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before."""
        self.low, self.high = mu - self.dp * self.dv, mu + self.dq * self.dv

    def centralise(self, t: float, mu: float) -> None:
        """Aim besides at bringing back the products that the step, gone t along, would throw far off mu."""
        below, above = self.below + t * self.dv, self.above - t * self.dv
        self.low = self.low + recentred((self.p + t * self.dp) * below, mu)
        self.high = self.high + recentred((self.q + t * self.dq) * above, mu)

    def offset(self) -> Array:
        """h, such that dv = curvature (dw + h) aims at the targets."""
        return self.q - self.p + self.low / self.below - self.high / self.above

    def direct(self, x: Array) -> float:
        """Compute the step for x = dw + h, and return the longest t <= 1 that keeps everything positive."""
        self.dv = self.curvature() * x
        self.dp = (self.low - self.p * self.dv) / self.below - self.p
        self.dq = (self.high + self.q * self.dv) / self.above - self.q
        parts = ((self.below, self.dv), (self.above, -self.dv), (self.p, self.dp), (self.q, self.dq))
        return min(longest(values, changes) for values, changes in parts)

    def gap(self) -> float:
        """The sum of p (v + l1) + q (l1 - v): the duality gap of the pulls."""
        return self.gap_after(0.0)

    def gap_after(self, t: float) -> float:
        """The gap after going t along the step."""
        below, above = self.below + t * self.dv, self.above - t * self.dv
        return float(np.vdot(self.p + t * self.dp, below) + np.vdot(self.q + t * self.dq, above))

    def barrier(self, t: float, mu: float) -> float:
        """l1 (p + q) - mu (log p + log q), which the central path minimises, after going t along the step."""
        p, q = self.p + t * self.dp, self.q + t * self.dq
        return float(self.l1 * (p.sum() + q.sum()) - mu * (np.log(p).sum() + np.log(q).sum()))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self.below, self.above = self.below + t * self.dv, self.above - t * self.dv
        self.p, self.q = self.p + t * self.dp, self.q + t * self.dq

    def settle(self, w: Array) -> None:
        """Take the weights as they are, and let p or q grow by what rounding left of w - (q - p)."""
        missing = w - (self.q - self.p)
        self.p, self.q = self.p + np.maximum(-missing, 0), self.q + np.maximum(missing, 0)


def longest(values: Array, changes: Array) -> float:
    """The largest t <= 1 with values + t changes >= 0."""
    shrinking = changes < 0
    return min(1.0, float((values[shrinking] / -changes[shrinking]).min(initial=np.inf)))


def recentred(products: Array, mu: float) -> Array:
    """What brings products into [mu/10, 10 mu]; far above it, no more than 10 mu is taken off (Gondzio's corrector)."""
    return np.maximum(np.clip(products, 0.1 * mu, 10 * mu) - products, -10 * mu)
