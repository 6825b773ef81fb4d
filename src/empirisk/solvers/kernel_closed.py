"""Kernel ridge regression in closed form: one Cholesky factor, refined where it is in float32."""

from typing import cast

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.gram import FactoredGram
from empirisk.linalg.mixed import SingleGram, single_suffices
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import Watch
from empirisk.solvers.kernel_systems import kept_for

Array = NDArray[np.float64]
Gram = SingleGram | FactoredGram
ROUNDS, ROUNDS_OF_SINGLE = 3, 12
SETTLED = 1e-10


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
    """The solution, by rounds of refinement."""
    l2 = problem.penalty.l2
    ridge = l2 / (2.0 * problem.scale)
    beta, product, b = np.zeros(len(problem.y)), np.zeros(len(problem.y)), 0.0
    for _ in range(ROUNDS if system.exact else ROUNDS_OF_SINGLE):
        missing = problem.y - b - ridge * beta - product
        step, shift = _bordered(system, missing, -float(beta.sum()), problem.intercept)
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
    if kind is SingleGram and not _single_will_do(K, ridge):
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


def _single_will_do(K: Array, ridge: Array) -> bool:
    return 12 * len(K) ** 2 <= settings().memory and single_suffices(K, np.ones(len(K)), float(ridge.min()))


class _Latest:
    """K v, remembered for the last v: a certificate asks for the same product more than once."""

    def __init__(self, system: Gram):
        self._system = system
        self._known = (np.zeros(0), np.zeros(0))

    def __call__(self, v: Array) -> Array:
        if not np.array_equal(v, self._known[0]):
            self._known = (v.copy(), self._system.product(v))
        return self._known[1].copy()


def _bordered(system: Gram, right: Array, total: float, intercept: bool) -> tuple[Array, float]:
    """The solution of  M x + b = right,  sum_i x_i = total; b = 0 without an intercept."""
    x = system.solve(right)
    if not intercept:
        return x, 0.0
    b = (float(x.sum()) - total) / float(system.response.sum())
    return x - b * system.response, b
