"""Losses of the margin t = y f, for classification."""

from __future__ import annotations

import numpy as np

from empirisk import state
from empirisk.linalg.namespace import epsilon, log_expit, namespace, special, wright_omega
from empirisk.losses.base import POSITIVE, Array, MarginLoss, Ramp, class_totals, log_odds, monotone_root
from empirisk.losses.fused_pass import logistic_pass


class ZeroOne(MarginLoss):
    """1[t <= 0]: what is counted, not what is minimised.

    It is not convex: its derivative is zero wherever it has one, and it states no prox.

    >>> ZeroOne().value(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    array([0., 1.])
    """

    convex = False
    interval = (0.0, 0.0)

    def phi(self, t: Array) -> Array:
        """1[t <= 0]."""
        return namespace(t).where(t <= 0, 1.0, 0.0)

    def slope(self, t: Array) -> Array:
        """0, on both sides of the jump."""
        return namespace(t).zeros_like(t)

    def phi_conjugate(self, v: Array) -> Array:
        """0, at v = 0 only."""
        return namespace(v).zeros_like(v)

    def best_constant(self, y: Array, weights: Array) -> float:
        """+1 or -1, the class with more weight; a tie is the positive class."""
        negative, positive = class_totals(y, weights)
        return 1.0 if positive >= negative else -1.0


class Perceptron(MarginLoss):
    """max(0, -t).

    >>> Perceptron().value(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    array([0., 2.])
    """

    interval = (-1.0, 0.0)
    corners = (Ramp(-1.0, 0.0),)
    dual_quadratic = (0.0, 0.0, 0.0)

    def phi(self, t: Array) -> Array:
        """max(0, -t)."""
        return namespace(t).maximum(0.0, -t)

    def slope(self, t: Array) -> Array:
        """-1[t <= 0]: at the corner it moves, so that the perceptron leaves w = 0."""
        return namespace(t).where(t <= 0, -1.0, 0.0)

    def phi_conjugate(self, v: Array) -> Array:
        """0."""
        return namespace(v).zeros_like(v)

    def phi_prox(self, t: Array, step: Array | float) -> Array:
        """t + step, as far as the corner at 0."""
        xp = namespace(t)
        return xp.where(t >= 0, t, xp.minimum(t + step, 0.0))

    def best_constant(self, y: Array, weights: Array) -> float:
        """0, whatever the labels."""
        return 0.0


class Hinge(MarginLoss):
    """max(0, 1 - t).

    >>> Hinge().value(np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    array([0.5, 1.5])
    """

    interval = (-1.0, 0.0)
    corners = (Ramp(-1.0, 1.0),)
    dual_quadratic = (1.0, 0.0, 0.0)
    hard_form = "hinge"
    supported = True
    joint_form = "crammer_singer"

    def phi(self, t: Array) -> Array:
        """max(0, 1 - t)."""
        return namespace(t).maximum(0.0, 1.0 - t)

    def slope(self, t: Array) -> Array:
        """-1[t < 1]."""
        return namespace(t).where(t < 1, -1.0, 0.0)

    def phi_conjugate(self, v: Array) -> Array:
        """v itself."""
        return v

    def phi_prox(self, t: Array, step: Array | float) -> Array:
        """t + step, as far as the corner at 1."""
        xp = namespace(t)
        return xp.where(t >= 1, t, xp.minimum(t + step, 1.0))

    def best_constant(self, y: Array, weights: Array) -> float:
        """+1 or -1, the class with more weight; 0 for a tie."""
        negative, positive = class_totals(y, weights)
        return float(np.sign(positive - negative))


class SquaredHinge(MarginLoss):
    """max(0, 1 - t)^2.

    >>> SquaredHinge().value(np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    array([0.25, 2.25])
    """

    interval = (-np.inf, 0.0)
    curvature_bound = 2.0
    dual_quadratic = (1.0, 0.0, 0.5)
    hard_form = "hinge"
    supported = True

    def phi(self, t: Array) -> Array:
        """max(0, 1 - t)^2."""
        return namespace(t).maximum(0.0, 1.0 - t) ** 2

    def slope(self, t: Array) -> Array:
        """-2 max(0, 1 - t)."""
        return -2.0 * namespace(t).maximum(0.0, 1.0 - t)

    def bend(self, t: Array) -> Array:
        """2 [t < 1]."""
        return namespace(t).where(t < 1, 2.0, 0.0)

    def phi_conjugate(self, v: Array) -> Array:
        """v + v^2 / 4."""
        return v + 0.25 * v**2

    def phi_prox(self, t: Array, step: Array | float) -> Array:
        """(t + 2 step) / (1 + 2 step) below t = 1."""
        return namespace(t).where(t >= 1, t, (t + 2 * step) / (1 + 2 * step))

    def best_constant(self, y: Array, weights: Array) -> float:
        """The weighted mean of the labels."""
        negative, positive = class_totals(y, weights)
        return (positive - negative) / (positive + negative)


