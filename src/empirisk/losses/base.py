"""What a loss states about itself: value, derivatives, conjugate, prox, corners, link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import Unsuitable
from empirisk.linalg import blocks
from empirisk.linalg.namespace import epsilon, namespace
from empirisk.parts import Part

Array = NDArray[np.float64]

POSITIVE = np.nextafter(0.0, 1.0)  # the smallest number above zero
#: A Newton step of this share of a double changes its last digits only.
LAST_DIGITS = 1e-15


@dataclass(frozen=True)
class Ramp:
    """The corner  height * max(0, slope * z + offset)  inside a loss phi(z).

    >>> Ramp(slope=-1.0, offset=1.0).value(np.array([0.0, 2.0]))
    array([1., 0.])
    """

    slope: float
    offset: float
    height: float = 1.0

    def value(self, z: Array) -> Array:
        """height * max(0, slope * z + offset)."""
        return self.height * namespace(z).maximum(0.0, self.slope * z + self.offset)


class Loss(Part):
    """A loss(y, f) of a target y and a prediction f.

    Separable losses are phi(z) of one number: z = y f (the margin) for labels y in {-1, +1}, z = f - y for
    regression. A subclass writes phi once; `MarginLoss` and `ResidualLoss` turn it into functions of (y, f) and of
    the dual variable u, the derivative of the loss in f. What a loss does not state is refused with a sentence.

    >>> from empirisk.losses import Hinge
    >>> loss, y, f = Hinge(), np.array([1.0, -1.0]), np.array([0.5, 0.5])
    >>> loss.value(y, f), loss.derivative(y, f)
    (array([0.5, 1.5]), array([-1.,  1.]))
    """

    tasks: ClassVar[frozenset[str]] = frozenset()
    convex: ClassVar[bool] = True
    #: Whether the loss is a function of y f.
    margin_form: ClassVar[bool] = False
    #: Whether the loss is a function of f - y, so that shifting both changes nothing.
    residual_form: ClassVar[bool] = False
    #: Whether the curvature comes near zero and near infinity, so that plain Newton steps lose their way.
    steep: ClassVar[bool] = False
    #: Whether a finite prediction has the smallest loss; else it falls for ever as the margin grows.
    attained: ClassVar[bool] = True
    #: The loss (a name) whose zero set is the constraint that C = infinity means, if it means one.
    hard_form: ClassVar[str | None] = None
    #: Whether rows that are predicted well enough have the slope zero, so that only some rows support w.
    supported: ClassVar[bool] = False
    #: Whether the curvature is the same everywhere.
    quadratic: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    #: The joint multiclass loss (a name) of which this is the two-class case, if any.
    joint_form: ClassVar[str | None] = None
    #: What the curvature of a smooth joint loss is divided by.
    softness: ClassVar[float] = 1.0
    #: The loss of the margin that a joint loss is for two classes.
    two_class_form: ClassVar[Loss | None] = None
    #: Whether `link` may be reported as class probabilities: the minimiser of the expected loss determines them, and
    #: they stay inside (0, 1) up to rounding.
    probabilistic: ClassVar[bool] = False
    #: The largest second derivative in f; infinite where there is none.
    curvature_bound: ClassVar[float] = np.inf
    #: The ramps in phi; empty for a smooth loss. What remains without them is `smooth_part`.
    corners: ClassVar[tuple[Ramp, ...]] = ()
    #: (a, e, q) if the conjugate is phi*(v) = a v + e |v| + q v^2 / 2 on its domain, else None.
    dual_quadratic: ClassVar[tuple[float, float, float] | None] = None
    #: Whether targets must not be negative.
    positive: ClassVar[bool] = False
    #: Whether the score of a regressor is the share of this loss that it explains (D^2); else of the squares (R^2).
    scored: ClassVar[bool] = False
    #: A compiled pass over the rows of large data, as in `fused_pass`, if there is one.
    compiled_pass: ClassVar[Callable[..., float] | None] = None

    def value(self, y: Array, f: Array) -> Array:
        """loss(y, f), elementwise."""
        raise self._unstated("value")

    def derivative(self, y: Array, f: Array) -> Array:
        """d loss / d f, a subgradient at a corner."""
        raise self._unstated("derivative")

    def curvature(self, y: Array, f: Array) -> Array:
        """Second derivative in f (of the smooth pieces)."""
        raise self._unstated("curvature")

    def conjugate(self, y: Array, u: Array) -> Array:
        """sup_f  u f - loss(y, f); infinite outside `domain`."""
        raise self._unstated("conjugate")

    def domain(self, y: Array) -> tuple[Array, Array]:
        """The interval of u on which the conjugate is finite."""
        raise self._unstated("interval of dual variables")

    def prox(self, y: Array, f: Array, step: Array | float) -> Array:
        """argmin_z  loss(y, z) + (z - f)^2 / (2 step)."""
        raise self._unstated("prox")

    def link(self, f: Array) -> Array:
        """The class probabilities for which the prediction f minimises the expected loss."""
        raise self._unstated("link")

    def check_targets(self, y: Array) -> None:
        """Raise a sentence where the loss has no meaning for some of the targets."""

    def counted_from(self, y: Array, begin: float) -> tuple[Array, float]:
        """Targets and a factor with  loss(y, f) = factor loss(targets, f - begin), where there are any but for 0."""
        return y, 1.0

    def inverse_link(self, f: Array) -> Array:
        """The prediction of a number that f stands for: f itself, or the mean where f is a function of it."""
        return f

    def forward_link(self, prediction: Array) -> Array:
        """The f that stands for a prediction of a number."""
        return prediction

    def best_constant(self, y: Array, weights: Array) -> float | Array:
        """argmin_b  sum_i weights_i loss(y_i, b)."""
        raise self._unstated("best constant")

    def best_shift(self, y: Array, f: Array, weights: Array) -> float:
        """argmin_v  sum_i weights_i loss(y_i, f_i + v): the best value of a leaf that is added to predictions f."""
        raise self._unstated("best shift")

    def explained(self, y: Array, f: Array, weights: Array) -> float:
        """D^2: the share of the loss of the best constant that predictions f do not have; R^2 of the squared loss.

        Of several columns of targets the mean.
        """
        if y.ndim == 2:
            return float(np.mean([self.explained(*columns, weights) for columns in zip(y.T, f.T, strict=True)]))
        least = float(weights @ self.value(y, np.full(len(y), self.best_constant(y, weights))))
        left = float(weights @ self.value(y, f))
        if least > 0:
            return 1 - left / least
        return 1.0 if left == 0 else 0.0

    @property
    def smooth(self) -> bool:
        """Whether the loss is convex and has a derivative everywhere."""
        # Joint losses list no corners: those without a bound on their curvature have them.
        return self.convex and not self.corners and not (self.joint and self.curvature_bound == np.inf)

    @property
    def smooth_part(self) -> Loss | None:
        """The loss without its corners: itself where it has none, None where nothing remains."""
        return self if not self.corners else None

    def _unstated(self, what: str) -> Unsuitable:
        return Unsuitable(f"loss={self!r} states no {what}; choose a loss that does, such as 'logistic' or 'squared'.")


class ScalarLoss(Loss):
    """A loss phi(z) of one number z: subclasses write phi, `MarginLoss` and `ResidualLoss` say what z is."""

    #: Interval of v on which phi* is finite.
    interval: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def phi(self, z: Array) -> Array:
        """phi(z)."""
        raise self._unstated("value")

    def slope(self, z: Array) -> Array:
        """phi'(z), a subgradient at a corner."""
        raise self._unstated("derivative")

    def bend(self, z: Array) -> Array:
        """phi''(z), zero on straight pieces."""
        return namespace(z).zeros_like(z)

    def phi_conjugate(self, v: Array) -> Array:
        """phi*(v), for v inside `interval`."""
        raise self._unstated("conjugate")

    def phi_prox(self, z: Array, step: Array | float) -> Array:
        """argmin_x  phi(x) + (x - z)^2 / (2 step)."""
        raise self._unstated("prox")

    def best_constant(self, y: Array, weights: Array) -> float:
        """argmin_b  sum_i weights_i loss(y_i, b): the root of the derivative, which is increasing."""
        y, weights = y[weights > 0], weights[weights > 0]

        def slope(b: Array) -> tuple[Array, Array]:
            flat = np.full(len(y), b[0])
            return np.array([weights @ self.derivative(y, flat)]), np.array([weights @ self.curvature(y, flat)])

        # Residuals change sign between the smallest and the largest y; margins may need a wider bracket.
        low, high, reach = y.min(keepdims=True), y.max(keepdims=True), 1.0
        while slope(low)[0] > 0 or slope(high)[0] < 0:
            low, high, reach = low - reach, high + reach, 2 * reach
        return float(monotone_root(slope, low, high, 0.5 * (low + high))[0])

    def _conjugate(self, v: Array) -> Array:
        xp = namespace(v)
        inside = xp.clip(v, *self.interval)
        return xp.where(is_rounding(v, inside), self.phi_conjugate(inside), np.inf)


