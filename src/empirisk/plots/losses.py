"""Losses as curves, against the margin or the residual."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from empirisk import losses as parts
from empirisk.errors import EmpiriskError
from empirisk.losses.base import Loss
from empirisk.plots import style

LABELS = {"margin": "margin  t = y f(x)", "residual": "residual  e = f(x) - y"}
TASKS = {"margin": "classification", "residual": "regression"}
CLASSICAL = ("zero_one", "perceptron", "hinge", "squared_hinge", "logistic", "exponential")


def losses(
    which: str | Loss | Iterable[str | Loss] = CLASSICAL,
    *,
    against: str = "auto",
    reach: float = 3.0,
    axes: Axes | None = None,
) -> Figure:
    """Draw losses as functions of the margin t = y f(x), or of the residual e = f(x) - y.

    Parameters
    ----------
    which : name or Loss, or several
        The losses to compare.
    against : {"auto", "margin", "residual"}
        What to draw them against; "auto" takes the margin if every loss is one for classes.
    reach : float
        The curves run from -reach to reach.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = er.plots.losses(["hinge", er.losses.SoftHinge(temperature=0.5)])
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['hinge', 'SoftHinge(temperature=0.5)']
    """
    asked = [which] if isinstance(which, (str, Loss)) else list(which)
    if not asked:
        raise EmpiriskError("which holds no loss; name at least one, such as 'hinge'.")
    if not 0 < reach < np.inf:
        raise EmpiriskError(f"reach={reach!r} must be a positive number.")
    found = [(name, parts.find(name)) for name in asked]
    against = _axis(found, style.checked_choice("against", against, ("auto", *TASKS)))
    z = np.linspace(-reach, reach, 1201)
    axes = style.canvas(axes)
    highest = 0.0
    for number, (name, loss) in enumerate(found):
        values = loss.value(np.ones_like(z), z) if against == "margin" else loss.value(np.zeros_like(z), z)
        highest = max(highest, float(values[np.isfinite(values)].max()))
        label = name if isinstance(name, str) else style.plain(repr(name), 40)
        axes.plot(z, _broken(values), color=style.colour(number), linestyle=style.dashes(number), lw=1.8, label=label)
    top = min(highest, reach + 1.0)  # one steep loss does not flatten the others
    axes.set(xlim=(-reach, reach), ylim=(-0.03 * top, 1.05 * top))
    style.dress(axes, f"Losses of the {against}", LABELS[against], "loss")
    style.legend(axes)
    return style.root(axes)


def _axis(found: list[tuple[Any, Loss]], against: str) -> str:
    """What all the losses are functions of."""
    for name, loss in found:
        if loss.joint:
            raise EmpiriskError(f"loss={name!r} is a function of several scores; draw a loss of one number instead.")
    suitable = [axis for axis, task in TASKS.items() if all(task in loss.tasks for _, loss in found)]
    if against == "auto" and suitable:
        return suitable[0]
    if against in suitable:
        return against
    if against == "auto":
        raise EmpiriskError("which mixes losses for classes and for numbers; draw them in two figures.")
    strange = next(name for name, loss in found if TASKS[against] not in loss.tasks)
    raise EmpiriskError(f"loss={strange!r} is not a function of the {against}; leave it out or change against.")


def _broken(values: np.ndarray) -> np.ndarray:
    """The curve with a gap where it jumps."""
    jumps = np.abs(np.diff(values, append=values[-1])) > 0.5
    return np.where(jumps & (np.ptp(values) <= 1.0), np.nan, values)