class SoftHinge(MarginLoss):
    """temperature * ln(1 + exp((margin - t) / temperature)): logistic at (0, 1), the hinge as temperature -> 0.

    Parameters
    ----------
    margin : float, default 1.0
        Where the loss turns from falling to flat.
    temperature : float, default 1.0
        How soft the turn is, positive.

    >>> SoftHinge(margin=0.0, temperature=1.0).value(np.array([1.0]), np.array([0.0])).round(4)
    array([0.6931])
    """

    _state = state.State(margin=state.number(), temperature=state.number(0))

    interval = (-1.0, 0.0)
    probabilistic = True
    attained = False

    def __init__(self, margin: float = 1.0, temperature: float = 1.0):
        self.margin = margin
        self.temperature = temperature

    def _softness(self) -> float:
        return self._number("temperature", "a positive number; use the hinge loss for the limit 0", POSITIVE)

    def _turn(self) -> float:
        return self._number("margin", "a finite number; 1 is the hinge's")

    def _pressure(self, t: Array) -> Array:
        """(margin - t) / temperature, kept finite where a tiny temperature overflows."""
        turn, soft = self._turn(), self._softness()
        if soft >= 1:
            return (turn - t) / soft if soft > 1 else turn - t
        with np.errstate(over="ignore"):
            pressure = (turn - t) / soft
        largest = float(np.finfo(pressure.dtype).max)
        return namespace(t).clip(pressure, -largest, largest)

    @property
    def curvature_bound(self) -> float:
        """1 / (4 temperature), at t = margin."""
        return 0.25 / self._softness()

    def phi(self, t: Array) -> Array:
        """The ramp max(0, margin - t) plus what the softness adds, so that nothing overflows."""
        xp = namespace(t)
        rounding = self._softness() * xp.log1p(xp.exp(-xp.abs(self._pressure(t))))
        return xp.maximum(0.0, self._turn() - t) + rounding

    def slope(self, t: Array) -> Array:
        """-sigmoid((margin - t) / temperature)."""
        return -special(t).expit(self._pressure(t))

    def bend(self, t: Array) -> Array:
        """sigmoid (1 - sigmoid) / temperature."""
        functions, pressure = special(t), self._pressure(t)
        return functions.expit(pressure) * functions.expit(-pressure) / self._softness()

    def phi_conjugate(self, v: Array) -> Array:
        """v margin + temperature ((-v) ln(-v) + (1 + v) ln(1 + v))."""
        functions = special(v)
        return v * self._turn() + self._softness() * (functions.xlogy(-v, -v) + functions.xlog1py(1 + v, v))

    def phi_prox(self, t: Array, step: Array | float) -> Array:
        """The root x of  x = t + step sigmoid((margin - x) / temperature), between t and t + step."""
        xp = namespace(t)

        def equation(x: Array) -> tuple[Array, Array]:
            return x - t + step * self.slope(x), 1 + step * self.bend(x)

        noise = 2 * epsilon(t) * xp.abs(t)
        return monotone_root(equation, t, t + step, self._near_prox(t, step), noise)

    def _near_prox(self, t: Array, step: Array | float) -> Array:
        """The prox with e^a for sigmoid(a), good beyond the margin; what ends before it is mirrored there and back."""
        xp = namespace(t)
        turn, soft = self._turn(), self._softness()
        beyond = turn - t < 0.5 * step
        start = xp.where(beyond, t, 2 * turn - t - step)
        move = soft * wright_omega(xp.log(step) - xp.log(soft) + self._pressure(start))
        x = xp.where(move > soft, turn + soft * xp.log(step / xp.maximum(move, soft)), start + move)
        return xp.where(beyond, x, 2 * turn - x)

    def link(self, f: Array) -> Array:
        """sigmoid(ln(-phi'(-f)) - ln(-phi'(f))): in logarithms, since both slopes may underflow."""
        xp, functions = namespace(f), special(f)
        p = functions.expit(log_expit(self._pressure(-f)) - log_expit(self._pressure(f)))
        # Well inside a margin p differs from 1/2 by less than rounding, but not for f = 0 alone.
        return xp.where((p == 0.5) & (f != 0), xp.nextafter(0.5, xp.sign(f)), p)

    def best_constant(self, y: Array, weights: Array) -> float:
        """The root of  sinh(b / temperature - r) = e^(margin / temperature) sinh(r)  with r half the log odds."""
        half = 0.5 * log_odds(y, weights)
        if half == 0:
            return 0.0
        size = self._turn() / self._softness() + np.log(np.sinh(abs(half)))
        # arcsinh(e^size), by its limit before e^size overflows
        turn = size + np.log(2) if size > 30 else np.arcsinh(np.exp(size))
        return float(np.sign(half) * self._softness() * (abs(half) + turn))


class Logistic(SoftHinge):
    """ln(1 + e^-t).

    >>> Logistic().value(np.array([1.0]), np.array([0.0])).round(4)
    array([0.6931])
    """

    margin = 0.0
    temperature = 1.0
    joint_form = "softmax"
    compiled_pass = staticmethod(logistic_pass)

    def __init__(self):
        pass


class Exponential(MarginLoss):
    """e^-t.

    >>> Exponential().value(np.array([1.0, -1.0]), np.array([0.0, 0.0]))
    array([1., 1.])
    """

    interval = (-np.inf, 0.0)
    probabilistic = True
    attained = False

    def phi(self, t: Array) -> Array:
        """e^-t, infinite where it overflows."""
        with np.errstate(over="ignore"):
            return namespace(t).exp(-t)

    def slope(self, t: Array) -> Array:
        """-e^-t."""
        return -self.phi(t)

    def bend(self, t: Array) -> Array:
        """e^-t."""
        return self.phi(t)

    def phi_conjugate(self, v: Array) -> Array:
        """(-v) ln(-v) + v."""
        return special(v).xlogy(-v, -v) + v

    def phi_prox(self, t: Array, step: Array | float) -> Array:
        """t + move, where  move e^move = step e^-t."""
        xp = namespace(t)
        move = wright_omega(xp.log(step) - t)
        # The same point is ln(step / move), without the cancellation of a large move against a large -t.
        return xp.where(move > 1, xp.log(step / xp.maximum(move, 1.0)), t + move)

    def link(self, f: Array) -> Array:
        """sigmoid(2 f)."""
        return special(f).expit(2 * f)

    def best_constant(self, y: Array, weights: Array) -> float:
        """Half the log odds."""
        return 0.5 * log_odds(y, weights)
