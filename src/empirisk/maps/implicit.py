"""Data behind a kernel: a design that is known by its inner products alone, and sums over them without a matrix."""

from collections.abc import Callable
from itertools import product
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import Unsuitable
from empirisk.kernels.base import Kernel
from empirisk.kernels.items import Chosen, Parts, size
from empirisk.lazy import lazy
from empirisk.linalg.accelerator import accelerator
from empirisk.linalg.blocks import rowwise, slices
from empirisk.linalg.design import Array, DenseDesign, Design
from empirisk.linalg.threads import parallel_map
from empirisk.penalties.norms import HilbertNorm
from empirisk.settings import require, settings

#: Blocks that were made before, by their shape: in the kernel's precision and in float64.
Memory = dict[tuple[int, int], tuple[NDArray, Array]]
#: A block of entries: few enough for the cache, many enough for a matrix product.
ROWS, COLUMNS = 512, 1024
#: Parts that are summed on their own, a fixed number of them: the bits do not depend on the number of threads.
PARTS = 16
#: Items of compiled kernels that are made ready at a time.
SLAB = 1 << 15
#: A block takes at most one such part of the memory budget: every thread has one, or two in different precision.
SHARE = 64


def kernel_sums(kernel: Kernel, centres: Any, coefficients: Array, others: Any, among: bool) -> tuple[Array, Array]:
    """K(centres, centres) c and K(others, centres) c; an entry between two centres serves both of them.

    Parameters
    ----------
    kernel : Kernel
        Fitted, if it learns from data.
    centres, others : prepared items
        The z_j, and the x at which the sums are wanted; packed, or chosen from packed ones.
    coefficients : array
        c, with a column for every sum.
    among : bool
        Whether the sums at the centres are wanted; zeros stand in their place if not.

    Examples
    --------
    >>> kernel_sums(er.kernels.Linear(), np.array([[1.0], [2.0]]), np.ones(2), np.array([[3.0]]), True)
    (array([3., 6.]), array([9.]))
    """
    count, rest = size(centres), size(others)
    device = accelerator(count * (rest + count * among), centres, others)
    if device is not None and count and rest and not among:
        found = device.kernel_sums(kernel, centres[:], coefficients, others[:])
        if found is not None:
            return np.zeros_like(coefficients), found
    first = centres[:1]
    asked = [first] * among + [others[:1]] * (rest > 0)
    if count and all(kernel.formula(item, first) is not None for item in asked):
        at_centres = _compiled_sums(kernel, centres, coefficients, centres) if among else np.zeros_like(coefficients)
        return at_centres, _compiled_sums(kernel, centres, coefficients, others)
    height, width = _block_shape()
    panels = slices(count, height)
    tail = coefficients.shape[1:]

    def part(first: int) -> tuple[Array, Array]:
        at_centres, at_others = np.zeros((count, *tail)), np.zeros((rest, *tail))
        memory: Memory = {}
        for panel in panels[first::PARTS]:
            rows, c = centres[panel], coefficients[panel]
            if among:
                at_centres[panel] += kernel.between(rows) @ c
            for columns in slices(count if among else 0, width, panel.stop):
                block = _block(kernel, rows, centres[columns], memory)
                at_centres[panel] += block @ coefficients[columns]
                at_centres[columns] += block.T @ c
            for columns in slices(rest, width):
                # New items first: a Gram matrix that the user gives knows them by their products with the centres.
                at_others[columns] += _block(kernel, others[columns], rows, memory) @ c
        return at_centres, at_others

    found = parallel_map(part, range(min(PARTS, len(panels))))
    at_centres, at_others = zip(*found, strict=True)
    return np.sum(at_centres, axis=0), np.sum(at_others, axis=0)


def _compiled_sums(kernel: Kernel, centres: Any, coefficients: Array, others: Any) -> Array:
    """K(others, centres) c by the kernel's formula."""
    by_sum = coefficients.reshape(len(coefficients), -1)
    totals = np.zeros((size(others), by_sum.shape[1]))
    for columns, rows in product(slices(size(centres), SLAB), slices(size(others), SLAB)):
        formula = kernel.formula(others[rows], centres[columns])
        assert formula is not None  # it was there for the first item
        totals[rows] += formula.sums(by_sum[columns])
    return totals.reshape(len(totals), *coefficients.shape[1:])


