"""Step sizes along the negative gradient."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from empirisk.problem import Point, Problem

Array = NDArray[np.float64]


class Line:
    """A point, the (sub)gradient of least norm there, and the objective along it: x(t) = x - t gradient."""

    def __init__(self, problem: Problem, start: Point):
        self.problem = problem
        self.w, self.b = np.array(start.w, dtype=float), np.array(start.b, dtype=float)
        self.f = problem.predict(start)
        self.value = problem.primal(start, self.f)
        self.differentiate()

    def point(self) -> Point:
        """The point itself."""
        return Point(self.w, self.b if self.problem.classes else float(self.b))

    def differentiate(self) -> None:
        """The gradient at the point, and the predictions that it stands for."""
        problem, penalty = self.problem, self.problem.penalty
        u = problem.slopes(self.f)
        loss = problem.design.tdot(u)
        away = loss + penalty.l2 * self.w + penalty.l1 * np.sign(self.w)
        at_zero = loss - np.clip(loss, -penalty.l1, penalty.l1)
        self.gradient = np.where(self.w == 0, at_zero, away)
        self.constant = u.sum(axis=0) if problem.intercept else np.zeros_like(self.b)
        self.slant = problem.design.dot(self.gradient) + self.constant

    @property
    def steepness(self) -> float:
        """The squared norm of the gradient."""
        return float(np.vdot(self.gradient, self.gradient) + np.vdot(self.constant, self.constant))

    def unsettled(self) -> float:
        """About how much the objective may still fall."""
        fall = float(np.abs(self.gradient * self.w).sum())
        if self.problem.penalty.l2 > 0:
            fall = 0.5 * float(np.vdot(self.gradient, self.gradient)) / self.problem.penalty.l2
        return fall + float(np.abs(self.constant * self.b).sum())

    def at(self, t: float) -> float:
        """The objective at x(t)."""
        return self.problem.penalty.value(self.w - t * self.gradient) + self.problem.loss_sum(self.f - t * self.slant)

    def slope(self, t: float) -> float:
        """Its derivative in t, for a smooth penalty."""
        ridge = self.problem.penalty.l2 * np.vdot(self.w - t * self.gradient, self.gradient)
        return -float(ridge + np.vdot(self.problem.slopes(self.f - t * self.slant), self.slant))

    def go(self, t: float, value: float | None = None) -> None:
        """Move to x(t), whose objective may be known."""
        self.value = self.at(t) if value is None else value
        self.w, self.b, self.f = self.w - t * self.gradient, self.b - t * self.constant, self.f - t * self.slant


class Rule(Protocol):
    """How a step size is found: `move` takes a step, and tells whether there is any left to take."""

    def move(self, line: Line, k: int) -> bool:
        """Take step number k = 1, 2, ..."""
        ...


@dataclass
class Decreasing:
    """t = first * (1 + (k - 1) / delay)^-power; power 0 is a fixed step."""

    first: float
    power: float
    delay: float = 1.0

    def move(self, line: Line, k: int) -> bool:
        """Move by the step size of iteration k."""
        line.go(self.first * (1 + (k - 1) / self.delay) ** -self.power)
        return bool(np.isfinite(line.value)) and line.steepness > 0


@dataclass
class Backtracking:
    """The longest of the step sizes t, shrink t, ... at the end of which the objective still falls.

    For a quadratic this is Armijo's rule with one half; unlike it, it works when the decrease is below rounding.
    """

    t: float
    shrink: float

    def move(self, line: Line, k: int) -> bool:
        """Try one size above the last, then smaller ones."""
        self.t /= self.shrink
        while not line.slope(self.t) <= 0:
            self.t *= self.shrink
            if self.t == 0:
                return False
        line.go(self.t)
        return line.steepness > 0


@dataclass
class Exact:
    """The t at which the objective is lowest along the line."""

    t: float

    def move(self, line: Line, k: int) -> bool:
        """Bracket the root of the derivative, and find it."""
        if line.steepness == 0:
            return False
        high = self.t
        while line.slope(high) < 0 and np.isfinite(high):
            high *= 2
        if not np.isfinite(high):
            return False
        t = float(brentq(line.slope, 0.0, high, xtol=1e-300, rtol=1e-10))
        if t > 0:
            self.t = t
        line.go(t)
        return t > 0


@dataclass
class BoldDriver:
    """Longer after a decrease; shorter, with the step taken back, after an increase."""

    t: float
    grow: float
    shrink: float

    def move(self, line: Line, k: int) -> bool:
        """Try the step size, and change it."""
        value = line.at(self.t)
        if value <= line.value:
            line.go(self.t, value)
            self.t *= self.grow
        else:
            self.t *= self.shrink
        return self.t > 0 and line.steepness > 0
