"""The signatures of perceptron, which `composed` computes."""

from typing import Any

from numpy.typing import ArrayLike

from empirisk.contract.features import Features
from empirisk.machines.equation import Classifier

class Perceptron(Classifier):
    def __init__(
        self,
        *,
        features: Features = ...,
        fit_intercept: bool = ...,
        tol: float = ...,
        max_iter: int | None = ...,
        max_time: float | None = ...,
        random_state: Any = ...,
        warm_start: bool = ...,
        multiclass: str | ArrayLike = ...,
        class_weight: dict[Any, float] | str | None = ...,
        average: bool = ...,
    ) -> None: ...
    @property
    def solver(self) -> Any: ...
