"""A primal-dual interior-point method for joint losses: Crammer-Singer with any penalty, softmax with l1."""

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.linalg.coupled import joint_equations
from empirisk.problem import Point, Problem
from empirisk.settings import settings
from empirisk.solvers.corners.class_slacks import ClassSlacks, Pulls, SmoothClasses

Array = NDArray[np.float64]
TINY = np.finfo(float).tiny
#: A step so short calls for a direction without second-order terms; one shorter than that is none.
SHORT, SHORTEST = 0.1, 1e-10
#: What a sum over all rows may rise by through rounding.
ROUNDING = 1e-13
#: Right-hand sides beyond the first for which a factor pays.
CORRECTORS = 3
#: Rows, unknowns and products for which an iteration takes seconds at most.
ROWS, COLUMNS, WORK = 1500, 5000, 5e11


def fits(problem: Problem) -> bool:
    """Whether the matrix of an iteration is within the memory allowed, and made within seconds."""
    rows, columns = problem.design.shape
    # Without l2 the stiffness of nonzero weights vanishes, and with it the digits of the equations by rows.
    by_rows = rows < columns and rows <= ROWS and problem.penalty.l2 > 0
    by_rows = by_rows and 24 * problem.classes * rows**2 <= settings().memory
    size = (columns + 1) * problem.classes
    return by_rows or (size <= COLUMNS and size**2 * (rows + size) <= WORK and 32 * size**2 <= settings().memory)


