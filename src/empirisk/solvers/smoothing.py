"""Newton's method on corners rounded off, sharper round by round: for losses with corners on long data.

A kink max(left a, right a) is rounded to  max over v of  v a - tau/2 (v - centre)^2,  quadratic for |a| up to about
tau and exact beyond. The rounded problem bends only at the few rows near a corner, so its Newton matrix is cheap.
Between rounds the centre moves to the slopes found, which makes the rounding vanish at the solution itself (the
method of multipliers), and tau shrinks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.certificate import Status, verify
from empirisk.linalg import blocks
from empirisk.linalg.blocks import single_threaded_blas
from empirisk.linalg.factor import NormalEquations
from empirisk.problem import Point, Problem
from empirisk.solvers import smoothing_loops as loops
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.corners import corners_of, spread_of
from empirisk.solvers.crossover import Held, crossover
from empirisk.solvers.search import line_search
from empirisk.solvers.thinning import thinned

Array = NDArray[np.float64]
#: A sweep takes about a nanosecond per row: threads pay for many rows only.
ENTRY_BYTES = 8
SHARPER = 5.0
SMALL = 1 << 20
STEPS_A_ROUND = 30
ROUNDS_ON_THIN_DATA = 5


class SmoothingNewton(Solver):
    """Newton on rounded corners with the method of multipliers, for cornered losses with l2 or no penalty.

    Each step costs two products with the data and a normal matrix of the rows near a corner.

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
    def _round(state: "State", watch: Watch) -> bool:
        """Newton steps at one sharpness; True if they found the minimum."""
        for _ in range(STEPS_A_ROUND):
            state.step()
            if watch(state.point(), objective=state.primal):
                return False
            goal = watch.tol * state.problem.magnitude(state.primal)
            if state.dual_error() <= 0.1 * max(goal, 0.1 * state.rounding()):
                return True
        return False

    def _start(self, problem: Problem, watch: Watch, start: Point | None) -> "State":
        """From a given point, or from a rough solution on every eighth row."""
        thin = thinned(problem) if start is None else None
        if thin is None:
            return State(problem, problem.origin() if start is None else start, spread_of(problem))
        state = State(thin, thin.origin(), spread_of(thin))
        quiet = Watch(tol=watch.tol, deadline=watch.deadline, interrupted=watch.interrupted)
        goal = 0.1 * thin.design.shape[1] / thin.design.shape[0]
        for _ in range(ROUNDS_ON_THIN_DATA):
            if not self._round(state, quiet) or state.estimate() <= goal:
                break
            state.sharpen()
        return State(problem, Point(state.w, state.b), state.tau)

    @staticmethod
    def _polished(problem: Problem, state: "State", watch: Watch) -> Point | None:
        """The exact solution that the rows near a corner point to, if it proves better; on small data only."""
        if np.prod(problem.design.shape) > SMALL:
            return None
        exact = crossover(problem, state.held())
        better = exact is not None and watch.latest is not None and verify(problem, exact).gap < watch.latest.gap
        return exact if better else None


@dataclass
class Kink:
    """Kinks of one kind: where they stand, the slopes on either side, and per row the centre of v."""

    place: Array | float
    left: float
    right: float
    centre: Array
    a: Array
    slopes: Array
    bends: Array


