"""How well scores rank: cost curves, gains, lift and precision at k."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.evaluation.ranking import costs_of, gains_of
from empirisk.evaluation.scored import ClassScores
from empirisk.plots import style
from empirisk.plots.scores import curves_on, draw_chance

MOST_KS = 1000  # values of k that are drawn; beyond, they stand apart in proportion to themselves
MOST_LINES = 60  # thresholds drawn as lines: more of them are one grey area


def cost_curve(
    truth: Any,
    scores: Any = None,
    y: ArrayLike | None = None,
    *,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the least expected cost over all rates of positives and ratios of costs: Drummond and Holte's cost curve.

    Each threshold is a thin line, and the curve is their lower envelope. Below the dotted triangle, which always says
    the same class, the scores are worth using.

    Parameters
    ----------
    truth : array of n, the result of an evaluation, or a fitted machine
        The true classes.
    scores : array of n, or n x classes
        Scores or probabilities, higher for the positive class; a column for each of several classes. Not needed with
        a result.
    y : array of n, optional
        The true values, where a machine is given, and its rows in the place of scores.
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
    >>> figure = er.plots.cost_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['1: mean cost 0.125', 'always one class: 0.250']
    """
    curves, axes = curves_on(axes, truth, scores, y, positive, sample_weight)
    axes.set_ylim(-0.012, 0.62)  # no curve is above 1/2
    for number, one in enumerate(curves):
        if len(curves) == 1:
            _draw_thresholds(axes, one)
        found = costs_of(one)
        label = f"{style.plain(one.name)}: mean cost {found.area:.3f}"
        axes.plot(found.probability_cost, found.cost, label=label, **style.look(number, zorder=3))
    axes.plot([0, 0.5, 1], [0, 0.5, 0], ":", color=style.SOFT, lw=1.2, label="always one class: 0.250", zorder=2)
    across = "probability cost  $p\\,c_{FN}\\,/\\,(p\\,c_{FN} + (1-p)\\,c_{FP})$"
    return style.finished(axes, "Cost curve", across, "expected cost, share of the largest")


def _draw_thresholds(axes: Axes, one: ClassScores) -> None:
    """The line of each threshold, from its false positive rate to its false negative rate."""
    _, hits, alarms = one.steps()
    some = np.unique(np.linspace(0, len(hits) - 1, min(len(hits), MOST_LINES)).astype(int))
    ends = np.vstack([alarms[some] / alarms[-1], 1 - hits[some] / hits[-1]])
    axes.plot([0, 1], ends, "-", color=style.FAINT, lw=0.7, zorder=1)


def gains(
    truth: Any,
    scores: Any = None,
    y: ArrayLike | None = None,
    *,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the share of the positives among the rows with the highest scores; rows drawn by chance are the diagonal.

    Parameters
    ----------
    truth, scores, y, positive, sample_weight, axes
        As for `cost_curve`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.gains([0, 0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7, 0.9])
    >>> figure.axes[0].lines[0].get_xydata()[1]
    array([0.2, 0.5])
    """
    curves, axes = curves_on(axes, truth, scores, y, positive, sample_weight)
    for number, one in enumerate(curves):
        found = gains_of(one)
        label = f"{style.plain(one.name)}: {100 * found.at(0.2):.3g} % in the first 20 %"
        axes.plot(found.taken, found.found, label=label, **style.look(number))
    if len(curves) == 1:
        best = [0, found.rate, 1]
        axes.plot(best, [0, 1, 1], "-", color=style.FAINT, lw=1.2, label="perfect", zorder=1)
    axes.plot([0, 1], [0, 1], ":", color=style.SOFT, lw=1.2, label="chance")
    return style.finished(axes, "Gains", "share of the rows, highest scores first", "share of the positives found")


def lift(
    truth: Any,
    scores: Any = None,
    y: ArrayLike | None = None,
    *,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw how many times more positives the rows with the highest scores hold than rows drawn by chance.

    Parameters
    ----------
    truth, scores, y, positive, sample_weight, axes
        As for `cost_curve`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.lift([0, 0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7, 0.9])
    >>> figure.axes[0].lines[0].get_xydata()[1]
    array([0.4 , 1.25])
    """
    curves, axes = curves_on(axes, truth, scores, y, positive, sample_weight)
    highest = 1.0
    for number, one in enumerate(curves):
        found = gains_of(one)
        highest = max(highest, float(found.lift.max()))
        label = f"{style.plain(one.name)}: {found.lift_at(0.2):.3g} in the first 20 %"
        axes.plot(found.taken[1:], found.lift[1:], label=label, **style.look(number))
    axes.plot([0, 1], [1, 1], ":", color=style.SOFT, lw=1.2, label="chance: 1")
    axes.set_ylim(0.0, 1.06 * highest)
    return style.finished(axes, "Lift", "share of the rows, highest scores first", "times as many as by chance")


def precision_at_k(
    truth: Any,
    scores: Any = None,
    y: ArrayLike | None = None,
    *,
    most: int | None = None,
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the share of positives among the k rows with the highest scores, for every k.

    Parameters
    ----------
    truth, scores, y, positive, sample_weight, axes
        As for `cost_curve`.
    most : int, optional
        The largest k; all rows by default.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.precision_at_k([0, 0, 0, 1, 1], [0.1, 0.2, 0.8, 0.7, 0.9])
    >>> figure.axes[0].lines[0].get_xydata()[:2]
    array([[1. , 1. ],
           [2. , 0.5]])
    """
    curves, axes = curves_on(axes, truth, scores, y, positive, sample_weight)
    for number, one in enumerate(curves):
        _, hits, alarms = one.steps()
        rows = hits + alarms
        last = rows[-1] if most is None else min(float(most), rows[-1])
        ks = np.unique(np.geomspace(1, last, MOST_KS).astype(int)) if last > MOST_KS else np.arange(1, last + 1)
        axes.plot(ks, np.interp(ks, rows, hits) / ks, label=style.plain(one.name), **style.look(number))
    draw_chance(axes, curves)
    axes.set_xlim(*style.padded(np.array([0.0, last]), 0.02))
    return style.finished(axes, "Precision at k", "k rows with the highest scores", "share of positives among them")
