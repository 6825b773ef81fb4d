"""Line searches: how far to go along a direction."""

from collections.abc import Callable

import numpy as np


def line_search(along: Callable[[float], tuple[float, float]], value: float, slope: float) -> tuple[float, float]:
    """A step t that decreases a convex function along a line, and the value there.

    The full step is taken if it brings a tenth of the promised decrease; otherwise the root of the derivative is
    bracketed and closed in on by false position and bisection.

    Parameters
    ----------
    along : callable
        t -> (value, derivative) on the line.
    value, slope : float
        Value and derivative at t = 0.

    >>> line_search(lambda t: ((t - 0.25) ** 2, 2 * (t - 0.25)), 0.0625, -0.5)
    (0.25, 0.0)
    """
    if not slope < 0:
        return 0.0, value
    reached, steep = along(1.0)
    if reached <= value + 0.1 * slope and abs(steep) <= 0.9 * abs(slope):
        return 1.0, reached
    low, low_slope = 0.0, slope
    high, high_slope = 1.0, steep
    best = (1.0, reached) if reached < value else (0.0, value)
    while high_slope < 0 and high < 1e8 and np.isfinite(reached):
        low, low_slope = high, high_slope
        high *= 2
        reached, high_slope = along(high)
        if reached < best[1]:
            best = (high, reached)
    for trial in range(60):
        known = np.isfinite(high_slope) and high_slope > low_slope and trial % 3 < 2
        t = low - low_slope * (high - low) / (high_slope - low_slope) if known else 0.5 * (low + high)
        if not low < t < high:
            break
        reached, steep = along(t)
        if reached < best[1]:
            best = (t, reached)
        if np.isfinite(steep) and abs(steep) <= 0.1 * abs(slope) and best[0] == t:
            break
        if steep < 0:
            low, low_slope = t, steep
        else:
            high, high_slope = t, steep
    return best
