"""A primal-dual method for losses with corners, or without a bound on their curvature.

Chambolle and Pock's steps for  min_x max_u  R(w) + <u, f(x)> - sum_i s_i loss*(y_i, u_i / s_i),  with step sizes that
adapt, averages, and restarts that also balance primal and dual, as in Google's PDLP.
"""

from typing import NamedTuple

import numpy as np

from empirisk.problem import Array, Point
from empirisk.solvers.first_order.scaling import Scaling, typical_step

#: Steps between two looks at the residuals, which cost as much as a step.
LOOK = 5
#: A residual below this share of the place is rounding.
ROUNDING = 1e-15


class PrimalDualPoint(NamedTuple):
    """x with its predictions f, and u with its correlations g; sums and multiples of places are places."""

    x: Array
    f: Array
    u: Array
    g: Array

    def plus(self, factor: float, other: "PrimalDualPoint") -> "PrimalDualPoint":
        """self + factor * other."""
        return PrimalDualPoint(*(mine + factor * theirs for mine, theirs in zip(self, other, strict=True)))


class PrimalDual:
    """x' = prox(x - step / balance g),  u' = prox*(u + step balance (2 f' - f)),  in the sizes of columns and rows.

    ``balance`` is the ratio of dual to primal movement, learnt at every restart.
    """

    def __init__(self, scaling: Scaling, start: Point):
        self.scaling, self.problem = scaling, scaling.problem
        x = scaling.pack(start)
        f = scaling.predict(x)
        u = np.zeros_like(f) if start.u is None else start.u
        self.here = PrimalDualPoint(x, f, u, scaling.correlate(u))
        self.scale = self.problem.scale[:, None] if self.problem.classes else self.problem.scale
        self.entries = max(self.problem.classes, 1)
        self.balance, self.length = 1.0 / typical_step(self.problem), 0.5
        self.steps = self.since = 0
        self.stuck, self.objective = False, np.inf
        self._restart(self.here)

    def _restart(self, place: PrimalDualPoint) -> None:
        """Begin a new average at a place; the residual there measures the progress of the next ones."""
        self.here = self.origin = place
        self.total, self.weight = place.plus(-1.0, place), 0.0
        self.since, self.first, self.last = 0, self._residual(place), np.inf

    def step(self) -> None:
        """One step, with the longest step size that the movement allows, and a restart where it pays."""
        while True:
            length, there = self.length, self._advance(self.here, self.length)
            limit = self._longest(self.here, there)
            self.steps += 1
            # The exponents 0.3 and 0.6 are those of PDLP (Applegate et al., 2021), whose step rule this is.
            shrunk = (1 - (self.steps + 1) ** -0.3) * limit
            self.length = min(shrunk, (1 + (self.steps + 1) ** -0.6) * length)
            if length <= limit:
                break
            if not self.length * self.balance > 0:  # products of huge numbers have left no step that is safe
                there = self.here
                break
        rests = np.array_equal(there.x, self.here.x) and np.array_equal(there.u, self.here.u)
        self.here = there
        self.total, self.weight = self.total.plus(length, there), self.weight + length
        self.since += 1
        if self.since % LOOK == 0:
            self._consider_restart()
        self.stuck = rests or self.first <= ROUNDING * self._square(self.here.x, self.here.u) ** 0.5
        self.objective = self.problem.penalty.value(self.here.x[:-1]) + self.problem.loss_sum(self.here.f)
        self.unsettled = self.scaling.unsettled(self.here.x, self.here.g)

    def _advance(self, place: PrimalDualPoint, length: float) -> PrimalDualPoint:
        step = length / self.balance / self.scaling.sizes
        x = self.scaling.prox(place.x - step * place.g, step)
        f = self.scaling.predict(x)
        u = self._ascend(place.u, 2 * f - place.f, length)
        return PrimalDualPoint(x, f, u, self.scaling.correlate(u))

    def _ascend(self, u: Array, f: Array, length: float) -> Array:
        """The dual prox step at predictions f, by Moreau's identity from the prox of the loss."""
        rate = length * self.balance

        def ascend(s: Array, y: Array, u: Array, f: Array) -> Array:
            scale = rate * self.problem.per_output(s)
            goal = u / scale + f
            return scale * (goal - self.problem.loss.prox(y, goal, 1.0 / rate))

        return self.problem.rowspace.map(ascend, self.problem.scale, self.problem.y, u, f, width=self.entries)

    def _square(self, x: Array, u: Array) -> float:
        """The squared length of a movement, in the sizes and the balance."""
        return self.balance * self.scaling.square(x) + float((u * u / self.scale).sum()) / self.balance

    def _longest(self, here: PrimalDualPoint, there: PrimalDualPoint) -> float:
        """The longest step size with which this movement would have been safe."""
        u = there.u - here.u
        crossing = abs(float(np.vdot(u, there.f - here.f)))
        return 0.5 * self._square(there.x - here.x, u) / crossing if crossing > 0 else np.inf

    def _residual(self, place: PrimalDualPoint) -> float:
        """How far one step of unit length in x, and one in u, would move."""
        step = 1.0 / (self.balance * self.scaling.sizes)
        x = place.x - self.scaling.prox(place.x - step * place.g, step)
        return self._square(x, place.u - self._ascend(place.u, place.f, 1.0)) ** 0.5

    def _consider_restart(self) -> None:
        """Restart at the better of the last place and the average, when either has come far or comes no further."""
        mean = self.total.plus(1.0 / self.weight - 1.0, self.total)
        here, there = self._residual(self.here), self._residual(mean)
        residual = min(here, there)
        # PDLP restarts after progress by 5, by 1.25 where it ends, and after 0.36 of all steps.
        far = residual <= 0.2 * self.first
        no_further = residual <= 0.8 * self.first and residual > self.last
        self.last = residual
        if not (far or no_further or self.since >= 0.36 * self.steps):
            return
        place = mean if there < here else self.here
        primal = self.scaling.square(place.x - self.origin.x) ** 0.5
        dual = float(((place.u - self.origin.u) ** 2 / self.scale).sum()) ** 0.5
        if primal > 0 and dual > 0:
            self.balance = float(np.sqrt(self.balance * dual / primal))
        self._restart(place)

    def point(self) -> Point:
        """The current point, with its dual point."""
        return self.scaling.point(self.here.x, self.here.u)

    @property
    def settled(self) -> bool:
        """Whether a restart has just happened, when the place is at its best."""
        return self.since == 0
