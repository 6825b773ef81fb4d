"""Several quantiles of the target at once, which do not cross."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, RegressorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.certificate import Certificate, combine
from empirisk.contract.inputs import check_weights
from empirisk.contract.members import check_table, check_target, take_input_tags
from empirisk.contract.progress import reported
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.losses.regression import Quantile
from empirisk.machines.equation import Regressor
from empirisk.names import Estimator

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class QuantileRegressor(CallbackSupportMixin, RegressorMixin, MetaEstimatorMixin, Estimator):
    """Several quantiles of y given x, each by a machine of the pinball loss, put in order.

    A level q has its own f:  minimise  R(w) + C sum_i c_i max(q (y_i - f(x_i)), (q - 1) (y_i - f(x_i))).

    Learned one by one, quantiles may cross: somewhere that of level 0.9 may lie below that of level 0.8. The answers
    for a row are therefore sorted (the rearrangement of Chernozhukov, Fernandez-Val and Galichon, 2010), which never
    takes them farther from the true quantiles, and leaves them alone where they are in order.

    Parameters
    ----------
    estimator : regressor, optional
        The machine of each level, by its parameter ``loss``: `Regressor` with any features and penalty, the default, or
        `BoostingRegressor`; also at the end of a pipeline.
    levels : sequence of float
        The levels, increasing, between 0 and 1.

    Attributes
    ----------
    estimators_ : list
        The fitted machine of each level.
    levels_ : array
        The levels.
    certificate_ : Certificate
        Of all levels together, where their machines have one.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(0, 4, size=(500, 1))
    >>> y = X[:, 0] * random.uniform(0, 1, size=500)
    >>> machine = er.QuantileRegressor(er.Regressor(penalty="none"), levels=[0.1, 0.5, 0.9]).fit(X, y)
    >>> machine.predict_quantiles([[1.0], [4.0]]).round(1)
    array([[0.1, 0.5, 0.9],
           [0.5, 1.9, 3.4]])
    """

    _state = state.State(
        filled=("members",),
        n_features_in_=state.size("columns"),
        estimators_=state.several(state.part(has="predict", columns="columns"), "members"),
        levels_=state.array("f8", "members", low=0, high=1),
    )

    estimator: Any = None
    _: KW_ONLY
    levels: Sequence[float] = (0.1, 0.5, 0.9)
    estimators_: list = field(init=False)
    levels_: Array = field(init=False)

    def _machine(self) -> Any:
        return Regressor() if self.estimator is None else self.estimator

    def _of_level(self, level: float) -> Any:
        """A machine with the pinball loss of a level, wherever it has its loss."""
        machine = clone(self._machine())
        names = [name for name in machine.get_params() if name.rpartition("__")[2] == "loss"]
        if not names:
            raise EmpiriskError(
                f"estimator={machine!r} has no parameter loss, which says what it learns; use er.Regressor() or "
                "er.BoostingRegressor()."
            )
        return machine.set_params(**{min(names, key=lambda name: name.count("__")): Quantile(level)})

    def _checked_levels(self) -> Array:
        try:
            levels = np.array(self.levels, dtype=np.float64)
        except (TypeError, ValueError):
            levels = np.zeros(0)
        inside = levels.ndim == 1 and len(levels) > 0 and levels[0] > 0 and levels[-1] < 1
        if not (inside and np.all(np.diff(levels) > 0)):
            raise EmpiriskError(
                f"levels={self.levels!r} must be increasing numbers between 0 and 1, such as [0.1, 0.5, 0.9]."
            )
        return levels

    @property
    def certificate_(self) -> Certificate:
        """The certificates of all levels as one, where their machines have them: values and gaps add up."""
        return combine([machine.certificate_ for machine in self.estimators_])

    @with_callbacks
    @all_or_nothing
    @reported
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine of each level.

        Parameters
        ----------
        X : table, n x d
            The rows, as the machine takes them.
        y : array of n
            Numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        self.levels_ = self._checked_levels()
        table, target = check_table(self, X, reset=True), check_target(self, y, numbers=True)
        check_consistent_length(table, target)
        options = {} if sample_weight is None else {"sample_weight": check_weights(sample_weight, len(target))}
        self.estimators_ = [self._of_level(level).fit(table, target, **options) for level in self.levels_.tolist()]
        return self

    def predict_quantiles(self, X: Any) -> Array:
        """The quantiles of each row, one column per level, never falling from left to right."""
        check_is_fitted(self)
        table = check_table(self, X, reset=False)
        return np.sort(np.column_stack([machine.predict(table) for machine in self.estimators_]), axis=1)

    def predict(self, X: Any) -> Array:
        """The quantile of the level nearest to the median, of two the lower one."""
        return self.predict_quantiles(X)[:, int(np.argmin(np.abs(self.levels_ - 0.5)))]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The mean over the levels of D^2, the share of the pinball loss of the best constant that is explained.

        Parameters
        ----------
        X, y, sample_weight
            Rows, their targets and their weights.
        """
        found, target = self.predict_quantiles(X), check_target(self, y, numbers=True)
        weights = check_weights(sample_weight, len(target))
        pairs = zip(self.levels_.tolist(), found.T, strict=True)
        return float(np.mean([Quantile(level).explained(target, column, weights) for level, column in pairs]))

    def __sklearn_tags__(self):
        return take_input_tags(super().__sklearn_tags__(), "estimator", self._machine())
