"""Losses of the residual e = f - y, for regression; the squared loss serves classification too."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from empirisk import state
from empirisk.linalg.namespace import namespace
from empirisk.losses.base import POSITIVE, Array, Ramp, ResidualLoss, monotone_root

#: The numbers between 0 and 1, without these.
INSIDE = POSITIVE, np.nextafter(1.0, 0.0)


def soft_threshold(z: Array, threshold: Array | float) -> Array:
    """sign(z) max(0, |z| - threshold).

    >>> soft_threshold(np.array([-3.0, 0.5]), 1.0)
    array([-2.,  0.])
    """
    return z - namespace(z).clip(z, -threshold, threshold)


def weighted_quantile(values: Array, weights: Array, level: float) -> float:
    """The number below which a share ``level`` of the weight lies: the middle of them where there are several.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0, 9.0]), np.ones(4), 0.5)
    2.5
    """
    values, weights = values[weights > 0], weights[weights > 0]
    order = np.argsort(values)
    values, climb = values[order], np.cumsum(weights[order])
    # Sums of weights are rounded: nearly equal to the share is equal.
    aim, rounding = level * climb[-1], np.finfo(float).eps * np.sqrt(len(values)) * climb[-1]
    first, last = np.minimum(np.searchsorted(climb, [aim - rounding, aim + rounding]), len(values) - 1)
    return float(0.5 * (values[first] + values[last]))


class Squared(ResidualLoss):
    """(y - f)^2; with labels y in {-1, +1} the same as (1 - t)^2.

    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([4.])
    """

    tasks = frozenset({"regression", "classification"})
    quadratic = True
    curvature_bound = 2.0
    dual_quadratic = (0.0, 0.0, 0.5)

    def phi(self, e: Array) -> Array:
        """e^2."""
        return e**2

    def slope(self, e: Array) -> Array:
        """2 e."""
        return 2.0 * e

    def bend(self, e: Array) -> Array:
        """2."""
        return namespace(e).full_like(e, 2.0)

    def phi_conjugate(self, v: Array) -> Array:
        """v^2 / 4."""
        return 0.25 * v**2

    def phi_prox(self, e: Array, step: Array | float) -> Array:
        """e / (1 + 2 step)."""
        return e / (1 + 2 * step)

    def best_constant(self, y: Array, weights: Array) -> float:
        """The weighted mean."""
        return float(weights @ y / weights.sum())


class EpsilonInsensitive(ResidualLoss):
    """max(0, |y - f| - epsilon).

    Parameters
    ----------
    epsilon : float, default 0.1
        Half the width of the tube inside which errors are free, zero or positive.

    >>> EpsilonInsensitive(0.5).value(np.array([1.0, 1.0]), np.array([1.2, 3.0]))
    array([0. , 1.5])
    """

    _state = state.State(epsilon=state.number(0))

    interval = (-1.0, 1.0)
    supported = True

    def __init__(self, epsilon: float = 0.1):
        self.epsilon = epsilon

    def _tube(self) -> float:
        return self._number("epsilon", "a number, zero or positive; choose the error that is free", 0)

    @property
    def corners(self) -> tuple[Ramp, ...]:
        """One at each side of the tube."""
        tube = self._tube()
        return Ramp(1.0, -tube), Ramp(-1.0, -tube)

    @property
    def dual_quadratic(self) -> tuple[float, float, float]:
        """phi*(v) = epsilon |v|."""
        return 0.0, self._tube(), 0.0

    def phi(self, e: Array) -> Array:
        """max(0, |e| - epsilon)."""
        xp = namespace(e)
        return xp.maximum(0.0, xp.abs(e) - self._tube())

    def slope(self, e: Array) -> Array:
        """sign(e) outside the tube, 0 inside and on its sides."""
        xp = namespace(e)
        return xp.where(xp.abs(e) > self._tube(), xp.sign(e), 0.0)

    def phi_conjugate(self, v: Array) -> Array:
        """epsilon |v|."""
        return self._tube() * namespace(v).abs(v)

    def phi_prox(self, e: Array, step: Array | float) -> Array:
        """e moved by step towards the tube, as far as its side, which is met exactly."""
        xp = namespace(e)
        tube = self._tube()
        return xp.where(xp.abs(e) <= tube, e, xp.copysign(xp.maximum(xp.abs(e) - step, tube), e))

    def best_constant(self, y: Array, weights: Array) -> float:
        """The weighted median of all y - epsilon and y + epsilon: the middle of the minimisers."""
        tube = self._tube()
        return weighted_quantile(np.concatenate([y - tube, y + tube]), np.tile(weights, 2), 0.5)


class Absolute(EpsilonInsensitive):
    """|y - f|.

    >>> Absolute().value(np.array([1.0]), np.array([3.0]))
    array([2.])
    """

    epsilon = 0.0
    supported = False  # no error is free

    def __init__(self):
        pass


class Quantile(ResidualLoss):
    """level max(0, y - f) + (1 - level) max(0, f - y), the pinball loss: least at the quantile of that level.

    Level 1/2 is half the absolute loss. scikit-learn's ``QuantileRegressor(quantile, alpha)`` minimises the same loss
    with an l1 penalty; `scales.from_lambda` converts its alpha.

    Parameters
    ----------
    level : float, default 0.5
        The share of the targets that is to lie below f, between 0 and 1.

    >>> Quantile(0.9).value(np.array([1.0, 1.0]), np.array([0.0, 2.0])).round(3)
    array([0.9, 0.1])
    """

    _state = state.State(level=state.number(0, 1))

    dual_quadratic = (0.0, 0.0, 0.0)
    scored = True

    def __init__(self, level: float = 0.5):
        self.level = level

    def _level(self) -> float:
        return self._number("level", "a number between 0 and 1, both excluded; 0.5 is the median", *INSIDE)

    @property
    def interval(self) -> tuple[float, float]:
        """From -level to 1 - level."""
        level = self._level()
        return -level, 1 - level

    @property
    def corners(self) -> tuple[Ramp, ...]:
        """One at zero: its two slopes."""
        level = self._level()
        return Ramp(1.0, 0.0, 1 - level), Ramp(-1.0, 0.0, level)

    def phi(self, e: Array) -> Array:
        """(1 - level) max(0, e) + level max(0, -e)."""
        xp, level = namespace(e), self._level()
        return (1 - level) * xp.maximum(e, 0.0) + level * xp.maximum(-e, 0.0)

    def slope(self, e: Array) -> Array:
        """1 - level above, -level below, 0 at the corner."""
        xp = namespace(e)
        level = self._level()
        return xp.where(e > 0, 1 - level, xp.where(e < 0, -level, 0.0))

    def phi_conjugate(self, v: Array) -> Array:
        """0."""
        xp = namespace(v)
        self._level()
        return xp.zeros_like(v)

    def phi_prox(self, e: Array, step: Array | float) -> Array:
        """e moved towards 0 by step times the slope, as far as 0."""
        xp = namespace(e)
        level = self._level()
        return e - xp.clip(e, -step * level, step * (1 - level))

    def best_constant(self, y: Array, weights: Array) -> float:
        """The weighted quantile."""
        return weighted_quantile(y, weights, self._level())


class Huber(ResidualLoss):
    """(y - f)^2 up to |y - f| = delta, and straight beyond:  2 delta |y - f| - delta^2.

    The squared loss for errors up to delta, with the slope of the absolute loss for outliers. Twice the loss of those
    who write 1/2 (y - f)^2.

    Parameters
    ----------
    delta : float, default 1.0
        The error at which it turns straight, positive, in units of y.

    >>> Huber(0.5).value(np.array([1.0, 1.0]), np.array([1.2, 3.0])).round(4)
    array([0.04, 1.75])
    """

    _state = state.State(delta=state.number(0))

    curvature_bound = 2.0
    dual_quadratic = (0.0, 0.0, 0.5)

    def __init__(self, delta: float = 1.0):
        self.delta = delta

    def _turn(self) -> float:
        return self._number("delta", "a positive number; choose the error from which on rows are outliers", POSITIVE)

    @property
    def interval(self) -> tuple[float, float]:
        """From -2 delta to 2 delta."""
        return -2 * self._turn(), 2 * self._turn()

    def phi(self, e: Array) -> Array:
        """(2 e - c) c, with c the error cut at delta."""
        inside = namespace(e).clip(e, -self._turn(), self._turn())
        return inside * (2 * e - inside)

    def slope(self, e: Array) -> Array:
        """2 e, cut at 2 delta."""
        return 2 * namespace(e).clip(e, -self._turn(), self._turn())

    def bend(self, e: Array) -> Array:
        """2 inside."""
        xp = namespace(e)
        return xp.where(xp.abs(e) <= self._turn(), 2.0, 0.0)

    def phi_conjugate(self, v: Array) -> Array:
        """v^2 / 4."""
        self._turn()
        return 0.25 * v**2

    def phi_prox(self, e: Array, step: Array | float) -> Array:
        """e / (1 + 2 step), or where that is an outlier still, e moved by 2 step delta."""
        xp = namespace(e)
        turn, near = self._turn(), e / (1 + 2 * step)
        return xp.where(xp.abs(near) <= turn, near, e - xp.copysign(2 * step * turn, e))

    def best_constant(self, y: Array, weights: Array) -> float:
        """Where the derivative, straight between the sorted y - delta and y + delta, passes zero: the middle of it."""
        y, weights, turn = y[weights > 0], weights[weights > 0], self._turn()
        centres, sides = np.tile(y, 2), np.repeat([-turn, turn], len(y))
        places = centres + sides
        order = np.lexsort((sides, places))

        def slope(place: int) -> float:
            # From differences of y, so that a delta which is lost beside a large y still counts.
            return float(weights @ np.clip(centres[place] - y + sides[place], -turn, turn))

        rounding = np.finfo(float).eps * np.sqrt(len(places)) * turn * weights.sum()
        first = bisect_left(order, -rounding, key=slope)
        last = bisect_right(order, rounding, key=slope) - 1
        low, high = places[order[last]], places[order[first]]
        if first <= last:
            return float(0.5 * low + 0.5 * high)
        share = slope(order[last]) / (slope(order[last]) - slope(order[first]))
        return float(low + share * (high - low))


class Power(ResidualLoss):
    """|y - f|^p, p >= 1.

    Parameters
    ----------
    p : float, default 1.5
        The exponent, at least 1: 1 is the absolute loss, 2 the squared one.

    >>> Power(3.0).value(np.array([1.0]), np.array([3.0]))
    array([8.])
    """

    _state = state.State(p=state.number(1))

    def __init__(self, p: float = 1.5):
        self.p = p

    def _exponent(self) -> float:
        return self._number("p", "a number, at least 1 for a convex loss; p=1 is the absolute loss", 1)

    @property
    def interval(self) -> tuple[float, float]:
        """All numbers, or [-1, 1] for p = 1."""
        return (-1.0, 1.0) if self._exponent() == 1 else (-np.inf, np.inf)

    @property
    def corners(self) -> tuple[Ramp, ...]:
        """Those of the absolute loss for p = 1, else none."""
        return Absolute().corners if self._exponent() == 1 else ()

    @property
    def steep(self) -> bool:
        """Whether the curvature runs from zero to infinity: for every p but 1 and 2."""
        return self._exponent() not in (1.0, 2.0)

    @property
    def quadratic(self) -> bool:
        """Whether p = 2."""
        return self._exponent() == 2.0

    @property
    def curvature_bound(self) -> float:
        """2 for p = 2; else the curvature is infinite at e = 0 (p < 2) or far out (p > 2)."""
        return 2.0 if self._exponent() == 2 else np.inf

    @property
    def dual_quadratic(self) -> tuple[float, float, float] | None:
        """Those of the absolute and of the squared loss for p = 1 and p = 2."""
        return {1.0: (0.0, 0.0, 0.0), 2.0: (0.0, 0.0, 0.5)}.get(self._exponent())

    def phi(self, e: Array) -> Array:
        """|e|^p."""
        xp = namespace(e)
        with np.errstate(over="ignore"):
            return xp.abs(e) ** self._exponent()

    def slope(self, e: Array) -> Array:
        """p sign(e) |e|^(p - 1)."""
        xp = namespace(e)
        p = self._exponent()
        with np.errstate(over="ignore"):
            return p * xp.sign(e) * xp.abs(e) ** (p - 1)

    def bend(self, e: Array) -> Array:
        """p (p - 1) |e|^(p - 2), infinite at 0 for 1 < p < 2."""
        xp = namespace(e)
        p = self._exponent()
        if p == 1:
            return xp.zeros_like(e)
        with np.errstate(divide="ignore", over="ignore"):
            return p * (p - 1) * xp.abs(e) ** (p - 2)

    def phi_conjugate(self, v: Array) -> Array:
        """(p - 1) (|v| / p)^(p / (p - 1)), or 0 for p = 1."""
        xp = namespace(v)
        p = self._exponent()
        if p == 1:
            return xp.zeros_like(v)
        with np.errstate(over="ignore"):
            return (p - 1) * (xp.abs(v) / p) ** (p / (p - 1))

    def phi_prox(self, e: Array, step: Array | float) -> Array:
        """sign(e) x, where x >= 0 solves  x + step p x^(p - 1) = |e|.

        Solved for r with x = r^a, where a makes both powers of r convex: Newton then needs few rounds, however
        small x is. For p = 3/2, the default, the equation is quadratic: r^2 + pull r = |e|.
        """
        xp = namespace(e)
        p = self._exponent()
        if p == 1:
            return soft_threshold(e, step)
        size, pull = xp.abs(e), step * p
        if p == 1.5:
            r = size / (0.5 * pull + xp.hypot(0.5 * pull, xp.sqrt(size)))
            return xp.copysign(xp.where(r > pull, size - pull * r, r**2), e)
        a = max(1.0, 1 / (p - 1))
        c = a * (p - 1)

        def equation(r: Array) -> tuple[Array, Array]:
            return r**a + pull * r**c - size, a * r ** (a - 1) + pull * c * r ** (c - 1)

        highest = xp.minimum(size ** (1 / a), (size / pull) ** (1 / c))
        r = monotone_root(equation, xp.zeros_like(highest), highest, highest)
        x, rest = r**a, size - pull * r**c
        # Both are x; the power multiplies its rounding by a, the difference cancels where x is small.
        return xp.copysign(xp.where(x > 0.5 * size, rest, x), e)

    def best_constant(self, y: Array, weights: Array) -> float:
        """The weighted median for p = 1, else by the derivative, on y scaled to [0, 1] so that no power overflows."""
        if self._exponent() == 1:
            return Absolute().best_constant(y, weights)
        y, weights = y[weights > 0], weights[weights > 0]
        low, spread = float(y.min()), float(np.ptp(y))
        return low if spread == 0 else low + spread * super().best_constant((y - low) / spread, weights)


class SquaredAbsolute(ResidualLoss):
    """(y - f)^2 + weight |y - f|.

    Parameters
    ----------
    weight : float, default 1.0
        The share of the absolute error, zero or positive.

    >>> SquaredAbsolute(weight=0.5).value(np.array([1.0]), np.array([3.0]))
    array([5.])
    """

    _state = state.State(weight=state.number(0))

    def __init__(self, weight: float = 1.0):
        self.weight = weight

    def _weight(self) -> float:
        return self._number("weight", "a number, zero or positive; weight=0 is the squared loss", 0)

    @property
    def corners(self) -> tuple[Ramp, ...]:
        """weight |e| as two ramps, none for weight = 0."""
        weight = self._weight()
        return (Ramp(1.0, 0.0, weight), Ramp(-1.0, 0.0, weight)) if weight else ()

    @property
    def smooth_part(self) -> Squared:
        """e^2."""
        return Squared()

    @property
    def curvature_bound(self) -> float:
        """Infinite at the corner, 2 for weight = 0."""
        return np.inf if self._weight() else 2.0

    @property
    def dual_quadratic(self) -> tuple[float, float, float] | None:
        """Of the squared loss for weight = 0, else none: phi* is flat between -weight and weight."""
        return None if self._weight() else (0.0, 0.0, 0.5)

    def phi(self, e: Array) -> Array:
        """e^2 + weight |e|."""
        return e**2 + self._weight() * namespace(e).abs(e)

    def slope(self, e: Array) -> Array:
        """2 e + weight sign(e)."""
        return 2 * e + self._weight() * namespace(e).sign(e)

    def bend(self, e: Array) -> Array:
        """2."""
        return namespace(e).full_like(e, 2.0)

    def phi_conjugate(self, v: Array) -> Array:
        """max(0, |v| - weight)^2 / 4."""
        xp = namespace(v)
        return 0.25 * xp.maximum(0.0, xp.abs(v) - self._weight()) ** 2

    def phi_prox(self, e: Array, step: Array | float) -> Array:
        """The soft threshold at step weight, divided by 1 + 2 step."""
        return soft_threshold(e, step * self._weight()) / (1 + 2 * step)

    def best_constant(self, y: Array, weights: Array) -> float:
        """Where the mean, pulled towards the median, meets the sorted y."""
        y, weights = y[weights > 0], weights[weights > 0]
        order = np.argsort(y)
        y, below = y[order], np.concatenate([[0.0], np.cumsum(weights[order])])
        # Between y[k-1] and y[k] the derivative vanishes at roots[k]; roots fall with k while y rises.
        roots = weights[order] @ y / below[-1] - self._weight() * (below / below[-1] - 0.5)
        return float(np.minimum(np.append(y, np.inf), roots).max())
