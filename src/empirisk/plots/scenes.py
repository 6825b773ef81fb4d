"""What the animations show: a figure, and how to draw each of its frames."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from empirisk.certificate import verify
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits.minimise import Minimum
from empirisk.plots import planes, style
from empirisk.plots.clusters import mark_means
from empirisk.plots.fits import Array, Replay, Scenery, dual_sizes, replay
from empirisk.plots.lines import draw_stems, fitted, line
from empirisk.protocols import has_problems
from empirisk.solvers import DualAscent, find

Pick = Callable[[int], NDArray[np.intp]]
Held = Mapping[Any, Any] | None
#: Iterations to replay where a machine says nothing of its own.
MOST = 100


@dataclass(frozen=True)
class FitStage:
    """One state of the fit: its number, its regions on a grid, and its classes for the data."""

    number: int
    surface: planes.Surface
    codes: NDArray[np.intp]
    classes: NDArray


def stages(machine: Any, X: Any, y: ArrayLike, rows: Any, pick: Pick) -> tuple[list[FitStage], str]:
    """The states to show, and whether they are rounds or iterations."""
    if not is_classifier(machine):
        raise EmpiriskError(f"The {type(machine).__name__} predicts no classes; kind='regions' needs a classifier.")
    if hasattr(type(machine), "staged_predict"):
        return _rounds(fitted(machine, X, y), X, rows, pick), "round"
    if has_problems(machine):
        played = replay(machine, X, y, several=True)
        return [_stage(int(k), played.at(int(k)), X, rows) for k in pick(len(played.states))], "iteration"
    if "max_iter" in machine.get_params():
        return _refits(machine, X, y, rows, pick), "iteration"
    raise EmpiriskError(
        f"The fit of {type(machine).__name__} cannot be replayed; give a machine with rounds or with max_iter."
    )


def _rounds(machine: Any, X: Any, rows: Any, pick: Pick) -> list[FitStage]:
    """What an ensemble said after some of its rounds."""
    classes = machine.classes_
    said = [planes.numbered(labels, classes) for labels in machine.staged_predict(X)]
    wanted = set(pick(len(said)).tolist())
    score = planes.scoring(machine, "staged_")
    scores = repeat(None) if score is None else score(rows)
    return [
        FitStage(k + 1, planes.surface(labels, values, classes), said[k], classes)
        for k, (labels, values) in enumerate(zip(machine.staged_predict(rows), scores, strict=False))
        if k in wanted
    ]


def _stage(number: int, machine: Any, X: Any, rows: Any) -> FitStage:
    classes = machine.classes_
    return FitStage(
        number, planes.surface_of(machine, rows, classes), planes.numbered(machine.predict(X), classes), classes
    )


def _refits(machine: Any, X: Any, y: ArrayLike, rows: Any, pick: Pick) -> list[FitStage]:
    """What a machine says if its fit ends early: it is fitted anew for each state."""
    limit = np.max(getattr(machine, "n_iter_", None) or machine.get_params()["max_iter"] or MOST)
    found = []
    for k in pick(max(1, min(int(limit), MOST))):
        early = clone(machine).set_params(max_iter=int(k) + 1)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # it is meant to end early
            early.fit(X, y)
        found.append(_stage(int(k) + 1, early, X, rows))
    return found


GRID = 120  # values across: contours of a frame look smooth
SIZE = (9.2, 4.2)  # inches, for two panels side by side
OVER_ITERATIONS = ("iteration", "objective")


@dataclass(frozen=True)
class Scene:
    """A figure of two axes, and a function that draws one of the frames into it."""

    figure: Figure
    frames: int
    draw: Callable[[int], None]


def scene(
    paint_frame: Callable[[Axes, int], None],
    across: NDArray,
    curves: dict[str, Array],
    labels: tuple[str, str],
    codes: Any = None,
    classes: Any = None,
) -> Scene:
    """A picture that is painted anew for each frame, curves beside it up to there, and the classes below both."""
    left, right = style.panels(None, 2, SIZE)
    if codes is not None:
        key(style.root(left), codes, classes)
    everything = np.concatenate(list(curves.values()))
    room = {"xlim": style.padded(across, 0.03), "ylim": style.padded(everything[np.isfinite(everything)])}

    def draw(frame: int) -> None:
        left.clear()
        paint_frame(left, frame)
        right.clear()
        for number, (name, values) in enumerate(curves.items()):
            right.plot(across[: frame + 1], values[: frame + 1], label=name, **style.look(number, marker="o", ms=3))
        right.set(**room)
        style.dress(right, "", *labels)
        style.whole_numbers(right)
        if len(curves) > 1:
            style.inside(right, "upper right")  # where curves that close in leave room

    return Scene(style.root(left), len(across), draw)


def spread(count: int, most: int) -> NDArray[np.intp]:
    """Which of many states to show: all if they are few, else more of the early ones, where more happens."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.round(np.geomspace(1, count, most)).astype(int)) - 1


