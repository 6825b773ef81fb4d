"""The design matrix: dense or sparse data behind one interface."""

from collections.abc import Callable
from functools import singledispatch
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.lazy import lazy
from empirisk.linalg import blocks, tiled
from empirisk.linalg.accelerator import accelerator
from empirisk.linalg.blocks import Array
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.rowspace import MemoryRows, RowSpace, RowVector
from empirisk.linalg.threads import parallel_map
from empirisk.stop import check_stop

Slopes = Callable[..., Array]
#: What is kept of every row; sums of values; slopes and curvatures of every row.
LocalTerms: TypeAlias = tuple[tuple[Array, ...], Array, Array, Array]
#: Rows are dealt to this many threads at most when a sparse Gram matrix is summed.
SHARES = 4
#: Fewer products than this are summed by one.
SHARE_OF_WORK = 1e6
#: Products of sparse rows between two looks at the clock: a tenth of a second.
PRODUCTS = 1 << 21
#: Numbers of fresh memory between two looks, and those of a page of it: a system may take its time to give a page.
FRESH, PAGE = 1 << 22, 512
#: Columns of a matrix that are added to its rows at a time.
STRIP = 1024
#: Weights of which at most one in so many is not zero are multiplied column by column.
SPARSE = 16
#: Rows whose numbers, one each, stay in the cache of a core beside those that are made of them.
NEAR = 1 << 12
#: Entries from which compiled passes are worth their compilation: on many threads Python's lock would be the limit.
LARGE = 1 << 24
#: Rows of a wide matrix count for no more than this when its normal matrix is summed, and of a long one for less:
#: blocks of 512 rows at least, and of 2048 where that leaves enough of them, so that adding up the d x d sums costs
#: little beside the products.
GRAM_ROW_BYTES, LEAST_GRAM_ROW_BYTES = 2048, 512


