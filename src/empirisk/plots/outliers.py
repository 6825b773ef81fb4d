"""Where the data are: contours of a machine that tells rows like the data from outliers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.plane import plane
from empirisk.plots.regions import HELD, ring
from empirisk.plots.surface import border

INSIDE = LinearSegmentedColormap.from_list("inside", ["white", style.pale(style.PALETTE[0], 0.7)])
LEVELS = 7


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
    try:
        check_is_fitted(machine)
    except NotFittedError:
        raise EmpiriskError(f"The {name} is not fitted; call its fit(X) before drawing it.") from None
    flat = plane(X, columns, held, resolution)
    values = np.asarray(machine.decision_function(flat.rows), dtype=np.float64).ravel()
    axes = style.canvas(axes, (6.6, 4.6))
    if values.max() > 0:
        levels = np.linspace(0.0, float(values.max()), LEVELS)
        picture = flat.shaped(values)
        axes.contourf(flat.across, flat.up, picture, levels=levels, cmap=INSIDE, zorder=0, extend="max")
        axes.contour(flat.across, flat.up, picture, levels=levels[1:], colors=style.FAINT, linewidths=0.7, zorder=1)
    line = border(axes, flat, values, 0.0, "-", 1.4)
    inside = np.asarray(machine.predict(X)) > 0
    for k, (label, rows) in enumerate((("inside", inside), ("outside", ~inside))):
        number = 5 * k  # two colours far apart
        look = {"color": style.colour(number), "marker": style.marker(k), "zorder": 2}
        label = f"{label} ({np.count_nonzero(rows)})"
        axes.scatter(*flat.points[rows].T, s=24, edgecolors=style.INK, linewidths=0.4, label=label, **look)
    if line is not None:
        axes.plot([], [], color=style.INK, lw=1.4, label="boundary")
    support = np.asarray(getattr(machine, "support_", []), dtype=int)
    if len(support) and support.max() < len(flat.points):
        ring(axes, flat.points[support])
    axes.set(xlim=flat.extent[:2], ylim=flat.extent[2:])
    first, second = (style.plain(column, 40) for column in flat.names)
    title = f"{name}: where the data are"
    style.dress(axes, f"{title}\n{HELD}" if flat.held and not held else title, first, second, grid=False)
    style.legend(axes)
    return style.root(axes)
