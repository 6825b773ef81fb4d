"""A primal-dual interior-point method for joint losses: Crammer-Singer with any penalty, softmax with l1."""

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.certificate import Status
from empirisk.linalg.joint import JointColumns
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.kinks import Kinks
from empirisk.solvers.scores import MaximumScores, SmoothScores

Array = NDArray[np.float64]
TINY = np.finfo(float).tiny


def interior_point(problem: Problem, watch: Watch) -> Point:
    """Follow the central path until the certificate holds."""
    if problem.origin_value == 0:
        watch.status = Status.CONVERGED
        return problem.origin()
    state = State(problem)
    least, stalls = np.full(3, np.inf), 0
    while True:
        progress = state.progress()
        if (progress[0] <= watch.tol or stalls) and watch.proves(problem, state.point()):
            return state.point()
        stalls = 0 if np.any(progress < 0.9 * least) else stalls + 1
        least = np.minimum(least, progress)
        if stalls >= 10:
            watch.status = Status.STALLED
        if watch(state.point(), objective=state.primal) or not state.advance():
            watch.status = watch.status or Status.STALLED
            return state.point()


class State:
    """The iterate: weights, predictions, the scores of the loss and the kinks of the penalty."""

    def __init__(self, problem: Problem):
        self.problem = problem
        origin = problem.origin()
        self.w, self.b = origin.w, np.asarray(origin.b, dtype=float)
        self.f = problem.predict(origin)
        kind = SmoothScores if np.isfinite(problem.loss.curvature_bound) else MaximumScores
        self.scores = kind(problem, self.f)
        bound = np.full(self.w.size, problem.penalty.l1)
        self.kinks = [Kinks(self.w.ravel(), -bound, bound, _weight_slack(problem))] if bound.any() else []
        self.primal = problem.origin_value
        self._differentiate()

    def point(self) -> Point:
        """The current weights and dual point; the intercepts centred, since only their differences count."""
        return Point(self.w, self.b - self.b.mean(), self.scores.u)

    def parts(self) -> list:
        """Everything that has complementarity."""
        return [self.scores, *self.kinks]

    def mu(self) -> float:
        """The mean complementarity."""
        count = self.scores.size + sum(2 * kinks.size for kinks in self.kinks)
        return sum(part.gap() for part in self.parts()) / count

    def _differentiate(self) -> None:
        """The residual of stationarity."""
        u = self.scores.u
        residual = self.problem.penalty.l2 * self.w + self.problem.design.tdot(u)
        for kinks in self.kinks:
            residual = residual + kinks.v.reshape(self.w.shape)
        self.residual = residual
        self.imbalance = u.sum(axis=0) if self.problem.intercept else np.zeros(self.problem.classes)

    def progress(self) -> Array:
        """What must fall for the method to be on its way: the relative gap, complementarity and the residual."""
        self.primal = self.problem.primal(Point(self.w, self.b), self.f)
        gap = sum(part.gap() for part in self.parts())
        missing = float(np.abs(self.residual * self.w).sum() + np.abs(self.imbalance * self.b).sum())
        residual = float(np.abs(self.residual).max() + np.abs(self.imbalance).max())
        return np.array([(gap + missing) / self.problem.magnitude(self.primal), gap, residual])

    def advance(self) -> bool:
        """One predictor-corrector step; False if no progress is possible any more."""
        # At the limit of rounding slacks vanish; the step is then not finite and is refused.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            try:
                self._factor()
            except LinAlgError:
                return False
            return self._move(*self._corrected_direction())

    def _corrected_direction(self) -> tuple[float, Array, Array]:
        """Predictor, then corrector: Mehrotra's direction."""
        for part in self.parts():
            part.predict()
        t, *_ = self._direction()
        before, after = (sum(part.gap_after(length) for part in self.parts()) for length in (0.0, t))
        mu = self.mu() * min(1.0, max(after / (before + TINY), 0.0)) ** 3
        for part in self.parts():
            part.correct(mu)
        return self._direction()

    def _factor(self) -> None:
        stiffness = np.full(self.w.size, self.problem.penalty.l2)
        for kinks in self.kinks:
            stiffness += kinks.curvature()
        stiffness = stiffness.reshape(self.w.shape)
        self.system = JointColumns(self.problem.design, self.scores.coupling(), stiffness, self.problem.intercept)

    def _direction(self) -> tuple[float, Array, Array]:
        """The step of all parts to their targets; returns the longest t and the steps of w and b."""
        right, columns = -self.residual, None
        for kinks in self.kinks:
            columns = kinks.offset().reshape(self.w.shape)
            right = self.problem.penalty.l2 * columns - self.residual
        x, db, change = self.system.solve(right, -self.imbalance, self.scores.offset(), columns)
        lengths = [self.scores.direct(change)] + [kinks.direct(x.ravel()) for kinks in self.kinks]
        return min(lengths), x if columns is None else x - columns, db

    def _move(self, t: float, dw: Array, db: Array) -> bool:
        if not (t > 1e-10 and np.all(np.isfinite(dw))):
            return False
        t = 0.995 * t if t < 1 else 1.0
        for part in self.parts():
            part.move(t)
        self.w, self.b = self.w + t * dw, self.b + t * db
        self.f = self.problem.predict(Point(self.w, self.b))
        self.scores.settle(self.f)
        for kinks in self.kinks:
            kinks.settle(self.w.ravel())
        self._differentiate()
        return True


def _weight_slack(problem: Problem) -> Array:
    """The size that weights may have: one over that of the columns."""
    sizes = np.sqrt(problem.design.squared_columns() / len(problem.y))
    return np.repeat(1.0 / np.where(sizes > 0, sizes, 1.0), problem.classes)
