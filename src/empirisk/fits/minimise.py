"""`minimise`: descent and its relatives on a function of one's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from empirisk.errors import EmpiriskError, warn_unfinished
from empirisk.fits.fit import Limits
from empirisk.linalg.threads import single_threaded_blas
from empirisk.notebook import html
from empirisk.parts import is_number
from empirisk.solvers.base import Watch
from empirisk.solvers.first_order.steps import AT_CORNERS, STEPS
from empirisk.solvers.functions.descent_record import UNBOUNDED, DescentRecord, Ended
from empirisk.solvers.functions.methods import METHODS, Options
from empirisk.solvers.functions.objective import UserObjective, shown
from empirisk.stop import FUNCTION_REMEDIES, Deadline, Ending, Stopped, interruptible, keeping, stopping, warn_of

Array = NDArray[np.float64]
#: Iterations where ``max_iter`` is None: as for `GradientDescent`, cheap and many.
ITERATIONS = 20_000
#: Numbers of a point up to which the matrix of BFGS costs little beside calls of f.
FEW = 500
#: Which steps the methods that have a choice may take.
CHOICES = {"gradient_descent": STEPS, "subgradient": AT_CORNERS} | dict.fromkeys(
    ("momentum", "adagrad", "rmsprop", "adam"), AT_CORNERS
)
#: The methods that have a first step size.
RATED = (*CHOICES, "accelerated")


@dataclass(frozen=True)
class Minimum:
    """Where a descent has come to; see `minimise`.

    Attributes
    ----------
    x : array or float
        The lowest point, in the shape of the start.
    value, gradient : float, array
        The function and its gradient there; NaN for methods without gradients.
    stopped : str
        Why it ended: "converged", "max_iter", "max_time", "interrupted", "stalled", "callback", or "finished" for a
        method that aims at no tolerance.
    history : dict of arrays
        "x", the points; "objective", their values; "seconds"; from the start on.
    method : str
        The method.
    iterations, calls, seconds : int, int, float
        Iterations, calls of f, and the time they took.
    function : callable
        f, for the views.
    """

    x: Any
    value: float
    gradient: Any
    stopped: str
    history: dict[str, Array] = field(repr=False)
    method: str
    iterations: int
    calls: int
    seconds: float
    function: Callable[..., Any] = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether ``tol`` was reached."""
        return self.stopped == Ending.CONVERGED

    def __repr__(self) -> str:
        way = f"{self.iterations} iterations of {self.method}"
        return f"Minimum({self.value:.6g} at {shown(self.x)}, {self.stopped}, {way})"

    def _repr_html_(self) -> str:
        values = {
            "value": f"{self.value:.10g}",
            "x": shown(self.x),
            "gradient": f"at most {np.abs(self.gradient).max():.1e}",
            "method": self.method,
            "iterations": f"{self.iterations}, {self.calls} calls of f",
        }
        return html(f"Minimum: {self.stopped}", ["", ""], list(values.items()))


def minimise(
    f: Callable[..., Any],
    start: ArrayLike,
    method: str = "auto",
    *,
    gradient: Callable[..., Any] | bool | str | None = None,
    hessian: Callable[..., Any] | None = None,
    step: str = "auto",
    rate: float | None = None,
    grow: float = 1.1,
    shrink: float = 0.5,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    callback: Callable[[Any, float], Any] | None = None,
) -> Minimum:
    """Go down on a function of one's own, and keep the path.

    Parameters
    ----------
    f : callable
        f(x), one number, where x has the shape of ``start``.
    start : number or array
        Where to begin.
    method : str
        "gradient_descent", with the steps of ``step``; "subgradient", normalised steps that shrink, for functions with
        corners; "momentum" (the heavy ball); "accelerated" (Nesterov's); "adagrad", "rmsprop", "adam"; "newton";
        "bfgs", "l_bfgs" and "conjugate_gradient"; "nelder_mead" and "powell", which need no gradient. "auto" is
        "bfgs", or "l_bfgs" for more than 500 numbers.
    gradient : callable, True, "jax", "differences" or None
        The gradient as a function of x; True if f returns the pair of its value and its gradient; None takes JAX if f
        is written in it, and central differences else.
    hessian : callable or None
        For "newton": the matrix of second derivatives; None finds it as the gradient.
    step : str
        Of "gradient_descent" and the methods whose steps do not depend on f, as in `empirisk.solvers.GradientDescent`:
        "backtracking", "exact", "fixed", "decreasing", "decreasing_root", "bold_driver", or "auto".
    rate : float or None
        The (first) step size; None takes one after which f has fallen enough.
    grow, shrink : float
        Factors of the bold driver; ``shrink`` is also that of backtracking.
    tol : float
        The descent has converged when max |gradient| times max |x| is no more than this part of what f has fallen by,
        or is lost in its rounding.
    max_iter, max_time : int, float or None
        Limits of iterations, and of seconds, looked at before every call of f.
    callback : callable or None
        Called as callback(x, value) after every iteration; returns True to stop.

    Returns
    -------
    Minimum
        With ``x``, ``value``, ``gradient``, ``stopped``, ``converged`` and ``history``. `empirisk.plots.descent` draws
        the paths of one or several over the contours of f, `animate` shows one as it happens.

    Examples
    --------
    >>> def valley(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> found = er.minimise(valley, [-1.2, 1.0])
    >>> found.x.round(4), found.stopped
    (array([1., 1.]), 'converged')
    >>> er.minimise(lambda x: (x - 2) ** 2 + 1, 0.0, "gradient_descent", step="exact")
    Minimum(1 at [2], converged, 1 iterations of gradient_descent)
    """
    name = checked_method(method, np.size(start), step, rate, hessian)
    _check_numbers(rate, grow, shrink)
    options = Options(step, rate, grow, shrink)
    limits = Limits(tol, max_iter, max_time)
    with keeping("minimise") as interrupt:
        found = descend(
            f, start, name, gradient=gradient, hessian=hessian, options=options, limits=limits, callback=callback
        )
        interrupt.kept = found
    warn_unless_minimal(found, "minimise")
    return found


