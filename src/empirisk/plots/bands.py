"""Scores over folds: a line for the mean, a band of one standard deviation around it."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.plots import style

Array = NDArray[np.float64]


def folds(argument: str, scores: Any, points: int) -> Array:
    """Scores as a matrix, points x folds; one score a point is one fold."""
    if scores is None:
        raise EmpiriskError(f"{argument} is missing; give its scores, one row for each point.")
    matrix = np.asarray(scores, dtype=np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or len(matrix) != points or not matrix.shape[1]:
        raise EmpiriskError(f"{argument} of shape {matrix.shape} must have a row of fold scores for each of {points}.")
    return matrix


def band(axes: Axes, across: Array, scores: Array, number: int, label: str) -> None:
    """Draw the mean over folds, and its spread where there are several."""
    mean = over_folds(np.nanmean, scores)
    axes.plot(
        across,
        mean,
        color=style.colour(number),
        linestyle=style.dashes(number),
        marker=style.marker(number),
        ms=4.5,
        lw=1.7,
        label=label,
        zorder=3,
    )
    if scores.shape[1] > 1:
        spread = over_folds(np.nanstd, scores)
        axes.fill_between(across, mean - spread, mean + spread, color=style.colour(number), alpha=0.18, linewidth=0)


def over_folds(function: Any, scores: Array) -> Array:
    """A statistic of each point's folds; NaN where no fold has a score."""
    known = ~np.isnan(scores).all(axis=1)
    out = np.full(len(scores), np.nan)
    out[known] = function(scores[known], axis=1)
    return out
