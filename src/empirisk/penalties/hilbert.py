"""The l2 penalty where w is known by its coefficients alone."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.design import Design
from empirisk.penalties.norms import Norms

Array = NDArray[np.float64]


class HilbertNorm(Norms):
    """R(w) = strength/2 |w|^2 with w = sum_j beta_j phi(x_j), so |w|^2 = beta' K beta.

    Parameters
    ----------
    design : Design
        Knows the norms of the vectors that coefficients stand for.
    strength : float
        The factor of half the squared norm.

    >>> from empirisk.linalg.design import DenseDesign
    >>> HilbertNorm(DenseDesign(np.eye(2))).value(np.array([1.0, -2.0]))
    2.5
    """

    def __init__(self, design: Design, strength: float = 1.0):
        self.design = design
        self.strength = strength

    @property
    def l2(self) -> float:
        """The strength."""
        return self.strength

    def value(self, w: Array) -> float:
        """R(w), from the coefficients of w."""
        return 0.5 * self.strength * float(np.sum(self.design.squared_norms(w)))

    def terms(self, w: Array, v: Array) -> float:
        # Errors of rounding add up like the root of the sum of all (beta_i k_ij beta_j)^2, and that is no larger than
        # the sum of beta_i^2 k_ii. They are half a unit in the last place, a quarter of what others are counted with.
        diagonal = self.design.squared_rows()
        in_w, in_v = (float(np.sum(diagonal * (part * part).T)) for part in (w, v))
        return 0.125 * (self.strength * in_w + in_v / self.strength)

    def conjugate(self, v: Array) -> float:
        """|v|^2 / (2 strength), from the coefficients of v."""
        return 0.5 * float(np.sum(self.design.squared_norms(v))) / self.strength

    def __repr__(self) -> str:
        return "L2()" if self.strength == 1 else f"{self.strength} * L2()"
