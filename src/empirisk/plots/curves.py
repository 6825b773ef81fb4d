"""Scores over rows and parameters, and over chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from empirisk.errors import EmpiriskError
from empirisk.evaluation.curves import judge_ends, judge_learning, over_folds
from empirisk.plots import style
from empirisk.theory.luck import luck as luck_of

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
    axes.plot(across, mean, label=label, zorder=3, **style.look(number, marker=style.marker(number), ms=4.5))
    if scores.shape[1] > 1:
        spread = over_folds(np.nanstd, scores)
        axes.fill_between(across, mean - spread, mean + spread, color=style.colour(number), alpha=0.18, linewidth=0)


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
    sizes : LearningCurve, array of k, or the result of `learn`
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
    'Learning curve\\nOverfitting: score 1 on training rows, 0.7 on new ones; ...'
    """
    sizes = getattr(sizes, "curve", sizes)  # the result of `learn` holds one, where there was time for it
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
    if len(counts) > 1 and counts.max() > 30 * counts.min():  # else the smallest sizes lie on each other
        axes.set_xscale("log")
    judgement = judge_learning(learned, judged) if diagnosis is None else diagnosis
    return style.finished(axes, f"Learning curve\n{style.sentence(judgement)}", "training rows", style.plain(metric))


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
    axes = style.canvas(axes, style.WIDE)
    places = _places(axes, tried)
    band(axes, places, learned, 1, "training")
    band(axes, places, judged, 0, "validation")
    means = over_folds(np.nanmean, judged)
    top = tried.index(best) if best in tried else int(np.nanargmax(means))
    axes.axvline(places[top], color=style.INK, lw=1.1, linestyle="--", label=f"best: {_short(tried[top])}")
    title = f"Validation curve\n{style.sentence(diagnosis)}" if diagnosis else "Validation curve"
    names_of_sides = 20.0  # the room that they need, in points
    _name_sides(axes, places, top, learned, judged)
    return style.finished(axes, title, style.plain(parameter, style.ACROSS), style.plain(metric), room=names_of_sides)


def _places(axes: Axes, tried: list[Any]) -> Array:
    """Where the values stand: in logarithms where they span decades, one after the other where they are names."""
    numeric = all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in tried)
    numeric = numeric and bool(np.isfinite(np.asarray(tried, dtype=np.float64)).all())
    if not numeric:
        places = np.arange(len(tried), dtype=np.float64)
        axes.set_xticks(places, [style.plain(value, style.BELOW) for value in tried])
        if sum(min(len(str(value)), 14) for value in tried) > 50:  # letters that fit below the axes
            axes.tick_params(axis="x", rotation=45)
        return places
    places = np.asarray(tried, dtype=np.float64)
    if places.min() > 0 and places.max() >= 50 * places.min():  # nearly two decades
        axes.set_xscale("log")
    return places


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else style.plain(value, style.BESIDE)


def _name_sides(axes: Axes, places: Array, top: int, learned: Array, judged: Array) -> None:
    """Words above the ends of the curve that are worse than the best by more than chance."""
    means = over_folds(np.nanmean, judged)
    # A curve of errors, not of scores, says so by the value that it calls best.
    sign = -1.0 if means[top] == np.nanmin(means) < np.nanmax(means) else 1.0
    kinds = judge_ends(sign * learned, sign * judged, top, np.argsort(places)[[0, -1]])
    look: dict[str, Any] = {"fontsize": style.SMALL, "style": "italic", "color": style.SOFT}
    for name, side in zip(kinds, ("left", "right"), strict=True):
        if name:
            axes.text(float(side == "right"), 1.01, name, transform=axes.transAxes, ha=side, va="bottom", **look)


#: Bars beyond this number are drawn as one shape.
BARS = 100


def luck(errors: int, n: int, rate: float = 0.5, *, axes: Axes | None = None) -> Figure:
    """Draw how many errors a machine with a given error rate makes on n rows, and mark what was observed.

        P(m or fewer errors) = sum_{k=0}^{m} (n choose k) rate^k (1 - rate)^(n - k)

    Parameters
    ----------
    errors : int
        Errors that were observed, m.
    n : int
        Rows on which they were counted.
    rate : float
        Error rate of what it is compared with: 1/2 is guessing between two classes.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.luck(2, 10)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['observed: 2', 'expected: 5', '2 or fewer: 0.0547', 'more errors']
    """
    found = luck_of(errors, n, rate)
    low, high = binom.ppf([1e-6, 1 - 1e-6], n, rate)  # beyond these counts no bar is seen
    counts = np.arange(max(0, low - 1), min(n, high + 1) + 1).astype(int)
    heights = binom.pmf(counts, n, rate)
    axes = style.canvas(axes)
    tail = counts <= errors
    _shape(axes, counts[tail], heights[tail], style.PALETTE[5], f"{errors} or fewer: {found.value:.3g}")
    _shape(axes, counts[~tail], heights[~tail], style.PALETTE[4], "more errors")
    axes.axvline(errors, color=style.INK, lw=1.2, linestyle="--", label=f"observed: {errors}")
    axes.axvline(n * rate, color=style.SOFT, lw=1.2, linestyle=":", label=f"expected: {n * rate:g}")
    axes.set_ylim(0, 1.08 * float(heights.max()))
    style.whole_numbers(axes)
    return style.finished(axes, found.meaning, f"errors of a machine with error rate {rate:.3g}", "probability")


def _shape(axes: Axes, counts: np.ndarray, heights: np.ndarray, shade: str, label: str) -> None:
    """Bars side by side, as one shape if there are many; in the legend also where there are none."""
    if not len(counts):
        axes.plot([], [], "s", color=shade, label=label)
    elif len(counts) <= BARS:
        axes.bar(counts, heights, width=0.85, color=shade, label=label)
    else:
        axes.stairs(heights, np.append(counts, counts[-1] + 1) - 0.5, fill=True, color=shade, label=label)
