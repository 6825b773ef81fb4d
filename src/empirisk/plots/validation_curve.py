"""Scores against one parameter, from underfitting to overfitting."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.bands import Array, band, folds, over_folds


def validation_curve(
    values: Any,
    train: ArrayLike | None = None,
    validation: ArrayLike | None = None,
    *,
    parameter: str = "parameter",
    diagnosis: str | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the scores on training and validation rows against a parameter; mark the best, and name the sides of it.

    Where the training score falls with the validation score the machine underfits, where it does not it overfits.

    Parameters
    ----------
    values : ValidationCurve, or list of k
        The curve, or the values of the parameter: numbers or names.
    train, validation : array, k x folds
        The scores, higher is better; not needed with a curve.
    parameter : str
        The name of the parameter; not needed with a curve.
    diagnosis : str, optional
        What to write above; None takes that of the curve.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.validation_curve([1, 2, 3], [0.6, 0.8, 1.0], [0.6, 0.7, 0.5], parameter="max_depth")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['underfitting', 'overfitting']
    """
    best, metric = None, getattr(values, "metric", "score")
    if hasattr(values, "validation"):
        diagnosis = getattr(values, "diagnosis", None) if diagnosis is None else diagnosis
        best, parameter = getattr(values, "best", None), str(values.parameter)
        values, train, validation = values.values, values.train, values.validation
    tried = list(values)
    if not tried:
        raise EmpiriskError("values is empty; give the values of the parameter, or a ValidationCurve.")
    learned, judged = folds("train", train, len(tried)), folds("validation", validation, len(tried))
    axes = style.canvas(axes, (6.4, 4.6))
    places = _places(axes, tried)
    band(axes, places, learned, 1, "training")
    band(axes, places, judged, 0, "validation")
    means = over_folds(np.nanmean, judged)
    top = tried.index(best) if best in tried else int(np.nanargmax(means))
    axes.axvline(places[top], color=style.INK, lw=1.1, linestyle="--", label=f"best: {_short(tried[top])}")
    title = f"Validation curve\n{style.sentence(diagnosis)}" if diagnosis else "Validation curve"
    names_of_sides = 20.0  # the room that they need, in points
    style.dress(axes, title, style.plain(parameter, 40), style.plain(metric), room=names_of_sides)
    _name_sides(axes, places, top, learned, judged)
    style.legend(axes)
    return style.root(axes)


def _places(axes: Axes, tried: list[Any]) -> Array:
    """Where the values stand: in logarithms where they span decades, one after the other where they are names."""
    numeric = all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in tried)
    numeric = numeric and bool(np.isfinite(np.asarray(tried, dtype=np.float64)).all())
    if not numeric:
        places = np.arange(len(tried), dtype=np.float64)
        axes.set_xticks(places, [style.plain(value, 14) for value in tried])
        if sum(min(len(str(value)), 14) for value in tried) > 50:
            axes.tick_params(axis="x", rotation=45)
        return places
    places = np.asarray(tried, dtype=np.float64)
    if places.min() > 0 and places.max() >= 50 * places.min():
        axes.set_xscale("log")
    return places


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else style.plain(value, 18)


def _name_sides(axes: Axes, places: Array, top: int, learned: Array, judged: Array) -> None:
    """Words above the ends of the curve that are worse than the best by more than chance.

    There the machine underfits if its training score has fallen as well, by half as much at least; else it overfits.
    """
    means, training = over_folds(np.nanmean, judged), over_folds(np.nanmean, learned)
    # A curve of errors, not of scores, says so by the value that it calls best.
    sign = -1.0 if means[top] == np.nanmin(means) < np.nanmax(means) else 1.0
    known = judged[top][~np.isnan(judged[top])]
    slack = float(np.std(known, ddof=1) / np.sqrt(len(known))) if len(known) > 1 else 0.0
    order = np.argsort(places)
    for end, side in ((order[0], "left"), (order[-1], "right")):
        lost = sign * (means[top] - means[end])
        if not lost > slack:
            continue
        name = "underfitting" if sign * (training[top] - training[end]) > lost / 2 else "overfitting"
        axes.text(
            0.0 if side == "left" else 1.0,
            1.01,
            name,
            transform=axes.transAxes,
            ha=side,
            va="bottom",
            fontsize=style.SMALL,
            style="italic",
            color=style.SOFT,
        )
