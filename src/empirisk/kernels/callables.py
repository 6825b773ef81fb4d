"""A function as a kernel."""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.errors import EmpiriskError, MissingValues
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import Objects, as_matrix, is_table, size
from empirisk.kernels.tiles import dtype_of, result
from empirisk.linalg.tiled import mirror

FORMS = ("auto", "pairs", "blocks")
#: What a function of two items may raise when it is given blocks.
MEANINGLESS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError, RuntimeError)


class Callable(Kernel):
    """A kernel given by a function, of a pair of items or of two blocks.

    Machines test on 300 of their items whether it is positive semidefinite, and refuse it if not; `check` tells more.

    Parameters
    ----------
    function : callable
        f(x, z), a number; or f(X, Z), the array of all k(x_i, z_j).
    form : "auto", "pairs" or "blocks"
        Which of the two; "auto" tries: what turns 3 and 2 items into an array of shape (3, 2), and 2 and 3 into one of
        shape (2, 3), is a function of blocks.

    Examples
    --------
    >>> def common_letters(x, z):
    ...     return len(set(x) & set(z))
    >>> er.kernels.Callable(common_letters)(["abc", "bcd"])
    array([[3., 2.],
           [2., 3.]])
    """

    takes = "objects"
    sparse = True
    certain = False

    def __init__(self, function: Function[[Any, Any], Any], form: str = "auto"):
        self.function = function
        self.form = form

    def check(self):
        if not callable(self.function):
            raise EmpiriskError(f"function={self.function!r} cannot be called; give a function of two items.")
        if self.form not in FORMS:
            raise EmpiriskError(f"form={self.form!r} is not known; choose one of {list(FORMS)}.")

    def prepare(self, X):
        self.check()
        if is_table(X) and len(X.shape) == 2 and getattr(X, "dtype", None) != np.object_:
            return as_matrix(X)
        if isinstance(X, str) or not hasattr(X, "__len__") or len(X) == 0:
            raise EmpiriskError("X must be a table or a list of items, not empty.")
        return Objects(list(X))

    def between(self, A, B=None, out=None):
        others = A if B is None else B
        out = result(size(A), size(others), dtype_of(A), out)
        if self._takes_blocks(A):
            out[...] = self._checked(np.asarray(self.function(_plain(A), _plain(others))), out.shape)
        else:
            self._fill_pairs(_rows(A), _rows(others), out, B is None)
        if B is None:
            mirror(out)
        return out

    def _takes_blocks(self, A: Any) -> bool:
        if self.form != "auto":
            return self.form == "blocks"
        three, two = _plain(A[np.zeros(3, int)]), _plain(A[np.zeros(2, int)])
        try:
            # Both ways round: x @ z, a function of two vectors, is a product of 3 rows with 2 if there are 2 columns.
            return np.shape(self.function(three, two)) == (3, 2) and np.shape(self.function(two, three)) == (2, 3)
        except MEANINGLESS:
            return False

    def _fill_pairs(self, rows: list, columns: list, out: NDArray, symmetric: bool) -> None:
        for i, x in enumerate(rows):
            start = i if symmetric else 0
            values = np.array([self._number(x, z) for z in columns[start:]])
            out[i, start:] = self._checked(values, values.shape)

    def _number(self, x: Any, z: Any) -> float:
        value = self.function(x, z)
        try:
            return np.asarray(value, dtype=float).item()
        except (TypeError, ValueError) as problem:
            raise EmpiriskError(f"{self!r} returned {value!r} where one number is needed, k(x, z).") from problem

    def _checked(self, values: NDArray, shape: tuple[int, ...]) -> NDArray:
        if values.shape != shape:
            raise EmpiriskError(f"{self!r} returned an array of shape {values.shape} where {shape} was expected.")
        if not np.isfinite(values).all():
            raise MissingValues(f"{self!r} returned NaN or infinity; a kernel must be finite.")
        return values

    def diagonals(self, A):
        out = np.empty(size(A), dtype_of(A))
        if self._takes_blocks(A):
            for i in range(size(A)):
                one = _plain(A[i : i + 1])
                out[i] = self._checked(np.asarray(self.function(one, one)), (1, 1))[0, 0]
        else:
            for i, x in enumerate(_rows(A)):
                out[i] = self._checked(np.array([self._number(x, x)]), (1,))[0]
        return out


def _plain(items: Any) -> Any:
    return list(items) if isinstance(items, Objects) else items


def _rows(items: Any) -> list:
    if sparse.issparse(items):
        return [items[i] for i in range(items.shape[0])]
    return list(items)
