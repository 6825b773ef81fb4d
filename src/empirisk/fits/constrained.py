"""The constraint form of the equation: the C at which R(w) reaches a radius, and the certificate of what it minimises.

For the multiplier 1/C the Lagrangian  sum of losses + (R(w) - radius)/C  is the equation divided by C, less a constant.
Every fit at a C therefore bounds the constrained problem from below by (D - radius)/C, D being its lower bound, and
R(w) grows with C: its root is found between fits on either side of the radius. Where R jumps there, as with losses and
penalties that are both made of straight pieces, the answer lies on the line between the two.
"""

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import brentq

from empirisk.certificate import Proof
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits.choice import natural_range
from empirisk.fits.constraint import Constraint
from empirisk.fits.fit import Fit, SolverRun
from empirisk.penalties import NoPenalty
from empirisk.problem import Array, Point, Problem
from empirisk.stop import Ending

#: Values of C that are tried at most; bisection alone has found all digits of it by then.
MOST = 100
#: How far C moves while the radius is not yet between two fits.
STRIDE = 30.0
#: Beyond this multiple of the smallest natural C, and below its inverse, fits have no digits left.
FARTHEST = 1e16
#: The share of tol that the fits get, and the least they are asked for: the rest is for C.
SHARE, FINEST = 0.1, 1e-14
#: R may exceed the radius by this share, which is rounding.
ROUNDING = 1e-12
#: Two values of C this close have found the place of a jump.
SAME = 1e-5
#: log(R / radius) counts for no more than this: R may be zero.
STEEPEST = 30.0


@dataclass(frozen=True)
class PointsAtC:
    """The points of all problems at a C, and their sums of losses and penalties."""

    C: float
    points: list[Point]
    losses: Array
    penalties: Array

    @property
    def loss(self) -> float:
        """The sum of the losses of all problems."""
        return float(self.losses.sum())

    @property
    def size(self) -> float:
        """R, summed over all problems."""
        return float(self.penalties.sum())


