"""Deviances of counts and amounts: losses of f = log of the mean, for targets that are never negative."""

from __future__ import annotations

import math

import numpy as np

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.linalg.namespace import epsilon, namespace, special, wright_omega
from empirisk.losses.base import Array, ScalarLoss, is_rounding, monotone_root

TINY = np.finfo(float).tiny
#: The largest f whose exponential is a number.
LARGEST = np.log(np.finfo(float).max)


def _growth(rate: float, e: Array) -> Array:
    """(exp(rate e) - 1) / rate, or its limit e."""
    return namespace(e).expm1(rate * e) / rate if rate else e


#: Below it differences that begin with a square are summed from their powers, of which the last one is rounding.
NEAR, POWERS = 0.02, 10


def _series(x: Array, factors: list[float], direct: Array) -> Array:
    """sum_k factors[k] x^(k + 2) where x is small: a difference of two numbers beside x has lost the digits of x^2."""
    xp = namespace(x)
    near = xp.abs(x) < NEAR
    small, total = xp.where(near, x, 0.0), 0.0
    for factor in reversed(factors):
        total = total * small + factor
    return xp.where(near, total * small * small, direct)


def _falling_root(z: Array, height: Array | float, rate: float) -> Array:
    """The root x of  x + height exp(rate x) = z."""
    if rate == 0:
        return z - height
    xp = namespace(z)
    move = wright_omega(xp.log(height * rate) + rate * z) / rate
    # The same point by the exponential, without the cancellation of a large move against a large z.
    return xp.where(rate * move > 1, xp.log(xp.maximum(move, 1.0 / rate) / height) / rate, z - move)


