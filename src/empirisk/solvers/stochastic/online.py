"""What a solver needs to learn from rows as they come: a pass over each call's rows, from where the last one ended."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from empirisk.problem import Array, Problem
from empirisk.solvers.base import Need, Solver, Watch

FINITE_C = Need("a finite C", lambda p: bool(np.isfinite(p.C)))


class Seen(NamedTuple):
    """How many rows a function has learned from, those of this call among them, and their weight."""

    rows: float
    weight: float


class Memory(NamedTuple):
    """What is kept between two calls.

    Attributes
    ----------
    buffers : array, kinds x outputs x (columns + 1)
        Arrays like the weights, in the coordinates of the user's columns; the weights themselves come first, with the
        intercept last.
    numbers : array
        Counts and sizes, as the solver likes.
    """

    buffers: Array
    numbers: Array


class Online(Solver):
    """A solver that can learn from rows as they come, which it need not see again."""

    online = True
    #: Arrays like the weights, and numbers, in its memory.
    sizes: ClassVar[tuple[int, int]]

    def opening(self, weights: Array, seen: Seen) -> Memory:
        """The memory before the first pass, at weights (outputs x (columns + 1)) that ``seen`` rows have led to."""
        kinds, numbers = self.sizes
        buffers = np.zeros((kinds, *weights.shape))
        buffers[0] = weights
        return Memory(buffers, np.zeros(numbers))

    def advance(self, problem: Problem, memory: Memory, seen: Seen, watch: Watch) -> Memory:
        """The memory after one pass over the rows of the problem, unless ``watch`` says stop."""
        raise NotImplementedError

    def weights(self, memory: Memory) -> Array:
        """The answer so far, outputs x (columns + 1)."""
        return memory.buffers[0]
