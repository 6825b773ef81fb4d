"""Routines of BLAS and LAPACK by their addresses in SciPy's library: while they work, Python's lock is free.

SciPy's own functions hold it, so that no other thread can work, nor listen to Ctrl-C. Those here are for matrices of
any size: one that takes long is left behind when the flag goes up. NumPy has no such routines.
"""

from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_char_p, c_double, c_int, c_void_p
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from empirisk.linalg.blocks import over_rows, rowwise
from empirisk.linalg.threads import patiently

Array = NDArray[np.float64]

#: Directions of a smaller share of the largest are rounding to `least_squares`.
RANK = float(np.finfo(np.float64).eps)


@cache
def routine(name: str, texts: int, addresses: int) -> Callable[..., None]:
    """A routine of BLAS or LAPACK: some letters that say what is done, and then addresses alone."""
    for module in ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"):
        if name in import_module(module).__pyx_capi__:
            kinds = [c_char_p] * texts + [c_void_p] * addresses
            return CFUNCTYPE(None, *kinds)(get_cython_function_address(module, name))
    raise LookupError(f"SciPy's libraries have no {name}.")


def place(matrix: NDArray) -> tuple[Any, Any]:
    """Where a C-ordered matrix begins, and how far apart its rows are; Fortran's routines see its transpose."""
    if matrix.shape[1] > 1 and matrix.strides[1] != matrix.itemsize:
        raise ValueError("LAPACK would read past the end of a matrix that is not C-ordered.")
    return address(matrix), whole(matrix.strides[0] // matrix.itemsize)


def address(values: NDArray) -> Any:
    """Where an array begins."""
    return c_void_p(values.ctypes.data)


def whole(number: int) -> Any:
    """The address of a whole number."""
    return byref(c_int(number))


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
    _invert(routine("dpotri", 1, 4), [b"U"], factor)


def invert_triangle(factor: Array) -> None:
    """The lower factor L, in a C-ordered matrix, becomes L^-1.

    >>> matrix = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> invert_triangle(matrix)
    >>> matrix
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    _invert(routine("dtrtri", 2, 4), [b"U", b"N"], factor)


def _invert(method: Callable[..., None], texts: list[bytes], factor: Array) -> None:
    """By one of LAPACK's methods, in the place of the factor."""
    failed = c_int(0)
    patiently(lambda: method(*texts, whole(len(factor)), *place(factor), byref(failed)), len(factor))
    if failed.value:
        raise LinAlgError("the factor is singular")


def thin_factor(K: Array, tolerance: float, most: int) -> Array | None:
    """G with K = G G' to that tolerance, or None where it has more columns than ``most``.

    >>> thin_factor(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-9, 1)
    array([[1.],
           [2.]])
    """
    size, square = len(K), copied(K)
    order, rank, failed = np.zeros(size, dtype=np.intc), c_int(0), c_int(0)
    work = np.empty(2 * size)
    pstrf = routine("dpstrf", 1, 8)

    def run() -> None:
        limits = byref(rank), byref(c_double(tolerance))
        pstrf(b"L", whole(size), *place(square), address(order), *limits, address(work), byref(failed))

    patiently(run, size)
    if rank.value > most:
        return None
    found = np.empty((size, rank.value))

    def write(items: slice) -> None:
        found[order[items] - 1] = np.triu(square[: rank.value, items], -items.start).T

    over_rows(write, size, 8 * rank.value)
    return found


def largest_pairs(matrix: Array, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues, increasing, and their vectors as columns; fewer where many are equal but for rounding.

    >>> values, vectors = largest_pairs(np.diag([1.0, 3.0, 2.0]), 2)
    >>> values, abs(vectors.round(9))
    (array([2., 3.]), array([[0., 0.],
           [0., 1.],
           [1., 0.]]))
    """
    size, square = len(matrix), copied(matrix)
    values, vectors = np.empty(size), np.empty((count, size))
    found, failed, support = c_int(0), c_int(0), np.empty(2 * size, dtype=np.intc)
    syevr = routine("dsyevr", 3, 18)

    def run(work: Array, numbers: NDArray[np.intc], lengths: tuple[int, int]) -> None:
        zero = byref(c_double(0.0))
        part = zero, zero, whole(size - count + 1), whole(size), zero
        pairs = byref(found), address(values), *place(vectors), address(support)
        room = address(work), whole(lengths[0]), address(numbers), whole(lengths[1])
        syevr(b"V", b"I", b"L", whole(size), *place(square), *part, *pairs, *room, byref(failed))

    work, numbers = np.empty(1), np.empty(1, dtype=np.intc)
    run(work, numbers, (-1, -1))  # it says how much room it wants
    work, numbers = np.empty(int(work[0])), np.empty(int(numbers[0]), dtype=np.intc)
    patiently(lambda: run(work, numbers, (len(work), len(numbers))), size)
    if failed.value:
        raise LinAlgError("the eigenvalues do not converge")
    return values[: found.value], vectors[: found.value].T


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
    order, rank, failed = np.zeros(columns, dtype=np.intc), c_int(0), c_int(0)
    gelsy = routine("dgelsy", 0, 13)

    def run(work: Array, length: int) -> None:
        sides = *place(transposed), *place(solution)
        ranks = address(order), byref(c_double(RANK)), byref(rank)
        sizes = whole(rows), whole(columns), whole(1)
        gelsy(*sizes, *sides, *ranks, address(work), whole(length), byref(failed))

    work = np.empty(1)
    run(work, -1)
    work = np.empty(int(work[0]))
    patiently(lambda: run(work, len(work)), max(rows, columns))
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
    most = min(rows, columns)
    transposed, order, factors = np.array(matrix.T, order="C"), np.zeros(columns, dtype=np.intc), np.empty(most)
    if not most:
        return np.empty((rows, 0)), np.empty((0, 0)), np.empty(0, dtype=np.intp)
    _with_room("dgeqp3", 9, (rows, columns), transposed, (order, factors))
    r = np.tril(transposed[:most, :most]).T
    rank = int(np.sum(np.abs(r.diagonal()) > tolerance))
    if rank:
        _with_room("dorgqr", 9, (rows, rank, rank), transposed, (factors,))
    return transposed[:rank].T, r[:rank, :rank], order[:rank].astype(np.intp) - 1


def _with_room(name: str, addresses: int, sizes: tuple[int, ...], matrix: Array, arrays: tuple[NDArray, ...]) -> None:
    """A routine of LAPACK on the transpose of a matrix, in its place, with as much room to work as it asks for."""
    method, failed = routine(name, 0, addresses), c_int(0)

    def run(work: Array, length: int) -> None:
        parts = *map(whole, sizes), *place(matrix), *map(address, arrays)
        method(*parts, address(work), whole(length), byref(failed))

    work = np.empty(1)
    run(work, -1)
    work = np.empty(int(work[0]))
    patiently(lambda: run(work, len(work)), max(matrix.shape))
