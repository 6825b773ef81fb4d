"""What an interior-point method keeps of a loss: kinks of one output, or the scores of all classes of a sample."""

import numpy as np

from empirisk.dual import with_balanced_rows
from empirisk.linalg.coupled import Coupling, JointColumns, JointRows, joint_equations
from empirisk.linalg.factor import NormalEquations, normal_equations
from empirisk.problem import Array, Problem
from empirisk.settings import settings
from empirisk.solvers.corners.kinks import ComplementaryPairs, Kinks, corners_of
from empirisk.solvers.newton.kernel import bounded_curvatures

#: Rows from which it pays to leave those out of the matrix that have less than this share of the mean curvature.
MANY, NEGLIGIBLE = 1 << 16, 1e-8
#: The least slack of kinks whose positions are all zero.
LEAST = 1e-8


class Scores:
    """What is kept of a loss."""

    #: Whether the curvature changes with the predictions, so that a full step needs a line search.
    curved = False
    #: Whether to restart at the end of the first direction.
    restarts = False

    def held(self) -> tuple[Array, Array, Array] | None:
        """None: the corners of all classes at once are not solved for."""


class CornerScores(Scores):
    """A loss of one output: its kinks at a = sign * f - place, beside a smooth part that is at most quadratic."""

    def __init__(self, problem: Problem, f: Array):
        self._problem = problem
        self._sign, origin = (problem.y, 0.0) if problem.loss.margin_form else (1.0, problem.y)
        corners = corners_of(problem.loss)
        self._places = [origin + corner for corner in corners]
        self.kinks = [
            Kinks(a, left * problem.scale, right * problem.scale, np.abs(a).mean() + LEAST)
            for a, (left, right) in zip(self._positions(f), corners.values(), strict=True)
        ]
        smooth, flat = problem.loss.smooth_part, np.zeros(len(f))
        self._slopes = flat if smooth is None else problem.scale * smooth.derivative(problem.y, f)
        self.bends = flat if smooth is None else problem.scale * smooth.curvature(problem.y, f)

    def _positions(self, f: Array) -> list[Array]:
        return [self._sign * f - place for place in self._places]

    @property
    def u(self) -> Array:
        """The dual point: the slopes of all."""
        return self._slopes + sum(self._sign * kinks.v for kinks in self.kinks)

    def equations(self, stiffness: Array) -> NormalEquations:
        """The normal equations at the current curvatures; of many rows those that hardly curve are left out."""
        self._weights = [kinks.curvature() for kinks in self.kinks]
        self._curvature = counted = self.bends + sum(self._weights)
        if len(counted) > MANY:
            counted = np.where(counted > NEGLIGIBLE * counted.mean(), counted, 0.0)
        return normal_equations(self._problem.design, counted, stiffness, self._problem.intercept)

    def offset(self) -> Array:
        """The offset of a prediction: the curvature-weighted mean over its kinks."""
        self._offsets = [kinks.offset() for kinks in self.kinks]
        total = sum(map(np.multiply, self._weights, self._offsets), np.zeros_like(self._curvature))
        self._mean = np.divide(total, self._curvature, out=total, where=self._curvature > 0)
        return self._sign * self._mean

    def direct(self, e: Array) -> float:
        """Compute the steps for e = df + offset, and return the longest t <= 1 that keeps everything positive."""
        self._df = e - self._sign * self._mean
        moves = (self._sign * e + (offset - self._mean) for offset in self._offsets)
        return min((kinks.direct(move) for kinks, move in zip(self.kinks, moves, strict=True)), default=1.0)

    def absorb(self, f: Array, t: float) -> None:
        """Take the predictions after a step t.

        The smooth slopes move with the step: computed again, rounding of the predictions would enter the dual point.
        """
        self._slopes = self._slopes + t * self.bends * self._df
        for kinks, a in zip(self.kinks, self._positions(f), strict=True):
            kinks.absorb(a)

    def held(self) -> tuple[Array, Array, Array]:
        """The slopes without those of rows whose corner holds the solution, where such rows stand, else NaN; bends."""
        slopes, targets = self._slopes.copy(), np.full(len(self._slopes), np.nan)
        for kinks, place in zip(self.kinks, self._places, strict=True):
            inside = kinks.inside()
            slopes += self._sign * np.where(inside, 0.0, kinks.bound)
            targets = np.where(inside, self._sign * place, targets)
        return slopes, targets, self.bends


