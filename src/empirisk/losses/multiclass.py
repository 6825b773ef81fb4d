"""Joint multiclass losses of all K scores of a sample at once."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit, logsumexp

from empirisk import state
from empirisk.linalg.namespace import epsilon, namespace, special, with_entries, wright_omega
from empirisk.losses.base import POSITIVE, Array, Loss, monotone_root
from empirisk.losses.margin import SoftHinge


class JointLoss(Loss):
    """A loss(y, F) of a class number y in 0..K-1 and a row F of K scores.

    Joint losses are a maximum over the simplex: loss = max_p <p, F + cost> + temperature entropy - F_y. Their dual
    variable is u = p - onehot(y) with p in the simplex; `simplex_point` recovers p, and the curvature of a smooth one
    is (diag(p) - p p') / `softness`.
    """

    tasks = frozenset({"classification"})
    joint = True

    @staticmethod
    def onehot(y: Array, classes: int) -> Array:
        """The n x K indicator matrix of the classes."""
        return namespace(y).eye(classes)[y.astype(int)]

    @staticmethod
    def own(y: Array, f: Array) -> Array:
        """F_y of each row, as a column."""
        return namespace(f).take_along_axis(f, y.astype(int)[:, None], axis=1)

    def simplex_point(self, y: Array, u: Array) -> Array:
        """p = u + onehot(y)."""
        return u + self.onehot(y, u.shape[1])

    def shrink(self, y: Array, u: Array) -> Array:
        """The nearest-by-clipping u whose p lies in the simplex; u = 0 where nothing of p is left."""
        xp = namespace(u)
        p = xp.maximum(self.simplex_point(y, u), 0.0)
        total = p.sum(axis=1, keepdims=True)
        onehot = self.onehot(y, u.shape[1])
        return xp.where(total > 0, p / xp.where(total > 0, total, 1.0), onehot) - onehot

    def _outside(self, p: Array) -> Array:
        """Whether rows leave the simplex by more than rounding."""
        xp = namespace(p)
        # Shares come from divisions by the scale: each is off by rounding, their sum by that of all classes.
        return (p.min(axis=1) < -1e-12) | (xp.abs(p.sum(axis=1) - 1) > 1e-9)


class Softmax(JointLoss):
    """Cross-entropy  log sum_j exp(F_j) - F_y.

    >>> Softmax().value(np.array([0]), np.array([[0.0, 0.0]])).round(4)
    array([0.6931])
    """

    probabilistic = True
    attained = False
    curvature_bound = 0.5

    def _others(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """exp(F_j - top) of all classes but y, where it is 0; their sum; and top - F_y, which is 0 where F_y is top."""
        xp = namespace(f)
        top = f.max(axis=1, keepdims=True)
        own = self.own(y, f)
        others = with_entries(xp.exp(f - top), y.astype(int)[:, None], 0.0, axis=1)
        return others, others.sum(axis=1, keepdims=True), top - own

    def value(self, y: Array, f: Array) -> Array:
        """log sum_j exp(F_j - F_y), which keeps small losses exact where F is large."""
        xp = namespace(f)
        _, total, behind = self._others(y, f)
        return (behind + xp.log1p(total + xp.expm1(-behind)))[:, 0]

    def derivative(self, y: Array, f: Array) -> Array:
        """softmax(F) - onehot(y), with -(the sum of the others) as its own entry: no cancellation as p_y -> 1."""
        xp = namespace(f)
        others, total, behind = self._others(y, f)
        whole = total + xp.exp(-behind)
        others /= whole
        return with_entries(others, y.astype(int)[:, None], -total / whole, axis=1)

    def curvature(self, y: Array, f: Array) -> Array:
        """diag(p) - p p' of each row, n x K x K."""
        xp, functions = namespace(f), special(f)
        p = functions.softmax(f, axis=1)
        return p[:, :, None] * (xp.eye(f.shape[1]) - p[:, None, :])

    def conjugate(self, y: Array, u: Array) -> Array:
        """sum_j p_j ln p_j on the simplex."""
        xp, functions = namespace(u), special(u)
        p = self.simplex_point(y, u)
        return xp.where(self._outside(p), np.inf, functions.xlogy(xp.maximum(p, 0), xp.maximum(p, 0)).sum(axis=1))

    def prox(self, y: Array, f: Array, step: Array | float) -> Array:
        """x = f - step (softmax(x) - onehot(y)).

        With level = log sum_j exp(x_j) and goal = f + step onehot(y) each entry obeys step p_j = goal_j - x_j =
        omega(goal_j - level + log step), omega the Wright function. The level (counted here from the highest goal)
        at which the p_j sum to 1 is the root of one convex function. Two Newton steps on x then remove the rounding
        of that detour.
        """
        xp = namespace(f)
        steps: Array = xp.broadcast_to(xp.asarray(step, dtype=float).reshape(-1, 1), (len(f), 1))
        classes = f.shape[1]
        goal = f + steps * self.onehot(y, classes)
        below = goal - goal.max(axis=1, keepdims=True) + xp.log(steps)

        def equation(level: Array) -> tuple[Array, Array]:
            moves = wright_omega(below - level)
            return steps - moves.sum(axis=1, keepdims=True), (moves / (1 + moves)).sum(axis=1, keepdims=True)

        # Between: the highest entry alone moves by step, or all move by step / K.
        low, high = -steps, xp.log(classes) - steps / classes
        noise = epsilon(f) * steps * (classes + xp.abs(xp.log(steps)))
        level = monotone_root(equation, low, high, low, noise)
        x = goal - wright_omega(below - level)
        for _ in range(2):
            x = x - self._newton_step(y, f, steps, x)
        return x

    def _newton_step(self, y: Array, f: Array, step: Array, x: Array) -> Array:
        """(I + step (diag(p) - p p'))^-1 (x - f + step derivative), the inverse by Sherman and Morrison."""
        p = special(x).softmax(x, axis=1)
        weight = 1 / (1 + step * p)
        scaled = weight * (x - f + step * self.derivative(y, x))
        pull = step * (p * scaled).sum(axis=1, keepdims=True) / (p * weight).sum(axis=1, keepdims=True)
        return scaled + weight * p * pull

    def link(self, f: Array) -> Array:
        """Class probabilities, row by row."""
        return special(f).softmax(f, axis=1)

    def best_constant(self, y: Array, weights: Array) -> Array:
        """ln of the class frequencies, centred; very low, but finite, for a class without weight."""
        totals = np.bincount(y.astype(int), weights=weights)
        b = np.log(np.maximum(totals / totals.sum(), np.finfo(float).tiny))
        return b - b.mean()


class CrammerSinger(JointLoss):
    """max_j (1[j != y] + F_j - F_y).

    >>> CrammerSinger().value(np.array([0]), np.array([[3.0, 0.0]]))
    array([0.])
    """

    hard_form = "crammer_singer"
    supported = True

    @staticmethod
    def cost(y: Array, classes: int) -> Array:
        """1[j != y]."""
        return 1.0 - JointLoss.onehot(y, classes)

    def value(self, y: Array, f: Array) -> Array:
        """max_j (cost_j + F_j - F_y)."""
        return (f - self.own(y, f) + self.cost(y, f.shape[1])).max(axis=1)

    def derivative(self, y: Array, f: Array) -> Array:
        """onehot(the class that attains the maximum) - onehot(y)."""
        worst = (f - self.own(y, f) + self.cost(y, f.shape[1])).argmax(axis=1)
        return self.onehot(worst, f.shape[1]) - self.onehot(y, f.shape[1])

    def curvature(self, y: Array, f: Array) -> Array:
        """Zero, n x K x K."""
        return namespace(f).zeros((*f.shape, f.shape[1]))

    def conjugate(self, y: Array, u: Array) -> Array:
        """-<p, cost> on the simplex."""
        xp = namespace(u)
        p = self.simplex_point(y, u)
        return xp.where(self._outside(p), np.inf, -(p * self.cost(y, u.shape[1])).sum(axis=1))

    def prox(self, y: Array, f: Array, step: Array | float) -> Array:
        """The scores cut off at a level: x_j = min(f_j, level - 1) for j != y, x_y = min(f_y + step, level).

        What is cut off the others is given to x_y, up to step. Either x_y ends at the level, or it takes all of
        step; each case gives the level as the largest average over the m highest others, the larger level holds.
        """
        xp = namespace(f)
        step = xp.broadcast_to(xp.asarray(step, dtype=float).reshape(-1, 1), (len(f), 1))
        is_own, own = self.onehot(y, f.shape[1]) > 0, self.own(y, f)
        sums = xp.cumsum(-xp.sort(xp.where(is_own, np.inf, -(f + 1)), axis=1), axis=1)
        count = xp.arange(1, f.shape[1] + 1)
        met = xp.maximum(own, ((own + sums) / (1 + count)).max(axis=1, keepdims=True))
        level = xp.maximum(met, ((sums - step) / count).max(axis=1, keepdims=True))
        return xp.where(is_own, xp.minimum(own + step, level), xp.minimum(f, level - 1))

    def best_constant(self, y: Array, weights: Array) -> Array:
        """A class with more than half of the weight stands 1 above the others, else all are equal; centred.

        Raising a class by a <= 1 above the rest changes the mean loss by a (1 - 2 share); lowering a class below the
        second highest only adds to its own loss.
        """
        totals = np.bincount(y.astype(int), weights=weights)
        b = np.where(totals > 0.5 * totals.sum(), 1.0, 0.0)
        return b - b.mean()


class SoftCrammerSinger(JointLoss):
    """temperature * log sum_j exp((margin 1[j != y] + F_j - F_y) / temperature).

    The softmax with margin 0 and temperature 1, and the Crammer-Singer loss as the temperature falls to 0; with two
    classes it is the soft hinge of F_y minus the other score.

    Parameters
    ----------
    margin : float, default 1.0
        By how much the own score is to lead, zero or positive.
    temperature : float, default 1.0
        How soft the maximum is, positive.

    >>> SoftCrammerSinger(temperature=0.1).value(np.array([0]), np.array([[3.0, 0.0], [0.5, 0.0]])[:1]).round(4)
    array([0.])
    """

    _state = state.State(margin=state.number(0), temperature=state.number(0))

    probabilistic = True
    attained = False

    def __init__(self, margin: float = 1.0, temperature: float = 1.0):
        self.margin = margin
        self.temperature = temperature

    @property
    def softness(self) -> float:
        """The temperature: what the curvature is divided by."""
        what = "a positive number; use the crammer_singer loss for the limit 0"
        return self._number("temperature", what, POSITIVE)

    def _lead(self) -> float:
        return self._number("margin", "a number, zero or positive; 1 is that of crammer_singer", 0)

    @property
    def curvature_bound(self) -> float:
        """That of the softmax over the temperature."""
        return 0.5 / self.softness

    @property
    def two_class_form(self) -> SoftHinge:
        """The soft hinge."""
        return SoftHinge(self._lead(), self.softness)

    def _cost(self, y: Array, classes: int) -> Array:
        """margin 1[j != y]."""
        return self._lead() * (1.0 - self.onehot(y, classes))

    def _scaled(self, y: Array, f: Array) -> Array:
        """(F_j - F_y + cost_j) / temperature, kept finite where a tiny temperature overflows."""
        xp = namespace(f)
        with np.errstate(over="ignore"):
            scaled = (f - self.own(y, f) + self._cost(y, f.shape[1])) / self.softness
        largest = float(np.finfo(scaled.dtype).max)
        return xp.clip(scaled, -largest, largest)

    def value(self, y: Array, f: Array) -> Array:
        """temperature times the softmax loss of the scaled scores."""
        return self.softness * Softmax().value(y, self._scaled(y, f))

    def derivative(self, y: Array, f: Array) -> Array:
        """That of the softmax loss of the scaled scores."""
        return Softmax().derivative(y, self._scaled(y, f))

    def curvature(self, y: Array, f: Array) -> Array:
        """(diag(p) - p p') / temperature of each row, n x K x K."""
        return Softmax().curvature(y, self._scaled(y, f)) / self.softness

    def conjugate(self, y: Array, u: Array) -> Array:
        """temperature sum_j p_j ln p_j - <p, cost> on the simplex."""
        entropy = Softmax().conjugate(y, u)
        return self.softness * entropy - (self.simplex_point(y, u) * self._cost(y, u.shape[1])).sum(axis=1)

    def prox(self, y: Array, f: Array, step: Array | float) -> Array:
        """That of the softmax loss with step / temperature, in scaled scores."""
        xp = namespace(f)
        own, cost = self.own(y, f), self._cost(y, f.shape[1])
        near = Softmax().prox(y, self._scaled(y, f), xp.asarray(step) / self.softness)
        return own + self.softness * near - cost

    def link(self, f: Array) -> Array:
        """p_k in proportion to  q_k (q_k exp(-margin / temperature) + 1 - q_k),  q = softmax(F / temperature)."""
        xp, functions = namespace(f), special(f)
        with np.errstate(over="ignore"):
            log_q = functions.log_softmax((f - f.max(axis=1, keepdims=True)) / self.softness, axis=1)
        p = functions.softmax(log_q + xp.logaddexp(log_q - self._lead() / self.softness, _log_of_others(log_q)), axis=1)
        # Well inside the margin the largest differ by less than rounding: that of the highest score is next above.
        first = f.argmax(axis=1)[:, None]
        lead = xp.take_along_axis(p, first, axis=1)
        p = with_entries(p, first, 0.0, axis=1)
        return with_entries(p, first, xp.maximum(lead, xp.nextafter(p.max(axis=1, keepdims=True), 2.0)), axis=1)

    def best_constant(self, y: Array, weights: Array) -> Array:
        """The scores whose `link` are the class frequencies, centred; very low, but finite, for a class without weight.

        By `link` the frequency h_k = c q_k (1 - (1 - r) q_k) with r = exp(-margin / temperature). Given q of the most
        frequent class, c follows, and all other q as the smaller roots: one number is left, at which they sum to 1. It
        is searched for as the log-odds of q, and all is computed in logarithms, since r may be smaller than any number.
        """
        totals = np.bincount(y.astype(int), weights=weights)
        log_h = np.log(np.maximum(totals / totals.sum(), np.finfo(float).tiny))
        top = int(log_h.argmax())
        log_r = -self._lead() / self.softness
        others = np.delete(log_h, top) - log_h[top]

        def log_others(odds: float) -> Array:
            """ln q of the other classes."""
            log_q = log_expit(odds)
            log_ratio = log_q + np.logaddexp(log_r + log_q, log_expit(-odds)) + others
            inner = np.maximum(1 + 4 * np.expm1(log_r) * np.exp(log_ratio), 0.0)
            return np.log(2) + log_ratio - np.log1p(np.sqrt(inner))

        def excess(odds: float) -> float:
            return float(logsumexp(log_others(odds)) - log_expit(-odds))

        low, high = -np.log(len(log_h)) - 1e-9, 1.0
        while excess(high) < 0:
            high *= 2
        odds = float(brentq(excess, low, high, xtol=1e-14, rtol=1e-15)) if excess(low) < 0 else low
        b = self.softness * np.insert(log_others(odds), top, log_expit(odds))
        return b - b.mean()


def _log_of_others(log_q: Array) -> Array:
    """ln of the sum over all other classes, without subtracting."""
    xp = namespace(log_q)
    below = xp.logaddexp.accumulate(log_q, axis=1)
    above = xp.logaddexp.accumulate(log_q[:, ::-1], axis=1)[:, ::-1]
    nothing = xp.full((len(log_q), 1), -np.inf)
    return xp.logaddexp(xp.hstack([nothing, below[:, :-1]]), xp.hstack([above[:, 1:], nothing]))