def descent_scene(machine: Any, X: Any, y: ArrayLike, weights: Sequence[int], held: Held, most: int) -> Scene:
    """Two weights move over the contours of the objective; beside it, the objective."""
    played = replay(machine, X, y)
    values = np.array([played.problem.primal(point) for point in played.points])
    return _way_scene(Scenery.of_machines([played], weights, "columns"), values, lambda k: _at(played, k), most)


def minimum_scene(minimum: Minimum, X: Any, y: Any, weights: Sequence[int], held: Held, most: int) -> Scene:
    """The point of a descent moves over the contours, or along the graph, of its function; beside it, the values."""
    name, values = minimum.method.replace("_", " "), minimum.history["objective"]
    return _way_scene(Scenery.of_minima([minimum], weights), values, lambda k: f"{name}: iteration {k}", most)


def _way_scene(scenery: Scenery, values: Array, title: Callable[[int], str], most: int) -> Scene:
    """The only path of a scenery up to each of its points; beside it, the values so far."""
    (way,) = scenery.tracks
    shown = spread(len(way), most)

    def paint_frame(left: Axes, frame: int) -> None:
        scenery.draw(left)
        _draw_way(left, way[: shown[frame] + 1])
        style.dress(left, title(int(shown[frame])), *scenery.labels, grid=False)

    return scene(paint_frame, shown, {"objective": values[shown]}, OVER_ITERATIONS)


def _draw_way(axes: Axes, so_far: Array) -> None:
    """A path up to now, with its last point."""
    axes.plot(*so_far.T, zorder=2, **style.look(0, marker="o", ms=3))
    axes.plot(*so_far[-1], "o", color=style.PALETTE[5], markeredgecolor=style.INK, ms=8, zorder=3)


def dual_scene(machine: Any, X: Any, y: ArrayLike, columns: Sequence[Any], held: Held, most: int) -> Scene:
    """Regions and margin move while rows gain weight in the dual; beside it, primal and dual close in."""
    played = _in_the_dual(machine, X, y)
    if not hasattr(played.machine, "classes_"):
        raise EmpiriskError("kind='dual' shows classifiers of two classes; use kind='descent' for numbers.")
    codes = planes.numbered(y, played.machine.classes_)
    shown = spread(len(played.points), most)
    amounts = [dual_sizes(played.problems, played.states[k], len(codes)) for k in shown]
    if np.ndim(X) == 1 or np.shape(X)[1] == 1:
        return _stems_scene(played, X, codes, shown, amounts)
    flat = planes.plane(X, columns, held, GRID)
    classes = played.machine.classes_
    largest = max(float(amount.max()) for amount in amounts) or 1.0

    def paint_frame(left: Axes, frame: int) -> None:
        at = played.at(int(shown[frame]))
        planes.paint(left, flat, planes.surface_of(at, flat.rows, classes))
        f = np.asarray(at.decision_function(flat.rows), dtype=np.float64)
        planes.border(left, flat, f, [-1.0, 1.0], "--", 1.0)
        planes.scatter(left, flat, codes, classes, 10 + 70 * amounts[frame] / largest)
        _title(left, flat, f"{_at(played, shown[frame])}\nsize: dual variable")

    return scene(paint_frame, shown, _bounds(played, shown), OVER_ITERATIONS, codes, classes)


