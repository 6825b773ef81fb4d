"""A function that a user wrote, with its derivatives: given, by JAX where it is written in that, or by differences."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.extras import need
from empirisk.stop import check_stop

Array = NDArray[np.float64]
EPSILON = float(np.finfo(float).eps)
#: Numbers of an array that a sentence shows.
SHOWN = 5
#: Steps of central differences, of a function and of a gradient that was itself found so: rounding and what is left
#: out of the expansion then are of one size.
FIRST, SECOND = EPSILON ** (1 / 3), EPSILON**0.25
WAYS = ("jax", "differences")
#: What such a gradient is off by, as a share of the function.
NOISE = EPSILON ** (2 / 3)


class UserObjective:
    """f, its gradient and its second derivatives at flat points; the user's functions see them in the start's shape.

    Parameters
    ----------
    f : callable
        f(x), a number; or with ``gradient=True`` the pair of that and the gradient.
    start : array
        The point at which f is tried; f is called with points of its shape.
    gradient : callable, True, "jax", "differences" or None
        None is "jax" for a function whose value is an array of JAX, else "differences".
    hessian : callable or None
        The matrix of second derivatives; None finds it as the gradient.

    Attributes
    ----------
    calls : int
        How often f was called.
    noise : float
        What the gradient is off by, as a share of f.
    """

    def __init__(self, f: Callable[..., Any], start: Array, gradient: Any = None, hessian: Any = None):
        for name, given in (("f", f), ("hessian", hessian)):
            if not callable(given) and not (name == "hessian" and given is None):
                raise EmpiriskError(f"{name}={given!r} cannot be called; give a function of the point x.")
        if isinstance(gradient, str) and gradient in WAYS:
            way = gradient
        elif gradient is None or gradient is True or callable(gradient):
            way = ""
        else:
            raise EmpiriskError(
                f"gradient={gradient!r} must be a function of the point x, True where f returns the pair of value and "
                "gradient, 'jax', 'differences', or None."
            )
        self._f, self._shape, self.calls = f, start.shape, 0
        self._value: tuple[bytes, float] = (b"", np.nan)
        self._slopes: tuple[bytes, Array] = (b"", start)
        in_jax = way == "jax" or is_of_jax(self._call(start.ravel()))
        by_jax = in_jax and (gradient is None or way == "jax")
        self.differences = way == "differences" or (gradient is None and not by_jax)
        self._pair = by_jax or gradient is True
        if in_jax:
            self._f = compiled_by_jax(jax_module().value_and_grad(f)) if by_jax else in_double_precision(f)
        self._gradient: Any = gradient
        self._second = in_double_precision(jax_module().hessian(f)) if by_jax and hessian is None else hessian
        self.noise = NOISE if self.differences else EPSILON
        value = self.value(start.ravel())
        if not np.isfinite(value):
            raise EmpiriskError(
                f"f is {value} at start={shown(start)}; give a start at which it is finite, or mend f there."
            )

    def value(self, x: Array) -> float:
        """f(x); infinite where it is not a number, so that no method goes there."""
        key = x.tobytes()
        if self._value[0] != key:  # a line search asks for the value, and then for the gradient at the same point
            found = self._of_pair(x)[0] if self._pair else _number(self._call(x))
            self._value = key, np.inf if np.isnan(found) else found
        return self._value[1]

    def gradient(self, x: Array) -> Array:
        """The gradient at x."""
        key = x.tobytes()
        if self._slopes[0] != key:
            if self._pair:
                found = self._of_pair(x)[1]
            elif self.differences:
                found = self._by_differences(x, self.value(x))
            else:
                check_stop()
                found = self._checked("gradient", self._gradient(self._point(x)), self._shape)
            self._slopes = key, found
        return self._slopes[1]

    def hessian(self, x: Array) -> Array:
        """The symmetric matrix of second derivatives at x."""
        if self._second is not None:
            check_stop()
            found = self._checked("hessian", self._second(self._point(x)), self._shape * 2).reshape(x.size, x.size)
        else:
            found = np.empty((x.size, x.size))
            for j, h in enumerate((SECOND if self.differences else FIRST) * np.maximum(np.abs(x), 1.0)):
                low, high = moved(x, j, -h), moved(x, j, h)
                found[j] = (self.gradient(high) - self.gradient(low)) / (high[j] - low[j])
        return 0.5 * (found + found.T)

    # --- calls ----------------------------------------------------------------------------------------------------

    def _point(self, x: Array) -> Any:
        """What the user's functions are given: a copy in the shape of the start, a number where that is one."""
        return x.reshape(self._shape).copy() if self._shape else float(x[0])

    def _call(self, x: Array) -> Any:
        check_stop()
        self.calls += 1
        return self._f(self._point(x))

    def _of_pair(self, x: Array) -> tuple[float, Array]:
        """Value and gradient from one call, both kept for the one that is asked for next."""
        pair = self._call(x)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise EmpiriskError(
                f"f returned {type(pair).__name__} where gradient=True asks for the pair of value and gradient."
            )
        key, value = x.tobytes(), _number(pair[0])
        self._value = key, np.inf if np.isnan(value) else value
        self._slopes = key, self._checked("gradient", pair[1], self._shape)
        return self._value[1], self._slopes[1]

    def _checked(self, name: str, given: Any, shape: tuple[int, ...]) -> Array:
        """Derivatives as a flat array."""
        try:
            found = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise EmpiriskError(f"{name} returned what is no array of numbers: {error}.") from error
        if found.shape != shape:
            raise EmpiriskError(f"{name} has shape {found.shape}, where start asks for {shape}; return one as large.")
        return found.ravel()

    def _by_differences(self, x: Array, value: float) -> Array:
        """Central differences; from one side where f has no value on the other."""
        found = np.empty(x.size)
        for j, h in enumerate(FIRST * np.maximum(np.abs(x), 1.0)):
            ends = [moved(x, j, step) for step in (-h, h)]
            values = [self.value(end) for end in ends]
            sides = [(end[j], here) for end, here in zip(ends, values, strict=True) if np.isfinite(here)]
            if len(sides) < 2:
                sides.append((x[j], value))
            (a, low), (b, high) = sides[0], sides[-1]
            found[j] = (high - low) / (b - a) if a != b else np.nan
        return found