class JointIterate:
    """The iterate: weights, predictions, the scores of the loss and the pulls of the penalty."""

    #: Iterations without progress after which there is none to come.
    patience = 10

    def __init__(self, problem: Problem):
        self.problem = problem
        origin = problem.origin()
        self.w, self.b = origin.w, np.asarray(origin.b, dtype=float)
        self.f = problem.predict(origin)
        kind = SmoothClasses if np.isfinite(problem.loss.curvature_bound) else ClassSlacks
        self.scores = kind(problem, self.f)
        l1 = problem.penalty.l1
        self.pulls = [Pulls(self.w, l1, _weight_slack(problem))] if l1 > 0 else []
        self.primal = problem.origin_value
        self._differentiate()
        self._find_start()

    def _find_start(self) -> None:
        """Go where the first direction leads, and open the slacks there: from w = 0 they allow short steps only."""
        if self.scores.bends:
            return
        try:
            self._factor()
        except LinAlgError:  # the columns are so large that nothing else is left; the first step will say so
            return
        for part in self.parts():
            part.aim(0.0)
        _, dw, db = self._direction()
        if not np.all(np.isfinite(dw)):
            return
        self.w, self.b = self.w + dw, self.b + db
        self.f = self.problem.predict(Point(self.w, self.b))
        self.scores = ClassSlacks(self.problem, self.f)
        l1 = self.problem.penalty.l1
        self.pulls = [Pulls(self.w, l1, _weight_slack(self.problem))] if l1 > 0 else []
        self._differentiate()

    def point(self) -> Point:
        """The current weights and dual point; the intercepts centred, since only their differences count."""
        return Point(self.w, self.b - self.b.mean(), self.scores.u)

    def exact(self) -> Point | None:
        """None: the corners of joint losses are not solved for."""
        return None

    def parts(self) -> list:
        """Everything that has complementarity."""
        return [self.scores, *self.pulls]

    def mu(self) -> float:
        """The mean complementarity."""
        return sum(part.gap() for part in self.parts()) / sum(part.size for part in self.parts())

    def _differentiate(self) -> None:
        """The residual of stationarity."""
        u = self.scores.u
        residual = self.problem.penalty.l2 * self.w + self.problem.design.tdot(u)
        for pulls in self.pulls:
            residual = residual + pulls.v
        self.residual = residual
        self.imbalance = u.sum(axis=0) if self.problem.intercept else np.zeros(self.problem.classes)

    def progress(self) -> Array:
        """What must fall for the method to be on its way: the relative gap, complementarity and the residual."""
        self.primal = self.problem.primal(Point(self.w, self.b), self.f)
        gap = sum(part.gap() for part in self.parts())
        residual = float(np.abs(self.residual).max() + np.abs(self.imbalance).max())
        return np.array([(gap + self._missing()) / self.problem.magnitude(self.primal), gap, residual])

    def _missing(self) -> float:
        """What the residuals add to the duality gap."""
        return float(np.abs(self.residual * self.w).sum() + np.abs(self.imbalance * self.b).sum())

    def advance(self) -> bool:
        """One predictor-corrector step; False if no progress is possible any more."""
        # At the limit of rounding slacks vanish; the step is then not finite and is refused.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            try:
                self._factor()
            except LinAlgError:
                return False
            mu = self._predicted_mu()
            for part in self.parts():
                part.correct(mu)
            direction = self._damped(mu, *self._centralised(mu, self._direction()))
            if direction[0] < SHORT:
                # The second-order terms can spoil a direction; without them it leads downhill.
                for part in self.parts():
                    part.aim(mu)
                direction = self._damped(mu, *self._direction())
            return self._move(*direction)

    def _centralised(self, mu: float, direction: tuple[float, Array, Array]) -> tuple[float, Array, Array]:
        """Correct the direction while that lengthens the step: a matrix costs far more than another right-hand side."""
        for _ in range(CORRECTORS):
            plans = [part.__dict__.copy() for part in self.parts()]
            t = direction[0]
            for part in self.parts():
                part.centralise(min(1.0, 1.1 * t + 0.1), mu)
            corrected = self._direction()
            if corrected[0] < t + 0.02:
                for part, plan in zip(self.parts(), plans, strict=True):
                    part.__dict__.update(plan)
                break
            direction = corrected
        return direction

    def _predicted_mu(self) -> float:
        """Mehrotra's choice: the mean complementarity times the cube of what the predictor's step would leave of it."""
        for part in self.parts():
            part.aim(0.0)
        t, *_ = self._direction()
        before, after = (sum(part.gap_after(length) for part in self.parts()) for length in (0.0, t))
        left = min(1.0, max(after / (before + TINY), 0.0)) ** 3
        if self.scores.bends:
            # The residual of a loss that bends may fall slowly, and mu must not run ahead of it.
            left = max(left, min(1.0, 0.3 * self._missing() / (before + TINY)))
        return self.mu() * left

    def _damped(self, mu: float, t: float, dw: Array, db: Array) -> tuple[float, Array, Array]:
        """Shorten the step until the objective with its barriers falls; a loss without bends needs no such care."""
        t = 0.995 * t if t < 1 else 1.0
        if not self.scores.bends or not np.all(np.isfinite(dw)):
            return t, dw, db
        df = self.problem.design.dot(dw) + db

        def value(t: float) -> float:
            penalty = 0.5 * self.problem.penalty.l2 * float(np.vdot(self.w + t * dw, self.w + t * dw))
            return penalty + self.problem.loss_sum(self.f + t * df) + sum(pulls.barrier(t, mu) for pulls in self.pulls)

        highest = value(0.0) * (1 + ROUNDING)
        while t > SHORTEST and not value(t) <= highest:
            t *= 0.5
        return t, dw, db

    def _factor(self) -> None:
        stiffness = np.full(self.w.shape, self.problem.penalty.l2)
        for pulls in self.pulls:
            stiffness = stiffness + pulls.curvature()
        self.system = joint_equations(self.problem.design, self.scores.coupling(), stiffness, self.problem.intercept)

    def _direction(self) -> tuple[float, Array, Array]:
        """The step of all parts to their targets; returns the longest t and the steps of w and b."""
        right, columns = -self.residual, None
        for pulls in self.pulls:
            columns = pulls.offset()
            right = self.problem.penalty.l2 * columns - self.residual
        x, db, change = self.system.solve(right, -self.imbalance, self.scores.offset(), columns)
        lengths = [self.scores.direct(change)] + [pulls.direct(x) for pulls in self.pulls]
        return min(lengths), x if columns is None else x - columns, db

    def _move(self, t: float, dw: Array, db: Array) -> bool:
        if not (t > SHORTEST and np.all(np.isfinite(dw))):
            return False
        for part in self.parts():
            part.move(t)
        self.w, self.b = self.w + t * dw, self.b + t * db
        self.f = self.problem.predict(Point(self.w, self.b))
        self.scores.absorb(self.f)
        for pulls in self.pulls:
            pulls.absorb(self.w)
        self._differentiate()
        return True


def _weight_slack(problem: Problem) -> Array:
    """The size that weights may have: one over that of the columns."""
    sizes = np.sqrt(problem.design.squared_columns() / len(problem.y))
    return np.tile(1.0 / np.where(sizes > 0, sizes, 1.0)[:, None], problem.classes)
