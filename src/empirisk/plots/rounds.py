"""The error of an ensemble after every round, and the bound on it."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from empirisk.errors import EmpiriskError
from empirisk.plots import style


def rounds(machine: Any, X: Any = None, y: ArrayLike | None = None, *, axes: Axes | None = None) -> Figure:
    """Draw the error of boosting after each round; for AdaBoost also on its training rows, below its bound.

    Parameters
    ----------
    machine : fitted ensemble
        An `AdaBoostClassifier`, or anything with ``staged_predict``.
    X, y : table and target, optional
        Rows held out, to show their error (root mean squared for numbers). AdaBoost can do without.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.arange(12.0)[:, None]
    >>> y = (X[:, 0] > 3) & (X[:, 0] < 9)
    >>> figure = er.plots.rounds(er.AdaBoostClassifier(n_estimators=10).fit(X, y))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['bound', 'training error']
    """
    curves = {}
    if hasattr(machine, "bound_"):
        curves["bound"] = machine.bound_
    if hasattr(machine, "training_errors_"):
        curves["training error"] = machine.training_errors_
    if X is not None:
        curves["error on the rows given"] = staged_errors(machine, X, y)
    if not curves:
        raise EmpiriskError(f"The {type(machine).__name__} keeps no errors; give X and y to measure them on.")
    axes = style.canvas(axes)
    for number, (name, values) in enumerate(curves.items()):
        axes.plot(
            np.arange(1, len(values) + 1),
            values,
            color=style.colour(number),
            linestyle=style.dashes(number),
            lw=1.7,
            label=name,
            marker="o" if len(values) <= 25 else None,
            ms=3.5,
        )
    longest = max(map(len, curves.values()))
    axes.set_xlim(*((0.5, 1.5) if longest == 1 else (1 - 0.01 * longest, 1.01 * longest)))
    axes.set_ylim(0 - 0.02 * max(map(np.max, curves.values())), None)
    style.whole_numbers(axes)
    error = "error" if is_classifier(machine) else "root mean squared error"
    style.dress(axes, f"{type(machine).__name__} over its rounds", "round", error)
    style.legend(axes)
    return style.root(axes)


def staged_errors(machine: Any, X: Any, y: ArrayLike | None) -> np.ndarray:
    """The error after each round."""
    if not hasattr(machine, "staged_predict"):
        raise EmpiriskError(f"The {type(machine).__name__} has no staged_predict; give a machine that boosts.")
    if y is None:
        raise EmpiriskError("y is missing; give the targets of X to measure errors.")
    known = np.asarray(y)
    if is_classifier(machine):
        return np.array([np.mean(np.asarray(said) != known) for said in machine.staged_predict(X)])
    return np.array([np.sqrt(np.mean((np.asarray(said) - known) ** 2)) for said in machine.staged_predict(X)])