def is_rounding(v: Array, end: Array) -> NDArray[np.bool_]:
    """Whether v equals the end of an interval, or is next to it: scaled by a weight and back, an end may round."""
    xp = namespace(v)
    return xp.abs(v - end) <= 2 * epsilon(v) * xp.abs(end)


class MarginLoss(ScalarLoss):
    """A classification loss phi(t) of the margin t = y f, with y in {-1, +1}."""

    tasks = frozenset({"classification"})
    margin_form = True

    def value(self, y: Array, f: Array) -> Array:
        """phi(y f)."""
        return self.phi(y * f)

    def derivative(self, y: Array, f: Array) -> Array:
        """y phi'(y f)."""
        return y * self.slope(y * f)

    def curvature(self, y: Array, f: Array) -> Array:
        """phi''(y f)."""
        return self.bend(y * f)

    def conjugate(self, y: Array, u: Array) -> Array:
        """phi*(y u)."""
        return self._conjugate(y * u)

    def domain(self, y: Array) -> tuple[Array, Array]:
        """The interval of phi*, mirrored for y = -1."""
        xp = namespace(y)
        low, high = self.interval
        return xp.where(y > 0, low, -high), xp.where(y > 0, high, -low)

    def prox(self, y: Array, f: Array, step: Array | float) -> Array:
        """y times the prox of phi at y f."""
        return y * self.phi_prox(y * f, step)

    def best_shift(self, y: Array, f: Array, weights: Array) -> float:
        """For a loss of ramps only: a weighted quantile of their corners in v.

        Each ramp  height * max(0, slope * z + offset)  of the margin z has its corner at  z = -offset / slope,  where
        the derivative jumps by height * |slope|. Far to the left the derivative is minus the sum over the ramps that
        fall there; the minimum is where the jumps have made up for it.
        """
        heights = [ramp.height * abs(ramp.slope) for ramp in self.corners]
        points = np.concatenate([-ramp.offset / ramp.slope * y - f for ramp in self.corners])
        jumps = np.concatenate([height * weights for height in heights])
        falls = np.concatenate([ramp.slope * y < 0 for ramp in self.corners])
        target, order = float(jumps @ falls), np.argsort(points, kind="stable")
        reached = np.cumsum(jumps[order])
        slack = 1e-12 * reached[-1]  # sums of weights are rounded: nearly equal is equal
        ends = np.minimum(np.searchsorted(reached, [target - slack, target + slack]), len(order) - 1)
        return float(points[order[ends]].mean())

    def link(self, f: Array) -> Array:
        """P[y = +1 | f]: the p for which f minimises p phi(f) + (1 - p) phi(-f), 1/2 where every p does."""
        xp = namespace(f)
        down, up = self.slope(f), self.slope(-f)
        both = up + down
        return xp.where(both == 0, 0.5, up / xp.where(both == 0, 1.0, both))


