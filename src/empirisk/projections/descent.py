"""The log of a fit that goes down round by round: objective, callbacks, clock and Ctrl-C; and L-BFGS on it."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.solvers.functions.scaled import L_BFGS, minimise_scaled
from empirisk.stop import Deadline, Ending, Stopped, check_stop, stopping

Array = NDArray[np.float64]
Attributes = Callable[[], dict[str, Any]]
#: An objective below this part of its first value counts as much when a small step is told.
NOTHING = 0.1


class DescentLog:
    """Notes the objective of every round, tells callbacks, and says when to stop.

    Parameters
    ----------
    estimator : estimator
        With ``max_iter`` and ``max_time``.
    data : dict
        ``X``, ``y`` and ``metadata``, for callbacks.
    """

    def __init__(self, estimator: Any, data: dict[str, Any]):
        self._estimator = estimator
        self._watch = FitCallbacks(estimator, estimator.max_iter, data)
        self._deadline = Deadline(estimator.max_time)
        self._values: list[float] = []
        self._seconds: list[float] = []
        self.reason = Ending.CONVERGED

    def note(self, value: float) -> None:
        """The objective at the start or after a round."""
        self._values.append(float(value))
        self._seconds.append(time.perf_counter() - self._deadline.start)

    def left(self) -> float | None:
        """The seconds that are left; None for any number of them."""
        return self._deadline.left()

    def stops(self) -> bool:
        """Whether the time is up or the user asks to stop."""
        if self._deadline():
            self.reason = self._deadline.reason
        return bool(self._deadline.reason)

    def ended(self, value: float, attributes: Attributes) -> bool:
        """A round has ended; whether it is to be the last."""
        self.note(value)
        self._watch.begin("iteration")
        if self._watch.end(attributes):
            self.reason = Ending.CALLBACK
            return True
        return self.stops()

    def close(self, attributes: dict[str, Any]) -> None:
        """Keep the model and its history; say so where the fit did not get to its end."""
        estimator = self._estimator
        estimator.__dict__.update(attributes)
        estimator.n_iter_ = max(len(self._values) - 1, 0)  # a fit may be stopped before its first value
        estimator.history_ = {"objective": np.array(self._values), "seconds": np.array(self._seconds)}
        estimator.stopped_ = self.reason
        self._watch.close()
        warn_if_unfinished(estimator, self.reason, f"{estimator.n_iter_} rounds")


def descend(objective: Callable[[Array], tuple[float, Array]], start: Array, log: DescentLog, fitted: Any) -> Array:
    """A point that L-BFGS reaches; the objective never rises.

    ``objective`` gives value and gradient; ``fitted`` the attributes of the model at a point. Stops when a round lowers
    the objective by less than a part ``tol`` of it.
    """
    estimator = log._estimator
    best, last, scale = start, np.inf, 1.0

    def watched(x: Array) -> tuple[float, Array]:
        check_stop()
        return objective(x)

    def after(x: Array, value: float) -> None:
        nonlocal best, last
        best = x
        # Where the objective can be brought to nothing, no part of it is ever small enough.
        settled, last = last - value <= estimator.tol * max(last, NOTHING * scale), value
        if log.ended(value, lambda: fitted(best)) or settled:
            raise Stopped

    with stopping(log.stops):
        try:
            last = watched(start)[0]
            log.note(last)
            scale = abs(last) or 1.0
            options = L_BFGS | {"maxiter": estimator.max_iter, "maxfun": 20 * estimator.max_iter}
            found = minimise_scaled(watched, start, scale, after, options=options)
            if found.nit >= estimator.max_iter:
                log.reason = Ending.MAX_ITER
        except Stopped:
            pass
    return best