@dataclass
class RadiusSearch:
    """The state of the search for C: the nearest fits inside and outside of the radius, and the best bound."""

    problems: list[Problem]
    radius: float
    run: SolverRun
    inside: PointsAtC = field(init=False)
    outside: PointsAtC | None = None
    answer: PointsAtC = field(init=False)
    bound: float = -math.inf
    tol: float = field(init=False)
    shared: dict = field(default_factory=dict)
    fits: list[Fit] = field(default_factory=list)
    history: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ("C", "objective", "gap")})
    iterations: int = 0
    unproven: bool = False

    def __post_init__(self):
        self.tol = SHARE * self.run.limits.tol
        # Losses alone, which no C multiplies.
        self.problems = [problem.with_C(1.0) for problem in self.problems]
        self.inside = self._stage(0.0, [problem.origin() for problem in self.problems])
        if self.inside.size > self.radius:
            raise EmpiriskError(
                f"radius={self.radius!r} of Constraint is below R(0) = {self.inside.size:.3g}, which no w undercuts; "
                "raise it."
            )
        # No loss falls below its least value, whatever w is.
        self.bound = -sum(problem.conjugates_at_zero for problem in self.problems)
        self.answer = self.inside

    def _stage(self, C: float, points: list[Point]) -> PointsAtC:
        pairs = list(zip(self.problems, points, strict=True))
        losses = np.array([problem.loss_sum(problem.predict(point)) for problem, point in pairs])
        return PointsAtC(C, points, losses, np.array([problem.penalty_sum(point) for problem, point in pairs]))

    @property
    def magnitude(self) -> float:
        """What the gap is compared with."""
        return sum(
            problem.magnitude(float(value)) for problem, value in zip(self.problems, self.answer.losses, strict=True)
        )

    @property
    def gap(self) -> float:
        """How far the answer may be from the least sum of losses."""
        rounding = 4 * np.finfo(float).eps * (abs(self.answer.loss) + abs(self.bound))
        return max(self.answer.loss - self.bound, 0.0) + rounding

    @property
    def rounding(self) -> float:
        """What the rounding of predictions and targets moves the losses of the answer by."""
        C = self.answer.C if 0 < self.answer.C < math.inf else 1.0  # the points may hold multipliers in its scale
        pairs = zip(self.problems, self.answer.points, strict=True)
        return sum(Proof(problem.with_C(C), point).rounding for problem, point in pairs) / C

    @property
    def ended(self) -> bool:
        """Whether the answer is proven, and is that of one C but for a jump; or a limit or the user has ended it.

        Also where fits on either side of the same C leave too much open, as exact as they can be: no other C helps.
        """
        if any(fit.cut for fit in self.fits) or (self.unproven and self.tol == FINEST and self._width() <= SAME):
            return True
        settled = self.answer is self.inside or self._width() <= SAME
        return settled and self.gap <= self.run.limits.tol * self.magnitude

    def _width(self) -> float:
        """The distance of the two nearest values of C, in logarithms."""
        if self.outside is None or self.inside.C == 0:
            return math.inf
        return math.log(self.outside.C / self.inside.C)

    def fit(self, C: float) -> None:
        """Solve the equation at a C from the nearest fit, and take what it tells."""
        nearest = self.inside if self.outside is None or self.inside.C > 0 else self.outside
        starts = None if nearest.C == 0 else nearest.points
        penalised = [problem.with_C(C) for problem in self.problems]
        self._take(C, self.run(penalised, starts, self.tol, self.shared), C, self.radius)

    def fit_freely(self) -> None:
        """Solve the problem without a penalty, which is the answer where its R is inside."""
        free = [replace(problem, penalty=NoPenalty()) for problem in self.problems]
        fits = self.run(free, self.inside.points, self.tol)
        stage = self._stage(math.inf, [fit.point for fit in fits])
        if stage.size <= self.radius and not any(fit.cut for fit in fits):
            self._take(math.inf, fits, 1.0, 0.0)

    def _take(self, C: float, fits: list[Fit], scale: float, paid: float) -> None:
        """Take the fits at a C; the losses are at least their lower bounds, less what is ``paid``, over ``scale``."""
        below = (sum(fit.certificate.primal - fit.certificate.gap for fit in fits) - paid) / scale
        stage = self._stage(C, [fit.point for fit in fits])
        self.fits, self.iterations = fits, self.iterations + sum(fit.certificate.iterations for fit in fits)
        if math.isfinite(below):
            self.bound = max(self.bound, below)
        if stage.size <= self.radius * (1 + ROUNDING):
            self.inside = stage
        else:
            self.outside = stage
        self.answer = min((self.inside, self._between()), key=lambda stage: stage.loss)
        # What the fits themselves leave open must not be what is left.
        left, allowed = sum(fit.certificate.gap for fit in fits), self.run.limits.tol * self.magnitude * scale
        self.unproven = not left <= allowed
        if left > SHARE * allowed:
            self.tol = max(SHARE * self.tol, FINEST)
        for name, value in (("C", C), ("objective", self.answer.loss), ("gap", self.gap)):
            self.history[name].append(value)

    def _between(self) -> PointsAtC:
        """The point at the radius on the line between the fits on either side of it."""
        inside, outside = self.inside, self.outside
        if outside is None or inside.size >= self.radius:
            return inside

        def mixed(t: float) -> list[Point]:
            return [_mixture(*pair, t) for pair in zip(inside.points, outside.points, strict=True)]

        def excess(t: float) -> float:
            pairs = zip(self.problems, mixed(t), strict=True)
            return sum(problem.penalty_sum(point) for problem, point in pairs) - self.radius

        if not excess(1.0) > 0:  # by rounding
            return inside
        t = float(brentq(excess, 0.0, 1.0, xtol=1e-15, rtol=4 * np.finfo(float).eps))
        if excess(t) > ROUNDING * self.radius:
            t *= 1 - 1e-14
        return self._stage(_crossing(inside, outside), mixed(t))

    def next(self, smallest: float, step: int) -> float:
        """The next C to try: outward by strides until the radius lies between two fits, then inward.

        By turns where the two are worth the same, which is where R jumps if it does; where a line between the
        logarithms of R meets the radius; and in the middle.
        """
        inside, outside = self.inside, self.outside
        if outside is None:
            return STRIDE * (inside.C or smallest)
        if inside.C == 0:
            return outside.C / STRIDE
        low, high = math.log(inside.C), math.log(outside.C)
        guess = 0.5 * (low + high)
        if step % 3 == 0:
            guess = math.log(_crossing(inside, outside))
        elif step % 3 == 1:
            below, above = (_logarithm(stage.size, self.radius) for stage in (inside, outside))
            guess = low - below * (high - low) / (above - below) if above > below else guess
        margin = 1e-3 * (high - low)
        return math.exp(min(max(guess, low + margin), high - margin))


