"""Hierarchical clustering: the two nearest clusters are merged, again and again."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClusterMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, check_is_fitted

from empirisk import state
from empirisk.clusters.kmeans import KMeans
from empirisk.clusters.lloyd import EQUAL_KEYS, TooFew
from empirisk.clusters.rows import keys, nearest
from empirisk.contract.arguments import check_count, check_number, check_time
from empirisk.contract.features import Features, MapsFeatures
from empirisk.contract.inputs import Array, check_weights
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, TooFewRows
from empirisk.kernels.distances import robust_centre
from empirisk.kernels.tiles import DENSE_ENOUGH, dense, density, products, squared_norms
from empirisk.linalg.blocks import blocks, over_rows
from empirisk.linalg.compiled import loop_with, plain_loop
from empirisk.linalg.threads import parallel_map
from empirisk.maps.implicit import GramDesign
from empirisk.names import Estimator
from empirisk.settings import require
from empirisk.stop import Deadline, Ending, Stopped, interruptible, stopping

LINKAGES = ("single", "complete", "average", "ward")
CLOSE = 1e-3  # pairs nearer than this share of their squared norms are measured by differences: 13 digits are kept
MERGES = 512  # between two looks at Ctrl-C and the callbacks
QUICK = 2048  # rows whose distances take milliseconds: they are computed without checks of the clock
CELLS = 256  # sampled rows that are clustered where max_time is too short for all distances
SMALLEST = 256  # clusters below which the matrix is not made smaller any more


@dataclass(eq=False, repr=False)
class Hierarchical(MapsFeatures, CallbackSupportMixin, ClusterMixin, Estimator):
    """Hierarchical clustering: from single rows on, the two nearest clusters are merged until all are one.

    How near two clusters A and B are is decided by the rows of both: the smallest distance of a pair ("single"), the
    largest ("complete"), the mean ("average"), or the rise of the squared distances to the means ("ward"),

        min |phi(x) - phi(z)|,   max |phi(x) - phi(z)|,   mean |phi(x) - phi(z)|    over x in A and z in B,
        sqrt(2 a b / (a + b)) |m_A - m_B|    with the weights a and b of the clusters, and m their means.

    Distances are Euclidean, after a map phi, or through a kernel.

    Parameters
    ----------
    linkage : {"single", "complete", "average", "ward"}
        The distance of two clusters.
    features : None, transformer or kernel
        The feature map phi, fitted inside, or a kernel.
    squared : bool
        Whether distances are squared: heights of "single", "complete" and "ward" are then squared, "average" takes the
        mean of squares.
    n_clusters : int or None
        How many clusters ``labels_`` has.
    distance_threshold : float or None
        Clusters farther apart stay apart in ``labels_``. Without this and ``n_clusters`` the cut is where the heights
        rise most.
    cells : int or None
        For long data: link the means of so many clusters of k-means instead of the rows.
    max_time : float or None
        Seconds after which no more merges are looked for: the clusters of that moment are joined all at one height, the
        largest distance between any two. Where not even the distances are there, some rows are linked, and every other
        one is with the nearest of them.
    random_state : int, RandomState or None
        Decides the start of k-means, where there are cells.

    Attributes
    ----------
    linkage_ : array, (m - 1) x 4
        The merges as SciPy writes them: two clusters, their distance, and how many leaves they hold.
    labels_ : array of n
        The cluster of each row, -1 for rows of weight zero.
    n_clusters_ : int
        The number of clusters in ``labels_``.
    leaves_ : array of n
        The leaf that each row belongs to: itself, its cell, or the nearest of the rows that are linked.
    history_ : dict
        ``merges`` that were known, and ``height``, the largest of them, after every piece of the work.
    stopped_ : str
        Why it ended: "finished", "max_time", "interrupted" or "callback".

    Examples
    --------
    >>> machine = er.Hierarchical("single", n_clusters=2).fit([[0.0], [1.0], [7.0], [9.0]])
    >>> machine.labels_
    array([0, 0, 1, 1])
    >>> machine.linkage_[:, 2], machine.cut(3), machine.cut(height=1.5)
    (array([1., 2., 6.]), array([0, 0, 1, 2]), array([0, 0, 1, 2]))
    """

    _state = state.State(
        lambda its: None if its["leaves_"].max() <= len(its["linkage_"]) else "leaves_ are not in linkage_",
        lambda its: _wrong_merges(its["linkage_"]),
        linkage_=state.array("f8", "merges", 4, low=0),
        labels_=state.array("i", "rows", low=-1),
        leaves_=state.array("i", "rows", low=-1),
        n_clusters_=state.whole(1),
        history_=state.optional(state.mapping(state.array("f8", None, finite=False))),
        stopped_=state.optional(state.text()),
    )

    linkage: str = "average"
    features: Features = None
    _: KW_ONLY
    squared: bool = False
    n_clusters: int | None = None
    distance_threshold: float | None = None
    cells: int | None = None
    max_time: float | None = None
    random_state: Any = None

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Hierarchical:
        """Link the rows of X; y is not used.

        Parameters
        ----------
        X : rows
            An array, a sparse matrix, or what the kernel takes.
        y : ignored
            There for pipelines.
        sample_weight : array of n, optional
            Weights of the rows; weight 2 counts as the row twice.
        """
        self._check()
        deadline = Deadline(self.max_time)
        design, ones = self._fit_map(X, np.ones(_num_samples(X)), sample_weight)
        weights = check_weights(sample_weight, len(ones))
        counting = np.flatnonzero(weights > 0)
        if len(counting) < 2:
            raise TooFewRows(
                f"Hierarchical needs more than one sample of positive weight, but X has n_samples={len(counting)}."
            )
        self.leaves_ = np.full(len(ones), -1)
        watch = FitCallbacks(self, len(counting), {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}})
        with interruptible():
            leaves, sizes, squares = self._distances(X, design, weights, counting, deadline)
            merging = Merging(squares, sizes, self.linkage, self.squared)
            self.history_ = merging.run(deadline, watch)
        merging.merges[:, :2] = leaves[merging.merges[:, :2].astype(np.intp)]
        self.linkage_ = _sorted(merging.merges)
        count = self._wanted()
        self.labels_ = self.cut(height=self.distance_threshold) if count is None else self.cut(count)
        self.n_clusters_ = int(self.labels_.max()) + 1
        self.stopped_ = deadline.reason or Ending.FINISHED
        watch.close()
        warn_if_unfinished(self, self.stopped_, f"{int(self.history_['merges'][-1])} merges")
        return self

    @property
    def children_(self) -> NDArray[np.intp]:
        """The two clusters of each merge, by scikit-learn's name: the first two columns of ``linkage_``."""
        check_is_fitted(self)
        return self.linkage_[:, :2].astype(np.intp)

    @property
    def distances_(self) -> Array:
        """The distance of each merge, by scikit-learn's name: the third column of ``linkage_``."""
        check_is_fitted(self)
        return self.linkage_[:, 2]

    @property
    def n_leaves_(self) -> int:
        """How many leaves are linked: rows of positive weight, cells, or some of the rows."""
        check_is_fitted(self)
        return len(self.linkage_) + 1

    def _check(self) -> None:
        if self.linkage not in LINKAGES:
            raise EmpiriskError(f"linkage={self.linkage!r} is not known; choose one of {list(LINKAGES)}.")
        check_count("n_clusters", self.n_clusters, optional=True)
        check_count("cells", self.cells, low=2, optional=True)
        check_time(self.max_time)
        if self.distance_threshold is not None:
            check_number("distance_threshold", self.distance_threshold, 0)
        if self.n_clusters is not None and self.distance_threshold is not None:
            raise EmpiriskError("n_clusters and distance_threshold both say where to cut; give one of them.")
        self._require_fixed_features()

    def _distances(
        self, X: Any, design: Any, weights: Array, counting: NDArray[np.intp], deadline: Deadline
    ) -> tuple[NDArray[np.intp], Array, Array]:
        """The leaves in an order of their values, so that theirs breaks no tie; weights and squared distances."""
        if self.cells is not None:
            found = self._link_cells(X, weights, counting, self.cells, deadline.left())
            deadline()
            return found
        along = keys(design)[counting]
        order = np.argsort(along, kind="stable")
        try:
            with stopping(deadline if len(counting) > QUICK else lambda: False):
                squares = _squares_between(design.rows(counting[order]))
        except Stopped:
            along = along[order]
            distinct = np.flatnonzero(np.diff(along, prepend=-np.inf) > EQUAL_KEYS * np.abs(along).max())
            if len(distinct) == 1:  # of equal rows two make a tree
                distinct = np.array([0, 1])
            some = np.linspace(0, len(distinct) - 1, min(CELLS, len(distinct))).astype(np.intp)
            return self._link_some(design, weights, counting, counting[order[distinct[some]]])
        self.leaves_[counting] = np.arange(len(counting))
        return order, weights[counting[order]], squares

    def _link_cells(
        self, X: Any, weights: Array, counting: NDArray[np.intp], cells: int, max_time: float | None
    ) -> tuple[NDArray[np.intp], Array, Array]:
        """The cells of k-means, their weights, and the squared distances of their means."""
        machine = KMeans(cells, self.features, n_init=1, max_time=max_time, random_state=self.random_state)
        with warnings.catch_warnings():
            # The tree says itself that it was stopped; and cells need not be those of the last round.
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(X, sample_weight=weights)
        labels = machine.labels_[counting]
        sizes = np.bincount(labels, weights[counting], minlength=cells).astype(np.float64)
        # Of means that are equal all but one have no rows, and are no leaves; but a tree has two.
        kept = np.argsort(sizes == 0, kind="stable")[: max(2, np.count_nonzero(sizes))]
        self.leaves_[counting] = np.argmax(labels[:, None] == kept, axis=1)
        if machine.squares_of_means_ is None:
            squares = _distances_of(machine.cluster_centers_)
        else:
            products = machine.dual_coef_ @ machine._products(machine.support_vectors_)
            squares = _of_products((products + products.T) / 2)
        return np.arange(len(kept)), sizes[kept], squares[np.ix_(kept, kept)]

    def _link_some(
        self, design: Any, weights: Array, counting: NDArray[np.intp], chosen: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], Array, Array]:
        """Some of the rows, the weights of the cells around them, and their squared distances."""
        if design.implicit:
            labels = _nearest_items(design, chosen)
        else:
            labels = nearest(design, dense(_table(design.rows(chosen))))[0]
        every = np.arange(len(chosen))
        labels[chosen] = every  # whatever rounding says
        self.leaves_[counting] = labels[counting]
        sizes = np.bincount(labels[counting], weights[counting]).astype(np.float64)
        return every, sizes, _squares_between(design.rows(chosen))

    def _wanted(self) -> int | None:
        """How many clusters to cut into; None where the distance decides."""
        leaves = len(self.linkage_) + 1
        if self.distance_threshold is not None:
            return None
        if self.n_clusters is None:
            rises = np.diff(self.linkage_[:, 2], prepend=0.0)
            # Before the last merge there are two clusters: at least so many are told apart.
            return leaves - int(rises.argmax()) if len(rises) > 1 and rises.any() else 1
        distinct = leaves - int(np.count_nonzero(self.linkage_[:, 2] == 0))
        if self.n_clusters > distinct:
            raise TooFew(self.n_clusters, distinct)
        return self.n_clusters

    def cut(self, n_clusters: int | None = None, *, height: float | None = None) -> NDArray[Any]:
        """The cluster of each row where the tree is cut into so many clusters, or at a height.

        Parameters
        ----------
        n_clusters : int, optional
            How many clusters.
        height : float, optional
            Merges at a larger distance are undone.
        """
        check_is_fitted(self)
        if (n_clusters is None) == (height is None):
            raise EmpiriskError("cut needs n_clusters or height, one of them.")
        leaves = len(self.linkage_) + 1
        if height is not None:
            merges = int(np.searchsorted(self.linkage_[:, 2], height, side="right"))
        else:
            count = check_count("n_clusters", n_clusters) or 0
            if count > leaves:
                raise EmpiriskError(f"n_clusters={count} exceeds the {leaves} leaves that are linked.")
            merges = leaves - count
        labels = _components(self.linkage_[:merges, :2].astype(np.intp), leaves)
        known = self.leaves_ >= 0
        out = np.full(len(self.leaves_), -1)
        # Numbered as they are met from the first row on.
        found, first, codes = np.unique(labels[self.leaves_[known]], return_index=True, return_inverse=True)
        out[known] = np.argsort(np.argsort(first))[codes] if len(found) else 0
        return out


