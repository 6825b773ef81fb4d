"""The variance along the principal directions: each and together."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from empirisk.errors import EmpiriskError
from empirisk.plots import style


def scree(pca: Any, *, share: float | None = None, axes: Axes | None = None) -> Figure:
    """Draw the share of the variance along each direction as bars, and what the first ones reach as a line.

    Parameters
    ----------
    pca : PCA
        A fitted `PCA`, of Empirisk or scikit-learn, or an array of shares.
    share : float, optional
        A share to mark, with the number of directions that reach it.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) * [3.0, 2.0, 0.1]
    >>> figure = er.plots.scree(er.PCA(3).fit(X), share=0.9)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['together', '2 directions reach 90 %', 'each direction']
    """
    shares = np.asarray(getattr(pca, "explained_variance_ratio_", pca), dtype=object).ravel()
    if not len(shares) or not all(isinstance(value, (float, np.floating)) for value in shares):
        raise EmpiriskError("pca must be a fitted PCA, which has explained_variance_ratio_, or an array of shares.")
    if share is not None and not (isinstance(share, (int, float)) and 0 < share <= 1):
        raise EmpiriskError(f"share={share!r} must be a number above 0 and at most 1.")
    shares = shares.astype(np.float64)
    numbers, together = np.arange(1, len(shares) + 1), np.cumsum(shares)
    axes = style.canvas(axes)
    axes.bar(numbers, shares, color=style.colour(0), width=0.8, label="each direction", zorder=2)
    axes.plot(numbers, together, "-o", color=style.colour(5), ms=3, lw=1.6, label="together", zorder=3)
    axes.set(xlim=(0.4, len(shares) + 0.6), ylim=(0, max(1.0, float(together[-1])) * 1.03))
    if share is not None:
        enough = np.flatnonzero(together >= share * (1 - 1e-12))
        text = f"{enough[0] + 1} directions reach {share:.0%}" if len(enough) else f"{share:.0%} is not reached"
        axes.axhline(share, color=style.INK, lw=1.0, linestyle=":", label=text.replace("%", " %"))
    style.dress(axes, "Variance of the principal directions", "direction", "share of the variance")
    style.whole_numbers(axes)
    style.legend(axes)
    return style.root(axes)
