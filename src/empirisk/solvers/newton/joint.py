"""Joint multiclass problems: Newton's method for smooth ones, an interior-point method where there are corners."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.coupled import Coupling
from empirisk.linalg.gradients import Good, JointGradients
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Proofs, Solver, Watch
from empirisk.solvers.corners.joint_interior import fits, interior_point
from empirisk.solvers.newton.line_search import line_search
from empirisk.solvers.thinning import thinned

Array = NDArray[np.float64]
ROWS_PER_WEIGHT = 8
EXACT = 1e5


class JointNewton(Solver):
    """Newton steps on the weights of all classes at once.

    Softmax with a smooth penalty: steps of Newton's method, found by preconditioned conjugate gradients, each with a
    line search. Corners, of the Crammer-Singer loss or of an l1 penalty: a
    primal-dual interior-point method, whose matrix of (d+1)K rows must fit in memory.

    >>> er.LogisticRegression(multiclass="joint", solver=er.solvers.JointNewton()).fit(np.eye(3), [0, 1, 2]).solver_
    'joint_newton'
    """

    def refuses(self, problem: Problem) -> str:
        if not problem.classes:
            return "it handles joint multiclass losses only"
        if _has_corners(problem) and not fits(problem):
            return f"with corners it needs a matrix of {np.prod(problem.width)} rows, which is too large"
        return ""

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if _has_corners(problem):
            return interior_point(problem, watch)
        state = State(problem, self._thinned_start(problem, watch) if start is None else start)
        proofs, patience = Proofs(problem, watch), 0
        while True:
            step = state.newton_step(watch)
            small = 0.5 * step.decrement <= 0.1 * np.sqrt(watch.tol) * problem.magnitude(state.value)
            before, t = state.value, state.move(step)
            point = Point(state.w, state.b, step.u if t == 1 else None)
            if (small or patience) and proofs(point):
                return point
            patience = patience + 1 if before - state.value <= 1e-14 * abs(before) else 0
            if patience >= 3:
                watch.status = Status.STALLED
            if watch(point, objective=state.value):
                return proofs.best(point)

    def _thinned_start(self, problem: Problem, watch: Watch) -> Point:
        """A start from every eighth row, on long data."""
        thin = thinned(problem)
        if thin is None or len(thin.y) < ROWS_PER_WEIGHT * np.prod(problem.width):
            return problem.origin()
        loose = Watch(tol=1e-2, max_iter=20, deadline=watch.deadline, interrupted=watch.interrupted)
        return self.solve(thin, loose)


def _has_corners(problem: Problem) -> bool:
    return problem.penalty.l1 > 0 or not np.isfinite(problem.loss.curvature_bound)


@dataclass
class Step:
    """A direction in w, b and f, the squared Newton decrement, and the dual point that the full step leads to."""

    w: Array
    b: Array
    f: Array
    u: Array
    decrement: float


class State:
    """A point with its predictions and objective; weights and intercepts centred, their mean over classes is no use."""

    def __init__(self, problem: Problem, start: Point):
        self.problem = problem
        self.w, self.b = (part - part.mean(axis=-1, keepdims=True) for part in (start.w, np.asarray(start.b)))
        self.f = problem.predict(Point(self.w, self.b))
        self.value = problem.primal(Point(self.w, self.b), self.f)
        self.system = JointGradients(problem.design, problem.penalty.l2, problem.intercept)

    def newton_step(self, watch: Watch) -> Step:
        """Solve the normal equations for the step; precisely enough for the certificate when it is the last."""
        problem = self.problem
        u = problem.slopes(self.f)
        gradient = problem.penalty.l2 * self.w + problem.design.tdot(u)
        constant = u.sum(axis=0)
        shares = u + problem.scale[:, None] * problem.loss.onehot(problem.y, problem.classes)
        coupling = Coupling(np.maximum(shares, 0.0))
        self.system.renew(coupling)
        w, b = self.system.solve(-gradient, -constant, self._good(watch), lambda: watch.must_stop())
        f = problem.design.dot(w) + b
        return Step(w, b, f, u + coupling(f), -float(np.vdot(gradient, w) + constant @ b))

    def _good(self, watch: Watch) -> Good:
        """When conjugate gradients may stop: early while far away, at the precision of the certificate near the end."""
        l2, value = self.problem.penalty.l2, self.problem.magnitude(self.value)
        # Where tol is about that of rounding, equal problems are to have equal weights, whose errors are its root.
        enough = watch.tol * min(0.1, EXACT * watch.tol) * value

        def good(residual: Array, size: float, first: float) -> bool:
            if size > 0.5 * min(0.2, first / value) * first and size > enough:
                return False
            near = first <= 1e-3 * value and l2 > 0
            return not near or 0.5 * float(np.vdot(residual, residual)) / l2 <= enough

        return good

    def move(self, step: Step) -> float:
        """Go along the step as far as the line search says, which is returned."""
        problem = self.problem

        def along(t: float) -> tuple[float, float]:
            w, f = self.w + t * step.w, self.f + t * step.f
            value = problem.penalty.value(w) + problem.loss_sum(f)
            slope = problem.penalty.l2 * float(np.vdot(w, step.w)) + float(np.vdot(problem.slopes(f), step.f))
            return value, slope

        t, value = line_search(along, self.value, -step.decrement)
        self.w, self.b, self.f, self.value = self.w + t * step.w, self.b + t * step.b, self.f + t * step.f, value
        return t
