"""Gradient descent, and the subgradient method where there are corners."""

import numpy as np

from empirisk.certificate import Status
from empirisk.errors import EmpiriskError
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.metric import largest_eigenvalue
from empirisk.solvers.steps import Backtracking, BoldDriver, Decreasing, Exact, Line, Rule

STEPS = ("auto", "backtracking", "exact", "fixed", "decreasing", "decreasing_root", "bold_driver")
AT_CORNERS = ("auto", "fixed", "decreasing", "decreasing_root")


class GradientDescent(Solver):
    """x <- x - t gradient P(x), with the step size t found in one of several ways.

    Where the loss or the penalty has corners the gradient is the subgradient of least norm, steps must shrink, and
    the best point met is kept.

    Parameters
    ----------
    step : str, default "auto"
        "backtracking": t is shrunk until the objective still falls at the end of the step;
        "exact": t minimises the objective along the line;
        "fixed": t stays the same;
        "decreasing", "decreasing_root": t falls as 1/k or 1/sqrt(k) over the iterations k;
        "bold_driver": t grows after every decrease, and shrinks, taking the step back, after an increase;
        "auto": backtracking where everything is smooth; at corners decreasing, at the pace of the l2 penalty where
        there is one, else as 1/sqrt(k).
    rate : float or None
        The (first) step size for the mean P / sum_i s_i, so that a good rate depends neither on C nor on the number of
        samples. None takes 1 / curvature for fixed steps, else Polyak's step P / |gradient|^2 at the start.
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
        line = Line(problem, problem.origin() if start is None else start)
        rule = self._rule(line)
        best, lowest, looked, moved = line.point(), line.value, 5, True
        while True:
            steps = watch.iterations
            near = line.unsettled() <= watch.tol * problem.magnitude(line.value) and steps >= 1.1 * looked
            if near or not moved or steps >= 2 * looked:
                looked = max(steps, 5)
                if watch.proves(problem, best):
                    return best
                if not moved:
                    watch.status = Status.STALLED
                    return best
            moved = rule.move(line, steps + 1)
            if line.value <= lowest:
                best, lowest = line.point(), line.value
            if watch(line.point(), objective=line.value):
                return best
            if moved:
                line.differentiate()

    def _check(self) -> None:
        if self.step not in STEPS:
            raise EmpiriskError(f"step={self.step!r} of GradientDescent is not known; choose one of {list(STEPS)}.")
        if self.rate is not None and not 0 < self.rate < np.inf:
            raise EmpiriskError(f"rate={self.rate!r} of GradientDescent must be a positive number, or None.")
        if not (self.grow > 1 and 0 < self.shrink < 1):
            raise EmpiriskError(
                f"grow={self.grow!r} and shrink={self.shrink!r} of GradientDescent must be above 1 and inside (0, 1)."
            )

    def _rule(self, line: Line) -> Rule:
        """The step rule, with its first step size."""
        problem = line.problem
        if self.rate is not None:
            first = self.rate / float(problem.scale.sum())
        else:
            first = line.value / line.steepness if 0 < line.value < np.inf and line.steepness > 0 else 1.0
        step = self.step
        if step == "auto":
            step = "backtracking" if not has_corners(problem) else "decreasing_root"
            if step == "decreasing_root" and problem.penalty.l2 > 0:
                return Decreasing(first, 1.0, max(1.0, 1.0 / (first * problem.penalty.l2)))
        if step == "fixed":
            return Decreasing(first if self.rate is not None else 1.0 / curvature(problem), 0.0)
        rules: dict[str, Rule] = {
            "backtracking": Backtracking(first, self.shrink),
            "exact": Exact(first),
            "decreasing": Decreasing(first, 1.0),
            "decreasing_root": Decreasing(first, 0.5),
            "bold_driver": BoldDriver(first, self.grow, self.shrink),
        }
        return rules[step]


def has_corners(problem: Problem) -> bool:
    """Whether the objective has points without a gradient."""
    loss = problem.loss
    # Joint losses list no corners: those without a bound on their curvature have them.
    return problem.penalty.l1 > 0 or bool(loss.corners) or (loss.joint and loss.curvature_bound == np.inf)


def curvature(problem: Problem) -> float:
    """The largest curvature of the objective; a few per cent more, to be safe."""
    largest = largest_eigenvalue(problem.design, problem.scale, problem.intercept)
    return 1.05 * problem.loss.curvature_bound * largest + problem.penalty.l2 or 1.0
