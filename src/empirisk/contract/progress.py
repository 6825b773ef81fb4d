"""Progress: every iteration of a problem, and every round of a map that learns, told to scikit-learn's callbacks."""

from collections.abc import Callable
from typing import Any

from empirisk.fits.fit import Progress
from empirisk.problem import Point, Problem

#: The number of the task in which a map learns, beside those of the problems.
TRAINING = -2


class Reporter:
    """Turns a fit into the tasks that callbacks see: fit > problem > iteration, or fit > training > epoch.

    Parameters
    ----------
    machine, X, y
        What the callbacks are shown.
    problems : list of Problem
        The problems of the fit, in order.
    attributes : callable
        The fitted attributes that lists of problems and of points stand for.
    """

    def __init__(self, machine: Any, X, y, problems: list[Problem], attributes: Callable[[list, list], dict]):
        self._shown = {"estimator": machine, "X": X, "y": y}
        self._features = getattr(machine, "features_", None)
        learns = hasattr(self._features, "learn_with")  # and solves problems as often as it likes
        self._context = machine._init_callback_context(max_subtasks=None if learns else len(problems))
        self._wanted = hasattr(machine, "_skl_callbacks")
        self._problems = list(problems)
        self._points = [problem.origin() for problem in problems] if self._wanted else []
        self._attributes = attributes
        self._task: Any = None
        self._number = -1
        self._context.call_on_fit_task_begin(**self._shown)

    @property
    def progress(self) -> Callable[[int, Problem], Progress] | None:
        """What a `Run` asks for each problem; None if nobody listens."""
        return self._begin if self._wanted else None

    @property
    def learning(self) -> Callable[[int, Callable[[], tuple]], bool] | None:
        """What a `Run` tells of the rounds of a map that learns; None if nobody listens."""
        return self._learned if self._wanted else None

    def _begin(self, number: int, problem: Problem) -> Progress:
        self._open(number, "problem", None)
        self._problems[number] = problem
        return self._report

    def _report(self, iteration: int, point: Point) -> bool:
        self._points[self._number] = point
        return self._tell("iteration")

    def _learned(self, rounds: int, state: Callable[[], tuple]) -> bool:
        self._open(TRAINING, "training", rounds)
        self._features, self._problems, self._points = state()
        stop = self._tell("epoch")
        self._features = self._shown["estimator"].features_
        return stop

    def _tell(self, name: str) -> bool:
        step = self._task.subcontext(task_name=name)
        step.call_on_fit_task_begin(**self._shown)
        return step.call_on_fit_task_end(**self._shown, reconstruction_attributes=self._current)

    def _current(self) -> dict:
        mapped = {} if self._features is None else {"features_": self._features}
        return self._attributes(self._problems, self._points) | mapped

    def _open(self, number: int, name: str, subtasks: int | None) -> None:
        """Begin a task, unless it is the one under way."""
        if number != self._number:
            self._close()
            self._number, self._task = number, self._context.subcontext(task_name=name, max_subtasks=subtasks)
            self._task.call_on_fit_task_begin(**self._shown)

    def _close(self) -> None:
        if self._task is not None:
            self._task.call_on_fit_task_end(**self._shown, reconstruction_attributes=self._current)

    def end(self) -> None:
        """Close the last task and the fit."""
        self._close()
        self._context.call_on_fit_task_end(**self._shown, reconstruction_attributes={})
