"""The way of a solver down to the minimum, seen on two weights."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.replay import replay
from empirisk.plots.valley import contours, objective, track, valley


def descent(
    machines: Any,
    X: Any,
    y: ArrayLike,
    *,
    weights: Sequence[int] = (0, 1),
    axes: Axes | None = None,
) -> Figure:
    """Draw how solvers move two weights over the contours of the objective.

    Each machine is fitted once more to see its points; the contours are those of the first one's objective, with the
    other weights and the intercept of its solution.

    Parameters
    ----------
    machines : machine, list of machines, or dict from name to machine
        Empirisk machines of two classes or one target, fitted or not; with the same loss, penalty and C if they are
        to be compared.
    X, y : table and target
        What they are fitted to.
    weights : two int
        The weights to draw.
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
    """
    named = _named(machines)
    played = {name: replay(machine, X, y) for name, machine in named.items()}
    pair = tuple(int(weight) for weight in weights)
    if len(pair) != 2:
        raise EmpiriskError(f"weights={weights!r} must name exactly two weights.")
    tracks = {name: track(one, pair) for name, one in played.items()}
    first = next(iter(played.values()))
    axes = style.canvas(axes, (6.6, 4.6))
    lowest = min(objective(one, one.points[-1]) for one in played.values())
    contours(axes, valley(first, pair, list(tracks.values())), lowest)
    for number, (name, way) in enumerate(tracks.items()):
        small = 3.5 if len(way) <= 60 else 1.5
        axes.plot(
            *way.T,
            color=style.colour(number),
            linestyle=style.dashes(number),
            marker=style.marker(number),
            ms=small,
            lw=1.5,
            zorder=2 + number,
            label=f"{style.plain(name)}: {len(way) - 2} iterations",
        )
    ways = list(tracks.values())
    axes.plot(*ways[0][0], "o", color="white", markeredgecolor=style.INK, ms=8, zorder=20, label="start", linestyle="")
    axes.plot(*ways[0][-1], "*", color=style.INK, ms=11, zorder=20, label="end", linestyle="")
    style.dress(axes, "Descent over the objective", f"weight {pair[0]}", f"weight {pair[1]}", grid=False)
    style.legend(axes)
    return style.root(axes)


def _named(machines: Any) -> dict[str, Any]:
    """The machines by name; without one they are called after their solvers."""
    if isinstance(machines, Mapping):
        named = {str(name): machine for name, machine in machines.items()}
    else:
        listed = list(machines) if isinstance(machines, Sequence) else [machines]
        named = {}
        for machine in listed:
            solver = getattr(machine, "solver", None)
            name = str(solver if isinstance(solver, str) and solver != "auto" else type(solver).__name__)
            name = type(machine).__name__ if name in ("str", "NoneType") else name.replace("_", " ")
            named[name if name not in named else f"{name} {len(named) + 1}"] = machine
    if not named:
        raise EmpiriskError("machines is empty; give at least one machine.")
    return named
