"""Was it luck? The errors of a machine against those of chance."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from empirisk.plots import style
from empirisk.theory.luck import luck as luck_of

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
    low, high = binom.ppf([1e-6, 1 - 1e-6], n, rate)
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
    style.dress(axes, found.meaning, f"errors of a machine with error rate {rate:.3g}", "probability")
    style.legend(axes)
    return style.root(axes)


def _shape(axes: Axes, counts: np.ndarray, heights: np.ndarray, shade: str, label: str) -> None:
    """Bars side by side, as one shape if there are many; in the legend also where there are none."""
    if not len(counts):
        axes.plot([], [], "s", color=shade, label=label)
    elif len(counts) <= BARS:
        axes.bar(counts, heights, width=0.85, color=shade, label=label)
    else:
        axes.stairs(heights, np.append(counts, counts[-1] + 1) - 0.5, fill=True, color=shade, label=label)
