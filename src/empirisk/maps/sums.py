"""sum_j c_j k(z_j, x) for many x: entries are multiplied while they are in the cache, and no matrix is kept."""

from itertools import product
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.kernels.base import Kernel
from empirisk.kernels.items import size, take
from empirisk.linalg.threads import in_threads
from empirisk.settings import settings

Array = NDArray[np.float64]
#: A block of entries: few enough for the cache, many enough for a matrix product.
ROWS, COLUMNS = 512, 1024
#: Parts that are summed on their own, a fixed number of them: the bits do not depend on the number of threads.
PARTS = 16
#: Items of compiled kernels that are made ready at a time.
SLAB = 1 << 15
#: A block takes at most one such part of the memory budget: every thread has one, or two in different precision.
SHARE = 64


def kernel_sums(kernel: Kernel, centres: Any, coefficients: Array, others: Any, among: bool) -> tuple[Array, Array]:
    """K(centres, centres) c and K(others, centres) c; an entry between two centres serves both of them.

    Parameters
    ----------
    kernel : Kernel
        Fitted, if it learns from data.
    centres, others : prepared items
        The z_j, and the x at which the sums are wanted; packed, or chosen from packed ones.
    coefficients : array
        c, with a column for every sum.
    among : bool
        Whether the sums at the centres are wanted; zeros stand in their place if not.

    Examples
    --------
    >>> kernel_sums(er.kernels.Linear(), np.array([[1.0], [2.0]]), np.ones(2), np.array([[3.0]]), True)
    (array([3., 6.]), array([9.]))
    """
    count, rest = size(centres), size(others)
    if count and kernel.formula(take(centres, slice(0, 1)), take(centres, slice(0, 1))) is not None:
        at_centres = _compiled_sums(kernel, centres, coefficients, centres) if among else np.zeros_like(coefficients)
        return at_centres, _compiled_sums(kernel, centres, coefficients, others)
    height, width = _block_shape()
    panels = _slices(0, count, height)
    tail = coefficients.shape[1:]

    def part(first: int) -> tuple[Array, Array]:
        at_centres, at_others = np.zeros((count, *tail)), np.zeros((rest, *tail))
        memory = _Memory(kernel)
        for panel in panels[first::PARTS]:
            rows, c = take(centres, panel), coefficients[panel]
            if among:
                at_centres[panel] += kernel.between(rows) @ c
            for columns in _slices(panel.stop, count if among else 0, width):
                block = memory.block(rows, take(centres, columns))
                at_centres[panel] += block @ coefficients[columns]
                at_centres[columns] += block.T @ c
            for columns in _slices(0, rest, width):
                # The others come first: of a given Gram matrix, new rows know the old ones, not the other way round.
                at_others[columns] += memory.block(take(others, columns), rows) @ c
        return at_centres, at_others

    found = in_threads(part, range(min(PARTS, len(panels))))
    at_centres, at_others = zip(*found, strict=True)
    return np.sum(at_centres, axis=0), np.sum(at_others, axis=0)


def _compiled_sums(kernel: Kernel, centres: Any, coefficients: Array, others: Any) -> Array:
    """K(others, centres) c by the kernel's formula."""
    by_sum = coefficients.reshape(len(coefficients), -1)
    totals = np.zeros((size(others), by_sum.shape[1]))
    for columns, rows in product(_slices(0, size(centres), SLAB), _slices(0, size(others), SLAB)):
        formula = kernel.formula(take(others, rows), take(centres, columns))
        assert formula is not None  # it was there for the first item
        totals[rows] += formula.sums(by_sum[columns])
    return totals.reshape(len(totals), *coefficients.shape[1:])


def _block_shape() -> tuple[int, int]:
    """Rows and columns of a block; fewer where the memory budget is small."""
    entries = settings().memory // (8 * SHARE)
    height = max(1, min(ROWS, isqrt(entries // 2)))
    return height, max(1, min(COLUMNS, entries // height))


def _slices(begin: int, end: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, end)) for start in range(begin, end, step)]


class _Memory:
    """Blocks of entries in memory that was used before: fresh memory costs more than the entries."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self._kept: dict[tuple[int, int], tuple[NDArray, Array]] = {}

    def block(self, rows: Any, columns: Any) -> Array:
        """k(x_i, z_j) in float64, valid until the next block."""
        shape = (size(rows), size(columns))
        entries, doubles = self._kept.get(shape, (None, None))
        entries = self.kernel.between(rows, columns, out=entries)
        if doubles is None:
            doubles = entries if entries.dtype == np.float64 else np.empty(shape)
        if doubles is not entries:
            doubles[:] = entries
        self._kept[shape] = (entries, doubles)
        return doubles
