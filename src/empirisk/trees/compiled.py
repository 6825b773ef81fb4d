"""What the loops of this folder share: how they are compiled, and random numbers.

Compile time is what a user waits for at the first fit ever, so loops are written for it: nodes, rules and counters are
records (a field costs a third of what a place in a table costs), and whole numbers are int64 everywhere (another type
is another copy of every function that it reaches, and so is a number written out as an argument: constants that are
handed on are NumPy's).
"""

import numpy as np

from empirisk.linalg.compiled import inner, loop, plain, plain_loop

__all__ = ["draw", "inner", "loop", "plain", "plain_loop"]


@plain
def draw(seed, below):
    """A random whole number below ``below`` (splitmix64); ``seed`` is an array of one uint64, its state."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = seed[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(32)
    return np.int64((bits * np.uint64(below)) >> np.uint64(32))
