"""A quadratic with an l1 penalty, minimised on its Gram matrix."""

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.factor import Cholesky
from empirisk.solvers.coordinate_loops import slack, sweep

Array = NDArray[np.float64]
ROUNDS = 30
DROPS = 30


def minimise(matrix: Array, diagonal: Array, w: Array, gradient: Array, l1: float, l2: float, goal: float) -> None:
    """Minimise  l1 |w|_1 + l2/2 |w|^2 + 1/2 w'Gw - q'w  in place, until the slack is within ``goal``.

    Sweeps over single weights find out which are zero; when as much time has gone into them as a factorisation
    would take, the others are solved for directly, with their signs held. That ends the slow tail that correlated
    columns give to coordinate descent.

    Parameters
    ----------
    matrix, diagonal : array
        G in the leading corner, and its diagonal; weights whose diagonal is zero stay as they are.
    w, gradient : array
        The weights, and Gw - q, both updated.
    l1, l2 : float
        The strengths of the penalty.
    goal : float
        The slack, about the distance from the minimum, that is good enough.
    """
    for _ in range(ROUNDS):
        sweep(matrix, diagonal, w, gradient, l1, l2, 10 + np.count_nonzero(w) // 40, goal)
        before = slack(w, gradient, l1, l2)
        if before <= goal:
            return
        solve_support(matrix, diagonal, w, gradient, l1, l2)
        if slack(w, gradient, l1, l2) <= goal:
            return


def solve_support(matrix: Array, diagonal: Array, w: Array, gradient: Array, l1: float, l2: float) -> None:
    """Go to the minimum over the nonzero weights, dropping those that would change their sign on the way."""
    for _ in range(DROPS):
        free = diagonal > 0
        support = np.flatnonzero(free & (w != 0) if l1 > 0 else free)
        if not len(support) or _step(matrix, w, gradient, l1, l2, support):
            return


def _step(matrix: Array, w: Array, gradient: Array, l1: float, l2: float, support: NDArray[np.intp]) -> bool:
    """One such move; True if no weight was dropped."""
    square = matrix[np.ix_(support, support)]
    square.flat[:: len(support) + 1] += l2
    old, sign = w[support], np.sign(w[support])
    slope = gradient[support] + l2 * old + l1 * sign
    step = Cholesky(square).solve(-slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(step * sign < 0, -old / step, np.inf)
    longest = reach.min() if l1 > 0 else 1.0
    new = old + step
    if longest < 1:
        # Either stop at the first sign change, or set to zero all that would change sign, if that is better.
        cut = np.where(reach <= 1, 0.0, new)
        gain = float(slope @ (cut - old) + 0.5 * (cut - old) @ (square @ (cut - old)))
        short = (longest - 0.5 * longest**2) * float(slope @ step)
        new = cut if gain < short else np.where(reach <= longest, 0.0, old + longest * step)
    w[support] = new
    gradient += (new - old) @ matrix[support, : len(w)]
    return longest >= 1


def support_step(matrix: Array, diagonal: Array, w: Array, gradient: Array, l1: float, l2: float) -> Array:
    """The step from w to the minimum over the nonzero weights, whatever their signs; it may be too small to add."""
    support = np.flatnonzero((diagonal > 0) & (w != 0))
    square = matrix[np.ix_(support, support)]
    square.flat[:: len(support) + 1] += l2
    slope = gradient[support] + l2 * w[support] + l1 * np.sign(w[support])
    step = np.zeros_like(w)
    step[support] = Cholesky(square).solve(-slope)
    return step
