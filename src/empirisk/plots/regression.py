"""Regression in one dimension: points, the curves of several machines, and the truth."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.line import line


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
    points, places, rows = line(X, resolution, extent)
    targets = np.asarray(y, dtype=np.float64)
    if targets.shape != points.shape:
        raise EmpiriskError(f"y has shape {targets.shape}, but X has {len(points)} rows; give one number for each.")
    table = points[:, None] if np.ndim(X) == 1 else X
    curves = {
        name: np.asarray(_fitted(machine, table, targets).predict(rows), dtype=np.float64)
        for name, machine in _named(machines, C).items()
    }
    axes = style.canvas(axes, (7.0, 4.4))
    axes.scatter(points, targets, s=18, color=style.SOFT, edgecolors="white", linewidths=0.4, label="data", zorder=2)
    if truth is not None:
        axes.plot(places, _truth(truth, places), color=style.INK, lw=1.2, linestyle=":", label="truth", zorder=3)
    for number, (name, values) in enumerate(curves.items()):
        if values.shape != places.shape:
            raise EmpiriskError(f"{name} predicts {values.shape[1:]} numbers for a row; a picture shows one.")
        look = {"color": style.colour(number), "linestyle": style.dashes(number)}
        axes.plot(places, values, lw=1.8, label=style.plain(name), zorder=4, **look)
    axes.set_xlim(places[0], places[-1])
    axes.set_ylim(*style.padded(np.concatenate([targets, *curves.values()])))
    style.dress(axes, "Regression", "x", "y")
    style.legend(axes)
    return style.root(axes)


def _named(machines: Any, C: Sequence[float] | None) -> dict[str, Any]:
    """The machines by the names of their curves."""
    if isinstance(machines, Mapping):
        named = {str(name): machine for name, machine in machines.items()}
    elif isinstance(machines, (list, tuple)):
        kinds = [type(machine).__name__ for machine in machines]
        named = {
            kind if kinds.count(kind) == 1 else f"{kind} {kinds[: place + 1].count(kind)}": machine
            for place, (kind, machine) in enumerate(zip(kinds, machines, strict=True))
        }
    else:
        named = {type(machines).__name__: machines}
    if not named or not all(hasattr(machine, "predict") for machine in named.values()):
        raise EmpiriskError("machines must be a regressor, or a list or dictionary of regressors.")
    if C is None:
        return named
    if len(named) != 1:
        raise EmpiriskError(f"C=... draws one machine several times, and machines holds {len(named)}; give one.")
    (machine,) = named.values()
    return {f"C = {value:g}": clone(machine).set_params(C=value) for value in C}


def _fitted(machine: Any, X: Any, y: Any) -> Any:
    """The machine itself if it is fitted, else a fitted copy."""
    try:
        check_is_fitted(machine)
    except NotFittedError:
        return clone(machine).fit(X, y)
    return machine


def _truth(truth: Any, places: np.ndarray) -> np.ndarray:
    values = np.asarray(truth(places) if callable(truth) else truth, dtype=np.float64)
    if values.shape != places.shape:
        raise EmpiriskError(f"truth has shape {values.shape}; give a value for each of the {len(places)} places.")
    return values
