"""Step rules of descent: how far to go along the line x(t) = x - t direction, whatever the function is."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

STEPS = ("auto", "backtracking", "exact", "fixed", "decreasing", "decreasing_root", "bold_driver")
#: Steps that need no decrease, and so do not stall at corners.
AT_CORNERS = ("auto", "fixed", "decreasing", "decreasing_root")
#: Steps without a lower objective after which a descent only orbits at rounding; a few hundred may still flatten it.
MOST_LEVEL = 1000
#: No longer step is tried, so that halving it makes it shorter.
LONGEST = float(np.finfo(float).max)


class LineFunction(Protocol):
    """A function of one number t, the step size: what a step rule knows of the objective."""

    value: float

    def at(self, t: float) -> float:
        """The objective at x(t)."""
        ...

    def falls(self, t: float) -> bool:
        """Whether a step of this size is short enough: the objective has fallen, and is not yet rising again."""
        ...

    def moves(self, t: float) -> bool:
        """Whether x(t) differs from x in any digit."""
        ...

    def lowest(self, first: float) -> float:
        """The t at which the objective is lowest, searched for from a first guess; infinite where there is none."""
        ...

    def go(self, t: float, value: float | None = None) -> None:
        """Move to x(t), whose objective may be known."""
        ...


class StepRule(Protocol):
    """How a step size is found: `move` takes step number k = 1, 2, ..., and returns whether there was one to take."""

    def move(self, line: LineFunction, k: int) -> bool:
        """Move the line to its next point."""
        ...


def step_rule(step: str, first: float, grow: float, shrink: float) -> StepRule:
    """The rule of that name, with its first step size.

    >>> step_rule("decreasing", 0.5, 1.1, 0.5)
    Decreasing(first=0.5, power=1.0, delay=1.0)
    """
    rules: dict[str, StepRule] = {
        "fixed": Decreasing(first, 0.0),
        "backtracking": Backtracking(first, shrink),
        "exact": Exact(first),
        "decreasing": Decreasing(first, 1.0),
        "decreasing_root": Decreasing(first, 0.5),
        "bold_driver": BoldDriver(first, grow, shrink),
    }
    return rules[step]


@dataclass
class Decreasing:
    """t = first * (1 + (k - 1) / delay)^-power; power 0 is a fixed step."""

    first: float
    power: float
    delay: float = 1.0

    def size(self, k: int) -> float:
        """The step size of iteration k."""
        return self.first * (1 + (k - 1) / self.delay) ** -self.power

    def move(self, line: LineFunction, k: int) -> bool:
        """Move by the step size of iteration k."""
        line.go(self.size(k))
        return bool(np.isfinite(line.value))


@dataclass
class Backtracking:
    """The longest of the step sizes t, shrink t, ... at the end of which the objective still falls.

    For a quadratic this is Armijo's rule with one half; unlike it, it works when the decrease is below rounding.
    """

    t: float
    shrink: float
    level: int = 0  # steps since the objective was last lower in any digit

    def move(self, line: LineFunction, k: int) -> bool:
        """Try one size above the last, then smaller ones."""
        self.t = min(self.t / self.shrink, LONGEST)
        while not line.falls(self.t):
            self.t *= self.shrink
            if not line.moves(self.t):
                return False
        before = line.value
        line.go(self.t)
        self.level = 0 if line.value < before else self.level + 1
        return self.level < MOST_LEVEL


@dataclass
class Exact:
    """The t at which the objective is lowest along the line."""

    t: float

    def move(self, line: LineFunction, k: int) -> bool:
        """Move there."""
        t = line.lowest(self.t)
        if not np.isfinite(t):
            return False
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

    def move(self, line: LineFunction, k: int) -> bool:
        """Try the step size, and change it."""
        value = line.at(self.t)
        if value <= line.value:
            line.go(self.t, value)
            self.t = min(self.t * self.grow, LONGEST)
        else:
            self.t *= self.shrink
        return line.moves(self.t)
