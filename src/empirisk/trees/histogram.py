"""Histograms of gradient and curvature in one integer per bin, and the best split that they show.

The gradient g and the curvature h of a row are rounded to whole units and packed into one int64, g in the upper 32
bits and h in the lower 32. Sums of packed numbers are sums of both. They are exact, so the order of the rows, and
with it the number of threads, cannot change a bit of the result; they cost one addition where floats cost two.
The units are powers of two and so fine that a sum over all rows just fits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.bins import WIDTH
from empirisk.trees.compiled import loop

HALF = 32
LOW = (1 << HALF) - 1
ROOM = 1 << 31  # units that the sum over all rows may reach
GOLDEN = 40503  # 2^16 / golden ratio: its multiples spread evenly over 16 bits
WORDS = WIDTH // 64
LINE = 64  # bytes that memory delivers at once
TILE = 128  # rows fetched ahead
SPARSE = 4  # rows further apart than this on average are fetched ahead; closer ones the processor fetches by itself


class Table(NamedTuple):
    """The binned columns, as compiled code takes them.

    ``by_row`` and ``by_column`` hold the bins, ``counts`` the bins of present values in each column, ``categorical``
    marks the columns of categories, ``monotone`` is +1 (-1) where predictions may only rise (fall) with the column.
    """

    by_row: NDArray[np.uint8]
    by_column: NDArray[np.uint8]
    counts: NDArray[np.int32]
    categorical: NDArray[np.bool_]
    monotone: NDArray[np.int8]


class Limits(NamedTuple):
    """What a split must respect, in packed units.

    ``l2`` is added to the curvature of a child; its number of rows must reach ``leaf``; the gain must exceed ``gain``;
    ``smoothing`` is added to the curvature of a category where categories are ordered; nodes at ``depth`` stay whole;
    ``value`` turns gradient units over curvature units into a prediction.
    """

    l2: float
    leaf: float
    gain: float
    smoothing: float
    depth: int
    value: float


class Found(NamedTuple):
    """The best split of each of many sets of rows: arrays with one entry (``left``: four words) for each set.

    ``gain`` is in packed units and zero where no split is allowed; ``left_sum`` the packed sum of the left child;
    ``bin`` the last bin of the left child in a numeric split; ``left`` the set of bins that go left.
    """

    gain: NDArray[np.float64]
    feature: NDArray[np.int32]
    bin: NDArray[np.int32]
    left_sum: NDArray[np.int64]
    left: NDArray[np.uint64]


def no_splits(count: int) -> Found:
    """Room for the best splits of ``count`` sets."""
    return Found(
        np.zeros(count),
        np.zeros(count, dtype=np.int32),
        np.zeros(count, dtype=np.int32),
        np.zeros(count, dtype=np.int64),
        np.zeros((count, WORDS), dtype=np.uint64),
    )


def unit(total: float, rows: int) -> float:
    """The finest power of two in which ``rows`` numbers of absolute sum ``total`` stay below 2^31 units.

    >>> unit(total=3.0, rows=3)
    1.862645149230957e-09
    """
    if not 0.0 < total < np.inf:
        return 1.0
    return float(2.0 ** np.ceil(np.log2(total / (ROOM - 2 * rows - 2))))


@loop
def pack(gradient, curvature, units, times, first, packed):
    """Round gradient and curvature to ``units`` (a pair) and pack them.

    A row that stands for ``times`` equal rows (empty: each for itself) is rounded as one of them, so it packs to the
    same sum as they do. Many rows (``first`` >= 0) are rounded up or down by their number ``first + k``, so that
    errors cancel in sums: with coarse units, rounding to the nearest would shift every row of a kind the same way.
    """
    per_gradient, per_curvature = 1.0 / units[0], 1.0 / units[1]  # exact: units are powers of two
    if times.shape[0] > 0:
        for k in range(gradient.shape[0]):
            offset = 0.5 if first < 0 else spread(first + k)
            g = np.int64(np.floor(gradient[k] * per_gradient / times[k] + offset))
            h = np.int64(np.floor(curvature[k] * per_curvature / times[k] + offset))
            packed[k] = ((g << HALF) + h) * times[k]
        return
    for k in range(gradient.shape[0]):
        offset = 0.5 if first < 0 else spread(first + k)
        g = np.int64(np.floor(gradient[k] * per_gradient + offset))
        packed[k] = (g << HALF) + np.int64(np.floor(curvature[k] * per_curvature + offset))


@loop
def spread(number):
    """Numbers in [0, 1) that fill it evenly as ``number`` counts up."""
    return ((number * GOLDEN) & 0xFFFF) / 65536.0


@loop
def gradient_of(packed):
    """Gradient part of a packed sum, in units."""
    return packed >> HALF


@loop
def curvature_of(packed):
    """Curvature part of a packed sum, in units."""
    return packed & LOW


@loop
def total(packed, rows):
    """The packed sum over the rows."""
    result = np.int64(0)
    for row in rows:
        result += packed[row]
    return result


@loop
def fetch(by_row, packed, rows):
    """Read something of every row, so that the rows are at hand when they are needed.

    The reads of this short loop wait for memory side by side; those of the long one in `accumulate` would queue.
    """
    seen = np.int64(0)
    for k in range(rows.shape[0]):
        row = np.uint64(rows[k])
        seen ^= packed[row]
        for column in range(0, by_row.shape[1], LINE):
            seen ^= by_row[row, column]
        seen ^= by_row[row, by_row.shape[1] - 1]
    return seen


@loop
def accumulate(by_row, packed, rows, first, histogram):
    """Fill ``histogram[k]`` with the packed sums in each bin of column ``first + k``; the rows rise."""
    histogram[:] = 0
    count, offset = rows.shape[0], np.uint64(first)
    # Four rows at a time: their additions overlap instead of waiting for one another. Unsigned numbers index without
    # a test for negative ones.
    whole = count - count % 4
    scattered = count > 0 and rows[count - 1] - rows[0] > SPARSE * count
    seen = np.int64(0)
    for k in range(0, whole, 4):
        if scattered and k % TILE == 0:
            seen ^= fetch(by_row, packed, rows[k : k + TILE])
        a, b, c, d = np.uint64(rows[k]), np.uint64(rows[k + 1]), np.uint64(rows[k + 2]), np.uint64(rows[k + 3])
        at_a, at_b, at_c, at_d = packed[a], packed[b], packed[c], packed[d]
        for j in range(histogram.shape[0]):
            column = np.uint64(j) + offset
            histogram[j, by_row[a, column]] += at_a
            histogram[j, by_row[b, column]] += at_b
            histogram[j, by_row[c, column]] += at_c
            histogram[j, by_row[d, column]] += at_d
    for k in range(whole, count):
        row = np.uint64(rows[k])
        for j in range(histogram.shape[0]):
            histogram[j, by_row[row, np.uint64(j) + offset]] += packed[row]
    return seen  # of no use but to keep the compiler from leaving the reads out


@loop
def subtract(parent, child):
    """Turn the parent's histogram into that of the child's sibling."""
    for j in range(parent.shape[0]):
        for b in range(parent.shape[1]):
            parent[j, b] -= child[j, b]