@single_threaded_blas()
def descend(
    f: Callable[..., Any],
    start: ArrayLike,
    method: str,
    *,
    limits: Limits,
    gradient: Any = None,
    hessian: Any = None,
    options: Options | None = None,
    callback: Callable[[Any, float], Any] | None = None,
) -> Minimum:
    """`minimise` by a method that is known, within limits, without a warning."""
    point = _start(start)
    with interruptible(), np.errstate(all="ignore"):  # what is not finite is never kept
        watch = Watch(limits.tol, limits.max_iter or ITERATIONS, Deadline(limits.max_time))
        objective = UserObjective(f, point, gradient, hessian)
        told = None if callback is None else lambda x, value: callback(_shaped(x, point), value)
        path = DescentRecord(objective, point.ravel(), watch, told)
        try:
            with stopping(watch.must_stop):
                METHODS[method](objective, point.ravel(), path, options or Options())
        except Ended:
            pass
        except Stopped:
            watch.must_stop()
    passed = path.status == Ending.MAX_ITER and not path.smooth
    return Minimum(
        _shaped(path.x, point),
        path.value,
        _shaped(path.gradient, point),
        Ending.FINISHED if passed else path.status,
        path.history | {"x": path.history["x"].reshape(-1, *point.shape)},
        method,
        path.iterations,
        objective.calls,
        time.perf_counter() - watch.start,
        f,
    )


def warn_unless_minimal(found: Minimum, name: str) -> bool:
    """Say where a descent ended before its minimum, and what to do; whether there was something to say."""
    if found.value < -UNBOUNDED:
        warn_unfinished(f"{name} was stopped at a value of {found.value:.2g}: f seems to have no lower bound.", "ER009")
        return True
    sentence = (
        f"{name} did not reach tol ({found.stopped}) after {found.iterations} iterations of {found.method}, at a value "
        f"of {found.value:.6g}"
    )
    return warn_of(found.stopped, sentence, FUNCTION_REMEDIES)


def _start(start: ArrayLike) -> Array:
    """Where to begin, as an array of finite numbers."""
    try:
        if np.asarray(start).dtype.kind == "c":
            raise TypeError("it holds complex numbers")
        point = np.array(start, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmpiriskError(f"start is no array of numbers: {error}.") from error
    if point.size == 0:
        raise EmpiriskError("start is empty; give the point to begin at.")
    if not np.isfinite(point).all():
        raise EmpiriskError(f"start={shown(point)} holds NaN or infinity; give finite numbers.")
    return point


def checked_method(method: str, size: int, step: str = "auto", rate: float | None = None, hessian: Any = None) -> str:
    """The name of the method, with options that it has."""
    if not (isinstance(method, str) and (method == "auto" or method in METHODS)):
        raise EmpiriskError(f"method={method!r} is not known; choose one of {['auto', *METHODS]}.")
    name = method if method != "auto" else "bfgs" if size <= FEW else "l_bfgs"
    choices = CHOICES.get(name, ("auto",))
    if step not in choices:
        known = f"choose one of {list(choices)}" if len(choices) > 1 else "it finds its own: leave it at 'auto'"
        raise EmpiriskError(f"step={step!r} is no step of method={name!r}; {known}.")
    if rate is not None and name not in RATED:
        raise EmpiriskError(f"rate={rate!r} has no meaning for method={name!r}, which finds its own; leave it at None.")
    if hessian is not None and name != "newton":
        raise EmpiriskError(f"hessian has no meaning for method={name!r}; use method='newton', or leave it out.")
    return name


def _check_numbers(rate: Any, grow: Any, shrink: Any) -> None:
    if rate is not None and not (is_number(rate) and 0 < rate < np.inf):
        raise EmpiriskError(f"rate={rate!r} must be a positive number, or None.")
    if not (is_number(grow) and 1 < grow < np.inf):
        raise EmpiriskError(f"grow={grow!r} must be a number above 1.")
    if not (is_number(shrink) and 0 < shrink < 1):
        raise EmpiriskError(f"shrink={shrink!r} must lie between 0 and 1.")


def _shaped(x: Array, like: Array) -> Any:
    """x as the user's start was: an array of that shape, or a number."""
    return x.reshape(like.shape) if like.ndim else float(x[0])
