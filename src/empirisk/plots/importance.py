"""Importances as bars, the largest on top, with their spread."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.errors import EmpiriskError
from empirisk.plots import style


def importance(
    values: Any,
    deviations: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    most: int = 20,
    axes: Axes | None = None,
) -> Figure:
    """Draw how much a machine relies on each column; whiskers are one standard deviation.

    Parameters
    ----------
    values : table, Bunch or array of d
        What ``machine.importances(X, y)`` or scikit-learn's ``permutation_importance`` returns, or the numbers.
    deviations : array of d, optional
        Their spread, if ``values`` is an array.
    names : list of str, optional
        Names of the d columns, if ``values`` does not hold them.
    most : int
        How many to draw.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.importance([0.1, 0.4], [0.02, 0.05], names=["age", "income"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['income', 'age']
    """
    means, spread, named = _read(values, deviations, names)
    if not (isinstance(most, (int, np.integer)) and most >= 1):
        raise EmpiriskError(f"most={most!r} must be a whole number, at least 1.")
    order = np.argsort(-means, kind="stable")[:most]
    axes = style.canvas(axes, (6.4, 1.3 + 0.27 * len(order)))
    axes.barh(
        np.arange(len(order)),
        means[order],
        xerr=None if spread is None else spread[order],
        height=0.68,
        color=[style.PALETTE[0] if means[k] > 0 else style.PALETTE[8] for k in order],
        error_kw={"ecolor": style.INK, "elinewidth": 1.0, "capsize": 2.5},
    )
    axes.axvline(0, color=style.SOFT, lw=0.8)
    axes.set_yticks(np.arange(len(order)), [style.plain(named[k], 32) for k in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    left_out = f", {len(order)} of {len(means)} columns" if len(order) < len(means) else ""
    across = "importance" if _is_plain(values) else "fall of the score when the column is shuffled"
    style.dress(axes, f"Importance{left_out}", across, "")
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    return style.root(axes)


def _is_plain(values: Any) -> bool:
    return not (hasattr(values, "importances_mean") or hasattr(values, "columns"))


def _read(
    values: Any, deviations: ArrayLike | None, names: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray | None, Sequence[str]]:
    """Means, spread and names from any of the forms."""
    if hasattr(values, "importances_mean"):
        values, deviations = values.importances_mean, values.importances_std
    elif hasattr(values, "columns"):
        missing = {"feature", "importance"} - set(values.columns)
        if missing:
            raise EmpiriskError(f"values has no column {sorted(missing)[0]!r}; give what importances(X, y) returns.")
        names = [str(name) for name in values["feature"]] if names is None else names
        deviations = values["deviation"] if "deviation" in values.columns else None
        values = values["importance"]
    means = np.asarray(values, dtype=np.float64)
    if means.ndim != 1 or not len(means) or not np.isfinite(means).all():
        raise EmpiriskError(f"values of shape {means.shape} must be a finite number for each column.")
    spread = None if deviations is None else np.asarray(deviations, dtype=np.float64)
    named = [f"x{k}" for k in range(len(means))] if names is None else names
    if len(named) != len(means) or (spread is not None and spread.shape != means.shape):
        raise EmpiriskError(f"names and deviations must have {len(means)} entries, one for each of values.")
    return means, spread, named
