"""Clusters, densities and outliers: cells, dendrograms, contours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.cluster import hierarchy

from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError
from empirisk.plots import planes, style

NAMED_CELLS = 12  # clusters that a legend can name: beyond them colours come back, and the names fill the picture


def voronoi(
    machine: Any,
    X: Any,
    *,
    columns: Sequence[int | str] = (0, 1),
    held: Mapping[Any, Any] | None = None,
    resolution: int = 200,
    axes: Axes | None = None,
) -> Figure:
    """Draw the cell of each cluster, the rows, and the means.

    Parameters
    ----------
    machine : clusterer
        Fitted, with ``predict``: `KMeans`, `GaussianMixture`, or one of scikit-learn.
    X : array or data frame, n x d
        Rows to show.
    columns : two int or str
        The columns to draw.
    held : dict, optional
        Values of other columns, by name or number; what is not given keeps its median (text: its commonest value).
    resolution : int
        Points of the grid in each direction.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [6.0, 1.0]])
    >>> figure = er.plots.voronoi(er.KMeans(2, random_state=0).fit(X), X)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['cluster 0 (2)', 'cluster 1 (2)', 'mean']
    """
    planes.require(machine, "predict")
    flat = planes.plane(X, columns, held, resolution)
    labels, codes = np.asarray(machine.predict(X)), np.asarray(machine.predict(flat.rows))
    count = int(max(labels.max(), codes.max())) + 1
    axes = style.canvas(axes, style.WIDE)
    planes.paint(axes, flat, planes.cells(codes, count))
    for k, size in zip(*np.unique(labels, return_counts=True), strict=True):
        name = f"cluster {k} ({size})" if count <= NAMED_CELLS else None
        planes.points(axes, flat.points[labels == k].T, k, name, s=26)
    mark_means(axes, means_of(machine, flat))
    return planes.finished(axes, flat, f"{type(machine).__name__}: cells of {count} clusters", held)


def means_of(machine: Any, flat: planes.Plane) -> NDArray | None:
    """The means on the plane, where the machine has them in the columns of the table."""
    means = getattr(machine, "cluster_centers_", getattr(machine, "means_", None))
    if means is None or getattr(machine, "features", None) is not None:
        return None
    return np.asarray(means)[:, list(flat.places)]


def mark_means(axes: Axes, means: NDArray | None) -> None:
    """Crosses at the means."""
    if means is not None:
        look: dict[str, Any] = {"s": 110, "marker": "X", "color": "white", "edgecolors": style.INK, "zorder": 4}
        axes.scatter(*means.T, linewidths=1.2, label="mean", **look)


NAMED = 60  # leaves whose names can be read below the axes


def dendrogram(
    machine: Any, *, n_clusters: int | None = None, leaves: int = 40, names: Any = None, axes: Axes | None = None
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
    planes.require(machine, "cut")
    check_count("leaves", leaves, low=2)
    merges = machine.linkage_
    count = machine.n_clusters_ if n_clusters is None else int(check_count("n_clusters", n_clusters) or 1)
    height = _between(merges[:, 2], count)
    shown = hierarchy.dendrogram(
        merges,
        p=leaves,
        truncate_mode="lastp" if len(merges) + 1 > leaves else None,
        no_plot=True,
        color_threshold=height,
        above_threshold_color=style.SOFT,
        labels=None if names is None else [style.plain(name, style.BELOW) for name in names],
    )
    axes = style.canvas(axes, (7.4, 4.4))  # inches: as wide as a page lets leaves stand apart
    shades = {style.SOFT: style.SOFT}  # the clusters below the cut have colours of their own, from left to right
    for across, up, named in zip(shown["icoord"], shown["dcoord"], shown["color_list"], strict=True):
        shade = shades.setdefault(named, style.colour(len(shades) - 1))
        axes.plot(across, up, color=shade, linewidth=1.4, zorder=2)
    if count > 1:
        axes.axhline(height, color=style.INK, linestyle="--", linewidth=1.0, label=f"cut into {count} clusters")
        style.inside(axes, "upper right")
    style.dress(axes, f"{machine.linkage.capitalize()} linkage of {len(merges) + 1} leaves", "leaves", "distance")
    axes.grid(False, axis="x")
    places = 5 + 10 * np.arange(len(shown["ivl"]))  # where SciPy puts the leaves
    few = len(places) <= NAMED
    axes.set_xticks(places if few else [], shown["ivl"] if few else [], rotation=90, fontsize=style.SMALL)
    axes.set_ylim(0, style.padded(merges[:, 2])[1])
    return style.root(axes)


def _between(heights: NDArray, count: int) -> float:
    """A height that cuts into so many clusters: halfway between two merges."""
    padded = np.concatenate([[0.0], heights, [1.1 * heights[-1]]])  # above the last merge all are one
    return float(padded[len(heights) + 1 - count : len(heights) + 3 - count].mean())


#: From where no data are to where they are dense: never so dark that points are lost on it.
SHADES = LinearSegmentedColormap.from_list("density", ["white", style.pale(style.PALETTE[0], 0.75)])
#: Lines are drawn where these shares of the rows are less likely.
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)


def density(
    machine: Any,
    X: Any,
    *,
    columns: Sequence[int | str] = (0, 1),
    held: Mapping[Any, Any] | None = None,
    resolution: int = 200,
    axes: Axes | None = None,
) -> Figure:
    """Draw lines of equal log-density over the rows; a heavy line is the threshold below which rows are anomalies.

    Parameters
    ----------
    machine : density
        Fitted, with ``score_samples``: `GaussianDensity`, `GaussianMixture`, or one of scikit-learn.
    X : array or data frame, n x d
        Rows to show.
    columns : two int or str
        The columns to draw.
    held : dict, optional
        Values of other columns, by name or number; what is not given keeps its median (text: its commonest value).
    resolution : int
        Points of the grid in each direction.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> figure = er.plots.density(er.GaussianDensity(quantile=0.1).fit(X), X)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['rows (55)', 'anomalies (5)', 'threshold']
    """
    planes.require(machine, "score_samples")
    flat = planes.plane(X, columns, held, resolution)
    own = np.asarray(machine.score_samples(X), dtype=np.float64)
    values = np.asarray(machine.score_samples(flat.rows), dtype=np.float64)
    axes = style.canvas(axes, style.WIDE)
    levels = np.unique(np.quantile(own, SHARES))
    picture = flat.shaped(values)
    if len(levels) > 1:
        axes.contourf(flat.across, flat.up, picture, levels=levels, cmap=SHADES, extend="max", zorder=0)
    axes.contour(flat.across, flat.up, picture, levels=levels, colors="0.6", linestyles="-", linewidths=0.7, zorder=1)
    offset = getattr(machine, "offset_", None)
    planes.two_kinds(axes, flat, own < (-np.inf if offset is None else offset), "rows", "anomalies")
    if offset is not None:
        planes.border(axes, flat, values, [float(offset)], "-", 1.6, "threshold")
    mark_means(axes, means_of(machine, flat))
    return planes.finished(axes, flat, f"{type(machine).__name__}: log-density", held)


LEVELS = 7  # contours that can be told apart by their shade


def outliers(
    machine: Any,
    X: Any,
    *,
    columns: Sequence[int | str] = (0, 1),
    held: Mapping[Any, Any] | None = None,
    resolution: int = 200,
    axes: Axes | None = None,
) -> Figure:
    """Draw how much like the data each place is, the boundary, and the rows inside and outside it.

    Parameters
    ----------
    machine : outlier detector
        Fitted, with ``decision_function`` (positive inside) and ``predict``: `OneClassSVM`, or one of scikit-learn.
    X : array or data frame, n x d
        Rows to show; no targets are needed.
    columns : two int or str
        The columns to draw.
    held : dict, optional
        Values of other columns, by name or number; what is not given keeps its median (text: its commonest value).
    resolution : int
        Points of the grid in each direction.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> machine = er.OneClassSVM(nu=0.2, features=er.kernels.Gaussian(1.0)).fit(X)
    >>> figure = er.plots.outliers(machine, X)
    >>> [text.get_text().split(" (")[0] for text in figure.axes[0].get_legend().get_texts()]
    ['inside', 'outside', 'boundary', 'support vector']
    """
    name = type(machine).__name__
    if not (hasattr(machine, "decision_function") and hasattr(machine, "predict")) or hasattr(machine, "classes_"):
        raise EmpiriskError(f"The {name} does not tell outliers; give a fitted machine such as er.OneClassSVM.")
    planes.require(machine)
    flat = planes.plane(X, columns, held, resolution)
    values = np.asarray(machine.decision_function(flat.rows), dtype=np.float64).ravel()
    axes = style.canvas(axes, style.WIDE)
    if values.max() > 0:
        levels = np.linspace(0.0, float(values.max()), LEVELS)
        picture = flat.shaped(values)
        axes.contourf(flat.across, flat.up, picture, levels=levels, cmap=SHADES, zorder=0, extend="max")
        axes.contour(flat.across, flat.up, picture, levels=levels[1:], colors=style.FAINT, linewidths=0.7, zorder=1)
    planes.two_kinds(axes, flat, np.asarray(machine.predict(X)) <= 0, "inside", "outside")
    planes.border(axes, flat, values, [0.0], "-", 1.4, "boundary")
    support = np.asarray(getattr(machine, "support_", []), dtype=int)
    if len(support) and support.max() < len(flat.points):
        planes.ring(axes, flat.points[support])
    return planes.finished(axes, flat, f"{name}: where the data are", held)
