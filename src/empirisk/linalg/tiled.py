"""Products and Cholesky factors of large matrices by tiles, in threads: bits depend on the tiles, not on the threads.

LAPACK's own threads would change them, and beside other programs they wait for each other. Its one-threaded routines
work on each tile where it lies.
"""

from ctypes import byref, c_double, c_float, c_int
from functools import cache
from threading import Event
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import lapack

from empirisk.linalg.blocks import slices
from empirisk.linalg.lapack import place, routine, whole
from empirisk.linalg.threads import PATIENCE, in_threads, look

#: Rows and columns of a tile: products of smaller ones are slower, and of larger ones there are too few for threads.
TILE = 256
#: Rows or columns of the factor that a thread multiplies with a vector at once; no more rows than that are one tile.
STRIP = 1024
#: Rows of a transposed copy: they stay in the first cache.
FEW = 32


class _Routines:
    """What is done to tiles of rows of a C-ordered matrix, whose transposes are what Fortran's routines see."""

    def __init__(self, letter: str, number: Any):
        self._number = number
        self._potrf = routine(letter + "potrf", 1, 4)
        self._trsm = routine(letter + "trsm", 4, 7)
        self._gemm = routine(letter + "gemm", 2, 11)
        self._syrk = routine(letter + "syrk", 2, 8)

    def subtract(self, tile: NDArray, left: NDArray, right: NDArray) -> None:
        """tile -= left right'."""
        rows, columns, depth = (whole(size) for size in (*tile.shape, left.shape[1]))
        minus, plus = byref(self._number(-1)), byref(self._number(1))
        a, b, c = map(place, (right, left, tile))
        self._gemm(b"T", b"N", columns, rows, depth, minus, *a, *b, plus, *c)

    def subtract_square(self, tile: NDArray, left: NDArray) -> None:
        """tile -= left left', up to the diagonal."""
        rows, depth = (whole(size) for size in left.shape)
        minus, plus = byref(self._number(-1)), byref(self._number(1))
        self._syrk(b"U", b"T", rows, depth, minus, *place(left), plus, *place(tile))

    def factor(self, tile: NDArray) -> None:
        """The tile, a symmetric matrix, becomes its factor L, above which stays what was there."""
        failed = c_int(0)
        self._potrf(b"U", whole(len(tile)), *place(tile), byref(failed))
        if failed.value:
            raise LinAlgError("the matrix is not positive definite to working precision")

    def divide(self, tile: NDArray, factor: NDArray) -> None:
        """Tile becomes tile L'^-1."""
        rows, columns = (whole(size) for size in tile.shape)
        one = byref(self._number(1))
        self._trsm(b"L", b"U", b"T", b"N", columns, rows, one, *place(factor), *place(tile))

    def solve(self, x: NDArray, factor: NDArray, transposed: bool) -> None:
        """X becomes L^-1 x, or L'^-1 x."""
        rows, columns = (whole(size) for size in x.shape)
        way, one = b"T" if transposed else b"N", byref(self._number(1))
        self._trsm(b"R", b"U", way, b"N", columns, rows, one, *place(factor), *place(x))


@cache
def _routines(dtype: np.dtype) -> _Routines:
    return _Routines("s", c_float) if dtype == np.float32 else _Routines("d", c_double)


def factor(matrix: NDArray) -> None:
    """The lower triangle of a C-ordered positive definite matrix becomes its factor L, with matrix = L L'.

    A tile waits for what stands before it in its rows and in those of its columns, which another thread has begun to
    compute already. What stands above the diagonal is not touched.

    >>> matrix = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor(matrix)
    >>> np.tril(matrix)
    array([[2., 0.],
           [1., 2.]])
    """
    routines, size = _routines(matrix.dtype), TILE if len(matrix) > STRIP else STRIP
    spans = slices(len(matrix), size)
    done = {(i, j): Event() for j in range(len(spans)) for i in range(j, len(spans))}

    def wait(tile: tuple[int, int]) -> None:
        while not done[tile].wait(PATIENCE):
            look()

    def run(tile: tuple[int, int]) -> None:
        i, j = tile
        part = matrix[spans[i], spans[j]]
        try:
            if j:
                wait((i, j - 1))
                wait((j, j - 1))
            left, above = (matrix[spans[k], : spans[j].start] for k in (i, j))
            if i == j:
                routines.subtract_square(part, left)
                routines.factor(part)
            else:
                routines.subtract(part, left, above)
                wait((j, j))
                routines.divide(part, matrix[spans[j], spans[j]])
        except BaseException:
            for event in done.values():  # nobody waits for what will not come
                event.set()
            raise
        done[tile].set()

    in_threads(run, list(done))


def outer(A: NDArray) -> NDArray:
    """A A', each tile by one thread.

    >>> outer(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[5., 2.],
           [2., 1.]])
    """
    out = np.empty((len(A), len(A)), A.dtype)
    strips = slices(len(A), STRIP)

    def run(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        out[rows, columns] = A[rows] @ A[columns].T
        out[columns, rows] = out[rows, columns].T

    in_threads(run, [(rows, columns) for i, rows in enumerate(strips) for columns in strips[: i + 1]])
    return out


def mirror(matrix: NDArray) -> None:
    """Copy the upper triangle to the lower one.

    >>> matrix = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> mirror(matrix)
    >>> matrix
    array([[1., 2.],
           [2., 3.]])
    """

    def run(rows: slice) -> None:
        matrix[rows.stop :, rows] = matrix[rows, rows.stop :].T
        upper = np.triu(matrix[rows, rows])
        matrix[rows, rows] = upper + np.triu(upper, 1).T

    in_threads(run, slices(len(matrix), FEW))


def solve(L: NDArray, right: NDArray) -> NDArray:
    """The solution x of  L L' x = right,  for one or several right-hand sides, in the precision of L.

    >>> solve(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([8.0, 12.0]))
    array([1., 2.])
    """
    if len(L) <= STRIP:  # LAPACK itself has a quicker way for one vector
        potrs = lapack.spotrs if L.dtype == np.float32 else lapack.dpotrs
        return potrs(L.T, right.astype(L.dtype, copy=False), lower=False)[0] if len(L) else right
    x = np.array(right, L.dtype, order="C").reshape(len(right), -1)
    routines, strips = _routines(L.dtype), slices(len(L), STRIP)
    for transposed, order, factor in ((False, strips, L), (True, strips[::-1], L.T)):
        # Some columns by one thread, then what they leave of the other rows by all.
        for done, strip in enumerate(order, 1):
            routines.solve(x[strip], L[strip, strip], transposed)

            def subtract(rows: slice, factor: NDArray = factor, strip: slice = strip) -> None:
                x[rows] -= factor[rows, strip] @ x[strip]

            in_threads(subtract, order[done:])
    return x.reshape(right.shape)
