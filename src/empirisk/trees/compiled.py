"""What the loops of this folder share: how they are compiled, and random numbers."""

import numpy as np

from empirisk.linalg.compiled import inner, loop

__all__ = ["draw", "inner", "loop"]


@inner
def draw(seed, below):
    """A random whole number below ``below`` (splitmix64); ``seed`` is an array of one uint64, its state."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = seed[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(32)
    return np.int64((bits * np.uint64(below)) >> np.uint64(32))
