"""Newton's method on corners rounded off, sharper round by round: for losses with corners on long data.

A kink max(left a, right a) is rounded to  max over v of  v a - tau/2 (v - centre)^2,  quadratic for |a| up to about
tau and exact beyond. The rounded problem bends only at the few rows near a corner, so its Newton matrix is cheap.
Between rounds the centre moves to the slopes found, which makes the rounding vanish at the solution itself (the
method of multipliers), and tau shrinks.
"""

import numpy as np

from empirisk.certificate import Status, verify
from empirisk.linalg.threads import single_threaded_blas
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.corners import spread_of
from empirisk.solvers.crossover import crossover
from empirisk.solvers.pause import must_stop
from empirisk.solvers.smoothing_state import State
from empirisk.solvers.thinning import thinned

SMALL = 1 << 20
STEPS_A_ROUND = 30
ROUNDS_ON_THIN_DATA = 5
ROWS_PER_COLUMN = 4


class SmoothingNewton(Solver):
    """Newton on rounded corners with the method of multipliers, for cornered losses with l2 or no penalty.

    An iteration costs a product with the data and some Newton steps on the rows near a corner; the others are straight
    in the meantime, and have their say in the line search.

    >>> er.SVM(solver=er.solvers.SmoothingNewton()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).solver_
    'smoothing_newton'
    """

    def refuses(self, problem: Problem) -> str:
        if problem.classes:
            return "it handles one output; joint losses need solver='joint_newton'"
        if problem.penalty.l1 > 0:
            return "the penalty has corners"
        if not problem.loss.corners:
            return "the loss has no corners"
        smooth = problem.loss.smooth_part
        return "" if smooth is None or smooth.quadratic else "the loss bends differently from place to place"

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if problem.origin_value == 0:
            watch.status = Status.CONVERGED
            return problem.origin()
        with single_threaded_blas():
            return self._sharpened(problem, watch, start)

    def _sharpened(self, problem: Problem, watch: Watch, start: Point | None) -> Point:
        """Round after round, each with sharper corners."""
        state = self._start(problem, watch, start)
        least, stalls = np.inf, 0
        while True:
            done = self._round(state, watch)
            if watch.status:
                return state.point()
            gap = state.estimate()
            point = state.point()
            if (gap <= watch.tol or stalls) and watch.proves(problem, point):
                return self._polished(problem, state, watch) or point
            stalls = 0 if gap < 0.9 * least else stalls + 1
            least = min(least, gap)
            if stalls >= 8:
                watch.status = Status.STALLED
                return state.point()
            if done:
                state.sharpen()

    @staticmethod
    def _round(state: State, watch: Watch) -> bool:
        """Newton steps at one sharpness; True if they found the minimum."""
        for _ in range(STEPS_A_ROUND):
            state.step(watch.tol * state.problem.magnitude(state.primal), lambda: must_stop(watch))
            if watch(state.point(), objective=state.primal):
                return False
            if state.settled(watch.tol * state.problem.magnitude(state.primal)):
                return True
        return False

    def _start(self, problem: Problem, watch: Watch, start: Point | None) -> State:
        """From a given point, or from a rough solution on every eighth row."""
        thin = thinned(problem, ROWS_PER_COLUMN) if start is None else None
        if thin is None:
            return State(problem, problem.origin() if start is None else start, spread_of(problem))
        state = State(thin, thin.origin(), spread_of(thin))
        quiet = Watch(tol=watch.tol, deadline=watch.deadline, interrupted=watch.interrupted)
        goal = 0.5 * thin.design.shape[1] / thin.design.shape[0]
        for _ in range(ROUNDS_ON_THIN_DATA):
            if not self._round(state, quiet) or state.estimate() <= goal:
                break
            state.sharpen()
        return State(problem, Point(state.w, state.b), state.tau)

    @staticmethod
    def _polished(problem: Problem, state: State, watch: Watch) -> Point | None:
        """The exact solution that the rows near a corner point to, if it proves better; on small data only."""
        if np.prod(problem.design.shape) > SMALL:
            return None
        exact = crossover(problem, state.held())
        better = exact is not None and watch.latest is not None and verify(problem, exact).gap < watch.latest.gap
        return exact if better else None
