"""The record of a descent: its points and values, and the conditions that end it."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.problem import Point
from empirisk.settings import settings
from empirisk.solvers.base import Watch
from empirisk.solvers.functions.line import Ray
from empirisk.solvers.functions.objective import EPSILON, UserObjective
from empirisk.stop import Ending

Array = NDArray[np.float64]
#: The points of a path take no more than this part of the memory budget; of a longer one every second is dropped.
SHARE = 64
#: A descent that finds no lower point has converged if its gradient predicts less than this share of the objective:
#: ten times half of the digits, since values cannot tell points apart whose gradients are smaller than the root of
#: their rounding times a curvature.
FLAT = 10 * EPSILON**0.5
#: More steps than any method takes: the path counts them.
MANY = 1 << 40
#: A function that has come below minus this has no lower bound.
UNBOUNDED = 1e100


class Ended(Exception):
    """Raised to end a descent; `status` is the reason."""


class DescentRecord:
    """Notes the points of a descent, and ends it by `Ended`.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    start : array
        Where the descent begins.
    watch : Watch
        Its limits, and ``tol``: the descent has converged when |gradient|_inf times the size of x is no more than
        ``tol`` times the fall of the objective so far, or is lost in rounding.
    callback : callable, optional
        Called as callback(point, value) after every iteration; True stops.

    Attributes
    ----------
    x, value, gradient
        The lowest point so far.
    smooth : bool
        Whether a small gradient is what the method aims at.
    """

    def __init__(
        self,
        objective: UserObjective,
        start: Array,
        watch: Watch,
        callback: Callable[[Array, float], Any] | None = None,
    ):
        self._objective, self._watch = objective, watch
        self._size, self._first = float(np.abs(start).max(initial=0.0)), np.inf
        self._stride, self._most = 1, max(2, settings().memory // (SHARE * max(start.nbytes, 1)))
        self._rows: list[tuple[Array, float, float]] = []
        self.x, self.value, self.gradient, self.smooth = start, np.inf, np.full(start.size, np.nan), True
        if callback is not None:
            self._watch.progress = lambda _, point: bool(callback(point.w, self._here))

    @property
    def iterations(self) -> int:
        """Iterations so far."""
        return self._watch.iterations

    @property
    def status(self) -> str:
        """How it ended."""
        return self._watch.status

    @property
    def history(self) -> dict[str, Array]:
        """The points, their values, and the seconds at which they were reached; from the start on."""
        points, values, seconds = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        return {"x": np.array(points), "objective": np.array(values), "seconds": np.array(seconds)}

    def note(self, ray: Ray) -> None:
        """Record a point of the descent."""
        self.note_at(ray.x, ray.value, ray.gradient)

    def note_at(self, x: Array, value: float, gradient: Array | None) -> None:
        """The same, without a line; methods that use no gradient give none."""
        begins = not np.isfinite(self._first)
        if begins:
            self._first = value
        self._here = value
        if value <= self.value:
            self.x, self.value = x.copy(), value
            self.gradient = np.full(x.size, np.nan) if gradient is None else gradient.copy()
        if self.iterations % self._stride == 0:
            self._keep(x, value)
        if value < -UNBOUNDED:
            self.end(Ending.STALLED)
        if not begins and self._watch(Point(x.copy()), objective=value):
            self.end(self.status)
        if gradient is not None and self.smooth and self._settled(self.promised(x, gradient)):
            self.end(Ending.CONVERGED)

    def promised(self, x: Array, gradient: Array) -> float:
        """About how much the objective would fall along its gradient, over a distance as long as x."""
        size = max(float(np.abs(x).max(initial=0.0)), self._size) or 1.0
        return float(np.abs(gradient).max(initial=0.0)) * size

    def _settled(self, promised: float) -> bool:
        fallen = self._first - self._here
        return promised <= max(self._watch.tol * fallen, self._objective.noise * abs(self._here))

    def _keep(self, x: Array, value: float) -> None:
        self._rows.append((x.copy(), value, time.perf_counter() - self._watch.start))
        if len(self._rows) > self._most:
            self._rows, self._stride = self._rows[::2], 2 * self._stride

    def stall(self) -> None:
        """No step is left: at a minimum as far as values can tell, or the method is stuck."""
        self.end(Ending.CONVERGED if self.flat() else Ending.STALLED)

    def flat(self) -> bool:
        """Whether the best point is a minimum as far as values can tell."""
        promised = self.promised(self.x, self.gradient)
        return self.smooth and promised <= FLAT * max(abs(self.value), self._first - self.value)

    def end(self, status: str) -> None:
        """End with that status."""
        self._watch.status = status
        raise Ended

    def scipy_limits(self, method: str) -> dict[str, Any]:
        """SciPy's own limits, for the methods that know their convergence better than the path; none for the others."""
        tol = self._watch.tol
        return {
            "Nelder-Mead": {"maxiter": MANY, "maxfev": MANY, "xatol": tol, "fatol": tol},
            "Powell": {"maxiter": MANY, "maxfev": MANY, "xtol": tol, "ftol": tol},
            "L-BFGS-B": {"maxiter": MANY, "maxfun": MANY},
        }.get(method, {"maxiter": MANY})
