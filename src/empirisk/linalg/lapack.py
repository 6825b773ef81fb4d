"""Factors, inverses, eigenvectors and least squares of matrices of any size, by LAPACK, with Python's lock free.

A call that takes long is left behind when the flag goes up.
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import qr

from empirisk.linalg.blocks import over_rows, rowwise
from empirisk.linalg.lapack_by_address import AddressedRoutines, OtherSignature
from empirisk.linalg.lapack_by_scipy import SciPyRoutines
from empirisk.linalg.threads import interruptible_call

Array = NDArray[np.float64]

DOUBLE = np.dtype(np.float64)
#: Directions of a smaller share of the largest are rounding to `least_squares`.
RANK = float(np.finfo(np.float64).eps)


@cache
def routines(dtype: np.dtype = DOUBLE) -> AddressedRoutines | SciPyRoutines:
    """The routines of a precision: by their addresses, or by SciPy's functions where those have other types."""
    letter = "s" if dtype == np.float32 else "d"
    try:
        return AddressedRoutines(letter)
    except OtherSignature:
        return SciPyRoutines(letter)


def copied(matrix: Array) -> Array:
    """A C-ordered copy, for a routine that works in the place of its matrix.

    >>> copied(np.ones((2, 2), order="F")).flags.c_contiguous
    True
    """
    return rowwise(partial(np.array, order="C"), matrix, row_bytes=8 * len(matrix))


def invert_product(factor: Array) -> None:
    """The lower factor L, in a C-ordered matrix, becomes the lower triangle of (L L')^-1.

    >>> matrix = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> invert_product(matrix)
    >>> matrix
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    _invert(routines().invert_product, factor)


def invert_triangle(factor: Array) -> None:
    """The lower factor L, in a C-ordered matrix, becomes L^-1.

    >>> matrix = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> invert_triangle(matrix)
    >>> matrix
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    _invert(routines().invert_triangle, factor)


def _invert(method: Callable[[Array], bool], factor: Array) -> None:
    """By one of LAPACK's methods, in the place of the factor."""
    if not interruptible_call(lambda: method(factor), len(factor)):
        raise LinAlgError("the factor is singular")


def thin_factor(K: Array, tolerance: float, most: int) -> Array | None:
    """G with K = G G' to that tolerance, or None where it has more columns than ``most``.

    >>> thin_factor(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-9, 1)
    array([[1.],
           [2.]])
    """
    size, square = len(K), copied(K)
    order, rank = interruptible_call(lambda: routines().factor_with_pivots(square, tolerance), size)
    if rank > most:
        return None
    found = np.empty((size, rank))

    def write(items: slice) -> None:
        found[order[items] - 1] = np.triu(square[:rank, items], -items.start).T

    over_rows(write, size, 8 * rank)
    return found


def largest_pairs(matrix: Array, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues, increasing, and their vectors as columns; fewer where many are equal but for rounding.

    >>> values, vectors = largest_pairs(np.diag([1.0, 3.0, 2.0]), 2)
    >>> values, abs(vectors.round(9))
    (array([2., 3.]), array([[0., 0.],
           [0., 1.],
           [1., 0.]]))
    """
    square = copied(matrix)
    pairs = interruptible_call(lambda: routines().largest_pairs(square, count), len(square))
    if pairs is None:
        raise LinAlgError("the eigenvalues do not converge")
    return pairs[0], pairs[1].T


def least_squares(matrix: Array, right: Array) -> Array:
    """The shortest x with the smallest |matrix x - right|, by columns in the order of their lengths.

    >>> least_squares(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([2.0, 4.0])).round(9)
    array([1.5, 1.5])
    """
    rows, columns = matrix.shape
    if not min(rows, columns):
        return np.zeros(columns)
    transposed, solution = np.array(matrix.T, order="C"), np.zeros((1, max(rows, columns)))
    solution[0, :rows] = right
    interruptible_call(lambda: routines().least_squares(transposed, solution, RANK), max(rows, columns))
    return solution[0, :columns]


def column_basis(matrix: Array, tolerance: float) -> tuple[Array, Array, NDArray[np.intp]]:
    """Q, R and chosen columns with  matrix[:, chosen] = Q R: what is left of any other beside Q is within tolerance.

    A QR factorisation that takes the longest of what is left of the columns next, and ends where that is too short.

    >>> q, r, chosen = column_basis(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), 1e-12)
    >>> abs(q @ r), chosen
    (array([[2.],
           [0.]]), array([1]))
    """
    rows, columns = matrix.shape
    if not min(rows, columns):
        return np.empty((rows, 0)), np.empty((0, 0)), np.empty(0, dtype=np.intp)
    # SciPy lets other threads work meanwhile.
    q, r, order = interruptible_call(
        lambda: qr(matrix, mode="economic", pivoting=True, check_finite=False), max(rows, columns)
    )
    rank = int(np.sum(np.abs(r.diagonal()) > tolerance))
    return q[:, :rank], r[:rank, :rank], order[:rank].astype(np.intp)
