"""Losses with kinks in the envelope method: Moreau envelopes of the kinks, and Newton's method on the active rows.

A kink max(left a, right a) is rounded to  max over v of  v a - tau/2 (v - centre)^2,  quadratic for |a| up to about
tau and exact beyond. The rounded problem bends only at the few rows near a corner, so its Newton matrix is cheap.
Between rounds the centre moves to the slopes found, which makes the rounding vanish at the solution itself (the
method of multipliers), and tau shrinks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.certificate import verify
from empirisk.linalg import blocks
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.factor import normal_equations
from empirisk.linalg.single_precision import coarse
from empirisk.linalg.threads import parallel_map
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import Watch, thinned
from empirisk.solvers.corners.crossover import ActiveSet, crossover
from empirisk.solvers.corners.kinks import corners_of, spread_of
from empirisk.solvers.line_search import line_search

#: Entries of a design up to which the exact solution on the active set (crossover) costs less than a round.
SMALL = 1 << 20
#: Newton steps of one round at most; about five are usual, and the next round continues with a smaller tau.
STEPS_A_ROUND = 30
#: Rounds on every eighth row: its solution differs from that of all rows, so more digits would be wasted.
ROUNDS_ON_THIN_DATA = 5
#: With fewer rows for each column no start on part of the rows is computed.
ROWS_PER_COLUMN = 4
Indices = NDArray[np.intp]
#: Bytes of a row in a sweep, by which rows are shared among threads: a sweep takes about a nanosecond per row.
ENTRY_BYTES = 8
#: The factor by which tau shrinks: a smaller one takes more rounds, a larger one more Newton steps in each.
SHARPER = 5.0
#: Rows farther than this many tau from their kink are linear in the inner steps; the reach doubles after a short step.
REACH = 5.0
#: Inner Newton steps on the active rows; all rows are checked again after at most this many.
STEPS_ON_NEAR_ROWS = 20
#: Entries of a design below which every row counts as active: choosing would cost more than it saves.
MANY = 1 << 18


@plain_loop
def kinks_along(a, da, t, centre, scale, shape, start, stop):
    """Value and derivative in t of  sum_i scale_i (v a - tau/2 (v - centre)^2)  at a + t da, v the best slope."""
    left, right, tau = shape
    value = 0.0
    slope = 0.0
    for i in range(start, stop):
        position = a[i] + t * da[i]
        v = min(max(centre[i] + position / tau, left), right)
        away = v - centre[i]
        value += scale[i] * (v * position - 0.5 * tau * away * away)
        slope += scale[i] * v * da[i]
    return value, slope


@plain_loop
def slopes_and_bends(a, centre, scale, shape, slopes, bends, start, stop):
    """The slopes scale v, the curvatures scale / tau of the kinks whose v is free; returns the value of `along`."""
    left, right, tau = shape
    value = 0.0
    for i in range(start, stop):
        free = centre[i] + a[i] / tau
        v = min(max(free, left), right)
        away = v - centre[i]
        value += scale[i] * (v * a[i] - 0.5 * tau * away * away)
        bends[i] = scale[i] / tau if left < free < right else 0.0
        slopes[i] = scale[i] * v
    return value


@dataclass
class RoundedKink:
    """Kinks of one kind: where they stand, the slopes on either side, and per row the centre of v."""

    place: Array
    left: float
    right: float
    centre: Array
    a: Array
    slopes: Array
    bends: Array

    def distance(self, rows: slice, tau: float) -> Array:
        """The distance of each row from the interval where this kink is quadratic; negative inside."""
        a, centre = self.a[rows], self.centre[rows]
        return np.maximum(tau * (self.left - centre) - a, a - tau * (self.right - centre))


class Pull(NamedTuple):
    """A linear term of the objective in w and b: what the inactive rows add while they stay linear."""

    w: Array
    b: float

    def value(self, w: Array, b: float) -> float:
        return float(self.w @ w) + self.b * b


class Rounded:
    """Weights and predictions of a problem, with value and gradient of its Moreau envelope."""

    #: The constant that was subtracted from the targets, part of every intercept.
    level = 0.0
    u: Array
    gradient: Array
    imbalance: float
    value: float
    primal: float

    def __init__(self, problem: Problem, w: Array, b: float):
        self.problem, self.w, self.b, self.f = problem, w.copy(), b, problem.predict(Point(w, b))

    def candidates(self) -> list[Point]:
        """The points to certify: the one with the slopes as its dual point."""
        return [self.point()]

    def point(self) -> Point:
        """The current weights and dual point."""
        return Point(self.w, self.b + self.level, self.u)

    def rising(self) -> bool:
        """Never: progress is measured by the gap alone."""
        return False

    def polished(self, point: Point, watch: Watch) -> Point:
        """The point itself: there is no active set to solve for."""
        return point

    def rounding(self) -> float:
        """How far the rounded objective lies below the true one, which bounds the error of this round."""
        return max(self.primal - self.value, 0.0)

    def dual_error(self) -> float:
        """The part of the gap that comes from the gradient not being zero yet."""
        penalty, size = self.problem.penalty, np.abs(self.gradient)
        if penalty.l2 > 0:
            lost = 0.5 * float(size @ size) / penalty.l2
        else:
            # With l1 the dual point must be scaled down until no correlation exceeds l1: the largest error counts.
            lost = float(((size.max() if penalty.l1 else size) * np.abs(self.w)).sum())
        return lost + abs(self.imbalance * self.b)


class RoundedCorners(Rounded):
    """Weights, predictions and rounded kinks.

    Parameters
    ----------
    problem : Problem
        Its loss has corners and otherwise at most a quadratic part; its penalty is l2 or none.
    start : Point
        Where to begin.
    tau : float
        The width of the rounding.
    centres : list of arrays, optional
        For each kind of kinks, the centre of v per row; halfway between the slopes unless given.
    pull : Pull, optional
        What rows that are left out add, as long as they stay straight.
    """

    #: The estimated gap, in units of tol, at which a certificate is computed; rounds without progress until a stall.
    hope, patience = 1.0, 8

    def __init__(
        self,
        problem: Problem,
        start: Point,
        tau: float,
        centres: list[Array] | None = None,
        pull: Pull | None = None,
    ):
        super().__init__(problem, start.w, float(start.b))
        self.tau, self.reach = tau, REACH
        self.pull = Pull(np.zeros(len(self.w)), 0.0) if pull is None else pull
        rows = len(self.f)
        sign, origin = (problem.y, 0.0) if problem.loss.margin_form else (1.0, problem.y)
        self.sign = np.broadcast_to(sign, rows)
        corners = corners_of(problem.loss).items()
        if centres is None:
            centres = [np.full(rows, 0.5 * (left + right)) for _, (left, right) in corners]
        self.kinks = [
            RoundedKink(np.broadcast_to(origin + place, rows), left, right, centre, *np.empty((3, rows)))
            for (place, (left, right)), centre in zip(corners, centres, strict=True)
        ]
        self.smooth = problem.loss.smooth_part
        self.u, self.correlations = np.zeros(rows), self.pull.w.copy()
        self._differentiate()

    def round(self, watch: Watch) -> bool:
        """Newton steps at one tau; True if they found the minimum."""
        for _ in range(STEPS_A_ROUND):
            self.step(watch.tol * self.problem.magnitude(self.primal), watch.must_stop)
            if watch(self.point(), objective=self.primal):
                return False
            if self.settled(watch.tol * self.problem.magnitude(self.primal)):
                return True
        return False

    def polished(self, point: Point, watch: Watch) -> Point:
        """The exact solution on the active set (crossover), if its certificate is better; on small data only."""
        if np.prod(self.problem.design.shape) > SMALL or watch.latest is None:
            return point
        exact = crossover(self.problem, self.held())
        return exact if exact is not None and verify(self.problem, exact).gap < watch.latest.gap else point

    def settled(self, goal: float) -> bool:
        """Whether the minimum at this tau is found as exactly as later rounds can use."""
        # A tenth of the goal, or a hundredth of what is rounded off, is left to later rounds.
        return self.dual_error() <= 0.1 * max(goal, 0.1 * self.rounding())

    def _sweep(self, kernel: Callable, *arrays) -> list:
        def run(group: list[slice]):
            return kernel(*arrays, group[0].start, group[-1].stop)

        return parallel_map(run, blocks.groups(len(self.f), ENTRY_BYTES))

    def _differentiate(self) -> None:
        """Slopes, curvatures, gradient and value at the current point."""
        problem = self.problem
        u, self.curvature = np.empty((2, len(self.f)))
        linear = self.pull.value(self.w, self.b)

        def run(rows: slice) -> float:
            y, f, sign, scale = problem.y[rows], self.f[rows], self.sign[rows], problem.scale[rows]
            value, slopes, bends = 0.0, u[rows], self.curvature[rows]
            slopes[:] = bends[:] = 0.0
            if self.smooth is not None:
                slopes += scale * self.smooth.derivative(y, f)
                bends += scale * self.smooth.curvature(y, f)
                value += float(scale @ self.smooth.value(y, f))
            for kink in self.kinks:
                np.subtract(sign * f, kink.place[rows], out=kink.a[rows])
                shape = (kink.left, kink.right, self.tau)
                arrays = (kink.a, kink.centre, problem.scale, shape, kink.slopes, kink.bends)
                value += slopes_and_bends(*arrays, rows.start, rows.stop)
                slopes += sign * kink.slopes[rows]
                bends += kink.bends[rows]
            return value

        total = blocks.sum_of_rows(run, len(self.f))
        self.value = problem.penalty.value(self.w) + linear + total
        self.primal = problem.primal(Point(self.w, self.b), self.f) + linear
        self._correlate(u)
        self.gradient = problem.penalty.l2 * self.w + self.correlations
        self.imbalance = float(u.sum()) + self.pull.b if problem.intercept else 0.0

    def _correlate(self, u: Array) -> None:
        """Take the slopes u; where few have changed, their rows alone are read."""
        changed = blocks.places(lambda rows: u[rows] != self.u[rows], len(u))
        if 4 * len(changed) < len(u):
            difference = u[changed] - self.u[changed]
            self.correlations = self.correlations + self.problem.design.rows(changed).tdot(difference)
        else:
            self.correlations = self.problem.design.tdot(u) + self.pull.w
        self.u = u

    def step(self, goal: float, stop: Callable[[], bool]) -> None:
        """Newton steps on the active rows, then a line search on all rows along the way they led."""
        near = self._near()
        if near is None:
            self._move(*self._newton())
            return
        inner = self._on(near)
        for _ in range(STEPS_ON_NEAR_ROWS):
            inner._move(*inner._newton())
            if inner.settled(goal) or stop():
                break
        share = self._move(inner.w - self.w, inner.b - self.b)
        self.reach = REACH if share > 0.5 else 2 * self.reach

    def _near(self) -> Indices | None:
        """The active rows, those near a kink; None for all of them."""
        if self.smooth is not None or self.problem.design.shape[0] * len(self.w) < MANY:
            return None

        def is_near(rows: slice) -> NDArray[np.bool_]:
            return np.minimum.reduce([kink.distance(rows, self.tau) for kink in self.kinks]) <= self.reach * self.tau

        near = blocks.places(is_near, len(self.f))
        return near if 2 * len(near) < len(self.f) else None

    def _on(self, near: Indices) -> "RoundedCorners":
        """The state on the active rows, with the others linearised; value and gradient at its point are the same."""
        part, u = self.problem.part(near), self.u[near]
        pull = Pull(self.correlations - part.design.tdot(u), self.imbalance - float(u.sum()))
        return RoundedCorners(part, Point(self.w, self.b), self.tau, [kink.centre[near] for kink in self.kinks], pull)

    def _newton(self) -> tuple[Array, float]:
        """The Newton step; only rows with curvature enter its matrix."""
        problem, curvature, design = self.problem, self.curvature, self.problem.design
        bent = blocks.places(lambda rows: curvature[rows] != 0, len(curvature))
        if 0 < 2 * len(bent) < len(curvature):
            curvature, design = curvature[bent], design.rows(bent)
        l2 = problem.penalty.l2
        design = coarse(design, curvature, l2)
        system = normal_equations(design, curvature, np.full(len(self.w), l2), problem.intercept)
        return system.step(-self.gradient, -self.imbalance)

    def _move(self, dw: Array, db: float) -> float:
        """Move along a direction by the step size of the line search, which is returned."""
        df = self.problem.design.predict(dw, db)
        slope = float(self.gradient @ dw + self.imbalance * db)
        t, _ = line_search(self._along(dw, db, df), self.value, slope)
        self.w, self.b = self.w + t * dw, self.b + t * db
        self.f = blocks.rowwise(lambda f, df: f + t * df, self.f, df)
        self._differentiate()
        return t

    def _along(self, dw: Array, db: float, df: Array) -> Callable[[float], tuple[float, float]]:
        problem, changes = self.problem, blocks.rowwise(np.multiply, self.sign, df)

        def evaluate(t: float) -> tuple[float, float]:
            w = self.w + t * dw
            value = problem.penalty.value(w) + self.pull.value(w, self.b + t * db)
            slope = problem.penalty.l2 * float(w @ dw) + self.pull.value(dw, db)
            if self.smooth is not None:
                f = self.f + t * df
                value += float(problem.scale @ self.smooth.value(problem.y, f))
                slope += float((problem.scale * self.smooth.derivative(problem.y, f)) @ df)
            for kink in self.kinks:
                shape = (kink.left, kink.right, self.tau)
                parts = self._sweep(kinks_along, kink.a, changes, t, kink.centre, problem.scale, shape)
                value += sum(part for part, _ in parts)
                slope += sum(part for _, part in parts)
            return value, slope

        return evaluate

    def estimate(self) -> float:
        """An estimate of the relative gap: that of the slopes as a dual point, which may violate sum u = 0 a little."""
        problem = self.problem
        bound = -problem.conjugate_sum(self.u)
        if problem.penalty.l2 > 0:
            bound -= problem.penalty.conjugate(-self.correlations)
        else:
            bound -= float(np.abs(self.correlations) @ np.abs(self.w))
        gap = self.primal - bound + abs(self.imbalance * self.b)
        return gap / problem.magnitude(self.primal)

    def sharpen(self, tol: float = 0.0) -> None:
        """Centre the kinks at the slopes found, and shrink the rounding."""
        for kink in self.kinks:
            kink.centre = blocks.rowwise(np.divide, kink.slopes, self.problem.scale)
        self.tau /= SHARPER
        self._differentiate()

    def held(self) -> ActiveSet:
        """The active set: rows at a kink, those whose slope is strictly between its bounds."""
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
        return ActiveSet(slopes, rows, targets[rows], np.arange(len(self.w)), np.zeros(len(self.w)), bends, self.f)


def rounded_start(problem: Problem, watch: Watch, start: Point | None) -> RoundedCorners:
    """From a given point, or from a rough solution on every eighth row."""
    thin = thinned(problem, ROWS_PER_COLUMN) if start is None else None
    if thin is None:
        return RoundedCorners(problem, problem.origin() if start is None else start, spread_of(problem))
    state = RoundedCorners(thin, thin.origin(), spread_of(thin))
    quiet = Watch(tol=watch.tol, deadline=watch.deadline)
    # Solutions of every eighth row and of all rows differ by a gap of about columns / rows.
    goal = 0.5 * thin.design.shape[1] / thin.design.shape[0]
    for _ in range(ROUNDS_ON_THIN_DATA):
        if not state.round(quiet) or state.estimate() <= goal:
            break
        state.sharpen()
    return RoundedCorners(problem, Point(state.w, state.b), state.tau)
