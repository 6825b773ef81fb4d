"""Rows of a Gram matrix on demand: computed in groups as matrix products, kept while there is room."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import loop_with, plain_loop
from empirisk.linalg.threads import parallel_map, workers
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Array, Problem
from empirisk.settings import settings

#: The share of the memory budget that kept rows may take, and the most: beyond, fresh memory costs more than new rows.
SHARE, MOST_BYTES = 0.4, 1 << 28
# Rows computed at once: more need more memory for a while, fewer waste the processor.
GROUP = 512
#: Products for each thread at least, about half a millisecond.
LEAST = 1 << 20
# What the entries of K may be for single precision to hold them.
LARGEST = 1e30
#: Sums that stay in the fastest memory.
BLOCK = 1024
#: Rows of a working set that a thread gathers at a time.
GATHERED = 192
Indices = NDArray[np.intp]


class RowSource:
    """Where the decomposition gets rows of K from, over the columns that are still of interest."""

    #: Whether columns may be left out.
    narrows = True
    #: The rows that fit at once: more than there ever are.
    room = 1 << 30
    #: Slots of rows.
    rows: NDArray

    @property
    def dtype(self) -> Any:
        """The precision of the rows."""
        return self.rows.dtype

    def fetch(self, wanted: NDArray) -> NDArray:
        """The slots of the wanted samples' rows."""
        raise NotImplementedError

    def cover(self, columns: NDArray) -> None:
        """Give rows over these samples from now on."""
        raise NotImplementedError

    def narrow(self, kept: NDArray) -> None:
        """Keep only some of the columns, given by their places among the present ones."""
        raise NotImplementedError

    def gather(self, slots: Indices, columns: Indices, out: NDArray) -> None:
        """Some columns of the rows at some slots, into the corner of ``out``."""
        gather(self.rows, slots, columns, out, 0)

    def add_products(self, slots: NDArray, factors: Array, G: Array) -> None:
        """G += K[columns, samples] factors, given the slots of the samples' rows; in threads over blocks of columns."""
        weights = factors.astype(self.dtype)
        threads = max(1, min(workers(), len(slots) * len(G) // LEAST))
        chunk = BLOCK * -(-len(G) // (BLOCK * threads))

        def run(begin: int) -> None:
            add_rows(self.rows, slots, weights, begin, min(begin + chunk, len(G)), np.empty(BLOCK, weights.dtype), G)

        parallel_map(run, range(0, len(G), chunk))


class StreamedRows(RowSource):
    """Rows of a design that makes products faster than memory gives kept rows: none is kept, and none comes here.

    Parameters
    ----------
    design : GramDesign
        With `partial_product`.
    """

    def __init__(self, design: GramDesign):
        self.design, self.columns = design, np.arange(0)

    @property
    def dtype(self):
        return np.dtype(np.float32)

    def fetch(self, wanted):
        return wanted

    def cover(self, columns):
        self.columns = columns

    def narrow(self, kept):
        self.columns = self.columns[kept]

    def gather(self, slots, columns, out):
        out[: len(slots), : len(columns)] = self.design.block(slots, self.columns[columns])

    def add_products(self, slots, factors, G):
        G += self.design.partial_product(self.columns, slots, factors)


class KeptMatrix(RowSource):
    """The rows of a Gram matrix that is held as a whole.

    Parameters
    ----------
    matrix : array
        K, symmetric.
    """

    #: Leaving columns out of a matrix that is there would cost more than it saves.
    narrows = False

    def __init__(self, matrix: NDArray):
        self.rows = matrix

    def fetch(self, wanted: NDArray) -> NDArray:
        """The places of the wanted samples' rows in ``rows``."""
        return wanted

    def cover(self, columns: NDArray) -> None:
        """All columns are there."""

    def narrow(self, kept: NDArray) -> None:
        """All columns stay."""


class RowCache(RowSource):
    """Rows of K over the columns still of interest, in a ring: the oldest rows make room for new ones.

    Parameters
    ----------
    design : GramDesign
        The samples, in the precision in which rows are wanted.
    least : int
        Rows that must fit at once.

    Attributes
    ----------
    rows : array
        Slots of rows; `fetch` says which slot holds which sample.
    columns : array
        The samples that the columns stand for.
    """

    def __init__(self, design: GramDesign, least: int):
        self.design = design
        self._packed = design.packed
        count = design.shape[0]
        probe = np.asarray(design.block(np.arange(1), np.arange(1)))
        dtype = probe.dtype if probe.dtype == np.float32 else np.dtype(np.float64)
        room = min(int(SHARE * settings().memory), MOST_BYTES) // dtype.itemsize
        self._flat = np.empty(min(max(room, least * count), count * count), dtype)
        self._slot = np.full(count, -1)
        self.columns = np.arange(0)
        self.cover(np.arange(count))

    def cover(self, columns: NDArray) -> None:
        """Make rows over these samples from now on; rows over others are lost."""
        if np.array_equal(columns, self.columns):
            return
        everything = len(columns) == self.design.shape[0]
        self.columns = columns
        self._items = self._packed if everything else self._packed[columns]
        self._slot[:] = -1
        self._shape()
        self._next = 0

    @property
    def room(self) -> int:
        """The rows that fit at once."""
        return len(self.rows)

    def _shape(self) -> None:
        width = max(len(self.columns), 1)
        slots = max(1, min(len(self._flat) // width, self.design.shape[0]))
        self.rows = self._flat[: slots * width].reshape(slots, width)
        self._owner = np.full(slots, -1)

    def fetch(self, wanted: NDArray) -> NDArray:
        """The slots of the wanted samples' rows, computed if they are not kept."""
        missing = wanted[self._slot[wanted] < 0]
        while len(missing):
            for start in range(0, len(missing), GROUP):
                self._compute(missing[start : start + GROUP])
            missing = wanted[self._slot[wanted] < 0]  # a full ring may have dropped rows that are wanted too
        return self._slot[wanted]

    def _compute(self, samples: NDArray) -> None:
        slots = len(self._owner)
        begin = self._next if self._next + len(samples) <= slots else 0
        end = begin + len(samples)
        dropped = self._owner[begin:end]
        self._slot[dropped[dropped >= 0]] = -1
        out = self.rows[begin:end]
        block = self.design.kernel.between(self._packed[samples], self._items, out=out)
        if block is not out:
            out[:] = block
        self._owner[begin:end], self._slot[samples] = samples, np.arange(begin, end)
        self._next = end

    def narrow(self, kept: NDArray) -> None:
        """Keep only some of the columns, given by their places among the present ones."""
        stays = np.zeros(self.design.shape[0] + 1, dtype=bool)  # the last entry answers for empty slots, owner -1
        stays[self.columns[kept]] = True
        held = np.flatnonzero(stays[self._owner])
        owners, width, count = self._owner[held], len(self.columns), len(kept)

        def run(first: int) -> None:
            narrow_rows(self._flat, held[first : first + GROUP], width, kept)

        parallel_map(run, range(0, len(held), GROUP))
        for place, slot in enumerate(held):  # what is written lies before what is still to be read
            self._flat[place * count : (place + 1) * count] = self._flat[slot * width : slot * width + count]
        self.columns = self.columns[kept]
        self._items = self._items[kept]
        self._shape()
        self._slot[:] = -1
        self._owner[: len(held)], self._slot[owners] = owners, np.arange(len(held))
        self._next = len(held) % len(self._owner)


def gram(problem: Problem) -> GramDesign:
    """The design of a problem behind a kernel."""
    return cast(GramDesign, problem.design)


def row_source(design: GramDesign, size: int) -> RowSource:
    """Where rows come from: a matrix that is kept anyway, else rows in single precision where it can hold them."""
    if design.streams:
        return StreamedRows(design.single)
    if design.keeps_matrix:
        return KeptMatrix(np.ascontiguousarray(design.matrix))
    single = float(np.abs(design.diagonal).max()) < LARGEST
    return RowCache(design.single if single else design, size)


@loop_with({"reassoc", "contract"})
def add_rows(rows, slots, factors, begin, end, block, G):
    """G[begin:end] += factors' rows[slots], four rows at a time; sums of a block are held in the rows' precision."""
    count = len(slots)
    for start in range(begin, end, BLOCK):
        stop = start + BLOCK if start + BLOCK < end else end
        width = stop - start
        block[:] = 0
        for a in range(0, count - count % 4, 4):
            p, q, r, s = factors[a], factors[a + 1], factors[a + 2], factors[a + 3]
            first, second = rows[slots[a], start:stop], rows[slots[a + 1], start:stop]
            third, fourth = rows[slots[a + 2], start:stop], rows[slots[a + 3], start:stop]
            for k in range(width):
                block[k] += p * first[k] + q * second[k] + r * third[k] + s * fourth[k]
        for a in range(count - count % 4, count):
            p, first = factors[a], rows[slots[a], start:stop]
            for k in range(width):
                block[k] += p * first[k]
        for k in range(width):
            G[start + k] += block[k]


@plain_loop
def narrow_rows(flat, slots, width, columns):
    """Keep some increasing columns of the rows at ``slots`` of a flat buffer, each at the beginning of its slot."""
    for slot in slots:
        start = slot * width
        for k in range(len(columns)):
            flat[start + k] = flat[start + columns[k]]


def gather(rows: NDArray, slots: Indices, columns: Indices, out: NDArray, corner: int) -> None:
    """rows[slots][:, columns] into ``out`` from a corner on its diagonal; in threads, each some of the slots."""
    step = GATHERED if len(slots) > 2 * GATHERED else max(len(slots), 1)

    def run(first: int) -> None:
        gather_some(rows, slots, columns, first, min(first + step, len(slots)), out, corner)

    parallel_map(run, range(0, len(slots), step))


@plain_loop
def gather_some(rows, slots, columns, first, stop, out, corner):
    """The same for the slots from one place to another."""
    for a in range(first, stop):
        row = rows[slots[a]]
        for b in range(len(columns)):
            out[corner + a, corner + b] = row[columns[b]]
