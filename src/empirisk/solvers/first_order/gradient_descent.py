"""Gradient descent, and the subgradient method where there are corners."""

import numpy as np
from scipy.optimize import brentq

from empirisk.problem import Point, Problem
from empirisk.solvers.base import BOUNDED_CURVATURE, CONVEX, EXPLICIT, SMOOTH, Need, Solver, Watch
from empirisk.solvers.first_order.scaling import largest_eigenvalue
from empirisk.solvers.first_order.steps import AT_CORNERS, STEPS, Decreasing, StepRule, step_rule
from empirisk.stop import Ending

#: Steps before the first look at the gap.
FIRST_LOOK = 5
#: The power method finds an eigenvalue from below: so much is added to be safe.
SAFETY = 1.05
#: Bisection alone brings the widest bracket of doubles down to ten digits in fewer.
HALVINGS = 2200


NO_CORNERS = SMOOTH._replace(words=f"{SMOOTH.words} for this step, or step='decreasing'")
BOUND_OR_RATE = BOUNDED_CURVATURE._replace(words=f"{BOUNDED_CURVATURE.words} for step='fixed', or a rate")
GRADIENT = Need(
    "a penalty l1 |w|_1 + l2/2 |w|^2, or one with a gradient",
    lambda problem: problem.penalty.plain or problem.penalty.smooth,
)


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

    #: Steps are cheap, and on badly scaled columns thousands of them.
    iteration_limit = 20_000

    def __init__(self, step: str = "auto", rate: float | None = None, grow: float = 1.1, shrink: float = 0.5):
        self.step = step
        self.rate = rate
        self.grow = grow
        self.shrink = shrink

    @property
    def needs(self) -> tuple[Need, ...]:
        """Some steps stall at corners, and a fixed one needs a rate or a bound on the curvature."""
        at_corners = () if self.step in AT_CORNERS else (NO_CORNERS,)
        bound = (BOUND_OR_RATE,) if self.step == "fixed" and self.rate is None else ()
        return (EXPLICIT, CONVEX, GRADIENT, *at_corners, *bound)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        self.require("step", self.step in STEPS, f"is not known; choose one of {list(STEPS)}")
        self.require("rate", self.rate is None or 0 < self.rate < np.inf, "must be a positive number, or None")
        self.require("grow", self.grow > 1, "must be above 1")
        self.require("shrink", 0 < self.shrink < 1, "must lie between 0 and 1")
        line = GradientLine(problem, problem.origin() if start is None else start)
        rule = self._rule(line)
        best, lowest, looked, moved = line.point(), line.value, FIRST_LOOK, True
        while True:
            steps = watch.iterations
            # A proof costs about two steps: near the end after a tenth more of them, else at every doubling.
            near = line.unsettled() <= watch.tol * problem.magnitude(line.value) and steps >= 1.1 * looked
            if near or not moved or steps >= 2 * looked:
                looked = max(steps, FIRST_LOOK)
                if watch.proves(problem, best):
                    return best
                if not moved:
                    watch.status = Ending.STALLED
                    return best
            moved = rule.move(line, steps + 1) and line.steepness > 0
            if line.value <= lowest:
                best, lowest = line.point(), line.value
            if watch(line.point(), objective=line.value):
                return best
            if moved:
                line.differentiate()

    def _rule(self, line: "GradientLine") -> StepRule:
        """The step rule, with its first step size."""
        problem = line.problem
        if self.rate is not None:
            first = self.rate / float(problem.scale.sum())
        else:
            first = line.value / line.steepness if 0 < line.value < np.inf and line.steepness > 0 else 1.0
        step = self.step
        if step == "auto":
            step = "backtracking" if SMOOTH.holds(problem) else "decreasing_root"
            if step == "decreasing_root" and problem.penalty.l2 > 0:
                return Decreasing(first, 1.0, max(1.0, 1.0 / (first * problem.penalty.l2)))
        if step == "fixed" and self.rate is None:
            first = 1.0 / curvature(problem)
        return step_rule(step, first, self.grow, self.shrink)


def curvature(problem: Problem) -> float:
    """The largest curvature of the objective; a few per cent more, to be safe."""
    largest = largest_eigenvalue(problem.design, problem.scale, problem.intercept)
    return SAFETY * problem.loss.curvature_bound * largest + problem.penalty.l2 or 1.0


class GradientLine:
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
        """The gradient at the point, and its predictions A g."""
        problem, penalty = self.problem, self.problem.penalty
        u = problem.slopes(self.f)
        loss = problem.design.tdot(u)
        self.gradient = loss + penalty.gradient(self.w)
        if not penalty.smooth:
            at_zero = loss - np.clip(loss, -penalty.l1, penalty.l1)
            self.gradient = np.where(self.w == 0, at_zero, self.gradient + penalty.l1 * np.sign(self.w))
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
        penalty = np.vdot(self.problem.penalty.gradient(self.w - t * self.gradient), self.gradient)
        return -float(penalty + np.vdot(self.problem.slopes(self.f - t * self.slant), self.slant))

    def falls(self, t: float) -> bool:
        """Whether the objective, which is convex, still falls at x(t): it then has fallen all the way."""
        return self.slope(t) <= 0

    def moves(self, t: float) -> bool:
        """Whether there is a step."""
        return t > 0

    def lowest(self, first: float) -> float:
        """The root of the derivative: bracketed, then found; 0 where rounding leaves no direction of descent."""
        if not self.slope(0.0) < 0:
            return 0.0
        high = first
        while self.slope(high) < 0 and np.isfinite(high):
            high *= 2
        if not np.isfinite(high):
            return np.inf
        # Ten digits of the step are more than a direction is worth; there is no smallest step.
        return float(brentq(self.slope, 0.0, high, xtol=1e-300, rtol=1e-10, maxiter=HALVINGS))

    def go(self, t: float, value: float | None = None) -> None:
        """Move to x(t), whose objective may be known."""
        self.value = self.at(t) if value is None else value
        self.w, self.b, self.f = self.w - t * self.gradient, self.b - t * self.constant, self.f - t * self.slant
