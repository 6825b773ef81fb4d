"""A primal-dual interior-point method, for losses and penalties with corners.

Each corner is a kink  max(left a, right a) = max_{left <= v <= right} v a,  of a prediction or, for the l1 penalty, of a
weight. Its optimality conditions, relaxed by mu > 0, are

    a = q - p,   p (v - left) = mu,   q (right - v) = mu,   p, q > 0,

and Newton's method on them, with mu -> 0, costs one weighted normal matrix A' diag(c) A an iteration.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import EPSILON, Status, verify
from empirisk.linalg.factor import NormalEquations
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.crossover import Held, crossover

Array = NDArray[np.float64]
Step = tuple[Array, Array, Array]
TINY = 1e-100
SMALL = 1 << 20
EXACT = 1e-13


@dataclass
class Kinks:
    """Kinks of one kind, one per entry: slopes on either side, below = v - left, above = right - v, and p, q with
    a = q - p. The distances are kept, not v, because near a bound v itself has no digits left."""

    left: Array
    right: Array
    below: Array
    above: Array
    p: Array
    q: Array

    @classmethod
    def at(cls, a: Array, left: Array, right: Array, slack: Array | float) -> "Kinks":
        """Start in the middle of the slopes, with the given slack on both sides of a."""
        half = 0.5 * (right - left)
        return cls(left, right, half, half.copy(), np.maximum(-a, 0) + slack, np.maximum(a, 0) + slack)

    @property
    def v(self) -> Array:
        """The slope: between left and right."""
        return np.where(self.below < self.above, self.left + self.below, self.right - self.above)

    def complementarity(self) -> float:
        """The sum of p (v - left) + q (right - v): the duality gap of these kinks."""
        return float(self.p @ self.below + self.q @ self.above)

    def curvature(self) -> Array:
        """dv/da on the central path."""
        return 1.0 / (self.q / self.above + self.p / self.below)

    def offset(self, low: Array | float, high: Array | float) -> Array:
        """g, such that dv = curvature * (da + g) aims at p (v - left) = low and q (right - v) = high."""
        return self.q - self.p + low / self.below - high / self.above

    def direction(self, e: Array, low: Array | float, high: Array | float) -> Step:
        """(dv, dp, dq) for e = da + g and the targets of `offset`."""
        dv = self.curvature() * e
        dp = (low - self.p * dv) / self.below - self.p
        dq = (high + self.q * dv) / self.above - self.q
        return dv, dp, dq

    def longest(self, step: Step) -> float:
        """The largest t <= 1 that keeps v between its slopes and p, q positive."""
        dv, dp, dq = step
        return min(_longest(self.below, dv), _longest(self.above, -dv), _longest(self.p, dp), _longest(self.q, dq))

    def move(self, step: Step, t: float) -> None:
        """Go t along the step."""
        dv, dp, dq = step
        self.below, self.above = self.below + t * dv, self.above - t * dv
        self.p, self.q = self.p + t * dp, self.q + t * dq

    def inside(self) -> Array:
        """Where v is strictly between its slopes while p and q vanish: the kink holds the position at its corner."""
        size = self.p.mean() + self.q.mean() + TINY
        reach = self.right - self.left
        return (self.p / size < self.below / reach) & (self.q / size < self.above / reach)

    def settle(self, a: Array) -> None:
        """Take the position as it is, and let p or q grow by what rounding left of a - (q - p).

        So p and q never fall below the rounding of the predictions, and the curvatures stay in bounds.
        """
        missing = a - (self.q - self.p)
        self.q, self.p = self.q + np.maximum(missing, 0), self.p + np.maximum(-missing, 0)


def _longest(values: Array, changes: Array) -> float:
    shrinking = changes < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float((values[shrinking] / -changes[shrinking]).min()))


class InteriorPoint(Solver):
    """Primal-dual interior point with Mehrotra's predictor and corrector.

    Handles losses made of straight and quadratic pieces with every penalty; about twenty iterations whatever the scales of the
    columns, each one normal matrix. Memory O(n d + min(n, d)^2).

    >>> er.SVM(solver=er.solvers.InteriorPoint()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).solver_
    'interior_point'
    """

    def refuses(self, problem: Problem) -> str:
        if problem.classes:
            return "it handles one output; joint losses need solver='joint_newton'"
        smooth = problem.loss.smooth_part
        if smooth is not None and not smooth.quadratic:
            return "the loss bends differently from place to place"
        return "" if problem.loss.corners or problem.penalty.l1 > 0 else "there are no corners"

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if problem.origin_value == 0:
            watch.status = Status.CONVERGED
            return problem.origin()
        state = State(problem, problem.origin() if start is None else start)
        best, stalls = np.inf, 0
        while True:
            gap = state.estimate()
            if gap <= watch.tol or stalls:
                point = state.point()
                if watch.proves(problem, point):
                    return self._polished(problem, state, watch)
            stalls = stalls + 1 if gap >= 0.9 * best else 0
            best = min(best, gap)
            if stalls >= 10:
                watch.status = Status.STALLED
            if watch(state.point(), objective=state.primal) or not state.advance():
                watch.status = watch.status or Status.STALLED
                return state.point()

    @staticmethod
    def _polished(problem: Problem, state: "State", watch: Watch) -> Point:
        """The exact solution that the iterate points to, if it proves better; small problems get a few tries."""
        best, proof = state.point(), verify(problem, state.point())
        tries = 8 if np.prod(problem.design.shape) <= SMALL else 1
        for _ in range(tries):
            exact = crossover(problem, state.held())
            if exact is not None:
                candidate = verify(problem, exact)
                if candidate.gap < proof.gap:
                    best, proof = exact, candidate
            if proof.relative_gap <= EXACT or not state.advance():
                break
            candidate = verify(problem, state.point())
            if candidate.gap < proof.gap:
                best, proof = state.point(), candidate
        watch.record(gap=proof.gap)
        return best


class State:
    """The iterate: weights, predictions and the kinks of the loss and the penalty."""

    def __init__(self, problem: Problem, start: Point):
        self.problem = problem
        self.w, self.b = start.w.copy(), float(start.b)
        self.f = problem.predict(start)
        self.sign, self.kinks, self.places = _loss_kinks(problem, self.f)
        smooth = problem.loss.smooth_part
        self.slopes = np.zeros(len(self.f)) if smooth is None else problem.scale * smooth.derivative(problem.y, self.f)
        self.bends = np.zeros(len(self.f)) if smooth is None else problem.scale * smooth.curvature(problem.y, self.f)
        l1 = problem.penalty.l1
        bound = np.full(len(self.w), l1)
        self.weight_kinks = [Kinks.at(self.w, -bound, bound, _weight_slack(problem))] if l1 > 0 else []
        self.primal = problem.primal(start, self.f)
        self._differentiate()

    def point(self) -> Point:
        """The current weights and dual point."""
        return Point(self.w, self.b, self.u)

    def every(self) -> Iterator[Kinks]:
        """All kinks, of the loss and of the penalty."""
        yield from self.kinks
        yield from self.weight_kinks

    def _differentiate(self) -> None:
        """The dual point u and the residual of stationarity."""
        u = self.slopes.copy()
        for kinks in self.kinks:
            u += self.sign * kinks.v
        self.u = u
        residual = self.problem.penalty.l2 * self.w + self.problem.design.tdot(u)
        for kinks in self.weight_kinks:
            residual = residual + kinks.v
        self.residual = residual
        self.imbalance = float(u.sum()) if self.problem.intercept else 0.0

    def held(self) -> Held:
        """Which corners hold the solution: those whose slope is still free while the slack is nearly gone."""
        slopes, rows, targets = self.slopes.copy(), [], []
        for kinks, place in zip(self.kinks, self.places, strict=True):
            inside = kinks.inside()
            slopes += self.sign * np.where(inside, 0.0, np.where(kinks.below < kinks.above, kinks.left, kinks.right))
            rows.append(np.flatnonzero(inside))
            targets.append((self.sign * place * np.ones(len(self.f)))[inside])
        free, pull = np.arange(len(self.w)), np.zeros(len(self.w))
        for kinks in self.weight_kinks:
            free = np.flatnonzero(~kinks.inside())
            pull = np.where(kinks.below < kinks.above, kinks.left, kinks.right)[free]
        chosen, order = np.unique(np.concatenate(rows), return_index=True) if rows else (np.empty(0, int), [])
        wanted = np.concatenate(targets)[order] if rows else np.empty(0)
        return Held(slopes, chosen, wanted, free, pull, self.bends, self.f)

    def estimate(self) -> float:
        """The relative gap that the iterate suggests, from complementarity and the residuals."""
        self.primal = self.problem.primal(Point(self.w, self.b), self.f)
        gap = sum(kinks.complementarity() for kinks in self.every())
        gap += float(np.abs(self.residual) @ np.abs(self.w)) + abs(self.imbalance * self.b)
        return gap / max(abs(self.primal), 1e-6 * self.problem.origin_value, EPSILON)

    def advance(self) -> bool:
        """One predictor-corrector step; False if no progress is possible any more."""
        # At the limit of rounding slacks vanish; the step is then not finite and is refused.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._advance()

    def _advance(self) -> bool:
        problem = self.problem
        self.curvature = self.bends + sum(kinks.curvature() for kinks in self.kinks)
        stiffness = np.full(len(self.w), problem.penalty.l2) + sum(kinks.curvature() for kinks in self.weight_kinks)
        try:
            self.system = NormalEquations(problem.design, self.curvature, stiffness, problem.intercept)
        except LinAlgError:
            return False
        count = sum(kinks.p.size for kinks in self.every())
        zero = [(0.0, 0.0) for _ in self.every()]
        steps, *_ = self._direction(zero)
        t = min(kinks.longest(step) for kinks, step in zip(self.every(), steps, strict=True))
        mu = sum(kinks.complementarity() for kinks in self.every()) / (2 * count)
        after = sum(
            float((k.p + t * dp) @ (k.below + t * dv) + (k.q + t * dq) @ (k.above - t * dv))
            for k, (dv, dp, dq) in zip(self.every(), steps, strict=True)
        ) / (2 * count)
        target = mu * min(1.0, max(after / (mu + TINY), 0.0)) ** 3
        targets = [(target - dp * dv, target + dq * dv) for dv, dp, dq in steps]
        direction = self._direction(targets)
        t = min(k.longest(step) for k, step in zip(self.every(), direction[0], strict=True))
        return self._move(*direction, 0.995 * t if t < 1 else 1.0)

    def _direction(self, targets: list[tuple]) -> tuple[list[Step], Array, float, Array]:
        """Solve the Newton system for the given targets of each kind of kink."""
        offsets = [kinks.offset(*target) for kinks, target in zip(self.every(), targets, strict=True)]
        count = len(self.kinks)
        rows = self._mean_offset(offsets[:count])
        columns = offsets[count] if self.weight_kinks else None
        right = -self.residual if columns is None else self.problem.penalty.l2 * columns - self.residual
        x, db, e = self.system.solve(right, -self.imbalance, self.sign * rows, columns)
        shifts = [self.sign * e + (offset - rows) for offset in offsets[:count]] + [x] * len(self.weight_kinks)
        steps = [k.direction(shift, *target) for k, shift, target in zip(self.every(), shifts, targets, strict=True)]
        return steps, x if columns is None else x - columns, db, e - self.sign * rows

    def _mean_offset(self, offsets: list[Array]) -> Array:
        """The offset of a prediction: the curvature-weighted mean over its kinks."""
        if len(offsets) == 1 and not self.bends.any():
            return offsets[0]
        total = np.zeros_like(self.curvature)
        for kinks, offset in zip(self.kinks, offsets, strict=True):
            total += kinks.curvature() * offset
        return total / np.maximum(self.curvature, TINY)

    def _move(self, steps: list[Step], dw: Array, db: float, df: Array, t: float) -> bool:
        if not (t > 1e-10 and np.all(np.isfinite(dw))):
            return False
        for kinks, step in zip(self.every(), steps, strict=True):
            kinks.move(step, t)
        self.w, self.b = self.w + t * dw, self.b + t * db
        # The smooth slopes move with the step: computed anew, rounding of the predictions would enter the dual point.
        self.slopes = self.slopes + t * self.bends * df
        self.f = self.problem.predict(self.point())
        for kinks, place in zip(self.kinks, self.places, strict=True):
            kinks.settle(self.sign * self.f - place)
        for kinks in self.weight_kinks:
            kinks.settle(self.w)
        self._differentiate()
        return True


def _loss_kinks(problem: Problem, f: Array) -> tuple[Array | float, list[Kinks], list[Array | float]]:
    """The kinks of the loss, one `Kinks` per corner, at a = sign * f - place."""
    margin = "regression" not in problem.loss.tasks
    sign, origin = (problem.y, 0.0) if margin else (1.0, problem.y)
    corners: dict[float, list[float]] = {}
    for ramp in problem.loss.corners:
        slopes = corners.setdefault(-ramp.offset / ramp.slope, [0.0, 0.0])
        slopes[ramp.slope > 0] += ramp.slope * ramp.height
    places = [origin + corner for corner in corners]
    kinks = [
        Kinks.at(a, left * problem.scale, right * problem.scale, np.abs(a).mean() + 1e-8)
        for (left, right), a in zip(corners.values(), (sign * f - place for place in places), strict=True)
    ]
    return sign, kinks, places


def _weight_slack(problem: Problem) -> Array:
    """The size that weights may have: that of the targets over that of the columns."""
    sizes = np.sqrt(problem.design.squared_columns() / len(problem.y))
    return (np.abs(problem.y).mean() + 1e-8) / np.where(sizes > 0, sizes, 1.0)
