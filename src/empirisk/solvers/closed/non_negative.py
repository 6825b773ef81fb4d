"""Least squares with weights that are not negative, by the active-set method of Lawson and Hanson."""

import numpy as np

from empirisk.linalg.factor import Cholesky
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import EXPLICIT, POSITIVE, SQUARED, Solver, Watch

#: A gradient below this share of the size of its terms is rounding, and its column stays out.
ROUNDING = 1e-12
#: Corrections of the last digits, from the residuals of the rows themselves.
REFINEMENTS = 3


class NonNegative(Solver):
    """The minimiser of  l1 |w|_1 + l2/2 |w|^2 + sum_i s_i (y_i - f_i)^2  over w >= 0.

    The column that lowers the objective most enters the set of free weights; those that would become negative leave it.
    An iteration is one such set: a factorisation of its normal matrix. Memory d x d beside the design.

    >>> er.LeastSquares(positive=True, fit_intercept=False).fit(np.eye(2), [-1.0, 3.0]).coef_
    array([0., 3.])
    """

    needs = (EXPLICIT, SQUARED, POSITIVE)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        system = _System(problem)
        w = np.zeros(problem.width) if start is None else np.maximum(start.w, 0.0)
        free = w > 0
        w = _descended(system, w, free)
        while True:
            slopes = system.right - system.matrix @ w
            slopes[free | (slopes <= ROUNDING * system.sizes)] = 0.0
            if not slopes.any():
                break
            free[np.argmax(slopes / system.lengths)] = True
            w = _descended(system, w, free)
            if watch(system.point(w), objective=problem.primal(system.point(w))):
                return system.point(w)
        for _ in range(REFINEMENTS):
            w = system.refined(w, free)
        watch.proves(problem, system.point(w))
        return system.point(w)


def _descended(system: "_System", w: Array, free: np.ndarray) -> Array:
    """The minimum over the free weights, along the way to which those that reach zero stop being free."""
    while free.any():
        aim = np.zeros_like(w)
        aim[free] = system.solve(free, system.right[free])
        if aim[free].min() > 0:
            return aim
        below = free & (aim <= 0)
        share = (w[below] / np.maximum(w[below] - aim[below], np.finfo(float).tiny)).min()
        w = np.where(free, w + share * (aim - w), 0.0)
        free &= ~(below & (w <= ROUNDING * np.abs(aim).max()))
        w[~free] = 0.0
    return w


class _System:
    """The objective as  1/2 w'Hw - q'w, the intercept, which is free, eliminated."""

    def __init__(self, problem: Problem):
        self.problem, design, scale = problem, problem.design, problem.rowspace.gathered(problem.scale)
        total, y = float(scale.sum()), problem.rowspace.gathered(problem.y)
        self.means = design.tdot(problem.scale) / total if problem.intercept else np.zeros(problem.width)
        self.mean = float(scale @ y) / total if problem.intercept else 0.0
        self.l1, self.l2 = problem.penalty.l1, problem.penalty.l2
        self.matrix = 2.0 * (design.gram(problem.scale) - total * np.outer(self.means, self.means))
        self.matrix.flat[:: len(self.matrix) + 1] += self.l2
        pull = problem.rowspace.scattered(scale * (y - self.mean))
        self.right = 2.0 * (design.tdot(pull) - self.means * float(scale @ (y - self.mean))) - self.l1
        self.lengths = np.sqrt(np.maximum(self.matrix.diagonal(), np.finfo(float).tiny))
        self.sizes = self.l1 + self.lengths * np.sqrt(2.0 * scale @ (y - self.mean) ** 2)

    def solve(self, free: np.ndarray, right: Array) -> Array:
        """The solution for the free weights alone."""
        return Cholesky(self.matrix[np.ix_(free, free)]).solve(right)

    def refined(self, w: Array, free: np.ndarray) -> Array:
        """w after a correction by the gradient that the rows themselves show."""
        if not free.any():
            return w
        problem, point = self.problem, self.point(w)
        gradient = problem.design.tdot(problem.slopes(problem.predict(point))) + self.l1 + self.l2 * w
        moved = w.copy()
        moved[free] -= self.solve(free, gradient[free])
        return np.maximum(moved, 0.0)

    def point(self, w: Array) -> Point:
        """w and the best intercept for it."""
        return Point(w, self.mean - float(self.means @ w))
