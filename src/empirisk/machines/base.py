"""What classifiers and regressors share: the map, the solver, the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from empirisk import losses, penalties, state
from empirisk.certificate import EVIDENCE
from empirisk.contract.arguments import check_flag
from empirisk.contract.features import SUPPORT, Features, MapsFeatures, expansion, support
from empirisk.contract.inputs import check_C
from empirisk.contract.progress import Reporter
from empirisk.contract.starts import starts
from empirisk.errors import Unsuitable, warn_unfinished
from empirisk.fits import choice
from empirisk.fits.constrained import constrained
from empirisk.fits.constraint import Constraint
from empirisk.fits.fit import Fit, Limits, SolverRun, summarise, warn_unless_converged
from empirisk.fits.passes import hard_margins, merged
from empirisk.fits.unlearned import Unlearned, reason_of_zeros
from empirisk.linalg.design import Design
from empirisk.linalg.threads import single_threaded_blas
from empirisk.losses.base import Loss
from empirisk.names import Estimator, names_of
from empirisk.problem import Array, Point, Problem
from empirisk.protocols import learns_with_machine
from empirisk.stop import Deadline, closing, cut_by, interruptible, requested


class Machine(MapsFeatures, CallbackSupportMixin, Estimator):
    """Parameters -> Problem -> Solver -> coefficients, for any loss, map and penalty."""

    _state = EVIDENCE | state.State(
        forms=(("coef_",), SUPPORT, ("coef_", *SUPPORT)),
        C_=state.number(0, finite=False),
        choice_=state.optional(state.part(choice.Choice)),
    )

    task: ClassVar[str]
    loss: Any
    penalty: Any
    features: Features
    C: Any
    fit_intercept: bool
    solver: Any
    tol: float
    max_iter: int | None
    max_time: float | None
    intercept_: NDArray[np.float64] | float

    def _suitable_loss(self, given: Any) -> Loss:
        """A loss as an object that suits the task."""
        loss = losses.find(given)
        if self.task not in loss.tasks:
            suitable = sorted(name for name, cls in losses.NAMES.items() if self.task in cls.tasks and cls.convex)
            raise Unsuitable(f"loss={given!r} is not a {self.task} loss; choose one of {suitable}.")
        if not loss.convex:
            raise Unsuitable(f"loss={given!r} counts errors and cannot be minimised; use 'hinge' or 'logistic'.")
        check_flag("fit_intercept", self.fit_intercept)
        return loss

    def _problems(
        self, loss: Loss, design: Design, targets: list[Array], weights: Array, classes: int = 0
    ) -> list[Problem]:
        """One problem per array of targets; rows with zero weight or a target that is NaN take no part.

        Problems that use the same rows share one design, so that solvers can share factorisations.
        """
        penalty = penalties.find(self.penalty)
        if not (design.implicit or self._learns_features()):
            penalty = penalty.simplest((design.shape[1], classes) if classes else (design.shape[1],))
        C = 1.0
        if choice.is_given(self.C):
            C = check_C(self.C, hard=True)
            if np.isinf(C) and loss.hard_form is None:
                C, penalty = 1.0, penalties.NoPenalty()
        else:
            choice.check_way(self.C, self.rule)
        if isinstance(self.C, Constraint) and learns_with_machine(self.features):
            raise Unsuitable(f"C={self.C!r} needs features that stay as they are, and {self.features!r} learns.")
        if self._learns_features() and (np.isinf(C) or self.C == "loo"):
            raise Unsuitable(
                f"C={self.C!r} needs features that stay as they are, and {self.features!r} learns; use C='cv', or a "
                "large C."
            )
        intercept = bool(self.fit_intercept)
        shared, problems = {}, []
        for target in targets:
            rows = _counting(target, weights)
            key = None if rows is None else rows.tobytes()
            if key not in shared:
                part, used = (design, weights) if rows is None else (design.rows(rows), weights[rows])
                shared[key] = part.centred() if intercept and part.shift is None else part, used
            shared[key][0].shared_by += 1
            y = target if rows is None else target[rows]
            problems.append(Problem(loss, penalty, C, shared[key][0], y, shared[key][1], intercept, classes, rows=rows))
        return problems

    def _prepare(self, X, y, sample_weight=None, stream: Any = None) -> tuple[list[Problem], NDArray]:
        """The problems that stand for the data, or for the rows of one call of `partial_fit`; and the targets."""
        raise NotImplementedError

    @single_threaded_blas()
    def problems(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Problems:
        """The equation as objects: the problems that `fit` would solve, one for each function that is learned.

        Each is a `Problem` with the loss, penalty, C, design, targets and weights; change it with
        ``dataclasses.replace`` and solve it with ``er.solve``.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. The machine itself is left as it is.

        Examples
        --------
        >>> (problem,) = er.Ridge(C=2.0).problems([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0])
        >>> problem.loss, problem.penalty, problem.C
        (Squared(), L2(), 2.0)
        >>> er.solve(problem).point.w.round(4)
        array([0.6102])
        """
        machine = clone(self)
        problems, _ = machine._prepare(X, y, sample_weight)
        return Problems(machine, problems)

    # --- fit --------------------------------------------------------------------------------------------------

    @property
    def dual_gap_(self) -> float:
        """The duality gap of the fit, as `certificate_` has it: in the scale of the equation, not divided by rows."""
        check_is_fitted(self)
        return self.certificate_.gap

    def _limits(self) -> Limits:
        return Limits(self.tol, self.max_iter, self.max_time)

    def _late(self) -> Deadline | None:
        """Says when a fit that begins now must end; None if it has all the time."""
        return None if self.max_time is None else Deadline(self._limits().max_time)

    def _solve(
        self, X, problems: list[Problem], y: NDArray, deadline: Deadline, last: Mapping[str, Any] | None = None
    ) -> None:
        """Choose C where asked, minimise every problem, and keep the coefficients and the evidence.

        The attributes of the ``last`` fit are where it begins, if they are given.
        """
        reporter = Reporter(self, X, y, problems, self._coefficients)
        C = problems[0].C
        with interruptible():
            run = SolverRun(
                self.solver, self._limits(), reporter.progress, learning=reporter.learning, deadline=deadline
            )
            if isinstance(self.C, str):
                self.choice_ = choice.choose_C(self, X, problems, y, run)
                C = self.choice_.chosen
                problems = [problem.with_C(C) for problem in problems]
            if reporter.progress is None:  # callbacks are shown the rows as they are
                problems = merged(problems)
            if isinstance(self.C, Constraint):
                problems, fits, C = constrained(problems, self.C, run)
            elif isinstance(self.C, str) and requested():  # in the choice of C: that is no fit yet
                with closing():
                    problems, fits = self._minimised(problems, replace(run, deadline=deadline.share(1.0)), last)
            else:
                problems, fits = self._minimised(problems, run, last)
            self._keep(problems, fits, C)
        reporter.end()
        kind: type = type(self)
        scaled = not problems[0].penalty.zero and "C" in names_of(kind) and choice.is_given(self.C)
        warn_unless_converged(self.certificate_, type(self).__name__, scaled)
        if not isinstance(self.C, Constraint):  # whose radius says how large the weights may be
            self._tell_of_zeros(reason_of_zeros(problems, fits))

    def _minimised(
        self, problems: list[Problem], run: SolverRun, last: Mapping[str, Any] | None
    ) -> tuple[list[Problem], list[Fit]]:
        """The problems as they are in the end, and their fits, begun where the ``last`` ones ended."""
        problems, points = hard_margins(problems, run)
        if last is not None and points is None and not self._learns_features():
            points = starts(problems, last)
        return run.learn(problems, getattr(self, "features_", None), points)

    def _tell_of_zeros(self, found: Unlearned | None) -> None:
        """Have the certificate say why nothing was learned; a warning does so too where no C would change that."""
        if found is None:
            return
        self.certificate_ = replace(self.certificate_, reason=f"{self.certificate_.reason}; w = 0: {found.words}")
        if found.odd:
            warn_unfinished(f"{type(self).__name__} has learned nothing, w = 0: {found.words}.", "ER008")

    def _keep(self, problems: list[Problem], fits: list[Fit], C: float) -> None:
        """Set the fitted attributes."""
        self.C_ = C
        self.certificate_, self.history_ = summarise(fits)
        self.n_iter_, self.solver_ = self.certificate_.iterations, self.certificate_.solver
        # A map that learns, or the choice of C, may have been cut where the head, solved after them, was not.
        cut = getattr(getattr(self, "features_", None), "cut", None)
        hurried = isinstance(self.C, str) and self.choice_.cut
        self.stopped_ = cut or (cut_by() if hurried else self.certificate_.status)
        self.__dict__.update(self._coefficients(problems, [fit.point for fit in fits]))

    def _coefficients(self, problems: list[Problem], points: list[Point], supported: bool = True) -> dict[str, Any]:
        """The weights and intercept_ in the coordinates of the mapped data, and the rows that support them."""
        constants = [_intercepts(problem, point) for problem, point in zip(problems, points, strict=True)]
        in_memory = problems[0].design.in_memory
        rows = [problem.places for problem in problems] if in_memory else []
        found = expansion(problems[0].design, rows, [point.w for point in points])
        if (
            supported
            and in_memory
            and self.features is None
            and problems[0].loss.supported
            and problems[0].penalty.ridge
        ):
            found |= support(problems, rows, points)
        return found | {"intercept_": np.concatenate(constants).astype(np.float64)}

    def _scores(self, X) -> Array:
        """<w, phi(x)> + b for every output, n x outputs."""
        check_is_fitted(self)
        return self._products(X) + self.intercept_


def _counting(target: Array, weights: Array) -> NDArray[np.intp] | None:
    """The rows with a positive weight and a target that is a number; None for all of them."""
    if weights.min() > 0 and not np.isnan(target.sum()):
        return None
    kept = (weights > 0) & ~np.isnan(target)
    return None if kept.all() else np.flatnonzero(kept)


def _intercepts(problem: Problem, point: Point) -> Array:
    """The intercepts of a point for unshifted data; of a joint loss centred, since only their differences count."""
    constants = np.atleast_1d(problem.constants(point))
    return constants - constants.mean() if problem.classes and problem.intercept else constants


class Problems(list[Problem]):
    """The problems of a machine on some data, and the way back to the machine.

    Attributes
    ----------
    machine : machine
        A copy of the machine that knows the classes and the fitted features, but no coefficients yet.
    """

    def __init__(self, machine: Machine, problems: list[Problem]):
        super().__init__(problems)
        self.machine = machine

    def fitted(self, fits: list[Fit], C: float | None = None) -> Machine:
        """The machine with the coefficients and the evidence of the fits, and the C that they were made with."""
        machine = copy(self.machine)
        if C is not None:
            machine.C = C
        machine._keep(self, fits, self[0].C if C is None else C)
        return machine
