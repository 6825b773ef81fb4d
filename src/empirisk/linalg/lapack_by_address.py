"""Routines of BLAS and LAPACK by their addresses in SciPy's library: while they work, Python's lock is free.

SciPy's own functions hold it, so that no other thread can work, nor listen to Ctrl-C; NumPy has no such routines.
Matrices are C-ordered, perhaps parts of larger ones: Fortran sees their transposes. Routines work in their place.
`empirisk.linalg.lapack_by_scipy` does the same without addresses.
"""

from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_char_p, c_double, c_float, c_int, c_void_p, py_object, pythonapi
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

MODULES = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")


class OtherSignature(LookupError):
    """SciPy's library has no routine of this name with these arguments."""


@cache
def routine(name: str, signature: str) -> Callable[..., None]:
    """A routine whose arguments are, letter by letter, addresses of characters, ints, doubles (d) or floats (s).

    SciPy states the type of each routine, and another one is refused: a build with integers of 64 bits, say.

    >>> routine("dpotri", "cidii") is None
    False
    """
    for module in MODULES:
        capsule = getattr(import_module(module), "__pyx_capi__", {}).get(name)
        if capsule is not None and _letters(capsule) == signature:
            kinds = [c_char_p if letter == "c" else c_void_p for letter in signature]
            return CFUNCTYPE(None, *kinds)(get_cython_function_address(module, name))
    raise OtherSignature(f"SciPy's libraries have no routine {name}({signature}).")


def _letters(capsule: Any) -> str:
    """The types that a capsule of Cython states for a function, "void (char *, int *, ..._d *)", as letters."""
    name_of = pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = c_char_p, [py_object]
    stated = name_of(capsule).decode()
    types = stated.removeprefix("void (").removesuffix(")").split(", ")
    return "".join("c" if kind == "char *" else "i" if kind == "int *" else kind[-3] for kind in types)


def place(matrix: NDArray) -> tuple[Any, Any]:
    """Where a C-ordered matrix begins, and how far apart its rows are."""
    if matrix.shape[1] > 1 and matrix.strides[1] != matrix.itemsize:
        raise ValueError("LAPACK would read past the end of a matrix that is not C-ordered.")
    return address(matrix), whole(matrix.strides[0] // matrix.itemsize)


def address(values: NDArray) -> Any:
    """Where an array begins."""
    return c_void_p(values.ctypes.data)


def whole(number: int) -> Any:
    """The address of a whole number."""
    return byref(c_int(number))


class AddressedRoutines:
    """The routines of one precision, "d" or "s"; `OtherSignature` where SciPy has others.

    Parameters
    ----------
    letter : str
        The precision.
    """

    def __init__(self, letter: str):
        def named(name: str, signature: str) -> Callable[..., None]:
            return routine(letter + name, signature.replace("f", letter))

        self._number, self._dtype = (c_double, np.float64) if letter == "d" else (c_float, np.float32)
        self._potrf, self._potri = named("potrf", "cifii"), named("potri", "cifii")
        self._trtri, self._pstrf = named("trtri", "ccifii"), named("pstrf", "cifiiiffi")
        self._syevr = named("syevr", "cccififfiififfiifiiii")
        self._gelsy = named("gelsy", "iiififiififii")
        self._trsm, self._gemm = named("trsm", "cccciiffifi"), named("gemm", "cciiiffififfi")
        self._syrk = named("syrk", "cciiffiffi")

    def factor(self, matrix: NDArray) -> bool:
        """The matrix becomes L with matrix = L L', above which stays what was there; whether it is definite."""
        failed = c_int(0)
        self._potrf(b"U", whole(len(matrix)), *place(matrix), byref(failed))
        return not failed.value

    def invert_product(self, factor: NDArray) -> bool:
        """The lower factor L becomes the lower triangle of (L L')^-1; whether it can be inverted."""
        failed = c_int(0)
        self._potri(b"U", whole(len(factor)), *place(factor), byref(failed))
        return not failed.value

    def invert_triangle(self, factor: NDArray) -> bool:
        """The lower factor L becomes L^-1; whether it can be inverted."""
        failed = c_int(0)
        self._trtri(b"U", b"N", whole(len(factor)), *place(factor), byref(failed))
        return not failed.value

    def factor_with_pivots(self, square: NDArray, tolerance: float) -> tuple[NDArray[np.intc], int]:
        """The upper triangle becomes a factor of that tolerance; the order of its columns, from 1 on, and its rank."""
        size, rank, failed = len(square), c_int(0), c_int(0)
        order, work = np.zeros(size, dtype=np.intc), np.empty(2 * size, self._dtype)
        limits = byref(rank), byref(self._number(tolerance))
        self._pstrf(b"L", whole(size), *place(square), address(order), *limits, address(work), byref(failed))
        return order, rank.value

    def largest_pairs(self, square: NDArray, count: int) -> tuple[NDArray, NDArray] | None:
        """The largest eigenvalues, increasing, and their vectors as rows; None where they do not converge."""
        size, found, failed = len(square), c_int(0), c_int(0)
        values, vectors = np.empty(size, self._dtype), np.empty((count, size), self._dtype)
        support, zero = np.empty(2 * size, dtype=np.intc), byref(self._number(0))

        def run(work: NDArray, numbers: NDArray[np.intc], lengths: tuple[int, int]) -> None:
            part = zero, zero, whole(size - count + 1), whole(size), zero
            pairs = byref(found), address(values), *place(vectors), address(support)
            room = address(work), whole(lengths[0]), address(numbers), whole(lengths[1])
            self._syevr(b"V", b"I", b"L", whole(size), *place(square), *part, *pairs, *room, byref(failed))

        work, numbers = np.empty(1, self._dtype), np.empty(1, dtype=np.intc)
        run(work, numbers, (-1, -1))  # it says how much room it wants
        work, numbers = np.empty(int(work[0]), self._dtype), np.empty(int(numbers[0]), dtype=np.intc)
        run(work, numbers, (len(work), len(numbers)))
        return None if failed.value else (values[: found.value], vectors[: found.value])

    def least_squares(self, transposed: NDArray, solution: NDArray, least: float) -> None:
        """The right-hand side, one row that is long enough, becomes the shortest of the best solutions.

        Directions of a smaller share of the largest than ``least`` are left out. The matrix is overwritten.
        """
        columns, rows = transposed.shape
        order, rank = np.zeros(columns, dtype=np.intc), c_int(0)
        sides = *place(transposed), *place(solution)
        parts = *map(whole, (rows, columns, 1)), *sides, address(order), byref(self._number(least)), byref(rank)
        self._with_room(self._gelsy, parts)

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

    def _with_room(self, method: Callable[..., None], parts: tuple[Any, ...]) -> None:
        """A routine with as much room to work as it asks for."""
        failed, work = c_int(0), np.empty(1, self._dtype)
        method(*parts, address(work), whole(-1), byref(failed))
        work = np.empty(int(work[0]), self._dtype)
        method(*parts, address(work), whole(len(work)), byref(failed))