def moved(x: Array, j: int, step: float) -> Array:
    """x with one number changed."""
    there = x.copy()
    there[j] += step
    return there


def _number(value: Any) -> float:
    """What f returned as a number."""
    try:
        found = np.asarray(value)
        if found.size != 1 or found.dtype.kind not in "biuf":
            raise TypeError
        return float(found.item())
    except (TypeError, ValueError):
        what = f"an array of shape {np.shape(value)}" if np.size(value) > 1 else repr(value)
        raise EmpiriskError(f"f returned {what}, where one number is needed; sum or average it inside f.") from None


def shown(x: Array) -> str:
    """A point as a few numbers."""
    numbers = np.ravel(x)
    more = ", ..." if numbers.size > SHOWN else ""
    return "[" + ", ".join(f"{number:.4g}" for number in numbers[:SHOWN]) + more + "]"


def is_of_jax(value: Any) -> bool:
    """Whether JAX made it."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def jax_module() -> Any:
    """JAX, which is loaded where a function is written in it."""
    need("gradient='jax'", "nets", "jax")
    return import_module("jax")


def in_double_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX that computes in 64 bits, whatever its user has configured."""
    jax = jax_module()

    def run(*arrays: Any) -> Any:
        with jax.enable_x64(True):
            return function(*arrays)

    return run


def compiled_by_jax(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX in double precision, compiled where it can be."""
    jax = jax_module()
    chosen = jax.jit(plain)

    def run(*arrays: Any) -> Any:
        nonlocal chosen
        try:
            return chosen(*arrays)
        except jax.errors.ConcretizationTypeError:  # such as an `if` on a number: then it runs operation by operation
            chosen = plain
            return plain(*arrays)

    return in_double_precision(run)
