"""How a fit went: its history, and its way down to the minimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from empirisk.errors import EmpiriskError
from empirisk.fits.choice import is_given
from empirisk.fits.fit import Progress, SolverRun
from empirisk.fits.minimise import Minimum
from empirisk.fits.passes import hard_margins
from empirisk.plots import style
from empirisk.problem import Array, Point, Problem
from empirisk.protocols import has_problems

LABELS = {"iterations": "iteration", "seconds": "seconds"}
#: What falls during a fit, by the names that machines give it.
FALLING = ("objective", "loss", "validation_loss")


def history(
    fit: Any, *, against: str = "iterations", log: bool | None = None, axes: Axes | Sequence[Axes] | None = None
) -> Figure:
    """Draw what a fit did: the objective, and below it how far it was from the bound that the certificate proves.

    Parameters
    ----------
    fit : fitted machine, result of `minimise`, or dict of arrays
        A machine with ``history_`` (Empirisk), ``loss_curve_`` or ``train_score_`` (scikit-learn), or such a history:
        "objective" or "loss", and "gap" if it is as long.
    against : {"iterations", "seconds"}
        What the curves run over.
    log : bool or None
        Whether the objective has a logarithmic scale; None: where it falls to less than a hundredth.
    axes : matplotlib Axes or two of them, optional
        Where to draw; a single one shows the objective only. None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> machine = er.LogisticRegression(solver="gradient_descent").fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> figure = er.plots.history(machine)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['objective', 'objective - bound']
    """
    style.checked_choice("against", against, LABELS)
    kept = _history_of(fit)
    curves = {name: np.asarray(kept[name], dtype=np.float64) for name in FALLING if name in kept}
    problems = np.asarray(kept.get("problem", np.zeros(len(next(iter(curves.values())))))).astype(int)
    places = _places(kept, against, problems)
    gaps = _gaps(fit, kept, curves, problems)
    single = isinstance(axes, Axes) or (axes is None and gaps is None)
    height = 3.6 if single else 5.2  # inches: a little less than two pictures where there are two
    drawn = style.panels(axes, 1 if single else 2, (style.SIZE[0], height), rows=True)

    def draw(axes: Axes, values: Array, number: int = 0, name: str | None = None) -> None:
        for problem in np.unique(problems):
            rows = problems == problem
            label = _problem(fit, int(problem), problems) if name is None else name.replace("_", " ")
            axes.plot(places[rows], values[rows], label=label, **style.look(number + int(problem), rows.sum()))

    for number, (name, values) in enumerate(curves.items()):
        draw(drawn[0], values, number, name if len(curves) > 1 else None)
    values = np.concatenate(list(curves.values()))
    if log is None:
        log = bool(values.min() > 0 and values.max() > 100 * values.min())  # two decades
    drawn[0].set_yscale("log" if log else "linear")
    title = f"{type(fit).__name__}: {next(iter(curves))} over the fit" if not isinstance(fit, Mapping) else "The fit"
    style.dress(drawn[0], title, LABELS[against], "objective" if "objective" in curves else "loss")
    if not single and gaps is not None:
        draw(drawn[1], gaps)
        drawn[1].set_yscale("log")
        style.dress(drawn[1], "", LABELS[against], "objective - bound")
        drawn[0].set_xlabel("")
    for one in drawn if against == "iterations" else ():
        style.whole_numbers(one)
    if len(curves) > 1 or problems.max() > 0:
        style.legend(drawn[0])
    return style.root(drawn[0])


def _problem(fit: Any, problem: int, problems: NDArray) -> str:
    """The name of one of several problems: that of its class, where there is one for each."""
    classes = getattr(fit, "classes_", ())
    if getattr(fit, "scheme_", None) == "one_vs_rest" and len(classes) == problems.max() + 1:
        return f"{style.plain(classes[problem])} or not"
    return f"problem {problem}"


def _history_of(fit: Any) -> Mapping[str, Any]:
    """The history in a fit, with at least one quantity that falls."""
    kept = fit if isinstance(fit, Mapping) else getattr(fit, "history_", getattr(fit, "history", None))
    for name in ("loss_curve_", "train_score_"):
        if kept is None and hasattr(fit, name):
            kept = {"loss": getattr(fit, name)}
    if kept is None:
        raise EmpiriskError(f"The {type(fit).__name__} keeps no history; fit it first, or give a dict of arrays.")
    known = [name for name in FALLING if name in kept]
    if not known or not len(kept[known[0]]):
        raise EmpiriskError(f"The history holds {sorted(kept)}; it needs one of {list(FALLING)} with some values.")
    if len({len(kept[name]) for name in known}) > 1:
        raise EmpiriskError(f"The entries {known} of the history must be as long as each other.")
    return kept


def _places(kept: Mapping[str, Any], against: str, problems: NDArray) -> Array:
    """Where each value stands: iterations count from 1 for each problem."""
    if against == "seconds":
        if "seconds" not in kept or len(kept["seconds"]) != len(problems):
            raise EmpiriskError("The history holds no seconds for each iteration; use against='iterations'.")
        return np.asarray(kept["seconds"], dtype=np.float64)
    numbers = np.empty(len(problems))
    for problem in np.unique(problems):
        rows = problems == problem
        numbers[rows] = np.arange(1, rows.sum() + 1)
    return numbers


def _gaps(fit: Any, kept: Mapping[str, Any], curves: dict[str, Array], problems: NDArray) -> Array | None:
    """How far the objective can be from its minimum at each iteration, as far as is proved."""
    certificate = getattr(fit, "certificate_", None)
    objective = curves.get("objective")
    if objective is None:
        return None
    if certificate is not None and problems.max() == 0 and np.isfinite(certificate.dual):
        # No better than the certificate's own gap, which counts rounding.
        return np.maximum(objective - certificate.dual, max(certificate.gap, np.finfo(float).tiny))
    gaps = np.asarray(kept.get("gap", ()), dtype=np.float64)
    return np.maximum(gaps, np.finfo(float).tiny) if len(gaps) == len(objective) and (gaps > 0).any() else None


@dataclass(frozen=True)
class Replay:
    """The problems that a machine solves, and the points its solver went through.

    Attributes
    ----------
    machine : machine
        A copy that `at` sets to any of the states.
    problems : list of Problem
        What was minimised: one problem, or one for each of several functions.
    states : list of lists of Point
        From the best constant to the solution, a point for each problem; a problem that is solved stays so.
    solver : str
        The name of the solver that ran.
    """

    machine: Any
    problems: list[Problem]
    states: list[list[Point]]
    solver: str

    @property
    def problem(self) -> Problem:
        """The only problem."""
        return self.problems[0]

    @property
    def points(self) -> list[Point]:
        """The points of the only problem."""
        return [state[0] for state in self.states]

    def at(self, number: int) -> Any:
        """The machine as it was in a state."""
        for name, value in self.machine._coefficients(self.problems, self.states[number]).items():
            setattr(self.machine, name, value)
        return self.machine


def replay(machine: Any, X: Any, y: ArrayLike, *, several: bool = False, **changed: Any) -> Replay:
    """Fit a copy of the machine, with some parameters changed, and keep the points; the machine stays as it is.

    ``several`` tells whether several functions at once will do.
    """
    if not has_problems(machine):
        raise EmpiriskError(f"The fit of {type(machine).__name__} cannot be replayed; give an Empirisk machine.")
    if not is_given(machine.C):
        # The C that was chosen, which the steps to it would only hide.
        fitted: Any = machine if hasattr(machine, "C_") else clone(machine).fit(X, y)
        changed["C"] = fitted.C_
    copy = clone(machine).set_params(**changed)
    found = copy.problems(X, y)
    copy = found.machine
    if not several and (len(found) > 1 or found[0].classes):
        raise EmpiriskError(
            f"The {type(machine).__name__} fits several functions at once; give two classes or one target."
        )
    run = SolverRun(copy.solver, copy._limits())
    problems, starts = hard_margins(found, run)
    ways = [[problem.origin()] for problem in problems]

    def watched(number: int, problem: Problem) -> Progress:
        def note(iteration: int, point: Point) -> bool:
            if iteration == 1:  # where a first solver gives up, the next one starts anew
                ways[number] = ways[number][:1]
            ways[number].append(Point(np.array(point.w), point.b, point.u))
            return False

        return note

    fits = replace(run, progress=watched)(problems, starts)
    for way, fit in zip(ways, fits, strict=True):
        way.append(fit.point)
    longest = max(map(len, ways))
    states = [[way[min(number, len(way) - 1)] for way in ways] for number in range(longest)]
    return Replay(copy, problems, states, fits[0].certificate.solver)


def dual_sizes(problems: Sequence[Problem], points: Sequence[Point], rows: int) -> Array:
    """The size of each row's dual variable; of several problems, the largest."""
    out = np.zeros(rows)
    for problem, point in zip(problems, points, strict=True):
        u = problem.slopes(problem.predict(point)) if point.u is None else point.u
        np.maximum.at(out, problem.places, np.abs(u).reshape(len(problem.places), -1).max(axis=1))
    return out


