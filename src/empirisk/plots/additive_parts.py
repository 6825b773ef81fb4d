"""The parts of an additive machine: a curve for every column, a picture for every pair of columns."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from empirisk.contract.arguments import check_count
from empirisk.errors import EmpiriskError
from empirisk.plots import planes, style

Array = NDArray[np.float64]
CURVE = 200  # places along a curve: two pixels apart
GRID = 40  # places across a picture: its contours look smooth
LEVELS = 12  # shades of a picture


def additive(machine: Any, X: Any, *, output: int = 0, most: int = 12) -> Figure:
    """Draw the parts f_j of a machine behind a sum of kernels: f(x) = b + sum_j f_j(x).

    A part of one column is a curve, with a mark below for every row; a part of two columns is a picture. Curves share
    one scale, so that the parts that matter stand out; those whose values spread most over the rows come first.

    Parameters
    ----------
    machine : machine
        Fitted, behind `kernels.Anova` or another sum of kernels on columns, such as ``k1.on([0]) + k2.on([1])``.
    X : array or data frame
        Rows to draw over.
    output : int
        Which function of a machine with several, such as one for each class.
    most : int
        Most parts to draw.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> machine = er.Ridge(features=er.kernels.Anova()).fit(X, np.sin(X[:, 0]) + X[:, 1] ** 2)
    >>> figure = er.plots.additive(machine, X)
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['x1', 'x0']
    """
    planes.require(machine, "parts", call="fit(X, y)")
    check_count("most", most)
    table = planes.table_of(X)
    terms, values = machine._terms(None), _of_output(machine.parts(X), output)
    spread = values.std(axis=0)
    drawable = [k for k, term in enumerate(terms) if term.columns is not None and len(term.columns) <= 2]
    if not drawable:
        raise EmpiriskError(
            f"No part of features={machine.features!r} belongs to one or two columns; use a sum of kernels such as "
            "kernels.Anova(), or give each kernel its columns with .on(columns)."
        )
    chosen = sorted(drawable, key=lambda k: -spread[k])[:most]
    left_out = len(terms) - len(chosen)
    more = f", {left_out} more not drawn" if left_out else ""
    panels = style.listed_panels(len(chosen), f"{type(machine).__name__}: {len(chosen)} parts{more}")
    limits = style.padded(values[:, [k for k in chosen if len(terms[k].columns) == 1] or chosen])
    for axes, number in zip(panels, chosen, strict=True):
        _draw(axes, machine, table, (number, output), terms[number].columns, limits)
    return style.root(panels[0])


def check_output(output: Any, outputs: int) -> None:
    """Raise where ``output`` is not the number of one of a machine's functions."""
    if not (isinstance(output, (int, np.integer)) and 0 <= output < outputs):
        raise EmpiriskError(f"output={output!r} must be a number from 0 to {outputs - 1}: the machine has {outputs}.")


def _of_output(parts: Array, output: int) -> Array:
    """The parts of one function."""
    check_output(output, 1 if parts.ndim == 2 else parts.shape[2])
    return parts if parts.ndim == 2 else parts[:, :, output]


def _draw(
    axes: Axes, machine: Any, table: Any, which: tuple[int, int], columns: tuple[int, ...], limits: tuple[float, float]
) -> None:
    """One part: along its column, or over its two."""
    number, output = which
    names = [style.plain(table.names[j], style.UP) for j in columns]
    seen = [table.numbers(j) for j in columns]
    places = [np.linspace(*style.padded(one, 0.02), CURVE if len(columns) == 1 else GRID) for one in seen]
    mesh = [one.ravel() for one in np.meshgrid(*places)]
    others = {j: None for j in range(len(table.names)) if j not in columns}
    rows = table.rows(dict(zip(columns, mesh, strict=True)), others)
    values = _of_output(machine.parts(rows), output)[:, number]
    if len(columns) == 1:
        axes.plot(places[0], values, **style.look(0))
        axes.plot(seen[0], np.full(len(seen[0]), limits[0]), "|", color=style.SOFT, ms=5, clip_on=False)
        axes.set_ylim(limits)
        style.dress(axes, "", names[0], f"part of {names[0]}")
        return
    reach = float(np.abs(values).max()) or 1.0
    levels = MaxNLocator(LEVELS, symmetric=True).tick_values(-reach, reach)
    picture = axes.contourf(*places, values.reshape(GRID, GRID), levels=levels, cmap="PuOr_r")
    axes.plot(*seen, ".", color=style.INK, ms=1.5)
    style.scale(axes, picture, "")
    style.dress(axes, "", *names, grid=False)
