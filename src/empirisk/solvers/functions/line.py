"""The line x(t) = x - t direction through a point of any function, on which step rules search."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from empirisk.solvers.functions.objective import EPSILON, UserObjective

Array = NDArray[np.float64]
#: The share of t <gradient, direction> by which a step must lower the objective (Armijo): one half asks a quadratic for
#: no more than the distance to its minimum along the line.
DECREASE = 0.5
#: A fall of less than so many units in the last place of the objective is rounding, and its slope decides.
ROUNDING = 4 * EPSILON
#: Halvings of a first guess after which a line has no point below its beginning.
HALVINGS = 60
#: Doublings of a step after which the objective counts as unbounded below.
DOUBLINGS = 60


class Ray:
    """A point, its value and gradient, and the objective along a direction: minus the gradient, or what a method sets.

    The step rules of `empirisk.solvers.first_order.steps` see it as their line.
    """

    def __init__(self, objective: UserObjective, start: Array, decrease: float = DECREASE):
        self.objective, self.decrease = objective, decrease
        self.x, self.value = start, objective.value(start)
        self.differentiate()

    def differentiate(self) -> None:
        """The gradient at the point; the direction is that."""
        self.gradient = self.objective.gradient(self.x)
        self.direction = self.gradient

    @property
    def steepness(self) -> float:
        """How fast the objective falls along the line at its beginning."""
        return float(self.gradient @ self.direction)

    def at(self, t: float) -> float:
        """The objective at x(t)."""
        x = self.x - t * self.direction
        return self.objective.value(x) if np.isfinite(x).all() else np.inf

    def falls(self, t: float) -> bool:
        """Whether the objective has fallen enough; where that is lost in rounding, whether it is not rising yet."""
        value = self.at(t)
        if value <= self.value - self.decrease * t * self.steepness:
            return True
        if not abs(value - self.value) <= ROUNDING * abs(self.value):
            return False
        return float(self.objective.gradient(self.x - t * self.direction) @ self.direction) >= 0

    def moves(self, t: float) -> bool:
        """Whether any number of x changes."""
        return t > 0 and not np.array_equal(self.x - t * self.direction, self.x)

    def lowest(self, first: float) -> float:
        """A minimum along the line, by Brent's method between its beginning and a point at which it rises again."""
        t, below = first, self.at(first)
        for _ in range(HALVINGS):
            if below < self.value:
                break
            t *= 0.5
            below = self.at(t)
        else:
            return 0.0
        beyond = 2 * t
        for _ in range(DOUBLINGS):
            value = self.at(beyond)
            if value >= below:
                break
            t, below, beyond = beyond, value, 2 * beyond
        else:
            return np.inf
        # Values determine only half of the digits of a minimiser.
        found: Any = minimize_scalar(self.at, bounds=(0.0, beyond), method="bounded", options={"xatol": 1e-8 * beyond})
        return float(found.x) if found.fun <= below else t

    def go(self, t: float, value: float | None = None) -> None:
        """Move to x(t); the gradient there is not known yet."""
        self.value = self.at(t) if value is None else value
        self.x = self.x - t * self.direction
