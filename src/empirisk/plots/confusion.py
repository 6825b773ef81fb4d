"""The confusion matrix: which classes are taken for which."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.pairs import answers, is_result, sorted_classes

#: More classes than this leave no room for numbers.
MOST = 25


def confusion(
    truth: Any,
    predictions: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw how many rows of each class were predicted as each; the colour is the share of the true class.

    Parameters
    ----------
    truth : array of n, or the result of an evaluation
        The true classes.
    predictions : array of n
        The predicted ones; not needed with a result.
    classes : list, optional
        The classes in the order to draw them; None takes all that occur, sorted.
    sample_weight : array of n, optional
        Weights of the rows; weight 2 equals the row twice.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.confusion(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1', '1', '0', '1']
    """
    if classes is None and is_result(truth):
        classes = truth.classes
    known, said, weights = answers(truth, predictions, sample_weight)
    present = sorted_classes("truth", np.concatenate([known, said])).tolist()
    names = present if classes is None else list(classes)
    strange = [name for name in present if name not in names]
    if strange:
        raise EmpiriskError(f"classes leaves out {strange[0]!r}, which occurs in the data; name every class.")
    places = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)))
    np.add.at(counts, tuple([places[name] for name in side.tolist()] for side in (known, said)), weights)
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(totals > 0, totals, 1.0)
    side = 2.4 + 0.46 * min(len(names), MOST)
    axes = style.canvas(axes, (side + 1.0, side))
    picture = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    bar = axes.figure.colorbar(picture, ax=axes, shrink=0.85)
    bar.set_label("share of the true class", fontsize=style.LABEL)
    bar.ax.tick_params(labelsize=style.SMALL)
    right, total = float(np.trace(counts)), float(counts.sum())
    title = f"Accuracy {right / total:.1%}\n{right:.6g} of {total:.6g} right"
    style.dress(axes, title, "predicted class", "true class", grid=False)
    if len(names) <= MOST:
        _label(axes, counts, shares, [style.plain(name, 18) for name in names])
    return style.root(axes)


def _label(axes: Axes, counts: np.ndarray, shares: np.ndarray, names: list[str]) -> None:
    """Names along the sides and a number in each cell, small enough for its width."""
    places = np.arange(len(names))
    turned = max(map(len, names)) > 4 and len(names) > 1
    axes.set_xticks(places, names, rotation=45 if turned else 0, ha="right" if turned else "center")
    if turned:
        for tick in axes.get_xticklabels():
            tick.set_rotation_mode("anchor")
    axes.set_yticks(places, names)
    axes.tick_params(length=0)
    size = min(style.LABEL, 26 / max(max(len(f"{count:.4g}") for count in counts.flat), 2))
    shades = colormaps["Blues"](shares)
    for i, j in np.ndindex(*counts.shape):
        axes.text(
            j,
            i,
            f"{counts[i, j]:.4g}",
            ha="center",
            va="center",
            fontsize=size,
            color=style.readable_on(shades[i, j][:3]),
        )
