"""Closed forms for the squared loss: a linear system, or a singular value decomposition."""

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numpy.linalg import LinAlgError

from empirisk.certificate import Status
from empirisk.linalg import blocks
from empirisk.linalg.factor import normal_equations
from empirisk.linalg.gram_factor import FactoredGram
from empirisk.linalg.single_precision import SingleGram, single_suffices
from empirisk.linalg.threads import patiently
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Array, Point, Problem
from empirisk.settings import require, settings
from empirisk.solvers.base import RIDGE, SQUARED, SQUARED_NORM, Solver, Watch, behind_kernel
from empirisk.solvers.newton.kernel import kept_for

Made = TypeVar("Made")
Gram = SingleGram | FactoredGram
METHODS = ("auto", "cholesky", "svd")
#: Rounds of refinement: each gains about all digits of a factor in float64, and a few of one in float32.
ROUNDS, ROUNDS_OF_SINGLE = 3, 12
#: A refinement below this share of the solution is the last but one.
SETTLED = 1e-10


class ClosedForm(Solver):
    """The exact minimiser of  l2/2 |w|^2 + sum_i s_i (y_i - f_i)^2.

    Parameters
    ----------
    method : {"auto", "cholesky", "svd"}
        Cholesky factors the normal equations, d x d or n x n, and always serves kernels; the SVD gives the solution of
        minimum norm where the columns are dependent. "auto" factors, and turns to the SVD where columns are dependent
        or the gap is not proven.
    cutoff : float or None
        Singular values below ``cutoff`` times the largest count as zero; None means max(n, d) times the rounding unit.

    >>> er.Ridge(C=0.5, solver=er.solvers.ClosedForm("svd"), fit_intercept=False).fit(np.eye(2), [2.0, 4.0]).coef_
    array([1., 2.])
    """

    needs = (SQUARED, SQUARED_NORM, behind_kernel(RIDGE))

    def __init__(self, method: str = "auto", cutoff: float | None = None):
        self.method = method
        self.cutoff = cutoff

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        self.require("method", self.method in METHODS, f"is not known; choose one of {list(METHODS)}")
        if problem.design.implicit:
            return kernel_ridge(problem, watch)
        rows, columns = problem.design.shape
        minimum_norm = problem.penalty.l2 == 0 and rows <= columns
        if self.method != "svd" and not minimum_norm:
            point, unique = _factored(problem, watch)
            if self.method == "cholesky" or (unique and watch.proves(problem, point)):
                return point
        watch.note("by singular values")
        point = _decomposed(problem, watch, self.cutoff)
        watch.proves(problem, point)
        watch(point, objective=problem.primal(point))
        return point


def _factored(problem: Problem, watch: Watch) -> tuple[Point, bool]:
    """By the normal equations, with two rounds of refinement; and whether there is no other minimiser."""
    curvature, l2 = 2.0 * problem.scale, problem.penalty.l2
    stiffness = np.full(problem.design.shape[1], l2)
    system = _shared(
        problem, watch, "factor", lambda: normal_equations(problem.design, curvature, stiffness, problem.intercept)
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
        # A correction of the last digits: the next one would be rounding.
        if np.linalg.norm(step) <= 1e-13 * np.linalg.norm(w):
            break
    return Point(w, b), l2 > 0 or not system.dependent


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
    rank = int(np.sum(values > limit))
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    w = right.T @ (values / (values**2 + problem.penalty.l2) * (left.T @ (root * (problem.y - level))))
    return Point(w, level - float(centre @ w))


def _singular_parts(problem: Problem, share: Array, root: Array) -> tuple[Array, Array, Array, Array]:
    """The centre of the rows, and the singular value decomposition around it."""
    rows, columns = problem.design.shape
    # The matrix and both of its factors, in doubles.
    require(24 * rows * columns, f"The SVD of a {rows} x {columns} matrix", "use penalty='l2' or fewer columns")
    centre, weighted = problem.design.tdot(share), np.empty((rows, columns), order="F")

    def fill(part: slice) -> None:
        weighted[:, part] = (problem.design.columns(part) - centre[part]) * root[:, None]

    blocks.over_rows(fill, columns, 8 * rows)
    # NumPy's, which lets other threads run meanwhile.
    left, values, right = patiently(lambda: np.linalg.svd(weighted, full_matrices=False), max(weighted.shape))
    return centre, left, values, right


def kernel_ridge(problem: Problem, watch: Watch) -> Point:
    """The minimiser of  l2/2 beta'K beta + sum_i s_i (y_i - f_i)^2  with f = K beta + b.

    It solves  (K + diag(l2 / 2s)) beta + b = y,  sum_i beta_i = 0 with an intercept. Targets of the same rows, weights
    and C share the factor. Where the ridge is not small and the memory allows it, the factor is one in float32, and
    the solution is refined with products in float64; else the factor takes one triangle of K and leaves the other for
    the products.
    """
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
        watch.status = Status.STALLED
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
