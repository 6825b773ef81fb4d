"""Regressors with names: each a choice of loss and penalty in the equation."""

from typing import Any

import numpy as np

from empirisk import state
from empirisk.contract.arguments import check_flag
from empirisk.contract.compose import composed
from empirisk.fits.fit import Fit
from empirisk.losses import EpsilonInsensitive
from empirisk.machines.equation import Regressor
from empirisk.penalties import ElasticNet as ElasticNetPenalty
from empirisk.penalties import Penalty, Positive
from empirisk.problem import Problem

#: Rows times squared columns up to which singular values take milliseconds.
SINGULAR = 10_000_000


class _Signed(Regressor):
    """A regressor whose weights may be asked not to be negative.

    Parameters
    ----------
    positive : bool
        Whether no weight may be negative.
    """

    norm: Any
    positive: bool

    @property
    def penalty(self) -> str | Penalty:
        """The norm of the machine, with the constraint w >= 0 where it is asked for."""
        check_flag("positive", self.positive)
        return Positive(self.norm) if self.positive else self.norm


@composed(
    {"loss": "squared", "penalty": None, "norm": "none", "C": 1.0, "rule": "best", "Cs": 20, "cv": 5}, positive=False
)
class LeastSquares(_Signed):
    """Least squares:  minimise  sum_i c_i (y_i - f(x_i))^2; the solution of minimum norm where there are several.

    Directions whose singular value is below max(n, d) * 2.2e-16 of the largest count as absent, as in NumPy's
    ``lstsq``; ``solver=er.solvers.ClosedForm("svd", cutoff=...)`` sets another limit. The parameters and attributes are
    those of `Regressor`, without loss, penalty and C; ``positive=True`` allows no negative weights.

    Attributes
    ----------
    rank_, singular_ : int, array
        Rank and singular values of the centred columns, each row times the square root of its weight, where X is dense
        and has up to 10^7 / columns^2 rows. All others are those of `Regressor`.

    Examples
    --------
    >>> er.LeastSquares().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(6)
    array([2.])
    """

    _state = state.State(rank_=state.optional(state.whole()), singular_=state.optional(state.array("f8", None, low=0)))

    def _keep(self, problems: list[Problem], fits: list[Fit], C: float) -> None:
        super()._keep(problems, fits, C)
        self.__dict__.update(_singular_values(problems[0]))


@composed({"loss": "squared", "penalty": None, "norm": "l2"}, positive=False)
class Ridge(_Signed):
    """Ridge regression:  minimise  1/2 |w|^2 + C sum_i c_i (y_i - f(x_i))^2.

    ``C="loo"`` chooses C by exact leave-one-out from one decomposition. scikit-learn's ``Ridge(alpha)`` is
    C = 1/(2 alpha). The parameters and attributes are those of `Regressor`, without loss and penalty;
    ``positive=True`` allows no negative weights.

    Examples
    --------
    >>> er.Ridge(C=0.5, fit_intercept=False).fit(np.eye(2), [2.0, 4.0]).coef_
    array([1., 2.])
    """


@composed({"loss": "squared", "penalty": None, "norm": "l1"}, positive=False)
class Lasso(_Signed):
    """Lasso:  minimise  |w|_1 + C sum_i c_i (y_i - f(x_i))^2.

    scikit-learn's ``Lasso(alpha)`` is C = 1/(2 n alpha). The parameters and attributes are those of `Regressor`,
    without loss and penalty; ``positive=True`` allows no negative weights.

    Examples
    --------
    >>> er.Lasso(C=0.5, fit_intercept=False).fit(np.eye(2), [0.5, 4.0]).coef_
    array([0., 3.])
    """


@composed({"loss": "squared", "penalty": None}, l1_ratio=0.5, positive=False)
class ElasticNet(_Signed):
    """Elastic net:  minimise  l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2 + C sum_i c_i (y_i - f(x_i))^2.

    scikit-learn's ``ElasticNet(alpha, l1_ratio)`` is C = 1/(2 n alpha) with the same l1_ratio.

    Parameters
    ----------
    l1_ratio : float
        Share of the 1-norm, between 0 (ridge) and 1 (lasso).
    positive : bool
        Whether no weight may be negative. The others are those of `Regressor`, without loss and penalty.

    Examples
    --------
    >>> er.ElasticNet(C=1.0, l1_ratio=0.5, fit_intercept=False).fit(np.eye(2), [0.1, 4.0]).coef_.round(6)
    array([0., 3.])
    """

    @property
    def norm(self) -> ElasticNetPenalty:
        """The penalty with the given l1_ratio."""
        return ElasticNetPenalty(self.l1_ratio)


@composed({"loss": "absolute"}, penalty="none")
class LeastAbsolute(Regressor):
    """Least absolute deviations:  minimise  R(w) + C sum_i c_i |y_i - f(x_i)|.

    The parameters and attributes are those of `Regressor`, without ``loss``; the default penalty is "none".

    Examples
    --------
    >>> er.LeastAbsolute().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 50.0, 3.0]).coef_.round(6)
    array([1.])
    """


@composed({"loss": None}, epsilon=0.1)
class SVR(Regressor):
    """Support vector regression:  minimise  R(w) + C sum_i c_i max(0, |y_i - f(x_i)| - epsilon).

    C and epsilon are those of scikit-learn's ``SVR``.

    Parameters
    ----------
    epsilon : float
        Half the width of the tube in which errors cost nothing. The others are those of `Regressor`, without loss.

    Examples
    --------
    >>> er.SVR(C=10.0, epsilon=0.5).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).coef_.round(6)
    array([0.5])
    """

    @property
    def loss(self) -> EpsilonInsensitive:
        """The loss with the given epsilon."""
        return EpsilonInsensitive(self.epsilon)


def _singular_values(problem: Problem) -> dict[str, Any]:
    """The attributes rank_ and singular_, where they cost little."""
    (rows, columns), design = problem.design.shape, problem.design
    if (
        design.implicit
        or not design.in_memory
        or design.on_device
        or not isinstance(getattr(design, "X", None), np.ndarray)
    ):
        return {}
    if rows * columns * min(rows, columns) > SINGULAR:
        return {}
    roots = np.sqrt(problem.weights)
    matrix = roots[:, None] * design.columns(slice(None))
    if problem.intercept:
        matrix = matrix - np.outer(roots, roots @ matrix) / (roots @ roots)
    values = np.linalg.svd(matrix, compute_uv=False)
    limit = max(rows, columns) * np.finfo(float).eps * values.max(initial=0.0)
    return {"rank_": int((values > limit).sum()), "singular_": values}