def _crossing(inside: PointsAtC, outside: PointsAtC) -> float:
    """The C at which two fits are worth the same."""
    gained = inside.loss - outside.loss
    crossing = (outside.size - inside.size) / gained if gained > 0 else math.inf
    return min(max(crossing, inside.C), outside.C)


def _logarithm(size: float, radius: float) -> float:
    """log(size / radius), within bounds."""
    if size <= 0 or radius <= 0:
        return -STEEPEST if size <= radius else STEEPEST
    return min(max(math.log(size / radius), -STEEPEST), STEEPEST)


def _mixture(first: Point, second: Point, t: float) -> Point:
    """(1 - t) first + t second."""
    u = None if first.u is None or second.u is None else (1 - t) * first.u + t * second.u
    b = (1 - t) * np.asarray(first.b) + t * np.asarray(second.b)
    return Point((1 - t) * first.w + t * second.w, b if b.ndim else float(b), u)


def constrained(
    problems: list[Problem], constraint: Constraint, run: SolverRun
) -> tuple[list[Problem], list[Fit], float]:
    """The problems at the C that gives the constrained answer, the fits with their certificates, and that C."""
    if problems[0].penalty.zero:
        raise Unsuitable(f"C={constraint!r} bounds the penalty, and there is none; use penalty='l2' or 'l1'.")
    begin = time.perf_counter()
    search = RadiusSearch(problems, constraint.limit, replace(run, progress=None, learning=None, resisted=[]))
    smallest, largest = natural_range(search.problems)
    tried_freely = problems[0].design.implicit
    for step in range(MOST):
        if search.ended and step:
            break
        C = search.next(smallest, step)
        if search.outside is None and largest < C and not tried_freely:
            tried_freely = True
            search.fit_freely()
        elif not smallest / FARTHEST <= C <= smallest * FARTHEST:
            break
        else:
            search.fit(C)
    C = search.answer.C or search.next(smallest, 0)
    seconds = time.perf_counter() - begin
    fits = _fits(search, seconds)
    finite = C if math.isfinite(C) else FARTHEST * smallest
    return [problem.with_C(finite) for problem in search.problems], fits, C


def _fits(search: RadiusSearch, seconds: float) -> list[Fit]:
    """The answer with the certificate of the constrained problem, whose gap the problems share."""
    answer, share, gap = search.answer, 1.0 / len(search.problems), search.gap + search.rounding
    relative, tol = gap / search.magnitude, search.run.limits.tol
    cut = next((fit.certificate.status for fit in search.fits if fit.cut), Ending.STALLED)
    active = answer.size >= search.radius * (1 - 1e-6)
    words = f"subject to R(w) = {answer.size:.6g} {'=' if active else '<'} {search.radius:.6g}"
    words = f"{words}, {len(search.history['C'])} fits"
    found = []
    for fit, point, loss in zip(search.fits, answer.points, answer.losses, strict=True):
        certificate = replace(fit.certificate, primal=float(loss), status=cut, iterations=search.iterations)
        found.append(Fit(point, certificate.regraded(share * gap, relative, tol, words, share * seconds), {}))
    return [replace(found[0], history=search.history), *found[1:]]
