"""Decision regions: the classes that a machine gives to a plane through the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _is_fitted

from empirisk import losses
from empirisk.errors import EmpiriskError, listed
from empirisk.plots import style
from empirisk.plots.style import INK, colour, marker, pale, plain

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plane:
    """Two columns of a table, and a grid over them.

    Attributes
    ----------
    names : tuple of two str
        The names of the columns.
    places : tuple of two int
        Their numbers.
    points : array, n x 2
        The data, seen on the plane.
    across, up : arrays
        The places of the grid.
    rows : table
        The grid as rows for a machine, of the same kind as the data; ``across`` varies fastest.
    held : bool
        Whether there are other columns, which keep one value.
    """

    names: tuple[str, str]
    places: tuple[int, int]
    points: Array
    across: Array
    up: Array
    rows: Any
    held: bool

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom, top."""
        return self.across[0], self.across[-1], self.up[0], self.up[-1]

    def shaped(self, values: NDArray) -> NDArray:
        """What was computed for ``rows``, as a picture."""
        return np.asarray(values).reshape(len(self.up), len(self.across))


def plane(X: Any, columns: Sequence[int | str], held: Mapping[Any, Any] | None, resolution: int) -> Plane:
    """The plane of two columns of X; the others are held at the given values, else at their median or commonest."""
    table = table_of(X)
    if isinstance(columns, (str, int)) or len(columns) != 2:
        raise EmpiriskError(f"columns={columns!r} must name exactly two columns; the others can be held at values.")
    if not 2 <= resolution <= 2000:
        raise EmpiriskError(f"resolution={resolution!r} must be a whole number from 2 to 2000.")
    first, second = (_place(column, table.names, "columns") for column in columns)
    if first == second:
        raise EmpiriskError(f"columns={columns!r} must name two different columns.")
    fixed = {_place(column, table.names, "held"): value for column, value in (held or {}).items()}
    points = np.column_stack([table.numbers(first), table.numbers(second)])
    seen = points[np.isfinite(points).all(axis=1)]
    if not len(seen):
        raise EmpiriskError(f"columns={columns!r} hold no row with both values; choose other columns.")
    across, up = (np.linspace(*style.padded(seen[:, k], 0.08), resolution) for k in (0, 1))
    varied = {first: np.tile(across, resolution), second: np.repeat(up, resolution)}
    rows = table.rows(varied, {k: fixed.get(k) for k in range(len(table.names)) if k not in varied})
    names = str(table.names[first]), str(table.names[second])
    return Plane(names, (first, second), points, across, up, rows, len(table.names) > 2)


def table_of(X: Any) -> _Frame | _Matrix:
    """X by its columns, whether it is a data frame or an array."""
    return _Frame(X) if nw.dependencies.is_into_dataframe(X) else _Matrix(X)


def _place(column: Any, names: Sequence[str], argument: str) -> int:
    """The number of a column given by name or by number."""
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and -len(names) <= column < len(names):
        return int(column) % len(names)
    raise EmpiriskError(
        f"{argument} names the column {column!r}, which X has not; its {len(names)} are {listed(names)}."
    )


class _Matrix:
    """An array, dense or sparse."""

    def __init__(self, X: Any):
        self._values = X.toarray() if issparse(X) else np.asarray(X)
        if self._values.ndim != 2 or not len(self._values):
            raise EmpiriskError(f"X of shape {self._values.shape} must be a table with at least one row.")
        self.names = [f"x{k}" for k in range(self._values.shape[1])]

    def numbers(self, column: int) -> Array:
        return _as_numbers(self._values[:, column], self.names[column])

    def rows(self, varied: dict[int, Array], held: dict[int, Any]) -> NDArray:
        dtype = self._values.dtype if self._values.dtype.kind in "fO" else np.float64
        fixed = {k: _median(self.numbers(k)) if value is None else value for k, value in held.items()}
        rows = np.empty((len(next(iter(varied.values()))), len(self.names)), dtype=dtype)
        for column, values in {**varied, **fixed}.items():
            rows[:, column] = values
        return rows


