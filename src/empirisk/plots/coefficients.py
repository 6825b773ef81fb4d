"""The weights of a machine along its path over C."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.errors import EmpiriskError
from empirisk.plots import style


def coefficients(
    path: Any,
    coefs: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    output: int = 0,
    most: int = 10,
    chosen: float | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw every weight against C, on a logarithmic scale; the largest at the end are named.

    Parameters
    ----------
    path : Path, or array of k
        What `empirisk.selection.path` returns, or the values of C.
    coefs : array, k x d or k x outputs x d
        The weights at each C, if ``path`` is an array.
    names : list of str, optional
        Names of the d weights.
    output : int
        Which machine's weights to draw, where there is one for each class.
    most : int
        How many weights to name; the others are grey.
    chosen : float, optional
        A value of C to mark.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X, y = np.eye(3), np.array([3.0, 2.0, 1.0])
    >>> path = er.selection.path(er.Lasso(fit_intercept=False), X, y, Cs=30)
    >>> figure = er.plots.coefficients(path, names=["age", "income", "rooms"])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['age', 'income', 'rooms']
    """
    Cs, weights = _read(path, coefs, output)
    columns = weights.shape[1]
    if names is not None and len(names) != columns:
        raise EmpiriskError(f"names holds {len(names)} names for {columns} weights; give one for each.")
    named = [f"x{k}" for k in range(columns)] if names is None else names
    order = np.argsort(-np.abs(weights[-1]), kind="stable")
    axes = style.canvas(axes)
    for column in order[most:]:
        axes.plot(Cs, weights[:, column], color="0.75", lw=0.8, zorder=1)
    for rank, column in enumerate(order[:most]):
        axes.plot(
            Cs,
            weights[:, column],
            color=style.colour(rank),
            linestyle=style.dashes(rank),
            lw=1.7,
            zorder=2,
            label=style.plain(named[column]),
        )
    if columns > most:
        axes.plot([], [], color="0.75", lw=0.8, label=f"{columns - most} others")
    axes.axhline(0, color=style.SOFT, lw=0.8, zorder=0)
    if chosen is not None:
        axes.axvline(chosen, color=style.INK, lw=1.0, linestyle=":", label=f"chosen C = {chosen:.3g}")
    axes.set_xscale("log")
    axes.set_xlim(*((Cs[0], Cs[-1]) if len(Cs) > 1 else (Cs[0] / 2, 2 * Cs[0])))
    style.dress(axes, "Path of the coefficients", "C  (less regularisation to the right)", "weight")
    style.legend(axes)
    return style.root(axes)


def _read(path: Any, coefs: ArrayLike | None, output: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of C, increasing, and the weights of one output."""
    if coefs is None:
        if not (hasattr(path, "Cs") and hasattr(path, "coefs")):
            raise EmpiriskError("path must be what er.selection.path returns, or values of C with coefs beside them.")
        path, coefs = path.Cs, path.coefs
    Cs, weights = np.asarray(path, dtype=np.float64), np.asarray(coefs, dtype=np.float64)
    if weights.ndim == 3:
        if not 0 <= output < weights.shape[1]:
            raise EmpiriskError(f"output={output!r} is outside the {weights.shape[1]} machines of the path.")
        weights = weights[:, output]
    if Cs.ndim != 1 or weights.ndim != 2 or len(Cs) != len(weights) or not len(Cs):
        raise EmpiriskError(f"coefs of shape {weights.shape} must have a row for each of the {Cs.size} values of C.")
    if not (Cs > 0).all():
        raise EmpiriskError("path holds values of C that are not positive; a logarithmic scale cannot show them.")
    order = np.argsort(Cs, kind="stable")
    return Cs[order], weights[order]
