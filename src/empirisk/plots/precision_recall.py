"""Precision against recall, for classes that are rare."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score, precision_recall_curve

from empirisk.plots import style
from empirisk.plots.pairs import scored


def precision_recall(
    truth: Any,
    scores: ArrayLike | None = None,
    *,
    threshold: Any = None,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw precision against recall over all thresholds; chance is a level line at the positive rate.

    Parameters
    ----------
    truth : array of n, or the result of an evaluation
        The true classes.
    scores : array of n, or n x classes
        Scores or probabilities, higher for the positive class; a column for each of several classes. Not needed with
        a result.
    threshold : float or ThresholdChoice, optional
        The chosen threshold, or what `empirisk.selection.choose_threshold` returns, to be marked: rows with a score
        of at least this are called positive.
    positive : class, optional
        The class to find; None takes the second of two, and each of several against the others.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.precision_recall([0, 0, 0, 1], [0.1, 0.6, 0.4, 0.9])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['1: average 1.000', 'chance: 0.250']
    """
    threshold = getattr(threshold, "threshold", threshold)
    curves = scored(truth, scores, positive, sample_weight)
    axes = style.canvas(axes, (6.4 if len(curves) < 4 else 7.8, 4.4))
    for number, one in enumerate(curves):
        precision, recall, _ = precision_recall_curve(one.belongs, one.scores, sample_weight=one.weights)
        precision[-1] = precision[-2]  # the curve is said to begin at a precision of 1, which no threshold gives
        average = average_precision_score(one.belongs, one.scores, sample_weight=one.weights)
        line = {"color": style.colour(number), "linestyle": style.dashes(number), "lw": 1.8}
        # Precision holds until the next threshold: steps, not slopes, which would promise what no threshold gives.
        axes.step(recall, precision, where="post", label=f"{style.plain(one.name)}: average {average:.3f}", **line)
        said = np.zeros(len(one.scores), dtype=bool) if threshold is None else one.scores >= threshold
        if (said & (one.weights > 0)).any():  # a threshold above every score has no precision
            place = one.share(said, one.belongs), one.share(one.belongs, said)
            label = f"threshold {threshold:.3g}" if number == len(curves) - 1 else None
            axes.plot(*place, "o", color=style.colour(number), markeredgecolor=style.INK, ms=8, zorder=4, label=label)
    for number, one in enumerate(curves):
        label = f"chance: {one.rate:.3f}" if len(curves) == 1 else "chance: the class's rate" if not number else None
        shade = style.SOFT if len(curves) == 1 else style.colour(number)
        axes.plot([0, 1], [one.rate] * 2, ":", color=shade, lw=1.2, label=label)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
    style.dress(axes, "Precision and recall", "recall", "precision")
    style.legend(axes)
    return style.root(axes)
