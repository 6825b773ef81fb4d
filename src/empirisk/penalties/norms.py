"""The penalties  l1 |w|_1 + l2/2 |w|^2."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from empirisk import state
from empirisk.linalg.design import Array, Design
from empirisk.linalg.namespace import absolute, as_number, namespace
from empirisk.parts import resolve
from empirisk.penalties.base import Penalty

#: Just inside of a boundary: a product with it must not round to the outside.
INSIDE = 1 - 1e-15


class Norms(Penalty):
    """R(w) = l1 |w|_1 + l2/2 |w|^2, the two strengths given by the subclass.

    >>> ElasticNet(l1_ratio=0.5).prox(np.array([3.0, 0.5]), step=2.0)
    array([1., 0.])
    """

    plain = True
    separable = True

    @property
    def smooth(self) -> bool:
        """Whether there is no l1 part, and no sign that weights must have."""
        return self.l1 == 0 and not self.positive

    def value(self, w: Array) -> float:
        """R(w)."""
        # A part that is not there must not make a NaN of a sum that overflows.
        first = self.l1 * absolute(w).sum() if self.l1 else 0.0
        return as_number(first + 0.5 * self.l2 * namespace(w).vdot(w, w) if self.l2 else first)

    def prox(self, w: Array, step: Array | float) -> Array:
        """argmin_v  R(v) + |v - w|^2 / (2 step), with a step for all weights or one for each."""
        return (w - namespace(w).clip(w, -step * self.l1, step * self.l1)) / (1 + step * self.l2)

    def conjugate(self, v: Array) -> float:
        """sup_w  <v, w> - R(w); infinite outside the domain, which without l2 is |v|_inf <= l1."""
        xp = namespace(v)
        excess = xp.maximum(xp.abs(v) - self.l1, 0.0)
        if self.l2 > 0:
            return as_number(0.5 * xp.vdot(excess, excess) / self.l2)
        return 0.0 if excess.max(initial=0.0) <= 0 else np.inf

    def gradient(self, w: Array) -> Array:
        """l2 w, where there is no l1 part."""
        return self.l2 * w

    def curvature(self, w: Array) -> Array:
        """l2 for each weight."""
        return namespace(w).full(w.shape, self.l2)

    def least(self, like: Array) -> float:
        """0."""
        return 0.0

    def feasible_share(self, v: Array) -> float:
        """The largest factor s <= 1 that puts s v into the domain of the conjugate."""
        largest = namespace(v).abs(v).max(initial=0.0)
        return 1.0 if self.l2 > 0 or largest <= self.l1 else float(self.l1 / largest) * INSIDE

    def distance(self, w: Array, v: Array) -> Array:
        """Distance of each v_j to the subdifferential of R at w_j."""
        xp = namespace(v)
        at_zero = xp.maximum(xp.abs(v) - self.l1, 0.0)
        return xp.where(w == 0, at_zero, xp.abs(v - self.l1 * xp.sign(w) - self.l2 * w))

    def critical_C(self, v: Array) -> float:
        """The largest C at which w = 0 is optimal, given v = the gradient of the loss sum at w = 0 and best b."""
        largest = namespace(v).abs(v).max(initial=0.0)
        return np.inf if largest == 0 else self.l1 / float(largest)  # in plain numbers: no warning of overflow


class NoPenalty(Norms):
    """R(w) = 0; also asked for by the name ``"none"``.

    >>> NoPenalty().value(np.array([1.0, -2.0]))
    0.0
    """

    @classmethod
    def name(cls) -> str:
        """none: the word a user writes."""
        return "none"


class L2(Norms):
    """R(w) = 1/2 |w|^2.

    >>> L2().value(np.array([1.0, -2.0]))
    2.5
    """

    l2: ClassVar[float] = 1.0


class L1(Norms):
    """R(w) = |w|_1.

    >>> L1().value(np.array([1.0, -2.0]))
    3.0
    """

    l1: ClassVar[float] = 1.0


class ElasticNet(Norms):
    """R(w) = l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2.

    Parameters
    ----------
    l1_ratio : float, default 0.5
        Between 0 (the l2 penalty) and 1 (the l1 penalty).

    >>> ElasticNet(l1_ratio=0.5).value(np.array([1.0, -2.0]))
    2.75
    """

    _state = state.State(l1_ratio=state.number(0, 1))

    def __init__(self, l1_ratio: float = 0.5):
        self.l1_ratio = l1_ratio

    @property
    def l1(self) -> float:
        """The l1_ratio."""
        return self._number("l1_ratio", "a number between 0 and 1; 0 is the l2 penalty, 1 the l1", 0, 1)

    @property
    def l2(self) -> float:
        """1 - l1_ratio."""
        return 1.0 - self.l1


class Positive(Norms):
    """R(w) of another penalty where no weight is negative, and infinite elsewhere: the constraint w >= 0.

    Parameters
    ----------
    penalty : {"l2", "l1", "elastic_net", "none"} or penalty of norms
        What weights that are not negative cost.

    >>> machine = er.Regressor("squared", penalty=er.penalties.Positive("l1"), fit_intercept=False)
    >>> machine.fit(np.eye(2), [-3.0, 4.0]).coef_
    array([0. , 3.5])
    """

    plain = False
    positive = True

    def __init__(self, penalty: str | Norms | None = "l2"):
        self.penalty = penalty

    @property
    def _base(self) -> Norms:
        return resolve("none" if self.penalty is None else self.penalty, NORMS, "penalty", Norms)

    @property
    def l1(self) -> float:
        """That of the penalty."""
        return self._base.l1

    @property
    def l2(self) -> float:
        """That of the penalty."""
        return self._base.l2

    def value(self, w: Array) -> float:
        """R(w); infinite where a weight is negative."""
        xp = namespace(w)
        return as_number(super().value(w) + xp.where(w < 0, np.inf, 0.0).sum())

    def prox(self, w: Array, step: Array | float) -> Array:
        """That of the penalty, cut at zero."""
        return namespace(w).maximum(super().prox(w, step), 0.0)

    def conjugate(self, v: Array) -> float:
        """That of the penalty at max(v, 0)."""
        return super().conjugate(namespace(v).maximum(v, 0.0))

    def feasible_share(self, v: Array) -> float:
        """The largest factor s <= 1 that puts s v into the domain of the conjugate."""
        return super().feasible_share(namespace(v).maximum(v, 0.0))

    def distance(self, w: Array, v: Array) -> Array:
        """Distance of each v_j to the subdifferential of R at w_j, which at zero has no lower end."""
        xp = namespace(v)
        return xp.where(w == 0, xp.maximum(v - self.l1, 0.0), xp.abs(v - self.l1 - self.l2 * w))

    def critical_C(self, v: Array) -> float:
        """The largest C at which w = 0 is optimal, given v = the gradient of the loss sum at w = 0 and best b."""
        return super().critical_C(namespace(v).minimum(v, 0.0))


NORMS = {one.name(): one for one in (NoPenalty, L2, L1, ElasticNet)}


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
