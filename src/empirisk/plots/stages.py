"""The classes that a machine would have predicted after each round or iteration of its fit."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import EmpiriskError
from empirisk.plots.replay import is_replayable, replay
from empirisk.plots.surface import Surface, numbered, surface, surface_of

Pick = Callable[[int], NDArray[np.intp]]
#: Iterations to replay where a machine says nothing of its own.
MOST = 100


@dataclass(frozen=True)
class Stage:
    """One state of the fit: its number, its regions on a grid, and its classes for the data."""

    number: int
    surface: Surface
    codes: NDArray[np.intp]
    classes: NDArray


def stages(machine: Any, X: Any, y: ArrayLike, rows: Any, pick: Pick) -> tuple[list[Stage], str]:
    """The states to show, and whether they are rounds or iterations."""
    if not is_classifier(machine):
        raise EmpiriskError(f"The {type(machine).__name__} predicts no classes; kind='regions' needs a classifier.")
    if hasattr(type(machine), "staged_predict"):
        return _rounds(_fitted(machine, X, y), X, rows, pick), "round"
    if is_replayable(machine):
        return _points(machine, X, y, rows, pick), "iteration"
    if "max_iter" in machine.get_params():
        return _refits(machine, X, y, rows, pick), "iteration"
    raise EmpiriskError(
        f"The fit of {type(machine).__name__} cannot be replayed; give a machine with rounds or with max_iter."
    )


def _fitted(machine: Any, X: Any, y: ArrayLike) -> Any:
    try:
        check_is_fitted(machine)
    except NotFittedError:
        return clone(machine).fit(X, y)
    return machine


def _rounds(machine: Any, X: Any, rows: Any, pick: Pick) -> list[Stage]:
    """What an ensemble said after some of its rounds."""
    said = [numbered(labels, machine.classes_) for labels in machine.staged_predict(X)]
    wanted = set(pick(len(said)).tolist())
    scores = _staged_scores(machine, rows)
    found = []
    for k, labels in enumerate(machine.staged_predict(rows)):
        values = None if scores is None else np.array(next(scores), dtype=np.float64)
        if k in wanted:
            found.append(Stage(k + 1, surface(labels, values, machine.classes_), said[k], machine.classes_))
    return found


def _staged_scores(machine: Any, rows: Any) -> Any:
    for method in ("staged_decision_function", "staged_predict_proba"):
        if hasattr(machine, method):
            return iter(getattr(machine, method)(rows))
    return None


def _points(machine: Any, X: Any, y: ArrayLike, rows: Any, pick: Pick) -> list[Stage]:
    """What a machine would have said at the points on its way."""
    played = replay(machine, X, y, several=True)
    found = []
    for k in pick(len(played.states)):
        at, classes = played.at(int(k)), played.machine.classes_
        found.append(Stage(int(k), surface_of(at, rows, classes), numbered(at.predict(X), classes), classes))
    return found


def _refits(machine: Any, X: Any, y: ArrayLike, rows: Any, pick: Pick) -> list[Stage]:
    """What a machine says if its fit ends early: it is fitted anew for each state."""
    limit = np.max(getattr(machine, "n_iter_", None) or machine.get_params()["max_iter"] or MOST)
    found = []
    for k in pick(max(1, min(int(limit), MOST))):
        early = clone(machine).set_params(max_iter=int(k) + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is meant to end early
            early.fit(X, y)
        classes = early.classes_
        found.append(Stage(int(k) + 1, surface_of(early, rows, classes), numbered(early.predict(X), classes), classes))
    return found
