"""What a penalty states about itself: value, prox and conjugate, and what solvers ask of it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import Unsuitable
from empirisk.parts import Part

Array = NDArray[np.float64]
#: Halvings after which a bisection of [0, 1] has no digits left.
HALVINGS = 60
#: How far below 1 / |v|_inf a critical C is looked for; a penalty whose kinks are weaker than that has none.
WEAKEST, STRONGEST = 1e-30, 1e30


class Penalty(Part):
    """R(w), convex and finite at w = 0. A subclass writes `value`, `prox` and `conjugate`; that is enough to be solved.

    What it states as well lets faster solvers in: whether it is `smooth` (it then has `gradient` and `curvature`),
    whether it is `separable`, and which strengths `l1` and `l2` it contains. Whatever is not written is found from the
    three functions.

    Attributes
    ----------
    l1, l2 : float
        R contains l1 |w|_1 + l2/2 |w|^2.
    plain : bool
        Whether that is all R is.
    smooth : bool
        Whether R has a gradient everywhere, and states it.
    separable : bool
        Whether R is a sum of functions of single weights, so that `prox` takes a step for each of them.
    positive : bool
        Whether R is infinite where a weight is negative, and else l1 |w|_1 + l2/2 |w|^2.

    >>> class Box(Penalty):
    ...     "No cost for |w_j| <= 1, and no weight beyond."
    ...     separable = True
    ...     def value(self, w): return 0.0 if np.abs(w).max(initial=0.0) <= 1 else np.inf
    ...     def prox(self, w, step): return np.clip(w, -1, 1)
    ...     def conjugate(self, v): return float(np.abs(v).sum())
    >>> er.Regressor("squared", penalty=Box(), fit_intercept=False).fit(np.eye(2), [0.5, 3.0]).coef_
    array([0.5, 1. ])
    """

    l1: ClassVar[float] = 0.0
    l2: ClassVar[float] = 0.0
    plain: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    separable: ClassVar[bool] = False
    positive: ClassVar[bool] = False

    def value(self, w: Array) -> float:
        """R(w)."""
        raise self._unstated("value")

    def prox(self, w: Array, step: Array | float) -> Array:
        """argmin_v  R(v) + |v - w|^2 / (2 step); the steps are equal within each of the `blocks`."""
        raise self._unstated("prox")

    def conjugate(self, v: Array) -> float:
        """sup_w  <v, w> - R(w); infinite outside its domain."""
        raise self._unstated("conjugate")

    def gradient(self, w: Array) -> Array:
        """The gradient of a smooth R."""
        raise self._unstated("gradient")

    def curvature(self, w: Array) -> Array:
        """The second derivatives of a smooth and separable R, one for each weight."""
        raise self._unstated("curvature")

    @property
    def zero(self) -> bool:
        """Whether R = 0, so that the dual demands A'u = 0."""
        return self.plain and self.l1 == 0 and self.l2 == 0

    @property
    def cone(self) -> bool:
        """Whether R = 0 for weights that are not negative, so that the dual demands A'u >= 0."""
        return self.positive and self.l1 == 0 and self.l2 == 0

    @property
    def ridge(self) -> bool:
        """Whether R = l2/2 |w|^2 with l2 > 0."""
        return self.plain and self.l1 == 0 and self.l2 > 0

    def blocks(self, count: int) -> NDArray[np.intp] | None:
        """The number of the block of each of so many weights, all of whose steps must be alike; None: each its own."""
        return None if self.separable else np.zeros(count, dtype=np.intp)

    def group_limits(self, width: tuple[int, ...]) -> Array | None:
        """The limits where R is the sum of  limit |w_block|  over its blocks, for weights of that shape; else None."""
        return None

    def part(self, chosen: NDArray[np.intp], count: int) -> Penalty:
        """The penalty of some of so many columns, the others having no weight: all those of some of the `blocks`."""
        return self

    def simplest(self, width: tuple[int, ...]) -> Penalty:
        """The penalty that has the same values for weights of that shape and lets the most solvers in."""
        return self

    def terms(self, w: Array, v: Array) -> float:
        """The size of the terms that may cancel in `value` of w and `conjugate` of v; 0 where all have one sign."""
        return 0.0

    def least(self, like: Array) -> float:
        """The smallest value of R, for weights of that shape."""
        return -self.conjugate(np.zeros_like(like))

    def feasible_share(self, v: Array) -> float:
        """The largest factor s <= 1 that puts s v into the domain of the conjugate."""
        if np.isfinite(self.conjugate(v)):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.isfinite(self.conjugate(middle * v)) else (low, middle)
        return low

    def distance(self, w: Array, v: Array) -> Array:
        """About how far each v_j is from the subdifferential of R at w: zero where v is in it."""
        return np.abs(self.prox(w + v, 1.0) - w)

    def critical_C(self, v: Array) -> float:
        """The largest C at which w = 0 is optimal, given v = the gradient of the loss sum at w = 0 and best b."""
        largest = float(np.abs(v).max(initial=0.0))
        if largest == 0:
            return np.inf
        if self.smooth:
            return 0.0
        at_zero = self.value(np.zeros_like(v))

        def holds(C: float) -> bool:
            return self.conjugate(-C * v) + at_zero <= 0  # Fenchel's equality: -C v is a subgradient at zero

        low, high = WEAKEST / largest, STRONGEST / largest
        if not holds(low):
            return 0.0
        while high > low * (1 + np.finfo(float).eps):
            middle = float(np.sqrt(low) * np.sqrt(high))
            if not low < middle < high:
                break
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    def _unstated(self, what: str) -> Unsuitable:
        return Unsuitable(f"penalty={self!r} states no {what}; write the method, or use 'l2', 'l1' or 'elastic_net'.")
