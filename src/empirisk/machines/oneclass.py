"""The one-class machine: where the data are, as a hyperplane that keeps most of them away from the origin."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import _num_samples, check_is_fitted

from empirisk import kernels, losses, penalties, scales, state
from empirisk.contract.features import Features
from empirisk.contract.inputs import check_weights
from empirisk.contract.transaction import all_or_nothing
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import validated
from empirisk.lazy import lazy
from empirisk.linalg.design import Design
from empirisk.linalg.foreign import in_its_kind
from empirisk.machines.base import Machine
from empirisk.maps.implicit import gram_design, in_double
from empirisk.problem import Array, Point, Problem
from empirisk.stop import Deadline

ROUNDING = 1e-9  # of the scores: what sums over thousands of support vectors lose


@dataclass(frozen=True)
class OneClassProblem(Problem):
    """The problem of the one-class machine, whose smallest value may be zero: a w of a single row is its scale."""

    @lazy
    def origin_value(self) -> float:
        return 0.5 * self.tilt**2 * float(self.design.squared_rows().mean()) / self.penalty.l2


@dataclass(eq=False, repr=False)
class OneClassSVM(OutlierMixin, Machine):
    """The one-class support vector machine, which tells rows like the training data from outliers:

        minimise  1/2 |w|^2 - rho + 1/(nu n) sum_i c_i max(0, rho - <w, phi(x_i)>).

    In the equation's terms this is the perceptron's loss with y_i = 1, b = -rho, C = 1/(nu n), and a cost of the
    intercept. At most a share nu of the rows lies outside, <w, phi(x)> < rho, and at least that share are support
    vectors; n is the sum of the weights c_i.

    Parameters
    ----------
    nu : float
        The share of the rows that may be left outside, in (0, 1].
    features : None, transformer or kernel
        The feature map phi, fitted inside, or a kernel; "gaussian" has the median distance as its width, None is x
        itself.
    solver : str or Solver
        A solver for kernels; "auto" picks one.
    tol : float
        Relative duality gap at which to stop.
    max_iter : int or None
        Iteration limit; None is the solver's own.
    max_time : float or None
        Time limit in seconds.

    Attributes
    ----------
    offset_ : float
        rho, less the accuracy to which it is known, so that rows on the boundary are inside; ``decision_function`` is
        ``score_samples`` minus it.
    dual_coef_, support_, support_vectors_ : arrays
        The coefficients of w, and the training rows (after the feature map) that carry them.
    coef_ : array
        w itself, where the features are explicit.
    certificate_, history_, n_iter_, solver_, C_
        As for `Classifier`.

    Examples
    --------
    >>> X = [[0.0], [0.1], [-0.1], [0.05], [9.0]]
    >>> er.OneClassSVM(nu=0.3, features=er.kernels.Gaussian()).fit(X).predict([[0.0], [9.5]])
    array([ 1, -1])
    """

    _state = state.State(
        lambda its: None if "coef_" in its or isinstance(its.get("features_"), Kernel) else "coef_ is missing",
        forms=(("dual_coef_", "support_", "support_vectors_"),),
        coef_=state.optional(state.array("f", 1, "mapped")),
        dual_coef_=state.array("f", 1, "support"),
        offset_=state.number(),
    )

    task = "outliers"
    loss = "perceptron"
    penalty = "l2"
    C = 1.0
    fit_intercept = True

    nu: float = 0.5
    features: Features = "gaussian"
    _: KW_ONLY
    solver: Any = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """The number of support vectors, in an array as scikit-learn has it."""
        check_is_fitted(self)
        return np.array([len(self.support_)], np.int32)

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> OneClassSVM:
        """Learn from rows, nearly all of which are to be inside.

        Parameters
        ----------
        X : array or sparse matrix, n x d
            The rows.
        y : ignored
            For scikit-learn's interface.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        deadline = Deadline(self._limits().max_time)
        self._solve(X, *self._prepare(X, y, sample_weight), deadline)
        return self

    def _prepare(self, X, y=None, sample_weight=None, stream=None) -> tuple[list[Problem], NDArray]:
        design, ones = self._fit_map(X, np.ones(_num_samples(X)), sample_weight)
        weights = check_weights(sample_weight, len(ones))
        rows = np.flatnonzero(weights > 0)
        C = scales.from_nu(self.nu, float(weights.sum()))
        parts = losses.find(self.loss), penalties.find(self.penalty), C, _behind_a_kernel(design).rows(rows)
        return [OneClassProblem(*parts, ones[rows], weights[rows], True, tilt=1.0, rows=rows)], ones

    def _coefficients(self, problems: list[Problem], points: list[Point], supported: bool = True) -> dict[str, Any]:
        found = super()._coefficients(problems, points, supported)
        found["offset_"] = -float(found.pop("intercept_")[0]) - _slack(problems[0], points[0])
        if self._kernel() is None:
            found["coef_"] = np.asarray((found["support_vectors_"].T @ found["dual_coef_"].T).T, dtype=np.float64)
        return found

    @in_its_kind
    def score_samples(self, X: ArrayLike) -> Array:
        """<w, phi(x)> of each row: the larger, the more like the training data."""
        check_is_fitted(self)
        return self._products(X)[:, 0]

    @in_its_kind
    def decision_function(self, X: ArrayLike) -> Array:
        """<w, phi(x)> - rho: positive inside, negative for outliers."""
        return self.score_samples(X) - self.offset_

    @in_its_kind
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """+1 for rows like the training data, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


def _behind_a_kernel(design: Any) -> Design:
    """The samples behind a kernel: the linear one where the features are explicit."""
    if design.implicit:
        return design
    kernel = kernels.Linear()
    with validated():
        rows = design.table if design.on_device else design.X
        return gram_design(kernel, in_double(kernel.prepare(rows)), rows)


def _slack(problem: Problem, point: Point) -> float:
    """How far below rho a row that supports the boundary may be by inaccuracy and rounding."""
    scores, lengths = problem.design.dot(point.w), np.sqrt(np.maximum(problem.design.squared_rows(), 0.0))
    # The terms of a score, which cancel where the best w is zero.
    terms = float(np.abs(point.w) @ lengths * lengths.max())
    rounding = ROUNDING * (max(float(np.abs(scores).max()), terms) + abs(float(point.b)))
    if point.u is None:
        return rounding
    on_boundary = scores[(point.u < 0) & (point.u > -problem.scale)]
    return rounding + max(0.0, -float(point.b) - float(on_boundary.min(initial=np.inf)))