class SmoothScores(Scores):
    """Scores of a smooth joint loss: their multipliers P follow from the predictions, and nothing is kept apart."""

    curved = True
    kinks = ()

    def __init__(self, problem: Problem, f: Array):
        self._problem = problem
        self.absorb(f, 0.0)

    def absorb(self, f: Array, t: float) -> None:
        """Take the predictions."""
        self.u = self._problem.slopes(f)

    def equations(self, stiffness: Array) -> JointColumns | JointRows:
        """The equations with the curvature of the loss."""
        problem = self._problem
        shares = self.u + problem.scale[:, None] * problem.loss.onehot(problem.y, problem.classes)
        coupling = Coupling(np.maximum(shares, 0.0) / problem.loss.softness)
        return joint_equations(problem.design, coupling, stiffness, problem.intercept)

    def offset(self) -> None:
        """No offset: there is no complementarity."""

    def direct(self, change: Array) -> float:
        """Every step is allowed."""
        return 1.0


class BentScores(SmoothScores):
    """A smooth loss of one output whose curvature changes."""

    def absorb(self, f: Array, t: float) -> None:
        """Take the predictions."""
        super().absorb(f, t)
        self._curvatures = bounded_curvatures(self._problem, f)

    def equations(self, stiffness: Array) -> NormalEquations:
        """The normal equations with the curvature of the loss."""
        problem = self._problem
        return normal_equations(problem.design, self._curvatures, stiffness, problem.intercept)


class SlackScores(Scores):
    """Scores of  loss = max_j (cost_j + f_j) - f_y  as  min xi - f_y  with slacks  xi - f_j - cost_j >= 0.

    Each slack has a multiplier P_j > 0; those of a sample sum to its scale s, and the dual point is u = P - s onehot.
    On the central path P_j slack_j = mu.
    """

    restarts = True  # from w = 0 slacks allow short steps only

    def __init__(self, problem: Problem, f: Array):
        self._problem, self.kinks = problem, (self,)
        self._cost = problem.loss.cost(problem.y, problem.classes)
        heights = f + self._cost
        P = np.repeat(problem.scale[:, None] / problem.classes, problem.classes, axis=1)
        self._pairs = ComplementaryPairs(P, heights.max(axis=1, keepdims=True) - heights + 1.0)
        self.pairs = (self._pairs,)

    @property
    def u(self) -> Array:
        """P - s onehot, whose own entry is minus the sum of the others."""
        return with_balanced_rows(self._problem.y, self._pairs.multiplier.copy())

    def equations(self, stiffness: Array) -> JointColumns | JointRows:
        """The equations with the curvature on the central path."""
        coupling = Coupling(self._pairs.multiplier / self._pairs.slack)
        return joint_equations(self._problem.design, coupling, stiffness, self._problem.intercept)

    def offset(self) -> Array:
        """h, such that dP = S (df + h) aims at the target."""
        return self._pairs.target / self._pairs.multiplier - self._pairs.slack

    def direct(self, change: Array) -> float:
        """Take dP, and return the longest t <= 1 that keeps multipliers and slacks positive."""
        return self._pairs.direct(change)

    def absorb(self, f: Array, t: float) -> None:
        """Take the predictions as they are, and let slacks grow by what rounding left of xi - f - cost."""
        heights = f + self._cost
        self._pairs.slack = (heights + self._pairs.slack).max(axis=1, keepdims=True) - heights


def scores_of(problem: Problem, f: Array) -> CornerScores | SmoothScores | SlackScores:
    """What is kept of the loss of a problem, at predictions f."""
    if not problem.classes:
        return (BentScores if problem.loss.smooth and not problem.loss.quadratic else CornerScores)(problem, f)
    return (SmoothScores if np.isfinite(problem.loss.curvature_bound) else SlackScores)(problem, f)


#: Rows, unknowns and products for which an iteration takes seconds at most.
ROWS, COLUMNS, WORK = 1500, 5000, 5e11


def fits(problem: Problem) -> bool:
    """Whether the matrix of an iteration on all classes is within the memory allowed, and made within seconds."""
    rows, columns = problem.design.shape
    # Without l2 the stiffness of nonzero weights vanishes, and with it the digits of the equations by rows.
    by_rows = rows < columns and rows <= ROWS and problem.penalty.l2 > 0
    # Three matrices of doubles for each class, or four of all unknowns.
    by_rows = by_rows and 24 * problem.classes * rows**2 <= settings().memory
    size = (columns + 1) * max(problem.classes, 1)
    return by_rows or (size <= COLUMNS and size**2 * (rows + size) <= WORK and 32 * size**2 <= settings().memory)
