"""Classification in one dimension: the decision function, and the dual coefficients as stems."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.line import line
from empirisk.plots.surface import classes_of, numbered

Array = NDArray[np.float64]
RESOLUTION = 400


def stems(machine: Any, X: Any, y: ArrayLike, *, resolution: int = RESOLUTION, axes: Axes | None = None) -> Figure:
    """Draw the decision function of a machine of two classes along one column, with a stem for every dual coefficient.

    A stem stands at each row with the height alpha_i y_i: f(x) = sum_i alpha_i y_i k(x_i, x) + b. Rows without a stem
    do not count. `animate` with ``kind="dual"`` shows them as they grow.

    Parameters
    ----------
    machine : classifier
        Fitted, of two classes, behind a kernel: it has ``dual_coef_`` and ``support_``.
    X : array or data frame with one column, or array of n
        The rows that it was fitted to.
    y : array of n
        Their classes.
    resolution : int
        Places at which the function is drawn.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "a"]
    >>> machine = er.SVM(C=10.0, features=er.kernels.Gaussian(0.7)).fit(X, y)
    >>> figure = er.plots.stems(machine, X, y)
    >>> figure.axes[0].get_legend().get_texts()[-1].get_text()
    'dual coefficient'
    """
    points, places, rows = line(X, resolution)
    classes = classes_of(machine)
    if len(classes) != 2 or not (hasattr(machine, "dual_coef_") and hasattr(machine, "support_")):
        raise EmpiriskError(
            f"The {type(machine).__name__} has no dual coefficients of two classes; give a fitted machine of two "
            "classes behind a kernel, such as er.SVM(features='gaussian')."
        )
    codes = numbered(y, classes)
    support = np.asarray(machine.support_)
    if len(codes) != len(points) or support.max(initial=-1) >= len(points):
        raise EmpiriskError("X and y must be the rows that the machine was fitted to.")
    heights = np.zeros(len(points))
    heights[support] = np.ravel(machine.dual_coef_)
    axes = style.canvas(axes, (7.0, 4.4))
    values = np.asarray(machine.decision_function(rows), dtype=np.float64)
    draw_stems(axes, (places, values), points, heights, (codes, classes))
    title = f"{type(machine).__name__}: {np.count_nonzero(heights)} of {len(points)} rows count"
    style.dress(axes, title, "x", "f(x) and dual coefficients")
    style.legend(axes)
    return style.root(axes)


def draw_stems(
    axes: Axes, curve: tuple[Array, Array], points: Array, heights: Array, labels: tuple[NDArray, NDArray]
) -> None:
    """The function, its level 0 and its margin, the rows by class, and a stem for each."""
    codes, classes = labels
    places, values = curve
    axes.plot(places, values, color=style.INK, lw=1.6, label="f(x)", zorder=3)
    for level, dash in ((0.0, "-"), (1.0, "--"), (-1.0, "--")):
        axes.axhline(level, color=style.SOFT, lw=0.8, linestyle=dash, zorder=1)
    axes.vlines(points, 0, heights, color=style.SOFT, lw=1.2, zorder=2)
    for k in np.unique(codes):
        own = codes == k
        look = {"color": style.colour(k), "marker": style.marker(k), "zorder": 4}
        axes.scatter(points[own], heights[own], s=24, edgecolors=style.INK, linewidths=0.4, **look)
        axes.plot([], [], linestyle="", color=style.colour(k), marker=style.marker(k), label=style.plain(classes[k]))
    axes.plot([], [], color=style.SOFT, lw=1.2, label="dual coefficient")
    axes.set_xlim(places[0], places[-1])
