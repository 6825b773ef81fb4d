"""Columns sorted once: what an exact tree, or many of them on the same rows, start from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import in_threads
from empirisk.settings import require

Array = NDArray[np.float64]

MISSING = np.int64((1 << 31) - 1)  # rank of a missing value: after all others
ROW = (1 << 32) - 1  # mask of the row in a key
LARGE_NODE = 1 << 18  # values in a node from which its columns are shared among threads


@dataclass(frozen=True, eq=False)
class Presorted:
    """Each column as a sorted list of keys, and the distinct values that the ranks stand for.

    A key is ``rank << 32 | row``: one number carries the order and the row, and rows of one value share a rank.

    Attributes
    ----------
    keys : (n_features, n_rows) int64
        Sorted keys of each column; missing values have the last rank.
    values : (n_distinct,) float64
        Distinct values of all columns, one column after the other.
    first : (n_features + 1,) int64
        Where each column starts in `values`.
    """

    keys: NDArray[np.int64]
    values: Array
    first: NDArray[np.int64]


def presort(X: Array) -> Presorted:
    """Sort every column of ``X`` (NaN is missing)."""
    n_rows, n_features = X.shape
    require(8 * n_rows * n_features, "the sorted columns of an exact tree", "use a forest or boosting, which bin them")
    keys = np.empty((n_features, n_rows), dtype=np.int64)

    def sort(column: int) -> Array:
        x = np.ascontiguousarray(X[:, column])
        order = np.argsort(x)
        x = x[order]
        starts = np.append(True, x[1:] != x[:-1])  # every NaN starts a rank of its own: they come last, and have none
        keys[column] = np.where(np.isnan(x), MISSING, np.cumsum(starts) - 1) << 32 | order
        return x[starts & ~np.isnan(x)]

    columns = range(n_features)
    distinct = in_threads(sort, columns) if X.size >= LARGE_NODE else [sort(column) for column in columns]
    first = np.concatenate([[0], np.cumsum([len(values) for values in distinct])]).astype(np.int64)
    return Presorted(keys, np.concatenate(distinct), first)
