"""Dual coordinate ascent: one sample at a time, for data too wide for a matrix of its columns."""

import numpy as np
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.problem import Point, Problem
from empirisk.solvers import ascent_loops as loops
from empirisk.solvers import kernel_ascent
from empirisk.solvers.ascent_loops import Iterate, Shape, Terms
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.pause import must_stop
from empirisk.solvers.rows import rows_of

Array = NDArray[np.float64]
SLICE = 1 << 22
# Iterations over which the pace is measured.
MEMORY = 100
TINY = 1e-300
# The stiffness of the intercept, in units of a row's |a|^2 / l2 over sqrt(n): a stiff one slows every row down, a soft
# one takes many passes to settle.
STIFFNESS = 5.0


class DualAscent(Solver):
    """Stochastic dual coordinate ascent with shrinking.

    Each visit of a row maximises the dual in its u_i alone,

        u_i <- clip(soft(u_i - G / H, tube / H), s_i low, s_i high),   H = |a_i|^2 / l2 + q / s_i,

    which for the hinge is  alpha_i <- clip(alpha_i + (1 - y_i f_i) / k_ii, 0, C).  Losses whose conjugate is straight
    or quadratic have this closed form; the penalty needs an l2 part. Rows that rest at a bound are left out until
    the others have settled. A free intercept is the multiplier of sum_i u_i = 0, moved after every pass. An iteration
    is ``passes`` passes worth of visits, after which the gap is looked at.

    Parameters
    ----------
    passes : int, default 5
        Visits between two looks at the gap, in multiples of the number of rows.
    random_state : int, default 0
        Seed of the order of visits.

    >>> er.SVM(solver=er.solvers.DualAscent()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).solver_
    'dual_ascent'
    """

    iteration_limit = 5000

    def __init__(self, passes: int = 5, random_state: int = 0):
        self.passes = passes
        self.random_state = random_state

    def refuses(self, problem: Problem) -> str:
        if problem.classes:
            return "it handles one output; joint losses need solver='proximal'"
        if problem.loss.dual_quadratic is None:
            return "the conjugate of the loss is not made of straight and quadratic pieces"
        return "" if problem.penalty.l2 > 0 else "the penalty has no l2 part, without which the dual is constrained"

    def refusal(self, problem: Problem) -> str:
        return self.refuses(problem)  # explicit features and kernels alike

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if problem.design.implicit:
            return kernel_ascent.run(problem, watch, start, self.passes, self.random_state)
        state = State(problem, start, self.random_state)
        goal, smallest = 0.1 * state.reach, [np.inf]
        while True:
            met = state.ascend(watch, goal, self.passes * len(problem.y))
            gap, point = state.relative_gap(), state.point()
            if gap <= watch.tol and watch.proves(problem, point):
                return point
            if met:
                # The gap is nearly proportional to the goal.
                goal *= min(0.3, max(1e-4, 0.5 * watch.tol / gap)) if gap > 0 else 0.3
            smallest.append(max(min(gap, smallest[-1]), TINY))
            if _hopeless(smallest, watch) or goal < 1e-14 * state.reach:
                watch.status = Status.STALLED
            if watch(point, objective=state.primal):
                return point


def _hopeless(gaps: list[float], watch: Watch) -> bool:
    """Whether, at the pace of the last iterations, even twice the iterations left will not bring the gap to tol."""
    if len(gaps) <= MEMORY + 1 or watch.tol <= 0:
        return False
    pace = np.log(gaps[-MEMORY] / gaps[-1]) / MEMORY
    return bool(np.log(gaps[-1] / watch.tol) > 2 * pace * (watch.max_iter - watch.iterations))


class State:
    """The dual iterate, and what the compiled loops need of the problem."""

    def __init__(self, problem: Problem, start: Point | None, seed: int):
        self.problem = problem
        self.rows = rows_of(problem.design)
        rows = len(problem.y)
        squares = problem.design.squared_rows() / problem.penalty.l2
        stiffness = (float(squares.mean()) or 1.0) * min(1.0, STIFFNESS / rows**0.5) if problem.intercept else 0.0
        self.terms, tube = _terms(problem, squares + stiffness)
        self.shape = Shape(tube, problem.penalty.l1, problem.penalty.l2, stiffness)
        self.iterate = _begin(problem, self.terms, start, seed)
        self.reach = float(np.abs(self.terms.linear).mean() + tube) or 1.0
        self.slice = max(1, SLICE * rows // (self.rows[0].size + 1))
        self.primal = np.inf

    def ascend(self, watch: Watch, goal: float, visits: int) -> bool:
        """Use up the visits, in slices; True if the goal was met before that."""
        while visits > 0 and not must_stop(watch):
            part = min(visits, self.slice)
            left = loops.sweep(self.rows, self.terms, self.shape, self.iterate, goal, part)
            if left < 0:
                return True
            visits -= part - left
        return False

    def point(self) -> Point:
        """The point, with A'u computed anew: its updates have rounded."""
        u, memory = self.iterate.u, self.iterate.memory
        self.iterate.p[:] = -self.problem.design.tdot(u)
        memory[loops.SUM] = u.sum()
        return Point(self._weights(), float(memory[loops.INTERCEPT]), u.copy())

    def _weights(self) -> Array:
        p, l1 = self.iterate.p, self.shape.l1
        return (p - np.clip(p, -l1, l1)) / self.shape.l2

    def relative_gap(self) -> float:
        """The gap that the iterate suggests: what is left of the balance sum_i u_i = 0 counts as well."""
        problem, iterate = self.problem, self.iterate
        b = float(iterate.memory[loops.INTERCEPT])
        self.primal = problem.primal(Point(self._weights(), b))
        unbalanced = b * float(iterate.memory[loops.SUM])
        gap = self.primal - problem.dual(iterate.u, -iterate.p) - unbalanced + abs(unbalanced)
        return gap / problem.magnitude(self.primal)


def _terms(problem: Problem, curvature: Array) -> tuple[Terms, float]:
    """The dual of every sample, from the loss's own statement of its conjugate."""
    slope, tube, bend = problem.loss.dual_quadratic or (0.0, 0.0, 0.0)
    residual = "regression" in problem.loss.tasks
    linear = problem.y + slope if residual else slope * problem.y
    low, high = (problem.scale * bound for bound in problem.loss.domain(problem.y))
    bends = bend / problem.scale
    floor = np.finfo(float).tiny  # a row of zeros goes to its bound at once
    return Terms(linear.astype(float), bends, low, high, np.maximum(curvature + bends, floor)), tube


def _begin(problem: Problem, terms: Terms, start: Point | None, seed: int) -> Iterate:
    """The iterate at a warm start's dual point, or at zero."""
    rows = len(problem.y)
    u = np.zeros(rows) if start is None or start.u is None else np.clip(start.u, terms.low, terms.high)
    memory = np.zeros(loops.PLACES)
    memory[loops.INTERCEPT] = 0.0 if start is None or not problem.intercept else float(start.b)
    memory[loops.SUM], memory[loops.ACTIVE], memory[loops.FULL] = u.sum(), rows, 1.0
    memory[loops.LIMIT], memory[loops.SEED] = np.inf, seed
    return Iterate(u, -problem.design.tdot(u), np.arange(rows), memory)
