"""k-means: each row to the nearest of k means, Euclidean, after a map, or behind a kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import _num_samples, check_is_fitted

from empirisk import state
from empirisk.clusters.batches import MinibatchKMeansRun, stepped
from empirisk.clusters.lloyd import (
    EQUAL_KEYS,
    Ends,
    LloydRun,
    TooFew,
    best_run,
    distinct_rows,
    draw_rows,
    fill_empty,
    random_labels,
    shift_means,
    split,
)
from empirisk.clusters.product_rows import ROUNDING
from empirisk.clusters.rows import in_least_room, is_long, keys, nearest, rows_of, some_rows_of
from empirisk.contract.arguments import check_count, check_flag, check_time
from empirisk.contract.elsewhere import blockwise, elsewhere
from empirisk.contract.features import FLOATS, Features, MapsFeatures, expansion
from empirisk.contract.inputs import Array, check_weights, generator
from empirisk.contract.progress import FitCallbacks, warn_if_unfinished
from empirisk.contract.transaction import all_or_nothing, continuing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.blocks import slices, stable_order
from empirisk.linalg.design import Design, design_of
from empirisk.linalg.foreign import received
from empirisk.linalg.threads import single_threaded_blas
from empirisk.messages import coded
from empirisk.names import Estimator
from empirisk.stop import Deadline, Ending, Stopped, check_stop, interruptible, requested, stopping
from empirisk.validation import available_if, check_array

Starts = list[Callable[[Any], None]]

SOME = 256  # rows, and twice as many as clusters, for which there always is time
SOME_AT_ONCE = 4096  # rows that are labelled between two looks at the deadline
LABELLING_SECONDS = 0.3  # beyond max_time that labelling the rows by their nearest means may take

INITS = ("k-means++", "random", "box", "splitting", "assignment")


class HalfStep(NamedTuple):
    """A state of k-means: what just happened, the cluster of each row, the means, and the sum of squares."""

    what: str
    labels: NDArray[np.int32]
    means: Array
    inertia: float


def _has_points(machine: KMeans) -> bool:
    """Whether the means are points that a few rows can move; else an `AttributeError` with the reason."""
    if machine.features is not None and not hasattr(machine.features, "transform"):
        raise AttributeError(
            f"features={machine.features!r} is a kernel, behind which a mean is known by its rows, which must be kept; "
            "use maps.Nystrom or maps.RandomFourier of it for partial_fit."
        )
    return True


#: Restarts where nothing else is asked for.
RESTARTS = 10


@dataclass(eq=False, repr=False)
class KMeans(
    MapsFeatures,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    Estimator,
):
    """k-means: clusters and means that minimise  sum_i c_i |phi(x_i) - m_{cluster of i}|^2.

    A round gives every row its nearest mean, then moves the means to their rows; the sum never rises, and the rounds
    end when no row changes its cluster. A mean without rows is moved to the row that is fitted worst. With a kernel in
    the slot ``features`` the means live in the feature space, and distances come from the Gram matrix:
    |phi(x) - m|^2 = k(x, x) - 2 <phi(x), m> + |m|^2.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    features : None, transformer or kernel
        The feature map phi, fitted inside, or a kernel: then this is kernel k-means.
    init : {"k-means++", "random", "box", "splitting", "assignment"} or array
        Where to start: rows far apart (greedy k-means++); random rows; random points of the box around the data; one
        mean that is split again and again; clusters drawn at random; given means (k x d), or a cluster number for
        every row. Behind a kernel there are no points but the rows.
    n_init : int or "auto"
        Restarts, of which the best is kept; "splitting" and given starts need one only. "auto" is one with
        "k-means++", and ten with other starts.
    max_iter : int
        Most rounds of a restart, or most batches.
    shifts : int
        How often the best restart may be bettered by moving a mean from where two are close to where the rows are
        fitted worst; it ends with the first time that does not help. Given starts are left alone.
    batch_size : int or None
        Rows of a mini-batch, for long data: each round then sees a random batch only.
    max_time : float or None
        Seconds after which the best so far is kept. Where there was no time to give every row a cluster, the means are
        those of some rows, from which ``inertia_`` is estimated, and a row that does not find its nearest mean in a
        moment is labelled as one of these rows that is close to it.
    random_state : int, RandomState or None
        Decides the starts; the same one gives the same bits on any number of threads, in any order of the rows.
    warm_start : bool
        Whether `fit` starts at the means of the last one, where there are as many.

    Attributes
    ----------
    cluster_centers_ : array, k x d
        The means; behind a kernel, ``dual_coef_`` holds the weights of the rows ``support_vectors_`` in each instead.
    labels_ : array of n
        The cluster of each row; empty where the rows are not in memory: `predict` gives them block by block.
    inertia_ : float
        The weighted sum of squared distances to the means.
    n_iter_ : int
        Rounds of the best restart.
    history_ : dict
        ``inertia`` after each of its rounds, and ``changes``, the rows that changed their cluster.
    stopped_ : str
        Why it ended: "converged", "max_iter", "max_time", "interrupted" or "callback"; "partial_fit" after
        `partial_fit`.
    counts_ : array of k
        The weight of the rows that each mean rests on.

    Examples
    --------
    >>> machine = er.KMeans(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0]])
    >>> np.sort(machine.cluster_centers_.ravel()), machine.inertia_
    (array([0.5, 9.5]), 1.0)
    >>> bool(machine.predict([[2.0]]) == machine.labels_[0])
    True
    """

    _state = state.State(
        forms=(("cluster_centers_",), ("dual_coef_", "support_", "support_vectors_")),
        filled=("clusters",),
        sizes={"width": lambda its: int(its["n_clusters"])},
        n_clusters=state.size("clusters"),
        cluster_centers_=state.array("f8", "clusters", "mapped"),
        dual_coef_=state.array("f", "clusters", "support"),
        squares_of_means_=state.maybe(state.array("f8", "clusters")),
        labels_=state.array("i", "rows", below="clusters"),
        inertia_=state.number(),
        n_iter_=state.whole(1),
        history_=state.mapping(state.anything()),
        stopped_=state.text(),
        counts_=state.optional(state.array("f8", "clusters", low=0)),
    )

    cluster_centers_: Array = field(init=False)
    squares_of_means_: Array | None = field(init=False)
    counts_: Array = field(init=False)
    support_: NDArray[np.intp] = field(init=False)

    n_clusters: int = 8
    features: Features = None
    _: KW_ONLY
    init: str | ArrayLike = "k-means++"
    n_init: int | str = RESTARTS
    max_iter: int = 300
    shifts: int = 10
    batch_size: int | None = None
    max_time: float | None = None
    random_state: Any = None
    warm_start: bool = False

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> KMeans:
        """Find the clusters of the rows of X; y is not used.

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
        return self._fit(X, y, sample_weight, self._last(X) if self.warm_start else None)

    @all_or_nothing
    def _fit(self, X, y, sample_weight, last: NDArray | None) -> KMeans:
        """Fit from the ``last`` means, or clusters of the rows, if they are given."""
        there, data = elsewhere(X), {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        if there is not None:
            watch = FitCallbacks(self, self.max_iter + 1, data)
            import_module("empirisk.scale.clusters").fit_kmeans(self, there, sample_weight, last, watch)
            watch.close()
            warn_if_unfinished(self, self.stopped_, f"{self.n_iter_} rounds")
            return self
        deadline = Deadline(self.max_time)
        design, ones = self._fit_map(X, np.ones(_num_samples(X)), sample_weight)
        weights = check_weights(sample_weight, len(ones))
        counting = np.flatnonzero(weights > 0)
        if len(counting) < self.n_clusters:
            raise TooFew(self.n_clusters, len(counting))
        self._require_meaning(design)
        design = in_least_room(design)
        rounds = (self._restarts() + self.shifts) * self.max_iter
        watch = FitCallbacks(self, rounds, data)
        with interruptible():
            along = keys(design)
            order = counting[stable_order(along[counting])]
            starts = self._starts(design.shape[1], along, deadline, last)
            if self.batch_size is not None:
                self._fit_batches(design, weights, order, starts, deadline, watch)
                if len(np.unique(self.labels_[counting])) < self.n_clusters:
                    distinct_rows(along[order], self.n_clusters)  # refuses fewer: no batch could fill its cluster
            else:
                try:
                    self._fit_rounds(design, weights, order, starts, deadline, watch)
                except Stopped:
                    if not is_long(design, self.n_clusters):  # there is nothing to keep
                        raise
                    self._fit_some(design, weights, order, starts, along, deadline)
        self.counts_ = np.bincount(self.labels_, weights, minlength=self.n_clusters).astype(np.float64)
        watch.close()
        warn_if_unfinished(self, self.stopped_, f"{self.n_iter_} rounds")
        return self

    @available_if(_has_points)
    @continuing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> KMeans:
        """Move the means by some rows, seen once and not kept: each to the mean of all rows that it was ever given.

        The first call is a fit of its rows, of which there must be as many different ones as clusters; a feature map
        learns from them too. ``labels_`` and ``inertia_`` are those of the rows of the last call, and
        ``history_["inertia"]`` has the mean squared distance of each later call's rows before the means have moved;
        ``n_iter_`` counts the calls.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Examples
        --------
        >>> machine = er.KMeans(2, random_state=0).partial_fit([[0.0], [9.0]])
        >>> np.sort(machine.partial_fit([[1.0], [10.0]]).cluster_centers_.ravel())
        array([0.5, 9.5])
        """
        self._check()
        if not self._has_begun():
            self._fit(X, y, sample_weight, None)
            self._keep_call(np.empty(0), self.inertia_ / self.counts_.sum())
            return self
        deadline = Deadline(self.max_time)
        try:
            with interruptible(), stopping(deadline):
                self._step(X, sample_weight)
        except Stopped:
            if deadline.reason != Ending.MAX_TIME:
                raise
            raise EmpiriskError(
                coded(
                    "ER002",
                    f"max_time={self.max_time!r} s were over before the means had moved; give fewer rows, or raise it.",
                )
            ) from None
        return self

    def _has_begun(self) -> bool:
        """Whether there are means of these features and this number to go on from."""
        same = (self.features is None) == ("features_" not in vars(self))
        return same and len(getattr(self, "cluster_centers_", ())) == self.n_clusters

    def _step(self, X: Any, sample_weight: ArrayLike | None) -> None:
        """Move the means by the rows of a call of `partial_fit`."""
        design, ones = self._fit_map(X, np.ones(_num_samples(X)), sample_weight, again=True)
        weights = check_weights(sample_weight, len(ones))
        counting = np.flatnonzero(weights > 0)
        batch = rows_of(in_least_room(design), weights[counting], counting).begin()
        calls = self.history_["inertia"] if self.stopped_ == Ending.PARTIAL_FIT else np.empty(0)
        if "counts_" not in vars(self):  # files of earlier versions lack it
            self.counts_ = np.bincount(self.labels_, minlength=self.n_clusters).astype(np.float64)
        self.cluster_centers_, self.counts_, squares = stepped(batch, self.cluster_centers_, self.counts_, len(calls))
        self.labels_, left = nearest(design, self.cluster_centers_)
        self.inertia_ = float(weights @ left)
        self._keep_call(calls, np.average(squares, weights=batch.weights))

    def _keep_call(self, calls: Array, inertia: float) -> None:
        """Set the history of the calls of `partial_fit`: the mean squared distances in each."""
        self.history_ = {"inertia": np.append(calls, inertia)}
        self.n_iter_, self.stopped_ = len(calls) + 1, Ending.PARTIAL_FIT

    def _last(self, X: Any) -> NDArray | None:
        """The means of the last fit, or behind a kernel the clusters that they give to the rows; None without one."""
        if getattr(self, "squares_of_means_", None) is not None:
            return self.predict(X)
        return getattr(self, "cluster_centers_", None)

    def _check(self) -> None:
        check_count("n_clusters", self.n_clusters)
        self._restarts()
        check_count("max_iter", self.max_iter)
        check_count("shifts", self.shifts, low=0)
        check_count("batch_size", self.batch_size, optional=True)
        check_time(self.max_time)
        check_flag("warm_start", self.warm_start)
        if isinstance(self.init, str) and self.init not in INITS:
            raise EmpiriskError(f"init={self.init!r} is not known; choose one of {list(INITS)}, or give an array.")
        self._require_fixed_features()

    def _restarts(self) -> int:
        """How often to start; "auto" is once from rows far apart, and ten times from others."""
        if isinstance(self.n_init, str) and self.n_init == "auto":
            return 1 if not isinstance(self.init, str) or self.init == "k-means++" else RESTARTS
        if isinstance(self.n_init, str):
            raise EmpiriskError(f"n_init={self.n_init!r} must be a whole number of at least 1, or 'auto'.")
        return int(check_count("n_init", self.n_init) or 1)

    def _require_meaning(self, design: Design) -> None:
        """Refuse what a kernel, or a batch, cannot do."""
        points = self.init in ("box", "splitting") if isinstance(self.init, str) else np.ndim(self.init) == 2
        if design.implicit and points:
            raise Unsuitable(
                "init asks for means that are points, but behind a kernel a mean is known by its rows only; use "
                "init='k-means++', 'random', 'assignment', or an array with a cluster number for every row."
            )
        if design.implicit and self.batch_size is not None:
            raise Unsuitable(
                "batch_size is for explicit features: behind a kernel a mean is known by its rows; use "
                "features=maps.Nystrom(kernel), or batch_size=None."
            )
        if self.batch_size is not None and not isinstance(self.init, str) and not points:
            raise Unsuitable("init as a list of clusters needs all rows; give means (k x d), or batch_size=None.")

    # --- starts -------------------------------------------------------------------------------------------------------

    def _starts(self, width: int, along: Array, stop: Callable[[], bool], last: NDArray | None = None) -> Starts:
        """What puts the means of each restart in their first places; that of the ``last`` fit, where it suits."""
        clusters = self.n_clusters
        if last is not None and (last.ndim == 1 or last.shape == (clusters, width)):
            return [self._given(last, width)]
        if not isinstance(self.init, str):
            return [self._given(np.asarray(self.init), width)]
        if self.init == "splitting":
            return [lambda run: split(run, clusters)]

        def start(run: Any, random: np.random.Generator) -> None:
            if self.init == "assignment":
                run.start_from_labels(random_labels(along[run.order], clusters, random), clusters)
            elif self.init == "box":
                run.start_at(random.uniform(*run.box(), size=(clusters, run.width)))
            else:
                run.start_at_rows(draw_rows(run, clusters, random, self.init == "k-means++", stop))

        # Each restart has a generator of its own: which thread it runs on does not matter.
        generators = generator(self.random_state).spawn(self._restarts())
        return [lambda run, random=random: start(run, random) for random in generators]

    def _given(self, given: NDArray, width: int) -> Callable[[Any], None]:
        clusters = self.n_clusters
        if given.ndim == 1:
            if given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= clusters:
                raise EmpiriskError(f"init as a list must hold numbers of clusters, from 0 to {clusters - 1}.")
            return lambda run: run.start_from_labels(_of_rows(given, run), clusters)
        check_means(given, clusters, width)
        return lambda run: run.start_at(given)

    # --- the two ways to a fit ----------------------------------------------------------------------------------------

    def _fit_rounds(
        self,
        design: Design,
        weights: Array,
        order: NDArray[np.intp],
        starts: Starts,
        deadline: Deadline,
        watch: FitCallbacks,
    ) -> None:
        long = is_long(design, self.n_clusters)

        def give_up() -> bool:
            return long and deadline() and deadline.reason != Ending.CALLBACK

        def tell(run: LloydRun) -> bool:
            return _told(watch, deadline, lambda: self._means(run.rows, design))

        with stopping(give_up if long else requested):
            rows = rows_of(design, weights[order], order)
        ends = Ends(deadline, give_up, tell)
        best = best_run(rows, starts, self.max_iter, ends)
        if isinstance(self.init, str):
            best = shift_means(best, self.shifts, self.max_iter, ends)
        self.__dict__.update(self._means(best.rows, design))
        self.labels_ = np.empty(design.shape[0], np.int32)
        self.labels_[order] = best.rows.labels
        left = np.flatnonzero(weights == 0)
        if len(left):
            self.labels_[left] = self._labels_in(design, left)
        self.inertia_, self.n_iter_ = best.inertia, best.rounds
        self.history_ = {name: np.array(values) for name, values in best.history.items()}
        self.stopped_ = Ending.CONVERGED if best.converged else deadline.reason or Ending.MAX_ITER

    def _fit_some(
        self, design: Any, weights: Array, order: NDArray[np.intp], starts: Starts, along: Array, deadline: Deadline
    ) -> None:
        """The means of a round on some of the rows, which stand for the others; labels in blocks, for a moment."""
        distinct = np.flatnonzero(np.diff(along[order], prepend=-np.inf) > EQUAL_KEYS * np.abs(along).max())
        count = min(max(SOME, 2 * self.n_clusters), len(distinct))
        chosen = order[distinct[np.linspace(0, len(distinct) - 1, count).astype(np.intp)]]
        ends = Ends(lambda: True, lambda: False, lambda run: False)
        run = best_run(some_rows_of(design, weights[chosen], chosen), starts[:1], 1, ends)
        self.__dict__.update(self._means(run.rows, design))
        before = np.searchsorted(along[chosen], along, side="right") - 1
        self.labels_ = run.rows.labels[np.maximum(before, 0)]
        with suppress(Stopped), stopping(Deadline(LABELLING_SECONDS)):
            for part in slices(len(along), SOME_AT_ONCE):
                check_stop()
                if design.implicit:
                    products = design.block(part, self.support_) @ self.dual_coef_.T
                    self.labels_[part] = (run.rows.squares_of_means - 2 * products).argmin(axis=1)
                else:
                    self.labels_[part] = nearest(design.rows(np.arange(part.start, part.stop)), self.cluster_centers_)[
                        0
                    ]
        scale = weights.sum() / weights[chosen].sum()
        self.inertia_, self.n_iter_ = scale * run.inertia, run.rounds
        self.history_ = {name: np.array(values) for name, values in run.history.items()}
        self.history_["inertia"] *= scale
        self.stopped_ = deadline.reason

    def _fit_batches(
        self,
        design: Design,
        weights: Array,
        order: NDArray[np.intp],
        starts: Starts,
        deadline: Deadline,
        watch: FitCallbacks,
    ) -> None:
        sizes = self.n_clusters, int(self.batch_size or 0)
        batches = MinibatchKMeansRun(design, weights[order], order, *sizes, generator(self.random_state))
        batches.start(starts, deadline)
        batches.run(
            self.max_iter, deadline, lambda: _told(watch, deadline, lambda: {"cluster_centers_": batches.centres})
        )
        self.cluster_centers_, self.squares_of_means_ = batches.centres, None
        self.labels_, squares = nearest(design, self.cluster_centers_)
        self.inertia_, self.n_iter_ = float(weights @ squares), batches.rounds
        self.history_ = {"inertia": np.array(batches.losses)}
        self.stopped_ = Ending.CONVERGED if batches.converged else deadline.reason or Ending.MAX_ITER

    def _means(self, rows: Any, design: Design) -> dict[str, Any]:
        """The attributes that the means of a run stand for."""
        if not design.implicit:
            return {"cluster_centers_": rows.centres, "squares_of_means_": None}
        return expansion(design, [rows.order], [rows.coefficients()]) | {"squares_of_means_": rows.squares_of_means}

    def _labels_in(self, design: Design, chosen: NDArray[np.intp]) -> NDArray:
        """The clusters of some rows of the data of `fit`."""
        if not design.implicit:
            return nearest(design.rows(chosen), self.cluster_centers_)[0]
        products = design.cross_design(chosen, self.support_).dot(self.dual_coef_.T)
        return (np.asarray(self.squares_of_means_) - 2 * products).argmin(axis=1)

    # --- answers ------------------------------------------------------------------------------------------------------

    @blockwise
    @single_threaded_blas()
    def predict(self, X: Any) -> NDArray[Any]:
        """The cluster whose mean is nearest, for each row."""
        check_is_fitted(self)
        if self.squares_of_means_ is None:
            return nearest(design_of(self._mapped(X)), self.cluster_centers_)[0]
        return (self.squares_of_means_ - 2 * self._products(X)).argmin(axis=1).astype(np.int32)

    @blockwise
    @single_threaded_blas()
    def transform(self, X: Any) -> NDArray[Any]:
        """The distance of each row to each mean."""
        check_is_fitted(self)
        if self.squares_of_means_ is None:
            matrix = self._mapped(X)
            if lie_on_device(matrix):
                return matrix.accelerator.distances(matrix, self.cluster_centers_).astype(matrix.dtype, copy=False)
            return euclidean_distances(matrix, self.cluster_centers_).astype(matrix.dtype, copy=False)
        both = (
            np.asarray(self._fitted_kernel.diagonals(self._items(X)), dtype=np.float64)[:, None]
            + self.squares_of_means_
        )
        squares = both - 2 * self._products(X)
        return np.sqrt(np.where(squares <= ROUNDING * both, 0.0, squares))

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the weighted sum of squared distances to the nearest means."""
        squares = self.transform(received(X)).astype(np.float64).min(axis=1) ** 2
        return -float(check_weights(sample_weight, len(squares)) @ squares)

    def half_steps(self, X: ArrayLike) -> list[HalfStep]:
        """The rounds of one restart on the rows of X, each as its two half-steps.

        Parameters
        ----------
        X : array
            The rows, as they are: this is for ``features=None``.
        """
        self._check()
        if self.features is not None or self.batch_size is not None:
            raise Unsuitable("half_steps shows k-means on the rows themselves; use features=None and batch_size=None.")
        design = design_of(check_array(X, dtype=FLOATS))
        along = keys(design)
        order = stable_order(along)
        rows = rows_of(design, np.ones(len(order)), order).begin()
        self._starts(design.shape[1], along, lambda: False)[0](rows)
        steps, back = [], np.argsort(order)
        for _ in range(self.max_iter):
            changes = rows.assign()
            steps.append(HalfStep("rows take the nearest mean", rows.labels[back], rows.centres, _inertia(rows)))
            if changes == 0:
                break
            rows.move()
            fill_empty(rows)
            steps.append(HalfStep("means move to their rows", rows.labels[back], rows.centres, _inertia(rows)))
        return steps

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.features is None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_means(given: NDArray, clusters: int, width: int) -> None:
    """Raise where means that are given are not one of every cluster, or no numbers."""
    if given.shape != (clusters, width):
        raise EmpiriskError(f"init has shape {given.shape}, but means of shape {(clusters, width)} are needed.")
    if given.dtype.kind not in "fiu" or not np.isfinite(given).all():
        raise EmpiriskError("init must hold finite numbers.")


def _of_rows(labels: NDArray, rows: Any) -> NDArray:
    """The given clusters in the order of the rows."""
    if len(labels) <= rows.order.max():
        raise EmpiriskError(f"init holds {len(labels)} clusters, one for each row of X is needed.")
    return labels[rows.order]


def _inertia(rows: Any) -> float:
    return float(rows.weights @ rows.own_squares())


def _told(watch: FitCallbacks, deadline: Deadline, means: Callable[[], dict[str, Any]]) -> bool:
    """Tell the callbacks of a round; whether one of them ends the fit."""
    if watch.told("round", means):
        deadline.reason = Ending.CALLBACK
    return deadline.reason == Ending.CALLBACK
