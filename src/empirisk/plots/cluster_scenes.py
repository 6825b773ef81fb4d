"""Films of clusterings: the two half-steps of k-means, the rounds of a mixture."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Ellipse
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from empirisk.plots import style
from empirisk.plots.clusters import mark_means, paint_cells
from empirisk.plots.planes import Plane, plane, scatter
from empirisk.plots.scenes import GRID, SIZE, Scene, curves, key, spread

DEVIATIONS = (1.0, 2.0)  # ellipses around a mean


def means_scene(machine: Any, X: Any, columns: Sequence[Any], held: Mapping[Any, Any] | None, most: int) -> Scene:
    """The two half-steps of k-means: rows take the nearest mean, then means move to their rows."""
    flat = plane(X, columns, held, GRID)
    steps = machine.half_steps(X)
    shown = spread(len(steps), most)
    inertia = np.array([steps[k].inertia for k in shown])
    grid = np.asarray(flat.rows, dtype=np.float64)
    left, right = style.panels(None, 2, SIZE)
    key(style.root(left), steps[-1].labels, _names(len(steps[-1].means)))

    def draw(frame: int) -> None:
        step = steps[shown[frame]]
        left.clear()
        count = len(step.means)
        squares = ((grid[:, None] - step.means) ** 2).sum(axis=2)
        paint_cells(left, flat, squares.argmin(axis=1), count)
        scatter(left, flat, step.labels, np.arange(count))
        mark_means(left, step.means[:, list(flat.places)])
        _title(left, flat, f"k-means: round {shown[frame] // 2 + 1}\n{step.what}")
        curves(right, shown / 2 + 1, {"sum of squares": inertia}, frame, "round", "sum of squared distances")

    return Scene(style.root(left), len(shown), draw)


def mixture_scene(machine: Any, X: Any, columns: Sequence[Any], held: Mapping[Any, Any] | None, most: int) -> Scene:
    """The components of a mixture after each round, as ellipses; beside it, the likelihood."""
    flat = plane(X, columns, held, GRID)
    settled = machine.random_state if machine.random_state is not None else 0
    whole = clone(machine).set_params(n_init=1, random_state=settled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rounds = spread(whole.fit(X).n_iter_, most)
        stages = [clone(whole).set_params(max_iter=int(round) + 1).fit(X) for round in rounds]
    likelihood = whole.history_["log_likelihood"][rounds]
    left, right = style.panels(None, 2, SIZE)
    key(style.root(left), whole.predict(X), _names(len(whole.weights_)))

    def draw(frame: int) -> None:
        left.clear()
        stage = stages[frame]
        scatter(left, flat, stage.predict(X), np.arange(len(stage.weights_)))
        mark_means(left, stage.means_[:, list(flat.places)])
        for k, (mean, covariance) in enumerate(zip(stage.means_, stage.whole_covariances(), strict=True)):
            _ellipses(left, mean[list(flat.places)], covariance[np.ix_(flat.places, flat.places)], style.colour(k))
        left.set(xlim=flat.extent[:2], ylim=flat.extent[2:])
        _title(left, flat, f"Mixture: round {rounds[frame] + 1}\nellipses at 1 and 2 standard deviations")
        curves(right, rounds + 1, {"log-likelihood": likelihood}, frame, "round", "mean log-likelihood")

    return Scene(style.root(left), len(rounds), draw)


def _ellipses(axes: Any, mean: NDArray, covariance: NDArray, shade: str) -> None:
    values, vectors = np.linalg.eigh(covariance)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    for deviations in DEVIATIONS:
        width, height = 2 * deviations * np.sqrt(values[::-1])
        axes.add_patch(Ellipse(tuple(mean), width, height, angle=angle, fill=False, color=shade, lw=1.6, zorder=3))


def _names(count: int) -> NDArray:
    return np.array([f"cluster {k}" for k in range(count)])


def _title(axes: Any, flat: Plane, title: str) -> None:
    style.dress(axes, title, *(style.plain(name, 30) for name in flat.names), grid=False)
