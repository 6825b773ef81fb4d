"""The dual iterate of the decomposition: its variables, gradient and active samples, and pair steps in a working set.

The gradient G = Q u + c has one number per sample. Moving u_i up costs G_i + lift_i, moving it down gains G_i + drop_i:
beyond a bound lift is +FAR and drop is -FAR, at a kink of the conjugate they are apart. With offsets instead of masks
the searches for the best pair are plain reductions, which the processor does for several samples at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import inner_with, plain, plain_loop
from empirisk.problem import Array, Point, Problem
from empirisk.solvers.rows.dual_start import balanced, beginning, best_intercept, dual_terms
from empirisk.solvers.rows.row_cache import Indices, RowSource, gather

#: Beyond every gradient, and still finite.
FAR = 1e300
#: Beyond FAR, to begin a search for the least or the largest.
BEYOND = 1e308
#: A curvature that is not zero.
TINY = 1e-300
# The least curvature of a pair, in multiples of the rounding of a row's entry.
FLAT = 4.0
# Shrinking: samples at their bounds are set aside when few enough stay for it to pay.
ENOUGH = 0.6


class Local(NamedTuple):
    """A working set: its variables, bounds, gradient and offsets, and its part of Q."""

    Q: NDArray
    diagonal: Array
    u: Array
    low: Array
    high: Array
    G: Array
    lift: Array
    drop: Array
    gains: NDArray


# No number is NaN or infinite here (the caller looks at the rows first), so reductions may be reordered.
FINITE = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}


@inner_with(FINITE)
def _advance(G, lift, first, second, step):
    """G += step (first - second), and the smallest G + lift."""
    least = BEYOND
    for k in range(len(G)):
        G[k] += step * (first[k] - second[k])
        cost = G[k] + lift[k]
        least = cost if cost < least else least
    return least


@inner_with(FINITE)
def _gains(G, drop, row, diagonal, own, price, flat, gains):
    """What the best step with each partner gains, up to a factor of one half; and the largest violation and gain."""
    worst = -BEYOND
    best = gains[0] * 0
    for k in range(len(G)):
        violation = G[k] + drop[k] - price
        worst = violation if violation > worst else worst
        violation = violation if violation > 0 else 0.0
        curvature, least = own + diagonal[k] - 2 * row[k], flat * abs(own + diagonal[k]) + TINY
        curvature = curvature if curvature > least else least
        gains[k] = violation * violation / curvature
        best = gains[k] if gains[k] > best else best
    return worst, best


@plain
def _find(values, value):
    """The first place of a value that is known to be there."""
    for k in range(len(values)):
        if values[k] == value:
            return k
    return -1


@plain
def _find_sum(G, lift, value):
    """The place of the smallest G + lift, given its value; rounding may differ in the last digit."""
    place = 0
    for k in range(len(G)):
        if G[k] + lift[k] <= value:
            return k
        if G[k] + lift[k] < G[place] + lift[place]:
            place = k
    return place


@plain
def _offsets(u, low, high, tube):
    lift = FAR if u >= high else (tube if u >= 0 else -tube)
    drop = -FAR if u <= low else (-tube if u <= 0 else tube)
    return lift, drop


@plain_loop
def solve_pairs(local, tube, flat, tol, limit):
    """Second-order pair steps until the largest violation is within ``tol``; returns it and the steps taken.

    The first of a pair is the one that is cheapest to lift, the second the one with which the step gains most.
    """
    u, G, lift, drop, diagonal = local.u, local.G, local.lift, local.drop, local.diagonal
    step, i, j = 0.0, 0, 0
    worst = 0.0
    if len(u) == 0:  # nothing to choose from: all samples rest at their bounds
        return worst, 0
    for count in range(limit):
        price = _advance(G, lift, local.Q[i], local.Q[j], step)
        if price >= 0.5 * FAR:
            return 0.0, count
        i = _find_sum(G, lift, price)
        price = G[i] + lift[i]
        worst, best = _gains(G, drop, local.Q[i], diagonal, diagonal[i], price, flat, local.gains)
        if worst <= tol or best <= 0:
            return worst, count
        j = _find(local.gains, best)
        violation = G[j] + drop[j] - price
        both = diagonal[i] + diagonal[j]
        curvature, least = both - 2 * local.Q[i, j], flat * abs(both) + TINY
        curvature = curvature if curvature > least else least
        ceiling = 0.0 if tube > 0 and u[i] < 0 else local.high[i]
        floor = 0.0 if tube > 0 and u[j] > 0 else local.low[j]
        step = violation / curvature
        up, down = ceiling - u[i], u[j] - floor
        reach = up if up < step else step
        reach = down if down < reach else reach
        # A bound is met exactly, so that the offsets see it.
        u[i] = ceiling if reach == up else u[i] + reach
        u[j] = floor if reach == down else u[j] - reach
        step = reach
        lift[i], drop[i] = _offsets(u[i], local.low[i], local.high[i], tube)
        lift[j], drop[j] = _offsets(u[j], local.low[j], local.high[j], tube)
    _advance(G, lift, local.Q[i], local.Q[j], step)
    return worst, limit


class DualIterate:
    """u and the gradient of  1/2 u'Qu + c'u + tube |u|_1 + 1/2 sum_i bend_i u_i^2,  Q = K / l2.

    Parameters
    ----------
    problem : Problem
        Its loss states a `dual_quadratic`.
    source : RowSource
        Rows of K.
    size : int
        Samples in a working set.
    start : Point, optional
        A warm start.

    Attributes
    ----------
    u : array
        The dual point, for all samples.
    active : array
        The samples whose gradient is kept up to date; the others rest at a bound.
    G, lift, drop : arrays
        Gradient and offsets of the active samples.
    value : float
        What is minimised: minus the dual objective.
    """

    def __init__(self, problem: Problem, source: RowSource, size: int, start: Point | None):
        self.problem, self.source, self.size = problem, source, size
        self.c, self.tube, self.bends, self.low, self.high = dual_terms(problem)
        self.strength = problem.penalty.l2
        self.u, products = beginning(problem, self.low, self.high, start)
        self.active = np.arange(len(self.u))
        self.source.cover(self.active)
        self.working = np.arange(0)
        self._constants: tuple[Indices, list[Array]] = (self.working, [])
        self._last = (self.working, np.empty((0, 0), dtype=source.dtype))
        self._set_gradient(products)

    # --- exact values ---------------------------------------------------------------------------------------------

    def refresh(self) -> float:
        """Compute the gradient of every sample again in double precision, and the best intercept; returns the gap.

        Samples that turn out to be in a violating pair become active again.
        """
        if self.problem.intercept:
            self.u = balanced(self.u, self.low, self.high, -self.problem.tilt)
        products = self.problem.design.dot(self.weights())
        self._set_gradient(products)
        return self._fenchel(self.problem.y, self.problem.scale, self.u, products + self.b)

    def _fenchel(self, y: Array, scale: Array, u: Array, f: Array) -> float:
        """The sum of the Fenchel-Young terms  s loss(f) + s loss*(u / s) - u f."""
        loss = self.problem.loss
        return float(np.sum(scale * (loss.value(y, f) + loss.conjugate(y, u / scale)) - u * f))

    def _set_gradient(self, products: Array) -> None:
        """Gradient, offsets and value from A w; with it the best intercept."""
        G = self.c + self.bends * self.u - products
        lift = np.where(self.u >= self.high, FAR, np.where(self.u >= 0, self.tube, -self.tube))
        drop = np.where(self.u <= self.low, -FAR, np.where(self.u <= 0, -self.tube, self.tube))
        self.value = 0.5 * float(np.sum(self.u * (self.c + G))) + self.tube * float(np.abs(self.u).sum())
        if len(self.active) < len(self.u):
            self._wake(G, lift, drop)
        chosen = self.active
        self.G, self.lift, self.drop = G[chosen], lift[chosen], drop[chosen]
        self.b = best_intercept(self.problem, products, *self.intercept_bounds()) if self.problem.intercept else 0.0

    def _wake(self, G: Array, lift: Array, drop: Array) -> None:
        """Make samples active again that the exact gradient shows in a violating pair."""
        # Bounds from the active samples alone: one sample far from its optimum would keep nearly all others active.
        up, down = self._limits((G + lift)[self.active], (G + drop)[self.active])
        busy = (G + lift <= down) | (G + drop >= up)
        busy[self.active] = False
        if not busy.any():
            return
        busy[self.active] = True
        at = self.active[self.working]
        self.active = np.flatnonzero(busy)
        self.working = np.searchsorted(self.active, at)
        self.source.cover(self.active)

    def weights(self) -> Array:
        """The coefficients beta = -u / l2 of w."""
        return -self.u / self.strength

    def point(self) -> Point:
        """The point with the latest intercept."""
        return Point(self.weights(), self.b, self.u.copy())

    # --- how far from the optimum -----------------------------------------------------------------------------------

    def intercept_bounds(self) -> tuple[float, float]:
        """Bounds of the intercept by the KKT conditions: least cost of raising a u_i, largest gain of lowering one."""
        return self._limits(self.G + self.lift, self.G + self.drop)

    def _limits(self, costs: Array, gains: Array) -> tuple[float, float]:
        """The extremes; without an intercept, 0 is a partner for every sample."""
        up, down = float(costs.min()), float(gains.max())
        return (up, down) if self.problem.intercept else (min(up, 0.0), max(down, 0.0))

    def gap(self) -> float:
        """The duality gap of the active samples: the sum of their Fenchel-Young terms."""
        problem, active = self.problem, self.active
        up, down = self.intercept_bounds()
        # Between the two, or where one of them is free, any intercept will do.
        self.b = 0.5 * (max(up, down - FAR) + min(down, up + FAR)) if problem.intercept else 0.0
        if self._constants[0] is not active:
            numbers = (problem.y, problem.scale, self.c, self.bends)
            self._constants = (active, [values[active] for values in numbers])
        y, scale, c, bends = self._constants[1]
        u = self.u[active]
        return self._fenchel(y, scale, u, c + bends * u - self.G + self.b)

    # --- a round ----------------------------------------------------------------------------------------------------

    def round(self, share: float, limit: int) -> tuple[float, bool]:
        """Choose a working set and optimise it; returns how much the value fell, and whether ``limit`` steps did it."""
        fresh, violation = self._choose()
        places = self.working
        samples = self.active[places]
        slots = self.source.fetch(samples)
        local = self._local(places, samples, slots, fresh)
        before, old = local.G.copy(), local.u.copy()
        flat = FLAT * float(np.finfo(self.source.dtype).eps)
        _, steps = solve_pairs(local, self.tube, flat, max(share * violation, 0.0), limit)
        count = len(places)
        moved = (local.u - old)[:count]
        fall = -0.5 * float(moved @ (before + local.G)[:count])
        fall -= self.tube * float(np.abs(local.u[:count]).sum() - np.abs(old[:count]).sum())
        changed = np.flatnonzero(moved)
        self.source.add_products(slots[changed], moved[changed] / self.strength, self.G)
        self.G[places] += self.bends[samples] * moved
        self.u[samples] = local.u[:count]
        self.lift[places], self.drop[places] = local.lift[:count], local.drop[:count]
        self.value -= fall
        return fall, steps < limit

    def _local(self, places: Indices, samples: Indices, slots: Indices, fresh: int) -> Local:
        """The working set; without an intercept with one more variable, of no curvature and no bounds."""
        count = len(places)
        total = count + (not self.problem.intercept)
        Q = np.zeros((total, total), dtype=self.source.dtype)
        self._fill_square(Q, places, samples, slots, fresh)
        diagonal = Q.diagonal().astype(np.float64)

        numbers = [values[samples] for values in (self.u, self.low, self.high)]
        numbers += [values[places] for values in (self.G, self.lift, self.drop)]
        if total > count:
            free = (0.0, -np.inf, np.inf, 0.0, 0.0, 0.0)
            numbers = [np.append(values, last) for values, last in zip(numbers, free, strict=True)]
        return Local(Q, diagonal, *numbers, gains=np.empty(total, dtype=np.float32))

    def _fill_square(self, Q: NDArray, places: Indices, samples: Indices, slots: Indices, fresh: int) -> None:
        """Q among the working set, of which the first are new; what was there in the last round is copied from it."""
        count = len(places)
        self.source.gather(slots[:fresh], places, Q)
        if self.strength != 1:
            Q[:fresh] /= Q.dtype.type(self.strength)
        Q[np.arange(fresh), np.arange(fresh)] += self.bends[samples[:fresh]].astype(Q.dtype)
        Q[fresh:count, :fresh] = Q[:fresh, fresh:count].T
        before, square = self._last
        place = np.empty(len(self.u), dtype=np.intp)
        place[before] = np.arange(len(before))
        stayed = place[samples[fresh:]]
        gather(square, stayed, stayed, Q, fresh)
        self._last = (samples, Q)

    def _choose(self) -> tuple[int, float]:
        """Half of the working set new, from the most violating samples; of the old one the free and newest stay.

        Returns the number of the new ones, which come first, and the largest violation.
        """
        cost, gain = self.G + self.lift, self.G + self.drop
        up, down = self._limits(cost, gain)
        fresh = self.size // 2 if len(self.working) else self.size
        others = np.ones(len(self.G), dtype=bool)
        others[self.working] = False
        lifted = _smallest(cost, others & (cost < down), fresh // 2)
        others[lifted] = False
        dropped = _smallest(-gain, others & (gain > up), fresh - fresh // 2)
        free = ((self.lift < FAR) & (self.drop > -FAR))[self.working]
        old = np.concatenate([self.working[free], self.working[~free]])[: self.size - len(lifted) - len(dropped)]
        self.working = np.concatenate([lifted, dropped, old])
        return len(lifted) + len(dropped), down - up

    def shrink(self) -> None:
        """Set samples aside that rest at a bound and are in no violating pair, if they are many."""
        if not self.source.narrows:
            return
        cost, gain = self.G + self.lift, self.G + self.drop
        up, down = self._limits(cost, gain)
        idle = (cost > down) & (gain < up)
        idle[self.working] = False
        kept = np.flatnonzero(~idle)
        if len(kept) > ENOUGH * len(idle):
            return
        self.source.narrow(kept)
        place = np.full(len(idle), -1)
        place[kept] = np.arange(len(kept))
        self.active, self.working = self.active[kept], place[self.working]
        self.G, self.lift, self.drop = self.G[kept], self.lift[kept], self.drop[kept]


def _smallest(values: Array, allowed: NDArray[np.bool_], count: int) -> Indices:
    """The places of the smallest of the values that are allowed and below FAR, smallest first."""
    found = np.flatnonzero(allowed)
    if count < len(found):
        found = found[np.argpartition(values[found], count)[:count]]
    found = found[values[found] < 0.5 * FAR]
    return found[np.argsort(values[found], kind="stable")]
