"""The envelope method: semi-smooth Newton on Moreau envelopes of loss and penalty, nearer to the true ones each round.

A loss is replaced by its Moreau envelope  max over v of  v f - loss*(v) - tau/2 (v - centre)^2,  of a curvature
between 0 and 1/tau, whatever that of the loss: a corner max(left a, right a) becomes quadratic for |a| up to about tau.
Between rounds the centre moves to the slopes found, which makes the rounding vanish at the solution itself (the method
of multipliers), and tau shrinks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError

from empirisk.linalg.factor import ColumnForm, NormalEquations, normal_equations
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.base import CONVEX, EXPLICIT, NORMS, ONE_OUTPUT, SMOOTH_OR_STRAIGHT, Need, Proofs, Solver, Watch
from empirisk.solvers.corners.kinks import weight_spread
from empirisk.solvers.corners.rounded_corners import SHARPER, STEPS_A_ROUND, Rounded, RoundedCorners, rounded_start
from empirisk.solvers.line_search import line_search
from empirisk.stop import Ending

#: Columns up to which factoring the normal matrix takes milliseconds.
COLUMNS = 1000
#: If the line search accepts less than this share of the Newton step, another direction is tried.
SHORT = 0.1
#: Entries of a design up to which least squares cost less than one round of Newton steps.
SMALL = 1 << 20
#: The least curvature of the fallback direction, as a share of the largest possible one, 1 / tau.
FLOOR = 0.01
#: A direction whose predicted decrease exceeds the objective this many times has almost no curvature: it is tried last.
BOUNDLESS = 1e6
#: A relative decrease below this is lost in the rounding of the value.
ROUNDING = 4 * np.finfo(float).eps


@dataclass(frozen=True)
class Move:
    """A direction in w, b and f, the step size t, the value there, and half of the decrease that the slope predicts."""

    w: Array
    b: float
    f: Array
    t: float
    value: float
    promised: float


class Envelopes(Rounded):
    """Weights, predictions, and the envelopes of the loss and of the l1 penalty."""

    #: The estimated gap, in units of tol, at which a certificate is computed; rounds without progress until a stall.
    hope, patience = 10.0, 4

    def __init__(self, problem: Problem, start: Point):
        # Predictions are relative to the best constant: their rounding errors, divided by tau, must stay small.
        self.level = float(problem.origin().b) if problem.loss.residual_form and problem.intercept else 0.0
        problem = replace(problem, y=problem.y - self.level) if self.level else problem
        super().__init__(problem, start.w, float(start.b) - self.level)
        # The first tau: the step at which the linearised loss reaches zero, in the mean over the rows.
        slopes = problem.slopes(problem.predict(problem.origin()))
        steepness = float(slopes @ (slopes / problem.scale))
        # At a minimum the slopes are zero and give no scale.
        self.tau = 2 * problem.origin_value / steepness if steepness > 0 and problem.origin_value > 0 else 1.0
        self.centre = np.zeros(len(self.f)) if start.u is None else start.u / problem.scale
        self.l1 = problem.penalty.l1
        self.weight_tau = weight_spread(problem) / (self.l1 or 1.0)
        self.weight_centre = np.zeros(len(self.w))
        self.led_to: Array | None = None
        self._highest = -np.inf
        self._differentiate()

    def round(self, watch: Watch) -> bool:
        """Newton steps with one centre, until what is left to gain is small beside what the envelopes round off."""
        for _ in range(STEPS_A_ROUND):
            before = self.value
            try:
                move = self.step()
            except LinAlgError:  # the curvature has vanished to rounding
                break
            if watch(self.point(), objective=self.primal) or before - self.value <= ROUNDING * abs(before):
                break
            # A twentieth of the tolerance, or a hundredth of what the envelopes round off: the rest is for later
            # rounds.
            goal = max(0.05 * watch.tol * self.problem.magnitude(self.primal), 0.01 * self.rounding())
            if move.promised <= goal and self.dual_error() <= goal:
                break
            # Short steps end the round too, where a full round of them would gain no more than the goal.
            if move.t < SHORT and STEPS_A_ROUND * (before - self.value) <= goal:
                break
        return True

    def rising(self) -> bool:
        """Whether the minimum of the envelope has risen: it is a lower bound of the objective, so this is progress."""
        before, self._highest = self._highest, max(self._highest, self.value)
        # A relative rise below 1e-4 is too slow to close the gap.
        return self.value > before + 1e-4 * self.problem.magnitude(self.primal)

    def candidates(self) -> list[Point]:
        """Points to certify: with the slopes as dual point, and with the dual point that the last Newton step predicts.

        The second is stationary even where the slopes carry the rounding of the predictions.
        """
        led = [] if self.led_to is None else [Point(self.w, self.b + self.level, self.led_to)]
        return [self.point(), *led]

    def estimate(self) -> float:
        """The relative gap that the point suggests."""
        return (self.rounding() + self.dual_error()) / self.problem.magnitude(self.primal)

    def sharpen(self, tol: float) -> None:
        """Centre the envelopes at the slopes found (method of multipliers), and shrink tau while that lowers the gap.

        Slopes carry the rounding of the predictions divided by tau. So tau grows again when the envelopes are nearer
        than a tenth of tol; centred at slopes close to those of the solution, they stay near.
        """
        before, goal = self.centre, 0.1 * tol * self.problem.magnitude(self.primal)
        self.centre, self.weight_centre = self.u / self.problem.scale, self.l1_gradient
        near = self.f - self.tau * (self.centre - before)
        factor = SHARPER if self.rounding() > goal else 1 / SHARPER
        self.tau, self.weight_tau = self.tau / factor, self.weight_tau / factor
        self.curvature = self.problem.scale * self._rounded(near)
        dw, db, _ = self._system().solve(-self.gradient, -self.imbalance, self.f - near, None)
        self._differentiate()
        self._apply(self._searched(dw, db))

    def _envelope(self, f: Array) -> tuple[Array, Array, Array]:
        """Value, slope and curvature of the envelope of the loss at f, one per row."""
        loss, y = self.problem.loss, self.problem.y
        shifted = f + self.tau * self.centre
        near = loss.prox(y, shifted, self.tau)
        v = (shifted - near) / self.tau
        value = loss.value(y, near) + 0.5 * self.tau * (v**2 - self.centre**2)
        return value, v, self._rounded(near)

    def _rounded(self, near: Array) -> Array:
        """The curvature of the envelope where its prox is ``near``."""
        with np.errstate(divide="ignore"):
            return 1.0 / (self.tau + 1.0 / self.problem.loss.curvature(self.problem.y, near))

    def _weight_envelope(self, w: Array) -> tuple[float, Array, Array]:
        """Value, l1 gradient and curvatures of the penalty, with the l1 norm replaced by its Moreau envelope."""
        l2 = self.problem.penalty.l2
        value, stiffness = 0.5 * l2 * float(w @ w), np.full(len(w), l2)
        if not self.l1:
            return value, np.zeros(len(w)), stiffness
        free = self.weight_centre + w / self.weight_tau
        l1_gradient = np.clip(free, -self.l1, self.l1)
        away = l1_gradient - self.weight_centre
        value += float(l1_gradient @ w - 0.5 * (self.weight_tau * away) @ away)
        return value, l1_gradient, stiffness + np.where(np.abs(free) < self.l1, 1.0 / self.weight_tau, 0.0)

    def _differentiate(self) -> None:
        problem = self.problem
        values, v, curvature = self._envelope(self.f)
        value, self.l1_gradient, self.stiffness = self._weight_envelope(self.w)
        self.u, self.curvature = problem.scale * v, problem.scale * curvature
        self.value = value + float(problem.scale @ values)
        self.primal = problem.primal(Point(self.w, self.b), self.f)
        self.gradient = problem.penalty.l2 * self.w + self.l1_gradient + problem.design.tdot(self.u)
        self.imbalance = float(self.u.sum()) if problem.intercept else 0.0

    def step(self) -> Move:
        """One Newton step with a line search."""
        moves = []
        for direction, enough in self._directions():
            moves.append(self._searched(*direction))
            if moves[-1].t > enough:
                break
        move = min(moves, key=lambda each: each.value)
        self._apply(move)
        return move

    def _directions(self) -> Iterator[tuple[tuple[Array, float], float]]:
        """Directions, the best one first, each with the share of it that makes the others needless.

        A direction whose predicted decrease exceeds the objective many times has almost no curvature: its line search
        takes many trials and seldom gets farther than the fallback direction, so it comes last.
        """
        kept, boundless = (self.curvature, self.stiffness), []
        for direction in self._newton():
            if self._promise(*direction) <= BOUNDLESS * self.problem.magnitude(self.primal):
                yield direction, SHORT
            else:
                boundless.append(direction)
        # Fallback for vanishing curvature: a floor under the curvatures, and the line search finds the step size.
        self.curvature = np.maximum(self.curvature, FLOOR * self.problem.scale / self.tau)
        if self.l1:
            self.stiffness = np.maximum(self.stiffness, FLOOR / self.weight_tau)
        yield self._system().solve(-self.gradient, -self.imbalance, None, None)[:2], 0.0
        self.curvature, self.stiffness = kept
        for direction in boundless:
            yield direction, SHORT

    def _newton(self) -> Iterator[tuple[Array, float]]:
        """Newton's direction, in two forms."""
        system = self._system()
        yield self._refined(system, *system.solve(-self.gradient, -self.imbalance, None, None)[:2])
        # With few rows and a weak penalty A'u is huge, and the step a small difference. The slopes u as shifts of the
        # rows do not have that fault, but they lose digits at the end.
        rows = np.divide(self.u, self.curvature, out=np.zeros_like(self.u), where=self.curvature > 0)
        yield system.solve(-(self.problem.penalty.l2 * self.w + self.l1_gradient), 0.0, rows, None)[:2]

    def _refined(self, system: NormalEquations, dw: Array, db: float) -> tuple[Array, float]:
        """Newton's direction with what the factor missed of the equations added once."""
        curved = self.curvature * (self.problem.design.dot(dw) + db)
        right = -self.gradient - self.stiffness * dw - self.problem.design.tdot(curved)
        constant = -self.imbalance - float(curved.sum()) if self.problem.intercept else 0.0
        more_w, more_b, _ = system.solve(right, constant, None, None)
        return dw + more_w, db + more_b

    def _apply(self, move: Move) -> None:
        self.led_to = self.u + self.curvature * move.f if move.t == 1 else None
        self.w, self.b = self.w + move.t * move.w, self.b + move.t * move.b
        self.f = self.problem.predict(Point(self.w, self.b))
        self._differentiate()

    def _system(self) -> NormalEquations:
        """The normal equations; with l1 by columns, since products of rows lose the columns with small entries."""
        form = ColumnForm if self.l1 and len(self.w) <= COLUMNS else normal_equations
        return form(self.problem.design, self.curvature, self.stiffness, self.problem.intercept)

    def _searched(self, dw: Array, db: float) -> "Move":
        """A direction, with the step along it that the line search takes."""
        df = self.problem.design.dot(dw) + db
        promised = self._promise(dw, db)
        along = self._along(dw, df)
        # A line search cannot see a decrease below rounding; the full Newton step is taken then.
        minute = 0 < promised <= ROUNDING * abs(self.value)
        t, value = (1.0, along(1.0)[0]) if minute else line_search(along, self.value, -promised)
        return Move(dw, db, df, t, value, 0.5 * promised)

    def _promise(self, dw: Array, db: float) -> float:
        """Minus the directional derivative of the value."""
        return -float(self.gradient @ dw + self.imbalance * db)

    def _along(self, dw: Array, df: Array) -> Callable[[float], tuple[float, float]]:
        problem = self.problem

        def evaluate(t: float) -> tuple[float, float]:
            w = self.w + t * dw
            values, v, _ = self._envelope(self.f + t * df)
            value, l1_gradient, _ = self._weight_envelope(w)
            slope = float((problem.penalty.l2 * w + l1_gradient) @ dw + (problem.scale * v) @ df)
            return value + float(problem.scale @ values), slope

        return evaluate


