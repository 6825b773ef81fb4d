"""Closed forms for the squared loss: a linear system, eigenvalues or singular values."""

from numbers import Real
from typing import cast

import numpy as np
from numpy.linalg import LinAlgError

from empirisk.errors import Unsuitable
from empirisk.linalg.factor import NormalEquations, normal_equations
from empirisk.linalg.gram_factor import FactoredGram
from empirisk.linalg.single_precision import SingleGram, single_suffices
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Array, Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import RIDGE, SQUARED, SQUARED_NORM, Solver, Watch, behind_kernel
from empirisk.solvers.closed.decomposed import by_eigenvalues, by_singular_values, shared
from empirisk.solvers.closed.kernel_gradients import by_gradients
from empirisk.solvers.newton.kernel import kept_for
from empirisk.stop import Ending

Gram = SingleGram | FactoredGram
METHODS = ("auto", "cholesky", "eigen", "svd")
#: Rounds of refinement: each gains about all digits of a factor in float64, and a few of one in float32.
ROUNDS, ROUNDS_OF_SINGLE = 3, 12
#: A refinement below this share of the solution is the last but one.
SETTLED = 1e-10


class ClosedForm(Solver):
    """The exact minimiser of  l2/2 |w|^2 + sum_i s_i (y_i - f_i)^2.

    All methods give the same answer, without a penalty the one of minimum norm; they differ in their cost and digits.

    Parameters
    ----------
    method : {"auto", "cholesky", "eigen", "svd"}
        "cholesky" factors the normal equations, d x d or n x n, which is fastest; without a penalty it needs
        independent columns. "eigen" takes their eigenvalues, for which columns may be dependent, and which serve every
        C of a path at once; it sees singular values down to about 1e-8 of the largest. "svd" takes the singular values
        of the columns themselves, down to ``cutoff``; kernels have no columns. "auto" factors, and turns to the SVD
        where columns are dependent or the gap is not proven; behind a kernel it is "cholesky".
    cutoff : float or None
        The rank cut-off: singular values of the centred columns, each row times the square root of its weight, up to
        ``cutoff`` times the largest count as zero. None means max(n, d) times the rounding unit 2.2e-16.

    >>> er.Ridge(C=0.5, solver=er.solvers.ClosedForm("svd"), fit_intercept=False).fit(np.eye(2), [2.0, 4.0]).coef_
    array([1., 2.])
    >>> er.LeastSquares(solver=er.solvers.ClosedForm("eigen")).fit([[0.0, 0.0], [1.0, 1.0]], [0.0, 2.0]).coef_
    array([1., 1.])
    """

    needs = (SQUARED, SQUARED_NORM, behind_kernel(RIDGE))

    def __init__(self, method: str = "auto", cutoff: float | None = None):
        self.method = method
        self.cutoff = cutoff

    def refusal(self, problem: Problem) -> str:
        rows, columns = problem.design.shape
        if self.method == "svd" and problem.design.implicit:
            return "method='svd' needs columns, which a kernel does not have, but 'cholesky' and 'eigen' serve it"
        if self.method == "cholesky" and problem.penalty.zero and rows <= columns:
            return f"method='cholesky' needs a penalty, or more rows than the {columns} columns"
        return super().refusal(problem)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        self.require("method", self.method in METHODS, f"is not known; choose one of {list(METHODS)}")
        share = self.cutoff is None or (isinstance(self.cutoff, Real) and 0 <= self.cutoff < 1)
        self.require("cutoff", share, "must be a share of the largest singular value, from 0 to below 1, or None")
        if self.method == "eigen":
            watch.note("by eigenvalues")
            point = by_eigenvalues(problem, watch, self.cutoff)
        elif problem.design.implicit:
            return kernel_ridge(problem, watch)
        elif self.method == "svd":
            point = self._by_singular_values(problem, watch)
        else:
            point = self._factored(problem, watch)
        watch.proves(problem, point)
        return point

    def _factored(self, problem: Problem, watch: Watch) -> Point:
        """By the normal equations; where they do not show the one minimiser, and none was asked for, by the SVD."""
        rows, columns = problem.design.shape
        if not (problem.penalty.zero and rows <= columns):
            point, unique = _factored(problem, watch)
            if self.method == "cholesky" and not (unique and _every_column_counts(problem)):
                raise Unsuitable(
                    "ClosedForm(method='cholesky') needs independent columns where there is no penalty, and some "
                    "columns of X depend on others; use method='svd', 'eigen' or 'auto', or penalty='l2'."
                )
            if self.method == "cholesky" or (unique and watch.proves(problem, point)):
                return point
        return self._by_singular_values(problem, watch)

    def _by_singular_values(self, problem: Problem, watch: Watch) -> Point:
        watch.note("by singular values")
        point, unique = by_singular_values(problem, watch, self.cutoff)
        # Of many minimisers others would find another one, whose norm is larger.
        watch.final = problem.penalty.zero and not unique
        watch(point, objective=problem.primal(point))
        return point


