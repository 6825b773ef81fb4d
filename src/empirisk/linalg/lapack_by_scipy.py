"""What `empirisk.linalg.lapack_by_address` does, by SciPy's own functions, which hold Python's lock while they work.

For builds of SciPy whose routines have other types. The results have the same bits; other threads wait.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack


class SciPyRoutines:
    """The routines of one precision, "d" or "s".

    Parameters
    ----------
    letter : str
        The precision.
    """

    def __init__(self, letter: str):
        self._letter = letter

    def _named(self, name: str) -> Any:
        """A function of SciPy; what it is given is the transpose of what is stored."""
        return getattr(blas, self._letter + name, None) or getattr(lapack, self._letter + name)

    def factor(self, matrix: NDArray) -> bool:
        """The matrix becomes L with matrix = L L', above which stays what was there; whether it is definite."""
        found, failed = self._named("potrf")(matrix.T, lower=False, clean=False)
        matrix[...] = found.T
        return not failed

    def invert_product(self, factor: NDArray) -> bool:
        """The lower factor L becomes the lower triangle of (L L')^-1; whether it can be inverted."""
        found, failed = self._named("potri")(factor.T, lower=False)
        factor[...] = found.T
        return not failed

    def invert_triangle(self, factor: NDArray) -> bool:
        """The lower factor L becomes L^-1; whether it can be inverted."""
        found, failed = self._named("trtri")(factor.T, lower=False)
        factor[...] = found.T
        return not failed

    def factor_with_pivots(self, square: NDArray, tolerance: float) -> tuple[NDArray[np.intc], int]:
        """The upper triangle becomes a factor of that tolerance; the order of its columns, from 1 on, and its rank."""
        found, order, rank, _ = self._named("pstrf")(square.T, tol=tolerance, lower=True)
        square[...] = found.T
        return order, rank

    def largest_pairs(self, square: NDArray, count: int) -> tuple[NDArray, NDArray] | None:
        """The largest eigenvalues, increasing, and their vectors as rows; None where they do not converge."""
        size = len(square)
        work, numbers, _ = self._named("syevr_lwork")(size, lower=True)
        room = {"lwork": int(work), "liwork": int(numbers)}
        part = {"range": "I", "il": size - count + 1, "iu": size}
        values, vectors, found, _, failed = self._named("syevr")(square.T, lower=True, **part, **room)
        return None if failed else (values[:found], vectors[:, :found].T)

    def least_squares(self, transposed: NDArray, solution: NDArray, least: float) -> None:
        """The right-hand side, one row that is long enough, becomes the shortest of the best solutions.

        Directions of a smaller share of the largest than ``least`` are left out. The matrix is overwritten.
        """
        columns, rows = transposed.shape
        room, _ = self._named("gelsy_lwork")(rows, columns, 1, least)
        order = np.zeros(columns, dtype=np.intc)
        solution[...] = self._named("gelsy")(transposed.T, solution.T, order, least, int(room))[1].T

    def subtract(self, tile: NDArray, left: NDArray, right: NDArray) -> None:
        """tile -= left right'."""
        tile[...] = self._named("gemm")(-1.0, right.T, left.T, beta=1.0, c=tile.T, trans_a=True).T

    def subtract_square(self, tile: NDArray, left: NDArray) -> None:
        """tile -= left left', up to the diagonal."""
        tile[...] = self._named("syrk")(-1.0, left.T, beta=1.0, c=tile.T, trans=True).T

    def divide(self, tile: NDArray, factor: NDArray) -> None:
        """Tile becomes tile L'^-1."""
        tile[...] = self._named("trsm")(1.0, factor.T, tile.T, trans_a=True).T

    def solve(self, x: NDArray, factor: NDArray, transposed: bool) -> None:
        """X becomes L^-1 x, or L'^-1 x."""
        x[...] = self._named("trsm")(1.0, factor.T, x.T, side=True, trans_a=transposed).T
