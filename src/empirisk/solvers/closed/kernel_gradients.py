"""Kernel ridge by preconditioned conjugate gradients, for matrices that are not kept: products alone are asked for."""

from typing import cast

import numpy as np

from empirisk.linalg.factor import Cholesky
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import Watch
from empirisk.stop import Ending

#: Residuals in the precision of rough products fall to this share of the first one; then they are computed again.
ROUGH = 1e-4
#: Iterations between two exact residuals at most.
LIMIT = 300
#: An exact residual that is no smaller than this share of the last one: rounding, not work, is what remains.
STALLED = 0.5


class RidgePreconditioner:
    """(G G' + diag(ridge))^-1 for a low-rank G with K ~ G G', on vectors that sum to zero where there is an intercept.

    With an intercept the coefficients of the solution sum to zero, and residuals count up to a constant: the
    preconditioner takes any residual to a direction that sums to zero, and a constant to none.
    """

    def __init__(self, design: GramDesign, ridge: Array, intercept: bool):
        self._factor, self._ridge = design.low_rank(), ridge
        inner = self._factor.gram(1.0 / ridge)
        inner.flat[:: len(inner) + 1] += 1.0
        self._inner = Cholesky(inner, definite=True)
        self.rank = len(inner)
        self._response = self._apply(np.ones(len(ridge))) if intercept else None

    def _apply(self, residual: Array) -> Array:
        scaled = residual / self._ridge
        return scaled - self._factor.dot(self._inner.solve(self._factor.tdot(scaled))) / self._ridge

    def __call__(self, residual: Array) -> Array:
        """The direction for a residual."""
        found = self._apply(residual)
        if self._response is None:
            return found
        return found - self._response * (float(found.sum()) / float(self._response.sum()))


class RidgeGradients:
    """The system  (K + diag(l2 / 2s)) beta + b = y,  sum_i beta_i = 0 with an intercept, and where its solution stands.

    The residual r of a beta gives its gap, sum_i s_i r_i^2, so that no product is spent on a proof that would fail.
    Conjugate gradients use rough products, in float32 where a device has them; every time their residual has fallen
    far, it is computed again from an exact product (iterative refinement).
    """

    def __init__(self, problem: Problem, watch: Watch):
        self.problem, self.watch, self.l2 = problem, watch, problem.penalty.l2
        self.design = cast(GramDesign, problem.design)
        self.ridge = self.l2 / (2.0 * problem.scale)
        self.condition = RidgePreconditioner(self.design, self.ridge, problem.intercept)
        watch.note(f"by conjugate gradients with a preconditioner of rank {self.condition.rank}")
        self.beta = np.zeros(len(problem.y))

    def solve(self) -> Point:
        """Exact residuals, and searches between them, until the gap is proved or falls no more."""
        before = np.inf
        while True:
            residual = self.problem.y - self.design.dot(self.beta) - self.ridge * self.beta
            gap, point = self.place(self.beta, residual)
            enough = gap <= self.watch.tol * self.problem.magnitude(self.dual(self.beta, residual))
            if enough and self.watch.proves(self.problem, point):
                return point
            if not gap <= STALLED * before:
                self.watch.status = self.watch.status or Ending.STALLED
            if self.watch.status:
                return point
            before = gap
            self.search(residual)

    def place(self, beta: Array, residual: Array) -> tuple[float, Point]:
        """The gap of a beta at the best intercept, and the point."""
        scale = self.problem.scale
        b = float(scale @ residual / scale.sum()) if self.problem.intercept else 0.0
        rest = residual - b
        return float(scale @ (rest * rest)), Point(beta, b, -self.l2 * beta)

    def dual(self, beta: Array, residual: Array) -> float:
        """The dual value of a beta that sums to zero, or without an intercept."""
        return 0.5 * self.l2 * float(beta @ (self.problem.y + residual))

    def search(self, residual: Array) -> None:
        """Conjugate gradients from beta, by rough products, until the residual has few digits left."""
        rough, watch = self.design.single, self.watch
        direction, before = np.zeros_like(residual), 1.0
        first = self.place(self.beta, residual)[0]
        for _ in range(LIMIT):
            pulled = self.condition(residual)
            size = float(residual @ pulled)
            if not size > 0:
                return
            direction = pulled + (size / before) * direction
            before = size
            product = rough.dot(direction) + self.ridge * direction
            step = size / float(direction @ product)
            if not step > 0:
                return
            self.beta = self.beta + step * direction
            residual = residual - step * product
            gap, point = self.place(self.beta, residual)
            value = self.dual(self.beta, residual)
            # Half of the tolerance is left for what rough products have hidden.
            enough = max(0.5 * watch.tol * self.problem.magnitude(value), ROUGH**2 * first)
            if watch(point, objective=value + gap) or gap <= enough:
                return


def by_gradients(problem: Problem, watch: Watch) -> Point:
    """The minimiser of  l2/2 beta'K beta + sum_i s_i (y_i - f_i)^2,  by products with K alone."""
    return RidgeGradients(problem, watch).solve()
