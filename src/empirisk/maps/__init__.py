"""Feature maps: what stands for x in the equation. Any scikit-learn transformer is one too."""

from empirisk.maps.explicit import Periodic, Polynomial
from empirisk.maps.nystrom import Nystrom
from empirisk.maps.random import RandomFourier
from empirisk.maps.several import SeveralKernels

__all__ = ["Nystrom", "Periodic", "Polynomial", "RandomFourier", "SeveralKernels"]
