"""Feature maps: what stands for x in the equation. Any scikit-learn transformer is one too."""

from empirisk.maps.explicit import Periodic, Polynomial, PolynomialKernel
from empirisk.maps.recipes import (
    bag_of_words,
    box_cox_features,
    box_cox_target,
    log_features,
    log_target,
    standardised,
)
from empirisk.maps.several import SeveralKernels
from empirisk.maps.streamed import Nystrom, RandomFourier

__all__ = [
    "Nystrom",
    "Periodic",
    "Polynomial",
    "PolynomialKernel",
    "RandomFourier",
    "SeveralKernels",
    "bag_of_words",
    "box_cox_features",
    "box_cox_target",
    "log_features",
    "log_target",
    "standardised",
]
