"""A fit once more, with every point on its way."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from empirisk.errors import EmpiriskError
from empirisk.fits.choice import is_given
from empirisk.fits.fit import Progress, Run
from empirisk.fits.hard_margin import hard_margins
from empirisk.problem import Point, Problem


@dataclass(frozen=True)
class Replay:
    """The problems that a machine solves, and the points its solver went through.

    Attributes
    ----------
    machine : machine
        A copy that `at` sets to any of the states.
    problems : list of Problem
        What was minimised: one problem, or one for each of several functions.
    states : list of lists of Point
        From the best constant to the solution, a point for each problem; a problem that is solved stays so.
    solver : str
        The name of the solver that ran.
    """

    machine: Any
    problems: list[Problem]
    states: list[list[Point]]
    solver: str

    @property
    def problem(self) -> Problem:
        """The only problem."""
        return self.problems[0]

    @property
    def points(self) -> list[Point]:
        """The points of the only problem."""
        return [state[0] for state in self.states]

    def at(self, number: int) -> Any:
        """The machine as it was in a state."""
        for name, value in self.machine._coefficients(self.problems, self.states[number]).items():
            setattr(self.machine, name, value)
        return self.machine


def is_replayable(machine: Any) -> bool:
    """Whether the machine states its problem, so that its fit can be watched."""
    return hasattr(machine, "problems")


def replay(machine: Any, X: Any, y: ArrayLike, *, several: bool = False, **changed: Any) -> Replay:
    """Fit a copy of the machine, with some parameters changed, and keep the points; the machine stays as it is.

    ``several`` tells whether several functions at once will do.
    """
    if not is_replayable(machine):
        raise EmpiriskError(f"The fit of {type(machine).__name__} cannot be replayed; give an Empirisk machine.")
    if not is_given(machine.C):
        # The C that was chosen, which the steps to it would only hide.
        fitted = machine if hasattr(machine, "C_") else clone(machine).fit(X, y)
        changed["C"] = fitted.C_
    copy = clone(machine).set_params(**changed)
    found = copy.problems(X, y)
    copy = found.machine
    if not several and (len(found) > 1 or found[0].classes):
        raise EmpiriskError(
            f"The {type(machine).__name__} fits several functions at once; give two classes or one target."
        )
    run = Run(copy.solver, copy._limits())
    problems, starts = hard_margins(found, run)
    ways = [[problem.origin()] for problem in problems]

    def watched(number: int) -> Progress:
        def note(iteration: int, point: Point) -> bool:
            if iteration == 1:  # where a first solver gives up, the next one starts anew
                ways[number] = ways[number][:1]
            ways[number].append(Point(np.array(point.w), point.b, point.u))
            return False

        return note

    fits = replace(run, progress=watched)(problems, starts)
    for way, fit in zip(ways, fits, strict=True):
        way.append(fit.point)
    longest = max(map(len, ways))
    states = [[way[min(number, len(way) - 1)] for way in ways] for number in range(longest)]
    return Replay(copy, problems, states, fits[0].certificate.solver)
