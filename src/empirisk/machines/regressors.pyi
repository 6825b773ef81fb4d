"""The signatures of regressors, which `composed` computes."""

from typing import Any

from numpy.typing import ArrayLike

from empirisk.contract.features import Features
from empirisk.fits.constraint import Constraint
from empirisk.machines.equation import Regressor
from empirisk.penalties.base import Penalty

class LeastSquares(Regressor):
    def __init__(
        self,
        *,
        features: Features = ...,
        fit_intercept: bool = ...,
        solver: Any = ...,
        tol: float = ...,
        max_iter: int | None = ...,
        max_time: float | None = ...,
        random_state: Any = ...,
        warm_start: bool = ...,
    ) -> None: ...

class Ridge(Regressor):
    def __init__(
        self,
        C: float | str | Constraint = ...,
        *,
        features: Features = ...,
        fit_intercept: bool = ...,
        solver: Any = ...,
        tol: float = ...,
        max_iter: int | None = ...,
        max_time: float | None = ...,
        random_state: Any = ...,
        rule: str = ...,
        Cs: int | ArrayLike = ...,
        cv: Any = ...,
        warm_start: bool = ...,
    ) -> None: ...

class Lasso(Regressor):
    def __init__(
        self,
        C: float | str | Constraint = ...,
        *,
        features: Features = ...,
        fit_intercept: bool = ...,
        solver: Any = ...,
        tol: float = ...,
        max_iter: int | None = ...,
        max_time: float | None = ...,
        random_state: Any = ...,
        rule: str = ...,
        Cs: int | ArrayLike = ...,
        cv: Any = ...,
        warm_start: bool = ...,
    ) -> None: ...

class ElasticNet(Regressor):
    def __init__(
        self,
        C: float | str | Constraint = ...,
        *,
        features: Features = ...,
        fit_intercept: bool = ...,
        solver: Any = ...,
        tol: float = ...,
        max_iter: int | None = ...,
        max_time: float | None = ...,
        random_state: Any = ...,
        rule: str = ...,
        Cs: int | ArrayLike = ...,
        cv: Any = ...,
        warm_start: bool = ...,
        l1_ratio: float = ...,
    ) -> None: ...
    @property
    def penalty(self) -> Any: ...

class LeastAbsolute(Regressor):
    def __init__(
        self,
        C: float | str | Constraint = ...,
        *,
        features: Features = ...,
        penalty: str | Penalty = ...,
        fit_intercept: bool = ...,
        solver: Any = ...,
        tol: float = ...,
        max_iter: int | None = ...,
        max_time: float | None = ...,
        random_state: Any = ...,
        rule: str = ...,
        Cs: int | ArrayLike = ...,
        cv: Any = ...,
        warm_start: bool = ...,
    ) -> None: ...

class SVR(Regressor):
    def __init__(
        self,
        C: float | str | Constraint = ...,
        *,
        features: Features = ...,
        penalty: str | Penalty = ...,
        fit_intercept: bool = ...,
        solver: Any = ...,
        tol: float = ...,
        max_iter: int | None = ...,
        max_time: float | None = ...,
        random_state: Any = ...,
        rule: str = ...,
        Cs: int | ArrayLike = ...,
        cv: Any = ...,
        warm_start: bool = ...,
        epsilon: float = ...,
    ) -> None: ...
    @property
    def loss(self) -> Any: ...