class _Frame:
    """A data frame of any library that narwhals knows."""

    def __init__(self, X: Any):
        self._frame = nw.from_native(X, eager_only=True)
        self.names = list(self._frame.columns)
        if not len(self._frame):
            raise EmpiriskError("X has no rows; give at least one.")

    def numbers(self, column: int) -> Array:
        return _as_numbers(self._frame[self.names[column]].to_numpy(), self.names[column])

    def rows(self, varied: dict[int, Array], held: dict[int, Any]) -> Any:
        count = len(next(iter(varied.values())))
        series = {column: self._series(self.names[column], values) for column, values in varied.items()}
        for column, value in held.items():
            series[column] = self._constant(self.names[column], value, count)
        frame = self._frame[[0] * count]  # the kind of frame, its index and the order of its columns
        return frame.with_columns(*(series[column] for column in sorted(series))).to_native()

    def _series(self, name: str, values: Array) -> Any:
        return nw.new_series(name, values, nw.Float64(), backend=self._frame.implementation)

    def _constant(self, name: str, value: Any, count: int) -> Any:
        series = self._frame[name]
        if series.dtype.is_numeric():
            number = _median(self.numbers(self.names.index(name))) if value is None else float(value)
            return self._series(name, np.full(count, number))
        # A row that has the value stands for it, so that the type of the column stays as it is.
        entries = series.to_list()
        if value is None:
            value = Counter(entries).most_common(1)[0][0]
        if value not in entries:
            raise EmpiriskError(f"held[{name!r}]={value!r} does not occur in the column; give one of its values.")
        return series[[entries.index(value)] * count]