def _stems_scene(
    played: Replay, X: Any, codes: NDArray[np.intp], shown: NDArray[np.intp], amounts: list[Array]
) -> Scene:
    """One column: the decision function moves while the dual coefficients grow as stems."""
    places, across, rows = line(X, GRID)
    classes = played.machine.classes_
    sides = np.where(codes == 1, 1.0, -1.0)
    functions = [np.asarray(played.at(int(k)).decision_function(rows), dtype=np.float64) for k in shown]
    room = style.padded(np.concatenate([*functions, *(sides * amount for amount in amounts), [-1.0, 1.0]]))

    def paint_frame(left: Axes, frame: int) -> None:
        draw_stems(left, (across, functions[frame]), places, sides * amounts[frame], (codes, classes))
        left.set_ylim(*room)
        style.dress(left, _at(played, shown[frame]), "x", "f(x) and dual coefficients", grid=False)

    return scene(paint_frame, shown, _bounds(played, shown), OVER_ITERATIONS, codes, classes)


def _bounds(played: Replay, shown: NDArray[np.intp]) -> dict[str, Array]:
    """Primal objective and best dual one so far."""
    proofs = [verify(played.problem, played.points[k]) for k in shown]
    duals = np.maximum.accumulate([proof.dual for proof in proofs])
    return {"primal": np.array([proof.primal for proof in proofs]), "dual": duals}


def regions_scene(machine: Any, X: Any, y: ArrayLike, columns: Sequence[Any], held: Held, most: int) -> Scene:
    """Regions after each round or iteration; beside it, the error on the rows shown."""
    flat = planes.plane(X, columns, held, GRID)
    found, what = stages(machine, X, y, flat.rows, lambda count: spread(count, most))
    classes = found[0].classes
    codes = planes.numbered(y, classes)
    shown = np.array([stage.number for stage in found])
    errors = np.array([np.mean(stage.codes != codes) for stage in found])

    def paint_frame(left: Axes, frame: int) -> None:
        planes.paint(left, flat, found[frame].surface)
        planes.scatter(left, flat, codes, classes)
        _title(left, flat, f"{type(machine).__name__}: {what} {shown[frame]}")

    return scene(paint_frame, shown, {"error": errors}, (what, "error on these rows"), codes, classes)


