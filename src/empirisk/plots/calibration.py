"""Calibration: do rows with a predicted probability of 0.8 belong to the class 80 times in 100?"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.pairs import Scored, scored
from empirisk.theory.luck import clopper_pearson

Array = NDArray[np.float64]
CUTS = ("uniform", "quantile")


def calibration(
    truth: Any,
    probabilities: ArrayLike | None = None,
    *,
    bins: int = 10,
    cut: str = "uniform",
    positive: Any = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw how often the class came true against how probable it was said to be; the diagonal is perfect.

    Bars are 95 % intervals (Clopper-Pearson) of each bin's rate: a point is off only if its bar misses the diagonal.

    Parameters
    ----------
    truth : array of n, or the result of an evaluation
        The true classes.
    probabilities : array of n, or n x classes
        Probability of the positive class, or of each. Not needed with a result.
    bins : int
        Number of bins.
    cut : {"uniform", "quantile"}
        Bins as wide, or with as many rows, as each other.
    positive : class, optional
        The class to look at; None takes the second of two, and each of several against the others.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.calibration([0, 1, 0, 1], [0.2, 0.2, 0.7, 0.7], bins=2)
    >>> figure.axes[0].lines[0].get_xydata()
    array([[0.2, 0.5],
           [0.7, 0.5]])
    """
    curves = scored(truth, probabilities, positive, sample_weight, decisions=False)
    style.checked_choice("cut", cut, CUTS)
    if not (isinstance(bins, (int, np.integer)) and bins >= 1):
        raise EmpiriskError(f"bins={bins!r} must be a whole number, at least 1.")
    if any(one.scores.min() < 0 or one.scores.max() > 1 for one in curves):
        raise EmpiriskError("probabilities must lie between 0 and 1; use er.plots.roc for scores of another kind.")
    axes = style.canvas(axes, (6.4 if len(curves) < 4 else 7.8, 4.6))
    for number, one in enumerate(curves):
        said, came, low, high = binned(one, bins, cut)
        error = float(np.average((one.scores - one.belongs) ** 2, weights=one.weights))
        axes.plot(
            said,
            came,
            color=style.colour(number),
            linestyle=style.dashes(number),
            marker=style.marker(number),
            ms=5,
            lw=1.6,
            label=f"{style.plain(one.name)}: Brier score {error:.3f}",
        )
        shade, reach = style.colour(number), [came - low, high - came]
        axes.errorbar(said, came, yerr=reach, fmt="none", ecolor=shade, elinewidth=0.9, capsize=2.5)
    axes.plot([0, 1], [0, 1], ":", color=style.SOFT, lw=1.2, label="perfect")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    style.dress(axes, "Calibration", "predicted probability", "share that came true")
    style.legend(axes)
    return style.root(axes)


def binned(one: Scored, bins: int, cut: str) -> tuple[Array, Array, Array, Array]:
    """For each bin with rows: mean probability, rate, and the interval of the rate."""
    places = np.linspace(0, 1, bins + 1)
    edges = places if cut == "uniform" else np.unique(np.quantile(one.scores, places))
    numbers = np.clip(np.searchsorted(edges[1:-1], one.scores, side="right"), 0, bins - 1)
    counts = np.bincount(numbers, weights=one.weights, minlength=bins)
    used = counts > 0
    hits = np.bincount(numbers, weights=one.weights * one.belongs, minlength=bins)[used]
    said = np.bincount(numbers, weights=one.weights * one.scores, minlength=bins)[used] / counts[used]
    rows = counts[used]
    low, high = np.transpose([clopper_pearson(hit, row, 0.95) for hit, row in zip(hits, rows, strict=True)])
    return said, hits / rows, low, high
