"""Bins: each column cut into at most 255 intervals or categories, each value stored as one byte."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.arguments import check_count, check_number
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.threads import parallel_map

Array = NDArray[np.float64]
Codes = NDArray[np.uint8]

MAX_BINS = 255  # of present values: with that of missing ones they fill a byte
MISSING = 255  # the bin of missing values, after at most 255 bins of present ones
WIDTH = 256  # bins of a histogram
SAMPLE = 1 << 16  # rows that decide the edges: enough for 255 quantiles, and the cost stays linear in the rows
BLOCK = 1 << 15  # rows binned by one task
LINE = 64  # bytes that memory delivers at once
FEW = 1 << 16  # values whose edges are found before threads have started
TILE = 256  # rows binned column by column while they are in near memory


@dataclass(frozen=True, eq=False)
class Binning:
    """How the values of each column become bins.

    Bin b of a numeric column holds  edges[b - 1] < x <= edges[b];  bin b of a categorical column is one category.

    Attributes
    ----------
    edges : (n_features, 256) float64
        Largest value in each bin of a numeric column, infinite from the last bin on.
    counts : (n_features,) int32
        Number of bins of present values.
    category_counts : (n_features,) int32
        Number of categories of each column, 0 for a numeric one.
    category_bins : dict of arrays
        For each categorical column the bin of every category code; the rarest beyond 255 count as missing.

    Examples
    --------
    >>> from empirisk.trees.binned.bins import Binning
    >>> X = np.array([[1.0], [2.0], [2.0], [np.nan]])
    >>> Binning.of(X, np.ones(4), np.zeros(1, dtype=np.int32)).codes(X).by_row.ravel()
    array([  0,   1,   1, 255], dtype=uint8)
    """

    edges: Array
    counts: NDArray[np.int32]
    category_counts: NDArray[np.int32]
    category_bins: dict[int, Codes]

    @classmethod
    def of(
        cls,
        X: Array,
        weights: Array,
        category_counts: NDArray[np.int32],
        max_bins: int = MAX_BINS,
    ) -> "Binning":
        """Quantile edges from the rows, or from 65 536 of them (one drawn from each of as many equal parts)."""
        edges = np.full((X.shape[1], WIDTH), np.inf)
        counts = np.zeros(X.shape[1], dtype=np.int32)
        rows = edge_rows(len(X))
        masses = weights[rows]
        uniform = bool((masses == masses[0]).all())

        def find(column: int) -> None:
            values = X[rows, column]
            present = ~np.isnan(values)
            values, mass = values[present], masses[present]
            order = slice(None) if uniform else np.argsort(values, kind="stable")
            values = np.sort(values) if uniform else values[order]
            found = find_edges(values, mass[order], min(max_bins, MAX_BINS))
            edges[column, : len(found)] = found
            counts[column] = min(len(found) + 1, len(values))

        numeric = np.flatnonzero(category_counts == 0)
        if len(rows) * len(numeric) > FEW:
            parallel_map(find, numeric)
        else:
            for column in numeric.tolist():
                find(column)
        category_bins = {}
        for column in np.flatnonzero(category_counts):
            category_bins[int(column)] = _frequent(X[:, column], weights, category_counts[column])
            counts[column] = min(category_counts[column], MAX_BINS)
        return cls(edges, counts, np.asarray(category_counts, dtype=np.int32), category_bins)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns are categorical."""
        return self.category_counts > 0

    def codes(self, X: Array, by_row: bool = True) -> "BinnedRows":
        """The bins of every value, column by column and, where asked, also row by row."""
        if not isinstance(X, np.ndarray):  # rows in files know how to bin themselves
            return X.binned(self, by_row)
        rows = aligned(len(X) if by_row else 0, X.shape[1])
        by_column = np.empty(X.shape[::-1], dtype=np.uint8)
        numeric = np.flatnonzero(~self.categorical)

        def fill(first: int) -> None:
            find_bins(X, self.edges, numeric, rows, by_column, first, min(first + BLOCK, len(X)))

        parallel_map(fill, range(0, len(X), BLOCK))
        for column, bins in self.category_bins.items():
            present = ~np.isnan(X[:, column])
            by_column[column] = MISSING
            by_column[column, present] = bins[X[present, column].astype(np.intp)]
            if by_row:
                rows[:, column] = by_column[column]
        return BinnedRows(rows, by_column)

    def category_words(self, column: int) -> int:
        """Number of 64-bit words in a set of the column's categories."""
        return -(-int(self.category_counts[column]) // 64)

    def category_set(self, column: int, left: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """The set of category codes whose bins are marked in ``left`` (256 marks), as words of 64 bits."""
        goes_left = left[self.category_bins[column]]
        bits = np.zeros(64 * self.category_words(column), dtype=np.uint8)
        bits[: len(goes_left)] = goes_left
        return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """The bins of a table: ``by_row`` (n, d or more) for sums over rows, ``by_column`` (d, n) for single columns."""

    by_row: Codes
    by_column: Codes


class BinValues:
    """Rows of which the bins alone are in memory: trees on these bins send the largest value of a bin where they send
    all of them.

    >>> binning = Binning.of(np.array([[1.0], [2.0], [4.0]]), np.ones(3), np.zeros(1, dtype=np.int32))
    >>> BinValues(binning, np.array([[0, 2, 255]], dtype=np.uint8))[np.arange(3)].ravel()
    array([1.5, inf, nan])
    """

    def __init__(self, binning: Binning, by_column: Codes):
        self._values, self._codes = binning.edges.copy(), by_column
        self._values[:, MISSING] = np.nan
        self.shape = by_column.shape[::-1]

    def __getitem__(self, key: Any) -> Array:
        """Some rows, or for a pair (rows, columns) some entries."""
        rows, columns = key if isinstance(key, tuple) else (np.asarray(key)[:, None], np.arange(self.shape[1]))
        return self._values[columns, self._codes[columns, rows]]


def new_bytes(size: int) -> Codes:
    """Room for so many bytes in memory."""
    return np.empty(size, dtype=np.uint8)


def aligned(rows: int, width: int, room_for: Callable[[int], Codes] = new_bytes) -> Codes:
    """Room for rows of so many bins, perhaps of more: none lies in more lines of memory than it must."""
    stride = -(-width // LINE) * LINE if width > LINE else 1 << (width - 1).bit_length()
    room = room_for(rows * stride + LINE)
    start = -room.ctypes.data % LINE
    return room[start : start + rows * stride].reshape(rows, stride)


def edge_rows(count: int) -> NDArray[np.intp]:
    """The rows of so many that decide the edges of bins."""
    if count <= SAMPLE:
        return np.arange(count)
    # The same draw always: edges need no luck, and a fit without other draws is then the same every time.
    return ((np.arange(SAMPLE) + np.random.default_rng(0).random(SAMPLE)) * (count / SAMPLE)).astype(np.intp)


def _frequent(codes: Array, weights: Array, count: int) -> Codes:
    """The bin of every category code: 0, 1, ... for the 255 heaviest in order of code, missing for the others."""
    if count <= MAX_BINS:
        return np.arange(count, dtype=np.uint8)
    present = ~np.isnan(codes)
    mass = np.bincount(codes[present].astype(np.intp), weights[present], minlength=count)
    bins = np.full(count, MISSING, dtype=np.uint8)
    bins[np.sort(np.argsort(-mass, kind="stable")[:MAX_BINS])] = np.arange(MAX_BINS)
    return bins


def find_edges(values: Array, weights: Array, max_bins: int) -> Array:
    """The edges between at most ``max_bins`` bins of sorted values.

    Where there are few distinct values each has its bin. Otherwise a value heavier than an equal share has a bin of
    its own, and the others share the remaining bins in equal parts: many zeros do not use up the bins of the rest.
    """
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=np.intp)
    distinct = values[starts]
    lasts = np.arange(len(distinct) - 1)
    if len(distinct) > max_bins:
        lasts = np.empty(max_bins - 1, dtype=np.int64)
        lasts = lasts[: fill_bins(np.add.reduceat(weights, starts), max_bins, lasts)]
    return middles(distinct[lasts], distinct[lasts + 1])


def middles(low: Array, high: Array) -> Array:
    """Numbers t with low <= t < high, half way where floats allow it."""
    half = 0.5 * low + 0.5 * high
    return np.where((low <= half) & (half < high), half, low)


@plain_loop
def fill_bins(mass, max_bins, lasts):
    """Write to ``lasts`` the last value of each bin but the last one, from the weights of the values; how many."""
    count, free = mass.shape[0], max_bins
    rest = 0.0
    for k in range(count):
        rest += mass[k]
    # Values heavier than an equal share of what remains, found in rounds; `share` ends below all of them.
    share, found = rest / free, True
    while found:
        found = False
        total, heavy = 0.0, 0
        for k in range(count):
            if mass[k] > share:
                total += mass[k]
                heavy += 1
        heavy = heavy if heavy < max_bins else max_bins - 1
        if heavy > max_bins - free:
            found = True
            free = max_bins - heavy
            share = rest - total if rest > total else 0.0
            share /= free
    limit, bins, held = share, 0, 0.0
    for k in range(count):
        if mass[k] > limit:
            rest -= mass[k]
    for k in range(count - 1):
        heavy_now, heavy_next = mass[k] > limit, mass[k + 1] > limit
        held += mass[k]
        full = heavy_now or held >= share or (heavy_next and held >= 0.5 * share)
        if full and bins < max_bins - 1:
            lasts[bins] = k
            bins += 1
            if not heavy_now:
                rest -= held
                free -= 1
                share = rest / free if free > 1 else rest
            held = 0.0
    return bins


@plain_loop
def find_bins(X, edges, columns, by_row, by_column, start, stop):
    """Write the bins of some rows in the given columns, by binary search without branches: eight steps for all.

    ``by_row`` may have no rows: it is then left out.
    """
    for first in range(start, stop, TILE):
        last = first + TILE if first + TILE < stop else stop
        for column in columns:
            edge = edges[column]
            for row in range(first, last):
                value = X[row, column]
                place = np.uint64(0)
                for step in (128, 64, 32, 16, 8, 4, 2, 1):
                    place += np.uint64(step) if edge[place + np.uint64(step - 1)] < value else np.uint64(0)
                found = np.uint8(place) if value == value else np.uint8(MISSING)
                by_column[column, row] = found
                if row < by_row.shape[0]:
                    by_row[row, column] = found


def check_bins(max_bins: Any) -> int:
    """Number of bins, at most 255."""
    return int(check_number("max_bins", check_count("max_bins", max_bins, 2), 2, MAX_BINS))
