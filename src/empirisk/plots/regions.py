"""Decision regions of a classifier on two columns, with its margin and support vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from empirisk import losses
from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.plane import plane
from empirisk.plots.surface import border, classes_of, numbered, paint, scatter, surface_of

#: scikit-learn's support vectors lie on the margin to about this much.
ON_MARGIN = 1e-3
HELD = "other columns held at their medians"


def regions(
    machine: Any,
    X: Any,
    y: ArrayLike,
    *,
    columns: Sequence[int | str] = (0, 1),
    held: Mapping[Any, Any] | None = None,
    margins: bool | None = None,
    resolution: int = 200,
    axes: Axes | None = None,
) -> Figure:
    """Draw the regions in which a classifier predicts each class, over the data.

    Dashed lines are the margin, f(x) = -1 and f(x) = +1; rings mark support vectors, the rows with y f(x) <= 1.

    Parameters
    ----------
    machine : classifier
        Any fitted classifier, of Empirisk or scikit-learn.
    X : array or data frame, n x d
        Rows to show. The machine is asked about all d columns.
    y : array of n
        Their classes.
    columns : two int or str
        The columns to draw.
    held : dict, optional
        Values of other columns, by name or number; what is not given keeps its median (text: its commonest value).
    margins : bool or None
        Whether to draw the margin and mark support vectors. None: where a machine of two classes has a margin
        (hinge losses, scikit-learn's SVC).
    resolution : int
        Points of the grid in each direction.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X, y = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 1.0], [4.0, 1.0]]), ["no", "no", "yes", "yes"]
    >>> figure = er.plots.regions(er.SVM().fit(X, y), X, y)
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['no', 'yes', 'margin, f = ±1', 'support vector (2)']
    """
    classes = classes_of(machine)
    flat = plane(X, columns, held, resolution)
    codes = numbered(y, classes)
    if len(codes) != len(flat.points):
        raise EmpiriskError(f"y holds {len(codes)} labels for the {len(flat.points)} rows of X; give one for each.")
    if margins and not (len(classes) == 2 and hasattr(machine, "decision_function")):
        raise EmpiriskError("margins=True needs a machine of two classes with a decision_function; use margins=None.")
    axes = style.canvas(axes, (6.6, 4.6))
    paint(axes, flat, surface_of(machine, flat.rows, classes))
    scatter(axes, flat, codes, classes)
    if has_margin(machine, classes) if margins is None else margins:
        f = np.asarray(machine.decision_function(flat.rows), dtype=np.float64)
        lines = [border(axes, flat, f, level, "--", 1.0) for level in (-1.0, 1.0)]
        if any(line is not None for line in lines):
            axes.plot([], [], "--", color=style.INK, linewidth=1.0, label="margin, f = ±1")
        ring(axes, flat.points[supporting(machine, X, codes)])
    first, second = (style.plain(name, 40) for name in flat.names)
    title = f"{type(machine).__name__}: decision regions"
    style.dress(axes, f"{title}\n{HELD}" if flat.held and not held else title, first, second, grid=False)
    style.legend(axes)
    return style.root(axes)


def has_margin(machine: Any, classes: NDArray) -> bool:
    """Whether f = -1 and f = +1 mean something: the machine has two classes and a loss with a corner at its margin."""
    last = machine[-1] if hasattr(machine, "steps") else machine
    if len(classes) != 2 or not hasattr(machine, "decision_function"):
        return False
    loss = getattr(last, "loss", None)
    if loss is None:
        return hasattr(last, "support_vectors_")  # scikit-learn's SVC, which has the hinge and does not say so
    named = losses.NAMES.get(loss) if isinstance(loss, str) else loss
    return getattr(named, "hard_form", None) is not None


def supporting(machine: Any, X: Any, codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows that the machine names as support vectors, if they are its own; else those with y f(x) <= 1."""
    if hasattr(machine, "support_") and isinstance(X, np.ndarray):
        rows = np.asarray(machine.support_)
        if rows.max(initial=-1) < len(X) and np.array_equal(X[rows], machine.support_vectors_):
            return rows
    f = np.asarray(machine.decision_function(X), dtype=np.float64)
    return np.flatnonzero(np.where(codes == 1, f, -f) <= 1 + ON_MARGIN)


def ring(axes: Axes, points: NDArray) -> None:
    """Circles around support vectors, and their number."""
    axes.scatter(
        *points.T,
        s=90,
        facecolors="none",
        edgecolors=style.INK,
        linewidths=1.0,
        zorder=3,
        label=f"support vector ({len(points)})",
    )
