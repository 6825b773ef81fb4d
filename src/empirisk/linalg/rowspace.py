"""Row vectors, which have an entry or a row of entries for every row of a design, and the sums over them.

Targets, weights, predictions and dual variables are row vectors. They lie where the rows of the design lie, so whoever
needs a sum over rows asks the row space of the design for it, and touches no row vector itself.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg import blocks
from empirisk.linalg.blocks import Array
from empirisk.linalg.namespace import namespace

#: NumPy's arrays in memory; elsewhere what the row space keeps.
RowVector: TypeAlias = Any


class RowSpace:
    """The row vectors of a design, given by sums and maps over blocks of rows.

    Functions are given blocks of the row vectors, as arrays of any namespace, in the order of the arguments. A subclass
    writes `sum`, `map`, `take`, `standing_in`, `constant`, `extremes`, `gathered` and `scattered`; the rest follows,
    and is written where there is a better way.

    Parameters
    ----------
    count : int
        The number of rows.
    """

    def __init__(self, count: int):
        self.count = count

    def sum(self, function: Callable[..., Any], *vectors: RowVector, width: int = 1) -> Any:
        """The sum over all blocks of function(*blocks), a number or an array; a row has ``width`` entries."""
        raise NotImplementedError

    def map(self, function: Callable[..., Any], *vectors: RowVector, width: int = 1) -> RowVector:
        """The row vector function(*vectors), whose rows depend on those rows alone; it is shaped like the last one."""
        raise NotImplementedError

    def take(self, vector: RowVector, chosen: NDArray | slice) -> RowVector:
        """The chosen rows, as a vector of the space of the design of those rows."""
        raise NotImplementedError

    def standing_in(self, places: RowVector | None, chosen: RowVector) -> RowVector:
        """Which rows, as `take` wants them, stand in the chosen ones of the user's data, where they have ``places``."""
        raise NotImplementedError

    def constant(self, value: Array | float) -> RowVector:
        """The row vector with the same entry, or the same row of entries, everywhere; it is read only."""
        raise NotImplementedError

    def extremes(self, vector: RowVector) -> tuple[float, float]:
        """The smallest and the largest entry."""
        raise NotImplementedError

    def gathered(self, vector: RowVector) -> Array:
        """The vector as an array in memory: for few rows only."""
        raise NotImplementedError

    def scattered(self, array: Array) -> RowVector:
        """The row vector of an array in memory, as `gathered` gives it."""
        raise NotImplementedError

    # --- what follows from it -----------------------------------------------------------------------------------------

    def maps(self, function: Callable[..., Any], *vectors: RowVector, outputs: int) -> tuple[RowVector, ...]:
        """The row vectors of a function that gives so many."""
        return tuple(self.map(lambda *parts, k=k: function(*parts)[k], *vectors) for k in range(outputs))

    def total(self, vector: RowVector) -> Any:
        """The sum of the entries; of each column of several."""
        return self.sum(lambda part: part.sum(axis=0), vector)

    def dot(self, left: RowVector, right: RowVector) -> float:
        """The sum of products."""
        return float(self.sum(lambda left, right: left @ right, left, right))

    def norm(self, vector: RowVector) -> float:
        """The Euclidean length, of all columns together."""
        return float(self.sum(lambda part: (part * part).sum(), vector)) ** 0.5

    def column_norms(self, vector: RowVector) -> Array:
        """The Euclidean length; of each column of several."""
        return np.sqrt(self.sum(lambda part: (part * part).sum(axis=0), vector))

    def number(self, holds: Callable[..., Any], *vectors: RowVector) -> int:
        """How many entries fulfil a condition."""
        return int(self.sum(lambda *parts: holds(*parts).sum(), *vectors))

    def class_weights(self, y: RowVector, weights: RowVector, classes: int) -> Array:
        """The weight of each of the classes 0, 1, ... in y."""

        def totals(y: Any, weights: Any) -> Any:
            return weights @ (y[:, None] == namespace(y).arange(classes)).astype(weights.dtype)

        return self.sum(totals, y, weights)

    def best_constant(self, loss: Any, y: RowVector, weights: RowVector) -> float:
        """argmin_b  sum_i weights_i loss(y_i, b), by bisection of the sum of slopes: convex losses alone have one."""

        def slope(b: float) -> float:
            return float(self.sum(lambda weights, y: weights @ loss.derivative(y, 0 * y + b), weights, y))

        (low, high), reach = self.extremes(y), 1.0
        while slope(low) > 0 or slope(high) < 0:
            low, high, reach = low - reach, high + reach, 2 * reach
        while low < (middle := 0.5 * (low + high)) < high:
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        return middle

    def add_at_largest(self, vector: RowVector, like: RowVector, amount: float) -> RowVector:
        """The vector with an amount added where another one is largest, shared out among equals."""
        largest = self.extremes(like)[1]
        share = amount / self.number(lambda part: part == largest, like)
        return self.map(lambda part, value: value + share * (part == largest), like, vector)


class MemoryRows(RowSpace):
    """Row vectors as NumPy's arrays in memory: fixed blocks in fixed order, the same bits on any number of threads.

    >>> MemoryRows(3).sum(lambda s, f: s @ f, np.ones(3), np.arange(3.0))
    np.float64(3.0)
    """

    def sum(self, function, *vectors, width=1):
        def run(rows: slice) -> Any:
            return function(*(vector[rows] for vector in vectors))

        return blocks.sum_of_rows(run, self.count, width * blocks.ENTRY_BYTES)

    def map(self, function, *vectors, width=1):
        return blocks.rowwise(function, *vectors, row_bytes=width * blocks.ENTRY_BYTES)

    def maps(self, function, *vectors, outputs):
        out = np.empty((outputs, self.count))

        def run(rows: slice) -> None:
            out[:, rows] = function(*(vector[rows] for vector in vectors))

        blocks.over_rows(run, self.count, blocks.ENTRY_BYTES)
        return tuple(out)

    def take(self, vector, chosen):
        return vector[chosen]

    def standing_in(self, places, chosen):
        return np.flatnonzero(np.isin(np.arange(self.count) if places is None else places, chosen))

    def constant(self, value):
        value = np.asarray(value, dtype=float)
        return np.broadcast_to(value, (self.count, *value.shape))

    def extremes(self, vector):
        return float(vector.min()), float(vector.max())

    def gathered(self, vector):
        return vector

    def scattered(self, array):
        return array

    def total(self, vector):
        return vector.sum(axis=0)

    def dot(self, left, right):
        return float(left @ right)

    def norm(self, vector):
        return float(np.linalg.norm(vector))

    def column_norms(self, vector):
        return np.linalg.norm(vector, axis=0)

    def class_weights(self, y, weights, classes):
        return np.bincount(y.astype(int), weights, classes)

    def best_constant(self, loss, y, weights):
        return loss.best_constant(y, weights)

    def add_at_largest(self, vector, like, amount):
        vector[np.argmax(like)] += amount
        return vector