def least_squares(problem: Problem) -> Point | None:
    """The least-squares weights of a regression without penalty: the solution where they fit every row exactly."""
    rows, columns = problem.design.shape
    if problem.penalty.l1 > 0 or problem.penalty.l2 > 0 or not problem.loss.residual_form or rows * columns > SMALL:
        return None
    sizes = problem.design.lengths
    sizes = np.where(sizes > 0, sizes, 1.0)
    matrix = problem.design.columns(slice(None)) / sizes
    if problem.intercept:
        matrix = np.hstack([matrix, np.ones((rows, 1))])
    solution = np.linalg.lstsq(matrix, problem.y, rcond=None)[0]
    return Point(solution[:columns] / sizes, float(solution[-1]) if problem.intercept else 0.0)


#: Rows of a normal matrix that is factored in about two seconds.
DIRECT = 4096
ONE_KIND = Need("a penalty without corners where the loss has them", lambda p: p.loss.smooth or p.penalty.smooth)
SMALL_MATRIX = Need(
    f"a normal matrix of at most {DIRECT} rows or columns where the loss is smooth",
    lambda p: not p.loss.smooth or min(p.design.shape) <= DIRECT,
)


class Envelope(Solver):
    """The method of multipliers on the dual, its rounds solved by Newton's method with a line search.

    On losses with corners and l2 or no penalty the rounded problem bends only at the few rows near a corner, so that an
    iteration costs a product with the data and some Newton steps on those. Smooth losses, with l1 too, are those whose
    curvature Newton's method cannot trust, such as |e|^p; each step is one weighted normal matrix.

    >>> er.SVM(solver=er.solvers.Envelope()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).solver_
    'envelope'
    """

    needs = (EXPLICIT, ONE_OUTPUT, CONVEX, SMOOTH_OR_STRAIGHT, NORMS, ONE_KIND, SMALL_MATRIX)

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        if problem.origin_value == 0:
            watch.status = Ending.CONVERGED
            return problem.origin()
        proofs = Proofs(problem, watch)
        if problem.loss.smooth:
            exact = least_squares(problem)
            if exact is not None and proofs(exact):
                return exact
            return _rounds(Envelopes(problem, problem.origin() if start is None else start), proofs, watch)
        return _rounds(rounded_start(problem, watch, start), proofs, watch)


def _rounds(state: Envelopes | RoundedCorners, proofs: Proofs, watch: Watch) -> Point:
    """Rounds of Newton steps, each with a smaller tau, until a certificate succeeds or the gap stalls."""
    least, stalls = np.inf, 0
    while True:
        done = state.round(watch)
        if watch.status:
            return proofs.best(state.point())
        gap = state.estimate()
        if gap <= state.hope * watch.tol or stalls:
            for point in state.candidates():
                if proofs(point):
                    return state.polished(point, watch)
        # A round that lowers the gap by less than a tenth does not count as progress.
        stalls = 0 if state.rising() or gap < 0.9 * least else stalls + 1
        least = min(least, gap)
        if stalls >= state.patience:
            watch.status = Ending.STALLED
            return proofs.best(state.point())
        if done:
            state.sharpen(watch.tol)
