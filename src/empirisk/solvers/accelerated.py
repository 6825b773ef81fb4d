"""Accelerated proximal gradient (FISTA) with backtracking and adaptive restart, for losses of bounded curvature."""

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Point
from empirisk.solvers.metric import Metric, Progress
from empirisk.solvers.primal_dual import PrimalDual

Array = NDArray[np.float64]


class ProximalGradient:
    """x <- prox(z - gradient(z) / (steepness * sizes)) from the extrapolated point z = x + momentum (x - previous x).

    The steepness is raised until the quadratic model holds, and lowered a little at every step. The momentum starts
    anew whenever it points uphill.
    """

    def __init__(self, metric: Metric, start: Point, accelerated: bool):
        self.metric, self.problem, self.accelerated = metric, metric.problem, accelerated
        self.x = metric.pack(start)
        self.f = metric.predict(self.x)
        self.objective = self._objective()
        self.steepness = float(self.problem.loss.curvature_bound)
        self.progress, self.stuck = Progress(), False
        self._forget()

    def _forget(self) -> None:
        """Start the momentum anew."""
        self.before, self.f_before, self.age = self.x, self.f, 1.0

    def _objective(self) -> float:
        return self.problem.penalty.value(self.x[:-1]) + self.problem.loss_sum(self.f)

    def step(self) -> None:
        """One proximal gradient step."""
        age = 0.5 * (1 + np.sqrt(1 + 4 * self.age**2)) if self.accelerated else 1.0
        momentum = (self.age - 1) / age
        z, f = self.x + momentum * (self.x - self.before), self.f + momentum * (self.f - self.f_before)
        u = self.problem.slopes(f)
        gradient = self.metric.correlate(u)
        x, f_next = self._descend(z, f, u, gradient)
        uphill = float((self.metric.sizes * (z - x) * (x - self.x)).sum()) > 0
        rests = np.array_equal(x, self.x) and np.array_equal(z, self.x)
        self.before, self.f_before, self.age = self.x, self.f, age
        self.x, self.f = x, f_next
        self.objective = self._objective()
        self.progress.note(self.objective, 1e-14 * abs(self.objective))
        self.stuck = rests or self.progress.over
        self.unsettled = self.metric.unsettled(x, gradient)
        self.steepness *= 0.7 if uphill else 0.98
        if uphill:
            self._forget()

    def _descend(self, z: Array, f: Array, u: Array, gradient: Array) -> tuple[Array, Array]:
        """The step from z that its quadratic model allows, and the predictions there."""
        value = self.problem.loss_sum(f)
        while True:
            step = 1.0 / (self.steepness * self.metric.sizes)
            x = self.metric.prox(z - step * gradient, step)
            f_next = self.metric.predict(x)
            bend = self.problem.loss_sum(f_next) - value - float(np.vdot(u, f_next - f))
            room = 0.5 * self.metric.square(x - z)
            if bend <= self.steepness * room + 1e-14 * abs(value) or room == 0:
                return x, f_next
            self.steepness *= min(10.0, max(1.5, bend / (self.steepness * room)))

    def point(self) -> Point:
        """The current point."""
        return self.metric.point(self.x)

    def settled(self) -> bool:
        """Every point is as good a moment as any other to look at the gap."""
        return True

    def successor(self) -> "ProximalGradient | PrimalDual":
        """What goes on from here where many steps were not enough: for FISTA, the primal-dual method."""
        if not self.accelerated:
            return self
        return PrimalDual(self.metric, self.metric.point(self.x, self.problem.slopes(self.f)))
