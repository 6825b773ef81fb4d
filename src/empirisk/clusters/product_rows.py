"""The rounds of k-means on rows that are known by products: sparse tables, streamed maps, and items behind a kernel."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.clusters.dense_rows import shares_of, squares_between
from empirisk.errors import Unsuitable
from empirisk.linalg.threads import parallel_map
from empirisk.settings import require, settings
from empirisk.stop import check_stop

Array = NDArray[np.float64]

ROUNDING = 1e-12  # squared distances below this share of the squared norms are zero: they are differences of products
STRIP = 1024  # columns of a block of the Gram matrix that a thread multiplies at once
BLOCK_BYTES = 1 << 26  # of kernel values made, or taken from the matrix, at a time


class ProductRows:
    """What the two kinds share: rows in an order, their squared norms, and a run of k-means.

    Parameters
    ----------
    design : Design
        The rows.
    weights : array
        What each row of ``order`` counts.
    order : array of int
        The order in which the rows are seen, which may leave rows out.
    """

    floats = np.float64
    settled = ("centres", "_nearest_squares")  # beside the labels, what a half-step that is given up may have changed
    labels: NDArray[np.int32]
    centres: Any
    totals: Array
    filled: NDArray[np.bool_]

    def __init__(self, design: Any, weights: Array, order: NDArray[np.intp]):
        self.weights, self.order, self.design = weights, order, design.rows(order)
        self.count, self.width = self.design.shape
        self.shares = shares_of(self.count)
        self.norms = np.asarray(self.design.squared_rows(), dtype=np.float64)

    def begin(self):
        """A run on the same rows."""
        run = object.__new__(type(self))
        vars(run).update(vars(self))
        run.labels = np.full(self.count, -1, np.int32)
        return run

    def products_with_rows(self, chosen: NDArray[np.intp]) -> Array:
        """<x_c, x_i> of some rows with all."""
        raise NotImplementedError

    def exact_squares(self, chosen: NDArray[np.intp]) -> Array:
        """The squared distance of every row to the nearest of some rows."""
        return self._squares(chosen).min(axis=0)

    def _squares(self, chosen: NDArray[np.intp]) -> Array:
        both = self.norms[chosen, None] + self.norms
        squares = both - 2 * self.products_with_rows(chosen)
        return np.where(squares <= ROUNDING * both, 0.0, squares)

    def squares_to(self, chosen: NDArray[np.intp], closest: Array, out: Array) -> Array:
        """Writes squared distances to the nearest of the centres so far and each row chosen; totals as `approach`."""
        np.minimum(self._squares(chosen), closest, out=out)
        parts = [(out[:, slice(*span)], self.weights[slice(*span)]) for span in self.shares]
        return np.array([[squares @ weights, (squares > 0) @ weights] for squares, weights in parts])

    def _own_level(self) -> tuple[Array, Array]:
        """<x_i, m_k> of every row and centre, as k x n, and |m_k|^2."""
        raise NotImplementedError

    def assign(self) -> int:
        """Every row to its nearest centre; how many changed. Of equally near centres the own one wins."""
        products, squares = self._own_level()
        values = squares[:, None] - 2 * products
        winner = values.argmin(axis=0).astype(np.int32)
        every = np.arange(self.count)
        known = self.labels >= 0
        own = np.where(known, values[self.labels, every], np.inf)
        slack = ROUNDING * (self.norms + squares[winner])
        changed = values[winner, every] < np.where(known, own - slack, np.inf)
        self.labels = np.where(changed, winner, self.labels)
        self._nearest_squares = np.maximum(self.norms + values[self.labels, every], 0.0)
        return int(changed.sum())

    def own_squares(self) -> Array:
        """The squared distance of every row to its centre."""
        products, squares = self._own_level()
        own = squares[self.labels]
        values = self.norms + own - 2 * products[self.labels, np.arange(self.count)]
        return np.where(values <= ROUNDING * (self.norms + own), 0.0, values)

    def settled_squares(self) -> Array:
        """The squared distances that the last `assign` found: it takes as long as these alone."""
        return self._nearest_squares

    def _weigh(self) -> None:
        self.filled = np.bincount(self.labels, minlength=len(self.filled)) > 0
        self.totals = np.bincount(self.labels, self.weights, minlength=len(self.filled)).astype(np.float64)

    def relabel(self, row: int, cluster: int) -> None:
        """Move a row, and those equal to it, to a cluster that was empty."""
        self.labels[self.exact_squares(np.array([row])) == 0] = cluster
        self.move()

    def move(self) -> None:
        """Every centre to the mean of its rows; one without rows stays."""
        raise NotImplementedError


class DesignRows(ProductRows):
    """Rows of a sparse table or of a map that is streamed: centres are arrays."""

    def products_with_rows(self, chosen):
        check_stop()
        return self.design.dot(self.design.tdot(self._indicators(chosen))).T

    def _indicators(self, chosen: NDArray[np.intp]) -> Array:
        """Columns with a one at each of the chosen rows: A'u of them is these rows."""
        out = np.zeros((self.count, len(chosen)))
        out[chosen, np.arange(len(chosen))] = 1.0
        return out

    def box(self) -> tuple[Array, Array]:
        """The smallest and the largest value of every column."""
        if not hasattr(self.design, "X"):
            raise Unsuitable("init='box' needs a table, but these features are streamed; use init='k-means++'.")
        columns = self.design.X.tocsc()
        return columns.min(axis=0).toarray().ravel(), columns.max(axis=0).toarray().ravel()

    def row(self, row: int) -> Array:
        """One of the rows."""
        return self.design.tdot(self._indicators(np.array([row])))[:, 0]

    def start_at_rows(self, chosen: NDArray[np.intp]) -> None:
        """Centres at some of the rows."""
        self.start_at(self.design.tdot(self._indicators(chosen)).T)

    def start_from_labels(self, labels: NDArray, clusters: int) -> None:
        """Centres at the means of given clusters."""
        self.start_at(np.zeros((clusters, self.width)))
        self.labels = labels.astype(np.int32)
        self.move()
        self.labels = np.full(self.count, -1, np.int32)

    def start_at(self, centres: Array) -> None:
        """Given centres."""
        require(16 * self.count * len(centres), f"Products of {self.count} rows with {len(centres)} centres",
                "ask for fewer clusters, or give batch_size")  # fmt: skip
        self.centres = np.ascontiguousarray(centres, dtype=np.float64)
        self.filled = np.ones(len(centres), dtype=bool)

    def _own_level(self):
        check_stop()
        return np.ascontiguousarray(self.design.dot(self.centres.T).T), np.einsum(
            "kj,kj->k", self.centres, self.centres
        )

    def move(self):
        check_stop()
        self._weigh()
        member = np.zeros((self.count, len(self.filled)))
        member[np.arange(self.count), self.labels] = self.weights
        means = self.design.tdot(member).T / np.where(self.filled, self.totals, 1.0)[:, None]
        self.centres = np.where(self.filled[:, None], means, self.centres)

    renew = move

    def squares_between_means(self) -> Array:
        """The squared distance of every two centres."""
        return squares_between(self.centres)

    def inertia_of_means(self) -> float:
        """The inertia right after `move`, from the means alone."""
        return float(self.weights @ self.norms - self.totals @ np.einsum("kj,kj->k", self.centres, self.centres))


