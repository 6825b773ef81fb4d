"""The corners of a loss as kinks: at each place, a slope to the left and a slope to the right."""

import numpy as np
from numpy.typing import NDArray

from empirisk.losses.base import Loss
from empirisk.problem import Problem

Array = NDArray[np.float64]


def corners_of(loss: Loss) -> dict[float, tuple[float, float]]:
    """The kinks max(left a, right a), a = z - place, that the ramps of a loss add up to."""
    corners: dict[float, list[float]] = {}
    for ramp in loss.corners:
        slopes = corners.setdefault(-ramp.offset / ramp.slope, [0.0, 0.0])
        slopes[ramp.slope > 0] += ramp.slope * ramp.height
    return {place: (left, right) for place, (left, right) in corners.items()}


def spread_of(problem: Problem) -> float:
    """The size of the numbers z that a loss sees: 1 for margins, the mean deviation of y for residuals."""
    if problem.loss.margin_form:
        return 1.0
    return float(np.abs(problem.y - problem.origin().b).mean()) + 1e-8
