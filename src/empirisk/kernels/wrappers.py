"""A kernel seen another way: on some columns, weighted by a function, normalised, centred."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone

from empirisk import state
from empirisk.errors import EmpiriskError, OutOfRange
from empirisk.kernels.algebra import Wrapper
from empirisk.kernels.base import ATOM, Kernel, text, within
from empirisk.kernels.expression import composed
from empirisk.kernels.items import Parts, as_finite, as_floats, as_matrix, is_frame, position, select, size, table_of
from empirisk.kernels.tiles import ROWS
from empirisk.linalg.blocks import slices

CHUNK = 1024  # rows of a block that is only averaged, so that it never stands in memory as a whole


class Changed(Wrapper):
    """A kernel whose values change by a number of each of the two items."""

    def change(self, values: NDArray, left: NDArray, right: NDArray) -> None:
        """Change values in place by the numbers of their two items, which are shaped to go with them."""
        raise NotImplementedError

    def between(self, A, B=None, out=None):
        items, numbers = A
        others, columns = (None, numbers) if B is None else B
        block = self.child("kernel").between(items, others, out)
        for some in slices(len(block), ROWS):
            self.change(block[some], numbers[some, None], columns)
        return block

    def diagonals(self, A):
        items, numbers = A
        values = self.child("kernel").diagonals(items)
        self.change(values, numbers, numbers)
        return values

    def pack(self, A):
        items, numbers = A
        return Parts(self.child("kernel").pack(items), numbers)


@dataclass(eq=False, repr=False)
class Times(Changed):
    """f(x) k(x, z) f(z) for a function of one item. Written ``k.times(f)``.

    Parameters
    ----------
    kernel : Kernel
        The kernel k.
    function : callable
        Takes all items X and returns one number for each.

    Examples
    --------
    >>> def first(X):
    ...     return X[:, 0]
    >>> er.kernels.Gaussian(1.0).times(first)(np.array([[2.0]]))
    array([[4.]])
    """

    function: Callable[[Any], Any]
    reads_rows: ClassVar[bool] = True

    def prepare(self, X):
        self.check()
        items = self.child("kernel").prepare(X)
        # As machines hand them on, a kernel alone does: of a table of numbers f sees the array.
        given = as_floats(X, "X") if self.takes == "vectors" and not sparse.issparse(X) else X
        factors = as_finite(self.function(given), "function(X)")
        if factors.shape != (size(items),):
            raise EmpiriskError(
                f"function(X) has shape {factors.shape}; f in k.times(f) must return one number per item, "
                f"here {size(items)}."
            )
        return Parts(items, factors)

    def change(self, values, left, right):
        values *= (left * right).astype(values.dtype)  # a symmetric block stays so to the last bit

    def expression(self, A):
        return composed("times_rows", self.parts, A.groups[:1], rows=A.groups[1])

    def term_diagonals(self, A):
        items, factors = A
        return self.child("kernel").term_diagonals(items) * factors**2

    def __repr__(self) -> str:
        return f"{within(self.kernel, ATOM)}.times({text(self.function)})"


def _multiply(block: NDArray, rows: NDArray, columns: NDArray) -> None:
    """diag(rows) block diag(columns), in place; a symmetric block stays so to the last bit."""
    for some in slices(len(block), ROWS):
        block[some] *= np.multiply.outer(rows[some], columns).astype(block.dtype)


@dataclass(eq=False, repr=False)
class On(Wrapper):
    """A kernel on some of the columns. Written ``k.on(columns)``.

    Parameters
    ----------
    kernel : Kernel
        The kernel on those columns; one on strings or other objects takes a single column.
    columns : list of int or str, int, str, slice or mask
        Positions, or names of columns of a data frame.

    Attributes
    ----------
    columns_ : ndarray of int
        The positions, after `fit`.
    n_features_in_ : int
        The number of all columns, after `fit`.

    Examples
    --------
    >>> er.kernels.Linear().on([1])([[1.0, 2.0]])
    array([[4.]])
    """

    _state = state.State(
        kernel_=state.optional(state.part(Kernel)),  # its columns are some of ours
        columns_=state.optional(state.array("i", None, below="columns")),
    )

    columns: Any

    @property
    def takes(self) -> str:
        return "vectors" if all(part.takes == "vectors" for part in self.parts) else "objects"

    @property
    def constant_diagonal(self) -> bool:
        return all(part.constant_diagonal for part in self.parts)

    @state.renewing
    def fit(self, X, y=None):
        self.check()
        self.columns_ = position(X, self.columns)
        self.n_features_in_ = table_of(X).shape[1]
        self.kernel_ = clone(self.kernel).fit(self._selected(X))
        return self

    def _selected(self, X: Any) -> Any:
        # Machines hand a data frame on as an array; its columns stand where they stood in `fit`.
        known = hasattr(self, "columns_") and not is_frame(X) and table_of(X).shape[1] == self.n_features_in_
        return select(X, self.columns_ if known else self.columns, as_objects=self.kernel.takes != "vectors")

    def prepare(self, X):
        self.check()
        return self.child("kernel").prepare(self._selected(X))

    def apply(self, values):
        """The block of the chosen columns is the result."""

    def expression(self, A):
        return self.child("kernel").expression(A)

    def linear_part(self, A, beta):
        w = self.child("kernel").linear_part(A, beta)
        if w is None:
            return None
        if not hasattr(self, "columns_"):
            raise EmpiriskError("the linear part needs the number of columns; call fit(X) on the kernel first.")
        full = np.zeros((self.n_features_in_, *w.shape[1:]))
        np.add.at(full, self.columns_, w)
        return full

    def terms(self, A):
        if not hasattr(self, "columns_"):
            raise EmpiriskError("the columns of the parts are not known yet; call fit(X) on the kernel first.")
        seen = self.columns_.tolist()
        found = self.child("kernel").terms(A)
        columns = [seen if term.columns is None else [seen[j] for j in term.columns] for term in found]
        return [term._replace(columns=tuple(own)) for term, own in zip(found, columns, strict=True)]

    def __repr__(self) -> str:
        return f"{within(self.kernel, ATOM)}.on({text(self.columns)})"


@dataclass(eq=False, repr=False)
class Cosine(Kernel):
    """A kernel that can divide its values by sqrt(k(x, x) k(z, z)) itself.

    What is stated is the plain kernel: `plain_items`, `plain_block` and `plain_diagonals`.
    """

    normalise: bool = field(default=False, kw_only=True)

    def plain_items(self, X: Any) -> Any:
        """Prepared items of the plain kernel."""
        raise NotImplementedError

    def plain_block(self, A: Any, B: Any, out: NDArray | None) -> NDArray:
        """The block of the plain kernel."""
        raise NotImplementedError

    def plain_diagonals(self, A: Any) -> NDArray:
        """k(x, x) of the plain kernel."""
        raise NotImplementedError

    def prepare(self, X):
        self.check()
        items = self.plain_items(X)
        return Parts(items, self._squares(items)) if self.normalise else items

    def _squares(self, items: Any) -> NDArray:
        """k(x, x) of the plain kernel, by which values are divided; raises where it overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.plain_diagonals(items).astype(np.float64)
        if not np.isfinite(squares).all():
            raise OutOfRange(f"k(x, x) overflows in {self!r}; divide X by its size, or give it in double precision.")
        return squares

    def between(self, A, B=None, out=None):
        if not self.normalise:
            return self.plain_block(A, B, out)
        items, squares = A
        others, columns = (None, squares) if B is None else B
        block = self.plain_block(items, others, out)
        _multiply(block, inverse_roots(squares), inverse_roots(columns))
        if B is None:
            np.fill_diagonal(block, squares > 0)
        return block

    def diagonals(self, A):
        if not self.normalise:
            return self.plain_diagonals(A)
        items, squares = A
        return (squares > 0).astype(self.plain_diagonals(items[:1]).dtype)


