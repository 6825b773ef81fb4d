"""A quadratic with an l1 penalty, minimised on its Gram matrix."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.factor import Array, Cholesky, by_rank, lower, solved

Support = NDArray[np.intp]
#: Rounds of sweeps and solutions; two or three are usual.
ROUNDS = 30
#: Rounds without a half of the slack gone, after which the digits of the matrix are not enough.
FRUITLESS = 5
#: Entries of the matrix that sweeps read before the clock is looked at: some tenths of a second.
SWEPT = 1 << 28
#: Pivots below this share of the diagonal mean dependent columns.
DEPENDENT = 1e-13
#: The least curvature of dependent columns of size one.
RIDGE = 1e-13
#: How many weights, times the square of their number, may be dropped in turn before sweeps are better: all of a few
#: dozen, since sweeps would bring back every one of those that nearly equal columns share.
DROPS = 400_000


class Quadratic:
    """The function  l1 |w|_1 + l2/2 |w|^2 + 1/2 w'Gw - q'w  at a point w, which moves to its minimum.

    Parameters
    ----------
    matrix, diagonal : array
        G in the leading corner, and its diagonal; weights whose diagonal is zero stay as they are.
    w, gradient : array
        The weights, and Gw - q; both are updated in place.
    l1, l2 : float
        The strengths of the penalty.

    >>> w = np.zeros(2)
    >>> Quadratic(np.eye(2), np.ones(2), w, np.array([-3.0, 0.5]), l1=1.0, l2=0.0).minimise(1e-9)
    >>> w
    array([2., 0.])
    """

    def __init__(self, matrix: Array, diagonal: Array, w: Array, gradient: Array, l1: float, l2: float):
        self.matrix, self.diagonal, self.w, self.gradient, self.l1, self.l2 = matrix, diagonal, w, gradient, l1, l2

    def slack(self) -> float:
        """About how far the value is from the minimum."""
        return slack(self.w, self.gradient, self.l1, self.l2)

    def minimise(self, goal: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Minimise until the slack is within ``goal``, or until ``stop()``.

        Sweeps over single weights find out which are zero. When as much time has gone into them as a factorisation
        takes, the others are solved for directly: that ends the slow tail which correlated columns give to coordinate
        descent. After a round in vain weights leave zero one at a time: sweeps over all would bring back what the
        solution has dropped, where columns are nearly equal.
        """
        halved, since = np.inf, 0
        for _ in range(ROUNDS):
            # A factorisation of s columns costs about s/40 sweeps, and ten are cheap in any case.
            sweeps = 10 + int(np.count_nonzero(self.w)) // 40
            diagonal = self._entering() if since > 1 else self.diagonal
            if self._sweep(diagonal, sweeps, goal, stop):
                return
            self._solve()
            left = self.slack()
            halved, since = (left, 0) if left <= 0.5 * halved else (halved, since + 1)
            if left <= goal or since == FRUITLESS or stop():
                return

    def _sweep(self, diagonal: Array, sweeps: int, goal: float, stop: Callable[[], bool]) -> bool:
        """So many sweeps, few at a time of a large matrix; whether that is enough."""
        few = max(1, SWEPT // max(1, len(self.w) ** 2))
        for done in range(0, sweeps, few):
            count = min(few, sweeps - done)
            sweep(self.matrix, diagonal, self.w, self.gradient, self.l1, self.l2, count, goal)
            if self.slack() <= goal or stop():
                return True
        return False

    def step(self) -> Array:
        """The step to the minimum over the nonzero weights, whatever their signs; it may be too small to add."""
        support = self._support()
        step = np.zeros_like(self.w)
        if len(support):
            step[support] = -_solve(self._square(support), self._slopes(support))
        return step

    def _entering(self) -> Array:
        """The diagonal without all weights but the one that has most to gain by leaving zero."""
        excess = np.where((self.w == 0) & (self.diagonal > 0), np.abs(self.gradient) - self.l1, 0.0)
        return np.where((excess > 0) & (excess == excess.max()), self.diagonal, 0.0)

    def _support(self) -> Support:
        free = self.diagonal > 0
        return np.flatnonzero(free & (self.w != 0) if self.l1 > 0 else free)

    def _slopes(self, support: Support) -> Array:
        w = self.w[support]
        return self.gradient[support] + self.l2 * w + self.l1 * np.sign(w)

    def _square(self, support: Support) -> Array:
        square = self.matrix[np.ix_(support, support)]
        square.flat[:: len(support) + 1] += self.l2
        return square

    def _solve(self) -> None:
        """Go to the minimum over the nonzero weights, dropping those that would change their sign on the way."""
        support = self._support()
        for _ in range(1 + DROPS // (len(support) + 1) ** 2):
            if not len(support) or self._move(support):
                return
            support = self._support()

    def _move(self, support: Support) -> bool:
        """One such move; True if no weight was dropped."""
        square, slopes = self._square(support), self._slopes(support)
        old, sign = self.w[support], np.sign(self.w[support])
        step = -_solve(square, slopes)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step * sign < 0, -old / step, np.inf)
        longest = reach.min() if self.l1 > 0 else 1.0
        new = old + step
        if longest < 1:
            # Either stop at the first sign change, or set to zero all that would change sign, if that is better.
            cut = np.where(reach <= 1, 0.0, new)
            gain = float(slopes @ (cut - old) + 0.5 * (cut - old) @ (square @ (cut - old)))
            short = (longest - 0.5 * longest**2) * float(slopes @ step)
            new = cut if gain < short else np.where(reach <= longest, 0.0, old + longest * step)
        self.w[support] = new
        add_rows(self.matrix, support, new - old, self.gradient)
        return longest >= 1


def _solve(square: Array, right: Array) -> Array:
    """The solution of square x = right; with a small ridge where columns depend on each other."""
    factor, failed = lower(square)
    if failed or not np.all(factor.diagonal() ** 2 > DEPENDENT * square.diagonal()):
        return _of_dependent(square, right)
    return solved(factor, right)


def _of_dependent(square: Array, right: Array) -> Array:
    """The solution with a ridge of `RIDGE`, relative to the diagonal, at the cost of the rank of the square.

    Off the span of the columns there is no other curvature: what the right side has there gives a long way, to the
    weights that change their sign first.
    """
    rows, order, sizes = by_rank(square)
    scaled = (right / sizes)[order]
    span, root = np.linalg.qr(rows.T)
    inside = span.T @ scaled
    inner = root @ root.T
    inner.flat[:: len(inner) + 1] += RIDGE
    step = np.empty_like(right)
    step[order] = span @ Cholesky(inner, definite=True).solve(inside) + (scaled - span @ inside) / RIDGE
    return step / sizes


@plain_loop
def slack(w, gradient, l1, l2):
    """How far w is from optimal:  sum_j distance_j |w_j|  plus |w|_1 times the largest violation.

    To first order this is the duality gap of  l1 |w|_1 + l2/2 |w|^2  plus a smooth part with the given gradient.
    """
    total, norm, excess = 0.0, 0.0, 0.0
    for j in range(len(w)):
        size = abs(w[j])
        if size > 0.0:
            sign = 1.0 if w[j] > 0.0 else -1.0
            slope = sign * gradient[j] + l2 * size + l1
            total += abs(slope) * size
            norm += size
            excess = max(excess, -slope)
        else:
            excess = max(excess, abs(gradient[j]) - l1)
    if norm == 0.0:
        # No bound: as good as infinite, and safe in compiled sums.
        return 0.0 if excess <= 0.0 else 1e300
    return total + excess * norm


@plain_loop
def sweep(matrix, diagonal, w, gradient, l1, l2, sweeps, goal):
    """Minimise over one weight after another, at most ``sweeps`` times round, until the slack is within ``goal``.

    ``gradient`` is that of the smooth part and is kept up to date; columns with a zero diagonal are left alone.
    """
    size = len(w)
    for _ in range(sweeps):
        for j in range(size):
            curvature = diagonal[j]
            if curvature <= 0.0:
                continue
            old = w[j]
            pull = curvature * old - gradient[j]
            if pull > l1:
                new = (pull - l1) / (curvature + l2)
            elif pull < -l1:
                new = (pull + l1) / (curvature + l2)
            else:
                new = 0.0
            if new != old:
                w[j] = new
                step = new - old
                row = matrix[j]
                for i in range(size):
                    gradient[i] += step * row[i]
        if slack(w, gradient, l1, l2) <= goal:
            return


@plain_loop
def add_rows(matrix, chosen, factors, total):
    """total += sum_k factors_k matrix[chosen_k], over as many columns as there are totals."""
    for k in range(len(chosen)):
        row = matrix[chosen[k]]
        for i in range(len(total)):
            total[i] += factors[k] * row[i]
