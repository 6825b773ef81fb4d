"""The dual iterate of the decomposition solver: variables, gradient, the samples still active, the working set."""

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Point, Problem
from empirisk.solvers import decomposition_loops as loops
from empirisk.solvers.decomposition_loops import FAR, Local
from empirisk.solvers.dual_start import beginning, best_intercept, settled
from empirisk.solvers.kernel_rows import KeptMatrix, RowCache, add_products

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
# The least curvature of a pair, in multiples of the rounding of a row's entry.
FLAT = 4.0
# Samples are set aside when few enough stay for it to pay.
ENOUGH = 0.6


class State:
    """u and the gradient of  1/2 u'Qu + c'u + tube |u|_1 + 1/2 sum_i bend_i u_i^2,  Q = K / l2.

    Parameters
    ----------
    problem : Problem
        Its loss states a `dual_quadratic`.
    source : KeptMatrix or RowCache
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

    def __init__(self, problem: Problem, source: KeptMatrix | RowCache, size: int, start: Point | None):
        self.problem, self.source, self.size = problem, source, size
        slope, self.tube, bend = problem.loss.dual_quadratic or (0.0, 0.0, 0.0)
        self.c = problem.y + slope if "regression" in problem.loss.tasks else slope * problem.y
        self.bends = bend / problem.scale
        self.low, self.high = (problem.scale * bound for bound in problem.loss.domain(problem.y))
        self.strength = problem.penalty.l2
        self.u, products = beginning(problem, self.low, self.high, start)
        self.active = np.arange(len(self.u))
        self.source.cover(self.active)
        self.working = np.arange(0)
        self._last = (self.working, np.empty((0, 0), dtype=source.rows.dtype))
        self._set_gradient(products)

    # --- exact values ---------------------------------------------------------------------------------------------

    def refresh(self) -> float:
        """Compute the gradient of every sample anew in double precision, and the best intercept; returns the gap.

        Samples that turn out to be in a violating pair become active again.
        """
        if self.problem.intercept:
            self.u = settled(self.u, self.low, self.high, -self.problem.tilt)
        products = self.problem.design.dot(self.weights())
        self._set_gradient(products)
        f = products + self.b
        problem, u = self.problem, self.u
        terms = problem.scale * (
            problem.loss.value(problem.y, f) + problem.loss.conjugate(problem.y, u / problem.scale)
        )
        return float(np.sum(terms - u * f))

    def _set_gradient(self, products: Array) -> None:
        """Gradient, offsets and value from A w; with it the best intercept."""
        G = self.c + self.bends * self.u - products
        lift, drop = np.empty_like(self.u), np.empty_like(self.u)
        loops.set_offsets(self.u, self.low, self.high, self.tube, lift, drop)
        self.value = 0.5 * float(np.sum(self.u * (self.c + G))) + self.tube * float(np.abs(self.u).sum())
        if len(self.active) < len(self.u):
            self._wake(G, lift, drop)
        chosen = self.active
        self.G, self.lift, self.drop = G[chosen], lift[chosen], drop[chosen]
        self.b = best_intercept(self.problem, products, *self.prices()) if self.problem.intercept else 0.0

    def _wake(self, G: Array, lift: Array, drop: Array) -> None:
        """Make samples active again that the exact gradient shows in a violating pair."""
        # Prices of the active samples: one that has gone far astray would make nearly all others look busy.
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

    def prices(self) -> tuple[float, float]:
        """The least cost of lifting a sample, and the largest gain of dropping one."""
        return self._limits(self.G + self.lift, self.G + self.drop)

    def _limits(self, costs: Array, gains: Array) -> tuple[float, float]:
        """The extremes; without an intercept, 0 is a partner for every sample."""
        up, down = float(costs.min()), float(gains.max())
        return (up, down) if self.problem.intercept else (min(up, 0.0), max(down, 0.0))

    def gap(self) -> float:
        """The duality gap as far as the active samples tell: their Fenchel-Young terms."""
        problem, active = self.problem, self.active
        up, down = self.prices()
        # Between the two, or where one of them is free, any intercept will do.
        self.b = 0.5 * (max(up, down - FAR) + min(down, up + FAR)) if problem.intercept else 0.0
        y, u, scale = problem.y[active], self.u[active], problem.scale[active]
        f = self.c[active] + self.bends[active] * u - self.G + self.b
        return float(np.sum(scale * (problem.loss.value(y, f) + problem.loss.conjugate(y, u / scale)) - u * f))

    # --- a round ----------------------------------------------------------------------------------------------------

    def round(self, share: float, limit: int) -> tuple[float, bool]:
        """Choose a working set and optimise it; returns how much the value fell, and whether ``limit`` steps did it."""
        fresh = self._choose()
        places = self.working
        samples = self.active[places]
        slots = self.source.fetch(samples)
        local = self._local(places, samples, slots, fresh)
        up, down = self.prices()
        before, old = local.G.copy(), local.u.copy()
        flat = FLAT * self.source.precision
        _, steps = loops.solve_pairs(local, self.tube, flat, max(share * (down - up), 0.0), limit)
        count = len(places)
        moved = (local.u - old)[:count]
        fall = -0.5 * float(moved @ (before + local.G)[:count])
        fall -= self.tube * float(np.abs(local.u[:count]).sum() - np.abs(old[:count]).sum())
        changed = np.flatnonzero(moved)
        add_products(self.source, slots[changed], moved[changed] / self.strength, self.G)
        self.G[places] += self.bends[samples] * moved
        self.u[samples] = local.u[:count]
        self.lift[places], self.drop[places] = local.lift[:count], local.drop[:count]
        self.value -= fall
        return fall, steps < limit

    def _local(self, places: Indices, samples: Indices, slots: Indices, fresh: int) -> Local:
        """The working set; without an intercept with one more variable, of no curvature and no bounds."""
        count = len(places)
        total = count + (not self.problem.intercept)
        Q = np.zeros((total, total), dtype=self.source.rows.dtype)
        self._fill_square(Q[:count, :count], places, samples, slots, fresh)
        diagonal = Q.diagonal().astype(np.float64)

        def padded(values: Array, last: float) -> Array:
            return values if total == count else np.append(values, last)

        u, low, high = (
            padded(self.u[samples], 0.0),
            padded(self.low[samples], -np.inf),
            padded(self.high[samples], np.inf),
        )
        G, lift, drop = padded(self.G[places], 0.0), padded(self.lift[places], 0.0), padded(self.drop[places], 0.0)
        return Local(Q, diagonal, u, low, high, G, lift, drop, np.empty(total, dtype=np.float32))

    def _fill_square(self, Q: NDArray, places: Indices, samples: Indices, slots: Indices, fresh: int) -> None:
        """Q among the working set, of which the first are new; what was there in the last round is copied from it."""
        loops.gather(self.source.rows, slots[:fresh], places, Q[:fresh])
        if self.strength != 1:
            Q[:fresh] /= Q.dtype.type(self.strength)
        Q[np.arange(fresh), np.arange(fresh)] += self.bends[samples[:fresh]].astype(Q.dtype)
        Q[fresh:, :fresh] = Q[:fresh, fresh:].T
        before, square = self._last
        place = np.empty(len(self.u), dtype=np.intp)
        place[before] = np.arange(len(before))
        stayed = place[samples[fresh:]]
        loops.gather(square, stayed, stayed, Q[fresh:, fresh:])
        self._last = (samples, Q)

    def _choose(self) -> int:
        """Half of the working set anew, from the most violating samples; of the old one the free and newest stay.

        Returns the number of the new ones, which come first.
        """
        cost, gain = self.G + self.lift, self.G + self.drop
        up, down = self._limits(cost, gain)
        fresh = self.size // 2 if len(self.working) else self.size
        taken = np.zeros(len(self.G), dtype=bool)
        taken[self.working] = True
        lifted = _smallest(np.where(taken | (cost >= down), FAR, cost), fresh // 2)
        taken[lifted] = True
        dropped = _smallest(np.where(taken | (gain <= up), FAR, -gain), fresh - fresh // 2)
        free = self.free()[self.working]
        old = np.concatenate([self.working[free], self.working[~free]])[: self.size - len(lifted) - len(dropped)]
        self.working = np.concatenate([lifted, dropped, old])
        return len(lifted) + len(dropped)

    def free(self) -> NDArray[np.bool_]:
        """Which active samples may move up and down."""
        return (self.lift < FAR) & (self.drop > -FAR)

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


def _smallest(values: Array, count: int) -> Indices:
    """The places of the smallest values below FAR, smallest first."""
    found = np.argpartition(values, count)[:count] if count < len(values) else np.arange(len(values))
    found = found[values[found] < 0.5 * FAR]
    return found[np.argsort(values[found], kind="stable")]
