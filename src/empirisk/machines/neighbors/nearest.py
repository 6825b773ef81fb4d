"""Exact search for nearest neighbours, among vectors and behind kernels, with its loops and the votes."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from empirisk.kernels.base import Kernel
from empirisk.kernels.items import size
from empirisk.linalg.accelerator import accelerator, lie_on_device
from empirisk.linalg.blocks import Array, slices
from empirisk.linalg.compiled import multiply, plain_loop
from empirisk.linalg.threads import parallel_map
from empirisk.stop import check_stop

CHUNK = 128  # columns asked at once whether any is near: a few vector instructions, and seldom a yes
#: Queries and known rows of a tile of products, which stays in the cache while it is looked through.
ROWS, COLUMNS = 128, 1024


@plain_loop
def select(products, norms, first, values, places):
    """Merge the columns of a block into sorted lists of the smallest  norms_j - 2 products_ij.

    Columns are numbered from ``first``; of equal values the one that came first stays first.
    """
    longest = values.shape[1]
    for i in range(products.shape[0]):
        worst = values[i, longest - 1]
        for start in range(0, products.shape[1], CHUNK):
            # Most chunks hold nothing near. Slices, without a branch, let the processor compare many at once.
            part, level = products[i, start : start + CHUNK], norms[start : start + CHUNK]
            near = 0
            for j in range(len(part)):
                near |= level[j] - part[j] - part[j] < worst
            if near == 0:
                continue
            for j in range(len(part)):
                value = level[j] - part[j] - part[j]
                if value < worst:
                    place = longest - 1
                    while place > 0 and value < values[i, place - 1]:
                        values[i, place] = values[i, place - 1]
                        places[i, place] = places[i, place - 1]
                        place -= 1
                    values[i, place] = value
                    places[i, place] = first + start + j
                    worst = values[i, longest - 1]


@plain_loop
def sort_exactly(A, B, places, squares):
    """Squared distances |a_i - b_j|^2 of the listed pairs from their differences, and the lists in their order."""
    for i in range(places.shape[0]):
        for n in range(places.shape[1]):
            total = 0.0
            other = places[i, n]
            for k in range(A.shape[1]):
                difference = A[i, k] - B[other, k]
                total += difference * difference
            place = n
            while place > 0 and (
                total < squares[i, place - 1] or (total == squares[i, place - 1] and other < places[i, place - 1])
            ):
                squares[i, place] = squares[i, place - 1]
                places[i, place] = places[i, place - 1]
                place -= 1
            squares[i, place] = total
            places[i, place] = other


@plain_loop
def search(start, stop, queries, known, norms, memory, values, places):
    """The lists of the nearest known rows of some queries: products by BLAS, selection while they are in the cache."""
    for row in range(start, stop, ROWS):
        end = min(row + ROWS, stop)
        for first in range(0, len(known), COLUMNS):
            last = min(first + COLUMNS, len(known))
            tile = memory[: (end - row) * (last - first)].reshape(end - row, last - first)
            multiply(queries[row:end], known[first:last].T, tile)
            select(tile, norms[first:last], first, values[row:end], places[row:end])


@plain_loop
def add_votes(places, amounts, codes, votes):
    """Add what neighbours count to the votes of their classes."""
    for i in range(places.shape[0]):
        for n in range(places.shape[1]):
            votes[i, codes[places[i, n]]] += amounts[i, n]


#: Candidates more than are asked for, which single precision may have put in the wrong order.
EXTRA = 8
#: Distances that are equal but for rounding are within this factor.
ROUNDED = 1 + 1e-12
#: Roundings in k(x, x) - 2 k(x, z) + k(z, z), each of the size of k(x, x) where it is small: less than these is zero.
KERNEL_ROUNDING = 16
#: Products of sparse rows that a thread makes at a time, and kernel entries that all threads make.
BLOCK_BYTES, KERNEL_BYTES = 1 << 25, 1 << 27
#: Rows that a thread makes ready at a time.
PART = 8192
#: A tree looks at few of the rows in so many dimensions; making it pays for so many queries and rows.
DIMENSIONS, QUERIES, KNOWN = 5, 500, 2000


class Found(NamedTuple):
    """Squared distances in units, increasing along each row, and the numbers of the neighbours."""

    squares: Array
    places: NDArray[np.intp]
    unit: float = 1.0


class EuclideanSearch:
    """The nearest rows of a table.

    Dense rows of many columns are compared in float32, with a few candidates more than are asked for, and the
    candidates by their differences in float64. A row whose candidates are not beyond doubt by the rounding of float32
    is searched again in float64. Of equal distances that to the row that stands first is taken.

    Parameters
    ----------
    X : array or sparse matrix
        The rows among which neighbours are found.

    Attributes
    ----------
    rows : array or sparse matrix
        The rows, in units.
    unit : float
        A power of two. Squared distances are found in units of its square, which cannot overflow.
    """

    def __init__(self, X: Any):
        self._count = X.shape[0]
        if sparse.issparse(X):
            largest = float(abs(X).max())
        else:
            largest = float(max(parallel_map(lambda rows: max(X[rows].max(), -X[rows].min()), slices(len(X), PART))))
        # Between the smallest and the largest power of two of which the inverse is a number too.
        self.unit = float(np.ldexp(1.0, int(np.clip(np.frexp(largest)[1], -1000, 1000))))
        self.rows = X.tocsr().astype(np.float64) / self.unit if sparse.issparse(X) else self._scaled(X)

    def find(self, X: Any, count: int) -> Found:
        """The nearest ``count`` rows of each row of X."""
        count = min(count, self._count)
        if sparse.issparse(self.rows) or sparse.issparse(X):
            return self._find_sparse(sparse.csr_matrix(X).astype(np.float64) / self.unit, count)
        X = self._scaled(X)
        if X.shape[1] <= DIMENSIONS and len(X) >= QUERIES and self._count >= KNOWN:
            return self._find_by_tree(X, count)
        squares, places, sure = self._find_dense(X, count, np.float32)
        doubtful = np.flatnonzero(~sure)
        if len(doubtful):
            squares[doubtful], places[doubtful], sure = self._find_dense(X[doubtful], count, np.float64)
            doubtful = doubtful[~sure]
        for row in doubtful:  # one far row takes all digits from the products of the others
            check_stop()  # each takes a pass over all rows
            differences = self.rows - X[row]
            rough = np.einsum("ij,ij->i", differences, differences)
            near = np.flatnonzero(rough <= np.partition(rough, count - 1)[count - 1] * ROUNDED)
            squares[row], places[row] = self._nearest_of(near, X[row : row + 1], count)
        return Found(squares, places, self.unit)

    def _nearest_of(self, near: NDArray[np.intp], query: Array, count: int) -> tuple[Array, NDArray[np.intp]]:
        """The nearest of some rows: all that may be, so that of equal distances the first row is taken, not any."""
        places, squares = near[None].copy(), np.full((1, len(near)), np.inf)
        sort_exactly(query, self.rows, places, squares)
        return squares[0, :count], places[0, :count]

    def _scaled(self, X: NDArray) -> Array:
        """X in units, in float64; exactly, because the unit is a power of two."""
        out = np.empty(X.shape)
        parallel_map(lambda rows: np.divide(X[rows], self.unit, out=out[rows]), slices(len(X), PART))
        return out

    def _find_by_tree(self, X: Array, count: int) -> Found:
        tree = cKDTree(self.rows)
        squares, places = _lists(len(X), min(count + EXTRA, self._count))
        numbers = np.arange(1, places.shape[1] + 1)

        def run(start: int) -> None:
            rows = slice(start, start + ROWS)
            places[rows] = tree.query(X[rows], numbers)[1]
            sort_exactly(X[rows], self.rows, places[rows], squares[rows])
            last = squares[rows, count - 1] * ROUNDED  # a tree takes any of the rows that are so far
            for row in start + np.flatnonzero(last >= squares[rows, -1]) if len(numbers) < self._count else ():
                check_stop()
                near = np.array(tree.query_ball_point(X[row], np.sqrt(last[row - start]) * ROUNDED, return_sorted=True))
                squares[row, :count], places[row, :count] = self._nearest_of(near, X[row : row + 1], count)

        parallel_map(run, range(0, len(X), ROWS))
        return Found(squares[:, :count], places[:, :count], self.unit)

    def _find_dense(self, X: Array, count: int, dtype: Any) -> tuple[Array, NDArray[np.intp], NDArray[np.bool_]]:
        sums = parallel_map(lambda rows: self.rows[rows].sum(axis=0), slices(len(self.rows), PART))
        centre = np.add.reduce(sums) / self._count
        known, norms = _around(self.rows, centre, dtype)
        queries, own = _around(X, centre, dtype)
        wanted = min(count + EXTRA, self._count)
        values, places = np.full((len(X), wanted), np.inf, dtype), np.zeros((len(X), wanted), dtype=np.intp)
        squares = np.full((len(X), wanted), np.inf)
        # No row outside a list is nearer than its last value, but for the rounding of the products.
        rounding = 2 * (X.shape[1] + 4) * float(np.finfo(dtype).eps)

        device = accelerator(float(len(X)) * len(known)) if dtype == np.float32 else None
        if device is not None:
            values, places = device.nearest_lists(queries, known, norms, wanted)

        def run(start: int) -> None:
            stop = min(start + ROWS, len(X))
            if device is None:
                search(start, stop, queries, known, norms, np.empty(ROWS * COLUMNS, dtype), values, places)
            sort_exactly(X[start:stop], self.rows, places[start:stop], squares[start:stop])

        parallel_map(run, range(0, len(X), ROWS))
        own = own.astype(np.float64)
        with np.errstate(all="ignore"):  # a query beyond all numbers has no bound, and is not sure
            bound = values[:, -1] + own - rounding * (own + float(norms.max(initial=0.0)))
        sure = (squares[:, count - 1] <= bound) | (wanted == self._count)
        return squares[:, :count], places[:, :count], sure

    def _find_sparse(self, X: Any, count: int) -> Found:
        known = sparse.csr_matrix(self.rows)
        norms, own = (np.asarray(rows.multiply(rows).sum(axis=1)).ravel() for rows in (known, X))
        transposed = known.T.tocsr()
        wanted = min(count + EXTRA, self._count)
        values, places = _lists(X.shape[0], wanted)
        squares = np.empty_like(values)
        rounding = 2 * (X.shape[1] + 4) * float(np.finfo(np.float64).eps) * (own + float(norms.max(initial=0.0)))
        step = max(1, BLOCK_BYTES // (8 * self._count))

        def run(start: int) -> None:
            rows = slice(start, min(start + step, X.shape[0]))
            queries = X[rows]
            select((queries @ transposed).toarray(), norms, 0, values[rows], places[rows])
            squares[rows] = _squared_differences(queries, known, places[rows])
            with np.errstate(all="ignore"):
                sure = squares[rows].max(axis=1) <= values[rows, -1] + own[rows] - rounding[rows]
            for row in start + np.flatnonzero(~sure) if wanted < self._count else ():
                check_stop()  # each takes a pass over all rows
                everything = np.arange(self._count)[None]
                exact = _squared_differences(X[row : row + 1], known, everything)
                places[row] = np.argsort(exact[0], kind="stable")[:wanted]
                squares[row] = exact[0, places[row]]

        parallel_map(run, range(0, X.shape[0], step))
        order = np.lexsort((places, squares), axis=1)[:, :count]
        nearest, numbers = np.take_along_axis(squares, order, axis=1), np.take_along_axis(places, order, axis=1)
        return Found(nearest, numbers, self.unit)


def euclidean_search(rows: Any, X: Any, count: int) -> Found:
    """The nearest ``count`` of some rows to each row of X: on a device where some of them lie there.

    >>> euclidean_search(np.array([[0.0], [3.0]]), np.array([[1.0]]), 1)
    Found(squares=array([[0.0625]]), places=array([[0]]), unit=4.0)
    """
    plain = [each.toarray() if sparse.issparse(each) else each for each in (rows, X)]
    if not any(map(lie_on_device, plain)):
        return EuclideanSearch(rows).find(X, count)
    device: Any = accelerator(0.0, *plain)
    search = device.neighbours(plain[0])
    squares, places = search.find(plain[1], count, EXTRA)
    return Found(squares, places, search.unit)


def kernel_search(kernel: Kernel, known: Any, norms: Array, items: Any, count: int, own: Array | None = None) -> Found:
    """The nearest known items of each by |phi(x) - phi(z)|^2 = k(x, x) - 2 k(x, z) + k(z, z).

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    known, norms : prepared items and array
        Those among which neighbours are found, and their k(z, z).
    items, count : prepared items and int
        Of what neighbours are found, and how many of each.
    own : array, optional
        k(x, x) of the items; without it squared distances lack that constant.
    """
    values, places = _lists(size(items), min(count, size(known)))
    step = max(1, KERNEL_BYTES // (8 * size(known)))
    for some in slices(size(items), step):
        device = accelerator(0.0, items, known) if lie_on_device(items) or lie_on_device(known) else None
        block = (
            kernel.between(items[some], known) if device is None else device.kernel_block(kernel, items[some], known)
        )
        levels, found = norms.astype(block.dtype), np.full((len(block), values.shape[1]), np.inf, block.dtype)

        def run(part: slice, block=block, levels=levels, found=found, there=places[some]) -> None:
            select(block[part], levels, 0, found[part], there[part])

        parallel_map(run, slices(len(block), ROWS))
        values[some] = found
        if own is not None:
            squares, digits = values[some] + own[some, None], KERNEL_ROUNDING * np.finfo(block.dtype).eps
            values[some] = np.where(squares > digits * np.abs(own[some, None]), squares, 0.0)
    return Found(values, places)


def _block(kernel: Kernel, items: Any, known: Any) -> NDArray[Any]:
    """k(x, z), made on a device where some of the items lie there."""
    if not (lie_on_device(items) or lie_on_device(known)):
        return kernel.between(items, known)
    device: Any = accelerator(0.0, items, known)
    return device.kernel_block(kernel, items, known)


def shares(
    places: NDArray[np.intp], weights: Array, own: NDArray, ks: Iterable[float], distances: Array | None = None
) -> Iterator[Array]:
    """For every k, what each listed neighbour counts: weight until k is reached, over the distance if that is given.

    ``own`` is the number of a row among the neighbours, which is then left out once; -1 for a new row.
    Neighbours at distance zero, if there are any, count alone where weights go by distance.
    """
    weights = np.maximum(weights[places] - (places == own[:, None]), 0.0)
    before, closeness = np.cumsum(weights, axis=1) - weights, np.ones_like(weights)
    if distances is not None:
        nearest = np.where(weights > 0, distances, np.inf).min(axis=1, keepdims=True)
        np.divide(nearest, distances, out=closeness, where=distances > nearest)
    for k in ks:
        yield np.clip(k - before, 0.0, weights) * closeness


def _squared_differences(queries: Any, known: Any, places: NDArray[np.intp]) -> Array:
    """|a_i - b_j|^2 of sparse rows and those listed for each, from their differences."""
    out = np.empty(places.shape)
    for start in range(0, len(places), ROWS):
        part = places[start : start + ROWS]
        own = np.repeat(np.arange(start, start + len(part)), places.shape[1])
        differences = queries[own] - known[part.ravel()]
        out[start : start + ROWS] = np.asarray(differences.multiply(differences).sum(axis=1)).reshape(part.shape)
    return out


def _around(exact: Array, centre: Array, dtype: Any) -> tuple[NDArray, NDArray]:
    """Rows around a centre in another precision, and their squared norms."""
    out, norms = np.empty(exact.shape, dtype), np.empty(len(exact), dtype)

    def run(rows: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond all numbers is not sure
            part = np.subtract(exact[rows], centre, out=out[rows], casting="same_kind")
            np.einsum("ij,ij->i", part, part, out=norms[rows])

    parallel_map(run, slices(len(exact), PART))
    return out, norms


def keys_of_rows(X: Any) -> Array:
    """One number for each row, which equal rows have in common and others have not."""
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    if lie_on_device(X):
        return X @ direction
    # Row by row: a matrix product may round equal rows differently.
    return X @ direction if sparse.issparse(X) else np.einsum("ij,j->i", EuclideanSearch(X).rows, direction)


def _lists(rows: int, count: int) -> tuple[Array, NDArray[np.intp]]:
    return np.full((rows, count), np.inf), np.zeros((rows, count), dtype=np.intp)
