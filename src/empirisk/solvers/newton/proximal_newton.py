"""Proximal Newton: few passes over the rows, each of which gives value, gradient and Hessian of the sum of losses.

The losses are replaced by their quadratic model at the current point, a problem of d columns and as many rows, which is
solved with the penalty as it is. Losses with corners, or of a curvature without bounds, are first replaced by their
Moreau envelopes, which come nearer to them each round (see `Envelope`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from empirisk.lazy import lazy
from empirisk.linalg.design import DenseDesign, LocalTerms
from empirisk.linalg.factor import Cholesky, by_rank
from empirisk.linalg.rowspace import RowVector
from empirisk.losses.base import Loss
from empirisk.losses.regression import Squared
from empirisk.problem import Array, Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import CONVEX, EXPLICIT, NORMS, SMOOTH_LOSS, Need, Proofs, Solver, Watch, jointly
from empirisk.solvers.first_order.scaling import typical_step
from empirisk.stop import Ending

#: Weights of all outputs whose Hessian is made and factored in about as long as a pass takes.
MOST_WEIGHTS = 4096
#: Rows of a sample on which the first steps are taken, and rows of it for each weight at least.
SAMPLE_ROWS, SAMPLE_ROWS_PER_WEIGHT = 100_000, 64
#: The share of the memory budget that the sample may take, and how many times as many rows make it worth a pass.
SAMPLE_SHARE, WORTHWHILE = 16, 4
#: The relative gap to which the sample is solved: it is not all the rows.
ROUGH = 1e-4
#: Of columns of size one, the root of the least curvature, and the share of the largest slope that is rounding.
LEAST_ROOT, LOST = 1e-7, 1e-12
#: The gap of the model's solution: it is small, so that the last digits cost nothing.
MODEL_TOL = 1e-13
#: Where the penalty is not curved the gap of the fit is as large as the error of the gradient, the root of this one:
#: the share of ``tol`` that the error may be, and the least gap to ask for.
MODEL_SHARE, FLAT_MODEL_TOL = 0.01, 1e-20
#: The share of the promised decrease that a step must bring; halvings until it is given up.
ARMIJO, HALVINGS = 1e-4, 25
#: A smaller share of the objective is rounding; steps of that size in a row until nothing helps any more.
ROUNDING, STALL_STEPS = 1e-14, 2
#: Steps that halve neither what they promise nor the objective, after which the solver reports a stall: their models
#: have no digits left to be solved with.
FRUITLESS = 30
#: Rounds of envelopes: tau is divided by `SHARPER` after each; steps of a round at most.
SHARPER, STEPS_A_ROUND = 8.0, 12
#: The first tau after a sample has been solved, as a share of a typical residual.
AFTER_SAMPLE = 0.05
#: Shares of the most curvature that are added where the curvature found promises nothing.
DAMPING = (1e-6, 1e-3, 1.0)
#: A direction that promises this many times the objective has no curvature but rounding: its line search would end
#: before it came near.
BOUNDLESS = 1e6
#: The step with which a prox is differentiated, as a share of what the prox moves by (tau for a slope of one), and as a
#: share of the prediction at least: a smaller one has no digits.
DIFFERENCE, DIGITS_LEFT = 1e-3, 1e-12


@dataclass(frozen=True)
class SmoothModel:
    """Value, slopes and curvatures of a smooth loss."""

    loss: Loss
    outputs = 0

    def __call__(self, f: Array, s: Array, y: Array) -> LocalTerms:
        """At predictions f of rows with scales s and targets y."""
        loss, value = self.loss, float(s @ self.loss.value(y, f))
        values = np.array([value, value, 0.0])
        if f.ndim == 1:
            curvatures = np.minimum(s * loss.curvature(y, f), STEEPEST * s)
            return (), values, s * loss.derivative(y, f), curvatures
        slopes = s[:, None] * loss.derivative(y, f)
        shares = slopes + s[:, None] * loss.onehot(y, f.shape[1])
        return (), values, slopes, np.maximum(shares, 0.0) / loss.softness


#: A larger curvature of the loss of a row of weight one counts as this.
STEEPEST = 1e8


@dataclass(frozen=True)
class EnvelopeModel:
    """Those of the Moreau envelope  max over v of  v f - loss*(v) - tau/2 (v - centre)^2;  it keeps v."""

    loss: Loss
    tau: float
    outputs = 1

    def __call__(self, f: Array, s: Array, y: Array, centre: Array) -> LocalTerms:
        """At predictions f of rows with scales s, targets y and centres; the third value is what is rounded off."""
        loss, tau = self.loss, self.tau
        shifted = f + tau * centre
        near = loss.prox(y, shifted, tau)
        v = (shifted - near) / tau
        step = np.maximum(DIFFERENCE * tau * np.maximum(np.abs(v), 1.0), DIGITS_LEFT * np.abs(shifted))
        moved = loss.prox(y, shifted + step, tau) - near
        curvatures = np.clip(1 - moved / step, 0.0, 1.0) / tau
        envelope = loss.value(y, near) + 0.5 * tau * (v**2 - centre**2)
        off = 0.5 * tau * (v - centre) ** 2
        return (v,), np.array([s @ envelope, s @ loss.value(y, f), s @ off]), s * v, s * curvatures


@dataclass(frozen=True)
class UnitCurvature:
    """Curvature 1 for a row of scale 1, and nothing else."""

    def __call__(self, f: Array, s: Array) -> LocalTerms:
        """At predictions f of rows with scales s."""
        return (), np.zeros(3), np.zeros_like(s), s


@dataclass(frozen=True)
class ProximalPoint:
    """A point with the value of the modelled objective, the true one, and derivatives of the sum of losses."""

    w: Array
    b: Any
    kept: tuple[RowVector, ...]
    value: float
    primal: float
    off: float
    gradient: Array
    constant: Array
    hessian: Array


@dataclass(frozen=True)
class ProximalDirection:
    """A step in w and b, and the decrease that its slope promises."""

    w: Array
    b: Any
    promised: float


def _as_least_squares(matrix: Array, gradient: Array) -> tuple[Array, Array]:
    """A and q with  d'(matrix)d / 2 + gradient'd = |A d + q|^2 / 2 + constant:  as many rows as the matrix has rank.

    What dependent columns show of the gradient beyond rounding gets the least curvature that steps need to be finite.
    """
    upper, order, sizes = by_rank(matrix)
    rank, slopes = len(upper), (gradient / sizes)[order]
    q = solve_triangular(upper[:, :rank], slopes[:rank], trans="T")
    missed = slopes - upper.T @ q
    extra = rank + np.flatnonzero(np.abs(missed[rank:]) > LOST * np.abs(slopes).max())
    rows = np.zeros((rank + max(len(extra), not rank), len(matrix)))
    rows[:rank, order] = upper
    rows[rank + np.arange(len(extra)), order[extra]] = LEAST_ROOT
    offsets = np.zeros(len(rows))
    offsets[:rank], offsets[rank : rank + len(extra)] = q, missed[extra] / LEAST_ROOT
    return rows * sizes, offsets


FEW_WEIGHTS = Need(f"at most {MOST_WEIGHTS} weights", lambda p: math.prod(p.width) + max(p.classes, 1) <= MOST_WEIGHTS)


class ProximalNewton(Solver):
    """Steps to the minimum of the quadratic model of the losses plus the penalty itself, each with a line search.

    An iteration is one pass over the rows, which need not be in memory. Where these are many, the first steps are taken
    on a sample of them. Memory O(d^2) beside the rows.

    >>> er.Lasso(solver=er.solvers.ProximalNewton()).fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 3.0]).solver_
    'proximal_newton'
    """

    needs = (EXPLICIT, CONVEX, FEW_WEIGHTS, jointly(SMOOTH_LOSS), jointly(NORMS))
    in_passes = True

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        tau = typical_step(problem) if _rounded(problem) else 0.0
        if start is None:
            start = sampled_start(problem, watch)
            tau *= AFTER_SAMPLE if start is not None else 1.0
        course = ProximalNewtonCourse(problem, watch, start or problem.origin())
        return course.in_rounds(tau) if tau else course.smoothly()


def _rounded(problem: Problem) -> bool:
    return not problem.loss.smooth or problem.loss.steep


def sampled_start(problem: Problem, watch: Watch) -> Point | None:
    """The solution of the problem of some of the rows; None where there are not many more than that."""
    from empirisk.solvers.choose import choose  # which lists this solver

    rows, weights = problem.design.shape[0], math.prod(problem.width) + 1
    room = settings().memory // (SAMPLE_SHARE * 8 * (problem.design.shape[1] + 1))
    every = rows // max(1, min(max(SAMPLE_ROWS, SAMPLE_ROWS_PER_WEIGHT * weights), room))
    if every < WORTHWHILE:
        return None
    sample = problem.part(slice(None, None, every)).with_C(problem.C * every)
    chosen, _ = choose(sample)
    point = chosen.solve(sample, Watch(tol=ROUGH, max_iter=chosen.limit(sample), deadline=watch.deadline))
    finite = np.isfinite(point.w).all() and np.isfinite(point.b).all()
    return replace(point, u=None) if finite else None


class ProximalNewtonCourse:
    """The way from a start to the minimum."""

    def __init__(self, problem: Problem, watch: Watch, start: Point):
        self.problem, self.watch, self.start = problem, watch, start
        self.proofs = Proofs(problem, watch)
        self.model: SmoothModel | EnvelopeModel = SmoothModel(problem.loss)
        self.vectors: tuple[RowVector, ...] = (problem.scale, problem.y)

    def smoothly(self) -> Point:
        """Steps on the loss itself until the gap is proved, or nothing helps any more."""
        place, stalled, tried = self.at(self.start.w, self.start.b), 0, np.inf
        halved, since = (np.inf, np.inf), 0
        while True:
            step = self.direction(place)
            since += 1
            if step.promised < 0.5 * halved[0] or place.value < 0.5 * halved[1]:
                halved, since = (step.promised, place.value), 0
            near = step.promised <= self.watch.tol * self.problem.magnitude(place.primal)
            # Another proof pays where a step has come much nearer since the last one.
            if (near and step.promised <= 0.1 * tried) or stalled:
                tried, point = step.promised, self.point(place)
                if self.proofs(point):
                    return point  # this very one: its proof is known, and would be two passes
            before = place.value
            place = self.moved(place, step)
            stalled = stalled + 1 if before - place.value <= ROUNDING * abs(before) else 0
            if stalled > STALL_STEPS or since > FRUITLESS:
                self.watch.status = self.watch.status or Ending.STALLED
            if self.watch(self.point(place), objective=place.primal):
                return self.proofs.best(self.point(place))

    def in_rounds(self, tau: float) -> Point:
        """Steps on envelopes, each round on one that is nearer to the loss and centred at the slopes found."""
        problem, watch = self.problem, self.watch
        centre, w, b, stalled, lowest = problem.rowspace.constant(0.0), self.start.w, self.start.b, 0, np.inf
        while True:
            self.model, self.tau = EnvelopeModel(problem.loss, tau), tau
            self.vectors = (problem.scale, problem.y, centre)
            place, settled = self._round(self.at(w, b))
            left = self.damped(place).promised + place.off
            goal = watch.tol * problem.magnitude(place.primal)
            point = self.point(place)
            if left <= 10 * goal and self.proofs(point):
                return point
            stalled = 0 if left < 0.9 * lowest else stalled + 1
            lowest = min(left, lowest)
            if stalled > STALL_STEPS + 1:
                self.proofs(point)
                watch.status = watch.status or Ending.STALLED
            if watch.must_stop():
                return self.proofs.best(point)
            w, b = place.w, place.b
            if settled:
                centre = place.kept[0]
                tau /= SHARPER if place.off > 0.1 * goal else 1.0

    def _round(self, place: ProximalPoint) -> tuple[ProximalPoint, bool]:
        """Steps with one envelope, until what is left to gain is small beside what it rounds off; whether it is."""
        settled = False
        for _ in range(STEPS_A_ROUND):
            goal = max(0.02 * self.watch.tol * self.problem.magnitude(place.primal), 0.01 * place.off)
            step, before = self.damped(place), place.value
            last = step.promised <= goal
            if last and (self.problem.penalty.smooth or not step.promised > 0):
                return place, True
            place = self.moved(place, step)
            stops = self.watch(self.point(place), objective=place.primal)
            if last or stops or before - place.value <= ROUNDING * abs(before):
                return place, True
            settled = step.promised <= 0.01 * (place.primal - place.value)
        return place, settled

    # --- one step -----------------------------------------------------------------------------------------------------

    def at(self, w: Array, b: Any) -> ProximalPoint:
        """The place at a point, with one pass over the rows."""
        design, penalty = self.problem.design, self.problem.penalty_sum(Point(w, b))
        kept, sums = design.local_sums(w, b, self.model, *self.vectors, outputs=self.model.outputs)
        (value, primal, off), gradient, constant, hessian = sums
        return ProximalPoint(
            w, b, kept, penalty + value, penalty + primal, off, gradient, constant + self.problem.tilt, hessian
        )

    def point(self, place: ProximalPoint) -> Point:
        """The point of a place; its dual point, where it is not that of the slopes of the loss."""
        b = place.b if self.problem.classes else float(place.b)
        if not place.kept:
            return Point(place.w, b)
        return Point(place.w, b, self.problem.rowspace.map(np.multiply, self.problem.scale, place.kept[0]))

    def moved(self, place: ProximalPoint, step: ProximalDirection) -> ProximalPoint:
        """The place after a step, shortened until it brings what it should."""
        t = 1.0
        for _ in range(HALVINGS):
            there = self.at(place.w + t * step.w, place.b + t * step.b)
            if there.value <= place.value - ARMIJO * t * step.promised + ROUNDING * abs(place.value):
                return there
            # The minimum of the parabola through both values with the slope at the beginning.
            bend = there.value - place.value + t * step.promised
            t *= min(max(0.5 * t * step.promised / bend, 0.1), 0.5) if np.isfinite(bend) else 0.1
            if self.watch.must_stop():
                break
        return place

    def damped(self, place: ProximalPoint) -> ProximalDirection:
        """The direction of an envelope: the rows may all have no curvature, and the model then no minimum.

        Where it promises nothing, or more than there is, the most curvature that rows may have is added to it, little
        at first: with all of it a step falls short, and promises nothing at the minimum alone.
        """
        limit = BOUNDLESS * self.problem.magnitude(place.primal)
        step = self.direction(place)
        for share in () if self.problem.classes else DAMPING:
            if 0 < step.promised <= limit:
                break
            step = self.direction(place, share * self.most_curved / self.tau)
        return step

    @lazy
    def most_curved(self) -> Array:
        """The Hessian where every row has curvature 1."""
        design, (w, b) = self.problem.design, (self.start.w, self.start.b)
        return design.local_sums(w, b, UnitCurvature(), self.problem.scale)[1][3]

    def direction(self, place: ProximalPoint, more: Array | float = 0.0) -> ProximalDirection:
        """To the minimum of the quadratic model plus the penalty; the intercepts, which are free, are eliminated.

        ``more`` is added to the Hessian.
        """
        size, outputs = place.w.size, max(self.problem.classes, 1)
        hessian = (place.hessian + more).reshape(size + outputs, size + outputs)
        gradient, constant = place.gradient.ravel(), place.constant.reshape(outputs)
        columns, cross, corner = hessian[:size, :size], hessian[:size, size:], hessian[size:, size:]
        eliminated = np.zeros((outputs, size + 1))
        if self.problem.intercept:
            eliminated = np.linalg.pinv(corner, rcond=1e-13, hermitian=True) @ np.column_stack([cross.T, constant])
        matrix = columns - cross @ eliminated[:, :size]
        right = gradient - cross @ eliminated[:, size]
        w = self._minimum(place.w, 0.5 * (matrix + matrix.T), right)
        b = -(eliminated[:, size] + eliminated[:, :size] @ w)
        slope = float(gradient @ w + constant @ b) if self.problem.intercept else float(gradient @ w)
        w = w.reshape(place.w.shape)
        slope += self._penalty_slope(place.w, w)
        # Where the model has no digits left its minimum may lie uphill: then nothing is promised.
        return ProximalDirection(w, b if self.problem.classes else float(b[0]), max(-slope, 0.0))

    def _penalty_slope(self, w: Array, step: Array) -> float:
        penalty = self.problem.penalty
        if penalty.smooth:
            return float(np.vdot(penalty.gradient(w), step))
        return penalty.value(w + step) - penalty.value(w)

    def _minimum(self, w: Array, matrix: Array, gradient: Array) -> Array:
        """argmin_d  gradient'd + d'(matrix)d / 2 + R(w + d)."""
        penalty = self.problem.penalty
        if penalty.smooth and penalty.separable:
            matrix.flat[:: len(matrix) + 1] += penalty.curvature(w).ravel()
            return Cholesky(matrix).solve(-(gradient + penalty.gradient(w).ravel()))
        from empirisk.solvers.choose import choose  # which lists this solver

        rows, offsets = _as_least_squares(matrix, gradient)
        targets = rows @ w.ravel() - offsets
        ones = np.ones(len(rows))
        model = Problem(Squared(), penalty, 0.5, DenseDesign(rows), targets, ones, intercept=False)
        chosen, _ = choose(model)
        tol = MODEL_TOL if penalty.l2 > 0 else max((MODEL_SHARE * self.watch.tol) ** 2, FLAT_MODEL_TOL)
        inner = Watch(tol=tol, max_iter=chosen.limit(model), deadline=self.watch.deadline)
        return chosen.solve(model, inner, Point(w.ravel())).w - w.ravel()
