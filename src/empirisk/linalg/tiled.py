"""Products and Cholesky factors of large matrices by tiles, in threads: bits depend on the tiles, not on the threads.

LAPACK's own threads would change them, and beside other programs they wait for each other. Its one-threaded routines
work on each tile where it lies.
"""

from threading import Event

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import lapack

from empirisk.linalg.blocks import slices
from empirisk.linalg.lapack import routines
from empirisk.linalg.threads import POLL_SECONDS, parallel_map
from empirisk.stop import check_stop

#: Rows and columns of a tile: products of smaller ones are slower, and of larger ones there are too few for threads.
TILE = 256
#: Rows or columns of the factor that a thread multiplies with a vector at once; no more rows than that are one tile.
STRIP = 1024
#: Rows of a transposed copy: they stay in the first cache.
FEW = 32


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
    by, size = routines(matrix.dtype), TILE if len(matrix) > STRIP else STRIP
    spans = slices(len(matrix), size)
    done = {(i, j): Event() for j in range(len(spans)) for i in range(j, len(spans))}

    def wait(tile: tuple[int, int]) -> None:
        while not done[tile].wait(POLL_SECONDS):
            check_stop()

    def run(tile: tuple[int, int]) -> None:
        i, j = tile
        part = matrix[spans[i], spans[j]]
        try:
            if j:
                wait((i, j - 1))
                wait((j, j - 1))
            left, above = (matrix[spans[k], : spans[j].start] for k in (i, j))
            if i == j:
                by.subtract_square(part, left)
                if not by.factor(part):
                    raise LinAlgError("the matrix is not positive definite to working precision")
            else:
                by.subtract(part, left, above)
                wait((j, j))
                by.divide(part, matrix[spans[j], spans[j]])
        except BaseException:
            for event in done.values():  # wakes the threads that wait for a tile that will not be computed
                event.set()
            raise
        done[tile].set()

    parallel_map(run, list(done))


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

    parallel_map(run, [(rows, columns) for i, rows in enumerate(strips) for columns in strips[: i + 1]])
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

    parallel_map(run, slices(len(matrix), FEW))


def solve(L: NDArray, right: NDArray) -> NDArray:
    """The solution x of  L L' x = right,  for one or several right-hand sides, in the precision of L.

    >>> solve(np.array([[2.0, 0.0], [1.0, 2.0]]), np.array([8.0, 12.0]))
    array([1., 2.])
    """
    if len(L) <= STRIP:  # LAPACK itself has a quicker way for one vector
        potrs = lapack.spotrs if L.dtype == np.float32 else lapack.dpotrs
        return potrs(L.T, right.astype(L.dtype, copy=False), lower=False)[0] if len(L) else right
    x = np.array(right, L.dtype, order="C").reshape(len(right), -1)
    by, strips = routines(L.dtype), slices(len(L), STRIP)
    for transposed, order, factor in ((False, strips, L), (True, strips[::-1], L.T)):
        # Some columns by one thread, then what they leave of the other rows by all.
        for done, strip in enumerate(order, 1):
            by.solve(x[strip], L[strip, strip], transposed)

            def subtract(rows: slice, factor: NDArray = factor, strip: slice = strip) -> None:
                x[rows] -= factor[rows, strip] @ x[strip]

            parallel_map(subtract, order[done:])
    return x.reshape(right.shape)
