"""The objective as a landscape over two weights."""

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.plots import style
from empirisk.plots.replay import Replay
from empirisk.problem import Point

Array = NDArray[np.float64]
GRID = 70
LEVELS = 14


@dataclass(frozen=True)
class Valley:
    """Values of the objective on a grid of two weights, all else as in the solution."""

    across: Array
    up: Array
    values: Array


def track(played: Replay, weights: tuple[int, int]) -> Array:
    """The way of two weights, points x 2."""
    if played.problem.design.implicit:
        raise EmpiriskError("A kernel machine has no weights to draw, only dual ones; use animate(kind='dual').")
    count = len(played.points[-1].w)
    if len(weights) != 2 or weights[0] == weights[1] or not all(0 <= k < count for k in weights):
        raise EmpiriskError(f"weights={weights!r} must be two different numbers from 0 to {count - 1}.")
    return np.array([point.w[list(weights)] for point in played.points])


def valley(played: Replay, weights: tuple[int, int], tracks: list[Array]) -> Valley:
    """The objective around the ways, with the other weights and b of the solution."""
    problem, end = played.problem, played.points[-1]
    seen = np.concatenate(tracks)
    # Far enough around that the floor of the valley is seen from all sides.
    across, up = (np.linspace(*style.padded(seen[:, k], 0.25), GRID) for k in (0, 1))
    base = problem.predict(end)
    columns = []
    for weight in weights:
        unit = np.zeros_like(end.w)
        unit[weight] = 1.0
        columns.append(problem.design.dot(unit))
    values = np.empty((GRID, GRID))
    for i, j in np.ndindex(GRID, GRID):
        w = end.w.copy()
        w[list(weights)] = across[j], up[i]
        move = w[weights[0]] - end.w[weights[0]], w[weights[1]] - end.w[weights[1]]
        values[i, j] = problem.primal(replace(end, w=w), base + move[0] * columns[0] + move[1] * columns[1])
    return Valley(across, up, values)


def contours(axes: Axes, floor: Valley, lowest: float) -> None:
    """Lines of equal objective, closer together near its minimum."""
    finite = floor.values[np.isfinite(floor.values)]
    span = float(finite.max()) - lowest if len(finite) else 0.0
    if span <= 0:
        return
    levels = lowest + span * np.geomspace(2e-3, 1.0, LEVELS)
    levels = levels[(levels > finite.min()) & (levels < finite.max())]
    if len(levels):
        axes.contour(floor.across, floor.up, floor.values, levels=levels, cmap="cividis", linewidths=0.9, zorder=1)
    axes.set(xlim=(floor.across[0], floor.across[-1]), ylim=(floor.up[0], floor.up[-1]))


def objective(played: Replay, point: Point) -> float:
    """The objective at a point."""
    return played.problem.primal(point)
