"""Rows and what becomes of them: folds as bars."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv

from empirisk.errors import EmpiriskError
from empirisk.plots import style

#: Folds that are told apart by eye.
MOST_FOLDS = 40


def folds(
    cv: Any, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None, *, axes: Axes | None = None
) -> Figure:
    """Draw which rows each fold learns from and which it tests, as bars over the rows in their order.

    Parameters
    ----------
    cv : int, splitter or list of (train, test)
        Folds, as scikit-learn has them; a number is that of stratified folds where y holds classes.
    X, y : table and target
        The rows that are split.
    groups : array, optional
        What stays on one side; drawn below the folds, as classes are.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.folds(3, np.zeros((9, 1)), [0, 1, 2] * 3)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['learned from', 'tested']
    """
    labels = None if y is None else np.asarray(y)
    classes = labels is not None and labels.dtype.kind in "biuOSU"
    parts = list(check_cv(cv, y, classifier=classes).split(X, y, groups))[:MOST_FOLDS]
    if not parts:
        raise EmpiriskError(f"cv={cv!r} has no folds; give a number such as 5.")
    axes, count = style.canvas(axes), len(X)
    colours = {"learned from": style.pale(style.colour(0), 0.45), "tested": style.colour(1), "left out": style.FAINT}
    for fold, (train, test) in enumerate(parts):
        part = np.full(count, 2)
        part[train], part[test] = 0, 1
        for number, (name, shade) in enumerate(colours.items()):
            if (part == number).any():
                label = name if name not in axes.get_legend_handles_labels()[1] else None
                axes.broken_barh(_runs(part == number), (fold + 0.6, 0.8), facecolors=shade, linewidth=0, label=label)
    below = {"group": groups, "class": labels if classes else None}
    names = [str(fold + 1) for fold in range(len(parts))]
    for name, values in below.items():
        if values is not None:
            _, codes = np.unique(np.asarray(values), return_inverse=True)
            for code in range(codes.max() + 1):
                place = (len(names) + 0.7, 0.6)
                axes.broken_barh(_runs(codes == code), place, facecolors=style.colour(code + 2), linewidth=0)
            names.append(name)
    axes.set(xlim=(0, count), ylim=(len(names) + 0.6, 0.4), yticks=range(1, len(names) + 1), yticklabels=names)

    return style.finished(axes, "Rows of the folds", "row", "fold", grid=False)


def _runs(chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where runs of chosen rows begin, and how long they are."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
    return [(int(start), int(end - start)) for start, end in edges.reshape(-1, 2)]
