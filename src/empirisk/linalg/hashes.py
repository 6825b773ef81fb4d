"""Hashes of rows, in every kind of table, and sets of equal rows in an order that depends on their content alone."""

from contextlib import suppress
from hashlib import blake2b
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
    if hasattr(X, "row_hashes"):  # rows in files know how to hash themselves
        return X.row_hashes()
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
    if not any(isinstance(value, str) for value in column):
        with suppress(TypeError, ValueError):  # numbers as objects stand in the order of numbers
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


def row_digests(*arrays: NDArray) -> NDArray[np.void]:
    """A digest of 16 bytes for the bytes of each row of some arrays together."""
    rows = (b"".join(part.tobytes() for part in parts) for parts in zip(*arrays, strict=True))
    return np.array([blake2b(row, digest_size=16).digest() for row in rows], dtype="V16")


def equal_keys(keys: NDArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sets of rows with equal keys, in the order of the keys: the first row of each, and the set of every row.

    Keys are what the order of the sets, or speed, asks for: `row_hashes` for tables of any kind, `row_digests` where no
    two rows may be taken for equal by chance, hashes of Polars, or the rows of a matrix themselves.

    >>> equal_keys(np.array([[2.0, 1.0], [0.0, 3.0], [2.0, 1.0]]))
    (array([1, 0]), array([1, 0, 1]))
    """
    axis = 0 if keys.ndim == 2 else None
    _, first, member = np.unique(keys, axis=axis, return_index=True, return_inverse=True)
    return first, member.ravel()


def equal_rows(X: Any, y: NDArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sets of rows that are equal in X and y, in an order by content: one row of each, and the set of every row."""
    target = row_hashes(y.reshape(len(y), -1))
    return equal_keys(row_hashes(X) + mixed_with(target, np.array([1 << 40], dtype=np.uint64)))


def distinct_rows(X: Any, weights: Array) -> tuple[NDArray[np.intp], Array]:
    """One of every set of equal rows that have weight, and the weight of the set, in an order by their content.

    A fit to these rows knows the table as a weighted set: weight 2 is the row twice, and the order does not matter.
    """
    counting = np.flatnonzero(weights > 0)
    first, member = equal_keys(row_hashes(X)[counting])
    total: Any = np.bincount(member, weights[counting])
    return counting[first], total
