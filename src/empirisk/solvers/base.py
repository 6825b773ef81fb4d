"""Base of the solvers: each lists its needs of a problem, reports through one callback, and never grades itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from empirisk.certificate import Certificate, Proof
from empirisk.errors import EmpiriskError
from empirisk.parts import Part
from empirisk.problem import Point, Problem
from empirisk.stop import Deadline, Ending


class Need(NamedTuple):
    """Something that a solver needs: in words that follow "it needs", and whether a problem has it.

    >>> Need("a convex loss", lambda problem: problem.loss.convex).words
    'a convex loss'
    """

    words: str
    holds: Callable[[Problem], bool]


# --- the design and the outputs ---------------------------------------------------------------------------------------
EXPLICIT = Need("explicit features, not a kernel", lambda p: not p.design.implicit)
KERNEL = Need("a kernel as features", lambda p: p.design.implicit)
JOINT = Need("a joint multiclass loss", lambda p: bool(p.classes))
ONE_OUTPUT = Need("a loss of one output, not a joint one", lambda p: not p.classes)

# --- the loss ---------------------------------------------------------------------------------------------------------
CONVEX = Need("a convex loss", lambda p: p.loss.convex)
SQUARED = Need("the squared loss", lambda p: p.loss.quadratic and not p.classes)
SMOOTH_LOSS = Need("a loss without corners", lambda p: p.loss.smooth)
SMOOTH_OR_STRAIGHT = Need(
    "a smooth loss, or one of straight and quadratic pieces",
    lambda p: bool(p.classes) or p.loss.smooth or p.loss.smooth_part is None or p.loss.smooth_part.quadratic,
)
DUAL_QUADRATIC = Need(
    "a loss whose conjugate is made of straight and quadratic pieces", lambda p: p.loss.dual_quadratic is not None
)
BOUNDED_CURVATURE = Need("a loss with bounded curvature", lambda p: p.loss.curvature_bound < np.inf)

# --- the penalty ------------------------------------------------------------------------------------------------------
NORMS = Need("a penalty l1 |w|_1 + l2/2 |w|^2", lambda p: p.penalty.plain)
NORMS_POSITIVE_OR_GROUPS = Need(
    "a penalty l1 |w|_1 + l2/2 |w|^2, also of weights that are not negative, or norms of groups of weights",
    lambda p: p.penalty.plain or p.penalty.positive or p.penalty.group_limits(p.width) is not None,
)
GROUPS = Need("norms of groups of weights as penalty", lambda p: p.penalty.group_limits(p.width) is not None)
CURVED_PENALTY = Need(
    "a penalty with a gradient and a curvature for each weight", lambda p: p.penalty.smooth and p.penalty.separable
)
L2_PART = Need("a penalty with an l2 part", lambda p: p.penalty.l2 > 0)
#: R = l2/2 |w|^2, or none.
SQUARED_NORM = Need("a penalty l2/2 |w|^2, or none", lambda p: p.penalty.plain and p.penalty.smooth)
RIDGE = Need("the l2 penalty", lambda p: p.penalty.ridge)
POSITIVE = Need("weights that are not negative", lambda p: p.penalty.positive)
NO_PENALTY = Need("no penalty", lambda p: p.penalty.zero)


def behind_kernel(need: Need) -> Need:
    """What is needed where the features are a kernel."""
    return Need(f"{need.words} behind a kernel", lambda p: not p.design.implicit or need.holds(p))


def jointly(need: Need) -> Need:
    """What is needed where the loss is joint over classes."""
    return Need(f"{need.words} with a joint loss", lambda p: not p.classes or need.holds(p))


# --- loss and penalty together ----------------------------------------------------------------------------------------
SMOOTH = Need("a loss and a penalty without corners", lambda p: p.loss.smooth and p.penalty.smooth)
CORNERS = Need("corners, of the loss or of the penalty", lambda p: not (p.loss.smooth and p.penalty.smooth))


@dataclass
class Watch:
    """The monitor of a fit: limits, history, interrupts and progress; a solver calls it once per iteration.

    Parameters
    ----------
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Iterations allowed.
    deadline : Deadline
        When to stop: its seconds are over, or the user asks for it.
    progress : callable, optional
        Called as progress(iteration, point) after every iteration; returns True to stop.
    objection : str
        Why the point is no answer, however small its gap; a solver may say so.
    proofs_end : callable
        Asked once the fit was stopped: the value of `time.perf_counter` at which proofs must end.
    shared : dict
        What solvers keep for the other problems of the same fit, such as a factorisation.
    ran_by : str
        The solver that does the work, where another one hands it on.
    notes : list of str
        What the certificate is to say of how the work was done.
    final : bool
        Whether the point is the answer even where it is not proven, so that no other solver is asked; a solver may say
        so.
    once : bool
        Whether a solver that hands the work on asks the first one alone: on problems like this, others did no better.

    Examples
    --------
    >>> watch = er.solvers.Watch(max_iter=1)
    >>> watch(None, objective=3.0), watch.status, watch.history["objective"]
    (True, 'max_iter', [3.0])
    """

    tol: float = 1e-6
    max_iter: int = 1000
    deadline: Deadline = field(default_factory=Deadline)
    progress: Callable[[int, Point], bool] | None = None
    proofs_end: Callable[[], float] = field(default_factory=lambda: lambda: np.inf)
    shared: dict[Any, Any] = field(default_factory=dict)
    history: dict[str, list[float]] = field(default_factory=dict)
    iterations: int = 0
    status: str = ""
    ran_by: str = ""
    notes: list[str] = field(default_factory=list)
    once: bool = False
    objection: str = ""
    final: bool = False
    latest: Certificate | None = None
    best: Point | None = None
    _lowest: float = np.inf
    _proof: Proof | None = None
    start: float = field(default_factory=time.perf_counter)

    def record(self, **values: float) -> None:
        """Append values to the history."""
        for name, value in values.items():
            self.history.setdefault(name, []).append(float(value))

    def __call__(self, point: Point, **values: float) -> bool:
        """Note one finished iteration at ``point``; True means stop now, with `status` saying why."""
        self.iterations += 1
        objective = values.get("objective", -np.inf)
        if objective <= self._lowest:
            self.best, self._lowest = point, objective
        self.record(seconds=time.perf_counter() - self.start, **values)
        if self.progress is not None and self.progress(self.iterations, point):
            self.status = Ending.CALLBACK
        if not self.must_stop() and self.iterations >= self.max_iter:
            self.status = Ending.MAX_ITER
        return bool(self.status)

    def must_stop(self) -> bool:
        """Whether the user or the clock says stop, asked inside an iteration that may take long."""
        if self.deadline():
            self.status = self.deadline.reason
        return bool(self.status)

    def note(self, remark: str) -> None:
        """Remember what the certificate is to say of how the solver worked, once."""
        if remark not in self.notes:
            self.notes.append(remark)

    def proves(self, problem: Problem, point: Point) -> bool:
        """Verify the point, and tell whether it meets ``tol``: the fit has converged. `latest` is its certificate."""
        self._proof = self.proof(problem, point)
        self.latest = self._proof.certificate
        self.record(gap=self.latest.gap)
        proven = self.latest.relative_gap <= self.tol
        self.status = Ending.CONVERGED if proven else self.status
        return proven

    def proof(self, problem: Problem, point: Point) -> Proof:
        """The proof of a point, from memory if this very point was the last one to be proved."""
        if self._proof is not None and self._proof.point is point and self._proof.problem is problem:
            return self._proof
        return Proof(problem, point)


COUNT = "must be a whole number of at least 1"


class Solver(Part):
    """Base of the solvers: `needs` says what a problem must have, `solve` does the rest.

    Examples
    --------
    >>> er.solvers.find("newton").name()
    'newton'
    """

    #: Whether reaching ``tol`` is the aim; else ending after all iterations is no failure.
    aims_at_tol: ClassVar[bool] = True
    #: Whether it can learn from rows as they come, as `partial_fit` hands them on.
    online: ClassVar[bool] = False
    #: What a problem must have; the first that it has not is the reason of a refusal.
    needs: ClassVar[tuple[Need, ...]] = ()
    #: Whether it can do with rows that are seen in passes alone; else they must be in memory.
    in_passes: ClassVar[bool] = False
    #: Iterations allowed where ``max_iter`` is None.
    iteration_limit: ClassVar[int] = 1000

    def limit(self, problem: Problem) -> int:
        """Iterations allowed for the problem where ``max_iter`` is None."""
        return self.iteration_limit

    def require(self, name: str, holds: bool, otherwise: str) -> None:
        """Raise a sentence about a parameter unless it holds."""
        if not holds:
            raise EmpiriskError(f"{name}={getattr(self, name)!r} of {type(self).__name__} {otherwise}.")

    def refusal(self, problem: Problem) -> str:
        """Why this solver cannot do the problem, as half a sentence; empty if it can."""
        if not (problem.design.in_memory or self.in_passes):
            return "it needs all rows in memory"
        missing = (need for need in self.needs if not need.holds(problem))
        return next((f"it needs {need.words}" for need in missing), "")

    def solve(self, problem: Problem, watch: Watch, start: Point | None = None) -> Point:
        """Minimise the problem from ``start`` until ``watch`` says stop."""
        raise NotImplementedError


class Proofs:
    """Puts points to the proof, and keeps the one with the smallest gap.

    Where a solver aims at the last digits, its last point need not be its best one.
    """

    def __init__(self, problem: Problem, watch: Watch):
        self._problem, self._watch = problem, watch
        self._gap, self._best = np.inf, None

    def __call__(self, point: Point) -> bool:
        """Whether the point meets the watch's tolerance."""
        proven = self._watch.proves(self._problem, point)
        proof = self._watch.latest
        # A dual value above the primal one is rounding as well.
        gap = np.inf if proof is None else max(proof.gap, proof.dual - proof.primal)
        if gap < self._gap:
            self._gap, self._best = gap, point
        return proven

    def best(self, last: Point) -> Point:
        """The best point so far; the last one where none was put to the proof."""
        return last if self._best is None else self._best


#: Every eighth row: an eighth of the price, and a third of the precision.
THINNING = 8
#: With fewer rows left for each column, or for each weight of several classes, a start would be far from the solution.
ROWS_PER_COLUMN, ROWS_PER_WEIGHT = 16, 8


def thinned(problem: Problem, rows_per_column: int = ROWS_PER_COLUMN) -> Problem | None:
    """The problem of every eighth row, at eight times the C; None where too few rows would be left."""
    rows, columns = problem.design.shape
    # With fewer than a million numbers the whole problem is solved in the time that a start would save.
    least = max(rows_per_column, ROWS_PER_WEIGHT * problem.classes) * (columns + 1)
    if rows < THINNING * least or rows * columns < 1 << 20:
        return None
    return problem.part(slice(None, None, THINNING)).with_C(problem.C * THINNING)