class KernelRows(ProductRows):
    """Items behind a kernel: a centre is the weighted mean of its items, known by its products with all of them.

    ``sums`` holds sum_i c_i k(x_i, x_j) over the items of each cluster, k x n. A round changes it by the rows of the
    Gram matrix of the items that changed their cluster; they are computed again where the matrix is over the budget.
    """

    settled = ("totals", "_squares_of_means", "_summed", "_nearest_squares")

    def __init__(self, design, weights, order):
        super().__init__(design, weights, order)
        self._kept = 8 * self.count**2 <= settings().memory // 4
        if self._kept:
            self.design.matrix  # noqa: B018 - made here, where whoever waits for it can end it

    def _blocks(self, chosen: NDArray[np.intp]):
        """Rows of the Gram matrix, some at a time, each with their places in ``chosen``."""
        step = max(1, BLOCK_BYTES // (8 * self.count))
        for start in range(0, len(chosen), step):
            some = slice(start, start + step)
            yield some, self.design.matrix[chosen[some]] if self._kept else self.design.block(chosen[some])

    def products_with_rows(self, chosen):
        return np.concatenate([np.asarray(block, dtype=np.float64) for _, block in self._blocks(chosen)])

    def start_at_rows(self, chosen: NDArray[np.intp]) -> None:
        """Centres at some of the items."""
        self.sums, self.totals = self.products_with_rows(chosen).copy(), np.ones(len(chosen))
        self.filled = np.ones(len(chosen), dtype=bool)
        self._squares_of_means, self._chosen = self.norms[chosen], chosen
        self._summed: NDArray[np.int32] | None = None

    def start_from_labels(self, labels: NDArray, clusters: int) -> None:
        """Centres at the means of given clusters."""
        self.filled = np.zeros(clusters, dtype=bool)
        self.labels = labels.astype(np.int32)
        self._summed = None
        self.move()
        self.labels = np.full(self.count, -1, np.int32)

    def _own_level(self):
        return self.sums / self.totals[:, None], self._squares_of_means

    def move(self):
        if self._summed is None:
            self.sums = np.zeros((len(self.filled), self.count))
            changed = np.arange(self.count)
        else:
            changed = np.flatnonzero(self._summed != self.labels)
        self._weigh()
        self._add(changed)
        self._summed = self.labels.copy()
        self.totals = np.where(self.filled, self.totals, 1.0)
        own = np.bincount(
            self.labels, self.weights * self.sums[self.labels, np.arange(self.count)], minlength=len(self.filled)
        )
        self._squares_of_means = own / self.totals**2

    def _add(self, changed: NDArray[np.intp]) -> None:
        """Move the rows of the Gram matrix of items that changed from the sums of one cluster to another."""
        for some, block in self._blocks(changed):
            rows = changed[some]
            signs = np.zeros((len(self.filled), len(rows)))
            places = np.arange(len(rows))
            signs[self.labels[rows], places] = self.weights[rows]
            if self._summed is not None:
                signs[self._summed[rows], places] -= self.weights[rows]
            used = np.flatnonzero(signs.any(axis=1))

            def run(start: int, block=block, signs=signs[used], used=used) -> None:
                strip = slice(start, start + STRIP)
                self.sums[used, strip] += signs @ block[:, strip]

            parallel_map(run, range(0, self.count, STRIP))

    def renew(self) -> None:
        """Nothing to do: sums in float64 lose less by the changes of one run than a distance loses by its products."""

    def coefficients(self) -> Array:
        """The weights of the items in each mean, n x k; labels may be ahead of the means by half a round."""
        shape = self.count, len(self.filled)
        if self._summed is None:  # the means are some items still
            return sparse.csr_array((self.totals, (self._chosen, np.arange(shape[1]))), shape=shape).toarray()
        places = np.arange(self.count), self._summed
        return sparse.csr_array((self.weights, places), shape=shape).toarray() / self.totals

    def squares_between_means(self) -> Array:
        """The squared distance of every two centres."""
        products = self.sums @ self.coefficients() / self.totals[:, None]
        return np.maximum(self._squares_of_means[:, None] + self._squares_of_means - products - products.T, 0.0)

    @property
    def squares_of_means(self) -> Array:
        """|m_k|^2."""
        return self._squares_of_means

    def inertia_of_means(self) -> float:
        """The inertia right after `move`, from the means alone."""
        return float(self.weights @ self.norms - np.where(self.filled, self.totals, 0.0) @ self._squares_of_means)
