"""Sums over blocks of rows: fixed blocks, fixed order, so the bits do not depend on the number of threads."""

from collections.abc import Callable
from functools import reduce
from operator import iadd
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from empirisk.linalg.threads import parallel_map
from empirisk.settings import CORES
from empirisk.stop import check_stop

Array = NDArray[np.float64]
Result = TypeVar("Result")

#: A block stays in the cache between the products with it. Of large data blocks are larger, within limits: each costs
#: some calls under Python's lock, for which many threads would wait.
BLOCK_BYTES, LARGEST_BLOCK, BLOCKS = 1 << 20, 1 << 22, 256
#: Less than this is the work of one thread.
SMALL = 1 << 21
#: Groups of blocks that threads take: more than there are threads, so that none waits long for the last one.
GROUPS = 32
#: Threads that read memory at the same time: with half of the cores it gives all it has, and more wait for each other.
MOST_READERS = max(8, CORES // 2)
#: What a step over the rows of vectors reads and writes for each row: about eight numbers.
ENTRY_BYTES = 64


def slices(length: int, step: int, begin: int = 0) -> list[slice]:
    """Slices of one step that cover a length from its begin on."""
    return [slice(start, min(start + step, length)) for start in range(begin, length, step)]


def blocks(rows: int, row_bytes: int) -> list[slice]:
    """Slices of some megabytes that cover the rows; they depend on the data's shape alone."""
    if rows * row_bytes <= BLOCK_BYTES:
        return [slice(0, rows)]
    size = min(max(rows * row_bytes // BLOCKS, BLOCK_BYTES), LARGEST_BLOCK)
    # Of very wide rows some still go together: a product of one row with a matrix is none of matrices.
    return slices(rows, max(64, size // max(row_bytes, 1)))


def groups(rows: int, row_bytes: int) -> list[list[slice]]:
    """The blocks dealt to a fixed number of groups."""
    parts = blocks(rows, row_bytes)
    size = -(-len(parts) // GROUPS)
    return [parts[start : start + size] for start in range(0, len(parts), size)]


def _in_threads(function: Callable[[list[slice]], Result], rows: int, row_bytes: int) -> list[Result]:
    """function(group) for all groups, on no more threads than have enough to read; one group for small data."""
    size = rows * row_bytes
    if size > SMALL:
        return parallel_map(function, groups(rows, row_bytes), min(1 + size // SMALL, MOST_READERS))
    check_stop()
    return [function(blocks(rows, row_bytes))]


def sum_over_rows(function: Callable[[list[slice]], Result], rows: int, row_bytes: int) -> Result:
    """Add up function(group of blocks) over all groups, in order; what it gives is overwritten."""
    return reduce(iadd, _in_threads(function, rows, row_bytes))


def sum_of_blocks(function: Callable[[slice], Result], rows: int, row_bytes: int) -> Result:
    """Add up function(block), in order."""
    if rows * row_bytes <= BLOCK_BYTES:  # one block: on small data the calls around it would cost as much
        check_stop()
        return function(slice(0, rows))
    return sum_over_rows(lambda group: reduce(iadd, map(function, group)), rows, row_bytes)


def sum_of_rows(function: Callable[[slice], Result], rows: int, row_bytes: int = ENTRY_BYTES) -> Result:
    """Add up function(part of the rows), in order, where a part need not stay in the cache."""
    if rows * row_bytes <= SMALL:
        check_stop()
        return function(slice(0, rows))
    return sum_over_rows(lambda group: function(_whole(group)), rows, row_bytes)


def _whole(group: list[slice]) -> slice:
    return slice(group[0].start, group[-1].stop)


def over_rows(function: Callable[[slice], None], rows: int, row_bytes: int) -> None:
    """Run function(block) for every block; each writes its own rows of the output."""
    _in_threads(lambda group: [function(block) for block in group], rows, row_bytes)


def rowwise(
    function: Callable[..., NDArray], *arrays: NDArray, row_bytes: int = ENTRY_BYTES, dtype: DTypeLike = np.float64
) -> NDArray:
    """function(*arrays), whose rows depend on those rows of the arrays alone, over blocks in threads.

    >>> rowwise(np.subtract, np.array([3.0, 4.0]), np.array([1.0, 1.0]))
    array([2., 3.])
    """
    if len(arrays[-1]) * row_bytes <= SMALL:
        check_stop()
        return np.asarray(function(*arrays), dtype)
    out = np.empty(arrays[-1].shape, dtype)

    def run(group: list[slice]) -> None:
        rows = _whole(group)
        out[rows] = function(*(array[rows] for array in arrays))

    _in_threads(run, len(out), row_bytes)
    return out


def places(holds: Callable[[slice], NDArray[np.bool_]], rows: int, row_bytes: int = ENTRY_BYTES) -> NDArray[np.intp]:
    """The numbers of the rows for which holds(block) is true, in order.

    >>> places(lambda rows: np.array([3, 0, 4])[rows] > 0, 3)
    array([0, 2])
    """

    def run(group: list[slice]) -> NDArray[np.intp]:
        return np.flatnonzero(holds(_whole(group))) + group[0].start

    return np.concatenate(_in_threads(run, rows, row_bytes))


def stable_order(values: Array) -> NDArray[np.intp]:
    """np.argsort(values, kind="stable") in threads: of values in rising intervals, each sorted by itself.

    >>> stable_order(np.array([2.0, 1.0, 2.0]))
    array([1, 0, 2])
    """
    if len(values) * ENTRY_BYTES <= SMALL:
        return np.argsort(values, kind="stable")
    some = np.sort(values[:: len(values) // (GROUPS * GROUPS)])
    bounds = some[np.arange(1, GROUPS) * len(some) // GROUPS]
    interval = rowwise(lambda part: np.searchsorted(bounds, part, side="right"), values, dtype=np.uint8)

    def run(number: int) -> NDArray[np.intp]:
        inside = np.flatnonzero(interval == number)
        return inside[np.argsort(values[inside], kind="stable")]

    return np.concatenate(parallel_map(run, range(GROUPS)))
