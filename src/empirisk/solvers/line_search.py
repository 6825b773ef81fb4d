"""Line search along a convex function: Wolfe conditions at the full step, else a bracket on the derivative's root."""

from collections.abc import Callable

import numpy as np

EPSILON = np.finfo(float).eps
#: Trials of false position after which the step is cut to where the tangents at both ends of the bracket meet: for a
#: piecewise linear function that is the kink, and a step too long by many digits would shrink a few digits at a time.
TANGENT_TRIALS = 3


def line_search(along: Callable[[float], tuple[float, float]], value: float, slope: float) -> tuple[float, float]:
    """A step t that decreases a convex function along a line, and the value there.

    The full step is taken if it satisfies the Wolfe conditions; otherwise the root of the derivative is bracketed and
    found by false position and bisection; a step far too long is cut to where tangents meet.

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
    # The Wolfe conditions: a tenth of the decrease that the slope promises, and at most 0.9 of the slope left.
    if reached <= value + 0.1 * slope and abs(steep) <= 0.9 * abs(slope):
        return 1.0, reached
    low, low_slope = 0.0, slope
    high, high_slope, high_value = 1.0, steep, reached
    best = (1.0, reached) if reached < value else (0.0, value)
    # A function that still falls at t = 1e8 is unbounded below along the line.
    while high_slope < 0 and high < 1e8 and np.isfinite(reached):
        low, low_slope = high, high_slope
        high *= 2
        reached, high_slope = along(high)
        if reached < best[1]:
            best = (high, reached)
    # Every third trial is a bisection, geometric where the ends differ in size; after sixty trials no double is left
    # between the ends.
    for trial in range(60):
        # By convexity no place between the ends is lower than the best one by more.
        if -low_slope * (high - low) <= EPSILON * abs(best[1]):
            break
        known = np.isfinite(high_slope) and high_slope > low_slope and trial % 3 < 2
        # Where nothing has fallen yet, the slope at zero may be rounding: a half, a quarter, an eighth ... of the rest.
        middle = 0.5 * (low + high) if low else high * 0.5 ** (trial // 3 + 1)
        halfway = (low * high) ** 0.5 if high > 4 * low > 0 else middle
        t = low - low_slope * (high - low) / (high_slope - low_slope) if known else halfway
        if low == 0 and trial >= TANGENT_TRIALS and np.isfinite(high_value + high_slope):
            meet = (high_value - value - high_slope * high) / (slope - high_slope)
            t = min(t, max(meet, EPSILON * high))
        if not low < t < high:
            break
        reached, steep = along(t)
        if reached < best[1]:
            best = (t, reached)
        # A tenth of the slope left is enough: the direction is an estimate itself.
        if np.isfinite(steep) and abs(steep) <= 0.1 * abs(slope) and best[0] == t:
            break
        if steep < 0:
            low, low_slope = t, steep
        else:
            high, high_slope, high_value = t, steep, reached
    return best
