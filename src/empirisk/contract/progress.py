"""Progress of a fit, reported to scikit-learn's callbacks, and the warning about a fit that was stopped early."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from empirisk.fits.fit import Progress
from empirisk.problem import Point, Problem
from empirisk.protocols import learns_with_machine
from empirisk.stop import warn_of

Method = TypeVar("Method", bound=Callable[..., Any])


class FitCallbacks:
    """Calls the scikit-learn callbacks of an estimator before and after each piece of its fit, such as a tree or round.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted.
    pieces : int or None
        Upper limit on the number of pieces; None where it is not known before the fit.
    data : dict
        ``X``, ``y`` and ``metadata``, for callbacks that ask for them.
    """

    def __init__(self, estimator: Any, pieces: int | None, data: dict[str, Any]):
        self._estimator, self._data = estimator, data
        self._context = estimator._init_callback_context(max_subtasks=pieces)
        self._context.call_on_fit_task_begin(estimator=estimator, **data)

    def begin(self, piece: str) -> None:
        """Call ``on_fit_task_begin`` for the next piece; ``piece`` is its name."""
        self._piece = self._context.subcontext(task_name=piece)
        self._piece.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end(self, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Call ``on_fit_task_end`` for the current piece, and return whether a callback asks to stop the fit.

        ``fitted`` gives the fitted attributes so far; it is called only by callbacks that need the model.
        """
        return bool(
            self._piece.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes=fitted, **self._data)
        )

    def told(self, piece: str, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Tell of a piece that is done, and return whether a callback asks to stop the fit."""
        self.begin(piece)
        return self.end(fitted)

    def close(self) -> None:
        """Call ``on_fit_task_end`` for the whole fit, after the fitted attributes were set on the estimator."""
        self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes={}, **self._data)


def reported(fit: Method) -> Method:
    """Method decorator: callbacks are told when a fit that has no steps of its own begins and ends."""

    @wraps(fit)
    def call(estimator: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        y = args[0] if args else kwargs.get("y")
        weights = args[1] if len(args) > 1 else kwargs.get("sample_weight")
        watch = FitCallbacks(estimator, 0, {"X": X, "y": y, "metadata": {"sample_weight": weights}})
        fit(estimator, X, *args, **kwargs)
        watch.close()
        return estimator

    return call  # type: ignore[return-value]


def warn_if_unfinished(estimator: Any, ending: str, done: str) -> None:
    """Warn where a limit or the user ended a fit before it had converged."""
    warn_of(ending, f"{type(estimator).__name__} was stopped ({ending}) after {done}; the model is usable as it is")


#: The task number for the training of a feature map. Problems are numbered from 0, and -1 means that no task is open.
TRAINING = -2


class Reporter:
    """Reports a fit to callbacks as nested tasks: fit > problem > iteration, or fit > training > epoch.

    Parameters
    ----------
    machine, X, y
        The estimator and the data that callbacks receive.
    problems : list of Problem
        The problems of the fit, in order.
    attributes : callable
        Gives the fitted attributes of the machine for a list of problems and the list of their current points.
    """

    def __init__(self, machine: Any, X, y, problems: list[Problem], attributes: Callable[[list, list], dict]):
        self._shown = {"estimator": machine, "X": X, "y": y}
        self._features = getattr(machine, "features_", None)
        # A map that learns with the machine solves problems repeatedly: the number of tasks is not known before.
        learns = learns_with_machine(self._features)
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
        """Function that opens the task of a problem and returns its progress callback; None without callbacks."""
        return self._begin if self._wanted else None

    @property
    def learning(self) -> Callable[[int, Callable[[], tuple]], bool] | None:
        """Function that a learning feature map calls after each epoch; None without callbacks."""
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
        """End the open task and begin another, unless the task with this number is already open."""
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
