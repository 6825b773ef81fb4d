"""Blocks of kernels tile by tile: a matrix product, then the formula while the tile is in the cache."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.errors import EmpiriskError
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.blocks import slices
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.threads import parallel_map
from empirisk.linalg.tiled import mirror
from empirisk.settings import require

#: Rows and columns of a tile, which stays in the second cache between the product and the formula.
SIDE = {np.dtype(np.float32): 512, np.dtype(np.float64): 256}
ROWS = 256  # a slice for one thread, the same for any number of them
DENSE_ENOUGH = 0.02  # above this share of non-zeros a dense product is faster than a sparse one

Finish = Callable[[slice, slice, NDArray], None]


def result(rows: int, columns: int, dtype: Any, out: NDArray | None) -> NDArray:
    """``out``, or a new array for the block if the budget allows it."""
    if out is not None:
        return out
    require(
        rows * columns * np.dtype(dtype).itemsize,
        f"A kernel block of {rows} x {columns}",
        "take fewer rows at a time, or approximate the kernel with maps.Nystrom",
    )
    return np.empty((rows, columns), dtype)


def dtype_of(A: Any) -> Any:
    """float32 for float32 items, float64 for all others."""
    return np.float32 if getattr(A, "dtype", None) == np.float32 else np.float64


def require_same_columns(A: Any, B: Any) -> None:
    """Raise if two tables have different numbers of columns."""
    if A.shape[1] != B.shape[1]:
        raise EmpiriskError(
            f"X has {A.shape[1]} columns and Z has {B.shape[1]}; a kernel compares rows of equal length."
        )


def by_rows(A: Any, B: Any, out: NDArray | None, fill_row: Callable[[int, int, NDArray], None]) -> NDArray:
    """A block in threads, row by row: fill_row(i, start, line) writes line[start:]; a symmetric block is computed once.

    For items that are compared one by one; B is A if None.
    """
    others = A if B is None else B
    out = result(len(A), len(others), np.float64, out)
    parallel_map(lambda i: fill_row(i, i if B is None else 0, out[i]), range(len(A)))
    if B is None:
        mirror(out)
    return out


def products(A: Any, B: Any, out: NDArray | None, finish: Finish = lambda rows, columns, tile: None) -> NDArray:
    """<a_i, b_j> for all rows, then finish(rows, columns, tile) on every tile; B is A if None."""
    symmetric = B is None
    B = A if symmetric else B
    require_same_columns(A, B)
    out = result(A.shape[0], B.shape[0], dtype_of(A), out)
    sparsely = thin(A, B)
    if sparsely:
        columns, right = [slice(0, B.shape[0])], B.T.tocsr()
    else:
        A = dense(A)
        columns, right = slices(B.shape[0], SIDE[out.dtype]), A.T if symmetric else dense(B).T

    def run(tile: tuple[slice, slice]) -> None:
        if sparsely:
            out[tile] = (A[tile[0]] @ right).toarray()
        else:
            np.matmul(A[tile[0]], right[:, tile[1]], out=out[tile])
        finish(*tile, out[tile])

    rows = slices(A.shape[0], ROWS if sparsely else SIDE[out.dtype])
    parallel_map(run, [(a, b) for a in rows for b in columns if not symmetric or a.start < b.stop])
    if symmetric:
        mirror(out)
    return out


def thin(*tables: Any) -> bool:
    """Whether all are sparse, and so few entries are stored that sparse products are the faster ones."""
    return all(map(sparse.issparse, tables)) and min(map(density, tables)) < DENSE_ENOUGH


def density(A: Any) -> float:
    """The share of entries that a sparse matrix stores."""
    return A.nnz / max(A.shape[0] * A.shape[1], 1)


def dense(A: Any) -> NDArray:
    """A as an array."""
    return A.toarray() if sparse.issparse(A) else A


def squared_norms(A: Any) -> NDArray:
    """|a_i|^2 of every row, in float64."""
    if lie_on_device(A):
        return A.squared_norms()
    if sparse.issparse(A):
        values = A.data.astype(np.float64)
        return np.bincount(np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), values * values, minlength=A.shape[0])
    out = np.empty(len(A))
    for rows in slices(len(A), ROWS):
        block = A[rows].astype(np.float64, copy=False)
        np.einsum("ij,ij->i", block, block, out=out[rows])
    return out


def integer_power(values: NDArray, exponent: int) -> None:
    """Raise values to a whole power >= 0, in place, by squaring: far faster than a general power."""
    base = values.copy() if exponent & (exponent - 1) else None
    if exponent == 0:
        values[...] = 1
    for bit in bin(exponent)[3:]:
        np.multiply(values, values, out=values)
        if bit == "1" and base is not None:
            np.multiply(values, base, out=values)


@plain_loop
def differences(A, transposed, first, out):
    """sum_k |a_ik - b_jk| into rows of a block, from a column on.

    B comes transposed so that the inner loop runs over its rows, and some of its columns at a time stay in the cache.
    """
    for start in range(first, out.shape[1], ROWS):
        for i in range(A.shape[0]):
            line = out[i, start : start + ROWS]
            line[:] = 0
            for k in range(A.shape[1]):
                value, others = A[i, k], transposed[k, start : start + ROWS]
                for j in range(len(line)):
                    line[j] += abs(value - others[j])
