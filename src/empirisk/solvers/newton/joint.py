"""Newton's method for the softmax of several classes, whose scores are coupled: steps of all classes at once."""

import math
from collections.abc import Callable

import numpy as np

from empirisk.lazy import lazy
from empirisk.linalg.coupled import Coupling, JointColumns
from empirisk.linalg.gradients import Good, JointGradients, conjugate_gradients
from empirisk.problem import CHEAP, Array, Point, Problem
from empirisk.settings import require
from empirisk.solvers.base import Watch
from empirisk.solvers.newton.kernel import FactoredSystem
from empirisk.solvers.newton.loop import KernelNorm, NewtonDirection, NewtonLoop, NewtonPoint

#: Where tol is about that of rounding, steps are found to so many times its square: equal problems have equal weights.
EXACT = 1e5
#: The least curvature of a row in the preconditioner, as a share of the largest.
FLOOR = 1e-8


class Classes(NewtonLoop):
    """Weights of all classes on explicit columns; weights and intercepts centred, their mean over classes is no use."""

    @lazy
    def _system(self) -> JointGradients:
        return JointGradients(self.problem.design, self.problem.penalty.l2, self.problem.intercept)

    def at(self, point: Point) -> NewtonPoint:
        """The place at a point."""
        w, b = (part - part.mean(axis=-1, keepdims=True) for part in (point.w, np.asarray(point.b)))
        products = self.problem.design.dot(w)
        gram_weights, f = products if self.problem.design.implicit else w, products + b
        return NewtonPoint(w, b, f, gram_weights, self.penalty(w, gram_weights) + self.problem.loss_sum(f))

    def moved(self, place: NewtonPoint) -> NewtonPoint:
        """A Newton step by line search; a full step also gives a dual point."""
        problem = self.problem
        u = problem.slopes(place.f)
        shares = u + problem.scale[:, None] * problem.loss.onehot(problem.y, problem.classes)
        coupling = Coupling(np.maximum(shares, 0.0) / problem.loss.softness)
        step = self._direction(place, u, coupling)
        # The decrement falls like the square of the gap that the next place will have.
        near = 0.5 * step.decrement <= 0.1 * np.sqrt(self.watch.tol) * problem.magnitude(place.value)
        t, value = self.searched(place, step)
        led_to = u + coupling(step.f) if t == 1 else None
        w, b, f = place.w + t * step.w, place.b + t * step.b, place.f + t * step.f
        return NewtonPoint(
            w,
            b,
            f,
            place.gram_weights + t * step.gram_weights if step.gram_weights is not step.w else w,
            value,
            led_to,
            near=near,
        )

    def _direction(self, place: NewtonPoint, u: Array, coupling: Coupling) -> NewtonDirection:
        """Solve the normal equations; precisely enough for the certificate when it is the last step."""
        problem = self.problem
        gradient = problem.penalty.gradient(place.w) + problem.design.tdot(u)
        constant = u.sum(axis=0)
        if problem.design.shape[0] * math.prod(problem.width) ** 2 <= CHEAP:
            # Exact steps, where they cost no more than the calls of conjugate gradients: these lead nowhere if classes
            # can be divided, columns nearly depend on each other and no penalty holds the weights.
            stiffness = np.full(problem.width, problem.penalty.l2)
            w, b, _ = JointColumns(problem.design, coupling, stiffness, problem.intercept).solve(-gradient, -constant)
        else:
            w, b = self._near_solution(-gradient, -constant, coupling, problem.magnitude(place.value))
        return NewtonDirection(w, b, problem.design.dot(w) + b, w, -float(np.vdot(gradient, w) + constant @ b))

    def _near_solution(self, right: Array, constant: Array, coupling: Coupling, value: float) -> tuple[Array, Array]:
        """By conjugate gradients, as near as the objective ``value`` asks for."""
        self._system.renew(coupling)
        l2, tol = self.problem.penalty.l2, self.watch.tol
        # A tenth of the tolerance at most, less where it is fine.
        enough = tol * min(0.1, EXACT * tol) * value
        good = good_step(value, enough, lambda left: 0.5 * float(np.vdot(left, left)) / l2 if l2 else 0.0)
        return self._system.solve(right, constant, good, self.watch.must_stop)


class KernelClasses(KernelNorm, Classes):
    """Coefficients of all classes behind a kernel, by conjugate gradients in the inner product of K."""

    def __init__(self, problem: Problem, watch: Watch):
        super().__init__(problem, watch)
        rows = problem.design.shape[0]
        # The matrix, its factor and a copy to refine with, in doubles.
        require(24 * rows**2, f"Newton's method on a {rows} x {rows} Gram matrix", "use features=maps.Nystrom(kernel)")
        self._preconditioner = FactoredSystem(problem)

    def _direction(self, place: NewtonPoint, u: Array, coupling: Coupling) -> NewtonDirection:
        problem = self.problem
        mean = coupling.diagonal().sum(axis=1) / (problem.classes - 1)
        self._preconditioner.renew(np.maximum(mean, FLOOR * mean.max()))
        residual = -problem.penalty.l2 * place.w - u
        constant = -u.sum(axis=0) if problem.intercept else np.zeros(problem.classes)
        gram_gradient = problem.design.dot(residual)
        w, b = self._gradients(coupling, residual, gram_gradient, constant, problem.magnitude(place.value))
        gram_weights = problem.design.dot(w)
        return NewtonDirection(w, b, gram_weights + b, gram_weights, float(np.vdot(gram_gradient, w) + constant @ b))

    def _gradients(
        self, coupling: Coupling, residual: Array, gram_gradient: Array, constant: Array, value: float
    ) -> tuple[Array, Array]:
        """(x, b) with  l2 x + S (K x + b) = residual,  1' S (K x + b) = constant, S the coupling.

        In the inner product of K: a residual r is written with its image, as (r, K r, constant), and a direction as
        (x, b), so that their product is that of (K r, constant) and (x, b).
        """
        rows, problem, l2 = len(residual), self.problem, self.problem.penalty.l2

        def multiply(direction: Array) -> Array:
            x, b = direction[:-1], direction[-1]
            curved = coupling(problem.design.dot(x) + b)
            change = l2 * x + curved
            sums = curved.sum(axis=0) if problem.intercept else np.zeros_like(b)
            return np.vstack([change, problem.design.dot(change), sums])

        def condition(packed: Array) -> Array:
            return np.vstack(self._preconditioner.solve(packed[:rows], packed[rows:-1], packed[-1]))

        solution = conjugate_gradients(
            np.vstack([residual, gram_gradient, constant]),
            multiply,
            condition,
            lambda packed, direction: float(np.vdot(packed[rows:], direction)),
            # A tenth of the tolerance is left to the system.
            good_step(
                value,
                0.1 * self.watch.tol * value,
                lambda packed: 0.5 * float(np.vdot(packed[:rows], packed[rows:-1])) / l2,
            ),
            self.watch.must_stop,
        )
        return solution[:-1], solution[-1]


def good_step(value: float, enough: float, missing: Callable[[Array], float]) -> Good:
    """When conjugate gradients may stop: early while far away, at the precision of the certificate near the end.

    ``missing`` tells what a residual adds to the gap of the objective ``value``, of which ``enough`` may be left.
    """

    def good(residual: Array, size: float, first: float) -> bool:
        # A tenth while far away, and in proportion to what is missing nearby: steps then converge quadratically.
        if size > enough and not size <= 0.5 * min(0.2, first / value) * first:
            return False
        # From a thousandth one Newton step reaches a millionth: this one may be the last.
        return not first <= 1e-3 * value or missing(residual) <= enough

    return good
