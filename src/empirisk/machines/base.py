"""What classifiers and regressors share: the map, the solver, the certificate."""

import time
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from empirisk import losses, penalties
from empirisk.contract.features import MapsFeatures, expansion
from empirisk.contract.inputs import check_C
from empirisk.contract.progress import Reporter
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits import choice as choosing
from empirisk.fits import fit as fitting
from empirisk.fits import kernel_weights as weighing
from empirisk.fits.hard_margin import hard_problems
from empirisk.fits.merge import merged
from empirisk.losses.base import Loss
from empirisk.maps.mapped import Mapped
from empirisk.penalties.base import Penalty
from empirisk.problem import Point, Problem

Array = NDArray[np.float64]


class Machine(MapsFeatures, CallbackSupportMixin, BaseEstimator):
    """Parameters -> Problem -> Solver -> coefficients, for any loss, map and penalty."""

    task: ClassVar[str]
    loss: Any
    penalty: Any
    features: Any
    C: Any
    fit_intercept: bool
    solver: Any
    tol: float
    max_iter: int | None
    max_time: float | None

    def _parts(self) -> tuple[Loss, Penalty]:
        """The loss and the penalty as objects that suit the task."""
        loss, penalty = losses.find(self.loss), penalties.find(self.penalty)
        if self.task not in loss.tasks:
            suitable = sorted(name for name, cls in losses.NAMES.items() if self.task in cls.tasks and cls.convex)
            raise Unsuitable(f"loss={self.loss!r} is not a {self.task} loss; choose one of {suitable}.")
        if not loss.convex:
            raise Unsuitable(f"loss={self.loss!r} counts errors and cannot be minimised; use 'hinge' or 'logistic'.")
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise EmpiriskError(f"fit_intercept={self.fit_intercept!r} must be True or False.")
        return loss, penalty

    def _problems(
        self, loss: Loss, mapped: Mapped, targets: list[Array], weights: Array, classes: int = 0
    ) -> list[Problem]:
        """One problem per array of targets; rows with zero weight or a target that is NaN take no part.

        Problems that use the same rows share one design, so that solvers can share factorisations.
        """
        penalty = penalties.find(self.penalty)
        C = 1.0
        if choosing.is_given(self.C):
            C = check_C(self.C, hard=loss.hard_form is not None)
        else:
            choosing.check_way(self.C, self.rule)
        intercept = bool(self.fit_intercept)
        shared: dict[bytes, tuple] = {}
        problems = []
        for target in targets:
            kept = (weights > 0) & ~np.isnan(target)
            key = kept.tobytes()
            if key not in shared:
                rows = np.flatnonzero(kept)
                shared[key] = rows, mapped.design(rows, centre=intercept), weights[rows]
            rows, design, used = shared[key]
            problems.append(Problem(loss, penalty, C, design, target[rows], used, intercept, classes, rows=rows))
        return problems

    # --- fit --------------------------------------------------------------------------------------------------

    def _limits(self) -> fitting.Limits:
        return fitting.Limits(self.tol, self.max_iter, self.max_time)

    def _solve(self, problems: list[Problem], X, y: NDArray) -> None:
        """Choose C where asked, minimise every problem, and keep the coefficients and the evidence."""
        begin = time.perf_counter()
        reporter = Reporter(self, X, y, problems, lambda points: self._coefficients(problems, points))
        if not choosing.is_given(self.C):
            self.choice_ = choosing.choose_C(self, problems, y)
            problems = [problem.with_C(self.choice_.C) for problem in problems]
        if reporter.progress is None:  # callbacks are shown the rows as they are
            problems = merged(problems)
        problems = hard_problems(problems, self._limits().since(begin))
        problems, fits = weighing.run(problems, self.solver, self._limits().since(begin), reporter.progress)
        self.C_ = float(self.C) if choosing.is_given(self.C) else self.choice_.C
        self.certificate_, self.history_ = fitting.summarise(fits)
        self.n_iter_, self.solver_ = self.certificate_.iterations, self.certificate_.solver
        for name, value in self._coefficients(problems, [fit.point for fit in fits]).items():
            setattr(self, name, value)
        reporter.end()
        fitting.warn_unless_converged(self.certificate_, type(self).__name__)

    def _coefficients(self, problems: list[Problem], points: list[Point]) -> dict[str, Any]:
        """The weights and intercept_ in the coordinates of the mapped data."""
        constants = [_intercepts(problem, point) for problem, point in zip(problems, points, strict=True)]
        rows = [np.arange(len(problem.y)) if problem.rows is None else problem.rows for problem in problems]
        weights = expansion(problems[0].design, rows, [point.w for point in points])
        return weights | {"intercept_": np.concatenate(constants).astype(np.float64)}

    def _scores(self, X) -> Array:
        """<w, phi(x)> + b for every output, n x outputs."""
        check_is_fitted(self)
        return self._products(X) + self.intercept_


def _intercepts(problem: Problem, point: Point) -> Array:
    """The intercepts of a point for unshifted data; of a joint loss centred, since only their differences count."""
    constants = np.atleast_1d(point.b if problem.design.shift is None else point.b - problem.design.shift @ point.w)
    return constants - constants.mean() if problem.classes and problem.intercept else constants
