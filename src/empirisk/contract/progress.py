"""Progress: every iteration of every problem, told to scikit-learn's callbacks."""

from collections.abc import Callable
from typing import Any

from empirisk.fits.fit import Progress
from empirisk.problem import Point, Problem


class Reporter:
    """Turns a fit into the tasks that callbacks see: fit > problem > iteration.

    Parameters
    ----------
    machine, X, y
        What the callbacks are shown.
    problems : list of Problem
        The problems of the fit, in order.
    attributes : callable
        The fitted attributes that a list of points stands for.
    """

    def __init__(self, machine: Any, X, y, problems: list[Problem], attributes: Callable[[list[Point]], dict]):
        self._shown = {"estimator": machine, "X": X, "y": y}
        self._context = machine._init_callback_context(max_subtasks=len(problems))
        self._wanted = hasattr(machine, "_skl_callbacks")
        self._points = [problem.origin() for problem in problems] if self._wanted else []
        self._attributes = attributes
        self._task: Any = None
        self._number = -1
        self._context.call_on_fit_task_begin(**self._shown)

    @property
    def progress(self) -> Callable[[int], Progress] | None:
        """What `fitting.run` asks for each problem; None if nobody listens."""
        return self._begin if self._wanted else None

    def _begin(self, number: int) -> Progress:
        if number != self._number:
            self._end_problem()
            self._number, self._task = number, self._context.subcontext(task_name="problem", max_subtasks=None)
            self._task.call_on_fit_task_begin(**self._shown)
        return self._report

    def _report(self, iteration: int, point: Point) -> bool:
        self._points[self._number] = point
        step = self._task.subcontext(task_name="iteration")
        step.call_on_fit_task_begin(**self._shown)
        return step.call_on_fit_task_end(**self._shown, reconstruction_attributes=self._current)

    def _current(self) -> dict:
        return self._attributes(self._points)

    def _end_problem(self) -> None:
        if self._task is not None:
            self._task.call_on_fit_task_end(**self._shown, reconstruction_attributes=self._current)

    def end(self) -> None:
        """Close the last problem and the fit."""
        self._end_problem()
        self._context.call_on_fit_task_end(**self._shown, reconstruction_attributes={})
