"""Proximal methods: every convex loss with every penalty, by products with the design and proxes alone."""

import numpy as np

from empirisk.certificate import Status
from empirisk.problem import Point, Problem
from empirisk.solvers.accelerated import ProximalGradient
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.metric import Metric
from empirisk.solvers.primal_dual import PrimalDual

# Steps after which FISTA gives way to the primal-dual method.
HANDOVER = 5000


class Proximal(Solver):
    """Accelerated proximal gradient where the loss has bounded curvature, a primal-dual method elsewhere.

    The proximal step of the l1 penalty is the soft threshold. Steps are divided by the sizes of the columns, so their
    units do not matter. An iteration is one step: two products with the design. Memory O(n + d) beside the design.

    Parameters
    ----------
    accelerated : bool, default True
        Whether the gradient steps have momentum (FISTA) or not (ISTA). With momentum, the primal-dual method takes
        over where 5000 steps have not been enough.

    >>> er.Lasso(solver=er.solvers.Proximal()).fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 3.0]).solver_
    'proximal'
    """

    iteration_limit = 50_000

    def __init__(self, accelerated: bool = True):
        self.accelerated = accelerated

    def refuses(self, problem: Problem) -> str:
        return "" if problem.loss.convex else "the loss is not convex"

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        best = problem.origin() if start is None else start
        method, lowest, looked = self._method(problem, best), np.inf, 5
        while True:
            method.step()
            point, steps = method.point(), watch.iterations
            if method.objective <= lowest:
                best, lowest = point, method.objective
            near = method.unsettled <= 10 * watch.tol * problem.magnitude(method.objective)
            # A look at the gap costs several products: when it may succeed, and now and then in any case.
            if method.stuck or steps >= 2 * looked or (near and method.settled() and steps >= 1.1 * looked):
                looked = max(steps, 5)
                if watch.proves(problem, point):
                    return point
            if method.stuck:
                watch.status = Status.STALLED
            if watch(point, objective=method.objective):
                return best
            if steps == HANDOVER:
                method = method.successor()

    def _method(self, problem: Problem, start: Point) -> ProximalGradient | PrimalDual:
        metric = Metric(problem)
        if problem.loss.curvature_bound < np.inf:
            return ProximalGradient(metric, start, self.accelerated)
        return PrimalDual(metric, start)