class State:
    """Weights, predictions and rounded kinks."""

    def __init__(self, problem: Problem, start: Point, tau: float):
        self.problem, self.tau = problem, tau
        self.w, self.b = start.w.copy(), float(start.b)
        self.f = problem.predict(start)
        rows = len(self.f)
        self.sign, self.origin = (problem.y, 0.0) if problem.loss.margin_form else (1.0, problem.y)
        self.kinks = [
            Kink(self.origin + place, left, right, np.full(rows, 0.5 * (left + right)), *np.empty((3, rows)))
            for place, (left, right) in corners_of(problem.loss).items()
        ]
        self.smooth = problem.loss.smooth_part
        self._differentiate()

    def point(self) -> Point:
        """The current weights and dual point."""
        return Point(self.w, self.b, self.u)

    def dual_error(self) -> float:
        """What the dual point loses for not being stationary."""
        residual = self.problem.penalty.l2 * self.w + self.correlations
        l2 = self.problem.penalty.l2
        lost = 0.5 * float(residual @ residual) / l2 if l2 > 0 else float(np.abs(residual) @ np.abs(self.w))
        return lost + abs(self.imbalance * self.b)

    def rounding(self) -> float:
        """How far the rounded objective lies below the true one, which bounds the error of this round."""
        return max(self.primal - self.value, 0.0)

    def _sweep(self, kernel: Callable, *arrays) -> list:
        def run(group: list[slice]):
            return kernel(*arrays, group[0].start, group[-1].stop)

        return blocks.in_threads(run, blocks.groups(len(self.f), ENTRY_BYTES))

    def _differentiate(self) -> None:
        """Slopes, curvatures, gradient and value at the current point."""
        problem = self.problem
        self.u, self.curvature = np.zeros(len(self.f)), np.zeros(len(self.f))
        self.value = problem.penalty.value(self.w)
        if self.smooth is not None:
            self.u += problem.scale * self.smooth.derivative(problem.y, self.f)
            self.curvature += problem.scale * self.smooth.curvature(problem.y, self.f)
            self.value += float(problem.scale @ self.smooth.value(problem.y, self.f))
        for kink in self.kinks:
            kink.a = self.sign * self.f - kink.place
            shape = (kink.left, kink.right, self.tau)
            arrays = (kink.a, kink.centre, problem.scale, shape, kink.slopes, kink.bends)
            self.value += sum(self._sweep(loops.slopes_and_bends, *arrays))
            self.u += self.sign * kink.slopes
            self.curvature += kink.bends
        self.primal = problem.primal(Point(self.w, self.b), self.f)
        self.correlations = problem.design.tdot(self.u)
        self.imbalance = float(self.u.sum()) if problem.intercept else 0.0

    def step(self) -> float:
        """One Newton step with a line search; returns the decrease that it promised."""
        problem, l2 = self.problem, self.problem.penalty.l2
        gradient = l2 * self.w + self.correlations
        system = NormalEquations(problem.design, self.curvature, np.full(len(self.w), l2), problem.intercept)
        dw, db = system.step(-gradient, -self.imbalance)
        df = problem.design.dot(dw) + db
        decrement = -float(gradient @ dw + self.imbalance * db)
        t, _ = line_search(self._along(dw, df), self.value, -decrement)
        self.w, self.b, self.f = self.w + t * dw, self.b + t * db, self.f + t * df
        self._differentiate()
        return decrement

    def _along(self, dw: Array, df: Array) -> Callable[[float], tuple[float, float]]:
        problem, changes = self.problem, self.sign * df

        def evaluate(t: float) -> tuple[float, float]:
            w = self.w + t * dw
            value, slope = problem.penalty.value(w), problem.penalty.l2 * float(w @ dw)
            if self.smooth is not None:
                f = self.f + t * df
                value += float(problem.scale @ self.smooth.value(problem.y, f))
                slope += float((problem.scale * self.smooth.derivative(problem.y, f)) @ df)
            for kink in self.kinks:
                shape = (kink.left, kink.right, self.tau)
                parts = self._sweep(loops.along, kink.a, changes, t, kink.centre, problem.scale, shape)
                value += sum(part for part, _ in parts)
                slope += sum(part for _, part in parts)
            return value, slope

        return evaluate

    def estimate(self) -> float:
        """The relative gap that the point suggests, up to the imbalance of its dual point."""
        problem = self.problem
        bound = -problem.conjugate_sum(self.u)
        if problem.penalty.l2 > 0:
            bound -= problem.penalty.conjugate(-self.correlations)
        else:
            bound -= float(np.abs(self.correlations) @ np.abs(self.w))
        gap = self.primal - bound + abs(self.imbalance * self.b)
        return gap / problem.magnitude(self.primal)

    def sharpen(self) -> None:
        """Centre the kinks at the slopes found, and shrink the rounding."""
        for kink in self.kinks:
            kink.centre = kink.slopes / self.problem.scale
        self.tau /= SHARPER
        self._differentiate()

    def held(self) -> Held:
        """The rows that stand at a corner: those whose slope is strictly between its bounds."""
        slopes, targets = np.zeros(len(self.f)), np.full(len(self.f), np.nan)
        bends = np.zeros(len(self.f))
        if self.smooth is not None:
            slopes += self.problem.scale * self.smooth.derivative(self.problem.y, self.f)
            bends += self.problem.scale * self.smooth.curvature(self.problem.y, self.f)
        for kink in self.kinks:
            inside = kink.bends > 0
            slopes += self.sign * np.where(inside, 0.0, kink.slopes)
            targets = np.where(inside, self.sign * kink.place, targets)
        rows = np.flatnonzero(~np.isnan(targets))
        return Held(slopes, rows, targets[rows], np.arange(len(self.w)), np.zeros(len(self.w)), bends, self.f)
