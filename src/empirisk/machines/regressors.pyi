"""The signatures of regressors, which `composed` computes."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from empirisk.contract.features import Features
from empirisk.fits.constraint import Constraint
from empirisk.losses.base import Loss
from empirisk.machines.equation import Regressor
from empirisk.penalties.base import Penalty

class _Signed(Regressor):
    def __init__(
        self,
        loss: str | Loss | Sequence[str | Loss] = ...,
        features: Features = ...,
        penalty: str | Penalty = ...,
        C: float | str | Constraint = ...,
        *,
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
    @property
    def penalty(self) -> Any: ...

class LeastSquares(_Signed):
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
        positive: bool = ...,
    ) -> None: ...

class Ridge(_Signed):
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
        positive: bool = ...,
    ) -> None: ...

class Lasso(_Signed):
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
        positive: bool = ...,
    ) -> None: ...

class ElasticNet(_Signed):
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
        positive: bool = ...,
    ) -> None: ...
    @property
    def norm(self) -> Any: ...

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