CURVE = 400  # values along a graph: less than two pixels apart
GRID = 70  # values across: a surface looks smooth
LEVELS = 14  # contours: the valley shows, and lines stay apart


@dataclass(frozen=True)
class Scenery:
    """A function around the paths of descents on it: its graph, or its contours over two of its numbers.

    Attributes
    ----------
    labels : two str
        The labels of the two axes.
    tracks : list of arrays
        The paths, points x 2.
    floor : tuple of arrays
        The places, along one number or two, and the values there.
    lowest : float
        The lowest value of the paths.
    """

    labels: tuple[str, str]
    tracks: list[Array]
    floor: tuple[Array, ...]
    lowest: float

    @classmethod
    def of_machines(cls, played: list[Replay], weights: Sequence[Any], argument: str = "weights") -> Scenery:
        """The objective of the first machine over two weights, with the other weights and b of its solution."""
        problem, end = played[0].problem, played[0].points[-1]
        if any(one.problem.design.implicit for one in played):
            raise EmpiriskError("A kernel machine has no weights to draw, only dual ones; use animate(kind='dual').")
        _check_two(argument, weights, len(end.w))
        first, second = weights
        base, units = problem.predict(end), np.zeros((len(end.w), 2))
        units[[first, second], (0, 1)] = 1.0
        columns = problem.design.dot(units)

        def value(*place: float) -> float:
            move = np.array(place) - end.w[[first, second]]
            return problem.primal(replace(end, w=end.w + units @ move), base + columns @ move)

        tracks = [np.array([point.w[[first, second]] for point in one.points]) for one in played]
        lowest = min(one.problem.primal(one.points[-1]) for one in played)
        return cls((f"weight {first}", f"weight {second}"), tracks, _floor(value, tracks), lowest)

    @classmethod
    def of_minima(cls, minima: list[Minimum], weights: Sequence[Any]) -> Scenery:
        """The function of the first of `minimise` along its number, or over two, the others as at its end."""
        end, shape = np.ravel(minima[0].x), np.shape(minima[0].x)
        if any(np.shape(one.x) != shape for one in minima):
            raise EmpiriskError("machines holds descents on functions of different shapes; draw each by itself.")
        chosen = [0] if end.size == 1 else list(weights)
        if end.size > 1:
            _check_two("weights", weights, end.size)

        def value(*place: float) -> float:
            x = end.copy()
            x[chosen] = place
            with np.errstate(all="ignore"):  # beside the paths the function may have no value
                return float(np.asarray(minima[0].function(x.reshape(shape) if shape else float(x[0]))).ravel()[0])

        ways = [one.history["x"].reshape(len(one.history["x"]), -1)[:, chosen] for one in minima]
        lowest, floor = min(one.value for one in minima), _floor(value, ways)
        if end.size > 1:
            return cls((f"x[{chosen[0]}]", f"x[{chosen[1]}]"), ways, floor, lowest)
        heights = [one.history["objective"] for one in minima]
        return cls(("x", "f(x)"), [np.column_stack(each) for each in zip(ways, heights, strict=True)], floor, lowest)

    def draw(self, axes: Axes) -> None:
        """The graph; or lines of equal value, closer together near the lowest."""
        if len(self.floor) == 2:
            axes.plot(*self.floor, color=style.SOFT, lw=style.WIDTH, zorder=1)
            return
        across, up, values = self.floor
        finite = values[np.isfinite(values)]
        span = float(finite.max()) - self.lowest if len(finite) else 0.0
        if span <= 0:
            return
        levels = self.lowest + span * np.geomspace(2e-3, 1.0, LEVELS)  # the innermost is seen, and not a dot
        levels = levels[(levels > finite.min()) & (levels < finite.max())]
        if len(levels):
            axes.contour(across, up, values, levels=levels, cmap="cividis", linewidths=0.9, zorder=1)
        axes.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))


