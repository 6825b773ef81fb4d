"""How loops of this folder are compiled: once, kept on disk, without Python's lock; x / 0 is infinite, as in NumPy.

Nothing calls them from C, so no wrapper is made for that: it would cost a fifth of the time to compile.
"""

from typing import Any

import numpy as np
from numba import njit

_njit: Any = njit  # its types do not know all of its options
loop = _njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
#: For functions that only other compiled ones call: no wrapper for Python either, and no file of their own.
inner = _njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True)


@inner
def draw(seed, below):
    """A random whole number below ``below`` (splitmix64); ``seed`` is an array of one uint64, its state."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = seed[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(32)
    return np.int64((bits * np.uint64(below)) >> np.uint64(32))
