"""`scipy.optimize.minimize` in units in which point and objective are of the order of one, whatever their own units."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]
#: L-BFGS with ten earlier steps in memory, that ends where its caller says so, and not by tolerances of its own.
L_BFGS = {"ftol": 0.0, "gtol": 0.0, "maxcor": 10}


def unit_of(start: Array) -> float:
    """The size of a point."""
    return float(np.abs(start).max()) or 1.0


def minimise_scaled(
    function: Callable[[Array], Any],
    start: Array,
    scale: float,
    after: Callable[[Array, float], None],
    *,
    method: str = "L-BFGS-B",
    gradient: Callable[[Array], Array] | bool | None = True,
    options: dict[str, Any],
) -> Any:
    """What SciPy finds from a start on.

    ``scale`` is the size of the objective; ``gradient`` a function, None for methods that need none, or True where
    ``function`` gives value and gradient. ``after`` is told point and value of every iteration, and may raise to end.
    """
    unit = unit_of(start)

    def scaled(z: Array) -> Any:
        found = function(unit * z)
        return (found[0] / scale, found[1] * (unit / scale)) if gradient is True else found / scale

    def slopes(z: Array) -> Array:
        assert callable(gradient)
        return gradient(unit * z) * (unit / scale)

    def told(intermediate_result: Any) -> None:
        after(unit * intermediate_result.x, scale * float(intermediate_result.fun))

    jac = slopes if callable(gradient) else gradient
    return minimize(scaled, start / unit, jac=jac, method=method, callback=told, options=options)