class Design:
    """An n x d matrix A that solvers multiply with.

    A dense design may be shifted: A = X - 1 shift'. With an unpenalised intercept a shift changes nothing but the
    intercept, and shifting by the column means makes the normal equations well conditioned.
    """

    shape: tuple[int, int]
    #: Whether A is known by its inner products alone, and w by the coefficients of its rows.
    implicit: ClassVar[bool] = False
    #: Whether all rows are in memory; else they are seen in passes alone.
    in_memory: ClassVar[bool] = True
    #: Whether the rows lie on a device, so that what asks for single numbers of them would copy them to memory.
    on_device: bool = False
    #: What is subtracted from every row; None for nothing.
    shift: Array | None = None
    #: Problems that share it: what is made once and used by many may take more memory.
    shared_by: int = 0
    #: Whether products are cheap beside single numbers of A: solvers then use products, and factor nothing large.
    streams: ClassVar[bool] = False
    #: What the certificate says of where the rows are, if they are not simply in memory.
    remark: str = ""

    @lazy
    def rowspace(self) -> RowSpace:
        """Where vectors with an entry for every row lie, and who sums over them."""
        return MemoryRows(self.shape[0])

    @property
    def entries(self) -> int:
        """Numbers that a product with a vector reads."""
        return self.shape[0] * self.shape[1]

    def dot(self, w: Array) -> Array:
        """A w, in float64."""
        raise NotImplementedError

    def predict(self, w: Array, b: Array | float) -> Array:
        """f = A w + b."""
        return self.dot(w) + b

    def tdot(self, u: Array) -> Array:
        """A' u, in float64."""
        raise NotImplementedError

    def predict_and_correlate(
        self, w: Array, b: float, slopes: Slopes, *vectors: RowVector
    ) -> tuple[RowVector, RowVector, Array]:
        """f = A w + b, u = slopes(*vectors, f) block by block, and A' u: dense data is read once for both products."""
        f = self.predict(w, b)
        u = self.rowspace.map(slopes, *vectors, f)
        return f, u, self.tdot(u)

    def fused_pass(
        self, compiled: Callable[..., float], w: Array, b: float, y: Array, scale: Array
    ) -> tuple[Array, Array, Array, float] | None:
        """f = A w + b, the slopes of a loss at f, A' of them and its sum, by a compiled pass; None where none pays."""
        return None

    def local_sums(
        self, w: Array, b: Array | float, model: Callable[..., LocalTerms], *vectors: RowVector, outputs: int = 0
    ) -> tuple[tuple[RowVector, ...], tuple[Array, Array, Array, Array]]:
        """What `local_sums` gives, in one pass over the rows; the model keeps so many ``outputs`` of every row."""
        return local_sums(self, w, b, model, *vectors)

    def sum_of_predictions(self, w: Array, b: Array | float, function: Callable[..., Any], *vectors: RowVector) -> Any:
        """The sum over blocks of rows of function(A w + b, *vectors), of which no row is kept."""
        return self.rowspace.sum(function, self.predict(w, b), *vectors)

    def gram(self, weights: Array | None = None) -> Array:
        """A' diag(weights) A, for weights >= 0."""
        raise NotImplementedError

    def outer(self, weights: Array | None = None) -> Array:
        """A diag(weights) A', for weights >= 0 on the columns."""
        raise NotImplementedError

    @lazy
    def row_products(self) -> Array:
        """A A', kept."""
        return self.outer()

    def squared_columns(self, weights: Array | None = None) -> Array:
        """sum_i weights_i A_ij^2 for every column j."""
        raise NotImplementedError

    @lazy
    def lengths(self) -> Array:
        """The length of every column, kept."""
        return np.sqrt(self.squared_columns())

    @property
    def stored_lengths(self) -> Array:
        """The lengths of the columns before the shift: what the rounding of A'u is measured by."""
        return self.lengths if self.shift is None else np.hypot(self.lengths, np.sqrt(self.shape[0]) * self.shift)

    @lazy
    def rough_lengths(self) -> Array:
        """The lengths from sums over the columns before the shift, without a copy: far away half of the digits stay."""
        return self.lengths

    def term_sizes(self, w: Array) -> Array:
        """sum_j |a_j| |w_j|, roughly: the size of the terms that A w sums, over all rows."""
        return self.rough_lengths @ np.abs(w)

    def squared_rows(self) -> Array:
        """|a_i|^2 for every row i."""
        raise NotImplementedError

    @property
    def term_rows(self) -> Array:
        """The size of the terms that |a_i|^2 sums; more than |a_i|^2 behind a kernel that is a difference."""
        return self.squared_rows()

    def columns(self, chosen: NDArray[np.intp] | slice) -> Array:
        """The chosen columns as a dense float64 array in Fortran order."""
        raise NotImplementedError

    def taking(self, chosen: NDArray[np.intp]) -> "Design":
        """The design of the chosen columns."""
        return DenseDesign(self.columns(chosen))

    def rows(self, chosen) -> "Design":
        """The design of the chosen rows, with the same shift."""
        raise NotImplementedError

    def centred(self) -> "Design":
        """The same rows shifted by their means, where the design can be shifted."""
        return self

    def cross_design(self, chosen, trained) -> "Design":
        """The chosen rows, to be multiplied with weights that were found on the rows ``trained``."""
        return self.rows(chosen)

    def squared_norms(self, w: Array) -> Array:
        """|w|^2, or |w_k|^2 for every column of w."""
        return np.einsum("j...,j...->...", w, w)

    def penalty_in_coordinates(self, penalty: Any) -> Any:
        """The penalty in the coordinates of w: itself, where w is explicit."""
        return penalty

    @property
    def rough(self) -> "Design":
        """The same rows for steps that need few digits, in float32 where that is faster."""
        return self

    def curved_product(self, w: Array, b: float, curvatures: Array) -> tuple[Array, float]:
        """A' diag(c) (A w + b) for curvatures c, and the sum of c (A w + b)."""
        curved = curvatures * self.predict(w, b)
        return self.tdot(curved), float(curved.sum())

    def preconditioner(self, curvatures: Array, stiffness: Array) -> Callable[[Array], Array] | None:
        """About the inverse of  diag(stiffness) + A' diag(curvatures) A;  None for that of its diagonal."""
        return None

    def shifted(self, shift: Array) -> "Design":
        """A - 1 shift', without a copy of the data."""
        return Shifted(self, shift)


