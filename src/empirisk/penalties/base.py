"""What a penalty states about itself; every penalty here is  l1 |w|_1 + l2/2 |w|^2."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from empirisk.parts import Part

Array = NDArray[np.float64]


class Penalty(Part):
    """R(w) = l1 |w|_1 + l2/2 |w|^2, the two strengths given by the subclass.

    Attributes
    ----------
    l1, l2 : float
        Strength of the 1-norm, and of half the squared 2-norm.

    >>> from empirisk.penalties import ElasticNet
    >>> ElasticNet(ratio=0.5).prox(np.array([3.0, 0.5]), step=2.0)
    array([1., 0.])
    """

    l1: ClassVar[float] = 0.0
    l2: ClassVar[float] = 0.0

    def value(self, w: Array) -> float:
        """R(w)."""
        return float(self.l1 * np.abs(w).sum() + 0.5 * self.l2 * np.vdot(w, w))

    def prox(self, w: Array, step: Array | float) -> Array:
        """argmin_v  R(v) + |v - w|^2 / (2 step)."""
        return (w - np.clip(w, -step * self.l1, step * self.l1)) / (1 + step * self.l2)

    def terms(self, w: Array, v: Array) -> float:
        """The size of the terms that may cancel in `value` of w and `conjugate` of v: here all are positive."""
        return 0.0

    def conjugate(self, v: Array) -> float:
        """sup_w  <v, w> - R(w); infinite outside the domain, which without l2 is |v|_inf <= l1."""
        excess = np.maximum(np.abs(v) - self.l1, 0.0)
        if self.l2 > 0:
            return float(0.5 * np.vdot(excess, excess) / self.l2)
        return 0.0 if excess.max(initial=0.0) <= 0 else np.inf

    def room(self, v: Array) -> float:
        """The largest factor s <= 1 that puts s v into the domain of the conjugate."""
        largest = np.abs(v).max(initial=0.0)
        if self.l2 > 0 or largest <= self.l1:
            return 1.0
        # One part in 1e15 below the boundary: the product must not round to the outside.
        return float(self.l1 / largest) * (1 - 1e-15)

    def distance(self, w: Array, v: Array) -> Array:
        """Distance of each v_j to the subdifferential of R at w_j."""
        at_zero = np.maximum(np.abs(v) - self.l1, 0.0)
        return np.where(w == 0, at_zero, np.abs(v - self.l1 * np.sign(w) - self.l2 * w))

    def critical_C(self, v: Array) -> float:
        """The largest C at which w = 0 is optimal, given v = the gradient of the loss sum at w = 0 and best b."""
        largest = np.abs(v).max(initial=0.0)
        return np.inf if largest == 0 else float(self.l1 / largest)
