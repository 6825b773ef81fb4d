"""Predictions f(x_i, theta) of a function that a user wrote, and products with their derivatives in theta."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.solvers.functions.objective import (
    FIRST,
    compiled_by_jax,
    in_double_precision,
    is_of_jax,
    jax_module,
    moved,
)
from empirisk.stop import check_stop

Array = NDArray[np.float64]


class Predictions:
    """f(X, theta) for all rows, one number each or ``outputs`` of them, and J'u for the slopes u of a loss.

    Parameters
    ----------
    function : callable
        f(X, theta).
    X : array
        The rows.
    start : array
        Parameters at which it is tried; it is called with arrays of their shape.
    outputs : int
        Numbers for each row; 0 is one, without an axis.
    jacobian : callable, "differences" or None
        The derivatives of f in theta as a function of X and theta, of shape (n, [outputs,] *shape of theta). None takes
        JAX where f is written in it, else central differences.
    """

    def __init__(self, function: Callable[..., Any], X: Array, start: Array, outputs: int = 0, jacobian: Any = None):
        if not callable(function):
            raise EmpiriskError(f"function={function!r} cannot be called; give f(X, theta).")
        if not (jacobian is None or callable(jacobian) or (isinstance(jacobian, str) and jacobian == "differences")):
            raise EmpiriskError(f"jacobian={jacobian!r} must be a function of X and theta, 'differences', or None.")
        self._function, self._X, self._parameters = function, X, start.shape
        self._shape = (len(X), outputs) if outputs else (len(X),)
        self._jacobian = jacobian if callable(jacobian) else None
        self._kept: tuple[bytes, Array] = (b"", start)
        self._pull: Callable[..., Any] | None = None
        in_jax = is_of_jax(function(X, start.copy()))
        if in_jax:
            self._function = in_double_precision(function)
            if jacobian is None:
                self._pull = compiled_by_jax(_pulled(function, X))

    def at(self, theta: Array) -> Array:
        """f(x_i, theta) for every row, at flat parameters."""
        key = theta.tobytes()
        if self._kept[0] != key:
            check_stop()
            self._kept = key, self._checked(self._function(self._X, theta.reshape(self._parameters).copy()))
        return self._kept[1]

    def pull(self, theta: Array, u: Array) -> Array:
        """J'u = sum_i u_i d f(x_i, theta) / d theta, flat."""
        if self._pull is not None:
            return np.asarray(self._pull(theta.reshape(self._parameters), u), dtype=np.float64).ravel()
        if self._jacobian is not None:
            J = np.asarray(self._jacobian(self._X, theta.reshape(self._parameters).copy()), dtype=np.float64)
            if J.shape != self._shape + self._parameters:
                raise EmpiriskError(
                    f"jacobian returned an array of shape {J.shape}, where {self._shape + self._parameters} is needed."
                )
            return np.tensordot(u, J, axes=u.ndim).ravel()
        found = np.empty(theta.size)
        for j, h in enumerate(FIRST * np.maximum(np.abs(theta), 1.0)):
            low, high = moved(theta, j, -h), moved(theta, j, h)
            found[j] = np.vdot(u, self.at(high) - self.at(low)) / (high[j] - low[j])
        return found

    def _checked(self, given: Any) -> Array:
        """Predictions in their shape; a column of them will do for one number each."""
        try:
            found = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise EmpiriskError(f"function returned what is no array of numbers: {error}.") from error
        if found.shape == (*self._shape, 1):
            found = found[..., 0]
        if found.shape != self._shape:
            raise EmpiriskError(
                f"function returned an array of shape {found.shape}, where {self._shape} is needed: "
                f"{'a number' if len(self._shape) == 1 else 'a number for each class'} for every row of X."
            )
        return found


def _pulled(function: Callable[..., Any], X: Array) -> Callable[..., Any]:
    """(theta, u) -> J'u of a function written in JAX."""
    jax = jax_module()

    def run(theta: Any, u: Any) -> Any:
        value, back = jax.vjp(lambda theta: function(X, theta), jax.numpy.asarray(theta))
        return back(jax.numpy.asarray(u, value.dtype).reshape(value.shape))[0]

    return run