def local_sums(
    design: Design, w: Array, b: Array | float, model: Callable[..., LocalTerms], *vectors: RowVector
) -> tuple[tuple[RowVector, ...], tuple[Array, Array, Array, Array]]:
    """The rows that model(f, *vectors) keeps at f = A w + b, its values, and its gradient and Hessian in (w, b).

    The model gives what it keeps, values that are sums over the rows, the slopes and the curvatures in f of every row;
    for several outputs K the curvatures are n x K shares t, which stand for diag(t_i) - t_i t_i' / sum(t_i). The
    Hessian has an axis, or two, of d + 1 numbers for (w, b) on either side.
    """
    kept, values, slopes, curvatures = _in_cache(model, design.predict(w, b), *vectors)
    gradient, constant = design.tdot(slopes), np.asarray(slopes.sum(axis=0))
    if curvatures.ndim == 1:
        return kept, (values, gradient, constant, _with_intercept(design, curvatures))
    classes, size = curvatures.shape[1], design.shape[1] + 1
    hessian = np.zeros((size, classes, size, classes))
    totals = np.maximum(curvatures.sum(axis=1), np.finfo(float).tiny)
    for k in range(classes):
        hessian[:, k, :, k] += _with_intercept(design, curvatures[:, k])
        for other in range(k + 1):
            part = _with_intercept(design, curvatures[:, k] * curvatures[:, other] / totals)
            hessian[:, k, :, other] -= part
            if other < k:
                hessian[:, other, :, k] -= part
    return kept, (values, gradient, constant, hessian)


def _in_cache(model: Callable[..., LocalTerms], *vectors: Array) -> LocalTerms:
    """model(*vectors), by parts of the rows whose terms stay in near memory: a loss makes many."""
    parts = [model(*(vector[rows] for vector in vectors)) for rows in blocks.slices(len(vectors[0]), NEAR)]
    kept, values, slopes, curvatures = zip(*parts, strict=True)
    joined = tuple(np.concatenate(each) for each in zip(*kept, strict=True))
    return joined, np.sum(values, axis=0), np.concatenate(slopes), np.concatenate(curvatures)


def _with_intercept(design: Design, weights: Array) -> Array:
    """[A, 1]' diag(weights) [A, 1]."""
    columns = design.shape[1]
    matrix = np.empty((columns + 1, columns + 1))
    matrix[:columns, :columns] = design.gram(weights)
    matrix[columns, :columns] = matrix[:columns, columns] = design.tdot(weights)
    matrix[columns, columns] = weights.sum()
    return matrix


