"""Scores against the number of training rows."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.bands import band, folds


def learning_curve(
    sizes: Any,
    train: ArrayLike | None = None,
    validation: ArrayLike | None = None,
    *,
    diagnosis: str | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the scores on training and validation rows against the number of training rows, and name what ails.

    Parameters
    ----------
    sizes : LearningCurve, or array of k
        The curve, or its numbers of rows.
    train, validation : array, k x folds
        The scores, higher is better; not needed with a curve.
    diagnosis : str, optional
        What to write above; None takes that of the curve, or else judges by the last point.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.learning_curve([10, 100], [[1.0, 1.0], [1.0, 1.0]], [[0.5, 0.6], [0.7, 0.7]])
    >>> figure.axes[0].get_title(loc="left")
    'Learning curve\\nOverfitting: training scores 0.3 higher; more rows may help.'
    """
    metric = getattr(sizes, "metric", "score")
    if hasattr(sizes, "validation"):
        diagnosis = getattr(sizes, "diagnosis", None) if diagnosis is None else diagnosis
        sizes, train, validation = sizes.sizes, sizes.train, sizes.validation
    counts = np.asarray(sizes, dtype=np.float64)
    if counts.ndim != 1 or not len(counts) or not (counts > 0).all():
        raise EmpiriskError("sizes must be positive numbers of rows, or a LearningCurve.")
    learned, judged = folds("train", train, len(counts)), folds("validation", validation, len(counts))
    axes = style.canvas(axes)
    band(axes, counts, learned, 1, "training")
    band(axes, counts, judged, 0, "validation")
    if len(counts) > 1 and counts.max() > 30 * counts.min():
        axes.set_xscale("log")
    judgement = judge(learned, judged) if diagnosis is None else diagnosis
    style.dress(axes, f"Learning curve\n{style.sentence(judgement)}", "training rows", style.plain(metric))
    style.legend(axes)
    return style.root(axes)


def judge(learned: np.ndarray, judged: np.ndarray) -> str:
    """Over- or underfitting, by the scores at the last point and their spread over folds."""
    high, low = float(np.nanmean(learned[-1])), float(np.nanmean(judged[-1]))
    gap, spread = high - low, float(np.nanstd(judged[-1]))
    if gap > max(2 * spread, 0.02 * max(abs(high), abs(low))):
        return f"Overfitting: training scores {gap:.2g} higher; more rows may help."
    return "No overfitting: both scores are alike; if they are low, it underfits, and a richer machine may help."
