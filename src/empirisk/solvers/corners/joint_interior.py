"""A primal-dual interior-point method for joint losses: Crammer-Singer with any penalty, softmax with l1."""

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.linalg.coupled import Coupling, joint_equations
from empirisk.problem import Point, Problem
from empirisk.settings import settings

Array = NDArray[np.float64]


class Pulls:
    """l1 |w| = max of v w over |v| <= l1, one pull v for every weight w = q - p with slacks p, q > 0.

    On the central path p (v + l1) = q (l1 - v) = mu. Kept are below = v + l1 and above = l1 - v, because near a bound v
    itself has no digits left.
    """

    def __init__(self, w: Array, l1: float, slack: Array):
        self.l1, self.size = l1, 2 * w.size
        self.below, self.above = np.full(w.shape, l1), np.full(w.shape, l1)
        self.p, self.q = np.maximum(-w, 0) + slack, np.maximum(w, 0) + slack
        self.low: Array | float = 0.0
        self.high: Array | float = 0.0
        self.dv = self.dp = self.dq = np.zeros(w.shape)

    @property
    def v(self) -> Array:
        """The pulls, between -l1 and l1."""
        return np.where(self.below < self.above, self.below - self.l1, self.l1 - self.above)

    def curvature(self) -> Array:
        """dv/dw on the central path."""
        return 1.0 / (self.q / self.above + self.p / self.below)

    def aim(self, mu: float) -> None:
        """Aim at complementarity mu, without second-order terms."""
        self.low = self.high = mu

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before."""
        self.low, self.high = mu - self.dp * self.dv, mu + self.dq * self.dv

    def centralise(self, t: float, mu: float) -> None:
        """Aim also at bringing back the products that the step, gone t along, would throw far off mu."""
        below, above = self.below + t * self.dv, self.above - t * self.dv
        self.low = self.low + recentred((self.p + t * self.dp) * below, mu)
        self.high = self.high + recentred((self.q + t * self.dq) * above, mu)

    def offset(self) -> Array:
        """h, such that dv = curvature (dw + h) aims at the targets."""
        return self.q - self.p + self.low / self.below - self.high / self.above

    def direct(self, x: Array) -> float:
        """Compute the step for x = dw + h, and return the longest t <= 1 that keeps everything positive."""
        self.dv = self.curvature() * x
        self.dp = (self.low - self.p * self.dv) / self.below - self.p
        self.dq = (self.high + self.q * self.dv) / self.above - self.q
        parts = ((self.below, self.dv), (self.above, -self.dv), (self.p, self.dp), (self.q, self.dq))
        return min(longest(values, changes) for values, changes in parts)

    def gap(self) -> float:
        """The sum of p (v + l1) + q (l1 - v): the duality gap of the pulls."""
        return self.gap_after(0.0)

    def gap_after(self, t: float) -> float:
        """The gap after going t along the step."""
        below, above = self.below + t * self.dv, self.above - t * self.dv
        return float(np.vdot(self.p + t * self.dp, below) + np.vdot(self.q + t * self.dq, above))

    def barrier(self, t: float, mu: float) -> float:
        """l1 (p + q) - mu (log p + log q), which the central path minimises, after going t along the step."""
        p, q = self.p + t * self.dp, self.q + t * self.dq
        return float(self.l1 * (p.sum() + q.sum()) - mu * (np.log(p).sum() + np.log(q).sum()))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self.below, self.above = self.below + t * self.dv, self.above - t * self.dv
        self.p, self.q = self.p + t * self.dp, self.q + t * self.dq

    def absorb(self, w: Array) -> None:
        """Take the weights as they are, and let p or q grow by what rounding left of w - (q - p)."""
        missing = w - (self.q - self.p)
        self.p, self.q = self.p + np.maximum(-missing, 0), self.q + np.maximum(missing, 0)


def longest(values: Array, changes: Array) -> float:
    """The largest t <= 1 with values + t changes >= 0."""
    shrinking = changes < 0
    return min(1.0, float((values[shrinking] / -changes[shrinking]).min(initial=np.inf)))


def recentred(products: Array, mu: float) -> Array:
    """What brings products into [mu/10, 10 mu]; far above it, no more than 10 mu is taken off (Gondzio's corrector)."""
    return np.maximum(np.clip(products, 0.1 * mu, 10 * mu) - products, -10 * mu)


class SmoothClasses:
    """Scores of a smooth joint loss: their multipliers P follow from the predictions, and nothing is kept apart."""

    bends = True
    size = 0

    def __init__(self, problem: Problem, f: Array):
        self._problem = problem
        self.absorb(f)

    def absorb(self, f: Array) -> None:
        """Take the predictions."""
        self.u = self._problem.slopes(f)

    def coupling(self) -> Coupling:
        """The curvature of the loss."""
        onehot = self._problem.loss.onehot(self._problem.y, self._problem.classes)
        return Coupling(np.maximum(self.u + self._problem.scale[:, None] * onehot, 0.0))

    def aim(self, mu: float) -> None:
        """Nothing to aim at."""

    def correct(self, mu: float) -> None:
        """Nothing to aim at."""

    def centralise(self, t: float, mu: float) -> None:
        """Nothing to centralise."""

    def offset(self) -> None:
        """No offset: there is no complementarity."""

    def direct(self, change: Array) -> float:
        """Every step is allowed."""
        return 1.0

    def gap(self) -> float:
        """No complementarity."""
        return 0.0

    def gap_after(self, t: float) -> float:
        """No complementarity."""
        return 0.0

    def move(self, t: float) -> None:
        """Nothing moves but the predictions."""


class ClassSlacks:
    """Scores of  loss = max_j (cost_j + f_j) - f_y  as  min xi - f_y  with slacks  xi - f_j - cost_j >= 0.

    Each slack has a multiplier P_j > 0; those of a sample sum to its scale s, and the dual point is u = P - s onehot.
    On the central path P_j slack_j = mu.
    """

    bends = False

    def __init__(self, problem: Problem, f: Array):
        self._scale = problem.scale[:, None]
        self._own = problem.y.astype(int)[:, None]
        self._cost = problem.loss.cost(problem.y, problem.classes)
        heights = f + self._cost
        self.slack = heights.max(axis=1, keepdims=True) - heights + 1.0
        self.P = np.repeat(self._scale / problem.classes, problem.classes, axis=1)
        self.size = self.P.size
        self.target: Array | float = 0.0
        self.dP = self.dslack = np.zeros_like(self.P)

    @property
    def u(self) -> Array:
        """P - s onehot, whose own entry is minus the sum of the others."""
        u = self.P.copy()
        np.put_along_axis(u, self._own, 0.0, axis=1)
        np.put_along_axis(u, self._own, -u.sum(axis=1, keepdims=True), axis=1)
        return u

    def coupling(self) -> Coupling:
        """The curvature on the central path."""
        return Coupling(self.P / self.slack)

    def aim(self, mu: float) -> None:
        """Aim at complementarity mu, without second-order terms."""
        self.target = mu

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before."""
        self.target = mu - self.dP * self.dslack

    def centralise(self, t: float, mu: float) -> None:
        """Aim also at bringing back the products that the step, gone t along, would throw far off mu."""
        self.target = self.target + recentred((self.P + t * self.dP) * (self.slack + t * self.dslack), mu)

    def offset(self) -> Array:
        """h, such that dP = S (df + h) aims at the target."""
        return self.target / self.P - self.slack

    def direct(self, change: Array) -> float:
        """Take dP, and return the longest t <= 1 that keeps multipliers and slacks positive."""
        self.dP, self.dslack = change, (self.target - self.slack * change) / self.P - self.slack
        return min(longest(self.P, self.dP), longest(self.slack, self.dslack))

    def gap(self) -> float:
        """The sum of P slack: the duality gap of these scores."""
        return float(np.vdot(self.P, self.slack))

    def gap_after(self, t: float) -> float:
        """The gap after going t along the step."""
        return float(np.vdot(self.P + t * self.dP, self.slack + t * self.dslack))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self.P, self.slack = self.P + t * self.dP, self.slack + t * self.dslack

    def absorb(self, f: Array) -> None:
        """Take the predictions as they are, and let slacks grow by what rounding left of xi - f - cost."""
        heights = f + self._cost
        self.slack = (heights + self.slack).max(axis=1, keepdims=True) - heights


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
                # Gondzio's aspiration: a tenth more than the step that the direction allows, and a little.
                part.centralise(min(1.0, 1.1 * t + 0.1), mu)
            corrected = self._direction()
            # A corrector that lengthens the step by less than a fifth of what it aspired to is not worth another.
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
        # As for one output: room is left before the bounds.
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
