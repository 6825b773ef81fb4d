"""Newton's method (IRLS) with a line search, for smooth losses and smooth penalties."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.factor import ConjugateGradients, NormalEquations
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.search import line_search
from empirisk.solvers.thinning import thinned

Array = NDArray[np.float64]
DIRECT = 4096
KEEP = 0.01


class Newton(Solver):
    """Newton steps  (R'' + A' diag(s loss'') A) step = -gradient, each with a line search.

    The Hessian is factored by columns, or by rows when n < d; above `DIRECT` unknowns the step is found by conjugate
    gradients. On long data the first steps are taken on every eighth row.

    >>> er.LogisticRegression(solver=er.solvers.Newton()).fit([[0.0], [1.0], [2.0]], [0, 1, 1]).solver_
    'newton'
    """

    def refuses(self, problem: Problem) -> str:
        if problem.classes:
            return "it handles one output; joint losses need solver='joint_newton'"
        if problem.loss.corners:
            return "the loss has corners"
        if problem.penalty.l1 > 0:
            return "the penalty has corners"
        return ""

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if start is None:
            start = self._thinned_start(problem, watch)
        state = State.at(problem, start)
        patience = 0
        while True:
            state.differentiate(problem)
            if state.dual_error(problem) <= watch.tol * problem.magnitude(state.value) or patience:
                point = Point(state.w, state.b, state.u)
                if watch.proves(problem, point):
                    return point
            before = state.value
            try:
                state.move(problem, state.newton_step(problem))
            except LinAlgError:  # the curvature has vanished to rounding
                patience = 3
            patience = patience + 1 if before - state.value <= 1e-14 * abs(before) else 0
            if patience >= 3:
                watch.status = Status.STALLED
            if watch(Point(state.w, state.b), objective=state.value):
                return Point(state.w, state.b)

    def _thinned_start(self, problem: Problem, watch: Watch) -> Point:
        """A start from every eighth row, on long data."""
        thin = thinned(problem)
        if thin is None:
            return problem.origin()
        loose = Watch(tol=1e-2, max_iter=20, deadline=watch.deadline, interrupted=watch.interrupted)
        return replace(self.solve(thin, loose), u=None)


@dataclass
class Step:
    """A direction in w, b and f, and the squared Newton decrement."""

    w: Array
    b: float
    f: Array
    decrement: float


@dataclass
class State:
    """A point with its predictions, slopes and objective."""

    w: Array
    b: float
    f: Array
    value: float
    u: Array
    gradient: Array
    constant: float
    system: NormalEquations | ConjugateGradients | None = None
    decrement: float = np.inf

    @classmethod
    def at(cls, problem: Problem, point: Point) -> "State":
        """The state at a point; at the origin if the objective overflows there."""
        f = problem.predict(point)
        value = problem.primal(point, f)
        if not np.isfinite(value):
            point = problem.origin()
            f = problem.predict(point)
            value = problem.primal(point, f)
        return cls(point.w.copy(), float(point.b), f, value, f, point.w, 0.0)

    def differentiate(self, problem: Problem) -> None:
        """Update slopes and gradient."""
        self.u = problem.slopes(self.f)
        self.gradient = problem.penalty.l2 * self.w + problem.design.tdot(self.u)
        self.constant = float(self.u.sum()) if problem.intercept else 0.0

    def dual_error(self, problem: Problem) -> float:
        """About the duality gap: what the dual point of the slopes loses for not being stationary."""
        l2 = problem.penalty.l2
        lost = 0.5 * float(self.gradient @ self.gradient) / l2 if l2 > 0 else float(np.abs(self.gradient @ self.w))
        return lost + abs(self.constant * self.b)

    def newton_step(self, problem: Problem) -> Step:
        """Solve the normal equations for the step.

        Near the solution the Hessian hardly changes: while steps with the last factor gain a factor of a hundred,
        it is kept.
        """
        if self.system is not None:
            step = self._solved(self.system)
            if step.decrement <= KEEP * self.decrement:
                self.decrement = step.decrement
                return step
        curvature = np.minimum(problem.curvatures(self.f), 1e12 * problem.scale)
        equations = NormalEquations if min(problem.design.shape) <= DIRECT else ConjugateGradients
        stiffness = np.full(len(self.w), problem.penalty.l2)
        self.system = equations(problem.design, curvature, stiffness, problem.intercept)
        step = self._solved(self.system)
        self.decrement = step.decrement
        return step

    def _solved(self, system: NormalEquations | ConjugateGradients) -> Step:
        w, b, f = system.solve(-self.gradient, -self.constant)
        return Step(w, b, f, -float(self.gradient @ w + self.constant * b))

    def move(self, problem: Problem, step: Step) -> None:
        """Go along the step as far as the line search says."""

        def along(t: float) -> tuple[float, float]:
            w, f = self.w + t * step.w, self.f + t * step.f
            value = problem.penalty.value(w) + problem.loss_sum(f)
            slope = problem.penalty.l2 * float(w @ step.w) + float(problem.slopes(f) @ step.f)
            return value, slope

        t, value = line_search(along, self.value, -step.decrement)
        self.w, self.b, self.f, self.value = self.w + t * step.w, self.b + t * step.b, self.f + t * step.f, value
