"""The classes that a machine gives to a plane, and how they are painted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.plots.plane import Plane
from empirisk.plots.style import INK, colour, marker, pale, plain

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Surface:
    """A class number for each row of a grid, and by how much each class leads there.

    Attributes
    ----------
    codes : array of n
        The predicted class, as a number.
    leads : array, K x n
        Score of each class minus the best score of another: its region is where this is positive.
    """

    codes: NDArray[np.intp]
    leads: Array


def classes_of(machine: Any) -> NDArray:
    """The classes of a fitted classifier, or a sentence that says what is wrong with it."""
    name = type(machine).__name__
    try:
        check_is_fitted(machine)
    except NotFittedError:
        raise EmpiriskError(f"The {name} is not fitted; call its fit(X, y) before drawing it.") from None
    except TypeError:
        raise EmpiriskError(f"machine={machine!r} is not a classifier; give a fitted one.") from None
    classes = getattr(machine, "classes_", None)
    if classes is None or not hasattr(machine, "predict"):
        raise EmpiriskError(f"The {name} predicts no classes; give a fitted classifier.")
    return np.asarray(classes)


def numbered(labels: Any, classes: NDArray) -> NDArray[np.intp]:
    """Labels as class numbers."""
    places = {label: number for number, label in enumerate(classes.tolist())}
    known = np.asarray(labels).ravel().tolist()
    strange = [label for label in known if label not in places]
    if strange:
        raise EmpiriskError(f"y holds {strange[0]!r}, which is not a class of the machine: {classes.tolist()[:10]}.")
    return np.array([places[label] for label in known], dtype=np.intp)


def scores_of(machine: Any, rows: Any) -> Array | None:
    """Decision values or probabilities for the rows, whichever the machine has."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(machine, method):
            return np.asarray(getattr(machine, method)(rows), dtype=np.float64)
    return None


def surface(predicted: NDArray, scores: Array | None, classes: NDArray) -> Surface:
    """The regions of predicted classes; their borders from the scores, where these say the same."""
    codes = numbered(predicted, classes)
    shapes = {(len(codes),), (len(codes), len(classes))}
    leads = None if scores is None or scores.shape not in shapes else _leads(scores)
    # A machine may decide by other means than its scores, such as a tuned threshold.
    if leads is None or np.mean(leads.argmax(axis=0) == codes) < 0.99:
        leads = np.where(codes == np.arange(len(classes))[:, None], 0.5, -0.5)
    return Surface(codes, leads)


def surface_of(machine: Any, rows: Any, classes: NDArray) -> Surface:
    """The regions of a fitted machine."""
    return surface(np.asarray(machine.predict(rows)), scores_of(machine, rows), classes)


def _leads(scores: Array) -> Array:
    if scores.ndim == 1:
        return np.stack([-scores, scores])
    if scores.shape[1] == 1:
        return np.ones((1, len(scores)))
    largest = np.partition(scores, -2, axis=1)[:, -2:]
    rival = np.where(scores == largest[:, 1:], largest[:, :1], largest[:, 1:])
    return (scores - rival).T


def paint(axes: Axes, plane: Plane, drawn: Surface) -> list[Any]:
    """The regions in pale colours, and the lines between them; returns what was drawn."""
    count = len(drawn.leads)
    shades = ListedColormap([pale(colour(k)) for k in range(count)])
    picture = axes.imshow(
        plane.shaped(drawn.codes),
        cmap=shades,
        vmin=-0.5,
        vmax=count - 0.5,
        extent=plane.extent,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=0,
    )
    lines = [line for lead in drawn.leads[1:] if (line := border(axes, plane, lead, 0.0, "-", 1.4)) is not None]
    # The axes show the plane and nothing else, also where a line touches the edge.
    axes.set(xlim=plane.extent[:2], ylim=plane.extent[2:])
    return [picture, *lines]


def border(axes: Axes, plane: Plane, values: Array, level: float, style: str, width: float) -> Any:
    """The line on which the values have a level; None where there is none."""
    if not values.min() < level < values.max():
        return None
    return axes.contour(
        plane.across,
        plane.up,
        plane.shaped(values),
        levels=[level],
        colors=INK,
        linestyles=style,
        linewidths=width,
        zorder=1,
    )


def scatter(axes: Axes, plane: Plane, codes: NDArray[np.intp], classes: NDArray, sizes: Any = 26.0) -> list[Any]:
    """The data, each class with its colour and marker; returns one collection for each class that occurs."""
    sizes = np.broadcast_to(np.asarray(sizes, dtype=np.float64), len(codes))
    return [
        axes.scatter(
            *plane.points[codes == k].T,
            s=sizes[codes == k],
            color=colour(k),
            marker=marker(k),
            edgecolors=INK,
            linewidths=0.4,
            label=plain(classes[k]),
            zorder=2,
        )
        for k in np.unique(codes)
    ]