def _check_two(argument: str, weights: Sequence[Any], count: int) -> None:
    """Raise unless two of ``count`` numbers are named."""
    if len(weights) != 2 or weights[0] == weights[1] or not all(k in range(count) for k in weights):
        wanted = f"exactly two weights: two different numbers from 0 to {count - 1}"
        raise EmpiriskError(f"{argument}={weights!r} must name {wanted}.")


def _floor(value: Callable[..., float], ways: list[Array]) -> tuple[Array, ...]:
    """Places around the ways and the values there: far enough that the floor of a valley is seen from all sides."""
    ranges = [style.padded(column, 0.25) for column in np.concatenate(ways).T]
    if len(ranges) == 1:
        places = np.linspace(*ranges[0], CURVE)
        return places, np.array([value(place) for place in places])
    across, up = (np.linspace(*one, GRID) for one in ranges)
    return across, up, np.array([[value(a, b) for a in across] for b in up])


def descent(
    machines: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    weights: Sequence[int] = (0, 1),
    axes: Axes | None = None,
) -> Figure:
    """Draw how solvers move two weights over the contours of the objective.

    Each machine is fitted once more to see its points; the contours are those of the first one's objective, with the
    other weights and the intercept of its solution. Of results of `minimise` the paths are drawn as they were; over a
    function of one number they run along its graph.

    Parameters
    ----------
    machines : machine or result of `minimise`, list of them, or dict from name to one
        Empirisk machines of two classes or one target, fitted or not; with the same loss, penalty and C if they are
        to be compared. Or descents on one function, which need neither X nor y.
    X, y : table and target
        What machines are fitted to.
    weights : two int
        The weights, or numbers of x, to draw.
    axes : matplotlib Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]), [0, 0, 1, 1]
    >>> slow, fast = (er.LogisticRegression(solver=solver) for solver in ("gradient_descent", "newton"))
    >>> figure = er.plots.descent({"gradient": slow, "Newton": fast}, X, y)
    >>> [text.get_text().split(":")[0] for text in figure.axes[0].get_legend().get_texts()]
    ['gradient', 'Newton', 'start', 'end']
    >>> paths = [er.minimise(lambda x: x @ x + x[0], [1.0, 1.0], method) for method in ("adam", "bfgs")]
    >>> figure = er.plots.descent(paths)
    """
    named = style.named(machines, _solver_of)
    if not named:
        raise EmpiriskError("machines is empty; give at least one machine.")
    axes, found = style.canvas(axes, style.WIDE), list(named.values())
    if all(isinstance(one, Minimum) for one in found):
        title, scenery, counts = "Descent", Scenery.of_minima(found, weights), [one.iterations for one in found]
    elif X is None or y is None:
        raise EmpiriskError("X or y is missing: machines are fitted once more; results of minimise need neither.")
    else:
        title = "Descent over the objective"
        scenery = Scenery.of_machines([replay(machine, X, y) for machine in found], weights)
        counts = [len(way) - 2 for way in scenery.tracks]
    scenery.draw(axes)
    labels = [f"{style.plain(name)}: {count} iterations" for name, count in zip(named, counts, strict=True)]
    _draw_tracks(axes, dict(zip(labels, scenery.tracks, strict=True)))
    return style.finished(axes, title, *scenery.labels, grid=False)


def _draw_tracks(axes: Axes, tracks: dict[str, Array]) -> None:
    """Paths with their labels, and where they begin and end."""
    ways = list(tracks.values())
    for number, (label, way) in enumerate(tracks.items()):
        look = style.look(number, marker=style.marker(number), ms=3.5 if len(way) <= style.FEW else 1.5)
        axes.plot(*way.T, zorder=2 + number, label=label, **look)
    axes.plot(*ways[0][0], "o", color="white", markeredgecolor=style.INK, ms=8, zorder=20, label="start", linestyle="")
    axes.plot(*ways[0][-1], "*", color=style.INK, ms=11, zorder=20, label="end", linestyle="")


def _solver_of(machine: Any) -> str:
    """What a machine is called beside others: by its solver, or by its kind if that was left open."""
    solver = getattr(machine, "solver", getattr(machine, "method", None))
    if solver is None or solver == "auto":
        return type(machine).__name__
    return (solver if isinstance(solver, str) else type(solver).__name__).replace("_", " ")
