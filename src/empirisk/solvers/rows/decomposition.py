"""Decomposition: kernel machines with corners, a working set of samples at a time."""

from dataclasses import replace

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from empirisk.problem import Array, Point, Problem
from empirisk.settings import settings
from empirisk.solvers.base import DUAL_QUADRATIC, KERNEL, ONE_OUTPUT, RIDGE, Proofs, Solver, Watch
from empirisk.solvers.closed.factored import Factor
from empirisk.solvers.corners.interior_point import InteriorPoint
from empirisk.solvers.rows.pairs import DualIterate
from empirisk.solvers.rows.row_cache import gram, row_source
from empirisk.stop import Ending

#: Free variables for which a factorisation is cheap.
SIZE = 1500
#: Those for which all eigenvectors are, which tell flat directions from steep ones.
SMALL = 300
#: Eigenvalues below this share of the largest, times the size, are rounding.
RANK = 1e-13
#: Ridges, in units of the mean diagonal, with which a singular matrix is tried.
BENDINGS = (1e-14, 1e-11, 1e-8)
#: Products for which Newton steps take about a second.
WORK = 1e9


def can_polish(state: DualIterate) -> bool:
    """Whether the free variables are few enough for a factorisation."""
    return bool(0 < np.count_nonzero(state.lift == state.drop) <= SIZE)


def polish(state: DualIterate) -> bool:
    """Minimise over the free variables, the others held; a variable that meets its bound is held from then on.

    The gradient of the state must be exact; it is not kept up to date. Returns whether anything moved.
    """
    if not can_polish(state):
        return False
    places = np.flatnonzero(state.lift == state.drop)
    samples = state.active[places]
    Q = np.asarray(gram(state.problem).block(samples, samples), dtype=np.float64) / state.strength
    Q[np.diag_indices(len(Q))] += state.bends[samples]
    G = state.G[places] + state.lift[places]
    low, high = _pieces(state, samples)
    u = state.u[samples]
    moved = False
    held = np.zeros(len(u), dtype=bool)
    # As many steps as the work allows, and a few in any case.
    for _ in range(max(5, min(len(u), int(WORK / len(u) ** 3)))):
        inside = np.flatnonzero(~held)
        if len(inside) < 1 + state.problem.intercept:
            break
        direction = _direction(Q[np.ix_(inside, inside)], G[inside], state.problem.intercept)
        if direction is None or not np.any(direction):
            break
        length, first = _length(u[inside], direction, low[inside], high[inside])
        change = length * direction
        u[inside] += change
        G += Q[:, inside] @ change
        moved = moved or bool(np.any(change))
        if first < 0:
            break
        bound = low if direction[first] < 0 else high
        u[inside[first]] = bound[inside[first]]
        held[inside[first]] = True
    state.u[samples] = np.clip(u, low, high)
    return moved


def _pieces(state: DualIterate, samples: NDArray) -> tuple[Array, Array]:
    """The interval of each variable on which the conjugate is smooth."""
    low, high = state.low[samples], state.high[samples]
    if state.tube == 0:
        return low, high
    u = state.u[samples]
    return np.where(u > 0, 0.0, low), np.where(u < 0, 0.0, high)


def _direction(Q: Array, G: Array, balanced: bool) -> Array | None:
    """The step to the minimum of 1/2 d'Qd + G'd, with sum d = 0 if it is to stay balanced; None if Q is too bad."""
    if len(Q) <= SMALL:
        return _shortest(Q, G, balanced)
    size = float(np.trace(Q)) / len(Q) or 1.0
    for bending in BENDINGS:
        try:
            factor = cho_factor(Q + bending * size * np.eye(len(Q)), lower=True, check_finite=False)
        except LinAlgError:
            continue
        step = cho_solve(factor, G, check_finite=False)
        if balanced:
            ones = cho_solve(factor, np.ones(len(Q)), check_finite=False)
            step -= ones * (step.sum() / ones.sum())
        return -step if np.all(np.isfinite(step)) else None
    return None


def _shortest(Q: Array, G: Array, balanced: bool) -> Array:
    """The same step, without its part along flat directions, which would only run into bounds."""
    if balanced:
        rows = Q.mean(axis=0)
        Q = Q - rows - rows[:, None] + rows.mean()
        G = G - G.mean()
    values, vectors = np.linalg.eigh(Q)
    steep = values > RANK * len(Q) * max(values[-1], 0.0)
    vectors = vectors[:, steep]
    return -vectors @ ((vectors.T @ G) / values[steep])


