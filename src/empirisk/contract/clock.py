"""What happens around the pieces of a long fit: the clock, Ctrl-C, and scikit-learn's callbacks."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from empirisk.errors import warn_unfinished
from empirisk.fits.fit import Progress
from empirisk.problem import Point, Problem

#: Seconds that are no time, but a number that `max_time` may have.
NO_TIME = 1e-9


class Clock:
    """Says when a fit must end: the user pressed Ctrl-C, or the time is up."""

    def __init__(self, max_time: float | None, interrupted: Callable[[], bool]):
        self.start = time.perf_counter()
        self._deadline = np.inf if max_time is None else self.start + max_time
        self.interrupted = interrupted
        self.reason = ""

    def left(self) -> float | None:
        """The seconds that are left for a fit inside this one; None for any number of them."""
        return None if np.isinf(self._deadline) else max(self._deadline - time.perf_counter(), NO_TIME)

    def __call__(self) -> bool:
        """Whether to stop; `reason` then says why."""
        if self.interrupted():
            self.reason = "interrupted"
        elif time.perf_counter() >= self._deadline:
            self.reason = "max_time"
        return bool(self.reason)


class Watch:
    """Tells the callbacks of an estimator about each piece of its fit.

    Parameters
    ----------
    estimator : estimator
        The one that is fitted.
    pieces : int or None
        How many pieces there will be at most; None where nobody knows.
    data : dict
        ``X``, ``y`` and ``metadata``, for callbacks that ask for them.
    """

    def __init__(self, estimator: Any, pieces: int | None, data: dict[str, Any]):
        self._estimator, self._data = estimator, data
        self._context = estimator._init_callback_context(max_subtasks=pieces)
        self._context.call_on_fit_task_begin(estimator=estimator, **data)

    def begin(self, piece: str) -> None:
        """A piece begins."""
        self._piece = self._context.subcontext(task_name=piece)
        self._piece.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end(self, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """The piece has ended; ``fitted`` gives the attributes of the model so far. Whether a callback says stop."""
        return bool(
            self._piece.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=fitted, **self._data)
        )

    def close(self) -> None:
        """The fit has ended; the estimator has its attributes."""
        self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes={}, **self._data)


#: What to do about a fit that ended early, by the reason.
REMEDIES = {"max_iter": "raise max_iter", "max_time": "raise max_time", "interrupted": "fit again"}


def warn_if_unfinished(estimator: Any, reason: str, done: str) -> None:
    """Say so where a limit or Ctrl-C ended a fit before its own end."""
    if reason in REMEDIES:
        warn_unfinished(
            f"{type(estimator).__name__} was stopped ({reason}) after {done}; the model is usable as it is, "
            f"{REMEDIES[reason]} for more."
        )


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
