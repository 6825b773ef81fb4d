"""The signatures of classifiers, which `composed` computes."""

from typing import Any

from numpy.typing import ArrayLike

from empirisk.contract.features import Features
from empirisk.fits.constraint import Constraint
from empirisk.machines.equation import Classifier
from empirisk.penalties.base import Penalty

class SVM(Classifier):
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
        multiclass: str | ArrayLike = ...,
        class_weight: dict[Any, float] | str | None = ...,
    ) -> None: ...

class LogisticRegression(Classifier):
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
        multiclass: str | ArrayLike = ...,
        class_weight: dict[Any, float] | str | None = ...,
    ) -> None: ...

class LeastSquaresClassifier(Classifier):
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
        multiclass: str | ArrayLike = ...,
        class_weight: dict[Any, float] | str | None = ...,
    ) -> None: ...
