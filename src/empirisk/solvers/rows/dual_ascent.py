"""Dual coordinate ascent: one sample at a time, for data too wide for a matrix of its columns."""

from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from empirisk.linalg.compiled import draw, plain, plain_loop
from empirisk.linalg.compiled_rows import compiled_rows, row_add, row_dot
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import DUAL_QUADRATIC, L2_PART, NORMS, ONE_OUTPUT, RIDGE, Solver, Watch, behind_kernel
from empirisk.solvers.rows.dual_start import dual_terms
from empirisk.stop import Ending

#: Entries of the data that are read between two looks at the clock: a few milliseconds.
SLICE = 1 << 22
# Iterations over which the pace is measured.
MEMORY = 100
#: A gap whose logarithm can still be taken.
TINY = 1e-300
# The stiffness of the intercept, in units of a row's |a|^2 / l2 over sqrt(n): a stiff one slows every row down, a soft
# one takes many passes to settle.
STIFFNESS = 5.0
# Places in the memory: the intercept, the sum of u and the tilt, how many rows are still visited and which is next, the
# largest violation in this pass, how far inside the optimum's side a row must be to be left out, and whether this pass
# began with all rows.
INTERCEPT, SUM, ACTIVE, NEXT, WORST, LIMIT, FULL = range(7)


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

    needs = (ONE_OUTPUT, DUAL_QUADRATIC, NORMS, L2_PART, behind_kernel(RIDGE))

    #: With five passes each, far beyond what a problem that converges takes.
    iteration_limit = 5000

    def __init__(self, passes: int = 5, random_state: int = 0):
        self.passes = passes
        self.random_state = random_state

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        state = Ascent(problem, start, self.random_state)
        # The first rounds are done at a tenth of the violation at the start.
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
            # Violations this small, beside those at the start, are rounding.
            if _hopeless(smallest, watch) or goal < 1e-14 * state.reach:
                watch.status = Ending.STALLED
            if watch(point, objective=state.primal):
                return point


def _hopeless(gaps: list[float], watch: Watch) -> bool:
    """Whether, at the pace of the last iterations, even ten times those left will not bring the gap to tol.

    The pace rises once it is known which rows rest at their bounds.
    """
    if len(gaps) <= MEMORY + 1 or watch.tol <= 0:
        return False
    pace = np.log(gaps[-MEMORY] / gaps[-1]) / MEMORY
    return bool(np.log(gaps[-1] / watch.tol) > 10 * pace * (watch.max_iter - watch.iterations))


