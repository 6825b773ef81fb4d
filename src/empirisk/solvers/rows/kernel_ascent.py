"""Dual coordinate ascent behind a kernel: random groups of samples, one variable at a time within a group."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.rows.dual_start import best_intercept
from empirisk.solvers.rows.row_cache import KeptMatrix, RowCache, add_products, gram, row_source

Array = NDArray[np.float64]
#: Samples whose kernel rows are made at once, as one matrix product.
GROUP = 256
#: Visits of each sample of a group: its rows are there already.
VISITS = 2
#: Iterations over which the pace is measured.
MEMORY = 100


@njit(cache=True, nogil=True)
def visit_group(Q, order, u, G, bounds, tube, stiffness):
    """Maximise the dual in one variable after the other; Q is the group's part of K / l2 plus the bends.

    u_i <- clip(soft(u_i - G_i / H, tube / H), low_i, high_i),  H = Q_ii + stiffness.
    """
    low, high = bounds
    for i in order:
        curvature = max(Q[i, i] + stiffness, 1e-300)
        aim = u[i] - G[i] / curvature
        aim = max(abs(aim) - tube / curvature, 0.0) * np.sign(aim)
        aim = min(max(aim, low[i]), high[i])
        step = aim - u[i]
        if step != 0.0:
            u[i] = aim
            for j in range(len(u)):
                G[j] += step * (Q[j, i] + stiffness)


class KernelAscent:
    """The dual iterate u, its gradient, and the intercept as the multiplier of the balance sum_i u_i = -tilt.

    The balance is kept by a proximal step: groups see  stiffness / 2 (sum_i u_i + tilt)^2  as well, and b moves
    against what is left of it after every pass.
    """

    def __init__(self, problem: Problem, start: Point | None):
        self.problem = problem
        self.source: KeptMatrix | RowCache = row_source(gram(problem), GROUP)
        slope, self.tube, bend = problem.loss.dual_quadratic or (0.0, 0.0, 0.0)
        c = problem.y + slope if "regression" in problem.loss.tasks else slope * problem.y
        self.bends = bend / problem.scale
        self.low, self.high = (problem.scale * bound for bound in problem.loss.domain(problem.y))
        warm = start is not None and start.u is not None and start.u.shape == c.shape
        self.u = np.clip(start.u, self.low, self.high) if warm else np.zeros(len(c))  # type: ignore[union-attr]
        self.b = float(start.b) if start is not None and problem.intercept else 0.0
        self.strength, self.c = problem.penalty.l2, c
        typical = float(gram(problem).diagonal.mean()) / self.strength
        self.stiffness = typical / len(c) ** 0.5 if problem.intercept else 0.0
        self.refresh()

    def refresh(self) -> Array:
        """The gradient in double precision; returns A w."""
        products = self.problem.design.dot(-self.u / self.strength)
        self.G = self.c + self.bends * self.u - products
        return products

    def imbalance(self) -> float:
        """What is left of the balance."""
        return float(self.u.sum()) + self.problem.tilt if self.problem.intercept else 0.0

    def sweep(self, random: np.random.Generator, watch: Watch) -> None:
        """Visit all samples once or more, in random groups."""
        order = random.permutation(len(self.u))
        for begin in range(0, len(order), GROUP):
            if watch.must_stop():
                return
            self._group(order[begin : begin + GROUP], random)
        self.b -= self.stiffness * self.imbalance()

    def _group(self, samples: NDArray, random: np.random.Generator) -> None:
        slots = self.source.fetch(samples)
        Q = self.source.rows[np.ix_(slots, samples)].astype(np.float64) / self.strength
        Q[np.diag_indices(len(Q))] += self.bends[samples]
        u = self.u[samples]
        G = self.G[samples] - self.b + self.stiffness * self.imbalance()
        order = np.concatenate([random.permutation(len(samples)) for _ in range(VISITS)])
        visit_group(Q, order, u, G, (self.low[samples], self.high[samples]), self.tube, self.stiffness)
        moved = u - self.u[samples]
        changed = np.flatnonzero(moved)
        add_products(self.source, slots[changed], moved[changed] / self.strength, self.G)
        self.G[samples] += self.bends[samples] * moved
        self.u[samples] = u

    def point(self) -> Point:
        """The point with the best intercept for its weights."""
        b = self.b
        if self.problem.intercept:
            b = best_intercept(self.problem, self.c + self.bends * self.u - self.G, b, b)
        return Point(-self.u / self.strength, b, self.u.copy())


def ascend_behind_kernel(problem: Problem, watch: Watch, start: Point | None, passes: int, seed: int) -> Point:
    """Passes over all samples until the gap is proved; an iteration is ``passes`` of them."""
    random = np.random.default_rng(seed)
    state = KernelAscent(problem, start)
    gaps: list[float] = []
    while True:
        for _ in range(passes):
            state.sweep(random, watch)
        point = state.point()
        gap, objective = _estimate(problem, state, point)
        if gap <= watch.tol * problem.magnitude(objective):
            state.refresh()  # the rows are rounded
            if watch.proves(problem, point):
                return point
        gaps.append(max(min([gap, *gaps[-1:]]), 1e-300))
        if len(gaps) > MEMORY and gaps[-1] > 0.9 * gaps[-MEMORY]:
            watch.status = watch.status or Status.STALLED
        if watch(point, objective=objective):
            return point


def _estimate(problem: Problem, state: KernelAscent, point: Point) -> tuple[float, float]:
    """The gap and the objective that the rows tell; what is left of the balance counts as well."""
    products = state.c + state.bends * state.u - state.G
    f = products + point.b
    square = -float(state.u @ products)
    objective = 0.5 * square + problem.loss_sum(f) + problem.tilt * float(point.b)
    dual = -0.5 * square - problem.conjugate_sum(state.u)
    return objective - dual + abs(float(point.b) * state.imbalance()), objective
