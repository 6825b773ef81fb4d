"""The cells of a clustering on two columns: the places nearest to each mean."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.plane import Plane, plane
from empirisk.plots.surface import Surface, paint, scatter


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
    require_fitted(machine, "predict")
    flat = plane(X, columns, held, resolution)
    labels = np.asarray(machine.predict(X))
    cells = np.asarray(machine.predict(flat.rows))
    count = int(max(labels.max(), cells.max())) + 1
    axes = style.canvas(axes, (6.6, 4.6))
    paint_cells(axes, flat, cells, count)
    sizes = np.bincount(labels, minlength=count)
    scatter(axes, flat, labels, np.array([f"cluster {k} ({size})" for k, size in enumerate(sizes)]))
    mark_means(axes, means_of(machine, flat))
    names = (style.plain(name, 40) for name in flat.names)
    style.dress(axes, f"{type(machine).__name__}: cells of {count} clusters", *names, grid=False)
    style.legend(axes)
    return style.root(axes)


def require_fitted(machine: Any, method: str) -> None:
    """Raise a sentence unless the machine is fitted and can answer."""
    name = type(machine).__name__
    if not hasattr(machine, method):
        raise EmpiriskError(f"The {name} has no {method}, which this view asks for; give a machine that has.")
    try:
        check_is_fitted(machine)
    except NotFittedError:
        raise EmpiriskError(f"The {name} is not fitted; call its fit(X) before drawing it.") from None


def paint_cells(axes: Axes, flat: Plane, cells: NDArray, count: int) -> None:
    """The cells in pale colours, and the lines between them."""
    inside = np.where(cells == np.arange(count)[:, None], 0.5, -0.5)
    paint(axes, flat, Surface(cells, inside))


def means_of(machine: Any, flat: Plane) -> NDArray | None:
    """The means on the plane, where the machine has them in the columns of the table."""
    means = getattr(machine, "cluster_centers_", getattr(machine, "means_", None))
    if means is None or getattr(machine, "features", None) is not None:
        return None
    return np.asarray(means)[:, list(flat.places)]


def mark_means(axes: Axes, means: NDArray | None) -> None:
    """Crosses at the means."""
    if means is not None:
        axes.scatter(
            *means.T, s=110, marker="X", color="white", edgecolors=style.INK, linewidths=1.2, zorder=4, label="mean"
        )
