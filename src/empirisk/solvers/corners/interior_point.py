"""A primal-dual interior-point method, for losses and penalties with corners.

Each corner is a kink  max(left a, right a) = max_{left <= v <= right} v a,  of a prediction or, for the l1 penalty, of
a weight. Its optimality conditions, relaxed by mu > 0, are

    a = q - p,   p (v - left) = mu,   q (right - v) = mu,   p, q > 0,

and Newton's method on them, with mu -> 0, costs one weighted normal matrix A' diag(c) A an iteration.
"""

from collections.abc import Iterator

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status, verify
from empirisk.linalg.factor import NormalEquations
from empirisk.problem import Point, Problem
from empirisk.solvers.base import (
    CONVEX,
    CORNERS,
    JOINT,
    NORMS,
    RIDGE,
    STRAIGHT_PIECES,
    Need,
    Proofs,
    Solver,
    Watch,
    behind_kernel,
    jointly,
)
from empirisk.solvers.corners.crossover import Held, crossover
from empirisk.solvers.corners.joint_interior import JointIterate, fits
from empirisk.solvers.corners.kinks import Kinks, corners_of, spread_of

Array = NDArray[np.float64]
#: Entries of a design whose products cost less than the matrix of an iteration.
SMALL = 1 << 20
#: A relative gap that no further step will lower.
EXACT = 1e-13
#: Iterations after which rounding has gathered in predictions that only move along.
RENEW = 4
#: Rows with less than this share of the mean curvature are not seen in the matrix.
NEGLIGIBLE = 1e-8
TINY = np.finfo(float).tiny


#: Steps beyond the tolerance after which a small problem has as many digits as it will get.
TRIES = 8
MATRIX = Need("a matrix of (columns + 1) x classes rows that fits", lambda p: p.design.implicit or fits(p))


class InteriorPoint(Solver):
    """Primal-dual interior point with Mehrotra's predictor and corrector, then a crossover to the exact solution.

    Handles losses made of straight and quadratic pieces with l1 and l2 penalties; about twenty iterations whatever the
    scales of the columns, each one normal matrix. Memory O(n d + min(n, d)^2). Joint losses: Crammer-Singer, also
    behind a kernel, and softmax with l1; the matrix then has (d + 1) K rows.

    >>> er.SVM(solver=er.solvers.InteriorPoint()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).solver_
    'interior_point'
    """

    needs = (CONVEX, NORMS, CORNERS, STRAIGHT_PIECES, behind_kernel(JOINT), behind_kernel(RIDGE), jointly(MATRIX))

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        # A start is of no use: an interior point needs slack on every side, which a solution nearby has not.
        if problem.origin_value == 0:
            watch.status = Status.CONVERGED
            return problem.origin()
        iterate = JointIterate(problem) if problem.classes else Iterate(problem)
        proofs, least, stalls = Proofs(problem, watch), np.full(3, np.inf), 0
        while True:
            progress, point = iterate.progress(), iterate.point()
            if (progress[0] <= watch.tol or stalls) and proofs(point):
                return self._polished(problem, iterate, watch, point)
            # A step that takes less than a tenth off each measure does not count as progress.
            stalls = 0 if np.any(progress < 0.9 * least) else stalls + 1
            least = np.minimum(least, progress)
            if stalls >= iterate.patience:
                watch.status = Status.STALLED
            if watch(point, objective=iterate.primal) or not iterate.advance():
                return self._last_resort(problem, iterate, watch, proofs)

    @staticmethod
    def _last_resort(problem: Problem, iterate: "Iterate | JointIterate", watch: Watch, proofs: Proofs) -> Point:
        """Where the steps end for lack of digits, the exact solution of the corners may still be proven."""
        stopped, last = watch.status or Status.STALLED, iterate.point()
        exact = iterate.exact() if stopped == Status.STALLED else None
        for candidate in (exact, last):
            if stopped == Status.STALLED and candidate is not None and proofs(candidate):
                return candidate
        watch.status = stopped
        return proofs.best(last)

    @staticmethod
    def _polished(problem: Problem, iterate: "Iterate | JointIterate", watch: Watch, point: Point) -> Point:
        """The exact solution that the iterate points to, if it proves better; small problems get a few tries."""
        exact = iterate.exact()
        best, proof = point, watch.latest or verify(problem, point)
        if exact is None and problem.classes:
            return point
        tries = TRIES if np.prod(problem.design.shape) <= SMALL else 1
        for _ in range(tries):
            if exact is not None:
                candidate = verify(problem, exact)
                if candidate.gap < proof.gap:
                    best, proof = exact, candidate
            if proof.relative_gap <= EXACT or tries == 1 or not iterate.advance():
                break
            candidate, point = verify(problem, iterate.point()), iterate.point()
            if candidate.gap < proof.gap:
                best, proof = point, candidate
            exact = iterate.exact()
        watch.record(gap=proof.gap)
        return best


