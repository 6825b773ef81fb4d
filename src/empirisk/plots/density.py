"""A density on two columns: lines of equal likelihood over the rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from empirisk.plots import style
from empirisk.plots.plane import plane
from empirisk.plots.surface import border
from empirisk.plots.voronoi import mark_means, means_of, require_fitted

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
    require_fitted(machine, "score_samples")
    flat = plane(X, columns, held, resolution)
    own = np.asarray(machine.score_samples(X), dtype=np.float64)
    values = np.asarray(machine.score_samples(flat.rows), dtype=np.float64)
    axes = style.canvas(axes, (6.6, 4.6))
    levels = np.unique(np.quantile(own, SHARES))
    picture = flat.shaped(values)
    if len(levels) > 1:
        axes.contourf(flat.across, flat.up, picture, levels=levels, cmap=SHADES, extend="max", zorder=0)
    axes.contour(flat.across, flat.up, picture, levels=levels, colors="0.6", linestyles="-", linewidths=0.7, zorder=1)
    offset = getattr(machine, "offset_", None)
    strange = own < (-np.inf if offset is None else offset)
    for k, (label, rows) in enumerate((("rows", ~strange), ("anomalies", strange))):
        if rows.any():
            look: dict[str, Any] = {"color": style.colour(5 * k), "marker": style.marker(k), "zorder": 2}
            axes.scatter(*flat.points[rows].T, s=20, label=f"{label} ({rows.sum()})", linewidths=0.4, **look)
    if offset is not None and border(axes, flat, values, float(offset), "-", 1.6) is not None:
        axes.plot([], [], "-", color=style.INK, linewidth=1.6, label="threshold")
    mark_means(axes, means_of(machine, flat))
    axes.set(xlim=flat.extent[:2], ylim=flat.extent[2:])
    names = (style.plain(name, 40) for name in flat.names)
    style.dress(axes, f"{type(machine).__name__}: log-density", *names, grid=False)
    style.legend(axes)
    return style.root(axes)
