"""Working sets of groups: norms of groups of many columns, solved on the groups that matter."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import CONVEX, EXPLICIT, GROUPS, Proofs, Solver, Watch
from empirisk.solvers.corners.interior_point import InteriorPoint
from empirisk.stop import Ending

#: Columns of the groups that the first working set takes in.
FIRST = 64
#: How much larger a working set may become in a round.
GROWTH = 2.0
#: The share of the gap over all columns that is left to a working set, and the tolerance of the first one.
SHARE, ROUGH = 0.1, 1e-2
#: Correlations beyond the limit by this share are no rounding.
BEYOND = 1e-12


class WorkingGroups(Solver):
    """An interior-point method on the columns of a working set of groups, with a duality gap over all of them.

    A group whose correlations |A_g'u| stay within its limit has zero weights. Those that exceed it join the set, the
    worst first, until the gap over all groups is closed; every loss that `InteriorPoint` takes can be solved so.

    >>> X, y = np.eye(4), np.array([3.0, 3.0, 0.1, 0.2])
    >>> machine = er.Regressor("squared", penalty=er.penalties.GroupL1(2), fit_intercept=False)
    >>> machine.set_params(solver=er.solvers.WorkingGroups()).fit(X, y).coef_.round(3)
    array([2.5, 2.5, 0. , 0. ])
    """

    needs = (EXPLICIT, CONVEX, GROUPS)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        state = WorkingGroupsRun(problem, problem.origin() if start is None else start)
        proofs, tol = Proofs(problem, watch), max(ROUGH, watch.tol)
        while True:
            point = state.point
            if proofs(point):
                return point
            if watch(point, objective=problem.primal(point)):
                return proofs.best(point)
            gap = np.inf if watch.latest is None else watch.latest.relative_gap
            grown = state.grow()
            if not grown and tol <= SHARE * watch.tol:
                watch.status = Ending.STALLED
                return proofs.best(point)
            # Where no group is missing, what is left of the gap is that of the set.
            tol = max(SHARE * min(tol, gap), SHARE * watch.tol) if grown else SHARE * watch.tol
            part = state.part()
            if InteriorPoint().refusal(part):
                watch.status = Ending.STALLED
                return proofs.best(point)
            inner = Watch(tol=tol, deadline=watch.deadline)
            state.take(InteriorPoint().solve(part, inner))


class WorkingGroupsRun:
    """The point reached, and the groups of the working set."""

    def __init__(self, problem: Problem, start: Point):
        self.problem, self.point = problem, start
        self._blocks, limits = problem.penalty.blocks(problem.width[0]), problem.penalty.group_limits(problem.width)
        assert limits is not None  # a need of the solver
        self._limits, self._sizes = limits, np.bincount(self._blocks)
        self._chosen = self._lengths(start.w) > 0

    def _lengths(self, w: Array) -> Array:
        return np.sqrt(np.bincount(self._blocks, (w * w).sum(axis=tuple(range(1, w.ndim)))))

    @property
    def _columns(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._chosen[self._blocks])

    def grow(self) -> bool:
        """Take in the groups whose correlations exceed their limits most; False where there are none.

        The first groups are those with the largest ones: a loss with corners has no slopes to go by.
        """
        problem, u = self.problem, self.point.u
        u = problem.slopes(problem.predict(self.point)) if u is None else u
        excess = self._lengths(problem.design.tdot(u)) / self._limits
        excess[self._chosen] = 0.0
        new = np.flatnonzero(excess > (1 + BEYOND if self._chosen.any() else -1.0))
        new = new[np.argsort(-excess[new], kind="stable")]
        room = max(FIRST, (GROWTH - 1) * self._sizes[self._chosen].sum())
        # At least one, however large it is.
        self._chosen[new[: 1 + np.searchsorted(np.cumsum(self._sizes[new]), room)]] = True
        return len(new) > 0

    def part(self) -> Problem:
        """The problem of the working set."""
        columns, penalty = self._columns, self.problem.penalty.part(self._columns, self.problem.width[0])
        return replace(self.problem, design=self.problem.design.taking(columns), penalty=penalty)

    def take(self, found: Point) -> None:
        """Take the point of the working set."""
        w = np.zeros(self.problem.width)
        w[self._columns] = found.w
        self.point = replace(found, w=w)