def key(figure: Figure, codes: NDArray[np.intp], classes: NDArray) -> None:
    """The classes below the axes, once for all frames."""
    signs = [
        Line2D([], [], color=style.colour(k), marker=style.marker(k), linestyle="", label=style.plain(classes[k]))
        for k in np.unique(codes)
    ]
    longest = max(len(str(sign.get_label())) for sign in signs)
    # About as many letters as a line below the axes holds, with room for the signs.
    columns = max(1, min(len(signs), 110 // (longest + 8)))
    figure.legend(handles=signs, loc="outside lower left", ncols=columns, fontsize=style.SMALL, frameon=False)


def _in_the_dual(machine: Any, X: Any, y: ArrayLike) -> Replay:
    """The fit by dual ascent, pass by pass, where that can do it and nothing else was asked for."""
    solver = getattr(machine, "solver", None)
    if isinstance(solver, str) and solver in ("auto", "dual_ascent"):
        with suppress(Unsuitable):
            return replay(machine, X, y, solver=DualAscent(passes=1))
    return replay(machine, X, y)


def _at(played: Replay, state: int) -> str:
    """The solver in words, and its iteration in a state; the last state is the solution that the last one led to."""
    solver = find(played.solver).name().replace("_", " ").capitalize()
    return f"{solver}: iteration {min(state, len(played.points) - 2)}"


def one_class_scene(machine: Any, X: Any, y: None, columns: Sequence[Any], held: Held, most: int) -> Scene:
    """The boundary of a one-class machine if its fit ends early; beside it, primal and dual."""
    flat = planes.plane(X, columns, held, GRID)
    rounds = max(1, int(np.max(clone(machine).fit(X).n_iter_)))
    shown = spread(rounds, most) + 1
    stages = [clone(machine).set_params(max_iter=int(k)) for k in shown]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # it is meant to end early
        for stage in stages:
            stage.fit(X)
    proofs = [stage.certificate_ for stage in stages]
    curves = {name: np.array([getattr(proof, name) for proof in proofs]) for name in ("primal", "dual")}

    def paint_frame(left: Axes, frame: int) -> None:
        at = stages[frame]
        values = np.asarray(at.decision_function(flat.rows), dtype=np.float64).ravel()
        planes.two_kinds(left, flat, np.asarray(at.predict(X)) <= 0, "inside", "outside")
        planes.border(left, flat, values, [0.0], "-", 1.4, "boundary")
        style.inside(left, "upper right")
        _title(left, flat, f"{type(at).__name__}: iteration {shown[frame]}")

    return scene(paint_frame, shown, curves, OVER_ITERATIONS)


DEVIATIONS = (1.0, 2.0)  # ellipses around a mean


def means_scene(machine: Any, X: Any, y: None, columns: Sequence[Any], held: Held, most: int) -> Scene:
    """The two half-steps of k-means: rows take the nearest mean, then means move to their rows."""
    flat = planes.plane(X, columns, held, GRID)
    steps = machine.half_steps(X)
    shown = spread(len(steps), most)
    inertia = np.array([steps[k].inertia for k in shown])
    grid = np.asarray(flat.rows, dtype=np.float64)

    def paint_frame(left: Axes, frame: int) -> None:
        step = steps[shown[frame]]
        count = len(step.means)
        squares = ((grid[:, None] - step.means) ** 2).sum(axis=2)
        planes.paint(left, flat, planes.cells(squares.argmin(axis=1), count))
        planes.scatter(left, flat, step.labels, np.arange(count))
        mark_means(left, step.means[:, list(flat.places)])
        _title(left, flat, f"k-means: round {shown[frame] // 2 + 1}\n{step.what}")

    labels, last = ("round", "sum of squared distances"), steps[-1]
    return scene(paint_frame, shown / 2 + 1, {"inertia": inertia}, labels, last.labels, _names(len(last.means)))


def mixture_scene(machine: Any, X: Any, y: None, columns: Sequence[Any], held: Held, most: int) -> Scene:
    """The components of a mixture after each round, as ellipses; beside it, the likelihood."""
    flat = planes.plane(X, columns, held, GRID)
    settled = machine.random_state if machine.random_state is not None else 0
    whole = clone(machine).set_params(n_init=1, random_state=settled)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        rounds = spread(whole.fit(X).n_iter_, most)
        stages = [clone(whole).set_params(max_iter=int(round) + 1).fit(X) for round in rounds]
    likelihood = whole.history_["log_likelihood"][rounds]

    def paint_frame(left: Axes, frame: int) -> None:
        stage = stages[frame]
        planes.scatter(left, flat, stage.predict(X), np.arange(len(stage.weights_)))
        mark_means(left, stage.means_[:, list(flat.places)])
        for k, (mean, covariance) in enumerate(zip(stage.means_, stage.whole_covariances(), strict=True)):
            _ellipses(left, mean[list(flat.places)], covariance[np.ix_(flat.places, flat.places)], style.colour(k))
        left.set(xlim=flat.extent[:2], ylim=flat.extent[2:])
        _title(left, flat, f"Mixture: round {rounds[frame] + 1}\nellipses at 1 and 2 standard deviations")

    labels, curves = ("round", "mean log-likelihood"), {"log-likelihood": likelihood}
    return scene(paint_frame, rounds + 1, curves, labels, whole.predict(X), _names(len(whole.weights_)))


def _ellipses(axes: Any, mean: NDArray, covariance: NDArray, shade: str) -> None:
    values, vectors = np.linalg.eigh(covariance)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    for deviations in DEVIATIONS:
        width, height = 2 * deviations * np.sqrt(values[::-1])
        axes.add_patch(Ellipse(tuple(mean), width, height, angle=angle, fill=False, color=shade, lw=1.6, zorder=3))


def _names(count: int) -> NDArray:
    return np.array([f"cluster {k}" for k in range(count)])


def _title(axes: Any, flat: planes.Plane, title: str) -> None:
    style.dress(axes, title, *(style.plain(name, style.UP) for name in flat.names), grid=False)
