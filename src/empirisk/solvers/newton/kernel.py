"""Newton's method behind a kernel, for smooth losses of one output."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.corners.joint_interior import interior_point
from empirisk.solvers.newton.kernel_joint import solve_joint
from empirisk.solvers.newton.kernel_systems import NoProgress, system_for
from empirisk.solvers.newton.line_search import line_search

Array = NDArray[np.float64]
PATIENCE = 3
STEEPEST = 1e12
KEEP = 0.01


class KernelNewton(Solver):
    """Newton steps on the coefficients beta of f = K beta + b, each with a line search.

    With W the curvatures s loss'' of the predictions, a step needs the factor of  l2 I + W^1/2 K W^1/2,  n x n. Where
    the memory or the time for that is lacking, conjugate gradients find the step, preconditioned by the same matrix
    for a Nystrom approximation of K. The softmax of several classes couples them in W; one factor for all classes is
    then the preconditioner. The Crammer-Singer loss, which has corners, is followed on its central path instead, with
    a factor for every class.

    Parameters
    ----------
    direct : int
        Up to so many samples the matrix is factored.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> er.LogisticRegression(features=er.kernels.Gaussian(), solver=er.solvers.KernelNewton()).fit(X, y).n_iter_ < 10
    True
    """

    implicit = True
    iteration_limit = 200

    def __init__(self, direct: int = 15_000):
        self.direct = direct

    def refuses(self, problem: Problem) -> str:
        if problem.loss.corners:
            return "the loss has corners"
        return "" if problem.penalty.l2 > 0 else "it needs the l2 penalty"

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if problem.classes:
            smooth = np.isfinite(problem.loss.curvature_bound)
            return solve_joint(problem, watch, start) if smooth else interior_point(problem, watch)
        state = State(problem, start)
        system = system_for(problem, watch, self.direct)
        patience, decrement = 0, np.inf
        while True:
            gap = state.differentiate()
            if gap <= watch.tol * problem.magnitude(state.value) or patience:
                point = Point(state.beta, state.b, state.u)
                if watch.proves(problem, point):
                    return point
            before = state.value
            try:
                step = state.step(system) if system.ready else None
                # Near the solution the curvatures hardly change: the last factor does while it gains much.
                if step is None or step.decrement > KEEP * decrement:
                    system.renew(np.minimum(problem.curvatures(state.f), STEEPEST * problem.scale))
                    step = state.step(system)
                decrement = step.decrement
                state.move(step)
            except (LinAlgError, NoProgress):
                patience = PATIENCE
            patience = patience + 1 if before - state.value <= 1e-14 * abs(before) else 0
            if patience >= PATIENCE:
                watch.status = Status.STALLED
            if watch(Point(state.beta, state.b), objective=state.value):
                return Point(state.beta, state.b)


@dataclass
class Step:
    """A direction in beta, b and K beta, and the squared Newton decrement."""

    beta: Array
    b: float
    product: Array
    decrement: float


class State:
    """A point with its product K beta, slopes and objective."""

    def __init__(self, problem: Problem, start: Point | None):
        self.problem = problem
        self.design = cast(GramDesign, problem.design)
        self.l2 = problem.penalty.l2
        for point in (start, problem.origin()):
            if point is None:
                continue
            self.beta, self.b = point.w.copy(), float(point.b)
            self.product = self.design.dot(self.beta) if self.beta.any() else np.zeros(len(self.beta))
            self.f = self.product + self.b
            self.value = self._penalty(self.beta, self.product) + problem.loss_sum(self.f)
            if np.isfinite(self.value):
                break

    def _penalty(self, beta: Array, product: Array) -> float:
        return 0.5 * self.l2 * float(beta @ product)

    def differentiate(self) -> float:
        """Update slopes and residual; returns about the duality gap."""
        self.u = self.problem.slopes(self.f)
        self.residual = self.l2 * self.beta + self.u
        self.pushed = self.design.dot(self.residual)
        self.constant = float(self.u.sum()) if self.problem.intercept else 0.0
        return 0.5 * float(self.residual @ self.pushed) / self.l2 + abs(self.constant * self.b)

    def step(self, system) -> Step:
        """The Newton step of the system's curvatures."""
        beta, b = system.solve(-self.residual, -self.pushed, -self.constant)
        product = self.design.dot(beta)
        return Step(beta, b, product, -float(self.pushed @ beta + self.constant * b))

    def move(self, step: Step) -> None:
        """Go along the step as far as the line search says."""
        problem, change = self.problem, step.product + step.b

        def along(t: float) -> tuple[float, float]:
            f = self.f + t * change
            beta, product = self.beta + t * step.beta, self.product + t * step.product
            value = self._penalty(beta, product) + problem.loss_sum(f)
            return value, self.l2 * float(product @ step.beta) + float(problem.slopes(f) @ change)

        t, value = line_search(along, self.value, -step.decrement)
        self.beta, self.b = self.beta + t * step.beta, self.b + t * step.b
        self.product = self.product + t * step.product
        self.f, self.value = self.product + self.b, value
