"""A primal-dual interior-point method, for losses and penalties with corners.

Each corner is a kink  max(left a, right a) = max_{left <= v <= right} v a,  of a prediction or, for the l1 penalty, of
a weight; norms of groups of weights are cones (`cones.py`). The optimality conditions, relaxed by mu > 0, are

    a = q - p,   p (v - left) = mu,   q (right - v) = mu,   p, q > 0,

and Newton's method on them, with mu -> 0, costs one weighted normal matrix A' diag(c) A an iteration.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from empirisk.certificate import Proof
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import (
    CONVEX,
    CORNERS,
    GROUPS,
    JOINT,
    NORMS_POSITIVE_OR_GROUPS,
    RIDGE,
    SMOOTH_OR_STRAIGHT,
    Need,
    Proofs,
    Solver,
    Watch,
    behind_kernel,
)
from empirisk.solvers.corners.cones import inside_of, penalty_corners
from empirisk.solvers.corners.crossover import ActiveSet, crossover
from empirisk.solvers.corners.kinks import TINY
from empirisk.solvers.corners.scores import fits, scores_of
from empirisk.stop import Ending

#: Entries of a design whose products with a vector cost less than the normal matrix of an iteration.
SMALL = 1 << 20
#: A relative gap that no further step will lower.
EXACT = 1e-13
#: A tolerance from here on counts as coarse, as where C is chosen by cross-validation.
COARSE = 1e-4
#: Iterations that a small problem gets beyond the tolerance, until the exact solution on the active set is found.
TRIES = 8
#: Below the first step size the direction is computed again without second-order terms; below the second it stops.
SHORT, SHORTEST = 0.1, 1e-10
#: The share of the step to the nearest bound that is taken: iterates must stay strictly inside (fraction to boundary).
INSIDE = 0.995
#: The relative rounding error of a sum over all rows.
ROUNDING = 1e-13
#: Higher-order correctors (Gondzio) at most, and the order of the matrix from which they cost less than a factor.
CORRECTORS, LARGE = 3, 128
#: Exact zeros in idle groups are taken where they open the gap by no more than this factor.
ZEROED = 2.0
#: Iterations without a smaller gap after which the solver reports a stall.
STALL_ITERATIONS = 8
MATRIX = Need(
    "a matrix of (columns + 1) x classes rows that fits, with a joint loss or groups of weights",
    lambda p: p.design.implicit or not (p.classes or GROUPS.holds(p)) or fits(p),
)


class InteriorPoint(Solver):
    """Primal-dual interior point with Mehrotra's predictor and corrector, then a crossover to the exact solution.

    Handles losses made of straight and quadratic pieces with l1 and l2 penalties, also of weights that are never
    negative; about twenty iterations whatever the
    scales of the columns, each one normal matrix. Memory O(n d + min(n, d)^2). Smooth losses with l1, and norms of
    groups of weights with every loss, for which the matrix is that of the columns. Joint losses: Crammer-Singer, also
    behind a kernel, and softmax with l1; the matrix then has (d + 1) K rows.

    >>> er.SVM(solver=er.solvers.InteriorPoint()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).solver_
    'interior_point'
    """

    needs = (
        CONVEX,
        NORMS_POSITIVE_OR_GROUPS,
        CORNERS,
        SMOOTH_OR_STRAIGHT,
        behind_kernel(JOINT),
        behind_kernel(RIDGE),
        MATRIX,
    )

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        # A start that is no solution is of no use: an interior point needs slack on every side, which it has not.
        if start is not None and watch.proves(problem, start):
            return start
        if problem.origin_value == 0:
            watch.status = Ending.CONVERGED
            return problem.origin()
        iterate = InteriorIterate(problem)
        proofs, least, stalls = Proofs(problem, watch), np.full(3, np.inf), 0
        while True:
            progress, point = iterate.progress(), iterate.point()
            if (progress[0] <= watch.tol or stalls) and proofs(point):
                return self._polished(iterate, watch, watch.proof(problem, point))
            # A step that takes less than a tenth off each measure does not count as progress.
            stalls = 0 if np.any(progress < 0.9 * least) else stalls + 1
            least = np.minimum(least, progress)
            if stalls >= STALL_ITERATIONS:
                watch.status = Ending.STALLED
            if watch(point, objective=iterate.primal) or not iterate.advance():
                return self._last_resort(iterate, watch, proofs)

    @staticmethod
    def _last_resort(iterate: "InteriorIterate", watch: Watch, proofs: Proofs) -> Point:
        """Where the steps end for lack of digits, the exact solution of the corners may still be proven."""
        watch.status, last = watch.status or Ending.STALLED, iterate.point()
        for candidate in (iterate.exact(), last) if watch.status == Ending.STALLED else ():
            if candidate is not None and proofs(candidate):
                return candidate
        best = watch.proof(iterate.problem, proofs.best(last))
        return best.point if iterate.straight else _with_zeros(iterate, best)

    @staticmethod
    def _polished(iterate: "InteriorIterate", watch: Watch, best: Proof) -> Point:
        """The exact solution that the iterate points to, if it proves better; small problems get a few tries."""
        problem = best.problem
        if not iterate.straight or iterate.scores.curved:
            return _with_zeros(iterate, best)
        # The corners of all classes at once are not solved for; and few digits are what was asked for.
        if problem.classes or watch.tol >= COARSE:
            return best.point
        tries = TRIES if np.prod(problem.design.shape) <= SMALL else 1
        for _ in range(tries):
            exact = iterate.exact()
            if exact is not None:
                best = min(best, Proof(problem, exact), key=lambda proof: proof.certificate.gap)
            if best.certificate.relative_gap <= EXACT or tries == 1 or not iterate.advance():
                break
            best = min(best, Proof(problem, iterate.point()), key=lambda proof: proof.certificate.gap)
        watch.record(gap=best.certificate.gap)
        return best.point


def _with_zeros(iterate: "InteriorIterate", best: Proof) -> Point:
    """The point with exact zeros in the weights and groups that seem to have them, unless that opens the gap."""
    exact = Proof(best.problem, iterate.without_idle_weights(best.point))
    return exact.point if exact.certificate.gap <= ZEROED * best.certificate.gap else best.point


class InteriorIterate:
    """The iterate: weights, predictions, the scores of the loss and the kinks of the penalty.

    It starts at w = 0, in the middle of the slopes of every kink.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        self._begin(problem.origin())
        if self.scores.restarts and self._factored():
            for pairs in self.pairs:
                pairs.aim(0.0)
            _, dw, db = self._direction()
            if np.all(np.isfinite(dw)):
                self._begin(Point(self.w + dw, self.b + db))

    def _begin(self, start: Point) -> None:
        problem = self.problem
        self.w, self.b = inside_of(problem, start.w), np.asarray(start.b, dtype=float)
        self.f = problem.predict(Point(self.w, start.b))
        self.scores = scores_of(problem, self.f)
        self.penalty_corners: list[Any] = penalty_corners(problem, self.w)  # of single weights, or of groups
        self.kinks = [*self.scores.kinks, *self.penalty_corners]
        self.pairs = [pairs for kinks in self.kinks for pairs in kinks.pairs]
        self.primal = problem.origin_value
        self._differentiate()

    def point(self) -> Point:
        """The current weights and dual point; of several intercepts only the differences count."""
        b = self.b - self.b.mean() if self.problem.classes else float(self.b)
        return Point(self.w, b, self.scores.u)

    @property
    def straight(self) -> bool:
        """Whether the corners of the penalty leave a linear system."""
        return all(kinks.straight for kinks in self.penalty_corners)

    def exact(self) -> Point | None:
        """The solution at the corners that seem to hold it: of one output, and if the system is not too large.

        Those hold it whose slope is still free while the slack is nearly gone.
        """
        held = self.scores.held() if self.straight else None
        if held is None:
            return None
        slopes, targets, bends = held
        rows = np.flatnonzero(~np.isnan(targets))
        free, pull = np.arange(len(self.w)), np.zeros(len(self.w))
        for kinks in self.penalty_corners:
            free = np.flatnonzero(np.logical_not(kinks.inside()))
            pull = kinks.bound[free]
        return crossover(self.problem, ActiveSet(slopes, rows, targets[rows], free, pull, bends, self.f))

    def without_idle_weights(self, point: Point) -> Point:
        """A point of this path with zeros in the weights that the penalty holds there."""
        for corners in self.penalty_corners:
            point = replace(point, w=np.where(corners.idle(self.problem.magnitude(self.primal)), 0.0, point.w))
        return point

    def gap(self, t: float = 0.0) -> float:
        """The complementarity of all kinks, after going t along the step."""
        return sum(sum(pairs.gap_after(t) for pairs in kinks.pairs) for kinks in self.kinks)

    def _differentiate(self) -> None:
        """The residual of stationarity."""
        u = self.scores.u
        residual = self.problem.penalty.l2 * self.w + self.problem.design.tdot(u)
        self.residual = residual + sum(kinks.v for kinks in self.penalty_corners)
        self.imbalance = u.sum(axis=0) if self.problem.intercept else np.zeros_like(self.b)

    def progress(self) -> Array:
        """The measure of progress: the relative gap, complementarity and the residual."""
        self.primal = self.problem.primal(Point(self.w, self.b), self.f)
        gap = self.gap()
        residual = float(np.abs(self.residual).max(initial=0.0) + np.abs(self.imbalance).max())
        return np.array([(gap + self._missing()) / self.problem.magnitude(self.primal), gap, residual])

    def _missing(self) -> float:
        """What the residuals add to the duality gap."""
        return float(np.abs(self.residual * self.w).sum() + np.abs(self.imbalance * self.b).sum())

    def advance(self) -> bool:
        """One predictor-corrector step; False if no progress is possible any more."""
        # At the limit of rounding slacks vanish; the step is then not finite and is refused.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if not self._factored():
                return False
            mu = self._predicted_mu()
            for pairs in self.pairs:
                pairs.correct(mu)
            direction = self._damped(mu, *self._centralised(mu, self._direction()))
            if direction[0] < SHORT:
                # Mehrotra's second-order terms can spoil a direction; without them it is a descent direction.
                for pairs in self.pairs:
                    pairs.aim(mu)
                direction = self._damped(mu, *self._direction())
            return self._move(*direction)

    def _factored(self) -> bool:
        """Factor the equations at the current curvatures; False where no digits are left for that."""
        stiffness = np.full(self.w.shape, self.problem.penalty.l2)
        for kinks in self.penalty_corners:
            stiffness = kinks.stiffened(stiffness)
        try:
            self.system: Any = self.scores.equations(stiffness)  # of one output, or of all classes
        except LinAlgError:
            return False
        return True

    def _predicted_mu(self) -> float:
        """Mehrotra's choice: the mean complementarity times the cube of what the predictor's step would leave of it."""
        for pairs in self.pairs:
            pairs.aim(0.0)
        t, *_ = self._direction()
        before, after = self.gap(), self.gap(t)
        left = min(1.0, max(after / (before + TINY), 0.0)) ** 3
        if self.scores.curved:
            # The residual of a loss that bends may fall slowly, and mu must not run ahead of it.
            left = max(left, min(1.0, 0.3 * self._missing() / (before + TINY)))
        return left * before / sum(pairs.count for pairs in self.pairs)

    def _centralised(self, mu: float, direction: tuple[float, Array, Array]) -> tuple[float, Array, Array]:
        """Correct the direction while that lengthens the step: a factor costs far more than another right-hand side."""
        parts = [self.scores, *self.pairs]
        costly = self.problem.classes or min(self.problem.design.shape) >= LARGE
        for _ in range(CORRECTORS if costly else 0):
            t = direction[0]
            plans = [vars(part).copy() for part in parts]
            for pairs in self.pairs:
                # Gondzio's aspiration: a tenth more than the step that the direction allows, and a little.
                pairs.centralise(min(1.0, 1.1 * t + 0.1), mu)
            corrected = self._direction()
            # The correctors end where one lengthens the step by less than a fifth of its aim.
            if corrected[0] < t + 0.02:
                for part, plan in zip(parts, plans, strict=True):
                    vars(part).update(plan)
                break
            direction = corrected
        return direction

    def _damped(self, mu: float, t: float, dw: Array, db: Array) -> tuple[float, Array, Array]:
        """Shorten the step until the objective with its barriers falls; one without curvature that changes is right."""
        t = INSIDE * t if t < 1 else 1.0
        if not self.scores.curved or not np.all(np.isfinite(dw)):
            return t, dw, db
        df = self.problem.design.dot(dw) + db

        def value(t: float) -> float:
            penalty = 0.5 * self.problem.penalty.l2 * float(np.vdot(self.w + t * dw, self.w + t * dw))
            return (
                penalty
                + self.problem.loss_sum(self.f + t * df)
                + sum(kinks.barrier(t, mu) for kinks in self.penalty_corners)
            )

        highest = value(0.0) * (1 + ROUNDING)
        while t > SHORTEST and not value(t) <= highest:
            t *= 0.5
        return t, dw, db

    def _direction(self) -> tuple[float, Array, Array]:
        """The step of all kinks to their targets; returns the longest t and the steps of w and b."""
        right, columns = -self.residual, None
        for kinks in self.penalty_corners:
            columns = kinks.offset()
            right = self.problem.penalty.l2 * columns - self.residual
        x, db, change = self.system.solve(right, -self.imbalance, self.scores.offset(), columns)
        lengths = [self.scores.direct(change)] + [kinks.direct(x) for kinks in self.penalty_corners]
        return min(lengths), x if columns is None else x - columns, np.asarray(db)

    def _move(self, t: float, dw: Array, db: Array) -> bool:
        if not (t > SHORTEST and np.all(np.isfinite(dw))):
            return False
        for pairs in self.pairs:
            pairs.move(t)
        self.w, self.b = self.w + t * dw, self.b + t * db
        for kinks in self.penalty_corners:
            self.w = kinks.absorb(self.w)
        self.f = self.problem.predict(Point(self.w, self.b))
        self.scores.absorb(self.f, t)
        self._differentiate()
        return True
