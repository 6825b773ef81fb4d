"""How clear the votes of an ensemble are, after several rounds of boosting."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.surface import classes_of, numbered

Array = NDArray[np.float64]


def margins(
    machine: Any, X: Any, y: ArrayLike, *, rounds: Sequence[int] | None = None, axes: Axes | None = None
) -> Figure:
    """Draw the share of rows whose margin is at most each value: where it crosses zero is the error.

    The margin of AdaBoost is  y f(x) / sum of alphas,  between -1 and 1; of other machines it is  y f(x),  or the score
    of the right class minus the best other one. Boosting goes on pushing margins up when the error is already zero.

    Parameters
    ----------
    machine : classifier
        A fitted `AdaBoostClassifier`, or any classifier with a ``decision_function``.
    X, y : table and classes
        The rows to look at.
    rounds : list of int, optional
        For AdaBoost: the rounds after which to draw; None takes a few, and the last.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X = np.arange(12.0)[:, None]
    >>> y = (X[:, 0] > 3) & (X[:, 0] < 9)
    >>> figure = er.plots.margins(er.AdaBoostClassifier(n_estimators=30).fit(X, y), X, y, rounds=[3, 30])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['3 rounds: error 0', '30 rounds: error 0']
    """
    classes = classes_of(machine)
    votes = hasattr(machine, "margins") and hasattr(machine, "alphas_")
    if not votes and rounds is not None:
        raise EmpiriskError("rounds needs an AdaBoostClassifier, whose votes can be counted round by round.")
    curves: dict[str, Array] = {}
    if votes:
        for count in _chosen(rounds, len(machine.alphas_)):
            curves[f"{count} rounds" if count != 1 else "1 round"] = _after(machine, count).margins(X, y)
    elif hasattr(machine, "decision_function"):
        curves["all"] = _leads(np.asarray(machine.decision_function(X), dtype=np.float64), numbered(y, classes))
    else:
        raise EmpiriskError(f"The {type(machine).__name__} has no decision_function, so that it has no margins.")
    axes = style.canvas(axes)
    everything = np.concatenate(list(curves.values()))
    limits = (-1.03, 1.03) if votes else style.padded(np.append(everything, 0.0))
    for number, (name, values) in enumerate(curves.items()):
        ordered = np.sort(values)
        shares = np.arange(len(ordered) + 1) / len(ordered)
        axes.step(
            np.concatenate([limits[:1], ordered, limits[1:]]),
            np.append(shares, 1.0),
            where="post",
            color=style.colour(number),
            lw=1.7,
            linestyle=style.dashes(number),
            label=f"{name}: error {np.mean(values < 0):.3g}",
        )
    axes.axvline(0, color=style.INK, lw=0.9)
    axes.set(xlim=limits, ylim=(-0.02, 1.02))
    across = "margin  y f(x) / sum of alphas" if votes else "margin  y f(x)"
    style.dress(axes, f"{type(machine).__name__}: margins of {len(values)} rows", across, "share with no larger margin")
    style.legend(axes)
    return style.root(axes)


def _chosen(rounds: Sequence[int] | None, total: int) -> list[int]:
    if rounds is None:
        return sorted({count for count in (1, 5, 25, 100) if count < total} | {total})
    strange = [count for count in rounds if not 1 <= count <= total]
    if strange or not len(rounds):
        raise EmpiriskError(f"rounds={list(rounds)!r} must be numbers from 1 to the {total} rounds of the machine.")
    return sorted({int(count) for count in rounds})


def _after(machine: Any, count: int) -> Any:
    """The machine as it was after some rounds."""
    earlier = copy(machine)
    earlier.estimators_, earlier.alphas_ = machine.estimators_[:count], machine.alphas_[:count]
    return earlier


def _leads(scores: Array, codes: NDArray[np.intp]) -> Array:
    """Score of the right class minus the best other one."""
    if scores.ndim == 1:
        return np.where(codes == 1, scores, -scores)
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, codes] = -np.inf
    return scores[rows, codes] - others.max(axis=1)
