"""What Newton's method needs of every kind of problem: a place, what it promises, and a step with a line search."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from empirisk.lazy import lazy
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import Watch

EPSILON = np.finfo(float).eps
#: Trials after which a step that is still too long is so by many digits; false position takes a few of them at a time.
#: The tangents at both ends meet where the line turns, but for rounding, if it is straight on either side.
FAR = 3


def line_search(along: Callable[[float], tuple[float, float]], value: float, slope: float) -> tuple[float, float]:
    """A step t that decreases a convex function along a line, and the value there.

    The full step is taken if it brings a tenth of the promised decrease; otherwise the root of the derivative is
    bracketed and closed in on by false position and bisection; a step far too long is cut to where tangents meet.

    Parameters
    ----------
    along : callable
        t -> (value, derivative) on the line.
    value, slope : float
        Value and derivative at t = 0.

    >>> line_search(lambda t: ((t - 0.25) ** 2, 2 * (t - 0.25)), 0.0625, -0.5)
    (0.25, 0.0)
    """
    if not slope < 0:
        return 0.0, value
    reached, steep = along(1.0)
    # The full step is taken where it falls by a tenth of what the slope promised and has left some of the slope.
    if reached <= value + 0.1 * slope and abs(steep) <= 0.9 * abs(slope):
        return 1.0, reached
    low, low_slope = 0.0, slope
    high, high_slope, high_value = 1.0, steep, reached
    best = (1.0, reached) if reached < value else (0.0, value)
    # A line that still falls at a hundred million steps falls for ever.
    while high_slope < 0 and high < 1e8 and np.isfinite(reached):
        low, low_slope = high, high_slope
        high *= 2
        reached, high_slope = along(high)
        if reached < best[1]:
            best = (high, reached)
    # Every third trial is a bisection, of the digits where the ends are of different sizes; sixty leave no double
    # between the ends where it matters.
    for trial in range(60):
        # By convexity no place between the ends is lower than the best one by more.
        if -low_slope * (high - low) <= EPSILON * abs(best[1]):
            break
        known = np.isfinite(high_slope) and high_slope > low_slope and trial % 3 < 2
        # Where nothing has fallen yet, the slope at zero may be rounding: a half, a quarter, an eighth ... of the rest.
        middle = 0.5 * (low + high) if low else high * 0.5 ** (trial // 3 + 1)
        halfway = (low * high) ** 0.5 if high > 4 * low > 0 else middle
        t = low - low_slope * (high - low) / (high_slope - low_slope) if known else halfway
        if low == 0 and trial >= FAR and np.isfinite(high_value + high_slope):
            meet = (high_value - value - high_slope * high) / (slope - high_slope)
            t = min(t, max(meet, EPSILON * high))
        if not low < t < high:
            break
        reached, steep = along(t)
        if reached < best[1]:
            best = (t, reached)
        # A tenth of the slope left is exact enough for a direction that is an estimate itself.
        if np.isfinite(steep) and abs(steep) <= 0.1 * abs(slope) and best[0] == t:
            break
        if steep < 0:
            low, low_slope = t, steep
        else:
            high, high_slope, high_value = t, steep, reached
    return best


@dataclass(frozen=True)
class Place:
    """A point with all that follows from it.

    Attributes
    ----------
    w, b, f : arrays
        Weights, or coefficients behind a kernel; intercepts; predictions.
    image : array
        K w behind a kernel, else w itself: inner products with w are products with its image.
    value : float
        The objective.
    u : array or None
        A dual point to prove with; None for the slopes at f.
    gradient, constant : arrays
        The gradient in w and in b, where the course keeps them.
    pushed : array
        The image of the gradient.
    near : bool
        Whether the step that led here was so short that the proof may succeed.
    """

    w: Array
    b: Any
    f: Array
    image: Array
    value: float
    u: Array | None = None
    gradient: Array = field(default_factory=lambda: np.zeros(0))
    constant: Any = 0.0
    pushed: Array = field(default_factory=lambda: np.zeros(0))
    near: bool = False

    @lazy
    def point(self) -> Point:
        """The weights and the dual point."""
        return Point(self.w, self.b, self.u)


@dataclass(frozen=True)
class Direction:
    """A step in w, b, f and the image of w, and the squared Newton decrement."""

    w: Array
    b: Any
    f: Array
    image: Array
    decrement: float


class Course:
    """How Newton's method moves on one kind of problem: a subclass says where it starts and what a step is."""

    def __init__(self, problem: Problem, watch: Watch):
        self.problem, self.watch = problem, watch

    def start(self, point: Point | None) -> Place:
        """The place at a point; at the origin without one, or if the objective overflows there."""
        place = None if point is None else self.at(point)
        return place if place is not None and np.isfinite(place.value) else self.at(self.problem.origin())

    def at(self, point: Point) -> Place:
        """The place at a point."""
        raise NotImplementedError

    def learn_from(self, rough: "Course") -> None:
        """Take over what a course on some of the rows has found out."""

    def promising(self, place: Place) -> bool:
        """Whether a proof may succeed."""
        return place.near

    def moved(self, place: Place) -> Place:
        """The place after one step."""
        raise NotImplementedError

    def penalty(self, w: Array, image: Array) -> float:
        """R, given w and its image."""
        return self.problem.penalty.value(w)

    def penalty_slope(self, w: Array, image: Array, dw: Array) -> float:
        """The derivative of R along dw."""
        return float(np.vdot(self.problem.penalty.gradient(w), dw))

    def searched(self, place: Place, step: Direction, there: Place | None = None) -> tuple[float, float]:
        """How far to go along a direction, and the objective there; its end may be known already."""

        def along(t: float) -> tuple[float, float]:
            if t == 1 and there is not None:
                return there.value, float(np.vdot(there.gradient, step.w)) + there.constant * step.b
            w, image, f = place.w + t * step.w, place.image + t * step.image, place.f + t * step.f
            slope = self.penalty_slope(w, image, step.w) + float(np.vdot(self.problem.slopes(f), step.f))
            return self.penalty(w, image) + self.problem.loss_sum(f), slope

        return line_search(along, place.value, -step.decrement)


class KernelNorm(Course):
    """R = l2/2 |w|^2 of coefficients, whose images under K are known."""

    def penalty(self, w: Array, image: Array) -> float:
        """l2/2 w'Kw."""
        return 0.5 * self.problem.penalty.l2 * float(np.vdot(w, image))

    def penalty_slope(self, w: Array, image: Array, dw: Array) -> float:
        """l2 w'K dw."""
        return self.problem.penalty.l2 * float(np.vdot(image, dw))