def _length(u: Array, direction: Array, low: Array, high: Array) -> tuple[float, int]:
    """How much of the direction fits between the bounds, and which variable stops it (-1 for none)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(direction > 0, (high - u) / direction, np.where(direction < 0, (low - u) / direction, np.inf))
    first = int(np.argmin(limits))
    return (1.0, -1) if limits[first] >= 1 else (max(float(limits[first]), 0.0), first)


# Pair steps within a working set, and rounds between two looks at what may be set aside.
STEPS = 20_000
LOOK = 3  # rounds between two looks at which samples still move
# Rounds over which the pace is measured.
MEMORY = 60
#: So few rounds are enough to stop where the gap would miss tol even at this many times their pace: that happens where
#: multipliers are far below their bounds.
SLOW_ROUNDS, SLOW_FACTOR = 6, 1e6
#: Rounds without much progress after which Newton steps are tried.
STALL_ROUNDS = 20
#: Samples whose exact gradient costs no more than a round.
FEW = 3000
#: Rounds in which a working set of all samples has come as far as it will: each of them takes every pair step.
WHOLE = 200
# A larger working set asks for more kernel rows than the solution needs, a smaller one for more rounds.
LEAST, MOST, SAMPLES = 256, 768, 32
# A working set takes at most this share of the rows that fit into memory.
SHARE_OF_ROOM = 3
#: Samples for which an eigendecomposition is cheap.
FACTORABLE = 1500
#: A variable of an interior point this near to a bound, as a share of its scale, is at it.
AT_BOUND = 1e-7
#: The share of the dual value that a start may lack: bounds cost it far less.
LOST = 0.01


class Decomposition(Solver):
    """Maximise the dual  -1/2 u'Ku / l2 - sum_i s_i loss*(y_i, u_i / s_i)  over working sets of many samples.

    Every round chooses the most violating samples, makes their kernel rows as one matrix product in single precision,
    optimises them by second-order pair steps, and updates the gradient of all others. Samples that rest at a bound
    are set aside; rows are kept within the memory budget. Before the end the gradient is computed again in double
    precision, which is also what corrects the rounding of the rows; Newton steps on the free variables give the last
    digits where these are few. Losses with a conjugate of straight and quadratic pieces: hinge,
    squared hinge, epsilon-insensitive, absolute, and the one-class machine's.

    Parameters
    ----------
    size : int, optional
        Samples in a working set; if None, one in 32 of all, but at least 256 and at most 768.
    share : float, default 0.1
        Violation at which a working set is left, as a share of the largest one.

    Examples
    --------
    >>> machine = er.SVM(features=er.kernels.Gaussian(), solver="decomposition").fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> machine.certificate_.converged
    True
    """

    needs = (KERNEL, ONE_OUTPUT, DUAL_QUADRATIC, RIDGE)

    #: A round moves hundreds of samples: hard problems of a million rows take about a thousand.
    iteration_limit = 5000

    def __init__(self, size: int | None = None, share: float = 0.1):
        self.size = size
        self.share = share

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        count = len(problem.y)
        size = max(LEAST, min(MOST, count // SAMPLES)) if self.size is None else self.size
        size = max(4, min(size, count))
        source = row_source(gram(problem), 2 * SHARE_OF_ROOM)
        run = DecompositionRun(
            problem, watch, DualIterate(problem, source, max(2, min(size, source.room // SHARE_OF_ROOM)), start)
        )
        while not run.ends(self.share):
            pass
        return run.proofs.best(run.state.point())


class DecompositionRun:
    """Rounds until the gap is proved, or nothing helps any more."""

    def __init__(self, problem: Problem, watch: Watch, state: DualIterate):
        self.problem, self.watch, self.state = problem, watch, state
        self.proofs = Proofs(problem, watch)
        self.aim = watch.tol
        self.exact: list[float] = []
        self.smallest: list[float] = []
        self.values: list[float] = []
        self.rounds, self.restarted = 0, False

    def magnitude(self) -> float:
        """What the gap is compared with, from the dual value."""
        return self.problem.magnitude(abs(self.state.value))

    def ends(self, share: float) -> bool:
        """One round; True if it was the last one."""
        state, watch = self.state, self.watch
        fall, finished = state.round(share, STEPS)
        self.rounds += 1
        gap = state.gap()
        self.values.append(state.value)
        self.smallest.append(min(gap, self.smallest[-1] if self.smallest else np.inf))
        # Less than the last digit.
        still = fall <= 1e-15 * abs(state.value)
        close = gap <= self.aim * self.magnitude()
        if (close or still) and self.prove(still):
            return True
        if not (close or still) and self.crawls(finished):
            self.refine()
        if self.hopeless():
            self.restart()
        if self.rounds % LOOK == 0:
            self.state.shrink()
        return watch(self.state.point(), objective=gap - self.state.value)

    def crawls(self, finished: bool) -> bool:
        """Whether the steps follow a narrow valley, and Newton steps are cheap: it is then time for some."""
        recent = self.smallest[-STALL_ROUNDS:]
        # That many rounds should take two thirds off the gap.
        slow = self.rounds % STALL_ROUNDS == 0 and len(recent) == STALL_ROUNDS and recent[-1] > 0.3 * recent[0]
        # With many samples an exact gradient is expensive, and of use only near the end.
        due = len(self.problem.y) <= FEW or recent[-1] <= 0.01 * self.magnitude()
        return due and (slow or (not finished and self.rounds % LOOK == 0)) and can_polish(self.state)

    def refine(self) -> float:
        """Compute the gradient again, and take Newton steps if the gap is not small enough; returns the gap."""
        gap = self.state.refresh()
        if gap > self.watch.tol * self.magnitude() and polish(self.state):
            gap = self.state.refresh()
        return gap

    def hopeless(self) -> bool:
        """Whether, at the pace of the last rounds, even twice the rounds left will not bring the gap to tol."""
        if self.rounds > STALL_ROUNDS and not self.values[-1] <= abs(self.values[0]):
            return True  # the dual objective has risen or is NaN: only rounding errors are left
        return self._too_slow(MEMORY, 1.0) or self._too_slow(SLOW_ROUNDS, SLOW_FACTOR)

    def _too_slow(self, memory: int, times: float) -> bool:
        """Whether the gap would miss tol even at ``times`` the pace of the last ``memory`` rounds."""
        gaps, watch = self.smallest, self.watch
        if len(gaps) <= memory + 1 or gaps[-1] <= 0:
            return False
        most = WHOLE if self.state.size >= len(self.problem.y) else watch.max_iter
        left = 2 * times * (min(most, watch.max_iter) - watch.iterations)
        # While most samples have yet to move, the dual value falls steadily and the gap not at all.
        if (self.values[-memory] - self.values[-1]) / memory * left > gaps[-1]:
            return False
        pace = np.log(gaps[-memory] / gaps[-1]) / memory
        # A tolerance of zero has no logarithm.
        missing = np.log(gaps[-1] / max(watch.tol * self.magnitude(), 1e-300))
        return bool(missing > pace * left)

    def prove(self, still: bool) -> bool:
        """Compute everything again; True if the gap is within the tolerance, or will not get any smaller."""
        state, watch = self.state, self.watch
        relative = self.refine() / self.magnitude()
        self.smallest = []  # what single precision claimed is no measure of the pace from here
        if relative <= 2 * watch.tol or still:
            if self.proofs(state.point()):
                return True
            relative = watch.latest.relative_gap if watch.latest is not None else relative
        best = min(self.exact, default=np.inf)
        self.exact.append(relative)
        # Three proofs that leave 0.7 of the gap, or all of one without end: rounding, not work, is what remains.
        gained = len(self.exact) <= 3 or relative < 0.7 * best or min(self.exact[-3:]) < 0.7 * min(self.exact[:-3])
        if not gained:
            self.restart()
            return bool(watch.status)
        # What single precision claimed was not true; from here on it only counts what changes.
        self.aim = watch.tol * 0.7 ** len(self.exact)
        return False

    def restart(self) -> None:
        """Go on from the dual point of an interior-point method, once and if that is cheap and no worse; else give up.

        Where that method has lost all digits, the same rounds would lead to the same place again.
        """
        start, before = None if self.restarted else _interior_start(self.problem, self.watch), self.state.value
        self.restarted, self.smallest, self.exact = True, [], []
        state = None if start is None else DualIterate(self.problem, self.state.source, self.state.size, start)
        if state is None or state.value - before > LOST * abs(before):
            self.watch.status = self.watch.status or Ending.STALLED
            return
        self.watch.note("restarted from an interior point")
        self.state = state
        self.refine()


def _interior_start(problem: Problem, watch: Watch) -> Point | None:
    """The solution on the factor of K, with variables near a bound moved to it; None if that is too expensive."""
    rows = len(problem.y)
    # Four matrices of doubles, as for any factor of K.
    if rows > FACTORABLE or 32 * rows**2 > settings().memory or problem.tilt:
        return None
    explicit = replace(problem, design=Factor(gram(problem).matrix).design)
    solver = InteriorPoint()
    if solver.refusal(explicit):
        return None
    # The gap behind the kernel is larger than that on the factor: two digits are kept for it.
    inner = Watch(tol=0.01 * watch.tol, max_iter=200, deadline=watch.deadline)
    u = solver.solve(explicit, inner).u
    if u is None or not np.all(np.isfinite(u)):
        return None
    for bound in (*problem.bounds(), np.zeros_like(u)):
        u = np.where(np.abs(u - bound) <= AT_BOUND * problem.scale, bound, u)
    return Point(-u / problem.penalty.l2, 0.0, u)
