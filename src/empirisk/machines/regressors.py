"""Regressors with names: each a choice of loss and penalty in the equation."""

from typing import Any

from empirisk.contract.arguments import check_flag
from empirisk.contract.compose import composed
from empirisk.losses import EpsilonInsensitive
from empirisk.machines.equation import Regressor
from empirisk.penalties import ElasticNet as ElasticNetPenalty
from empirisk.penalties import Penalty, Positive


class _Signed(Regressor):
    """A regressor whose weights may be asked not to be negative, by the parameter ``positive``."""

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

    Examples
    --------
    >>> er.LeastSquares().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(6)
    array([2.])
    """


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