class DenseDesign(Design):
    """A NumPy array, optionally shifted by its column means."""

    #: The precision in which A' diag(weights) A is summed.
    gram_type: ClassVar[Any] = np.float64

    def __init__(self, X: NDArray, shift: Array | None = None):
        self.X = X
        self.shape = X.shape
        self.shift = shift
        self._row_bytes = X.shape[1] * 8

    @property
    def dtype(self) -> np.dtype:
        """The precision of the rows as they came."""
        return self.X.dtype

    @property
    def table(self) -> Any:
        """The rows where they lie: as X, or on a device."""
        return self.X

    def _block(self, rows: slice, scale: Array | None = None) -> Array:
        """Rows of A in float64, each multiplied by its scale; a copy if anything is changed."""
        block = self.X[rows]
        if scale is not None:
            used = np.flatnonzero(scale[rows])
            if 2 * len(used) < len(block):
                # Rows that count for nothing are not even read.
                block, scale, rows = block[used], scale[rows][used], slice(None)
        if self.shift is not None:
            block = block - self.shift
        if scale is not None:
            # In place where the block is a copy already.
            block = np.multiply(block, scale[rows, None], out=None if self.shift is None else block)
        return block.astype(np.float64, copy=False)

    def dot(self, w):
        return self.predict(w, 0.0)

    def predict(self, w, b):
        used = _few(w)
        if used is not None:
            return self.columns(used) @ w[used] + b
        out = np.empty((self.shape[0], *w.shape[1:]))
        constant = b if self.shift is None else b - self.shift @ w

        def run(rows: slice) -> None:
            np.matmul(self.X[rows], w, out=out[rows])
            out[rows] += constant

        blocks.over_rows(run, self.shape[0], self._row_bytes)
        return out

    def tdot(self, u):
        total = self._tdot_by_columns(u) if self._is_wide else self._tdot_by_rows(u)
        if self.shift is not None:
            total -= np.multiply.outer(self.shift, u.sum(axis=0))
        return total

    def predict_and_correlate(self, w, b, slopes, *vectors):
        if self._is_wide:
            return super().predict_and_correlate(w, b, slopes, *vectors)
        f, u = np.empty((2, self.shape[0]))
        constant = b if self.shift is None else b - float(self.shift @ w)

        def run(rows: slice) -> Array:
            block = self.X[rows].astype(np.float64, copy=False)
            f[rows] = block @ w + constant
            u[rows] = slopes(*(vector[rows] for vector in vectors), f[rows])
            return u[rows] @ block

        # Blocks twice as large as for one product: the slopes cost some time per block.
        total = blocks.sum_of_blocks(run, self.shape[0], self._row_bytes // 2)
        return f, u, total if self.shift is None else total - self.shift * u.sum()

    def fused_pass(self, compiled, w, b, y, scale):
        if self.X.size < LARGE or self.X.dtype != np.float64 or not self.X.flags.c_contiguous:
            return None
        f, u = np.empty((2, self.shape[0]))
        constant = float(b) if self.shift is None else float(b - self.shift @ w)
        y, scale = np.ascontiguousarray(y), np.ascontiguousarray(scale)

        def run(group: list[slice]) -> Array:
            total = np.zeros(self.shape[1])
            bounds = np.array([group[0].start, *(rows.stop for rows in group)])
            value = compiled(self.X, w, constant, y, scale, bounds, f, u, total)
            return np.append(total, value)

        sums = blocks.sum_over_rows(run, self.shape[0], self._row_bytes)
        total, value = sums[:-1], float(sums[-1])
        return f, u, total if self.shift is None else total - self.shift * u.sum(), value

    def shifted(self, shift):
        return DenseDesign(self.X, shift)

    @lazy
    def rough_lengths(self):
        return self.lengths if self.shift is None else Shifted(DenseDesign(self.X), self.shift).rough_lengths

    def term_sizes(self, w):
        used = _few(w)
        return super().term_sizes(w) if used is None else DenseDesign(self.columns(used)).lengths @ np.abs(w[used])

    @property
    def _is_wide(self) -> bool:
        """Whether the columns are what lies together in memory, and there are more of them than rows."""
        return self.X.flags.f_contiguous and self.shape[1] > self.shape[0]

    def _tdot_by_rows(self, u: Array) -> Array:
        def run(rows: slice) -> Array:
            return (u[rows].T @ self.X[rows]).T

        return blocks.sum_of_blocks(run, self.shape[0], self._row_bytes)

    def _tdot_by_columns(self, u: Array) -> Array:
        out = np.empty((self.shape[1], *u.shape[1:]))

        def run(columns: slice) -> None:
            out[columns] = self.X[:, columns].T @ u

        blocks.over_rows(run, self.shape[1], 8 * self.shape[0])
        return out

    def gram(self, weights=None):
        # Ones change no bit, and a pass over the data is saved.
        scale = None if weights is None or (weights == 1).all() else np.sqrt(weights)

        def run(rows: slice) -> Array:
            block = self._block(rows, scale).astype(self.gram_type, copy=False)
            return block.T @ block

        most = max(min(blocks.GROUPS * blocks.BLOCK_BYTES // self.shape[0], GRAM_ROW_BYTES), LEAST_GRAM_ROW_BYTES)
        return blocks.sum_of_blocks(run, self.shape[0], min(self._row_bytes, most)).astype(np.float64, copy=False)

    def outer(self, weights=None):
        A = self._block(slice(None))
        if weights is not None:
            A = A * np.sqrt(weights)
        return tiled.outer(A)

    def squared_columns(self, weights=None):
        scale = None if weights is None else np.sqrt(weights)

        def run(rows: slice) -> Array:
            block = self._block(rows, scale)
            return np.einsum("ij,ij->j", block, block)

        return blocks.sum_of_blocks(run, self.shape[0], self._row_bytes)

    def squared_rows(self):
        out = np.empty(self.shape[0])

        def run(rows: slice) -> None:
            block = self._block(rows)
            out[rows] = np.einsum("ij,ij->i", block, block)

        blocks.over_rows(run, self.shape[0], self._row_bytes)
        return out

    def columns(self, chosen):
        chunk = np.asfortranarray(self.X[:, chosen], dtype=np.float64)
        return chunk if self.shift is None else chunk - self.shift[chosen]

    def rows(self, chosen):
        if isinstance(chosen, slice):
            X = self.X[chosen]
            # Every eighth row, say, is read many times: better from where it lies together.
            return DenseDesign(X if X.flags.forc else _together(X), self.shift)
        chosen = np.asarray(chosen)
        if chosen.dtype != bool and self.X.flags.c_contiguous:
            return DenseDesign(_together(self.X, chosen), self.shift)
        return DenseDesign(self.X[chosen], self.shift)

    def centred(self):
        X = self.X
        means = np.asarray(DenseDesign(X).tdot(np.ones(len(X))) / len(X), dtype=np.float64)
        # A constant column is shifted to exact zeros: the rounding of its mean would stand beside the intercept.
        for j in np.flatnonzero(np.isclose(means, X[0], rtol=1e-9, atol=0.0)):
            if np.all(X[:, j] == X[0, j]):
                means[j] = X[0, j]
        return DenseDesign(X, means)


def _few(w: Array) -> NDArray[np.intp] | None:
    """Where weights are not zero, if these are so few that a copy of their columns is worth it."""
    return np.flatnonzero(w) if w.ndim == 1 and SPARSE * np.count_nonzero(w) <= len(w) else None


def _together(X: NDArray, chosen: NDArray[np.intp] | None = None) -> NDArray:
    """A copy of the chosen rows, behind each other; None for all."""
    out = np.empty((len(X) if chosen is None else len(chosen), X.shape[1]), X.dtype)

    def run(rows: slice) -> None:
        if chosen is None:
            out[rows] = X[rows]
        else:
            np.take(X, chosen[rows], axis=0, out=out[rows], mode="wrap")  # to raise, it would fill a buffer first

    blocks.over_rows(run, len(out), X.shape[1] * X.itemsize)
    return out


class SparseDesign(Design):
    """A SciPy CSR or CSC matrix; never shifted, never made dense."""

    def __init__(self, X):
        self.X = X
        self.shape = X.shape

    @property
    def dtype(self) -> np.dtype:
        """The precision of the rows as they came."""
        return self.X.dtype

    @property
    def entries(self):
        return self.X.nnz

    @lazy
    def by_row(self) -> sparse.csr_matrix:
        """The matrix in CSR form, float64, without duplicate entries."""
        matrix = self.X.tocsr().astype(np.float64, copy=False)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix

    @lazy
    def by_column(self) -> sparse.csc_matrix:
        """The matrix in CSC form, float64."""
        return self.by_row.tocsc()

    @lazy
    def _transposed(self) -> sparse.csc_matrix:
        """The same numbers seen the other way: on short tables SciPy makes that for longer than it multiplies."""
        return self.by_row.T

    def dot(self, w):
        return self.by_row @ w

    def tdot(self, u):
        return self._transposed @ u

    def gram(self, weights=None):
        weights = np.ones(self.shape[0]) if weights is None else weights
        return sparse_gram(self.by_row, weights, np.arange(self.shape[1]))

    def outer(self, weights=None):
        A = self.by_row if weights is None else self.by_row.multiply(np.sqrt(weights)).tocsr()
        if A.nnz * self.shape[0] <= PRODUCTS:
            return (A @ A.T).toarray()
        out, other = np.empty((self.shape[0], self.shape[0])), A.T.tocsr()
        ends = np.append(0, np.cumsum(np.diff(other.indptr)[A.indices], dtype=np.int64))[A.indptr]

        def run(rows: slice) -> None:
            (A[rows] @ other).toarray(out=out[rows])

        parallel_map(run, _pieces(np.diff(ends) + self.shape[0]))  # what a row of the result takes counts too
        return out

    def squared_columns(self, weights=None):
        squares = self.by_row.multiply(self.by_row).tocsr()
        return squares.T @ (np.ones(self.shape[0]) if weights is None else weights)

    def squared_rows(self):
        return np.asarray(self.by_row.multiply(self.by_row).sum(axis=1)).ravel()

    def columns(self, chosen):
        return np.asfortranarray(self.by_column[:, chosen].toarray())

    def taking(self, chosen):
        return SparseDesign(self.by_column[:, chosen])

    def rows(self, chosen):
        return SparseDesign(self.by_row[chosen])


class Shifted(Design):
    """A - 1 shift' for data that must stay as it is: sparse, or made block by block. Products are corrected afterwards.

    >>> Shifted(SparseDesign(sparse.csr_matrix([[1.0], [3.0]])), np.array([2.0])).gram()
    array([[2.]])
    """

    shift: Array

    def __init__(self, design: Design, shift: Array):
        self._design, self.shift = design, shift
        self.shape = design.shape

    def dot(self, w):
        return self._design.dot(w) - self.shift @ w

    def tdot(self, u):
        return self._design.tdot(u) - np.multiply.outer(self.shift, u.sum(axis=0))

    def gram(self, weights=None):
        weights = np.ones(self.shape[0]) if weights is None else weights
        sums = self._design.tdot(weights)
        centre = 0.5 * weights.sum() * self.shift
        cross = np.multiply.outer(sums - centre, self.shift)
        return self._design.gram(weights) - cross - cross.T

    def outer(self, weights=None):
        weights = np.ones(self.shape[1]) if weights is None else weights
        levels = self._design.dot(weights * self.shift) - 0.5 * self.shift @ (weights * self.shift)
        return self._design.outer(weights) - np.add.outer(levels, levels)

    @lazy
    def rough_lengths(self):
        sums = self._design.tdot(np.ones(self.shape[0]))
        squares = self._design.squared_columns() - self.shift * (2 * sums - self.shape[0] * self.shift)
        return np.sqrt(np.maximum(squares, 0.0))

    def squared_rows(self):
        levels = 2 * self._design.dot(self.shift) - self.shift @ self.shift
        return np.maximum(self._design.squared_rows() - levels, 0.0)


@singledispatch
def make_design(X: Any) -> Design:
    """The design of one kind of data; ``make_design.register(kind, design)`` adds another kind, from any room.

    >>> make_design(np.eye(2)).shape
    (2, 2)
    """
    raise TypeError(f"{type(X).__name__} is no kind of data that a design is known for.")


make_design.register(np.ndarray, DenseDesign)
make_design.register(sparse.spmatrix, SparseDesign)
make_design.register(sparse.sparray, SparseDesign)


@make_design.register(Design)
def _as_it_is(X: Design) -> Design:
    return X


def brings_design(X: Any) -> bool:
    """Whether data is of a kind of its own, neither NumPy's nor SciPy's, that a design is registered for."""
    plain = (make_design.dispatch(kind) for kind in (object, np.ndarray, sparse.spmatrix))
    return make_design.dispatch(type(X)) not in plain


def design_of(X: Any, centre: bool = False) -> Design:
    """The design of validated data; ``centre`` shifts dense columns by their means."""
    design = make_design(X)
    return design.centred() if centre else design


def placed_design(X: Any) -> Design:
    """The design of the rows of a fit: of dense rows on the device in force, if there is one."""
    device = accelerator(float(np.prod(X.shape))) if isinstance(X, np.ndarray) else None
    return design_of(X) if device is None else device.dense_design(X)


def sparse_gram(matrix: sparse.csr_matrix, weights: Array, chosen: NDArray[np.intp]) -> Array:
    """A' diag(weights) A of the chosen columns A of a matrix."""
    rows, size = matrix.shape[0], len(chosen)
    places = np.full(matrix.shape[1], -1, dtype=np.int32)
    places[chosen] = np.arange(size)

    def run(share: int) -> Array:
        total = np.zeros((size, size))
        for band in blocks.slices(size, max(1, FRESH // max(size, 1))):
            check_stop()
            total[band, ::PAGE] = 0.0  # so that no product waits for many pages
        first, last = (part * rows // shares for part in (share, share + 1))
        starts, memory = matrix.indptr[first : last + 1], (np.empty(size + 1, np.int32), np.empty(size + 1))
        for piece in _pieces(np.diff(starts).astype(np.int64) ** 2):
            check_stop()
            part = starts[piece.start : piece.stop + 1]
            add_gram(matrix.data, matrix.indices, part, weights[first:last][piece], places, *memory, total)
        return total

    work = np.count_nonzero(weights) * (matrix.nnz / max(rows, 1)) ** 2
    shares = SHARES if work > SHARE_OF_WORK else 1
    total, *others = parallel_map(run, range(shares))

    def gather(rows: slice) -> None:
        for other in others:
            total[rows] += other[rows]

    blocks.over_rows(gather, size, 8 * size)
    for strip in blocks.slices(size, STRIP):
        check_stop()
        total[strip, strip] += total[strip, strip].T
        total[strip, strip.stop :] += total[strip.stop :, strip].T
        total[strip.stop :, strip] = total[strip, strip.stop :].T
    total.flat[:: size + 1] /= 2
    return total


def _pieces(products: NDArray) -> list[slice]:
    """The rows, which need so many products each, in slices that need about as many as are made between two looks.

    >>> _pieces(np.array([PRODUCTS, 1, PRODUCTS - 1]))
    [slice(0, 1, None), slice(1, 3, None)]
    """
    if products.sum() <= PRODUCTS:
        return [slice(0, len(products))]
    before = np.append(0, np.cumsum(products))
    cuts = np.append(np.searchsorted(before, np.arange(0, before[-1], PRODUCTS)), len(products))
    return [slice(start, stop) for start, stop in pairwise(np.unique(cuts).tolist())]


@plain_loop
def add_gram(data, indices, indptr, weights, places, kept, values, total):
    """Add sum_i weights_i a_i a_i' over the CSR rows of ``indptr`` to ``total``, for columns with a place >= 0.

    Each pair of columns is added once, above or below the diagonal. ``kept`` and ``values`` are memory for a row.
    """
    for i, weight in enumerate(weights):
        if weight == 0.0:
            continue
        count = 0
        for p in range(indptr[i], indptr[i + 1]):
            # Written always and kept only if chosen: a branch here would be mispredicted half of the time.
            place = places[indices[p]]
            kept[count] = place
            values[count] = data[p]
            count += place >= 0
        for p in range(count):
            row = total[kept[p]]
            scaled = weight * values[p]
            for q in range(p, count):
                row[kept[q]] += scaled * values[q]
