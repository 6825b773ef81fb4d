"""How loops are compiled: once, kept on disk, without Python's lock; x / 0 is infinite, as in NumPy.

Compile time is what a user waits for at the first fit ever: records cost a third of what wide tuples cost, another type
of argument is another copy of every function that it reaches, and so is a number written out as an argument (those
handed on are NumPy's).
"""

from typing import Any

import numba
import numpy as np

from empirisk.linalg.versions import internals_known

if internals_known("numba", numba.__version__):
    from empirisk.linalg.numba_internals import inner_function, multiply, outer_function, preload
else:
    from empirisk.linalg.numba_public import inner_function, multiply, outer_function, preload

__all__ = ["draw", "inner", "inner_with", "loop", "loop_with", "mix", "multiply", "plain", "plain_loop", "preload"]

#: A loop that Python calls.
loop = outer_function(arrays=True)
#: For functions that only other compiled ones call.
inner = inner_function(arrays=True)
#: The same two for loops that make no arrays, for which there is less to compile.
plain_loop = outer_function(arrays=False)
plain = inner_function(arrays=False)


def loop_with(fastmath: set[str]) -> Any:
    """`plain_loop` with sums that may be reordered, or numbers that are known to be finite."""
    return outer_function(arrays=False, fastmath=fastmath)


def inner_with(fastmath: set[str]) -> Any:
    """`plain` with sums that may be reordered, or numbers that are known to be finite."""
    return inner_function(arrays=False, fastmath=fastmath)


#: What splitmix64 (Steele, Lea and Flood, 2014) adds for every number; its other numbers are in `mixed`.
ODD = np.uint64(0x9E3779B97F4A7C15)


def mixed(bits: Any) -> Any:
    """64 bits, each of which depends on all of the given ones, for a number or an array."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


mix = plain(mixed)


@plain
def draw(seed, below):
    """A random whole number below ``below`` (splitmix64); ``seed`` is an array of one uint64, its state."""
    seed[0] += ODD
    return np.int64(((mix(seed[0]) >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))
