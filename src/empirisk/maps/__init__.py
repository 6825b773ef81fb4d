"""Feature maps: what stands for x in the equation. Any scikit-learn transformer is one too."""

from empirisk.maps.explicit import Periodic, Polynomial

__all__ = ["Periodic", "Polynomial"]
