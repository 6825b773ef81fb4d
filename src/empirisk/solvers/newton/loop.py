"""One Newton iteration on any kind of problem: the current point, the direction, and the step by line search."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from empirisk.lazy import lazy
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.line_search import line_search


@dataclass(frozen=True)
class NewtonPoint:
    """An iterate of Newton's method with what is computed there.

    Attributes
    ----------
    w, b, f : arrays
        Weights, or coefficients behind a kernel; intercepts; predictions.
    gram_weights : array
        K w behind a kernel, else w itself: w'Kv and w'v both are products of ``gram_weights`` with v.
    value : float
        The objective.
    u : array or None
        The dual point of the certificate; None for the slopes at f.
    gradient, constant : arrays
        The gradient in w and in b, where the loop keeps them.
    gram_gradient : array
        K times the gradient behind a kernel, else the gradient.
    near : bool
        Whether the last step was so short that a certificate may succeed.
    """

    w: Array
    b: Any
    f: Array
    gram_weights: Array
    value: float
    u: Array | None = None
    gradient: Array = field(default_factory=lambda: np.zeros(0))
    constant: Any = 0.0
    gram_gradient: Array = field(default_factory=lambda: np.zeros(0))
    near: bool = False

    @lazy
    def point(self) -> Point:
        """The weights and the dual point."""
        return Point(self.w, self.b, self.u)


@dataclass(frozen=True)
class NewtonDirection:
    """A step in w, b, f and K w, and the squared Newton decrement."""

    w: Array
    b: Any
    f: Array
    gram_weights: Array
    decrement: float


class NewtonLoop:
    """How Newton's method moves on one kind of problem: a subclass says where it starts and what a step is."""

    def __init__(self, problem: Problem, watch: Watch):
        self.problem, self.watch = problem, watch

    def start(self, point: Point | None) -> NewtonPoint:
        """The iterate at a point; at the origin without one, or if the objective overflows there."""
        place = None if point is None else self.at(point)
        return place if place is not None and np.isfinite(place.value) else self.at(self.problem.origin())

    def at(self, point: Point) -> NewtonPoint:
        """The iterate at a point."""
        raise NotImplementedError

    def learn_from(self, rough: "NewtonLoop") -> None:
        """Take over what a loop on some of the rows has computed, as its factor of the Hessian."""

    def promising(self, place: NewtonPoint) -> bool:
        """Whether a certificate may succeed here: computing one may cost more than a step."""
        return place.near

    def moved(self, place: NewtonPoint) -> NewtonPoint:
        """The iterate after one step."""
        raise NotImplementedError

    def penalty(self, w: Array, gram_weights: Array) -> float:
        """R, given w and K w."""
        return self.problem.penalty.value(w)

    def penalty_slope(self, w: Array, gram_weights: Array, dw: Array) -> float:
        """The derivative of R along dw."""
        return float(np.vdot(self.problem.penalty.gradient(w), dw))

    def searched(
        self, place: NewtonPoint, step: NewtonDirection, there: NewtonPoint | None = None
    ) -> tuple[float, float]:
        """The step size along a direction, and the objective there; ``there`` is its end where that is known."""

        def along(t: float) -> tuple[float, float]:
            if t == 1 and there is not None:
                return there.value, float(np.vdot(there.gradient, step.w)) + there.constant * step.b
            w, gram_weights, f = place.w + t * step.w, place.gram_weights + t * step.gram_weights, place.f + t * step.f
            slope = self.penalty_slope(w, gram_weights, step.w) + float(np.vdot(self.problem.slopes(f), step.f))
            return self.penalty(w, gram_weights) + self.problem.loss_sum(f), slope

        return line_search(along, place.value, -step.decrement)


class KernelNorm(NewtonLoop):
    """R = l2/2 w'Kw of coefficients behind a kernel, whose products K w are known."""

    def penalty(self, w: Array, gram_weights: Array) -> float:
        """l2/2 w'Kw."""
        return 0.5 * self.problem.penalty.l2 * float(np.vdot(w, gram_weights))

    def penalty_slope(self, w: Array, gram_weights: Array, dw: Array) -> float:
        """l2 w'K dw."""
        return self.problem.penalty.l2 * float(np.vdot(gram_weights, dw))