class Ascent:
    """The dual iterate, and what the compiled loops need of the problem."""

    def __init__(self, problem: Problem, start: Point | None, seed: int):
        self.problem = problem
        self.rows = compiled_rows(problem.design)
        rows = len(problem.y)
        squares = problem.design.squared_rows() / problem.penalty.l2
        stiffness = (float(squares.mean()) or 1.0) * min(1.0, STIFFNESS / rows**0.5) if problem.intercept else 0.0
        linear, tube, bends, low, high = dual_terms(problem)
        floor = np.finfo(float).tiny  # a row of zeros goes to its bound at once
        self.terms = DualTerms(linear, bends, low, high, np.maximum(squares + stiffness + bends, floor))
        self.shape = Shape(tube, problem.penalty.l1, problem.penalty.l2, stiffness)
        self.iterate = self._begin(start, seed)
        self.reach = float(np.abs(self.terms.linear).mean() + tube) or 1.0
        self.slice = max(1, SLICE * rows // (self.rows[0].size + 1))
        self.primal = np.inf

    def _begin(self, start: Point | None, seed: int) -> "AscentIterate":
        """The iterate at a warm start's dual point, or at zero."""
        problem, rows = self.problem, len(self.problem.y)
        u = np.zeros(rows) if start is None or start.u is None else np.clip(start.u, self.terms.low, self.terms.high)
        memory = np.zeros(FULL + 1)
        memory[INTERCEPT] = 0.0 if start is None or not problem.intercept else float(start.b)
        memory[SUM], memory[ACTIVE], memory[FULL] = u.sum() + problem.tilt, rows, 1.0
        memory[LIMIT] = np.inf
        return AscentIterate(u, self._pushed(u), np.arange(rows), memory, np.array([seed], dtype=np.uint64))

    def _pushed(self, u: Array) -> Array:
        """-A'u, or behind a kernel its products with the samples."""
        design = self.problem.design
        return -(design.dot(u) if design.implicit else design.tdot(u))

    def ascend(self, watch: Watch, goal: float, visits: int) -> bool:
        """Use up the visits, in slices; True if the goal was met before that."""
        while visits > 0 and not watch.must_stop():
            part = min(visits, self.slice)
            left = sweep_rows(self.rows, self.terms, self.shape, self.iterate, goal, part)
            if left < 0:
                return True
            visits -= part - left
        return False

    def point(self) -> Point:
        """The point, with A'u computed again: its updates have rounded."""
        u, memory = self.iterate.u, self.iterate.memory
        self.iterate.p[:] = self._pushed(u)
        memory[SUM] = u.sum() + self.problem.tilt
        return Point(self._weights(), float(memory[INTERCEPT]), u.copy())

    def _weights(self) -> Array:
        p, l1 = -self._correlations(), self.shape.l1
        return (p - np.clip(p, -l1, l1)) / self.shape.l2

    def _correlations(self) -> Array:
        """A'u, in the coordinates of the design: behind a kernel u itself."""
        return self.iterate.u if self.problem.design.implicit else -self.iterate.p

    def relative_gap(self) -> float:
        """The gap that the iterate suggests: what is left of the balance counts as well."""
        problem, iterate = self.problem, self.iterate
        b = float(iterate.memory[INTERCEPT])
        self.primal = problem.primal(Point(self._weights(), b))
        unbalanced = b * float(iterate.memory[SUM])
        gap = self.primal - problem.dual(iterate.u, self._correlations()) - unbalanced + abs(unbalanced)
        return gap / problem.magnitude(self.primal)


class DualTerms(NamedTuple):
    """What the dual says of each u_i:  linear u + tube |u| + bend u^2 / 2  between low and high."""

    linear: Array
    bend: Array
    low: Array
    high: Array
    #: The second derivative of the negative dual in u_i.
    curvature: Array


class Shape(NamedTuple):
    """What all u_i share: the tube, the penalty, and the stiffness of the intercept."""

    tube: float
    l1: float
    l2: float
    stiffness: float


class AscentIterate(NamedTuple):
    """u, p = -A'u or behind a kernel -Ku, the rows in the order of their visits, a few numbers, and a random state."""

    u: Array
    p: Array
    order: NDArray[np.intp]
    memory: Array
    seed: NDArray[np.uint64]


def row_dot_shrunk(rows, i, p, l1):
    """<a_i, sign(p) max(0, |p| - l1)>; inside compiled loops only."""


@overload(row_dot_shrunk)
def _row_dot_shrunk(rows, i, p, l1):
    def dense(rows, i, p, l1):
        X, shift = rows
        total = 0.0
        for j in range(len(p)):
            total += (X[i, j] - shift[j]) * (p[j] - min(max(p[j], -l1), l1))
        return total

    def sparse(rows, i, p, l1):
        data, indices, indptr = rows
        total = 0.0
        for q in range(indptr[i], indptr[i + 1]):
            value = p[indices[q]]
            total += data[q] * (value - min(max(value, -l1), l1))
        return total

    def behind_kernel(rows, i, p, l1):
        return p[i]  # there is no l1

    return {"X": dense, "data": sparse, "K": behind_kernel}[rows.fields[0]]


@plain
def shuffle(order, active, seed):
    """Permute the first rows in place."""
    for k in range(active - 1, 0, -1):
        other = draw(seed, k + 1)
        order[k], order[other] = order[other], order[k]


@plain
def best(u, gradient, curvature, tube, low, high):
    """The u' that maximises the dual along one coordinate."""
    target = u - gradient / curvature
    threshold = tube / curvature
    target = target - min(max(target, -threshold), threshold)
    return min(max(target, low), high)


@plain
def stays(u, gradient, tube, low, high, limit):
    """Whether u rests at a bound, or at the corner of the tube, so firmly that it will not move soon."""
    if u == 0:
        return (high == 0 or gradient + tube > limit) and (low == 0 or gradient - tube < -limit)
    return (u == low and gradient - tube > limit) or (u == high and gradient + tube < -limit)


@plain
def visit(rows, terms, shape, iterate, visits):
    """Maximise the dual in one u_i after the other, until the pass or the visits end; how many visits are left."""
    linear, bend, low, high, curvature = terms
    us, p, order, memory, _ = iterate
    active, k, worst, limit = int(memory[ACTIVE]), int(memory[NEXT]), memory[WORST], memory[LIMIT]
    intercept = memory[INTERCEPT]
    while k < active and visits > 0:
        visits -= 1
        i = order[k]
        u = us[i]
        product = row_dot(rows, i, p) if shape.l1 == 0 else row_dot_shrunk(rows, i, p, shape.l1)
        gradient = linear[i] - product / shape.l2 - intercept + bend[i] * u
        change = best(u, gradient, curvature[i], shape.tube, low[i], high[i]) - u
        if change != 0.0:
            us[i] = u + change
            row_add(rows, i, -change, p)
            memory[SUM] += change
            intercept -= shape.stiffness * change
            worst = max(worst, abs(change) * curvature[i])
        elif stays(u, gradient, shape.tube, low[i], high[i], limit):
            active -= 1
            order[k], order[active] = order[active], i
            continue
        k += 1
    memory[ACTIVE], memory[NEXT], memory[WORST], memory[INTERCEPT] = active, k, worst, intercept
    return visits


@plain_loop
def sweep_rows(rows, terms, shape, iterate, goal, visits):
    """Visit rows at random until ``visits`` are used up, or a whole pass finds no violation above ``goal``.

    Rows that stay at their bounds are left out, until the others meet the goal: then all are looked at again.
    Returns how many visits are left; -1 if the goal is met.
    """
    memory = iterate.memory
    while visits > 0:
        if memory[NEXT] == 0:
            shuffle(iterate.order, int(memory[ACTIVE]), iterate.seed)
        visits = visit(rows, terms, shape, iterate, visits)
        if memory[NEXT] >= memory[ACTIVE] and finish(iterate, shape, goal):
            return -1
    return visits


@plain
def finish(iterate, shape, goal):
    """End a pass: move the intercept by its multiplier, and choose the rows of the next pass; True at the goal."""
    memory = iterate.memory
    correction = shape.stiffness * memory[SUM]
    memory[INTERCEPT] -= correction
    worst, full = max(memory[WORST], abs(correction)), memory[FULL] > 0
    memory[NEXT], memory[WORST], memory[FULL] = 0.0, 0.0, 0.0
    memory[LIMIT] = worst + abs(correction)
    if worst > goal:
        if memory[ACTIVE] == 0:
            # All rest, and the intercept has moved: without a visit the loop around this would never end.
            memory[ACTIVE] = float(len(iterate.order))
        return False
    memory[ACTIVE], memory[FULL] = float(len(iterate.order)), 1.0
    return full
