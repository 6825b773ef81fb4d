"""Newton's method behind a kernel for the softmax of several classes."""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.coupled import Coupling
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Point, Problem
from empirisk.settings import require
from empirisk.solvers.base import Proofs, Watch
from empirisk.solvers.newton.kernel_systems import FactoredSystem
from empirisk.solvers.newton.line_search import line_search

Array = NDArray[np.float64]
PATIENCE = 3
LIMIT = 400
FLOOR = 1e-8


def solve_joint(problem: Problem, watch: Watch, start: Point | None) -> Point:
    """Newton steps on the coefficients of all classes at once, each with a line search."""
    rows = problem.design.shape[0]
    require(24 * rows**2, f"Newton's method on a {rows} x {rows} Gram matrix", "use features=maps.Nystrom(kernel)")
    state, proofs, patience = State(problem, start), Proofs(problem, watch), 0
    while True:
        try:
            step = state.newton_step(watch)
        except LinAlgError:  # the curvature has vanished to rounding
            watch.status = Status.STALLED
            return proofs.best(Point(state.beta, state.b))
        small = 0.5 * step.decrement <= 0.1 * np.sqrt(watch.tol) * problem.magnitude(state.value)
        before, t = state.value, state.move(step)
        point = Point(state.beta, state.b, step.u if t == 1 else None)
        if (small or patience) and proofs(point):
            return point
        patience = patience + 1 if before - state.value <= 1e-14 * abs(before) else 0
        if patience >= PATIENCE:
            watch.status = Status.STALLED
        if watch(point, objective=state.value):
            return proofs.best(point)


@dataclass
class Step:
    """A direction in beta, b and K beta, the dual point that the full step leads to, and the squared decrement."""

    beta: Array
    b: Array
    product: Array
    u: Array
    decrement: float


class State:
    """A point with its products K beta and its objective."""

    def __init__(self, problem: Problem, start: Point | None):
        self.problem, self.l2 = problem, problem.penalty.l2
        self.design = cast(GramDesign, problem.design)
        self.system = FactoredSystem(problem)
        point = problem.origin() if start is None else start
        self.beta, self.b = (part - part.mean(axis=-1, keepdims=True) for part in (point.w, np.asarray(point.b)))
        self.product = self.design.dot(self.beta)
        self.f = self.product + self.b
        self.value = self._penalty(self.beta, self.product) + problem.loss_sum(self.f)

    def _penalty(self, beta: Array, product: Array) -> float:
        return 0.5 * self.l2 * float(np.vdot(beta, product))

    def newton_step(self, watch: Watch) -> Step:
        """The step, by conjugate gradients in the inner product of K."""
        problem = self.problem
        u = problem.slopes(self.f)
        shares = u + problem.scale[:, None] * problem.loss.onehot(problem.y, problem.classes)
        coupling = Coupling(np.maximum(shares, 0.0))
        mean = coupling.diagonal().sum(axis=1) / (problem.classes - 1)
        self.system.renew(np.maximum(mean, FLOOR * mean.max()))
        residual = -self.l2 * self.beta - u
        constant = -u.sum(axis=0) if problem.intercept else np.zeros(problem.classes)
        pushed = self.design.dot(residual)
        beta, b, product = self._gradients(coupling, residual, pushed, constant, watch)
        decrement = float(np.vdot(pushed, beta) + constant @ b)
        return Step(beta, b, product, u + coupling(product + b), decrement)

    def _gradients(
        self, coupling: Coupling, residual: Array, pushed: Array, constant: Array, watch: Watch
    ) -> tuple[Array, Array, Array]:
        """(x, b, K x) with  l2 x + S (K x + b) = residual,  1' S (K x + b) = constant, S the coupling."""
        x, product, direction, along = (np.zeros_like(residual) for _ in range(4))
        b, turn = np.zeros_like(constant), np.zeros_like(constant)
        before = first = 0.0
        for trial in range(LIMIT):
            z, z_b = self.system.solve(residual, pushed, constant)
            size = float(np.vdot(pushed, z) + constant @ z_b)
            if trial == 0:
                before = first = size
            if not size > 0 or (trial and self._good(residual, pushed, size, first, watch)) or watch.must_stop():
                break
            ratio, before = size / before, size
            direction, turn = z + ratio * direction, z_b + ratio * turn
            along = self.design.dot(z) + ratio * along
            curved = coupling(along + turn)
            change = self.l2 * direction + curved
            moved = self.design.dot(change)
            sums = curved.sum(axis=0) if self.problem.intercept else np.zeros_like(turn)
            bend = float(np.vdot(direction, moved) + turn @ sums)
            if not bend > 0:
                break
            t = size / bend
            x, b, product = x + t * direction, b + t * turn, product + t * along
            residual, pushed, constant = residual - t * change, pushed - t * moved, constant - t * sums
        return x, b, product

    def _good(self, residual: Array, pushed: Array, size: float, first: float, watch: Watch) -> bool:
        """Whether the step is precise enough: roughly while far away, for the certificate near the end."""
        value = self.problem.magnitude(self.value)
        if size > 0.5 * min(0.2, first / value) * first and size > 0.1 * watch.tol * value:
            return False
        near = first <= 1e-3 * value
        return not near or 0.5 * float(np.vdot(residual, pushed)) / self.l2 <= 0.1 * watch.tol * value

    def move(self, step: Step) -> float:
        """Go along the step as far as the line search says, which is returned."""
        problem, change = self.problem, step.product + step.b

        def along(t: float) -> tuple[float, float]:
            f = self.f + t * change
            beta, product = self.beta + t * step.beta, self.product + t * step.product
            value = self._penalty(beta, product) + problem.loss_sum(f)
            return value, self.l2 * float(np.vdot(product, step.beta)) + float(np.vdot(problem.slopes(f), change))

        t, value = line_search(along, self.value, -step.decrement)
        self.beta, self.b = self.beta + t * step.beta, self.b + t * step.b
        self.product = self.product + t * step.product
        self.f, self.value = self.product + self.b, value
        return t