def _block_shape() -> tuple[int, int]:
    """Rows and columns of a block; fewer where the memory budget is small."""
    entries = settings().memory // (8 * SHARE)
    height = max(1, min(ROWS, isqrt(entries // 2)))
    return height, max(1, min(COLUMNS, entries // height))


def _block(kernel: Kernel, rows: Any, columns: Any, memory: Memory) -> Array:
    """k(x_i, z_j) in float64, valid until the next block: fresh memory would cost more than the entries."""
    shape = (size(rows), size(columns))
    entries, doubles = memory.get(shape, (None, None))
    entries = kernel.between(rows, columns, out=entries)
    if entries.dtype == np.float64:
        doubles = entries
    else:
        doubles = np.empty(shape) if doubles is None else doubles
        doubles[:] = entries
    memory[shape] = (entries, doubles)
    return doubles


#: Gram matrices up to this size are kept whole; those of objects, whose entries cost more, up to the whole budget.
KEPT_BYTES = 1 << 27
#: Columns from which machines that share a matrix keep larger ones: its entries cost more to make again than to read.
WIDE = 256
#: Parts of a larger whole, such as two classes of many, need few of their entries: theirs are kept up to this size.
KEPT_BYTES_OF_PARTS = 1 << 24
#: Samples of a low-rank factor: their matrix is factored in milliseconds.
LANDMARKS = 1000
#: Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-12
REMEMBERED = 3  # products K w: a solver asks for those of the last point, its trial and the proof


class GramDesign(Design):
    """phi(X) behind a kernel. A vector w = sum_j beta_j phi(z_j) is given by its coefficients beta.

    In these coordinates A w is the product K beta, and A'u = sum_i u_i phi(x_i) is u itself.

    Parameters
    ----------
    kernel : Kernel
        Fitted, if it learns from data.
    items : prepared samples
        What ``kernel.prepare`` gave.
    source : Any
        The samples as the user gave them, in the same order.
    centres : prepared samples, optional
        The z_j, if they are not the samples themselves.

    Attributes
    ----------
    origins : array or None
        Where each sample stands in the user's data, if some of them are here several times.
    whole : GramDesign or None
        The design that this one is a part of.

    Examples
    --------
    >>> kernel, X = er.kernels.Linear(), np.array([[1.0], [2.0]])
    >>> GramDesign(kernel, kernel.prepare(X), X).dot(np.array([1.0, 1.0]))
    array([3., 6.])
    """

    implicit = True

    def __init__(self, kernel: Kernel, items: Any, source: Any = None, centres: Any = None):
        self.kernel, self.source = kernel, source
        self.origins: NDArray[np.intp] | None = None
        self._given, self._centres = items, centres
        self._places: NDArray | None = None
        self._known: list[tuple[Array, Array]] = []
        self.whole: GramDesign | None = None
        self._within: tuple[GramDesign, NDArray] | None = None
        self._multiply: Callable[[Array], Array] | None = None
        self.shape = (size(items), size(items if centres is None else centres))

    @property
    def root(self) -> "GramDesign":
        """The design that this one is a part of, or itself: it keeps no reference to itself, and is gone when it is."""
        return self if self.whole is None else self.whole

    @lazy
    def items(self) -> Any:
        """The prepared samples; those of a part are copied when they are asked for."""
        return self._given if self._places is None else self._given[:]

    @lazy
    def packed(self) -> Any:
        """The samples in the form that is best for many blocks."""
        return self.kernel.pack(self.items) if self._places is None else self.root.packed[self._places]

    def _some(self, chosen: NDArray) -> Chosen:
        """The packed samples at some rows, by way of the root's, so that a part needs no copy of its own."""
        return Chosen(self.root.packed, chosen if self._places is None else self._places[chosen])

    @property
    def centres(self) -> Any:
        """The z_j: the samples themselves, unless others were given."""
        return self.items if self._centres is None else self._centres

    def block(self, rows: NDArray | slice, columns: NDArray | slice = slice(None)) -> NDArray[Any]:
        """k(x_i, z_j) for the chosen rows and columns, in the precision of the data."""
        return self.kernel.between(_taken(self.items, rows), _taken(self.centres, columns))

    @lazy
    def diagonal(self) -> Array:
        """k(x_i, x_i)."""
        if self._places is not None:
            return self.root.diagonal[self._places]
        return np.asarray(self.kernel.diagonals(self.items), dtype=np.float64)

    @lazy
    def term_rows(self) -> Array:
        """The size of the terms that k(x_i, x_i) sums, of which a value of the kernel has the rounding."""
        if self._places is not None:
            return self.root.term_rows[self._places]
        return np.asarray(self.kernel.term_diagonals(self.items), dtype=np.float64)

    def like(self, items: Any, centres: Any = None) -> "GramDesign":
        """A design of other items behind the same kernel, in the same place."""
        return GramDesign(self.kernel, items, self.source, centres)

    @lazy
    def single(self) -> "GramDesign":
        """The same samples in float32, for solvers that need many entries and few digits."""
        if self._places is not None:
            return self.root.single.rows(self._places)
        return self.like(_single(self.items))

    @property
    def keeps_matrix(self) -> bool:
        """Whether the whole Gram matrix is worth its memory."""
        if "matrix" in vars(self) or (self._within is not None and self._within[0].keeps_matrix):
            return True
        allowed = settings().memory // 4
        if self.kernel.takes == "vectors":
            most = KEPT_BYTES if self._within is None else KEPT_BYTES_OF_PARTS
            wide = getattr(self._given, "shape", (0, 0))[1] >= WIDE
            allowed = min(most * max(wide * self.shared_by, 1), allowed)
        return 8 * self.shape[0] * self.shape[1] <= allowed

    @lazy
    def matrix(self) -> Array:
        """K, whole, in float64."""
        rows, columns = self.shape
        require(8 * rows * columns, f"A Gram matrix of {rows} x {columns}", "use features=maps.Nystrom(kernel)")
        if self._within is not None and self._within[0].keeps_matrix:
            whole, chosen = self._within
            return whole.matrix[np.ix_(chosen, chosen)]
        others = None if self._centres is None else self.centres
        return np.asarray(self.kernel.between(self.items, others), dtype=np.float64)

    def fresh_matrix(self) -> Array:
        """K, whole, in float64, in an array that the caller may overwrite."""
        if self.keeps_matrix or self._within is not None:
            return self.matrix.copy()
        rows = self.shape[0]
        require(8 * rows**2, f"A Gram matrix of {rows} x {rows}", "use features=maps.Nystrom(kernel)")
        out = np.empty((rows, rows), self.block(slice(0, 1), slice(0, 1)).dtype)
        return self.kernel.between(self.items, None, out).astype(np.float64, copy=False)

    def low_rank(self) -> Design:
        """G with K ~ G G', from some of the samples: what conjugate gradients are preconditioned with."""
        rows = self.shape[0]
        # Four arrays of rows x rank doubles are made on the way.
        rank = min(LANDMARKS, rows, max(1, settings().memory // (32 * rows)))
        chosen = some_rows(rows, rank)
        block = np.asarray(self.block(slice(None), chosen), dtype=np.float64)
        values, vectors = np.linalg.eigh(block[chosen])
        kept = values > ROUNDING * values[-1]
        return DenseDesign(block @ (vectors[:, kept] / np.sqrt(values[kept])))

    def partial_product(self, rows: NDArray | slice, columns: NDArray | slice, coefficients: Array) -> Array:
        """K[rows, columns] coefficients, for designs that make products as they are asked for."""
        raise NotImplementedError

    def multiply_by(self, product: Callable[[Array], Array] | None) -> None:
        """Use w -> K w of a solver that has kept K; None ends that."""
        self._multiply = product

    def outer(self, weights=None):
        # There are no columns to weight but all alike.
        if weights is None:
            return self.matrix
        return rowwise(lambda rows: weights[0] * rows, self.matrix, row_bytes=8 * len(self.matrix))

    def dot(self, w):
        if not w.any():  # known without the matrix
            return np.zeros((self.shape[0], *w.shape[1:]))
        if self.keeps_matrix:
            return DenseDesign(self.matrix).dot(w)
        if self._multiply is not None:
            return self._multiply(w)
        known, product = self._nearest(w)
        changed = np.flatnonzero(_differ(w, known))
        if len(changed):
            product = product + self._product(changed, (w - known)[changed])
            self._known = [(w.copy(), product), *self._known][:REMEMBERED]
        return product.copy()

    def _nearest(self, w: Array) -> tuple[Array, Array]:
        """Of the products already computed, and of zero, the one that differs from w in the fewest coefficients."""
        zero = (np.zeros_like(w), np.zeros((self.shape[0], *w.shape[1:])))
        alike = [pair for pair in self._known if pair[0].shape == w.shape]
        return min([*alike, zero], key=lambda pair: np.count_nonzero(_differ(w, pair[0])))

    def _product(self, columns: NDArray, coefficients: Array) -> Array:
        """K[:, columns] coefficients."""
        if self._centres is not None:
            centres = self.centres[columns]
            return kernel_sums(self.kernel, centres, coefficients, self.items, among=False)[1]
        total = np.empty((self.shape[0], *coefficients.shape[1:]))
        others = np.setdiff1d(np.arange(self.shape[0]), columns, assume_unique=True)
        total[columns], total[others] = kernel_sums(
            self.kernel, self._some(columns), coefficients, self._some(others), among=True
        )
        return total

    def tdot(self, u):
        return u

    def squared_rows(self):
        return self.diagonal

    def squared_norms(self, w):
        return np.einsum("j...,j...->...", w, self.dot(w))

    def penalty_in_coordinates(self, penalty):
        if not (penalty.plain and penalty.smooth):
            raise Unsuitable(
                f"penalty={penalty!r} needs the weights themselves, which a kernel does not give; use penalty='l2', or "
                "explicit features such as maps.Nystrom(kernel)."
            )
        return HilbertNorm(self, penalty.l2) if penalty.l2 > 0 else penalty

    def rows(self, chosen):
        places = np.arange(self.shape[0])[chosen]
        inside = places if self._places is None else self._places[places]
        part = self.like(Chosen(self.root.items, inside))
        part.whole, part._places, part._within = self.root, inside, (self, chosen)
        return part

    def cross_design(self, chosen, trained):
        """The chosen samples against those a machine was trained on."""
        part = self.like(self.items[chosen], self.items[trained])
        if self.keeps_matrix:
            part.matrix = self.matrix[np.ix_(chosen, trained)]
        return part


def some_rows(rows: int, count: int) -> NDArray[np.intp]:
    """Some of the rows, in order; always the same ones.

    >>> some_rows(5, 5)
    array([0, 1, 2, 3, 4])
    """
    return np.sort(np.random.default_rng(0).choice(rows, count, replace=False))


def gram_design(kernel: Kernel, items: Any, source: Any) -> GramDesign:
    """The design of samples behind a kernel: on the device in force, if there is one and the kernel can run there."""
    device = accelerator(float(size(items)) ** 2, items)
    if device is None:
        return GramDesign(kernel, items, source)
    found = device.gram_design(kernel, items, source)
    if found is None:
        found = GramDesign(kernel, items, source)
        found.remark = f"the kernel on the processor, since it has no formula for {device.name}"
    return found


def _differ(w: Array, known: Array) -> NDArray[np.bool_]:
    """Which coefficients differ, in any of the columns."""
    return (w != known).reshape(len(w), -1).any(axis=1)


def _taken(items: Any, chosen: NDArray | slice) -> Any:
    return items if isinstance(chosen, slice) and chosen == slice(None) else items[chosen]


def in_double(items: Any) -> Any:
    """Prepared items with their float32 numbers in float64: a certificate needs the digits of the kernel's values."""
    return _cast(items, lambda part: part.astype(np.float64) if getattr(part, "dtype", None) == np.float32 else part)


def _single(items: Any) -> Any:
    """Prepared items with their numbers in float32; objects stay as they are."""
    return _cast(items, lambda part: part.astype(np.float32, copy=False) if hasattr(part, "astype") else part)


def _cast(items: Any, change: Callable[[Any], Any]) -> Any:
    """The items with every array changed; one that several parts look at is changed once."""
    if not isinstance(items, Parts):
        return change(items)
    changed = {id(group): _cast(group, change) for group in items}
    return Parts(*(changed[id(group)] for group in items))
