"""Kinks: the corners of losses and penalties, a slope to the left and a slope to the right of each place."""

import numpy as np
from numpy.typing import NDArray

from empirisk.losses.base import Loss
from empirisk.problem import Array, Problem

TINY = np.finfo(float).tiny


def corners_of(loss: Loss) -> dict[float, tuple[float, float]]:
    """The kinks max(left a, right a), a = z - place, that the ramps of a loss add up to."""
    corners: dict[float, list[float]] = {}
    for ramp in loss.corners:
        slopes = corners.setdefault(-ramp.offset / ramp.slope, [0.0, 0.0])
        slopes[ramp.slope > 0] += ramp.slope * ramp.height
    return {place: (left, right) for place, (left, right) in corners.items()}


def spread_of(problem: Problem) -> float:
    """The size of the numbers z that a loss sees: the mean deviation of y for residuals, else 1."""
    if not problem.loss.residual_form:
        return 1.0
    # Targets that are all alike have no size; any positive one will do.
    return float(np.abs(problem.y - problem.origin().b).mean()) + 1e-8


def weight_spread(problem: Problem) -> Array:
    """The size that weights may have: that of the numbers that the loss sees over that of the columns."""
    sizes = np.sqrt(problem.design.squared_columns() / len(problem.y))
    return spread_of(problem) / np.where(sizes > 0, sizes, 1.0)


class ComplementaryPairs:
    """Multipliers and slacks, one of each per entry, that stay positive; on the central path their product is mu."""

    def __init__(self, multiplier: Array, slack: Array):
        self.multiplier, self.slack = multiplier, slack
        self.target: Array | float = 0.0
        self.count = slack.size
        self.step = self.slack_step = np.zeros(slack.shape)

    def aim(self, mu: float) -> None:
        """Aim at the product mu, without second-order terms."""
        self.target = mu

    def correct(self, mu: float) -> None:
        """Aim at mu, corrected by the second-order terms of the step computed before (Mehrotra's corrector)."""
        self.target = mu - self.slack_step * self.step

    def centralise(self, t: float, mu: float) -> None:
        """Aim also at bringing back the products that the step, gone t along, would throw far off mu.

        Into [mu/10, 10 mu]; far above it, no more than 10 mu is taken off (Gondzio's corrector).
        """
        products = (self.slack + t * self.slack_step) * (self.multiplier + t * self.step)
        self.target = self.target + np.maximum(np.clip(products, mu / 10, 10 * mu) - products, -10 * mu)

    def direct(self, step: Array) -> float:
        """Take the step of the multipliers, and return the longest t <= 1 that keeps everything positive."""
        self.step = step
        self.slack_step = (self.target - self.slack * step) / self.multiplier - self.slack
        return min(longest(self.multiplier, self.step), longest(self.slack, self.slack_step))

    def gap_after(self, t: float) -> float:
        """The sum of the products, the duality gap of the pairs, after going t along the step."""
        return float(np.vdot(self.slack + t * self.slack_step, self.multiplier + t * self.step))

    def move(self, t: float) -> None:
        """Go t along the step."""
        self.multiplier, self.slack = self.multiplier + t * self.step, self.slack + t * self.slack_step