class Iterate:
    """The iterate: weights, predictions and the kinks of the loss and the penalty.

    It starts at w = 0, in the middle of the slopes of every kink.
    """

    #: Iterations without progress after which there is none to come.
    patience = 6

    def __init__(self, problem: Problem):
        self.problem = problem
        start = problem.origin()
        self.w, self.b = start.w, float(start.b)
        self.f = problem.predict(start)
        self.sign, self.places, slopes = _corners(problem)
        positions = [self.sign * self.f - place for place in self.places]
        self.kinks = [
            Kinks(a, left, right, np.abs(a).mean() + 1e-8) for a, (left, right) in zip(positions, slopes, strict=True)
        ]
        smooth, flat = problem.loss.smooth_part, np.zeros(len(self.f))
        self.slopes = flat if smooth is None else problem.scale * smooth.derivative(problem.y, self.f)
        self.bends = flat if smooth is None else problem.scale * smooth.curvature(problem.y, self.f)
        bound = np.full(len(self.w), problem.penalty.l1)
        self.weight_kinks = [Kinks(self.w, -bound, bound, _weight_slack(problem))] if bound.any() else []
        self.primal = problem.loss_sum(self.f)
        self.age = 0
        self._differentiate()

    def point(self) -> Point:
        """The current weights and dual point."""
        return Point(self.w, self.b, self.u)

    def every(self) -> Iterator[Kinks]:
        """All kinks, of the loss and of the penalty."""
        yield from self.kinks
        yield from self.weight_kinks

    def gap(self) -> float:
        """The complementarity of all kinks."""
        return sum(kinks.gap() for kinks in self.every())

    def mu(self) -> float:
        """The mean complementarity."""
        return self.gap() / (2 * sum(kinks.size for kinks in self.every()))

    def progress(self) -> Array:
        """What must fall for the method to be on its way: the relative gap, complementarity and the residual."""
        return np.array(
            [self.estimate(), self.gap(), float(np.abs(self.residual).max(initial=0.0)) + abs(self.imbalance)]
        )

    def _differentiate(self) -> None:
        """The dual point u and the residual of stationarity."""
        self.u = self._dual()
        residual = self.problem.penalty.l2 * self.w + self.problem.design.tdot(self.u)
        for kinks in self.weight_kinks:
            residual = residual + kinks.v
        self.residual = residual
        self.imbalance = float(self.u.sum()) if self.problem.intercept else 0.0

    def _dual(self) -> Array:
        u = self.slopes.copy()
        for kinks in self.kinks:
            u += self.sign * kinks.v
        return u

    def exact(self) -> Point | None:
        """The solution at the corners that seem to hold it, if the system is not too large."""
        return crossover(self.problem, self.held())

    def held(self) -> Held:
        """Which corners hold the solution: those whose slope is still free while the slack is nearly gone."""
        slopes, targets = self.slopes.copy(), np.full(len(self.f), np.nan)
        for kinks, place in zip(self.kinks, self.places, strict=True):
            inside = kinks.inside()
            slopes += self.sign * np.where(inside, 0.0, kinks.bound)
            targets = np.where(inside, self.sign * place, targets)
        rows = np.flatnonzero(~np.isnan(targets))
        free, pull = np.arange(len(self.w)), np.zeros(len(self.w))
        for kinks in self.weight_kinks:
            free = np.flatnonzero(np.logical_not(kinks.inside()))
            pull = kinks.bound[free]
        return Held(slopes, rows, targets[rows], free, pull, self.bends, self.f)

    def estimate(self) -> float:
        """The relative gap that the iterate suggests, from complementarity and the residuals."""
        self.primal = self.problem.primal(Point(self.w, self.b), self.f)
        gap = self.gap() + float(np.abs(self.residual) @ np.abs(self.w)) + abs(self.imbalance * self.b)
        return gap / self.problem.magnitude(self.primal)

    def advance(self) -> bool:
        """One predictor-corrector step; False if no progress is possible any more."""
        # At the limit of rounding slacks vanish; the step is then not finite and is refused.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            try:
                self._factor()
            except LinAlgError:
                return False
            return self._move(*self._corrected_direction())

    def _corrected_direction(self) -> tuple[float, Array, float, Array]:
        """Predictor, then corrector: Mehrotra's direction."""
        for kinks in self.every():
            kinks.predict()
        t, *_ = self._direction()
        count = 2 * sum(kinks.size for kinks in self.every())
        mu, after = self.mu(), sum(kinks.gap_after(t) for kinks in self.every()) / count
        mu *= min(1.0, max(after / (mu + TINY), 0.0)) ** 3
        for kinks in self.every():
            kinks.correct(mu)
        return self._direction()

    def _factor(self) -> None:
        """The normal matrix at the current curvatures; rows that hardly curve are left out of it."""
        curvature = self.bends.copy()
        for kinks in self.kinks:
            curvature += kinks.curvature()
        self.curvature = curvature
        stiffness = np.full(len(self.w), self.problem.penalty.l2)
        for kinks in self.weight_kinks:
            stiffness += kinks.curvature()
        counted = curvature
        if self.curvature.size > SMALL // 16:
            counted = np.where(curvature > NEGLIGIBLE * curvature.mean(), curvature, 0.0)
        self.system = NormalEquations(self.problem.design, counted, stiffness, self.problem.intercept)

    def _direction(self) -> tuple[float, Array, float, Array]:
        """The step of every kink to its targets; returns the longest t and the steps of w, b and f."""
        offsets = [kinks.offset() for kinks in self.kinks]
        rows = self._mean_offset(offsets)
        columns = self.weight_kinks[0].offset() if self.weight_kinks else None
        right = -self.residual if columns is None else self.problem.penalty.l2 * columns - self.residual
        x, db, e = self.system.solve(right, -self.imbalance, self.sign * rows, columns)
        lengths = [
            kinks.direct(self.sign * e + (offset - rows)) for kinks, offset in zip(self.kinks, offsets, strict=True)
        ] + [kinks.direct(x) for kinks in self.weight_kinks]
        return min(lengths), x if columns is None else x - columns, db, e - self.sign * rows

    def _mean_offset(self, offsets: list[Array]) -> Array:
        """The offset of a prediction: the curvature-weighted mean over its kinks."""
        if len(offsets) == 1 and not self.bends.any():
            return offsets[0]
        total = np.zeros_like(self.curvature)
        for kinks, offset in zip(self.kinks, offsets, strict=True):
            total += kinks.curvature() * offset
        return np.divide(total, self.curvature, out=total, where=self.curvature > 0)

    def _move(self, t: float, dw: Array, db: float, df: Array) -> bool:
        # A shorter step moves nothing: the iterate has run into its bounds.
        if not (t > 1e-10 and np.all(np.isfinite(dw))):
            return False
        # The usual share of the way to the bounds: on a bound itself the next step would have no room.
        t = 0.995 * t if t < 1 else 1.0
        for kinks in self.every():
            kinks.move(t)
        self.w, self.b = self.w + t * dw, self.b + t * db
        # The smooth slopes move with the step: computed again, rounding of the predictions would enter the dual point.
        self.slopes = self.slopes + t * self.bends * df
        self.age += 1
        if np.prod(self.problem.design.shape) <= SMALL or self.age % RENEW == 0:
            self.f = self.problem.predict(Point(self.w, self.b))
            self._differentiate()
        else:
            # On large data the products are saved: predictions and residuals move with the step, up to rounding.
            self.f = self.f + t * df
            self.u = self._dual()
            self.residual, self.imbalance = (1 - t) * self.residual, (1 - t) * self.imbalance
        for kinks, place in zip(self.kinks, self.places, strict=True):
            kinks.absorb(self.sign * self.f - place)
        for kinks in self.weight_kinks:
            kinks.absorb(self.w)
        return True


def _corners(problem: Problem) -> tuple[Array | float, list[Array | float], list[tuple[Array, Array]]]:
    """The kinks of the loss at a = sign * f - place: the sign, the places, and the slopes left and right of each."""
    sign, origin = (problem.y, 0.0) if problem.loss.margin_form else (1.0, problem.y)
    corners = corners_of(problem.loss)
    bounds = [(left * problem.scale, right * problem.scale) for left, right in corners.values()]
    return sign, [origin + corner for corner in corners], bounds


def _weight_slack(problem: Problem) -> Array:
    """The size that weights may have: that of the targets over that of the columns."""
    sizes = np.sqrt(problem.design.squared_columns() / len(problem.y))
    return spread_of(problem) / np.where(sizes > 0, sizes, 1.0)
