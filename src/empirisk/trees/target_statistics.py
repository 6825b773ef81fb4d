"""Categories as numbers: the mean target of each category, learned so that no row sees its own target.

A row of training has the statistics of its category on the other folds of rows; rows of later have those of all rows. A
target that has nothing to do with the categories thus shows nothing in them, however many there are. A split at a
number is a set of categories, and that is what the finished trees hold: they look at the columns as they were given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.binned.bins import Binning
from empirisk.trees.linear_leaves import GrownTree, pack_slopes
from empirisk.trees.nodes import Packed, bits_of, pack_trees
from empirisk.trees.objectives import Objective

Array = NDArray[np.float64]

FOLDS = 5  # parts of the rows: each sees the targets of the others
PRIOR_ROWS = 10.0  # rows at the mean of all that are added to each category
DIGITS = 1e-10  # statistics are rounded to this part of their range: sums of rows in another order are the same then


@dataclass(frozen=True, eq=False)
class TargetStatistics:
    """Columns of a table in which mean targets stand for categories.

    Attributes
    ----------
    sources : (n_columns,) int
        For each column of the table that trees grow on, the column that it comes from.
    values : dict of arrays
        For each column that holds statistics, that of every category code, and at last that of missing values.
    category_counts : (n_features,) int32
        Number of categories of each column of the table as it was given.
    """

    sources: NDArray[np.intp]
    values: dict[int, Array]
    category_counts: NDArray[np.int32]

    @property
    def grown_counts(self) -> NDArray[np.int32]:
        """Number of categories of each column that trees grow on: 0 where it holds statistics."""
        counts = self.category_counts[self.sources]
        counts[list(self.values)] = 0
        return counts

    def as_sets(self, packed: Packed) -> Packed:
        """Packed trees whose splits at statistics are sets of categories of the columns that these come from."""
        feature, count = packed["feature"].copy(), len(packed["feature"])
        slot, missing_left = packed["slot"].copy(), bits_of(packed, "missing_left")
        categorical, words = bits_of(packed, "categorical"), [packed["category_bits"]]
        start = len(packed["category_bits"])
        for node in np.flatnonzero(np.isin(feature, list(self.values))):
            left = self.values[int(feature[node])] <= slot[node]
            bits = np.zeros(-(-(len(left) - 1) // 64) * 64, dtype=np.uint8)
            bits[: len(left) - 1], missing_left[node] = left[:-1], left[-1]
            words.append(np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64))
            categorical[node], slot[node] = True, start
            start += len(words[-1])
        inside = feature >= 0
        feature[inside] = self.sources[feature[inside]]
        packed = packed | {
            "feature": feature,
            "slot": slot,
            "missing_left": np.packbits(missing_left),
            "category_counts": self.category_counts,
            "category_bits": np.concatenate(words),
        }
        return packed | {"categorical": np.packbits(categorical)} if count and categorical.any() else packed


@dataclass(frozen=True)
class Packing:
    """From grown trees to packed ones, which look at the columns as they were given."""

    binning: Binning
    statistics: TargetStatistics | None = None

    def __call__(self, trees: Sequence[GrownTree]) -> Packed:
        """The trees, end to end."""
        packed = pack_trees([tree.nodes for tree in trees], self.binning) | pack_slopes(trees)
        return packed if self.statistics is None else self.statistics.as_sets(packed)

    @property
    def sources(self) -> NDArray[np.intp]:
        """For each column that trees grow on, the one that it comes from."""
        return np.arange(len(self.binning.counts)) if self.statistics is None else self.statistics.sources


def with_statistics(
    X: Array,
    objective: Objective,
    member: NDArray[np.intp],
    category_counts: NDArray[np.int32],
    chosen: NDArray[np.intp],
) -> tuple[Array, TargetStatistics]:
    """The training table with the statistics of other folds in the chosen columns; and what later rows get there.

    Each target of the objective after the first has columns of its own. Equal rows, which have the same number of
    ``member``, are in one fold.
    """
    # The same draw always: folds need no luck, and a fit without other draws is then the same every time.
    fold = (np.random.default_rng(0).permutation(int(member.max()) + 1) % FOLDS)[member]
    sources = np.concatenate([np.arange(X.shape[1]), np.tile(chosen, len(objective.targets) - 1)])
    places = np.concatenate([chosen, np.arange(X.shape[1], len(sources))])
    table, values, weights = X[:, sources], {}, objective.weights
    for place, target in zip(places.tolist(), np.repeat(objective.targets, len(chosen), axis=0), strict=True):
        count = int(category_counts[sources[place]])
        codes = np.where(np.isnan(table[:, place]), count, table[:, place]).astype(np.intp)
        table[:, place], values[place] = _means(codes, fold, target, weights, count + 1)
    return table, TargetStatistics(sources, values, category_counts)


def _means(
    codes: NDArray[np.intp], fold: NDArray[np.intp], target: Array, weights: Array, count: int
) -> tuple[Array, Array]:
    """For every row the mean target of its category on the other folds; for every category that on all of them."""
    cell, size, excess = codes * FOLDS + fold, count * FOLDS, target - weights @ target / weights.sum()
    mass = np.bincount(cell, weights, size).reshape(count, FOLDS)
    excess = np.bincount(cell, weights * excess, size).reshape(count, FOLDS)
    every = excess.sum(axis=1) / (mass.sum(axis=1) + PRIOR_ROWS)
    others = (excess.sum(axis=1)[:, None] - excess) / (mass.sum(axis=1)[:, None] - mass + PRIOR_ROWS)
    step = DIGITS * max(float(np.ptp(target)), np.finfo(np.float64).tiny)
    return np.rint(others / step)[codes, fold] * step, np.rint(every / step) * step
