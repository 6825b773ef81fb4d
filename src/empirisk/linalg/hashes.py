"""Hashes of rows: equal rows have equal ones, in every kind of table, and the order by them is that of the content."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from empirisk.linalg.compiled import ODD, mixed

Array = NDArray[np.float64]
Hashes = NDArray[np.uint64]


def row_hashes(X: Any) -> Hashes:
    """A hash of the content of each row of an array, a sparse matrix or a data frame; zeros add nothing."""
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        return _summed([_numbers(frame[:, column].to_numpy()) for column in range(frame.shape[1])])
    if issparse(X):
        sparse = X.tocoo()
        entries = mixed_with(_bits(sparse.data), np.asarray(sparse.col, dtype=np.uint64))
        total = np.zeros(X.shape[0], dtype=np.uint64)
        np.add.at(total, sparse.row, np.where(sparse.data == 0, np.uint64(0), entries))
        return total
    X = np.asarray(X)
    return _summed([_numbers(X[:, column]) for column in range(X.shape[1])])


def _numbers(column: NDArray) -> Array:
    """A column as floats: its numbers, or numbers for its distinct values where it holds text."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)


def _bits(values: NDArray) -> Hashes:
    values = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(values), np.nan, values).view(np.uint64)  # one NaN for all


def mixed_with(bits: Hashes, salt: Hashes | np.uint64) -> Hashes:
    """splitmix64 of bits and a salt."""
    return mixed((bits ^ (salt * ODD)) + ODD)


def _summed(columns: list[Array]) -> Hashes:
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for number, values in enumerate(columns):
        entries = mixed_with(_bits(values), np.array([number], dtype=np.uint64))
        total += np.where(values == 0, np.uint64(0), entries)
    return total


def distinct_rows(X: Any, weights: Array) -> tuple[NDArray[np.intp], Array]:
    """One of every set of equal rows that have weight, and the weight of the set, in an order by their content.

    A fit to these rows knows the table as a weighted set: weight 2 is the row twice, and the order does not matter.
    """
    counting = np.flatnonzero(weights > 0)
    hashes = row_hashes(X)[counting]
    _, first, member = np.unique(hashes, return_index=True, return_inverse=True)
    total: Any = np.bincount(member, weights[counting])
    return counting[first], total
