"""Play: the steps of a fit, each with its picture."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk.certificate import verify
from empirisk.errors import Unsuitable
from empirisk.plots.fits import dual_sizes, replay
from empirisk.plots.scenes import spread
from empirisk.studio.playground.fitting import SECONDS, at_most, error, fit, is_convex
from empirisk.studio.playground.picture import nearest, picture
from empirisk.studio.playground.question import Question

MOST_STEPS = 60  # of a longer fit, more of the early steps are shown, where more happens
MARKED = 4  # points that a step may move to be called pairs
KEPT = 4  # films that are kept, for those who go back and forth
#: Pieces of a fit that are steps for those who watch it, and how they are called: in the end of a network, whose
#: epochs are pieces, its last layer is solved.
PIECES = {"epoch": "epoch {}", "round": "round {}", "iteration": "last layer solved"}


@dataclass(frozen=True, eq=False)
class FilmStep:
    """One step: its name, the values of the curves there, and how to draw it."""

    label: str
    values: dict[str, float]
    draw: Callable[[], dict[str, Any]]


@lru_cache(maxsize=KEPT)
def film(question: Question) -> list[FilmStep]:
    """The steps of the fit of a question."""
    question.require_enough()
    if not question.kind.play:
        raise Unsuitable(f"{question.kind.title} only remember the points: there are no steps to play.")
    with at_most(SECONDS):
        return RECORDERS[question.kind.play](question)


def told(steps: list[FilmStep]) -> dict[str, Any]:
    """The film as the page is told of it; pictures are asked for one by one."""
    names = list(steps[-1].values)
    curves = {name: [_digits(step.values.get(name, np.nan)) for step in steps] for name in names}
    return {"labels": [step.label for step in steps], "curves": curves}


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def _solver(question: Question) -> list[FilmStep]:
    """Iterations of a solver, with primal and dual objective; of a network, epochs."""
    machine, (X, y) = question.machine(), question.data()
    if not is_convex(machine):
        return _watched(question)
    played = replay(machine, X, y, several=True)
    name = played.solver.replace("_", " ")
    last = len(played.states) - 1
    shown = spread(len(played.states), MOST_STEPS)
    bound, steps = -np.inf, []
    for k in shown.tolist():
        proofs = [verify(*pair) for pair in zip(played.problems, played.states[k], strict=True)]
        bound = max(bound, sum(proof.dual for proof in proofs))
        values = {"primal": sum(proof.primal for proof in proofs), "dual": bound}
        before, sizes = (dual_sizes(played.problems, played.states[j], len(X)) for j in (max(k - 1, 0), k))
        label = f"{name}: start" if k == 0 else f"{name}: solution" if k == last else f"{name}: iteration {k}"
        steps.append(FilmStep(label, values, _at(question, copy(played.at(k)), sizes, before != sizes)))
    return steps


def _at(
    question: Question, machine: Any, sizes: Any = None, moved: NDArray[np.bool_] | None = None
) -> Callable[[], dict[str, Any]]:
    """How to draw a machine; points whose dual variables have moved are marked where they are few, as in pair steps."""
    few = moved is not None and 0 < moved.sum() <= MARKED
    marks = {"moved": np.flatnonzero(~question.is_held)[moved]} if few else {}
    return lambda: picture(question, machine, sizes) | marks


class Recorder:
    """A callback that keeps the machine as it is after each piece of its fit, with the name of the piece."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be prepared."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is to be given back."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Only ends matter."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> bool:
        """Keep the machine."""
        if context.task_name in PIECES:
            self.seen.append((context.task_name, fitted_estimator))
        return False


def _watched(question: Question) -> list[FilmStep]:
    """The pieces of a fit that tells callbacks of them: epochs of a network, rounds of a mixture."""
    machine, recorder, (X, y) = question.machine(), Recorder(), question.data()
    machine.set_callbacks(recorder)
    if y is None:
        machine.set_params(n_init=1).fit(X)
    else:
        machine.fit(X, y)
    every = {"epoch": getattr(getattr(machine, "features", None), "look_every", 1)}
    counted, steps = Counter[str](), []
    last = recorder.seen[-1][1]
    for piece, one in recorder.seen:
        if piece == "iteration" and one is not last:  # a solver that begins anew would only flicker
            continue
        counted[piece] += every.get(piece, 1)
        steps.append(FilmStep(PIECES[piece].format(counted[piece]), _grades(question, one), _at(question, one)))
    return [steps[k] for k in spread(len(steps), MOST_STEPS)]


def _grades(question: Question, machine: Any) -> dict[str, float]:
    """The errors of a machine in the middle of its fit; of a mixture, its likelihood."""
    if question.task == "clusters":
        X, _ = question.data()
        return {"log-likelihood": float(np.sum(machine.score_samples(X)))}
    found = {"learned from": error(machine, *question.data(), question.task)}
    with suppress(ValueError):
        found["held out"] = error(machine, *question.data(held=True), question.task)
    return {f"{name}: error": part["value"] for name, part in found.items() if part is not None}


def _refitted(question: Question, parameter: str, values: list[int], word: str) -> list[FilmStep]:
    """The machine with one parameter at several values: a tree level by level, a forest tree by tree."""
    machine, (X, y) = question.machine(), question.data()
    steps = []
    for value in values:
        one = clone(machine).set_params(**{parameter: value}).fit(*[X] if y is None else [X, y])
        steps.append(FilmStep(word.format(value), {} if y is None else _grades(question, one), _at(question, one)))
    return steps


def _depth(question: Question) -> list[FilmStep]:
    return _refitted(question, "max_depth", list(range(1, question.machine().max_depth + 1)), "depth {}")


def _trees(question: Question, word: str = "trees: {}") -> list[FilmStep]:
    count = question.machine().n_estimators
    return _refitted(question, "n_estimators", (spread(count, MOST_STEPS // 2) + 1).tolist(), word)


def _merges(question: Question) -> list[FilmStep]:
    """Clusters that merge, from many down to as many as are asked for."""
    X, _ = question.data()
    last, heights = question.machine().n_clusters, [0.0, *fit(question).machine.distances_]
    counts = (last + spread(max(len(X) - last, 0) + 1, MOST_STEPS // 2))[::-1].tolist()
    steps = _refitted(question, "n_clusters", counts, "{} clusters")
    return [
        FilmStep(step.label, {"distance of the last merge": float(heights[len(X) - k])}, step.draw)
        for step, k in zip(steps, counts, strict=True)
    ]


def _half_steps(question: Question) -> list[FilmStep]:
    """The two half-steps of k-means."""
    X, _ = question.data()
    steps = question.machine().half_steps(X)
    return [
        FilmStep(
            f"round {number // 2 + 1}: {step.what}",
            {"squared distances": float(step.inertia)},
            lambda step=step: nearest(step.means, step.labels),
        )
        for number, step in enumerate(steps[:MOST_STEPS])
    ]


#: How the steps of each family are recorded, by the name that the family has for it.
RECORDERS: dict[str, Callable[[Question], list[FilmStep]]] = {
    "solver": _solver,
    "rounds": _watched,
    "depth": _depth,
    "trees": _trees,
    "boosting": partial(_trees, word="round {}"),
    "half_steps": _half_steps,
    "merges": _merges,
}