def class_totals(y: Array, weights: Array) -> tuple[float, float]:
    """The weight of the negative and of the positive labels: all that a constant prediction depends on."""

    def run(rows: slice) -> Array:
        positive = np.where(y[rows] > 0, weights[rows], 0.0)
        return np.array([(weights[rows] - positive).sum(), positive.sum()])

    negative, positive = blocks.sum_of_rows(run, len(y))
    return float(negative), float(positive)


def log_odds(y: Array, weights: Array) -> float:
    """ln of positive over negative weight; about +-700 where a class is absent, so that all that follows is finite."""
    negative, positive = np.maximum(class_totals(y, weights), np.finfo(float).tiny)
    return float(np.log(positive) - np.log(negative))


class ResidualLoss(ScalarLoss):
    """A regression loss phi(e) of the residual e = f - y."""

    tasks = frozenset({"regression"})
    residual_form = True

    def value(self, y: Array, f: Array) -> Array:
        """phi(f - y)."""
        return self.phi(f - y)

    def derivative(self, y: Array, f: Array) -> Array:
        """phi'(f - y)."""
        return self.slope(f - y)

    def curvature(self, y: Array, f: Array) -> Array:
        """phi''(f - y)."""
        return self.bend(f - y)

    def conjugate(self, y: Array, u: Array) -> Array:
        """u y + phi*(u)."""
        return u * y + self._conjugate(u)

    def domain(self, y: Array) -> tuple[Array, Array]:
        """The interval of phi*, for every y."""
        xp = namespace(y)
        low, high = self.interval
        return xp.full(y.shape, low), xp.full(y.shape, high)

    def prox(self, y: Array, f: Array, step: Array | float) -> Array:
        """y plus the prox of phi at f - y."""
        return y + self.phi_prox(f - y, step)

    def counted_from(self, y: Array, begin: float) -> tuple[Array, float]:
        """y - begin, and 1."""
        return y - begin, 1.0

    def best_shift(self, y: Array, f: Array, weights: Array) -> float:
        """The best constant of the residuals."""
        return self.best_constant(y - f, weights)