def _wrong_merges(linkage: Array) -> str | None:
    """What is wrong in a tree: each merge joins two that are there, and is at least as high as the one before."""
    joined, last = linkage[:, :2], len(linkage) + np.arange(len(linkage))[:, None]
    if np.any(joined > last) or np.any(joined != np.floor(joined)) or len(np.unique(joined)) != joined.size:
        return "linkage_ joins what is not there"
    return None if np.all(np.diff(linkage[:, 2]) >= 0) else "linkage_ falls"


def _components(merged: NDArray[np.intp], leaves: int) -> NDArray:
    """The cluster of every leaf after some merges."""
    made = leaves + np.arange(len(merged))
    edges = np.concatenate([merged[:, 0], merged[:, 1]]), np.tile(made, 2)
    nodes = leaves + len(merged)
    graph = sparse.coo_array((np.ones(len(edges[0])), edges), shape=(nodes, nodes))
    return connected_components(graph, directed=False)[1][:leaves]


# --- distances --------------------------------------------------------------------------------------------------------


def _squares_between(design: Any) -> Array:
    """|x_i - x_j|^2 of all rows."""
    rows = design.shape[0]
    require(8 * rows**2, f"A matrix of distances of {rows} rows", "give cells=, which links the cells of k-means")
    if design.implicit:
        # A part keeps the matrix that it is asked for, which would be a second one.
        whole = design if design.keeps_matrix else GramDesign(design.kernel, design.items)
        return _of_products(whole.fresh_matrix())
    return _distances_of(_table(design))


