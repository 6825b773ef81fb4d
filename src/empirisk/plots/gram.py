"""A Gram matrix as a picture, its rows ordered by class."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.pairs import sorted_classes

#: Blocks smaller than this share of the picture go without a name, lest names overlap.
LEAST = 0.035


def gram(kernel: Any, X: Any = None, y: ArrayLike | None = None, *, axes: Axes | None = None) -> Figure:
    """Draw the similarities k(x_i, x_j): classes that a kernel can tell apart appear as blocks.

    Parameters
    ----------
    kernel : array n x n, or callable
        The Gram matrix, or a kernel to call as ``kernel(X)``.
    X : rows, optional
        The data, where ``kernel`` is callable.
    y : array of n, optional
        Classes; rows are ordered by them.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X, y = np.array([[0.0], [2.0], [0.1], [2.1]]), ["low", "high", "low", "high"]
    >>> figure = er.plots.gram(lambda X: np.exp(-((X - X.T) ** 2)), X, y)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['high', 'low']
    """
    K = _matrix(kernel, X)
    axes = style.canvas(axes, (5.6, 4.6))
    if y is not None:
        labels = np.asarray(y)
        if labels.shape != (len(K),):
            raise EmpiriskError(f"y has shape {labels.shape}; the Gram matrix has {len(K)} rows, so give {len(K)}.")
        sorted_classes("y", labels)
        order = np.argsort(labels, kind="stable")
        K = K[np.ix_(order, order)]
    low, high = float(K.min()), float(K.max())
    # A scale with a middle where similarities have a sign, else one from dark to bright.
    signed = low < -1e-9 * max(abs(high), 1e-300)
    limit = max(abs(low), abs(high))
    span = {"cmap": "PuOr", "vmin": -limit, "vmax": limit} if signed else {"cmap": "cividis", "vmin": low, "vmax": high}
    picture = axes.imshow(K, interpolation="nearest", aspect="equal", **span)
    bar = axes.figure.colorbar(picture, ax=axes, shrink=0.85)
    bar.set_label("k(x, x')", fontsize=style.LABEL)
    bar.ax.tick_params(labelsize=style.SMALL)
    style.dress(axes, f"Gram matrix of {len(K)} rows", "row", "row", grid=False)
    if y is not None:
        _blocks(axes, labels[order])
    return style.root(axes)


def _matrix(kernel: Any, X: Any) -> NDArray[np.float64]:
    if callable(kernel):
        if X is None:
            raise EmpiriskError("X is missing; a kernel needs the rows to compare.")
        kernel = kernel(X)
    K = np.asarray(kernel.toarray() if issparse(kernel) else kernel, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not len(K):
        raise EmpiriskError(f"kernel gives a matrix of shape {K.shape}; a Gram matrix is square, one row per sample.")
    if not np.isfinite(K).all():
        raise EmpiriskError("kernel gives a matrix with values that are not finite; check the kernel and the data.")
    return K


def _blocks(axes: Axes, labels: NDArray) -> None:
    """Lines between the classes, and the name of each beside its block."""
    names, starts, counts = np.unique(labels, return_index=True, return_counts=True)
    for start in starts[1:]:
        axes.axhline(start - 0.5, color="white", lw=1.2)
        axes.axvline(start - 0.5, color="white", lw=1.2)
    large = counts >= LEAST * len(labels)
    axes.set_yticks((starts + (counts - 1) / 2)[large], [style.plain(name, 18) for name in names[large]])
    axes.set_xticks([])
    axes.set_xlabel("rows in the same order", fontsize=style.LABEL)
    axes.set_ylabel("class", fontsize=style.LABEL)
    axes.tick_params(length=0)
