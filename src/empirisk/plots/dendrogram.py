"""The tree of a hierarchical clustering."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster import hierarchy

from empirisk.contract.arguments import check_count
from empirisk.plots import style
from empirisk.plots.voronoi import require_fitted

NAMED = 60  # leaves whose names can be read below the axes


def dendrogram(
    machine: Any,
    *,
    n_clusters: int | None = None,
    leaves: int = 40,
    names: Any = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the merges of a `Hierarchical` by their height, and where the tree is cut.

    Parameters
    ----------
    machine : Hierarchical
        Fitted.
    n_clusters : int, optional
        The number of clusters to colour; as in ``labels_`` if None.
    leaves : int
        Draw at most so many: the last merges, each branch that is not drawn with the number of its leaves in brackets.
    names : list, optional
        Names of the leaves.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> tree = er.Hierarchical("single").fit([[0.0], [1.0], [7.0], [9.0]])
    >>> figure = er.plots.dendrogram(tree, n_clusters=2)
    >>> sorted(text.get_text() for text in figure.axes[0].get_xticklabels())
    ['0', '1', '2', '3']
    """
    require_fitted(machine, "cut")
    check_count("leaves", leaves, low=2)
    merges = machine.linkage_
    count = machine.n_clusters_ if n_clusters is None else int(check_count("n_clusters", n_clusters) or 1)
    height = _between(merges[:, 2], count)
    shown = hierarchy.dendrogram(
        merges,
        p=leaves,
        truncate_mode="lastp" if len(merges) + 1 > leaves else None,
        no_plot=True,
        labels=None if names is None else [style.plain(name, 16) for name in names],
    )
    axes = style.canvas(axes, (7.4, 4.4))
    _branches(axes, shown, height)
    if count > 1:
        axes.axhline(height, color=style.INK, linestyle="--", linewidth=1.0, label=f"cut into {count} clusters")
        axes.legend(loc="upper right", fontsize=style.SMALL, framealpha=0.9, edgecolor=style.FAINT)
    style.dress(axes, f"{machine.linkage.capitalize()} linkage of {len(merges) + 1} leaves", "", "distance")
    axes.grid(False, axis="x")
    places = 5 + 10 * np.arange(len(shown["ivl"]))  # where SciPy puts the leaves
    few = len(places) <= NAMED
    axes.set_xticks(places if few else [], shown["ivl"] if few else [], rotation=90, fontsize=style.SMALL)
    axes.set_ylim(0, style.padded(merges[:, 2])[1])
    return style.root(axes)


def _between(heights: NDArray, count: int) -> float:
    """A height that cuts into so many clusters: halfway between two merges."""
    padded = np.concatenate([[0.0], heights, [1.1 * heights[-1]]])
    return float(padded[len(heights) + 1 - count : len(heights) + 3 - count].mean())


def _branches(axes: Axes, shown: dict[str, Any], height: float) -> None:
    """Each merge as a bracket; those below the cut in the colour of their cluster, from left to right."""
    brackets = sorted(zip(shown["icoord"], shown["dcoord"], strict=True), key=lambda pair: -max(pair[1]))
    spans: list[tuple[float, float]] = []
    for across, up in brackets:
        if max(up) <= height and not any(low <= across[1] <= high for low, high in spans):
            spans.append(_extent(across, up, brackets))
    spans.sort()
    for across, up in brackets:
        own = [k for k, (low, high) in enumerate(spans) if max(up) <= height and low <= across[1] <= high]
        axes.plot(across, up, color=style.colour(own[0]) if own else style.SOFT, linewidth=1.4, zorder=2)


def _extent(across: Any, up: Any, brackets: list) -> tuple[float, float]:
    """How far a bracket and all below it reach to the left and to the right."""
    low, high = min(across), max(across)
    for other, level in brackets:
        if max(level) < max(up) and low <= (other[1] + other[2]) / 2 <= high:
            low, high = min(low, *other), max(high, *other)
    return low, high
