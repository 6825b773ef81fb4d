"""Machines of one column: regressions, and the dual coefficients of a classifier as stems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import _is_fitted

from empirisk.errors import EmpiriskError, MissingValues
from empirisk.plots import style
from empirisk.plots.planes import Array, classes_of, numbered, points, table_of


def line(X: Any, resolution: int, extent: tuple[float, float] | None = None) -> tuple[Array, Array, Any]:
    """The only column of X, places along it, and these places as rows of the kind that X is."""
    if not (isinstance(resolution, (int, np.integer)) and 2 <= resolution <= 100_000):
        raise EmpiriskError(f"resolution={resolution!r} must be a whole number from 2 to 100000.")
    table = table_of(np.asarray(X)[:, None] if np.ndim(X) == 1 else X)
    if len(table.names) != 1:
        raise EmpiriskError(f"X has {len(table.names)} columns; a picture in one dimension needs rows with one column.")
    values = table.numbers(0)
    if not np.isfinite(values).all():
        raise MissingValues("X holds missing or infinite values; leave these rows out.")
    low, high = style.padded(values) if extent is None else extent
    if not low < high:
        raise EmpiriskError(f"extent={extent!r} must be two numbers, the smaller one first.")
    places = np.linspace(low, high, int(resolution))
    return values, places, table.rows({0: places}, {})


def regression(
    machines: Any,
    X: Any,
    y: ArrayLike,
    *,
    C: Sequence[float] | None = None,
    truth: Callable[[Any], Any] | ArrayLike | None = None,
    extent: tuple[float, float] | None = None,
    resolution: int = 400,
    axes: Axes | None = None,
) -> Figure:
    """Draw what regressions predict along one column, over the points.

    Parameters
    ----------
    machines : regressor, list or dict
        One or several; those that are not fitted are fitted to X and y, as copies. A dictionary names the curves.
    X : array or data frame with one column, or array of n
        Where the points are.
    y : array of n
        Their targets.
    C : list of float, optional
        Fit a copy of the one machine for each of these, in place of itself.
    truth : function or array, optional
        The function that the points follow: it takes an array of places; or its values at the places of the picture,
        ``np.linspace(*extent, resolution)``.
    extent : (float, float), optional
        From where to where; None leaves a little room around the points.
    resolution : int
        Places at which the curves are drawn.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> x = np.linspace(0, 6, 30)
    >>> machine = er.Ridge(features=er.kernels.Gaussian(0.5))
    >>> figure = er.plots.regression(machine, x, np.sin(x), C=[0.01, 1.0, 100.0], truth=np.sin)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['data', 'truth', 'C = 0.01', 'C = 1', 'C = 100']
    """
    known, places, rows = line(X, resolution, extent)
    targets = np.asarray(y, dtype=np.float64)
    if targets.shape != known.shape:
        raise EmpiriskError(f"y has shape {targets.shape}, but X has {len(known)} rows; give one number for each.")
    table = known[:, None] if np.ndim(X) == 1 else X
    curves = {
        name: np.asarray(fitted(machine, table, targets).predict(rows), dtype=np.float64)
        for name, machine in _named(machines, C).items()
    }
    axes = style.canvas(axes, style.WIDE)
    axes.scatter(known, targets, s=18, color=style.SOFT, edgecolors="white", linewidths=0.4, label="data", zorder=2)
    if truth is not None:
        axes.plot(places, _truth(truth, places), color=style.INK, lw=1.2, linestyle=":", label="truth", zorder=3)
    for number, (name, values) in enumerate(curves.items()):
        if values.shape != places.shape:
            raise EmpiriskError(f"{name} predicts {values.shape[1:]} numbers for a row; a picture shows one.")
        axes.plot(places, values, label=style.plain(name), zorder=4, **style.look(number))
    axes.set_xlim(places[0], places[-1])
    axes.set_ylim(*style.padded(np.concatenate([targets, *curves.values()])))
    return style.finished(axes, "Regression", "x", "y")


def _named(machines: Any, C: Sequence[float] | None) -> dict[str, Any]:
    """The machines by the names of their curves."""
    named = style.named(machines, lambda machine: type(machine).__name__)
    if not named or not all(hasattr(machine, "predict") for machine in named.values()):
        raise EmpiriskError("machines must be a regressor, or a list or dictionary of regressors.")
    if C is None:
        return named
    if len(named) != 1:
        raise EmpiriskError(f"C=... draws one machine several times, and machines holds {len(named)}; give one.")
    (machine,) = named.values()
    return {f"C = {value:g}": clone(machine).set_params(C=value) for value in C}


def fitted(machine: Any, X: Any, y: Any) -> Any:
    """The machine itself if it is fitted, else a fitted copy."""
    return machine if _is_fitted(machine) else clone(machine).fit(X, y)


def _truth(truth: Any, places: np.ndarray) -> np.ndarray:
    values = np.asarray(truth(places) if callable(truth) else truth, dtype=np.float64)
    if values.shape != places.shape:
        raise EmpiriskError(f"truth has shape {values.shape}; give a value for each of the {len(places)} places.")
    return values


RESOLUTION = 400  # places: less than two pixels apart at the usual width


def stems(machine: Any, X: Any, y: ArrayLike, *, resolution: int = RESOLUTION, axes: Axes | None = None) -> Figure:
    """Draw the decision function of a machine of two classes along one column, with a stem for every dual coefficient.

    A stem stands at each row with the height alpha_i y_i: f(x) = sum_i alpha_i y_i k(x_i, x) + b. Rows without a stem
    do not count. `animate` with ``kind="dual"`` shows them as they grow.

    Parameters
    ----------
    machine : classifier
        Fitted, of two classes, with ``dual_coef_`` and ``support_``: an SVM, or any machine behind a kernel.
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
    known, places, rows = line(X, resolution)
    classes = classes_of(machine)
    if len(classes) != 2 or not (hasattr(machine, "dual_coef_") and hasattr(machine, "support_")):
        raise EmpiriskError(
            f"The {type(machine).__name__} has no dual coefficients of two classes; give a fitted machine of two "
            "classes behind a kernel, or an SVM, such as er.SVM(features='gaussian')."
        )
    codes = numbered(y, classes)
    support = np.asarray(machine.support_)
    if len(codes) != len(known) or support.max(initial=-1) >= len(known):
        raise EmpiriskError("X and y must be the rows that the machine was fitted to.")
    heights = np.zeros(len(known))
    heights[support] = np.ravel(machine.dual_coef_)
    axes = style.canvas(axes, style.WIDE)
    values = np.asarray(machine.decision_function(rows), dtype=np.float64)
    draw_stems(axes, (places, values), known, heights, (codes, classes))
    title = f"{type(machine).__name__}: {np.count_nonzero(heights)} of {len(known)} rows count"
    return style.finished(axes, title, "x", "f(x) and dual coefficients")


def draw_stems(
    axes: Axes, curve: tuple[Array, Array], known: Array, heights: Array, labels: tuple[NDArray, NDArray]
) -> None:
    """The function, its level 0 and its margin, the rows by class, and a stem for each."""
    codes, classes = labels
    places, values = curve
    axes.plot(places, values, color=style.INK, lw=1.6, label="f(x)", zorder=3)
    for level, dash in ((0.0, "-"), (1.0, "--"), (-1.0, "--")):
        axes.axhline(level, color=style.SOFT, lw=0.8, linestyle=dash, zorder=1)
    axes.vlines(known, 0, heights, color=style.SOFT, lw=1.2, zorder=2)
    for k in np.unique(codes):
        own = codes == k
        points(axes, (known[own], heights[own]), k, style.plain(classes[k]), zorder=4)
    axes.plot([], [], color=style.SOFT, lw=1.2, label="dual coefficient")
    axes.set_xlim(places[0], places[-1])