def monotone_root(
    equation: Callable[[Array], tuple[Array, Array]],
    low: Array,
    high: Array,
    start: Array,
    noise: Array | float = 0.0,
) -> Array:
    """Elementwise root of an increasing function between brackets: Newton, with bisection where Newton leaves them.

    ``equation(x)`` returns the values and the slopes at x; ``noise`` is the rounding error of the values near the
    root, within which there is nothing left to search for.

    >>> monotone_root(lambda x: (x**3 - 8.0, 3 * x**2), np.array([0.0]), np.array([9.0]), np.array([9.0]))
    array([2.])
    """
    xp = namespace(start)
    x, rounding = xp.clip(start, low, high), max(LAST_DIGITS, 4 * epsilon(start))
    # Bisection alone halves the widest bracket of doubles to one number in fewer; Newton needs about five.
    for _ in range(200):
        value, slope = equation(x)
        low, high = xp.where(value < 0, x, low), xp.where(value > 0, x, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = x - value / slope
        # Done also where Newton no longer moves; but an infinite slope, at the edge of a steep piece, says nothing.
        done = (xp.abs(value) <= noise) | ((xp.abs(newton - x) <= rounding * xp.abs(x)) & xp.isfinite(slope))
        if done.all():
            return x
        inside = (newton > low) & (newton < high)
        x = xp.where(done, x, xp.where(inside, newton, 0.5 * (low + high)))
    return x
