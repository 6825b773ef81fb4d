"""Closed forms for the squared loss: a linear system, or a singular value decomposition."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from empirisk.errors import EmpiriskError
from empirisk.linalg.factor import NormalEquations
from empirisk.problem import Point, Problem
from empirisk.settings import require
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.kernel_closed import kernel_ridge

Array = NDArray[np.float64]
Made = TypeVar("Made")


class ClosedForm(Solver):
    """The exact minimiser of  l2/2 |w|^2 + sum_i s_i (y_i - f_i)^2.

    Parameters
    ----------
    method : {"auto", "cholesky", "svd"}
        Cholesky factors the normal equations, d x d or n x n, and always serves kernels; the SVD gives the solution of
        minimum norm where the columns are dependent. "auto" factors, and turns to the SVD where the gap is not proven.
    cutoff : float or None
        Singular values below ``cutoff`` times the largest count as zero; None means max(n, d) times the rounding unit.

    >>> er.Ridge(C=0.5, solver=er.solvers.ClosedForm("svd"), fit_intercept=False).fit(np.eye(2), [2.0, 4.0]).coef_
    array([1., 2.])
    """

    def __init__(self, method: str = "auto", cutoff: float | None = None):
        self.method = method
        self.cutoff = cutoff

    def refusal(self, problem: Problem) -> str:
        if problem.design.implicit and problem.penalty.l2 == 0:
            return "behind a kernel it needs the l2 penalty"
        return self.refuses(problem)

    def refuses(self, problem: Problem) -> str:
        if problem.classes or not problem.loss.quadratic:
            return "only the squared loss has a closed form"
        return "the l1 penalty has no closed form" if problem.penalty.l1 > 0 else ""

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if self.method not in ("auto", "cholesky", "svd"):
            raise EmpiriskError(f"method={self.method!r} of ClosedForm must be 'auto', 'cholesky' or 'svd'.")
        if problem.design.implicit:
            return kernel_ridge(problem, watch)
        if self.method != "svd" and not self._needs_minimum_norm(problem):
            point = _factored(problem, watch)
            if self.method == "cholesky" or watch.proves(problem, point):
                return point
        point = _decomposed(problem, watch, self.cutoff)
        watch.proves(problem, point)
        watch(point, objective=problem.primal(point))
        return point

    @staticmethod
    def _needs_minimum_norm(problem: Problem) -> bool:
        rows, columns = problem.design.shape
        return problem.penalty.l2 == 0 and rows <= columns


def _factored(problem: Problem, watch: Watch) -> Point:
    """By the normal equations, with two rounds of refinement."""
    curvature, l2 = 2.0 * problem.scale, problem.penalty.l2
    stiffness = np.full(problem.design.shape[1], l2)
    system = _shared(
        problem, watch, "factor", lambda: NormalEquations(problem.design, curvature, stiffness, problem.intercept)
    )
    point = problem.origin()
    w, b = point.w, float(point.b)
    for _ in range(3):
        u = problem.slopes(problem.predict(Point(w, b)))
        gradient = l2 * w + problem.design.tdot(u)
        step, shift, _ = system.solve(-gradient, -float(u.sum()) if problem.intercept else 0.0)
        w, b = w + step, b + shift
        if watch(Point(w, b), objective=problem.primal(Point(w, b))):
            break
        if np.linalg.norm(step) <= 1e-13 * np.linalg.norm(w):
            break
    return Point(w, b)


def _shared(problem: Problem, watch: Watch, name: str, make: Callable[[], Made]) -> Made:
    """What is made of the matrix, once for all problems that differ in their targets only."""
    key = (id(problem.design), id(problem.weights), problem.C, problem.penalty.l2, problem.intercept)
    if watch.shared.get(name, (None, None))[0] != key:
        watch.shared[name] = key, make()
    return watch.shared[name][1]


def _decomposed(problem: Problem, watch: Watch, cutoff: float | None) -> Point:
    """By the SVD of the weighted, centred matrix: minimum norm among the minimisers."""
    root = np.sqrt(2.0 * problem.scale)
    share = problem.weights / problem.weights.sum() if problem.intercept else np.zeros(len(problem.y))
    centre, left, values, right = _shared(problem, watch, "svd", lambda: _singular_parts(problem, share, root))
    level = float(share @ problem.y)
    limit = values.max(initial=0.0) * (max(problem.design.shape) * np.finfo(float).eps if cutoff is None else cutoff)
    kept = values > limit
    targets = left[:, kept].T @ (root * (problem.y - level))
    w = right[kept].T @ (values[kept] / (values[kept] ** 2 + problem.penalty.l2) * targets)
    return Point(w, level - float(centre @ w))


def _singular_parts(problem: Problem, share: Array, root: Array) -> tuple[Array, Array, Array, Array]:
    """The centre of the rows, and the singular value decomposition around it."""
    rows, columns = problem.design.shape
    require(24 * rows * columns, f"The SVD of a {rows} x {columns} matrix", "use penalty='l2' or fewer columns")
    matrix = problem.design.columns(np.arange(columns))
    centre = share @ matrix
    return centre, *linalg.svd((matrix - centre) * root[:, None], full_matrices=False)