def _table(design: Any) -> Any:
    """The rows of a design that is not behind a kernel."""
    table = getattr(design, "X", None)
    return design.dot(np.eye(design.shape[1])) if table is None else table


def _nearest_items(design: GramDesign, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """The nearest of some items to each, behind a kernel."""
    norms, labels = design.diagonal[chosen], np.empty(design.shape[0], np.intp)

    def run(rows: slice) -> None:
        labels[rows] = (norms - 2 * design.block(rows, chosen)).argmin(axis=1)

    over_rows(run, len(labels), norms.nbytes)
    return labels


def _distances_of(X: Any) -> Array:
    X = X.tocsr().astype(np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if not sparse.issparse(X) or density(X) >= DENSE_ENOUGH:
        X = dense(X)
        X = X - robust_centre(X)
    norms = squared_norms(X)

    def finish(rows: slice, columns: slice, tile: NDArray) -> None:
        both = norms[rows, None] + norms[columns]
        tile *= -2.0
        tile += both
        if not sparse.issparse(X):
            # A product loses the digits of a distance that is small beside the norms; few pairs are that close.
            close = np.nonzero(tile < CLOSE * both)
            gaps = X[rows][close[0]] - X[columns][close[1]]
            tile[close] = np.einsum("ij,ij->i", gaps, gaps)
        np.maximum(tile, 0.0, out=tile)

    return products(X, None, None, finish)


def _of_products(products: Array) -> Array:
    """Squared distances in the place of inner products."""
    norms = products.diagonal().copy()

    def run(rows: slice) -> None:
        part = products[rows]
        part *= -2.0
        part += norms
        part += norms[rows, None]
        np.maximum(part, 0.0, out=part)

    over_rows(run, len(products), products[0].nbytes)
    return products


# --- merging ----------------------------------------------------------------------------------------------------------


@loop_with({"reassoc", "contract", "nnan", "nsz"})
def merge(D, dead, sizes, names, path, method, most, merges):
    """Up to ``most`` merges along chains of nearest neighbours; returns how many, and the length of the chain.

    From any cluster on, the nearest of the nearest of ... ends in two that are nearest to each other: these are merged
    at some point whatever happens elsewhere. ``dead`` is infinite for clusters that are gone, zero else; a merged
    cluster takes the second place. ``path`` is the chain, its length in the last entry.
    """
    count, length = len(dead), path[len(path) - 1]
    alive = 0
    for i in range(count):
        alive += dead[i] == 0
    done = 0
    while done < most and alive > 1:
        if length == 0:
            start = 0
            while dead[start] > 0:
                start += 1
            path[0] = start
            length = 1
        while True:
            here = path[length - 1]
            row = D[here]
            nearest = np.inf
            for j in range(count):
                nearest = min(nearest, row[j] + dead[j])
            there = -1
            # Of equally near ones the one before in the chain, so that it ends.
            if length > 1 and row[path[length - 2]] <= nearest:
                there = path[length - 2]
            else:
                there = 0
                while row[there] + dead[there] > nearest:
                    there += 1
            if length > 1 and there == path[length - 2]:
                break
            path[length] = there
            length += 1
        length -= 2
        x, y = min(here, there), max(here, there)
        merges[done, 0], merges[done, 1], merges[done, 2] = names[x], names[y], nearest
        done += 1
        alive -= 1
        own, other = sizes[x], sizes[y]
        first, second = D[x], D[y]
        both = own + other
        if method == 0:
            for j in range(count):
                second[j] = min(first[j], second[j])
        elif method == 1:
            for j in range(count):
                second[j] = max(first[j], second[j])
        elif method == 2:
            for j in range(count):
                mean = (own * first[j] + other * second[j]) / both
                second[j] = second[j] if first[j] == second[j] else mean  # that of equal numbers, to the bit
        else:
            for j in range(count):
                size = sizes[j]
                second[j] = ((own + size) * first[j] + (other + size) * second[j] - size * nearest) / (both + size)
        second[y] = np.inf
        for j in range(count):
            D[j, y] = second[j]
        sizes[y] = both
        dead[x] = np.inf
    path[len(path) - 1] = length
    return done


@plain_loop
def compact(flat, width, kept):
    """Keep some rows and columns of a square matrix, in its own place: what is written lies before what is read."""
    place = 0
    for i in kept:
        for j in kept:
            flat[place] = flat[i * width + j]
            place += 1


class Merging:
    """The merges in the order in which they are found: two leaves, one of each cluster, and their distance.

    Parameters
    ----------
    squares : array
        Squared distances of the leaves, which are overwritten.
    sizes : array
        Their weights.
    linkage, squared
        As of `Hierarchical`.
    """

    def __init__(self, squares: Array, sizes: Array, linkage: str, squared: bool):
        D = np.ascontiguousarray(squares)

        def run(rows: slice) -> None:
            if linkage == "ward":
                D[rows] *= 2 * sizes[rows, None] * sizes / (sizes[rows, None] + sizes)
            elif not squared:
                np.sqrt(D[rows], out=D[rows])

        over_rows(run, len(D), D[0].nbytes)
        np.fill_diagonal(D, np.inf)
        self._D, self._method, self._roots = D, LINKAGES.index(linkage), linkage == "ward" and not squared
        leaves = len(sizes)
        self.merges, self._done = np.empty((leaves - 1, 3)), 0
        self._names, self._sizes, self._dead = np.arange(leaves), sizes.astype(np.float64), np.zeros(leaves)
        self._path = np.zeros(leaves + 2, np.intp)

    def run(self, deadline: Deadline, watch: FitCallbacks) -> dict[str, Array]:
        """Find all merges, or as many as there is time for; returns how it went."""
        known, heights = [], []
        while self._done < len(self.merges):
            watch.begin("merges")
            self._make_smaller()
            work = self._D, self._dead, self._sizes, self._names, self._path
            self._done += merge(*work, self._method, MERGES, self.merges[self._done :])
            known.append(float(self._done))
            heights.append(float(self.merges[: self._done, 2].max()))
            stopped = watch.end()
            if self._done < len(self.merges) and (stopped or deadline()):
                deadline.reason = deadline.reason or Ending.CALLBACK
                self._join_the_rest()
                break
        if self._roots:
            np.sqrt(self.merges[:, 2], out=self.merges[:, 2])
            heights = list(np.sqrt(heights))
        return {"merges": np.array(known), "height": np.array(heights)}

    def _make_smaller(self) -> None:
        """Copy the distances to a smaller matrix once half of the clusters are merged; the chain restarts."""
        alive = len(self.merges) + 1 - self._done
        if alive <= SMALLEST or 2 * alive > len(self._D):
            return
        kept = np.flatnonzero(self._dead == 0)
        flat = self._D.reshape(-1)
        compact(flat, len(self._D), kept)
        self._D = flat[: alive * alive].reshape(alive, alive)
        self._names, self._sizes, self._dead = self._names[kept], self._sizes[kept], self._dead[kept]
        self._path[-1] = 0

    def _join_the_rest(self) -> None:
        """The clusters there are, all at the largest distance."""
        alive = np.flatnonzero(self._dead == 0)

        def largest(rows: slice) -> float:
            between = self._D[np.ix_(alive[rows], alive)]
            return between.max(where=np.isfinite(between), initial=0.0)

        farthest = parallel_map(largest, blocks(len(alive), self._D[0].nbytes))
        height = max(*farthest, self.merges[: self._done, 2].max())
        names = self._names[alive]
        self.merges[self._done :, 0], self.merges[self._done :, 1] = names[:-1], names[1:]
        self.merges[self._done :, 2] = height


def _sorted(merges: Array) -> Array:
    """The merges by height, with clusters numbered as SciPy does: leaves first, then merges in their order."""
    merges = merges[np.argsort(merges[:, 2], kind="stable")]
    leaves = len(merges) + 1
    parent, names, counts = np.arange(leaves), np.arange(leaves), np.ones(leaves)
    out = np.empty((leaves - 1, 4))

    def root(leaf: int) -> int:
        while parent[leaf] != leaf:
            parent[leaf] = parent[parent[leaf]]
            leaf = parent[leaf]
        return leaf

    for i, (left, right, height) in enumerate(merges):
        a, b = root(int(left)), root(int(right))
        first, second = sorted((names[a], names[b]))
        parent[a] = b
        counts[b] += counts[a]
        names[b] = leaves + i
        out[i] = first, second, height, counts[b]
    return out
