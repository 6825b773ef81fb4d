"""The receiver operating characteristic: what every threshold would give."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.metrics import auc, roc_curve

from empirisk.plots import style
from empirisk.plots.pairs import scored


def roc(
    truth: Any,
    scores: ArrayLike | None = None,
    *,
    threshold: Any = None,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the true against the false positive rate over all thresholds; chance is the diagonal, with an area of 1/2.

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
    >>> figure = er.plots.roc([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], threshold=0.5)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['1: area 0.750', 'threshold 0.5', 'chance: area 0.5']
    """
    threshold = getattr(threshold, "threshold", threshold)
    curves = scored(truth, scores, positive, sample_weight)
    axes = style.canvas(axes, (6.4 if len(curves) < 4 else 7.8, 4.6))
    for number, one in enumerate(curves):
        false, true, _ = roc_curve(one.belongs, one.scores, sample_weight=one.weights)
        line = {"color": style.colour(number), "linestyle": style.dashes(number), "lw": 1.8}
        axes.plot(false, true, label=f"{style.plain(one.name)}: area {auc(false, true):.3f}", **line)
        if threshold is not None:
            said = one.scores >= threshold
            place = one.share(said, ~one.belongs), one.share(said, one.belongs)
            label = f"threshold {threshold:.3g}" if number == len(curves) - 1 else None
            axes.plot(*place, "o", color=style.colour(number), markeredgecolor=style.INK, ms=8, zorder=4, label=label)
    axes.plot([0, 1], [0, 1], ":", color=style.SOFT, lw=1.2, label="chance: area 0.5")
    # Curves along the sides are not cut in half.
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    style.dress(axes, "ROC", "false positive rate", "true positive rate")
    style.legend(axes)
    return style.root(axes)
