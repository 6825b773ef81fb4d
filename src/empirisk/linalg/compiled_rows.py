"""Rows of a design for compiled loops: the same few operations on dense and on sparse rows.

`DenseRowArrays`, `SparseRowArrays` and `GramRowArrays` hold the arrays; `row_dot` and `row_add` are compiled for
whichever a loop is given, so that each loop is written once.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from empirisk.linalg.compiled import inner_with
from empirisk.linalg.design import Design


class DenseRowArrays(NamedTuple):
    """Rows X_i - shift."""

    X: NDArray
    shift: NDArray[np.float64]


class SparseRowArrays(NamedTuple):
    """The three arrays of a CSR matrix."""

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]


class GramRowArrays(NamedTuple):
    """Samples behind a kernel, where a vector is known by its products with them."""

    K: NDArray[np.float64]


def compiled_rows(design: Design, shifted: bool = True) -> DenseRowArrays | SparseRowArrays | GramRowArrays:
    """The rows of a design; without its shift where ``shifted`` is False."""
    if design.implicit:
        return GramRowArrays(np.ascontiguousarray(design.outer()))
    matrix = getattr(design, "by_row", None)
    if matrix is not None:
        return SparseRowArrays(matrix.data, matrix.indices, matrix.indptr)
    shift = design.shift if shifted and design.shift is not None else np.zeros(design.shape[1])
    return DenseRowArrays(np.ascontiguousarray(design.X), shift)  # type: ignore[attr-defined]


# Sums of dense rows may be reordered, which lets the processor add several numbers at once; NaN and infinity stay
# exact. Sparse rows lose by it: they are short, and gathering is slow.
@inner_with({"reassoc", "contract"})
def shifted_dot(x, shift, w):
    """<x - shift, w>."""
    total = 0.0
    for j in range(len(w)):
        total += (x[j] - shift[j]) * w[j]
    return total


def row_dot(rows, i, w):
    """<a_i, w>; inside compiled loops only."""


def row_add(rows, i, factor, total):
    """total += factor a_i; inside compiled loops only."""


@overload(row_dot)
def _row_dot(rows, i, w):
    def dense(rows, i, w):
        X, shift = rows
        return shifted_dot(X[i], shift, w)

    def sparse(rows, i, w):
        data, indices, indptr = rows
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * w[indices[p]]
        return total

    def behind_kernel(rows, i, w):
        return w[i]

    return {"X": dense, "data": sparse, "K": behind_kernel}[rows.fields[0]]


@overload(row_add)
def _row_add(rows, i, factor, total):
    def dense(rows, i, factor, total):
        X, shift = rows
        x = X[i]
        for j in range(len(total)):
            total[j] += factor * (x[j] - shift[j])

    def sparse(rows, i, factor, total):
        data, indices, indptr = rows
        for p in range(indptr[i], indptr[i + 1]):
            total[indices[p]] += factor * data[p]

    def behind_kernel(rows, i, factor, total):
        row = rows.K[i]
        for j in range(len(total)):
            total[j] += factor * row[j]

    return {"X": dense, "data": sparse, "K": behind_kernel}[rows.fields[0]]
