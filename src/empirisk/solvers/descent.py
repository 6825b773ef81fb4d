"""Gradient descent, and the subgradient method where there are corners."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from empirisk.certificate import Status
from empirisk.errors import EmpiriskError
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.metric import typical_step

Array = NDArray[np.float64]
STEPS = ("auto", "backtracking", "exact", "fixed", "decreasing", "decreasing_root", "bold_driver")
AT_CORNERS = ("auto", "fixed", "decreasing", "decreasing_root")


class GradientDescent(Solver):
    """x <- x - t gradient P(x), with the step size t found in one of several ways.

    Where the loss or the penalty has corners the gradient is the subgradient of least norm, steps must shrink, and
    the best point met is kept.

    Parameters
    ----------
    step : str, default "auto"
        "backtracking": t is shrunk until the objective falls by half of what the slope promises;
        "exact": t minimises the objective along the line;
        "fixed": t stays the same;
        "decreasing", "decreasing_root": t falls as 1/k or 1/sqrt(k) over the iterations k;
        "bold_driver": t grows after every decrease, and shrinks, taking the step back, after an increase;
        "auto": backtracking where everything is smooth; at corners decreasing, at the pace of the l2 penalty where
        there is one, else as 1/sqrt(k).
    rate : float or None
        The (first) step size for the mean P / sum_i s_i, so that a good rate depends neither on C nor on the number of
        samples. None takes 1 / curvature for fixed steps, else a step that undoes the loss of a typical sample.
    grow, shrink : float, default 1.1 and 0.5
        Factors of the bold driver; ``shrink`` is also that of backtracking.

    >>> er.LogisticRegression(solver=er.solvers.GradientDescent()).fit([[0.0], [1.0], [2.0]], [0, 1, 1]).solver_
    'gradient_descent'
    """

    iteration_limit = 20_000

    def __init__(self, step: str = "auto", rate: float | None = None, grow: float = 1.1, shrink: float = 0.5):
        self.step = step
        self.rate = rate
        self.grow = grow
        self.shrink = shrink

    def refuses(self, problem: Problem) -> str:
        if not problem.loss.convex:
            return "the loss is not convex"
        if has_corners(problem) and self.step not in AT_CORNERS:
            return f"step={self.step!r} stalls at corners; step='decreasing' does not"
        if self.step == "fixed" and self.rate is None and not problem.loss.curvature_bound < np.inf:
            return "the curvature of the loss has no bound, so that a fixed step needs a rate"
        return ""

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        self._check()
        state = State(problem, problem.origin() if start is None else start)
        rule = self._rule(problem)
        best, lowest, looked = state.point(), state.value, 5
        while True:
            state.differentiate()
            steps = watch.iterations
            if steps >= 2 * looked or (state.unsettled() <= watch.tol * abs(state.value) and steps >= 1.1 * looked):
                looked = max(steps, 5)
                if watch.proves(problem, best):
                    return best
            if not rule.move(state, steps + 1):
                watch.status = Status.STALLED
            if state.value <= lowest:
                best, lowest = state.point(), state.value
            if watch(state.point(), objective=state.value):
                return best

    def _check(self) -> None:
        if self.step not in STEPS:
            raise EmpiriskError(f"step={self.step!r} of GradientDescent is not known; choose one of {list(STEPS)}.")
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise EmpiriskError(f"rate={self.rate!r} of GradientDescent must be a positive number, or None.")
        if not (self.grow > 1 and 0 < self.shrink < 1):
            raise EmpiriskError(
                f"grow={self.grow!r} and shrink={self.shrink!r} of GradientDescent must be above 1, and between 0 and 1."
            )
