"""The terms of an additive machine: a column by its bins, a pair of columns by a grid of coarser bins."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import parallel_map
from empirisk.trees.additive.steps import (
    CLEARLY,
    COARSE,
    accumulate,
    column_step,
    given_sums,
    interaction,
    pair_step,
)
from empirisk.trees.binned.bins import MISSING, WIDTH, Codes

Array = NDArray[np.float64]

#: Cells of a grid along one column: its coarse bins, and missing values.
SIDE = COARSE + 1
#: Bins of a column where pairs are compared, and rows that are looked at: ranks need no more.
SCREENED, SCREENED_ROWS = 12, 1 << 17
#: Weight added to a category where categories are ordered by their slopes, so that rare ones stay near the middle.
SMOOTHING = 10.0


@dataclass
class ColumnTerm:
    """A shape of one column.

    Attributes
    ----------
    codes : array of n
        The bin of every row.
    mass : array of 256
        The weight of the training rows in each bin.
    order : array
        The bins of present values, in the order of the column; of categories the steps choose an order of their own.
    categorical : bool
        Whether the bins are categories.
    sign : int
        1 for a shape that may only rise, -1 for one that may only fall, else 0.
    """

    codes: Codes
    mass: Array
    order: NDArray[np.int64]
    categorical: bool
    sign: int
    cells = WIDTH

    def __post_init__(self):
        self._work = np.empty((5, 64))

    def step(self, sums: Array, leaves: int, least: float, l2: float) -> Array:
        """The Newton step, by cell."""
        out, order = np.empty(WIDTH), self.order
        if self.categorical:
            present = self.order[self.mass[self.order] > 0]
            total = sums[present].sum(axis=0)
            typical = SMOOTHING * total[1] / max(float(self.mass[present].sum()), np.finfo(float).tiny)
            slopes = sums[present, 0] / np.maximum(sums[present, 1] + typical, np.finfo(float).tiny)
            order = present[np.argsort(slopes, kind="stable")]
        column_step(sums, self.mass, order, leaves, least, l2, self.sign, self._work, out)
        return out


@dataclass
class PairTerm:
    """A shape of two columns, over the grid of their coarse bins.

    Attributes
    ----------
    codes : array of n
        The cell of every row, row after row of the grid.
    mass : array
        The weight of the training rows in each cell.
    """

    codes: NDArray[np.uint16]
    mass: Array
    cells = SIDE * SIDE

    def __post_init__(self):
        self._total, self._work = np.zeros((SIDE + 1, SIDE + 1, 3)), np.zeros((3, 3))

    def step(self, sums: Array, leaves: int, least: float, l2: float) -> Array:
        """The Newton step, by cell."""
        out = np.empty((SIDE, SIDE))
        accumulate(np.column_stack([sums, self.mass]).reshape(SIDE, SIDE, 3), self._total)
        pair_step(self._total, least, l2, self._work, out)
        return out.ravel()


Term = ColumnTerm | PairTerm


def coarse_bins(mass: Array, count: int, most: int, order: NDArray[np.int64]) -> Codes:
    """For each of the 256 bins of a column its coarse bin: at most ``most`` of about equal weight, then the missing.

    ``order`` lists the bins of present values from first to last.
    """
    found = np.full(WIDTH, most, dtype=np.uint8)
    ordered = mass[order]
    total = float(ordered.sum())
    if count > most and total > 0:
        before = np.cumsum(ordered) - 0.5 * ordered
        places = np.minimum((most * before / total).astype(np.int64), most - 1)
        found[order] = np.searchsorted(np.unique(places), places)
    else:
        found[order] = np.minimum(np.arange(len(order)), most - 1)
    return found


def weight_of(codes: NDArray, weights: Array, cells: int) -> Array:
    """The weight of the rows in each cell."""
    return np.bincount(codes, weights, cells).astype(np.float64)


def pair_codes(left: Codes, right: Codes, side: int) -> NDArray[np.uint16]:
    """The cells of rows from their coarse bins of two columns."""
    return left.astype(np.uint16) * np.uint16(side) + right


def strongest_pairs(
    codes: Codes, orders: list[NDArray[np.int64]], derivatives: tuple[Array, Array, Array], count: int, least: float,
    l2: float, allowed: NDArray[np.bool_],
) -> NDArray[np.int64]:  # fmt: skip
    """The pairs of columns whose grids lower what the columns alone leave most; gradient, curvature, weights by row.

    Gradient and curvature have a row for each output, of which the gains are added.
    """
    gradient, curvature, weights = derivatives
    every = -(-codes.shape[1] // SCREENED_ROWS)
    columns = np.flatnonzero(allowed)
    screened = {}
    for column in columns:
        mass = weight_of(codes[column], weights, WIDTH)
        coarse = coarse_bins(mass, len(orders[column]), SCREENED, orders[column])
        screened[int(column)] = coarse[codes[column, ::every]]
    side, some = SCREENED + 1, np.ascontiguousarray(weights[::every])

    def score(pair: tuple[int, int]) -> float:
        cells = pair_codes(screened[pair[0]], screened[pair[1]], side)
        mass, sums, found = weight_of(cells, some, side * side), np.empty((side * side, 2)), 0.0
        for g, h in zip(gradient, curvature, strict=True):
            given_sums(cells, g[::every], h[::every], sums)
            prefix = np.zeros((side + 1, side + 1, 3))
            accumulate(np.column_stack([sums, mass]).reshape(side, side, 3), prefix)
            found += interaction(prefix, least / every, l2)
        return found

    pairs = list(combinations(map(int, columns), 2))
    left, best = np.array(parallel_map(score, pairs)) if pairs else np.zeros(0), []
    while len(best) < count and left.max(initial=0.0) > 0:  # of those that are equal but for rounding the first one
        best.append(int(np.argmax(left * CLEARLY >= left.max())))
        left[best[-1]] = 0.0
    return np.array([pairs[k] for k in best], dtype=np.int64).reshape(-1, 2)


def present_order(counts: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """The bins of present values of every column."""
    return [np.arange(min(int(count), MISSING)) for count in counts]
