"""The course of a fit that goes down round by round: objective, callbacks, clock and Ctrl-C; and L-BFGS on it."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from empirisk.contract.clock import Clock, Watch
from empirisk.errors import warn_unfinished
from empirisk.linalg.threads import Stopped, look, stopping

Array = NDArray[np.float64]
Attributes = Callable[[], dict[str, Any]]
REMEDIES = {
    "max_iter": "raise max_iter or tol",
    "max_time": "raise max_time or tol",
    "interrupted": "fit again to go on",
}
#: An objective below this part of its first value counts as much when a small step is told.
NOTHING = 0.1
#: Earlier steps that L-BFGS remembers.
MEMORY = 10


class Course:
    """Notes the objective of every round, tells callbacks, and says when to stop.

    Parameters
    ----------
    estimator : estimator
        With ``max_iter`` and ``max_time``.
    data : dict
        ``X``, ``y`` and ``metadata``, for callbacks.
    interrupted : callable
        Whether Ctrl-C was pressed.
    """

    def __init__(self, estimator: Any, data: dict[str, Any], interrupted: Callable[[], bool]):
        self._estimator = estimator
        self._watch = Watch(estimator, estimator.max_iter, data)
        self._clock = Clock(estimator.max_time, interrupted)
        self._values: list[float] = []
        self._seconds: list[float] = []
        self.reason = "converged"

    def note(self, value: float) -> None:
        """The objective at the start or after a round."""
        self._values.append(float(value))
        self._seconds.append(time.perf_counter() - self._clock.start)

    def left(self) -> float | None:
        """The seconds that are left; None for any number of them."""
        return self._clock.left()

    def stops(self) -> bool:
        """Whether the time is up or Ctrl-C was pressed."""
        if self._clock():
            self.reason = self._clock.reason
        return bool(self._clock.reason)

    def ended(self, value: float, attributes: Attributes) -> bool:
        """A round has ended; whether it is to be the last."""
        self.note(value)
        self._watch.begin("iteration")
        if self._watch.end(attributes):
            self.reason = "callback"
            return True
        return self.stops()

    def close(self, attributes: dict[str, Any]) -> None:
        """Keep the model and its history; say so where the fit did not get to its end."""
        estimator = self._estimator
        for name, value in attributes.items():
            setattr(estimator, name, value)
        estimator.n_iter_ = max(len(self._values) - 1, 0)  # a fit may be stopped before its first value
        estimator.history_ = {"objective": np.array(self._values), "seconds": np.array(self._seconds)}
        estimator.stopped_ = self.reason
        self._watch.close()
        if self.reason in REMEDIES:
            warn_unfinished(
                f"{type(estimator).__name__} was stopped ({self.reason}) after {estimator.n_iter_} rounds, before its "
                f"objective settled; the model is usable as it is, {REMEDIES[self.reason]} for a better one."
            )


def descend(objective: Callable[[Array], tuple[float, Array]], start: Array, course: Course, fitted: Any) -> Array:
    """A point that L-BFGS reaches; the objective never rises.

    ``objective`` gives value and gradient; ``fitted`` the attributes of the model at a point. Stops when a round lowers
    the objective by less than a part ``tol`` of it.
    """
    estimator = course._estimator
    best, last, scale = start, np.inf, 1.0
    # Point and objective are both of the order of one for SciPy, whatever their units.
    unit = float(np.abs(start).max()) or 1.0

    def scaled(x: Array) -> tuple[float, Array]:
        look()
        value, gradient = objective(unit * x)
        return value / scale, gradient * (unit / scale)

    def after(intermediate_result: Any) -> None:
        nonlocal best, last
        best, value = unit * intermediate_result.x, scale * float(intermediate_result.fun)
        # Where the objective can be brought to nothing, no part of it is ever small enough.
        settled, last = last - value <= estimator.tol * max(last, NOTHING * scale), value
        if course.ended(value, lambda: fitted(best)) or settled:
            raise Stopped

    with stopping(course.stops):
        try:
            last = scaled(start / unit)[0]
            course.note(last)
            scale = abs(last) or 1.0
            options = {"maxiter": estimator.max_iter, "maxfun": 20 * estimator.max_iter, "maxcor": MEMORY}
            found = minimize(
                scaled,
                start / unit,
                jac=True,
                method="L-BFGS-B",
                callback=after,
                options=options | {"ftol": 0.0, "gtol": 0.0},
            )
            if found.nit >= estimator.max_iter:
                course.reason = "max_iter"
        except Stopped:
            pass
    return best
