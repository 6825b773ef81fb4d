"""Kernel ridge regression in closed form: one Cholesky factor, in the memory of the Gram matrix."""

from typing import cast

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.gram import FactoredGram
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.kernel_systems import kept_for

Array = NDArray[np.float64]
ROUNDS = 3


def kernel_ridge(problem: Problem, watch: Watch) -> Point:
    """The minimiser of  l2/2 beta'K beta + sum_i s_i (y_i - f_i)^2  with f = K beta + b.

    It solves  (K + diag(l2 / 2s)) beta + b = y,  sum_i beta_i = 0 with an intercept. Targets of the same rows, weights
    and C share the factor. The products K beta that the certificate needs come from the triangle that the factor has
    left of K.
    """
    try:
        system = _system(problem, watch)
    except LinAlgError:  # C is so large that rounding outweighs the ridge
        watch.status = Status.STALLED
        return problem.origin()
    l2 = problem.penalty.l2
    ridge = l2 / (2.0 * problem.scale)
    beta, b = np.zeros(len(problem.y)), 0.0
    for _ in range(ROUNDS):
        missing = problem.y - b - ridge * beta - system.product(beta) if beta.any() else problem.y
        step, shift = _bordered(system, missing, -float(beta.sum()), problem.intercept)
        beta, b = beta + step, b + shift
        point = Point(beta, b, -l2 * beta)
        if watch(point, objective=problem.primal(point)) or watch.proves(problem, point):
            break
    return point


def _system(problem: Problem, watch: Watch) -> FactoredGram:
    """The factored matrix, made once for all problems that differ in their targets only."""
    kept = kept_for(problem, watch)
    key = (id(problem.weights), problem.C, problem.penalty.l2)
    if kept.get("ridge") != key:
        design = cast(GramDesign, problem.design)
        design.multiply_by(None)
        K = kept.pop("system").restored() if "system" in kept else design.fresh_matrix()
        kept["ridge"] = None  # until the factor is there
        kept["system"] = FactoredGram(K, problem.penalty.l2 / (2.0 * problem.scale))
        kept["ridge"] = key
        design.multiply_by(kept["system"].product)
    return kept["system"]


def _bordered(system: FactoredGram, right: Array, total: float, intercept: bool) -> tuple[Array, float]:
    """The solution of  M x + b = right,  sum_i x_i = total; b = 0 without an intercept."""
    x = system.solve(right)
    if not intercept:
        return x, 0.0
    b = (float(x.sum()) - total) / float(system.response.sum())
    return x - b * system.response, b