class Tweedie(ScalarLoss):
    """The unit deviance of a Tweedie distribution whose mean is exp(f), with variance in proportion to mean^power.

    With a = 2 - power and c = power - 1 it is, least and zero at exp(f) = y,

        2 y^a (exp(a e) / a + exp(-c e) / c - 1 / (a c)),  e = f - ln y,   and  2 exp(a f) / a  for y = 0.

    Power 1 is the Poisson deviance (counts), 2 the gamma deviance (positive amounts); between them are sums of a random
    number of amounts, with some exactly zero, such as rain or claims of a year. The squared loss is that of power 0
    with f itself as the mean. `predict` gives exp(f). scikit-learn's ``TweedieRegressor(power, alpha)`` halves the
    deviance and averages it; `scales.from_glm` converts its alpha.

    Parameters
    ----------
    power : float, default 1.5
        Of the mean in the variance, from 1 to 2.

    >>> Tweedie(1.5).value(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    array([4., 0.])
    """

    _state = state.State(power=state.number(1, 2))

    tasks = frozenset({"regression"})
    positive = True
    scored = True

    def __init__(self, power: float = 1.5):
        self.power = power

    def _rates(self) -> tuple[float, float]:
        """a = 2 - power and c = power - 1."""
        power = self._number("power", "a number from 1 to 2; 1 is 'poisson', 2 is 'gamma'", 1, 2)
        return 2.0 - power, power - 1.0

    @property
    def attained(self) -> bool:
        """Whether it is least at a finite f: not for y = 0, which the gamma deviance does not have."""
        return self._rates()[0] == 0

    def check_targets(self, y: Array) -> None:
        """Refuse targets that the distribution never has."""
        zero, least = self._rates()[0] > 0, float(y.min(initial=np.inf))
        if least < 0 or (least == 0 and not zero):
            needed = "zero or positive" if zero else "positive"
            raise EmpiriskError(
                f"y holds {least:g}, but loss={self!r} is for targets that are {needed}; use 'squared'."
            )

    # --- of a target of 1, with e the logarithm of the mean -------------------------------------------------------

    @property
    def interval(self) -> tuple[float, float]:
        """All slopes; for power 1 those above -2, for power 2 those below 2."""
        a, c = self._rates()
        return -np.inf if c else -2.0, np.inf if a else 2.0

    def phi(self, e: Array) -> Array:
        """2 (exp(a e) / a + exp(-c e) / c - 1 / (a c))."""
        a, c = self._rates()
        factors = [2 * (a**k - (-c) ** k) / math.factorial(k + 1) for k in range(1, POWERS)]
        with np.errstate(over="ignore"):
            return _series(e, factors, 2 * (_growth(a, e) - _growth(-c, e)))

    def slope(self, e: Array) -> Array:
        """2 (exp(a e) - exp(-c e))."""
        xp = namespace(e)
        a, c = self._rates()
        with np.errstate(over="ignore"):
            return 2 * (xp.expm1(a * e) - xp.expm1(-c * e))

    def bend(self, e: Array) -> Array:
        """2 (a exp(a e) + c exp(-c e))."""
        xp = namespace(e)
        a, c = self._rates()
        with np.errstate(over="ignore"):
            return 2 * (a * xp.exp(a * e) + (c * xp.exp(-c * e) if c else 0.0))

    def phi_conjugate(self, v: Array) -> Array:
        """v e - phi(e) where the slope is v: in closed form at the two ends of the power."""
        xp, functions = namespace(v), special(v)
        a, c = self._rates()
        t = 0.5 * v
        if a == 0 or c == 0:
            t = t if c == 0 else -t
            factors = [2 * (-1.0) ** k / (k * (k - 1)) for k in range(2, POWERS)]
            return _series(t, factors, 2 * (functions.xlog1py(1 + t, t) - t))
        # exp(a e) - exp(-c e) = t: the larger of the two powers is between |t| and |t| + 1.
        reach = xp.log1p(xp.abs(t))
        low, high = xp.where(t < 0, -reach / c, 0.0), xp.where(t > 0, reach / a, 0.0)
        start = xp.where(t > 0, high, low)
        e = monotone_root(lambda e: (0.5 * self.slope(e) - t, 0.5 * self.bend(e)), low, high, start)
        return v * e - self.phi(e)

    def phi_prox(self, e: Array, step: Array | float) -> Array:
        """The root x of  x + 2 step (exp(a x) - exp(-c x)) = e, between e and 0.

        With 1 for either power the root is known, and no nearer to 0; so the nearer of both is where the search begins.
        """
        xp = namespace(e)
        a, c = self._rates()
        one, other = _falling_root(e + 2 * step, 2 * step, a), -_falling_root(2 * step - e, 2 * step, c)
        start = xp.where(xp.abs(one) < xp.abs(other), one, other)

        def equation(x: Array) -> tuple[Array, Array]:
            return x - e + step * self.slope(x), 1 + step * self.bend(x)

        noise = 2 * epsilon(e) * xp.abs(e)
        return monotone_root(equation, xp.minimum(e, 0.0), xp.maximum(e, 0.0), start, noise)

    # --- of any target: y^a times that of 1, at f - ln y ----------------------------------------------------------

    def _parts(self, y: Array) -> tuple[Array, Array]:
        """y^a and ln y; of targets of zero those of one."""
        xp = namespace(y)
        y = xp.where(y > 0, y, 1.0)
        return y ** self._rates()[0], xp.log(y)

    def _at_zero(self, f: Array) -> Array:
        """2 exp(a f): the slope for y = 0."""
        with np.errstate(over="ignore"):
            return 2 * namespace(f).exp(self._rates()[0] * f)

    def value(self, y: Array, f: Array) -> Array:
        """y^a phi(f - ln y), or 2 exp(a f) / a for y = 0."""
        height, level = self._parts(y)
        zero = self._at_zero(f) / (self._rates()[0] or 1.0)
        return namespace(f).where(y > 0, height * self.phi(f - level), zero)

    def derivative(self, y: Array, f: Array) -> Array:
        """2 exp(-c f) (exp(f) - y)."""
        xp = namespace(f)
        height, level = self._parts(y)
        return xp.where(y > 0, height * self.slope(f - level), self._at_zero(f))

    def curvature(self, y: Array, f: Array) -> Array:
        """2 exp(-c f) (a exp(f) + c y)."""
        xp = namespace(f)
        height, level = self._parts(y)
        return xp.where(y > 0, height * self.bend(f - level), self._rates()[0] * self._at_zero(f))

    def conjugate(self, y: Array, u: Array) -> Array:
        """u ln y + y^a phi*(u / y^a), or (2 / a) (h ln h - h), h = u / 2, for y = 0."""
        xp, functions = namespace(u), special(u)
        a, _ = self._rates()
        height, level = self._parts(y)
        v = u / height
        inside, above = xp.clip(v, *self.interval), xp.maximum(0.5 * u, 0.0)
        positive = xp.where(is_rounding(v, inside), height * self.phi_conjugate(inside) + level * u, np.inf)
        zero = xp.where(u >= 0, (functions.xlogy(above, above) - above) * 2 / (a or 1.0), np.inf)
        return xp.where(y > 0, positive, zero)

    def domain(self, y: Array) -> tuple[Array, Array]:
        """y^a times the interval of phi*; from 0 on for y = 0."""
        xp = namespace(y)
        height, _ = self._parts(y)
        low, high = self.interval
        return xp.where(y > 0, height * low, 0.0), xp.where(y > 0, height * high, np.inf)

    def prox(self, y: Array, f: Array, step: Array | float) -> Array:
        """ln y plus the prox of phi at f - ln y; for y = 0 the root x of  x + 2 step exp(a x) = f."""
        xp = namespace(f)
        height, level = self._parts(y)
        zero = _falling_root(f, 2 * step, self._rates()[0])
        return xp.where(y > 0, level + self.phi_prox(f - level, step * height), zero)

    def counted_from(self, y: Array, begin: float) -> tuple[Array, float]:
        """y / exp(begin), and exp(a begin)."""
        return y * np.exp(-begin), float(np.exp(self._rates()[0] * begin))

    def inverse_link(self, f: Array) -> Array:
        """exp(f), the mean; the largest number where it overflows."""
        xp = namespace(f)
        return xp.exp(xp.minimum(f, LARGEST))

    def forward_link(self, prediction: Array) -> Array:
        """ln of the mean; of a mean that is not positive very low, but finite."""
        xp = namespace(prediction)
        return xp.log(xp.maximum(prediction, TINY))

    def best_constant(self, y: Array, weights: Array) -> float:
        """ln of the weighted mean, whatever the power; very low, but finite, where all targets are zero."""
        self._rates()
        return float(np.log(max(weights @ y / weights.sum(), TINY)))

    def best_shift(self, y: Array, f: Array, weights: Array) -> float:
        """ln of  sum_i w_i y_i exp(-c f_i) / sum_i w_i exp(a f_i);  downwards no farther than a Newton step.

        The best shift of targets that are all zero is minus infinity, and that of a few rows may be far below.
        """
        a, c = self._rates()
        top = float(f.max())
        upper, lower = float((weights * np.exp(c * (top - f))) @ y), float(weights @ np.exp(a * (f - top)))
        exact = float(np.log(upper / lower)) - top if upper > 0 else -np.inf
        if exact >= 0:
            return exact
        ratio = float(np.exp(exact))
        return max(exact, (ratio - 1) / (a + c * ratio))


class Poisson(Tweedie):
    """2 (exp(f) - y f + y ln y - y): the deviance of counts y >= 0 whose mean is exp(f).

    `predict` gives exp(f). scikit-learn's ``PoissonRegressor(alpha)`` halves the deviance and averages it;
    `scales.from_glm` converts its alpha.

    >>> Poisson().value(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    array([2., 0.])
    """

    power = 1.0

    def __init__(self):
        pass


class Gamma(Tweedie):
    """2 (f + y exp(-f) - ln y - 1): the deviance of amounts y > 0 whose mean is exp(f).

    It depends on y / exp(f) alone: errors count in per cent. `predict` gives exp(f). scikit-learn's
    ``GammaRegressor(alpha)`` halves the deviance and averages it; `scales.from_glm` converts its alpha.

    >>> Gamma().value(np.array([1.0]), np.array([0.0]))
    array([0.])
    """

    power = 2.0

    def __init__(self):
        pass
