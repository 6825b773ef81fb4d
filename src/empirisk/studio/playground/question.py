"""What the page asks: points, how many of them are held out, and a machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import LETTERS, EmpiriskError, OneClass, listed
from empirisk.studio.playground.controls import FAMILIES, Family
from empirisk.studio.playground.expressions import evaluate
from empirisk.studio.playground.points import DATASETS, Array, checked_points

MOST_HELD = 0.8  # share of the points that may be held out: some must teach
#: Steps of the golden section spread held-out points evenly, whatever the order of the points.
GOLDEN = 0.6180339887498949
LEAST_POINTS = 4  # below, nothing can be learned and tested
LEAST_TAUGHT = 2  # points to learn from: one of each of two classes


@dataclass(frozen=True)
class Question:
    """Points, a share of them to hold out, and a machine; two that are equal have the same answer.

    >>> asked = Question.from_dict({"points": [[-1, 0, 0], [1, 0, 1], [2, 0, 1], [-2, 1, 0]], "held": 0})
    >>> asked.expression
    'er.Classifier(loss="hinge", penalty="l2", C=1)'
    """

    task: str
    points: tuple[tuple[float, float, int], ...]
    held: float
    family: str
    expression: str

    @classmethod
    def from_dict(cls, asked: Any) -> "Question":
        """The question that a page has sent; an error says what is wrong with it."""
        if not isinstance(asked, Mapping):
            raise EmpiriskError("A question is an object with points, task, family and settings.")
        task, name, held = asked.get("task", "classes"), asked.get("family", "equation"), asked.get("held", 0.3)
        if not isinstance(task, str) or task not in DATASETS:
            raise EmpiriskError(f"task={str(task)[:LETTERS]!r} must be one of {listed(list(DATASETS))}.")
        family = FAMILIES.get(name) if isinstance(name, str) else None
        if family is None or task not in family.tasks:
            suited = [one.name for one in FAMILIES.values() if task in one.tasks]
            raise EmpiriskError(f"family={str(name)[:LETTERS]!r} does not suit {task}; choose from {listed(suited)}.")
        if type(held) not in (int, float) or not 0 <= held <= MOST_HELD:
            raise EmpiriskError(f"held={str(held)[:LETTERS]} must be a share from 0 to {MOST_HELD}.")
        settings = asked.get("settings", {})
        if not isinstance(settings, Mapping):
            raise EmpiriskError("settings must be an object of controls.")
        points = checked_points(asked.get("points", []))
        return cls(task, points, float(held), family.name, family.expression(task, settings))

    @property
    def kind(self) -> Family:
        """The family of the machine."""
        return FAMILIES[self.family]

    def machine(self) -> Any:
        """A new machine."""
        return evaluate(self.expression)

    @property
    def is_held(self) -> NDArray[np.bool_]:
        """Which points are held out; of clusters, which know no error, none are."""
        share = 0.0 if self.task == "clusters" else self.held
        return (np.arange(len(self.points)) + 1) * GOLDEN % 1.0 < share

    def data(self, held: bool = False) -> tuple[Array, Any]:
        """Rows and targets to learn from, or of the held-out points; clusters have no target."""
        rows = np.array(self.points, dtype=np.float64).reshape(-1, 3)[self.is_held == held]
        if self.task == "numbers":
            return rows[:, :1], rows[:, 1]
        return rows[:, :2], rows[:, 2].astype(int) if self.task == "classes" else None

    def require_enough(self) -> None:
        """Raise a sentence where there is too little to learn from."""
        _, y = self.data()
        if len(self.points) < LEAST_POINTS or np.sum(~self.is_held) < LEAST_TAUGHT:
            raise EmpiriskError(f"Click at least {LEAST_POINTS} points into the plane.")
        if self.task == "classes" and len(set(y.tolist())) < 2:
            raise OneClass("All points to learn from have one class; add points of another.")