def _as_numbers(values: NDArray, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise EmpiriskError(f"The column {name!r} is not numeric; choose another, or hold it at a value.") from None


def _median(values: Array) -> float:
    return float(np.nanmedian(values)) if not np.isnan(values).all() else float("nan")


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


def require(machine: Any, *methods: str, call: str = "fit(X)") -> None:
    """Raise a sentence unless the machine can answer and is fitted, by the ``call``."""
    name = type(machine).__name__
    for method in methods:
        if not hasattr(machine, method):
            raise EmpiriskError(f"The {name} has no {method}, which this view asks for; give a machine that has.")
    if not _is_fitted(machine):
        raise EmpiriskError(f"The {name} is not fitted; call its {call} before drawing it.")


def classes_of(machine: Any) -> NDArray:
    """The classes of a fitted classifier, or a sentence that says what is wrong with it."""
    if not hasattr(machine, "fit"):
        raise EmpiriskError(f"machine={machine!r} is not a classifier; give a fitted one.")
    require(machine, call="fit(X, y)")
    classes = getattr(machine, "classes_", None)
    if classes is None or not hasattr(machine, "predict"):
        raise EmpiriskError(f"The {type(machine).__name__} predicts no classes; give a fitted classifier.")
    return np.asarray(classes)


def numbered(labels: Any, classes: NDArray) -> NDArray[np.intp]:
    """Labels as class numbers."""
    places = {label: number for number, label in enumerate(classes.tolist())}
    known = np.asarray(labels).ravel().tolist()
    strange = [label for label in known if label not in places]
    if strange:
        raise EmpiriskError(f"y holds {strange[0]!r}, which is not a class of the machine: {listed(classes.tolist())}.")
    return np.array([places[label] for label in known], dtype=np.intp)


def scoring(machine: Any, prefix: str = "") -> Callable[[Any], Any] | None:
    """What gives decision values or probabilities, whichever the machine has."""
    methods = (f"{prefix}decision_function", f"{prefix}predict_proba")
    return next((getattr(machine, name) for name in methods if hasattr(machine, name)), None)


def surface(predicted: NDArray, scores: Any, classes: NDArray) -> Surface:
    """The regions of predicted classes; their borders from the scores, where these say the same."""
    codes = numbered(predicted, classes)
    shapes = {(len(codes),), (len(codes), len(classes))}
    found = leads(np.asarray(scores, dtype=np.float64)) if np.shape(scores) in shapes else None
    # A machine may decide by other means than its scores, such as a tuned threshold; a few ties may go either way.
    if found is None or np.mean(found.argmax(axis=0) == codes) < 0.99:
        return cells(codes, len(classes))
    return Surface(codes, found)


def cells(codes: NDArray[np.intp], count: int) -> Surface:
    """Regions whose borders run along the grid."""
    return Surface(codes, np.where(codes == np.arange(count)[:, None], 0.5, -0.5))


def surface_of(machine: Any, rows: Any, classes: NDArray) -> Surface:
    """The regions of a fitted machine."""
    score = scoring(machine)
    return surface(np.asarray(machine.predict(rows)), None if score is None else score(rows), classes)


def leads(scores: Array) -> Array:
    """Decision values or probabilities as the lead of each class over the best other one, classes x rows."""
    if scores.ndim == 1:
        return np.stack([-scores, scores])
    if scores.shape[1] == 1:
        return np.ones((1, len(scores)))
    largest = np.partition(scores, -2, axis=1)[:, -2:]
    rival = np.where(scores == largest[:, 1:], largest[:, :1], largest[:, 1:])
    return (scores - rival).T


def paint(axes: Axes, plane: Plane, drawn: Surface) -> None:
    """The regions in pale colours, and the lines between them."""
    count = len(drawn.leads)
    shades = ListedColormap([pale(colour(k)) for k in range(count)])
    place: dict[str, Any] = {"extent": plane.extent, "origin": "lower", "aspect": "auto", "zorder": 0}
    limits: dict[str, Any] = {"vmin": -0.5, "vmax": count - 0.5, "interpolation": "nearest"}
    axes.imshow(plane.shaped(drawn.codes), cmap=shades, **limits, **place)
    for lead in drawn.leads[1:]:
        border(axes, plane, lead, [0.0], "-", 1.4)
    # The axes show the plane and nothing else, also where a line touches the edge.
    axes.set(xlim=plane.extent[:2], ylim=plane.extent[2:])


def border(
    axes: Axes, plane: Plane, values: Array, levels: list[float], style: str, width: float, label: str | None = None
) -> None:
    """The lines on which the values have some levels, named where there is one."""
    crossed = [level for level in levels if values.min() < level < values.max()]
    for level in crossed:
        look: dict[str, Any] = {"colors": INK, "linestyles": style, "linewidths": width, "zorder": 1}
        axes.contour(plane.across, plane.up, plane.shaped(values), levels=[level], **look)
    if crossed and label:
        axes.plot([], [], style, color=INK, linewidth=width, label=label)


def scatter(axes: Axes, plane: Plane, codes: NDArray[np.intp], classes: NDArray, sizes: Any = 26.0) -> None:
    """The data, each class with its colour and marker."""
    sizes = np.broadcast_to(np.asarray(sizes, dtype=np.float64), len(codes))
    for k in np.unique(codes):
        points(axes, plane.points[codes == k].T, k, plain(classes[k]), s=sizes[codes == k])


def points(axes: Axes, places: Any, number: int, label: str | None = None, **look: Any) -> None:
    """Points with the colour and marker of their number and a dark rim."""
    usual = {"color": colour(number), "marker": marker(number), "s": 24, "edgecolors": INK, "linewidths": 0.4}
    axes.scatter(*places, label=label, **{**usual, "zorder": 2, **look})


def two_kinds(axes: Axes, plane: Plane, strange: NDArray[np.bool_], usual: str, unusual: str) -> None:
    """Rows of the usual kind and the strange ones, with how many there are of each."""
    for k, (label, rows) in enumerate(((usual, ~strange), (unusual, strange))):
        if rows.any():
            far_apart = colour(5 * k)
            points(axes, plane.points[rows].T, k, f"{label} ({np.count_nonzero(rows)})", color=far_apart)


def finished(axes: Axes, plane: Plane, title: str, held: Mapping[Any, Any] | None) -> Figure:
    """The whole figure: the plane and nothing else, the names of its columns, and what is said of the others."""
    axes.set(xlim=plane.extent[:2], ylim=plane.extent[2:])
    title = f"{title}\nother columns held at their medians" if plane.held and not held else title
    return style.finished(axes, title, *(plain(name, style.ACROSS) for name in plane.names), grid=False)


#: scikit-learn's support vectors lie on the margin to about this much.
ON_MARGIN = 1e-3


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
    two_sides = len(classes) == 2 and hasattr(machine, "decision_function")
    if margins and not two_sides:
        raise EmpiriskError("margins=True needs a machine of two classes with a decision_function; use margins=None.")
    axes = style.canvas(axes, style.WIDE)
    paint(axes, flat, surface_of(machine, flat.rows, classes))
    scatter(axes, flat, codes, classes)
    if two_sides and (has_margin(machine) if margins is None else margins):
        f = np.asarray(machine.decision_function(flat.rows), dtype=np.float64)
        border(axes, flat, f, [-1.0, 1.0], "--", 1.0, "margin, f = ±1")
        ring(axes, flat.points[supporting(machine, X, codes)])
    return finished(axes, flat, f"{type(machine).__name__}: decision regions", held)


def has_margin(machine: Any) -> bool:
    """Whether f = -1 and f = +1 mean something: the machine has a loss with a corner at its margin."""
    last = machine[-1] if hasattr(machine, "steps") else machine
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
    look: dict[str, Any] = {"s": 90, "facecolors": "none", "edgecolors": INK, "linewidths": 1.0, "zorder": 3}
    axes.scatter(*points.T, label=f"support vector ({len(points)})", **look)
