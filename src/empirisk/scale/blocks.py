"""Rows in blocks that lie somewhere else than in memory, and what is computed of them where they lie.

A `Place` holds the blocks and computes there: `run` applies a function to each block of some row vectors, keeps what
has a row for every row, and adds up the rest in a fixed order. Files and clusters differ in their place alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import iadd
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.linalg.blocks import Array
from empirisk.linalg.compiled import mixed
from empirisk.linalg.hashes import mixed_with
from empirisk.linalg.rowspace import RowSpace
from empirisk.losses.base import Loss
from empirisk.settings import require

#: Points at which the slope of a loss is looked at in one pass: each pass gains four binary digits.
BISECTION_POINTS = 15
#: Passes of the bisection: 2^-40 of the range of the targets is left, more than any tolerance asks for.
BISECTION_PASSES = 10


def add(left: Any, right: Any) -> Any:
    """The sum of numbers, arrays, or tuples of them; arrays on the left are overwritten.

    >>> add((1.0, np.ones(2)), (2.0, np.ones(2)))
    (3.0, array([2., 2.]))
    """
    return tuple(map(add, left, right)) if isinstance(left, tuple) else iadd(left, right)


def chained(left: list, right: list) -> list:
    """What blocks have each, in their order."""
    return left + right


class Place(RowSpace):
    """Where blocks of rows lie, and who computes there: sums and maps are passes over the vectors that they need.

    A subclass writes `_run`, `gathered` and `scattered`.

    Parameters
    ----------
    lengths : sequence of int
        The rows of each block.

    Attributes
    ----------
    passes : int
        How often all the rows were read.
    """

    def __init__(self, lengths: Sequence[int]):
        self.lengths, self.passes = tuple(int(length) for length in lengths), 0
        super().__init__(sum(self.lengths))

    def __reduce__(self):
        return left_behind, ()

    def run(
        self,
        function: Callable[..., Any],
        *inputs: Blocked,
        outputs: int = 0,
        combine: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """function(*blocks) for all blocks of the inputs.

        It gives ``outputs`` arrays with a row for every row, which become `Blocked`, and then, with ``combine``, a
        value for the block; those of all blocks are combined in a fixed order. The result is a tuple of the former and
        the latter, or the only one of them.
        """
        if any(isinstance(each, TableRows) for each in inputs):
            self.passes += 1
        constants = [each.value[None] for each in inputs if isinstance(each, ConstantVector)]
        if outputs == 1 and combine is None and len(constants) == len(inputs):
            # A function of numbers that are the same everywhere is the same everywhere.
            return ConstantVector(self, np.asarray(function(*constants))[0])
        call = BlockCall(function, tuple(each.read for each in inputs), outputs, combine is not None)
        handles = [[None] * len(self.lengths) if each.base is None else each.base for each in inputs]
        kept, combined = self._run(call, list(zip(*handles, strict=True)), combine)
        found = tuple(Blocked(self, *vector) for vector in kept)
        found = found if combine is None else (*found, combined)
        return found[0] if len(found) == 1 else found

    def _run(
        self, call: BlockCall, handles: list[tuple], combine: Callable[[Any, Any], Any] | None
    ) -> tuple[list[tuple], Any]:
        """`run` on the handles of the inputs of each block: what makes `Blocked` of outputs, and the combined value."""
        raise NotImplementedError

    def like(self, lengths: Sequence[int]) -> Place:
        """A place beside this one, for blocks of other lengths."""
        raise NotImplementedError

    def filtered(self, mask: Blocked) -> Callable[[Blocked], Blocked]:
        """What leaves out the rows whose mask is zero: from vectors here to vectors of a place of fewer rows."""
        counts = self.run(lambda part: [int(part.sum())], mask, combine=chained)
        filled = [number for number, count in enumerate(counts) if count]
        there = self.like([counts[number] for number in filled])

        def choose(vector: Blocked) -> Blocked:
            if isinstance(vector, ConstantVector):
                return ConstantVector(there, vector.value)
            if isinstance(vector, Mapped):  # features would take more room than what they are made of
                return Mapped(cast(TableRows, choose(vector.rows)), vector.transform, vector.shape[1])
            call = BlockCall(lambda part, mask: part[mask > 0], (vector.read, mask.read), 1, False, resized=True)
            bases = [each.base or [None] * len(counts) for each in (vector, mask)]
            (kept,), _ = self._run(call, list(zip(*bases, strict=True)), None)
            kind = TableRows if isinstance(vector, TableRows) else Blocked
            return kind(there, [kept[0][number] for number in filled], *kept[1:])

        return choose

    def gathered(self, vector: Blocked) -> NDArray:
        """All the rows, in memory."""
        row_bytes = 8 * int(np.prod(vector.shape[1:], dtype=int))
        require(row_bytes * self.count, f"{self.count} rows in memory", "use a solver or a loss that works in passes")
        return np.concatenate(self.run(lambda block: [np.asarray(block)], vector, combine=chained))

    def scattered(self, array: NDArray) -> Blocked:
        """The rows of an array, where the rows lie."""
        raise NotImplementedError

    # --- row vectors --------------------------------------------------------------------------------------------------

    def sum(self, function, *vectors, width=1):
        return self.run(function, *vectors, combine=add)

    def map(self, function, *vectors, width=1):
        return self.run(function, *vectors, outputs=1)

    def maps(self, function, *vectors, outputs):
        return self.run(function, *vectors, outputs=outputs)

    def take(self, vector, chosen):
        if isinstance(chosen, Blocked):
            return self.filtered(chosen)(vector)
        return np.concatenate(self.run(lambda part: [np.array(part[chosen])], vector, combine=chained))

    def standing_in(self, places, chosen):
        return chosen if places is None else places.place.filtered(places)(chosen)

    def dealt(self, codes: Blocked, classes: int, hands: int, seed: int) -> Blocked:
        """Every row's number below ``hands``: of so many rows of a class in turn each has another, at random.

        It depends on the order of the rows alone, not on the blocks.
        """
        counts = self.run(lambda codes: [np.bincount(codes.astype(int), minlength=classes)], codes, combine=chained)
        before = np.cumsum([np.zeros(classes, dtype=int), *counts[:-1]], axis=0)

        def deal(before: NDArray, codes: NDArray) -> NDArray:
            codes = codes.astype(int)
            order = np.argsort(codes, kind="stable")
            firsts = np.searchsorted(codes[order], np.arange(classes))
            ranks = np.empty(len(codes), dtype=int)
            ranks[order] = before[codes[order]] + np.arange(len(codes)) - firsts[codes[order]]
            rounds, turn = np.divmod(ranks, hands)
            draws = mixed_with(rounds.astype(np.uint64), np.uint64(seed) + mixed(codes.astype(np.uint64)))
            return ((turn + (draws % np.uint64(hands)).astype(int)) % hands).astype(np.int16)

        return self.run(deal, Blocked(self, list(before)), codes, outputs=1)

    def constant(self, value):
        return ConstantVector(self, value)

    def extremes(self, vector):
        low, high = self.run(lambda part: np.array([-part.min(), part.max()]), vector, combine=np.maximum)
        return -float(low), float(high)

    def best_constant(self, loss: Loss, y: Blocked, weights: Blocked) -> float:
        """argmin_b  sum_i weights_i loss(y_i, b): from the weights of two labels, the mean, or by bisection."""
        if loss.margin_form:
            totals = self.sum(lambda y, s: np.array([s @ (y < 0), s @ (y > 0)]), y, weights)
            return float(loss.best_constant(np.array([-1.0, 1.0])[totals > 0], totals[totals > 0]))
        if loss.quadratic:
            moment, total = self.sum(lambda y, s: np.array([s @ y, s.sum()]), y, weights)
            return float(moment / total)
        return self._bisected(loss, y, weights)

    def _bisected(self, loss: Loss, y: Blocked, weights: Blocked) -> float:
        def slopes(points: Array) -> Array:
            def run(y: Array, s: Array) -> Array:
                return np.array([s @ loss.derivative(y, np.full(len(y), b)) for b in points])

            return self.sum(run, y, weights)

        (low, high), reach = self.extremes(y), 1.0
        while (ends := slopes(np.array([low, high])))[0] > 0 or ends[1] < 0:
            low, high, reach = low - reach, high + reach, 2 * reach
        for _ in range(BISECTION_PASSES):
            points = np.linspace(low, high, BISECTION_POINTS + 2)
            rising = np.flatnonzero(slopes(points[1:-1]) >= 0)
            place = int(rising[0]) if len(rising) else BISECTION_POINTS
            low, high = float(points[place]), float(points[place + 1])
        return 0.5 * (low + high)


@dataclass(frozen=True)
class BlockCall:
    """What is done to one block: read the inputs, call the function, and see that it gave what was asked for."""

    function: Callable[..., Any]
    readers: tuple[Callable[[Any, int], Any], ...]
    outputs: int
    combined: bool
    #: Whether the outputs have other lengths than the inputs.
    resized: bool = False

    def __call__(self, length: int, *handles: Any) -> tuple:
        """The results for a block of so many rows, as a tuple: the outputs, and what is combined."""
        with np.errstate(all="ignore"):
            parts = (read(handle, length) for read, handle in zip(self.readers, handles, strict=True))
            found = self.function(*parts)
        if self.outputs + self.combined == 1:
            found = (found,)
        *arrays, rest = found if self.combined else (*found, None)
        # What is shorter, a number for all rows, is spread over them.
        if not self.resized:
            arrays = [each if np.ndim(each) and len(each) == length else np.full(length, each) for each in arrays]
        return (*arrays, rest) if self.combined else tuple(arrays)


def as_it_is(part: Any, length: int) -> Any:
    """The block itself."""
    return part


class Blocked(NDArrayOperatorsMixin):
    """A row vector, or rows, in the blocks of a place; computes like an array, and its entries stay where they are.

    Functions that go where the rows lie leave it behind: copied there, it is nothing.
    """

    #: From the handle of a block and its length to an array.
    read: Callable[[Any, int], Any]

    def __init__(
        self, place: Place, base: Any, width: tuple[int, ...] = (), read: Callable[[Any, int], Any] = as_it_is
    ):
        self.place, self.base, self.read = place, base, read
        self.shape = (place.count, *width)
        self.ndim, self.dtype = len(self.shape), np.dtype(np.float64)

    def __reduce__(self):
        return left_behind, ()

    def __len__(self) -> int:
        return self.shape[0]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            return NotImplemented
        if ufunc is np.matmul:
            return dot(*inputs)
        vectors = [each for each in inputs if isinstance(each, Blocked)]
        others = [None if isinstance(each, Blocked) else each for each in inputs]

        def apply(*parts: Any) -> Any:
            coming = iter(parts)
            return ufunc(*(next(coming) if each is None else each for each in others))

        return self.place.run(apply, *vectors, outputs=1)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.vdot:
            return dot(*args)
        if function is np.array_equal:
            left, right = args
            return self.place.run(lambda a, b: int(not np.array_equal(a, b)), left, right, combine=add) == 0
        if function is np.zeros_like:
            return ConstantVector(self.place, np.zeros(self.shape[1:]))
        return NotImplemented

    def sum(self, axis: int | None = None) -> Any:
        """The sum of all entries, or over the rows."""
        return self.place.run(lambda part: part.sum(axis=axis), self, combine=add)

    def min(self) -> float:
        """The smallest entry."""
        return self.place.extremes(self)[0]

    def max(self) -> float:
        """The largest entry."""
        return self.place.extremes(self)[1]

    def __getitem__(self, key: Any) -> Blocked:
        if key == (slice(None), None):
            return self.place.run(lambda part: part[:, None], self, outputs=1)
        raise EmpiriskError(
            "Rows that lie elsewhere have no rows to be taken one by one; use a solver that works in passes."
        )


class LeftBehind:
    """What a row vector is in a function that was sent to where the rows lie."""


def left_behind() -> LeftBehind:
    """Stands for a row vector in what is sent."""
    return LeftBehind()


class TableRows(Blocked):
    """The rows of the table: what a pass reads."""


class Mapped(TableRows):
    """Rows after a map, which is applied each time that a block is read."""

    def __init__(self, rows: TableRows, transform: Callable[[NDArray], NDArray], width: int):
        super().__init__(rows.place, rows.base, (width,))
        self.rows, self.transform = rows, transform
        self.read = _Transformed(rows.read, transform)


@dataclass(frozen=True)
class _Transformed:
    read: Callable[[Any, int], Any]
    transform: Callable[[NDArray], NDArray]

    def __call__(self, handle: Any, length: int) -> Any:
        return np.asarray(self.transform(self.read(handle, length)), dtype=np.float64)


class ConstantVector(Blocked):
    """The row vector with the same entry, or the same row of entries, everywhere."""

    def __init__(self, place: Place, value: Any):
        self.value = np.asarray(value, dtype=np.float64)
        super().__init__(place, None, self.value.shape)
        self.read = _Everywhere(self.value)


@dataclass(frozen=True)
class _Everywhere:
    value: NDArray

    def __call__(self, handle: Any, length: int) -> NDArray:
        return np.broadcast_to(self.value, (length, *self.value.shape))


def dot(left: Any, right: Any) -> float:
    """The sum of products of all entries of two row vectors."""
    place = left.place if isinstance(left, Blocked) else right.place
    spread = [each if isinstance(each, Blocked) else place.scattered(np.asarray(each)) for each in (left, right)]
    return float(place.run(lambda a, b: float(np.vdot(a, b)), *spread, combine=add))
