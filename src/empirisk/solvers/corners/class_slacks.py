"""What an interior-point method for joint losses keeps positive: the slacks of classes and of the l1 penalty."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.coupled import Coupling
from empirisk.problem import Problem

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
        """Aim also at bringing back the products that the step, gone t along, would throw far off mu."""
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

    def absorb(self, w: Array) -> None:
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


class SmoothClasses:
    """Scores of a smooth joint loss: their multipliers P follow from the predictions, and nothing is kept apart."""

    bends = True
    size = 0

    def __init__(self, problem: Problem, f: Array):
        self._problem = problem
        self.absorb(f)

    def absorb(self, f: Array) -> None:
        """Take the predictions."""
        self.u = self._problem.slopes(f)

    def coupling(self) -> Coupling:
        """The curvature of the loss."""
        onehot = self._problem.loss.onehot(self._problem.y, self._problem.classes)
        return Coupling(np.maximum(self.u + self._problem.scale[:, None] * onehot, 0.0))

    def aim(self, mu: float) -> None:
        """Nothing to aim at."""

    def correct(self, mu: float) -> None:
        """Nothing to aim at."""

    def centralise(self, t: float, mu: float) -> None:
        """Nothing to centralise."""

    def offset(self) -> None:
        """No offset: there is no complementarity."""

    def direct(self, change: Array) -> float:
        """Every step is allowed."""
        return 1.0

    def gap(self) -> float:
        """No complementarity."""
        return 0.0

    def gap_after(self, t: float) -> float:
        """No complementarity."""
        return 0.0

    def move(self, t: float) -> None:
        """Nothing moves but the predictions."""


class ClassSlacks:
    """Scores of  loss = max_j (cost_j + f_j) - f_y  as  min xi - f_y  with slacks  xi - f_j - cost_j >= 0.

    Each slack has a multiplier P_j > 0; those of a sample sum to its scale s, and the dual point is u = P - s onehot.
    On the central path P_j slack_j = mu.
    """

    bends = False

    def __init__(self, problem: Problem, f: Array):
        self._scale = problem.scale[:, None]
        self._own = problem.y.astype(int)[:, None]
        self._cost = problem.loss.cost(problem.y, problem.classes)
        heights = f + self._cost
        self.slack = heights.max(axis=1, keepdims=True) - heights + 1.0
        self.P = np.repeat(self._scale / problem.classes, problem.classes, axis=1)
        self.size = self.P.size
        self.target: Array | float = 0.0
        self.dP = self.dslack = np.zeros_like(self.P)

    @property
    def u(self) -> Array:
        """P - s onehot, whose own entry is minus the sum of the others."""
        u = self.P.copy()
        np.put_along_axis(u, self._own, 0.0, axis=1)
        np.put_along_axis(u, self._own, -u.sum(axis=1, keepdims=True), axis=1)
        return u

    def coupling(self) -> Coupling:
        """The curvature on the central path."""
        return Coupling(self.P / self.slack)

    def aim(self, mu: float) -> None:
        """Aim at complementarity mu, without second-order terms."""
        self.target = mu

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before."""
        self.target = mu - self.dP * self.dslack

    def centralise(self, t: float, mu: float) -> None:
        """Aim also at bringing back the products that the step, gone t along, would throw far off mu."""
        self.target = self.target + recentred((self.P + t * self.dP) * (self.slack + t * self.dslack), mu)

    def offset(self) -> Array:
        """h, such that dP = S (df + h) aims at the target."""
        return self.target / self.P - self.slack

    def direct(self, change: Array) -> float:
        """Take dP, and return the longest t <= 1 that keeps multipliers and slacks positive."""
        self.dP, self.dslack = change, (self.target - self.slack * change) / self.P - self.slack
        return min(longest(self.P, self.dP), longest(self.slack, self.dslack))

    def gap(self) -> float:
        """The sum of P slack: the duality gap of these scores."""
        return float(np.vdot(self.P, self.slack))

    def gap_after(self, t: float) -> float:
        """The gap after going t along the step."""
        return float(np.vdot(self.P + t * self.dP, self.slack + t * self.dslack))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self.P, self.slack = self.P + t * self.dP, self.slack + t * self.dslack

    def absorb(self, f: Array) -> None:
        """Take the predictions as they are, and let slacks grow by what rounding left of xi - f - cost."""
        heights = f + self._cost
        self.slack = (heights + self.slack).max(axis=1, keepdims=True) - heights
