"""The scores of all classes as an interior-point method sees them: smooth, or as a maximum with slacks."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.joint import Coupling
from empirisk.problem import Problem
from empirisk.solvers.pulls import longest, recentred

Array = NDArray[np.float64]


class SmoothScores:
    """Scores of a smooth joint loss: their multipliers P follow from the predictions, and nothing is kept apart."""

    bends = True
    size = 0

    def __init__(self, problem: Problem, f: Array):
        self._problem = problem
        self.settle(f)

    def settle(self, f: Array) -> None:
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


class MaximumScores:
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
        """Aim besides at bringing back the products that the step, gone t along, would throw far off mu."""
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

    def settle(self, f: Array) -> None:
        """Take the predictions as they are, and let slacks grow by what rounding left of xi - f - cost."""
        heights = f + self._cost
        self.slack = (heights + self.slack).max(axis=1, keepdims=True) - heights
