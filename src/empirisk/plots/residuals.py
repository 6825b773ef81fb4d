"""Predicted against true numbers, and what is left over."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.plots import style
from empirisk.plots.pairs import numbers


def residuals(
    truth: Any,
    predictions: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    axes: Sequence[Axes] | None = None,
) -> Figure:
    """Draw predictions against the truth, and the histogram of the residuals truth - prediction.

    Parameters
    ----------
    truth : array of n, or the result of an evaluation
        The true numbers.
    predictions : array of n
        The predicted ones; not needed with a result.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : two matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.residuals([1.0, 2.0, 3.0], [1.5, 2.0, 2.5])
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['true value', 'residual (true - predicted)']
    """
    known, said, weights = numbers(truth, predictions, sample_weight)
    left = known - said
    first, second = style.panels(axes, 2, (8.6, 4.0))
    shown = style.padded(np.concatenate([known, said]), 0.05)
    first.scatter(known, said, s=_size(len(known)), color=style.PALETTE[0], alpha=0.65, linewidths=0, zorder=2)
    first.plot(shown, shown, "-", color=style.INK, lw=1.0, zorder=3)
    first.set(xlim=shown, ylim=shown, aspect="equal")
    error = float(np.sqrt(np.average(left**2, weights=weights)))
    title = f"Root mean squared error {error:.4g}\nline: prediction = truth"
    style.dress(first, title, "true value", "predicted value")
    bins = np.histogram_bin_edges(left, "auto" if len(left) < 5000 else 70)
    if len(bins) > 71:  # a few far residuals would ask for thousands of bins
        bins = np.linspace(bins[0], bins[-1], 71)
    second.hist(left, bins=list(bins), weights=weights, color=style.PALETTE[4], edgecolor="white", linewidth=0.5)
    second.axvline(0, color=style.INK, lw=1.0)
    mean = float(np.average(left, weights=weights))
    mean = 0.0 if abs(mean) < 1e-9 * error else mean  # what rounding leaves
    second.axvline(mean, color=style.PALETTE[5], lw=1.6, linestyle="--")
    style.dress(second, f"Residuals\ndashed: mean {mean:.3g}", "residual (true - predicted)", "rows")
    return style.root(first)


def _size(count: int) -> float:
    """Smaller points for more rows."""
    return float(np.clip(2000 / max(count, 1), 4, 28))
