"""Array namespaces: formulas that are written once and run on NumPy's arrays as well as on those of JAX."""

from importlib import import_module
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

#: Steps of Fritsch, Shafer and Crowley, each of which has four times the digits of the one before.
OMEGA_STEPS = 2


def namespace(array: Any) -> Any:
    """The functions for arrays of this kind: NumPy's, or those of JAX on a device or while it differentiates.

    >>> namespace(np.zeros(1)) is np
    True
    """
    # Asked for in inner loops: the type answers in a third of the time that NumPy's method takes.
    return np if type(array) is np.ndarray else array.__array_namespace__()


def special(array: Any) -> Any:
    """The special functions for arrays of this kind: SciPy's, the module beside ``jax.numpy``, or what a namespace has.

    >>> special(np.zeros(1)).expit(np.zeros(1))
    array([0.5])
    """
    xp = namespace(array)
    if xp is np:
        return scipy.special
    return getattr(xp, "special", None) or import_module(xp.__name__.replace("numpy", "scipy.special"))


def epsilon(array: Any) -> float:
    """The unit in the last place of 1 in the array's precision."""
    return float(np.finfo(array.dtype).eps)


def as_number(value: Any) -> Any:
    """A float, of a sum of NumPy's; else the value as it is, which JAX may still be tracing.

    >>> as_number(np.ones(3).sum())
    3.0
    """
    return float(value) if isinstance(value, (float, np.generic)) else value


def absolute(array: Any) -> Any:
    """|z| with the slope 0 at 0, where JAX would differentiate its own to 1.

    >>> absolute(np.array([-2.0, 0.0]))
    array([2., 0.])
    """
    xp = namespace(array)
    return np.abs(array) if xp is np else array * xp.sign(array)


def root(array: Any) -> Any:
    """The square root with the slope 0 at 0, where that of JAX is infinite.

    >>> root(np.array([4.0, 0.0]))
    array([2., 0.])
    """
    xp = namespace(array)
    return np.sqrt(array) if xp is np else xp.where(array == 0, 0.0, xp.sqrt(xp.where(array == 0, 1.0, array)))


def group_sums(groups: NDArray[np.intp], values: Any, count: int) -> Any:
    """The sum of the values of each of so many groups.

    >>> group_sums(np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), 2)
    array([4., 2.])
    """
    xp = namespace(values)
    return np.bincount(groups, values, count) if xp is np else xp.bincount(groups, values, length=count)


def summed_gaps(a: Any, b: Any, power: int) -> Any:
    """sum_k |a_ik - b_jk|^power for every pair of rows, for the power 1 or 2: no digits cancel.

    >>> summed_gaps(np.array([[1.0, 2.0]]), np.zeros((1, 2)), 2)
    array([[5.]])
    """
    xp = namespace(a)
    if hasattr(xp, "summed_gaps"):
        return xp.summed_gaps(a, b, power)
    gaps = a[..., :, None, :] - b[..., None, :, :]
    return (xp.abs(gaps) if power == 1 else gaps * gaps).sum(axis=-1)


def with_entries(array: Any, places: Any, values: Any, axis: int) -> Any:
    """The array with other values at the places along an axis: itself, changed, where arrays can be changed.

    >>> with_entries(np.zeros((2, 2)), np.array([[0], [1]]), 3.0, axis=1)
    array([[3., 0.],
           [0., 3.]])
    """
    xp = namespace(array)
    if xp is not np:
        return xp.put_along_axis(array, places, values, axis=axis, inplace=False)
    np.put_along_axis(array, places, values, axis=axis)
    return array


def wright_omega(z: Any) -> Any:
    """The Wright omega function: the x > 0 with  x + ln x = z.

    SciPy's where the array is NumPy's; JAX has none, and the same iteration runs there.

    >>> wright_omega(np.array([1.0]))
    array([1.])
    """
    xp = namespace(z)
    if xp is np:
        return scipy.special.wrightomega(z)
    low = xp.exp(xp.minimum(z, 1.0))
    high = xp.maximum(z, 1.0)
    x = xp.where(z < 1, low / (1 + low), high - xp.log(high))
    tiny = xp.finfo(z.dtype).tiny
    for _ in range(OMEGA_STEPS):
        x = xp.maximum(x, tiny)
        move = (z - x - xp.log(x)) / (1 + x)
        bent, rest = 2 + 4 / 3 * move, move / (1 + x)
        x = x * (1 + move * (bent - rest) / (bent - 2 * rest))
    return xp.where(z < xp.log(tiny), 0.0, x)


def log_expit(z: Any) -> Any:
    """ln of the sigmoid, without underflow.

    >>> log_expit(np.array([-800.0, 0.0])).round(4)
    array([-8.000e+02, -6.931e-01])
    """
    xp = namespace(z)
    return scipy.special.log_expit(z) if xp is np else -xp.logaddexp(0.0, -z)
