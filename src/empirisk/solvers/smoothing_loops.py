"""Compiled passes over rounded corners; see `smoothing` for the formulas. Each covers entries start..stop.

``shape`` holds the left slope, the right slope and tau.
"""

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def along(a, da, t, centre, scale, shape, start, stop):
    """Value and derivative in t of  sum_i scale_i (v a - tau/2 (v - centre)^2)  at a + t da, v the best slope."""
    left, right, tau = shape
    value = 0.0
    slope = 0.0
    for i in range(start, stop):
        position = a[i] + t * da[i]
        v = min(max(centre[i] + position / tau, left), right)
        away = v - centre[i]
        value += scale[i] * (v * position - 0.5 * tau * away * away)
        slope += scale[i] * v * da[i]
    return value, slope


@njit(cache=True, nogil=True, error_model="numpy")
def slopes_and_bends(a, centre, scale, shape, slopes, bends, start, stop):
    """The slopes scale v, the curvatures scale / tau of the kinks whose v is free; returns the value of `along`."""
    left, right, tau = shape
    value = 0.0
    for i in range(start, stop):
        free = centre[i] + a[i] / tau
        v = min(max(free, left), right)
        away = v - centre[i]
        value += scale[i] * (v * a[i] - 0.5 * tau * away * away)
        bends[i] = scale[i] / tau if left < free < right else 0.0
        slopes[i] = scale[i] * v
    return value
