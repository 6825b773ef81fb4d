"""Newton's method (IRLS) with a line search, for smooth losses and smooth penalties."""

from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.threads import single_threaded_blas
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.newton.hessian import Hessian, Step
from empirisk.solvers.newton.line_search import line_search
from empirisk.solvers.thinning import thinned

Array = NDArray[np.float64]
#: The gap of a start on every eighth row.
ROUGH = 1e-2


class Newton(Solver):
    """Newton steps  (R'' + A' diag(s loss'') A) step = -gradient, each with a line search.

    The Hessian is factored by columns, or by rows when n < d; with thousands of both the step is found by conjugate
    gradients. On long data the first steps are taken on every eighth row, whose Hessian then serves for all.

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
        with single_threaded_blas():
            return self._solve(problem, watch, start)

    def _solve(self, problem: Problem, watch: Watch, start: Point | None) -> Point:
        thin = thinned(problem) if start is None else None
        if thin is None:
            return self._descend(problem, watch, start or problem.origin(), Hessian(problem))
        loose = Watch(tol=ROUGH, max_iter=20, deadline=watch.deadline, interrupted=watch.interrupted)
        rough = Hessian(thin)
        start = self._descend(thin, loose, thin.origin(), rough)
        return self._descend(problem, watch, start, Hessian(problem, rough.factor))

    @staticmethod
    def _descend(problem: Problem, watch: Watch, start: Point, hessian: Hessian) -> Point:
        state = State.at(problem, start)
        patience = 0
        while True:
            point = state.point()
            promising = state.dual_error() <= watch.tol * problem.magnitude(state.value)
            if (promising or patience) and watch.proves(problem, point):
                return point
            before = state
            try:
                state = state.moved(hessian.step(state.gradient, state.constant, state.f))
                hessian.learn(*before.change_to(state))
            except LinAlgError:  # the curvature has vanished to rounding
                patience = 3
            patience = patience + 1 if before.value - state.value <= 1e-14 * abs(before.value) else 0
            if patience >= 3:
                watch.status = Status.STALLED
            if watch(Point(state.w, state.b), objective=state.value):
                return state.point()


@dataclass(frozen=True)
class State:
    """A point with its predictions, objective, slopes and gradient."""

    problem: Problem
    w: Array
    b: float
    f: Array
    u: Array
    gradient: Array
    constant: float
    value: float

    @classmethod
    def at(cls, problem: Problem, point: Point) -> "State":
        """The state at a point; at the origin if the objective overflows there."""
        state = cls._through(problem, point.w, float(point.b))
        if np.isfinite(state.value):
            return state
        origin = problem.origin()
        return cls._through(problem, origin.w, float(origin.b))

    @classmethod
    def _through(cls, problem: Problem, w: Array, b: float) -> "State":
        """The state at (w, b), with one pass over the data."""

        def slopes(rows: slice, f: Array) -> Array:
            return problem.scale[rows] * problem.loss.derivative(problem.y[rows], f)

        return cls._with(problem, w, b, *problem.design.through(w, b, slopes))

    @classmethod
    def _with(cls, problem: Problem, w: Array, b: float, f: Array, u: Array, correlations: Array) -> "State":
        gradient = problem.penalty.l2 * w + correlations
        constant = float(u.sum()) if problem.intercept else 0.0
        return cls(problem, w, b, f, u, gradient, constant, problem.primal(Point(w, b), f))

    def point(self) -> Point:
        """The weights and the dual point of the slopes."""
        return Point(self.w, self.b, self.u)

    def dual_error(self) -> float:
        """About the duality gap: what the dual point of the slopes loses for not being stationary and balanced."""
        l2 = self.problem.penalty.l2
        lost = 0.5 * float(self.gradient @ self.gradient) / l2 if l2 > 0 else float(np.abs(self.gradient @ self.w))
        return lost + abs(self.constant) * min(abs(self.b), self._balancing_rate())

    def _balancing_rate(self) -> float:
        """About what balancing the slopes costs per unit: constant / 2 over the sum of the curvatures.

        That sum is taken to be a tenth of the largest one possible; nothing is known where there is none.
        """
        steepest = self.problem.loss.curvature_bound * float(self.problem.scale.sum())
        return 5 * abs(self.constant) / steepest if np.isfinite(steepest) else np.inf

    def change_to(self, other: "State") -> tuple[Array, Array]:
        """The step in (w, b) to another state, and the change of the gradient."""
        step = np.append(other.w - self.w, other.b - self.b)
        return step, np.append(other.gradient - self.gradient, other.constant - self.constant)

    def moved(self, step: Step) -> "State":
        """The state as far along the step as the line search says."""
        problem = self.problem
        there = self._through(problem, self.w + step.w, self.b + step.b)
        steep = float(there.gradient @ step.w + there.constant * step.b)
        df = there.f - self.f

        def along(t: float) -> tuple[float, float]:
            if t == 1:
                return there.value, steep
            w, f = self.w + t * step.w, self.f + t * df
            slope = problem.penalty.l2 * float(w @ step.w) + float(problem.slopes(f) @ df)
            return problem.primal(Point(w, self.b + t * step.b), f), slope

        t, _ = line_search(along, self.value, -step.decrement)
        if t in (0, 1):
            return there if t else self
        w, b, f = self.w + t * step.w, self.b + t * step.b, self.f + t * df
        u = problem.slopes(f)
        return self._with(problem, w, b, f, u, problem.design.tdot(u))
