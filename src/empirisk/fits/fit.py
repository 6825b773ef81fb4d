"""Running a solver on a problem: limits, interrupts, progress, and the certificate of what came out."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count

import numpy as np
from numpy.linalg import LinAlgError

from empirisk.certificate import SHORT, Certificate, combine
from empirisk.dual import feasible
from empirisk.errors import EmpiriskError, NotAKernel, Unsuitable
from empirisk.fits.separation import separable
from empirisk.linalg.threads import parallel_map, single_threaded_blas
from empirisk.names import spelled
from empirisk.problem import Array, Point, Problem
from empirisk.protocols import learns_with_machine
from empirisk.solvers import NAMES, find
from empirisk.solvers.base import Solver, Watch
from empirisk.solvers.choose import choose, ranked
from empirisk.stop import (
    CLOSING_SECONDS,
    REMEDIES,
    Deadline,
    Ending,
    Stopped,
    interruptible,
    keeping,
    stopping,
    warn_of,
)

Progress = Callable[[int, Point], bool]
#: Numbers in a problem on which the last digits cost nothing; the tolerance from which they are wanted; and their gap.
SMALL, FINE, ROUNDING = 10_000, 1e-6, 1e-13
#: A dual value that exceeds the primal one by this share is no rounding.
BEYOND_ROUNDING = 1e-3
#: Iterations that a fallback solver may take after one that gave up: enough for the last digits.
FALLBACK_ITERATIONS = 500
#: Fallback solvers that may fail on similar problems before the rest of the batch skips them.
MAX_FALLBACK_FAILURES = 3
#: Beyond this multiple of a constant's objective a gap says nothing: the constant may be the better fit.
MAX_USEFUL_GAP = 2.0
#: A relative gap above this is told even of solvers that aim at no gap.
COARSE = 0.01


@dataclass(frozen=True)
class Limits:
    """When a fit ends: relative gap, iterations, seconds."""

    tol: float
    max_iter: int | None
    max_time: float | None

    def __post_init__(self):
        if not self.tol >= 0:
            raise EmpiriskError(f"tol={self.tol!r} must be zero or positive; it is a relative duality gap.")
        if self.max_iter is not None and not self.max_iter >= 1:
            raise EmpiriskError(f"max_iter={self.max_iter!r} must be at least 1, or None for the solver's own limit.")
        if self.max_time is not None and not self.max_time > 0:
            raise EmpiriskError(f"max_time={self.max_time!r} must be a positive number of seconds, or None.")


@dataclass(frozen=True)
class Fit:
    """What came out of one problem.

    Attributes
    ----------
    point : Point
        The weights, the intercept and the dual point that were found.
    certificate : Certificate
        How good they are, recomputed from the problem.
    history : dict of lists
        The objective, and what else the solver tells, over its iterations.

    Examples
    --------
    >>> (problem,) = er.Ridge(C=1.0).problems([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> fit = er.solve(problem)
    >>> fit.point.w.round(3), fit.certificate.converged
    (array([0.8]), True)
    """

    point: Point
    certificate: Certificate
    history: dict[str, list[float]]

    @property
    def cut(self) -> bool:
        """Whether a limit of time, the user, a callback or held-out rows ended it."""
        return self.certificate.status in SHORT


def pick(solver: str | Solver, problem: Problem) -> Iterator[tuple[Solver, str]]:
    """The solver asked for; or those that suit the problem, best first, each with the reason."""
    problem.norm  # noqa: B018 - a kernel has no weights for some penalties, and says so before any work
    if isinstance(solver, str) and solver not in NAMES and spelled("solver", solver) == "auto":
        yield from ranked(problem)
        return
    chosen = find(solver)
    refusal = chosen.refusal(problem)
    if refusal:
        suggestion, _ = choose(problem)
        raise Unsuitable(
            f"solver={solver!r} cannot minimise {problem.loss!r} with {problem.penalty!r}: {refusal}; "
            f"use solver='auto', which takes {suggestion.name()!r} here."
        )
    yield chosen, "asked for by name"


@dataclass(frozen=True)
class SolverRun:
    """Problems in, fits out: a solver within limits, asked once, or as often as a choice of C or a map needs.

    The limit of time is that of all that is asked of a run: its seconds count from when it is made.

    Attributes
    ----------
    solver : str or Solver
        "auto", a name or an object of `empirisk.solvers`.
    limits : Limits
        When to end.
    progress : callable, optional
        progress(number of the problem, problem) gives what is called as (iteration, point) and returns True to stop.
    learning : callable, optional
        Called by a map that learns as learning(rounds in all, state) after each round, where state() gives the map, the
        problems on it and their points; returns True to stop.
    resisted : list, optional
        Where many problems alike are solved, those on which a fallback solver has failed too, once for each: after
        `MAX_FALLBACK_FAILURES` of them the others get the first solver alone.
    deadline : Deadline, optional
        That of the limits by default.
    """

    solver: str | Solver
    limits: Limits
    progress: Callable[[int, Problem], Progress] | None = None
    learning: Callable[[int, Callable[[], tuple]], bool] | None = None
    resisted: list[Problem] | None = None
    deadline: Deadline = None  # type: ignore[assignment]

    def __post_init__(self):
        if self.deadline is None:
            object.__setattr__(self, "deadline", Deadline(self.limits.max_time))

    @property
    def _first_alone(self) -> bool:
        """Whether no solver but the first is worth asking."""
        return len(self.resisted or ()) >= MAX_FALLBACK_FAILURES

    def again(self) -> "SolverRun":
        """The same run with all its time."""
        return replace(self, deadline=Deadline(self.limits.max_time))

    @single_threaded_blas()
    def __call__(
        self,
        problems: list[Problem],
        starts: Sequence[Point | None] | None = None,
        tol: float | None = None,
        shared: dict | None = None,
    ) -> list[Fit]:
        """Solve problems, each from its start, to ``tol``, and certify each: one after the other, with all threads.

        Those behind a kernel on a device are solved side by side after the first, for which all is compiled: a device
        answers many threads while each of them waits, and chooses pairs on the processor.

        ``shared`` is what solvers keep from one call to the next, on the same data.
        """
        shared = {} if shared is None else shared
        given = [None] * len(problems) if starts is None else starts
        tol = self.limits.tol if tol is None else tol
        with interruptible():
            # The first problem that is stopped begins the seconds of the proofs, which are the same for all.
            proofs_end = cache(lambda: time.perf_counter() + CLOSING_SECONDS)
            watch = partial(Watch, deadline=self.deadline, shared=shared, proofs_end=proofs_end)
            one = partial(self._one, tol=tol, watching=watch)
            tasks = list(zip(count(), problems, given, strict=False))
            apart = 1 if self.progress is None and all(_answers_many(problem) for problem in problems) else len(tasks)
            found = [one(*task) for task in tasks[:apart]]
            with stopping(lambda: False):  # every solver looks at the clock itself
                return found + parallel_map(lambda task: one(*task), tasks[apart:])

    def _one(
        self, number: int, problem: Problem, start: Point | None, *, tol: float, watching: Callable[..., Watch]
    ) -> Fit:
        attempts: list[Fit] = []
        given_up = Ending.MAX_ITER if self.limits.max_iter is None else Ending.STALLED
        for chosen, reason in pick(self.solver, problem):
            most = min(chosen.limit(problem), FALLBACK_ITERATIONS if attempts else np.inf)
            watch = watching(
                once=self._first_alone,
                tol=_aim(problem, tol),
                max_iter=self.limits.max_iter or most,
                progress=None if self.progress is None else self.progress(number, problem),
            )
            with np.errstate(all="ignore"):  # what is not finite is never kept, and a certificate says the rest
                point = _finite(problem, _solve(chosen, problem, watch, start))
                attempts.append(_certify(problem, point, watch, tol, chosen, _after(attempts, reason)))
            # Where one method ends for lack of digits, the next in the table may still get there.
            if attempts[-1].certificate.status not in (Ending.STALLED, given_up) or self._first_alone or watch.final:
                break
            if self.resisted is not None and (len(attempts) > 1 or watch.ran_by):
                self.resisted.append(problem)
        return min(attempts, key=lambda fit: fit.certificate.gap)

    def dual_point(self, problem: Problem, fit: Fit) -> Array:
        """A feasible dual point that the fit suggests."""
        u = problem.slopes(problem.predict(fit.point)) if fit.point.u is None else fit.point.u
        return feasible(problem, u)[0]

    def learn(
        self, problems: list[Problem], features: object, starts: Sequence[Point | None] | None = None
    ) -> tuple[list[Problem], list[Fit]]:
        """The problems as they are in the end, and their fits.

        `LearningFeatures` take part in learning; other features, and None, stay as they are.
        """
        if learns_with_machine(features):
            return features.learn_with(problems, self)
        return problems, self(problems, starts)


def solve(
    problem: Problem,
    solver: str | Solver = "auto",
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    start: Point | None = None,
) -> Fit:
    """Minimise one problem:  R(w) + C sum_i c_i loss(y_i, <w, a_i> + b).

    Parameters
    ----------
    problem : Problem
        As ``machine.problems(X, y)`` gives it, changed as you like with ``dataclasses.replace``.
    solver : str or Solver
        "auto", or a name or object of `empirisk.solvers`.
    tol : float
        Relative duality gap at which to stop.
    max_iter, max_time : int, float or None
        Limits of iterations and of seconds.
    start : Point, optional
        Where to begin.

    Returns
    -------
    Fit
        With the ``point`` (w, b, u), its ``certificate`` and the ``history``.

    Examples
    --------
    >>> from dataclasses import replace
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> (problem,) = er.SVM(C=1.0).problems(X, y)
    >>> fit = er.solve(replace(problem, loss=er.losses.SquaredHinge()))
    >>> fit.certificate.converged, fit.certificate.primal < er.solve(problem).certificate.primal
    (True, True)
    """
    with keeping("solve") as interrupt:
        found = SolverRun(solver, Limits(tol, max_iter, max_time))([problem], None if start is None else [start])[0]
        interrupt.kept = found
    return found


def _answers_many(problem: Problem) -> bool:
    """Whether the design makes products elsewhere while a thread of ours waits."""
    return problem.design.implicit and problem.design.streams


def _solve(solver: Solver, problem: Problem, watch: Watch, start: Point | None) -> Point:
    """What the solver finds, or the best point that it reported before it was stopped half-way."""
    try:
        with stopping(watch.deadline):
            return solver.solve(problem, watch, start)
    except Stopped:
        watch.must_stop()
    except LinAlgError:  # no digits are left for a step
        watch.status = Ending.STALLED
    return watch.best or start or problem.origin()


def _finite(problem: Problem, point: Point) -> Point:
    """The point, or the origin where a solver has lost itself beyond all numbers."""
    return point if np.isfinite(point.w).all() and np.isfinite(point.b).all() else problem.origin()


def _graded(problem: Problem, point: Point, watch: Watch) -> Certificate:
    """The certificate of a point. That of one where the fit was stopped must not take long: else nothing is proved."""
    if watch.status not in (Ending.INTERRUPTED, Ending.MAX_TIME):
        return watch.proof(problem, point).with_rounding()
    end, found = watch.proofs_end(), watch.status == Ending.MAX_TIME or watch.best is not None
    with suppress(Stopped), stopping(lambda: time.perf_counter() >= end):
        if found:  # else Ctrl-C came before the first point, and even loops may have to be compiled to weigh none
            return watch.proof(problem, point).with_rounding()
    return Certificate(np.inf, -np.inf, np.inf, np.inf)


def _after(attempts: list[Fit], reason: str) -> str:
    """The reason of a solver that follows others down the table."""
    ended = ", ".join(f"{fit.certificate.solver} ({fit.certificate.status})" for fit in attempts)
    return f"{reason}; after {ended}" if ended else reason


def _aim(problem: Problem, tol: float) -> float:
    """The gap to aim at: on small problems the last digits cost nothing, and make equal fits equal to rounding."""
    small = problem.design.shape[0] * math.prod(problem.width) <= SMALL
    return min(tol, ROUNDING) if small and tol <= FINE else tol


def unproven(status: str, solver: str, iterations: int, seconds: float) -> Certificate:
    """The certificate of a point of which nothing is known but how it was found: rows that are gone prove nothing."""
    found = {"status": status, "solver": solver, "iterations": iterations, "seconds": seconds}
    return Certificate(np.inf, -np.inf, np.inf, np.inf, reason="rows as they came, each seen once", **found)


def _require_weak_duality(problem: Problem, certificate: Certificate) -> None:
    """Raise where a dual value exceeds the primal one: inner products of vectors allow that by rounding only."""
    excess = certificate.dual - certificate.primal
    # Where the dual value is the larger one, the gap is what rounding explains of it.
    rounding = max(certificate.gap, BEYOND_ROUNDING * problem.magnitude(certificate.primal))
    if problem.design.implicit and excess > rounding:
        raise NotAKernel(
            f"features is not a kernel: a dual value of {certificate.dual:.6g} exceeds the objective "
            f"{certificate.primal:.6g}, so its Gram matrix is not positive semidefinite; kernels.check tests it."
        )


def _certify(problem: Problem, point: Point, watch: Watch, tol: float, solver: Solver, reason: str) -> Fit:
    certificate = _graded(problem, problem.as_stored(point), watch)
    if solver.aims_at_tol and not certificate.gap <= MAX_USEFUL_GAP * problem.origin_value:
        constant = problem.origin()
        known = _graded(problem, problem.as_stored(constant), watch)
        point, certificate = min((point, certificate), (constant, known), key=lambda pair: pair[1].gap)
    _require_weak_duality(problem, certificate)
    cut = watch.status in SHORT
    near = bool(certificate.relative_gap <= tol)
    # Without a penalty, separable classes or zeros let some losses fall for ever: no point attains the infimum.
    falls = not cut and not problem.loss.attained and problem.penalty.zero and problem.design.in_memory
    unattained = Ending.SEPARABLE if problem.classes or problem.loss.margin_form else Ending.UNATTAINED
    objection = watch.objection or (unattained if falls and separable(problem, point, near) else "")
    # A perceptron that was stopped may stand at w = 0, where its loss is least and nothing is learned.
    unfinished = cut and not solver.aims_at_tol
    converged = near and not objection and not unfinished
    status = watch.status
    if objection and not cut:
        status = objection
    elif converged:
        status = Ending.CONVERGED
    elif status in ("", Ending.CONVERGED):
        status = Ending.STALLED
    elif status == Ending.MAX_ITER and not solver.aims_at_tol:
        status = Ending.FINISHED
    certificate = replace(
        certificate,
        converged=converged,
        status=status,
        solver=watch.ran_by or solver.name(),
        reason="; ".join(filter(None, (reason, *watch.notes, problem.remark, problem.design.remark))),
        iterations=max(watch.iterations, 1),
        seconds=time.perf_counter() - watch.start,
    )
    return Fit(point, certificate, watch.history)


def summarise(fits: list[Fit]) -> tuple[Certificate, dict[str, np.ndarray]]:
    """One certificate and one history for all the problems of a fit.

    The history holds an array per quantity; with several problems, ``problem`` numbers the entries of each.
    """
    certificate = combine([fit.certificate for fit in fits])
    names = {name for fit in fits for name in fit.history}
    history = {name: np.concatenate([fit.history.get(name, []) for fit in fits]) for name in sorted(names)}
    if len(fits) > 1:
        counts = [len(fit.history.get("objective", [])) for fit in fits]
        history["problem"] = np.repeat(np.arange(len(fits)), counts)
    return certificate, history


def warn_unless_converged(certificate: Certificate, machine: str, scaled: bool) -> None:
    """Say how far a fit got, and what to do, where it did not reach ``tol``; ``scaled``: whether C has a say in it.

    A solver that was not meant to reach it has done its passes; that is worth a word where much is missing.
    """
    if certificate.converged:
        return
    remedies = dict(REMEDIES)
    if certificate.relative_gap > COARSE:
        remedies[Ending.FINISHED] = "raise max_iter, or use solver='auto'"
    if not scaled:
        remedies[Ending.STALLED] = "standardise the columns, or raise tol"
    warn_of(
        certificate.status,
        f"{machine} did not reach tol ({certificate.status}) after {certificate.iterations} iterations with a "
        f"relative duality gap of {certificate.relative_gap:.1e}",
        remedies,
    )
