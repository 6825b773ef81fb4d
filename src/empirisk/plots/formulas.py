"""Formulas as curves: kernels by distance, impurities of two classes, the powers of Box and Cox."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from empirisk.kernels import Gaussian, Kernel, Laplacian, find
from empirisk.plots import style

#: One with a smooth top, one with a corner.
COMMON = (Gaussian(), Laplacian())
#: Of the share p of one of two classes.
IMPURITIES = {
    "gini": lambda p: 2 * p * (1 - p),
    "entropy": lambda p: -sum(q * np.log2(np.where(q > 0, q, 1)) for q in (p, 1 - p)),
    "error": lambda p: np.minimum(p, 1 - p),
}
IMPURITY_LABELS = {"gini": "gini  2p(1 - p)", "entropy": "entropy, in bits", "error": "error  min(p, 1 - p)"}


def kernels(
    which: str | Kernel | Iterable[str | Kernel] = COMMON,
    *,
    reach: float = 3.0,
    at: float = 0.0,
    axes: Axes | None = None,
) -> Figure:
    """Draw kernels k(x, z) of one column as functions of the distance x - z, with z fixed.

    Parameters
    ----------
    which : name or Kernel, or several
        Kernels on vectors, of which one column is drawn.
    reach : float
        The curves run from -reach to reach.
    at : float
        The place z: kernels that depend on more than the distance, such as polynomials, differ with it.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.kernels([er.kernels.Gaussian(1.0), er.kernels.Laplacian(2.0)])
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['Gaussian(1.0)', 'Laplacian(2.0)']
    """
    asked = [which] if isinstance(which, (str, Kernel)) else list(which)
    distances = np.linspace(-reach, reach, 601)
    axes = style.canvas(axes)
    for number, name in enumerate(asked):
        values = find(name).block((at + distances)[:, None], np.array([[at]])).ravel()
        label = name if isinstance(name, str) else style.plain(repr(name), style.ACROSS)
        axes.plot(distances, values, label=label, **style.look(number))
    axes.set_xlim(-reach, reach)
    where = "" if at == 0 else f" at z = {at:g}"
    return style.finished(axes, f"Kernels by distance{where}", "x - z", "k(x, z)")


def impurities(which: Iterable[str] = tuple(IMPURITIES), *, axes: Axes | None = None) -> Figure:
    """Draw what trees call impure: measures of a node with two classes, as functions of the share of one.

    Parameters
    ----------
    which : list of {"gini", "entropy", "error"}
        The measures to compare.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.impurities(["gini", "error"])
    >>> [float(line.get_ydata().max()) for line in figure.axes[0].lines]
    [0.5, 0.5]
    """
    p = np.linspace(0, 1, 501)
    axes = style.canvas(axes)
    for number, name in enumerate(style.checked_choice("which", name, IMPURITIES) for name in which):
        axes.plot(p, IMPURITIES[name](p), label=IMPURITY_LABELS[name], **style.look(number))
    axes.set(xlim=(0, 1), ylim=(-0.02, 1.05))
    return style.finished(axes, "Impurity of a node with two classes", "share p of one class", "impurity")


def box_cox(powers: Iterable[float] = (-1.0, 0.0, 0.5, 1.0, 2.0), *, axes: Axes | None = None) -> Figure:
    """Draw the transformations of Box and Cox, (x^power - 1) / power, and log(x) for power 0.

    Parameters
    ----------
    powers : list of float
        Below 1 they draw large values in; 1 leaves the shape as it is.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> [line.get_label() for line in er.plots.box_cox([0.0, 1.0]).axes[0].lines]
    ['0: log(x)', '1']
    """
    x = np.geomspace(0.05, 4, 400)
    axes = style.canvas(axes)
    for number, power in enumerate(powers):
        values = np.log(x) if power == 0 else (x**power - 1) / power
        axes.plot(x, values, label=f"{power:g}: log(x)" if power == 0 else f"{power:g}", **style.look(number))
    axes.set(xlim=(0, 4), ylim=(-3, 3.5))
    return style.finished(axes, "Box-Cox transformations by their power", "x", "transformed")
