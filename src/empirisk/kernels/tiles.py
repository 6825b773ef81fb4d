"""Blocks of kernels tile by tile: a matrix product, then the formula while the tile is in the cache."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.errors import EmpiriskError
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.threads import in_threads
from empirisk.settings import require

TILE_BYTES = 1 << 20  # a tile stays in the second cache between the product and the formula
ROWS = 256  # a slice for one thread, the same for any number of them
STRIP = 32  # rows of a transposed copy: they stay in the first cache
_local = threading.local()
DENSE_ENOUGH = 0.02  # above this share of non-zeros a dense product is faster than a sparse one

Finish = Callable[[slice, slice, NDArray], None]


def slices(length: int, step: int, begin: int = 0) -> list[slice]:
    """Slices of one step that cover a length from its begin on."""
    return [slice(start, min(start + step, length)) for start in range(begin, length, step)]


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


def fill(out: NDArray, formula: Finish, symmetric: bool, direct: bool = False) -> NDArray:
    """Run formula(rows, columns, tile) over all tiles in threads; a symmetric block is computed once.

    The tiles depend on the shape alone, so the bits do not depend on the number of threads. A tile is a compact array
    of its own, which compiled loops need, or with ``direct`` a view of the result.
    """
    step = 512 if out.dtype == np.float32 else 256  # rows and columns of a tile of at most TILE_BYTES
    rows, columns = slices(len(out), step), slices(out.shape[1], step)
    tiles = [(a, b) for i, a in enumerate(rows) for b in (columns[i:] if symmetric else columns)]

    def run(tile: tuple[slice, slice]) -> None:
        a, b = tile
        work = out[a, b] if direct else workspace((a.stop - a.start, b.stop - b.start), out.dtype)
        formula(a, b, work)
        if symmetric and a == b:
            mirror(work)
        elif symmetric:
            for some in slices(len(work), STRIP):
                out[b, a][:, some] = work[some].T
        if not direct:
            out[a, b] = work

    in_threads(run, tiles)
    return out


def workspace(shape: tuple[int, int], dtype: Any) -> NDArray:
    """An array of one tile, the same memory for every tile of a thread: fresh memory costs more than the product."""
    if not hasattr(_local, "memory"):
        _local.memory = np.empty(TILE_BYTES, np.uint8)
    count = shape[0] * shape[1]
    return _local.memory[: count * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


def mirror(block: NDArray) -> None:
    """Copy the upper triangle to the lower one."""
    for rows in slices(len(block), STRIP):
        block[rows.stop :, rows] = block[rows, rows.stop :].T
        upper = np.triu(block[rows, rows])
        block[rows, rows] = upper + np.triu(upper, 1).T


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
    in_threads(lambda i: fill_row(i, i if B is None else 0, out[i]), range(len(A)))
    if B is None:
        mirror(out)
    return out


def products(A: Any, B: Any, out: NDArray | None, finish: Finish = lambda rows, columns, tile: None) -> NDArray:
    """<a_i, b_j> for all rows, then finish(rows, columns, tile) on every tile; B is A if None."""
    symmetric = B is None
    B = A if symmetric else B
    require_same_columns(A, B)
    out = result(A.shape[0], B.shape[0], dtype_of(A), out)
    if sparse.issparse(A) and sparse.issparse(B) and min(density(A), density(B)) < DENSE_ENOUGH:
        return _sparse_products(A, B, out, finish, symmetric)
    A = dense(A)
    B = A if symmetric else dense(B)

    def formula(rows: slice, columns: slice, tile: NDArray) -> None:
        np.matmul(A[rows], B[columns].T, out=tile)
        finish(rows, columns, tile)

    return fill(out, formula, symmetric, direct=True)


def _sparse_products(A: Any, B: Any, out: NDArray, finish: Finish, symmetric: bool) -> NDArray:
    transposed = B.T.tocsr()
    everything = slice(0, B.shape[0])

    def run(rows: slice) -> None:
        tile = (A[rows] @ transposed).toarray()
        finish(rows, everything, tile)
        out[rows] = tile

    in_threads(run, slices(A.shape[0], ROWS))
    if symmetric:
        mirror(out)
    return out


def density(A: Any) -> float:
    """The share of entries that a sparse matrix stores."""
    return A.nnz / max(A.shape[0] * A.shape[1], 1)


def dense(A: Any) -> NDArray:
    """A as an array."""
    return A.toarray() if sparse.issparse(A) else A


def squared_norms(A: Any) -> NDArray:
    """|a_i|^2 of every row, in float64."""
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
def differences(A, transposed, tile):
    """sum_k |a_ik - b_jk| into a tile; B comes transposed so that the inner loop runs over its rows."""
    for i in range(A.shape[0]):
        line = tile[i]
        line[:] = 0
        for k in range(A.shape[1]):
            value = A[i, k]
            for j in range(len(line)):
                line[j] += abs(value - transposed[k, j])