@dataclass(eq=False, repr=False)
class Normalised(Cosine, Changed):
    """k(x, z) / sqrt(k(x, x) k(z, z)): the cosine between phi(x) and phi(z). Written ``k.normalised()``.

    An item with k(x, x) = 0 has similarity 0 to all.

    Parameters
    ----------
    kernel : Kernel
        The kernel to normalise.

    Examples
    --------
    >>> er.kernels.Linear().normalised()([[3.0, 0.0], [1.0, 1.0]]).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    normalise: ClassVar[bool] = True

    def plain_items(self, X):
        return self.child("kernel").prepare(X)

    def plain_block(self, A, B, out):
        return self.child("kernel").between(A, B, out)

    def plain_diagonals(self, A):
        return self.child("kernel").diagonals(A)

    def expression(self, A):
        return composed("times_rows", self.parts, A.groups[:1], rows=inverse_roots(A.groups[1]))

    def term_diagonals(self, A):
        items, squares = A
        return self.child("kernel").term_diagonals(items) * inverse_roots(squares) ** 2

    def __repr__(self) -> str:
        return f"{within(self.kernel, ATOM)}.normalised()"


def inverse_roots(squares: Any) -> Any:
    """1 / sqrt(k(x, x)) of every item, 0 where that is 0."""
    seen = squares > 0
    return np.where(seen, 1 / np.sqrt(np.where(seen, squares, 1)), 0)


def _wrong_items(its: Mapping[str, Any]) -> str | None:
    """What is wrong with the data of a mean from a file: a table, or numbers of the nodes of a graph."""
    kernel, items = its.get("kernel_", its["kernel"]), its.get("items_")
    if items is None or getattr(items, "ndim", 1) == 2:
        return None
    nodes = range(len(getattr(kernel, "nodes_", ())))
    plain = isinstance(items, np.ndarray) and items.dtype.kind == "i"
    return None if plain and all(place in nodes for place in items.tolist()) else "items_ are not what its kernel takes"


class Centred(Changed):
    """The kernel of phi(x) - mean of phi over the data that it is fitted on.

    k(x, z) - m(x) - m(z) + mean of m, where m(x) is the mean of k(x, x_i) over the data: H K H on the data itself, with
    H = I - 1 1'/n, and the same formula for new items. In a machine that is given weights of rows the means have them.

    Parameters
    ----------
    kernel : Kernel
        The kernel to centre.

    Attributes
    ----------
    items_ : prepared items
        The data of the mean.
    mean_ : float
        The mean of k(x_i, x_j) over the data.
    weights_ : ndarray
        The shares of the data in their mean, where a machine has given them weights.

    Examples
    --------
    >>> er.kernels.Centred(er.kernels.Linear()).fit([[1.0], [3.0]])([[3.0]], [[4.0]])
    array([[2.]])
    """

    _state = state.State(
        lambda its: None if ("items_" in its) == ("mean_" in its) else "items_ and mean_ belong together",
        _wrong_items,
        filled=("kept",),
        items_=state.optional(state.items("kept", "columns")),
        mean_=state.optional(state.number()),
        weights_=state.optional(state.array("f8", "kept", low=0)),
    )

    reads_rows: ClassVar[bool] = True

    @state.renewing
    def fit(self, X, y=None):
        super().fit(X)
        # A copy: what the caller does with X later changes no product.
        self.items_ = deepcopy(self.child("kernel").prepare(X))
        self.mean_ = float(self._means(self.items_).mean())
        return self

    def weigh(self, weights):
        super().weigh(weights)
        self.weights_ = weights / weights.max()
        self.weights_ /= self.weights_.sum()
        self.mean_ = float(self.weights_ @ self._means(self.items_))

    def _means(self, items: Any) -> NDArray:
        """The mean of k(x, x_i) over the data, for every item x."""
        kernel = self.child("kernel")
        chunks = [kernel.between(items[rows], self.items_) for rows in slices(size(items), CHUNK)]
        if hasattr(self, "weights_"):
            return np.concatenate([chunk.astype(np.float64, copy=False) @ self.weights_ for chunk in chunks])
        return np.concatenate([chunk.mean(axis=1, dtype=np.float64) for chunk in chunks])

    def prepare(self, X):
        self.check()
        if not hasattr(self, "items_"):
            raise EmpiriskError(f"{self!r} is centred on data; call fit(X) on it first.")
        items = self.child("kernel").prepare(X)
        return Parts(items, self._means(items) - self.mean_ / 2)

    def change(self, values, left, right):
        values -= (left + right).astype(values.dtype)

    def expression(self, A):
        return composed("less_rows", self.parts, A.groups[:1], rows=A.groups[1])

    def term_diagonals(self, A):
        items, means = A
        return self.child("kernel").term_diagonals(items) + 2 * np.abs(means)


def centre(K: ArrayLike, train: ArrayLike | None = None) -> NDArray:
    """H K H for a Gram matrix, with H = I - 1 1'/n; or the same for a block of new items.

    Parameters
    ----------
    K : ndarray
        The Gram matrix of the data; with ``train``, the block between new items (rows) and the data (columns).
    train : ndarray, optional
        The Gram matrix of the data.

    >>> centre([[1.0, 3.0], [3.0, 9.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    block = as_matrix(K, False, "K")
    gram = block if train is None else as_matrix(train, False, "train")
    if gram.shape != (block.shape[1], block.shape[1]):
        raise EmpiriskError(
            f"a Gram matrix of {block.shape[1]} items is square, but the shape given is {gram.shape}; "
            "pass centre(K, train) for a block of new items."
        )
    columns = gram.mean(axis=0, dtype=np.float64)
    rows = columns if train is None else block.mean(axis=1, dtype=np.float64)
    # The two sums are equal to the last bit on both sides of the diagonal.
    return (block - (np.add.outer(rows, columns) - columns.mean())).astype(block.dtype)


def pairwise_product(left: Kernel, right: Kernel, first: Any, second: Any) -> Kernel:
    """k1(u, u') k2(v, v') for rows that hold a pair (u, v) in two groups of columns.

    Parameters
    ----------
    left, right : Kernel
        k1, of u, and k2, of v.
    first, second : list of int or str
        The columns that hold u, and those that hold v.

    Examples
    --------
    >>> pairwise_product(er.kernels.Gaussian(2.0), er.kernels.Linear(), [0, 1], [2])
    Gaussian(2.0).on([0, 1]) * Linear().on([2])
    """
    return left.on(first) * right.on(second)


def pairwise_sum(left: Kernel, right: Kernel, first: Any, second: Any) -> Kernel:
    """k1(u, u') + k2(v, v') for rows that hold a pair (u, v) in two groups of columns.

    Parameters
    ----------
    left, right : Kernel
        k1, of u, and k2, of v.
    first, second : list of int or str
        The columns that hold u, and those that hold v.

    Examples
    --------
    >>> pairwise_sum(er.kernels.Gaussian(2.0), er.kernels.Linear(), [0, 1], [2])
    Gaussian(2.0).on([0, 1]) + Linear().on([2])
    """
    return left.on(first) + right.on(second)
