"""The evidence a fit carries: primal, dual and gap, recomputed from the problem alone."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError

from empirisk import state
from empirisk.dual import feasible
from empirisk.lazy import lazy
from empirisk.linalg.namespace import namespace
from empirisk.linalg.rowspace import RowVector
from empirisk.messages import coded
from empirisk.notebook import html
from empirisk.problem import Array, Point, Problem
from empirisk.stop import CODES, CUT, Ending

EPSILON = np.finfo(float).eps
#: Entries of a penalised problem up to which the cancelling of columns is looked for.
CANCELLING = 1_000_000
#: Units in the last place of |phi(x)| |phi(z)| that a value of a kernel is off by: its products, sums and powers round.
KERNEL_UNITS = 4
#: Endings of a solver that was stopped before it got to the optimum.
SHORT = CUT | {Ending.EARLY_STOPPING}


@dataclass(frozen=True)
class Certificate:
    """Proof of how good a fit is: no point has an objective below ``primal - gap``.

    Attributes
    ----------
    primal, dual : float
        The objective reached, and a lower bound on every objective.
    gap : float
        primal - dual plus the rounding of both: an upper bound on the suboptimality.
    relative_gap : float
        gap / max(|primal|, |dual|, 1e-6 * objective of the best constant).
    converged : bool
        Whether the relative gap is within ``tol``.
    status : str
        How the fit ended: a word of `empirisk.stop.Ending`, such as "converged", "max_iter" or "interrupted".
    solver, reason : str
        Which solver ran, and why it was chosen.
    iterations : int
        Iterations of the solver.
    seconds : float
        Wall-clock time of the fit.

    Examples
    --------
    >>> found = er.SVM(C=1.0).fit([[0.0], [1.0], [3.0]], ["no", "no", "yes"]).certificate_
    >>> found.converged, found.status, found.relative_gap <= 1e-6
    (True, 'converged', True)
    """

    _state = state.State(
        **dict.fromkeys(("primal", "dual", "gap", "relative_gap", "seconds"), state.number(finite=False)),
        **dict.fromkeys(("status", "solver", "reason"), state.text()),
        converged=state.flag(),
        iterations=state.whole(),
    )

    primal: float
    dual: float
    gap: float
    relative_gap: float
    converged: bool = False
    status: str = ""
    solver: str = ""
    reason: str = ""
    iterations: int = 0
    seconds: float = 0.0

    def regraded(self, gap: float, relative_gap: float, tol: float, reason: str, seconds: float) -> "Certificate":
        """The same fit under a gap that something else has shown, such as that of a problem around it."""
        converged = bool(relative_gap <= tol)
        unproven = Ending.STALLED if self.status == Ending.CONVERGED else self.status
        return replace(
            self,
            dual=float(self.primal - gap),
            gap=float(gap),
            relative_gap=float(relative_gap),
            converged=converged,
            status=Ending.CONVERGED if converged else unproven,
            reason=f"{self.reason}; {reason}",
            seconds=seconds,
        )

    def __repr__(self) -> str:
        return (
            f"Certificate({self.status}, relative gap {self.relative_gap:.1e}, {self.iterations} iterations of "
            f"{self.solver})"
        )

    def _repr_html_(self) -> str:
        values = {
            "objective": f"{self.primal:.10g}",
            "lower bound": f"{self.dual:.10g}",
            "relative gap": f"{self.relative_gap:.1e}",
            "solver": f"{self.solver}: {self.reason}",
            "iterations": f"{self.iterations}",
        }
        return html(coded(CODES.get(self.status, ""), f"Certificate: {self.status}"), ["", ""], list(values.items()))

    def __str__(self) -> str:
        clock = f", {self.seconds:.2g} s" if self.seconds == self.seconds else ""  # files of `learn` keep no seconds
        return (
            f"{self.status}: primal {self.primal:.10g}, dual {self.dual:.10g}, gap {self.gap:.2g} "
            f"(relative {self.relative_gap:.1e}) after {self.iterations} iterations{clock}; "
            f"{self.solver}: {self.reason}"
        )


#: What a fitted machine keeps of how its fit went.
EVIDENCE = state.State(
    certificate_=state.part(Certificate),
    history_=state.mapping(state.array("biuf", None, finite=False)),
    n_iter_=state.whole(),
    solver_=state.text(),
    stopped_=state.optional(state.text()),  # files of version 0.1 have none
)


def verify(problem: Problem, point: Point) -> Certificate:
    """Value a point of a problem, knowing nothing of the solver that found it.

    The dual point is the one that comes with the point or, without one, that of the slopes of the loss at the
    predictions, made feasible first; u = 0 is tried as well.

    >>> from empirisk.linalg.design import DenseDesign
    >>> from empirisk import losses, penalties
    >>> problem = Problem(losses.Squared(), penalties.L2(), 0.5, DenseDesign(np.eye(2)), np.ones(2), np.ones(2), False)
    >>> verify(problem, Point(np.array([0.5, 0.5]))).gap < 1e-12
    True
    """
    return Proof(problem, point).certificate


class Proof:
    """A point of a problem and what follows from it; see `verify`.

    Attributes
    ----------
    problem, point : Problem, Point
        What was proved.
    certificate : Certificate
        What `verify` says of it.
    """

    def __init__(self, problem: Problem, point: Point):
        self.problem, self.point, self._f = problem, point, problem.predict(point)
        penalty_value, loss_value = problem.penalty_sum(point), problem.loss_sum(self._f)
        primal = penalty_value + loss_value
        dual, terms = _bound_at_zero(problem, point)
        # Without a penalty the dual point is costly; an interpolating fit needs none: u = 0 leaves but rounding.
        if not (problem.penalty.zero and primal - dual <= EPSILON * problem.magnitude(primal, dual)):
            u = self._slopes if point.u is None else point.u
            dual, terms = max(_lower_bound(problem, point, u), (dual, terms), key=lambda pair: pair[0])
        rounding = 4 * EPSILON * (abs(penalty_value) + abs(loss_value) + terms)
        # A bound above the objective is rounding, and shows how much of it there is.
        gap = abs(primal - dual) + rounding if math.isfinite(primal - dual) else math.inf
        relative = gap / problem.magnitude(primal, dual) if math.isfinite(gap) else math.inf
        self.certificate = Certificate(float(primal), float(dual), float(gap), float(relative))

    @lazy
    def _slopes(self) -> RowVector:
        return self.problem.slopes(self._f)

    @property
    def rounding(self) -> float:
        """What the rounding of predictions and targets moves the objective by.

        A product <a_i, w> is off by a unit in the last place of its largest term, and a residual by one of f_i and y_i,
        which is much where columns nearly cancel or targets lie far from zero. The objective is off by that times the
        slopes of the losses.
        """
        terms, lengths = self._terms()
        moved, squares = self._moved(terms, lengths)
        moved += float(terms @ np.sqrt(squares))
        return float(EPSILON * moved) if math.isfinite(moved) else math.inf

    def with_rounding(self) -> Certificate:
        """The certificate with the rounding of predictions and targets in its gap."""
        known = self.certificate
        gap = known.gap + self.rounding
        relative = gap / self.problem.magnitude(known.primal, known.dual) if math.isfinite(gap) else math.inf
        return replace(known, gap=gap, relative_gap=relative)

    def _terms(self) -> tuple[Array, RowVector | None]:
        """For every output the size t of the terms that a prediction sums, and what it is weighed by on each row.

        As in `HilbertNorm.terms`, errors of many terms behind a kernel add up like the root of the sum of their
        squares, and those of a row are as large as it. The values of the kernel are rounded before any product of them
        is taken, and by more: a gap must hold for the kernel that they stand for.
        """
        design, rows = self.problem.design, self.problem.rowspace
        if design.implicit:
            squared = design.term_rows
            sums = rows.total(rows.map(lambda squared, w: (squared * (w * w).T).T, squared, self.point.w))
            return KERNEL_UNITS * np.sqrt(np.atleast_1d(sums)), squared
        if self.problem.penalty.zero or design.shape[0] * design.shape[1] <= CANCELLING:
            return np.atleast_1d(design.term_sizes(self.point.w)), None
        # A penalty keeps weights from cancelling; one more pass over many rows would tell nothing new.
        return np.zeros(self.problem.width[1:] or 1), None

    def _moved(self, terms: Array, lengths: RowVector | None) -> tuple[float, Array]:
        """sum_i |u_i| (|f_i| + |y_i|), without the targets where no residual is taken, and |u|^2 for every output.

        The slope u_i is the largest within the rounding of f_i: beside the least value of a loss, and beside a corner,
        it may be many times that in the middle. Behind a kernel the squares are weighed by |phi(x_i)|^2.
        """
        problem, given = self.problem, self.point.u is not None
        # Of rows far from the origin predictions, and the intercept that is stored, lose the digits of the shift.
        shift = problem.design.shift
        far = 0.0 if shift is None else np.abs(shift) @ np.abs(self.point.w)
        shifted = problem.loss.residual_form  # else targets are labels, or f is in other units
        summed = terms if problem.classes else terms[0]

        def run(s: Array, y: Array, f: Array, *optional: Array) -> Array:
            xp, others = namespace(f), iter(optional)
            squared = None if lengths is None else next(others)
            off = xp.abs(f) + far + xp.abs(y) if shifted else xp.abs(f) + far
            reach = off + (summed if squared is None else xp.multiply.outer(xp.sqrt(squared), summed))
            if problem.classes:  # a joint loss rises where the own class falls and all others rise
                reach = xp.where(xp.arange(problem.classes) == y[:, None], -reach, reach)
            ends = (problem.loss.derivative(y, f + end * reach) for end in (-EPSILON, EPSILON))
            size = (s * xp.maximum(*map(xp.abs, ends)).T).T
            if given:
                size = xp.maximum(size, xp.abs(next(others)))  # at a corner the slope is any of many
            moved = xp.vdot(size, off)
            squares = size * size if squared is None else (squared * (size * size).T).T
            return xp.append(squares.sum(axis=0), moved)

        vectors = [vector for vector in (lengths, self.point.u) if vector is not None]
        sums = problem.rowspace.sum(run, problem.scale, problem.y, self._f, *vectors, width=max(problem.classes, 1))
        *squares, moved = sums
        return float(moved), np.array(squares)


def _lower_bound(problem: Problem, point: Point, u: RowVector) -> tuple[float, float]:
    """The dual value of u made feasible, and the size of the terms it sums."""
    rows = problem.rowspace
    if not np.all(np.isfinite(rows.total(u))) and rows.number(lambda u: ~namespace(u).isfinite(u), u):
        return -np.inf, 0.0
    try:
        u, correlations = feasible(problem, u)
    except LinAlgError:  # no digits are left for the repair: u = 0 will have to do
        return -np.inf, 0.0
    conjugates = problem.conjugate_sum(u)
    rounded = problem.penalty.zero or problem.penalty.cone
    penalty = _owed(problem, point, u, correlations) if rounded else problem.norm.conjugate(-correlations)
    return -penalty - conjugates, penalty + abs(conjugates) + problem.norm.terms(point.w, correlations)


def _owed(problem: Problem, point: Point, u: RowVector, correlations: Array) -> float:
    """What [A, 1]'u, which is zero to rounding only, costs at the size of w and b, here or at a better point.

    Where weights are not negative it may be above zero too, which costs nothing.
    """
    rows = problem.rowspace
    if rows.number(lambda u: u != 0, u) == 0:
        return 0.0
    correlations = np.minimum(correlations, 0.0) if problem.penalty.cone else correlations
    sums = np.concatenate([correlations, np.asarray(rows.total(u))[None]])
    lengths = np.append(problem.design.stored_lengths, rows.count**0.5)
    terms = np.multiply.outer(lengths, rows.column_norms(u))
    here = np.concatenate([point.w, np.broadcast_to(point.b, (1, *point.w.shape[1:]))])
    sizes = np.maximum(np.abs(here), problem.least_squares)
    return float(np.sum((2 * np.abs(sums) + EPSILON * terms) * sizes))


def _bound_at_zero(problem: Problem, point: Point) -> tuple[float, float]:
    """The dual value of u = 0, which is feasible unless the intercept has a cost: the smallest R and losses."""
    if problem.tilt:
        return -np.inf, 0.0
    value = problem.norm.least(point.w) - problem.conjugates_at_zero
    return value, abs(value)


def combine(certificates: list[Certificate]) -> Certificate:
    """The certificate of several independent problems: values add up, the worst status speaks for all.

    That one was stopped by the clock or the user is said before that another did not get far.

    Where different solvers ran, all are named, in the order of the problems.
    """
    if len(certificates) == 1:
        return certificates[0]
    worst = max(certificates, key=lambda each: (not each.converged, each.status in SHORT, each.relative_gap))
    together = {name: [getattr(each, name) for each in certificates] for name in Certificate.__annotations__}
    sums = {name: sum(together[name]) for name in ("primal", "dual", "gap", "seconds")}
    most = {name: max(together[name]) for name in ("relative_gap", "iterations")}
    words = {name: " and ".join(dict.fromkeys(together[name])) for name in ("solver", "reason")}
    return replace(worst, **sums, **most, **words, converged=all(together["converged"]))
