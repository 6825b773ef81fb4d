"""Newton's method behind a kernel, for smooth losses of one output."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from empirisk.maps.implicit import GramDesign
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.newton.course import Direction, KernelNorm, Place
from empirisk.solvers.newton.kernel_systems import system_for

Array = NDArray[np.float64]
#: Curvatures above this, in units of the scale, would leave no digits for the others.
STEEPEST = 1e12
#: A factor is kept while each step promises at most this share of what the last one did.
KEEP = 0.01


class Samples(KernelNorm):
    """Steps on the coefficients of the samples, by a factor or by conjugate gradients."""

    def __init__(self, problem: Problem, watch: Watch, direct: int):
        super().__init__(problem, watch)
        self.design = cast(GramDesign, problem.design)
        self._system = system_for(problem, watch, direct)
        self._decrement = np.inf

    def start(self, point: Point | None) -> Place:
        """The place at a point; at the origin if the objective overflows there."""
        if point is not None:
            place = self._at(point)
            if np.isfinite(place.value):
                return place
        return self._at(self.problem.origin())

    def _at(self, point: Point) -> Place:
        image = self.design.dot(point.w) if point.w.any() else np.zeros(len(point.w))
        f = image + float(point.b)
        value = self.penalty(point.w, image) + self.problem.loss_sum(f)
        return self._with(point.w.copy(), float(point.b), image, value)

    def _with(self, w: Array, b: float, image: Array, value: float) -> Place:
        """The place with its slopes, its gradient l2 w + u and the image of that."""
        f = image + b
        u = self.problem.slopes(f)
        gradient = self.problem.penalty.l2 * w + u
        constant = float(u.sum()) if self.problem.intercept else 0.0
        return Place(w, b, f, image, value, u, gradient, constant, self.design.dot(gradient))

    def promising(self, place: Place) -> bool:
        """Whether what the dual point of the slopes loses is within tol."""
        gap = 0.5 * float(np.vdot(place.gradient, place.pushed)) / self.problem.penalty.l2
        gap += abs(place.constant * place.b)
        return gap <= self.watch.tol * self.problem.magnitude(place.value)

    def moved(self, place: Place) -> Place:
        """As far along Newton's step as the line search says."""
        step = self._direction(place) if self._system.ready else None
        # Near the solution the curvatures hardly change: the last factor does while it gains much.
        if step is None or step.decrement > KEEP * self._decrement:
            self._system.renew(np.minimum(self.problem.curvatures(place.f), STEEPEST * self.problem.scale))
            step = self._direction(place)
        self._decrement = step.decrement
        t, value = self.searched(place, step)
        return self._with(place.w + t * step.w, place.b + t * step.b, place.image + t * step.image, value)

    def _direction(self, place: Place) -> Direction:
        w, b = self._system.solve(-place.gradient, -place.pushed, -place.constant)
        image = self.design.dot(w)
        return Direction(w, b, image + b, image, -float(place.pushed @ w + place.constant * b))
