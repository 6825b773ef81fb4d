"""A dual point of a kernel machine by an interior-point method, where pair steps crawl and samples are few."""

from dataclasses import replace

import numpy as np

from empirisk.problem import Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import Watch
from empirisk.solvers.factored import Factor
from empirisk.solvers.interior import InteriorPoint
from empirisk.solvers.kernel_rows import gram

#: Samples for which an eigendecomposition is cheap.
SIZE = 1500
NEARLY = 1e-7


def interior_point(problem: Problem, watch: Watch) -> Point | None:
    """The solution on the factor of K, its variables moved to their bounds where they are close; None if too dear."""
    rows = len(problem.y)
    if rows > SIZE or 32 * rows**2 > settings().memory or problem.tilt:
        return None
    explicit = replace(problem, design=Factor(gram(problem).matrix).design)
    solver = InteriorPoint()
    if solver.refusal(explicit):
        return None
    inner = Watch(tol=0.01 * watch.tol, max_iter=200, deadline=watch.deadline, interrupted=watch.interrupted)
    u = solver.solve(explicit, inner).u
    if u is None or not np.all(np.isfinite(u)):
        return None
    low, high = (problem.scale * bound for bound in problem.loss.domain(problem.y))
    for bound in (low, high, np.zeros_like(u)):
        u = np.where(np.abs(u - bound) <= NEARLY * problem.scale, bound, u)
    return Point(-u / problem.penalty.l2, 0.0, u)