def _factored(problem: Problem, watch: Watch) -> tuple[Point, bool]:
    """By the normal equations, with two rounds of refinement; and whether there is no other minimiser."""
    curvature, l2 = 2.0 * problem.scale, problem.penalty.l2
    stiffness = np.full(problem.design.shape[1], l2)

    def make() -> NormalEquations:
        return normal_equations(problem.design, curvature, stiffness, problem.intercept)

    system = shared(problem, watch, "factor", make, problem.C, l2)
    point = problem.origin()
    f = problem.predict(point)
    for _ in range(3):
        u = problem.slopes(f)
        gradient = l2 * point.w + problem.design.tdot(u)
        missing = float(u.sum()) if problem.intercept else 0.0
        # Where a product takes long, rounds end as soon as the gap, which the gradient tells, is half of what may be.
        gap = 0.5 * (float(gradient @ gradient) / l2 + missing**2 / float(curvature.sum())) if l2 > 0 else np.inf
        if problem.design.streams and gap <= 0.5 * watch.tol * problem.loss_sum(f):
            break
        step, shift = system.step(-gradient, -missing)
        point = Point(point.w + step, float(point.b) + shift)
        f = problem.predict(point)
        if watch(point, objective=problem.primal(point, f)):
            break
        # A correction of the last digits: the next one would be rounding.
        if np.linalg.norm(step) <= 1e-13 * np.linalg.norm(point.w):
            break
    return point, l2 > 0 or not system.dependent


def _every_column_counts(problem: Problem) -> bool:
    """Whether no weight is free because its column is zero, which a dense column beside the intercept is if it is
    constant: a factor has the weight zero for it, and does not see the dependence."""
    return not problem.penalty.zero or bool(np.all(problem.design.squared_columns(problem.scale) > 0))


def kernel_ridge(problem: Problem, watch: Watch) -> Point:
    """The minimiser of  l2/2 beta'K beta + sum_i s_i (y_i - f_i)^2  with f = K beta + b.

    It solves  (K + diag(l2 / 2s)) beta + b = y,  sum_i beta_i = 0 with an intercept. Targets of the same rows, weights
    and C share the factor. Where the ridge is not small and the memory allows it, the factor is one in float32, and
    the solution is refined with products in float64; else the factor takes one triangle of K and leaves the other for
    the products. A design that streams its products is solved by these alone.
    """
    if problem.design.streams:
        return by_gradients(problem, watch)
    point: Point | None = None
    for kind in (SingleGram, FactoredGram):
        try:
            system = _system(problem, watch, kind)
        except LinAlgError:  # C is so large that rounding outweighs the ridge
            continue
        if system is not None:
            point = _refined(problem, watch, system)
            if watch.status:
                return point
    if point is None:
        watch.status = Ending.STALLED
    return problem.origin() if point is None else point


def _refined(problem: Problem, watch: Watch, system: Gram) -> Point:
    """The solution of  M beta + b = y,  sum_i beta_i = 0 with an intercept, by rounds of refinement."""
    l2 = problem.penalty.l2
    ridge = l2 / (2.0 * problem.scale)
    beta, product, b = np.zeros(len(problem.y)), np.zeros(len(problem.y)), 0.0
    for _ in range(ROUNDS if system.exact else ROUNDS_OF_SINGLE):
        missing = problem.y - b - ridge * beta - product
        step, shift = system.solve(missing), 0.0
        if problem.intercept:
            shift = (float(step.sum()) + float(beta.sum())) / float(system.response.sum())
            step = step - shift * system.response
        beta, b = beta + step, b + shift
        product = system.product(beta)
        point = Point(beta, b, -l2 * beta)
        if watch(point, objective=0.5 * l2 * float(beta @ product) + problem.loss_sum(product + b)):
            break
        settled = system.exact or np.linalg.norm(step) <= SETTLED * np.linalg.norm(beta)
        if settled and watch.proves(problem, point):
            break
    return point


def _system(problem: Problem, watch: Watch, kind: type[Gram]) -> Gram | None:
    """The factored matrix, made once for all problems that differ in their targets only; None if it will not do."""
    kept = kept_for(problem, watch)
    key = (id(problem.weights), problem.C, problem.penalty.l2)
    if kept.get("ridge") == key and (kept["system"].exact or kind is SingleGram):
        return kept["system"]
    design = cast(GramDesign, problem.design)
    ridge = problem.penalty.l2 / (2.0 * problem.scale)
    K = _matrix(design, kept)
    # K in doubles, and a factor in singles.
    fits = 12 * len(K) ** 2 <= settings().memory
    if kind is SingleGram and not (fits and single_suffices(K, np.ones(len(K)), float(ridge.min()))):
        return None
    kept["ridge"] = None  # until the factor is there
    if kind is FactoredGram:
        K = kept.pop("K") if "K" in kept else K.copy()
    kept["system"] = kind(K, ridge)
    kept["ridge"] = key
    design.multiply_by(_Latest(kept["system"]))
    return kept["system"]


def _matrix(design: GramDesign, kept: dict) -> Array:
    """K: that of the design where it keeps one, else our own, in the slot "K", which may be overwritten."""
    design.multiply_by(None)
    before = kept.pop("system", None)
    if "K" not in kept and design.keeps_matrix:
        return design.matrix
    if "K" not in kept:
        kept["K"] = design.fresh_matrix() if before is None else before.restored()
    return kept["K"]


class _Latest:
    """K v, remembered for the last v: a certificate asks for the same product more than once."""

    def __init__(self, system: Gram):
        self._system = system
        self._known = (np.zeros(0), np.zeros(0))

    def __call__(self, v: Array) -> Array:
        if not np.array_equal(v, self._known[0]):
            self._known = (v.copy(), self._system.product(v))
        return self._known[1].copy()
