"""How loops are compiled by what Numba documents alone: for versions whose internals the tests have not seen.

Slower to compile than `empirisk.linalg.numba_internals`, with the same results.
"""

from typing import Any

import numpy as np
from numba import njit

import empirisk.linalg.compile_interrupts  # noqa: F401 - it registers with Numba

_njit: Any = njit  # its types do not know all of its options


def inner_function(arrays: bool, fastmath: set[str] | bool = False) -> Any:
    """A decorator for a function that only compiled ones call."""
    return _njit(nogil=True, error_model="numpy", fastmath=fastmath)


def outer_function(arrays: bool, fastmath: set[str] | bool = False) -> Any:
    """A decorator for a loop that Python calls; its code is kept in files where Numba finds a folder for them."""

    def decorate(function: Any) -> Any:
        try:
            return _njit(nogil=True, error_model="numpy", fastmath=fastmath, cache=True)(function)
        except RuntimeError:  # no folder can be written
            return inner_function(arrays, fastmath)(function)

    return decorate


@inner_function(arrays=True)
def multiply(left, right, out):
    """The product of two matrices into ``out``, by BLAS."""
    np.dot(left, right, out)


def preload() -> None:
    """Load what Numba needs for its first loop, so that this is not taken for the time of a fit."""
    _njit(lambda: 0)()