class Kinks:
    """Kinks of one kind, one per entry:  max(left a, right a) = max of v a over left <= v <= right.

    Kept are the distances v - left and right - v, because near a bound v itself has no digits left, each paired with
    one of the slacks p, q > 0 with a = q - p. They start at the slope 0, where the dual point of all kinks is balanced,
    or in the middle of slopes of one sign, with the given slack on both sides of a.
    """

    #: Beside the corner slopes are constant: a linear system gives the solution.
    straight = True

    def __init__(self, a: Array, left: Array, right: Array, slack: Array | float):
        self.left, self.right = left, right
        v = np.where((left < 0) & (right > 0), 0.0, 0.5 * (left + right))
        self.below = ComplementaryPairs(v - left, np.maximum(-a, 0) + slack)
        self.above = ComplementaryPairs(right - v, np.maximum(a, 0) + slack)
        self.pairs = (self.below, self.above)

    @property
    def _nearer_left(self) -> NDArray[np.bool_]:
        return self.below.multiplier < self.above.multiplier

    @property
    def v(self) -> Array:
        """The slope: between left and right."""
        return np.where(self._nearer_left, self.left + self.below.multiplier, self.right - self.above.multiplier)

    @property
    def bound(self) -> Array:
        """The nearer of the two slopes."""
        return np.where(self._nearer_left, self.left, self.right)

    def curvature(self) -> Array:
        """dv/da on the central path."""
        return 1.0 / (self.above.slack / self.above.multiplier + self.below.slack / self.below.multiplier)

    def stiffened(self, stiffness: Array) -> Array:
        """The stiffness of single weights, with that of the kinks added."""
        return stiffness + self.curvature()

    def offset(self) -> Array:
        """h, such that dv = curvature (da + h) aims at the targets."""
        below, above = self.below, self.above
        return above.slack - below.slack + below.target / below.multiplier - above.target / above.multiplier

    def direct(self, x: Array) -> float:
        """Compute the step for x = da + h, and return the longest t <= 1 that keeps everything positive."""
        dv = self.curvature() * x
        return min(self.below.direct(dv), self.above.direct(-dv))

    def barrier(self, t: float, mu: float) -> float:
        """right q - left p - mu (log p + log q), which the central path minimises, after going t along the step."""
        p, q = (pairs.slack + t * pairs.slack_step for pairs in self.pairs)
        return float(np.sum(self.right * q - self.left * p) - mu * np.sum(np.log(p) + np.log(q)))

    def absorb(self, a: Array) -> Array:
        """Take the position as it is, and let p or q grow by what rounding left of a - (q - p).

        So p and q never fall below the rounding of the predictions, and the curvatures stay in bounds.
        """
        missing = a - (self.above.slack - self.below.slack)
        self.below.slack = self.below.slack + np.maximum(-missing, 0)
        self.above.slack = self.above.slack + np.maximum(missing, 0)
        return a

    def inside(self) -> NDArray[np.bool_]:
        """Where v is strictly between its slopes while p and q vanish: the kink holds the position at its corner."""
        size = self.below.slack.mean() + self.above.slack.mean() + TINY
        below, above = (pairs.slack / size < pairs.multiplier / (self.right - self.left) for pairs in self.pairs)
        return below & above

    def idle(self, value: float) -> NDArray[np.bool_]:
        """The positions that seem to be at the corner."""
        return self.inside()


class Floors:
    """Kinks without a left end:  right a = max of v a over v <= right  where a >= 0, and infinite below.

    Kept are a, which is its own slack and stays positive, and the distance right - v.

    Parameters
    ----------
    a : array
        The positions, above zero.
    right : float
        The slope.
    product : float
        The first product of a and right - v.
    """

    straight = True

    def __init__(self, a: Array, right: float, product: float):
        self.bound = np.full(a.shape, right)
        self.above = ComplementaryPairs(product / a, a)
        self._first, self._product = a, product
        self.pairs = (self.above,)

    @property
    def v(self) -> Array:
        """The slope: at most right."""
        return self.bound - self.above.multiplier

    def stiffened(self, stiffness: Array) -> Array:
        """The stiffness of single weights, with dv/da on the central path added."""
        return stiffness + self._curvature

    @property
    def _curvature(self) -> Array:
        return self.above.multiplier / self.above.slack

    def offset(self) -> Array:
        """h, such that dv = curvature (da + h) aims at the target."""
        return self.above.slack - self.above.target / self.above.multiplier

    def direct(self, x: Array) -> float:
        """Compute the step for x = da + h, and return the longest t <= 1 that keeps everything positive."""
        return self.above.direct(-self._curvature * x)

    def barrier(self, t: float, mu: float) -> float:
        """right a - mu log a, which the central path minimises, after going t along the step."""
        a = self.above.slack + t * self.above.slack_step
        return float(np.sum(self.bound * a) - mu * np.sum(np.log(a)))

    def absorb(self, a: Array) -> Array:
        """The positions that are kept: rounding may have put ``a`` below zero."""
        return self.above.slack

    def inside(self) -> NDArray[np.bool_]:
        """Where a vanishes and right - v does not: the constraint holds the position."""
        return self.above.slack / self._first < self.above.multiplier * self._first / self._product

    def idle(self, value: float) -> NDArray[np.bool_]:
        """The positions that seem to be zero."""
        return self.inside()


def longest(values: Array, changes: Array) -> float:
    """The largest t <= 1 with values + t changes >= 0."""
    shrinking = changes < 0
    return min(1.0, float((values[shrinking] / -changes[shrinking]).min(initial=np.inf)))
