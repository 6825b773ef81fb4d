"""Learned metrics, linear maps P such that |P x - P z| is small for rows that are alike: large-margin neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_count, check_number, check_time
from empirisk.contract.features import FLOATS, FORMATS
from empirisk.contract.inputs import LARGEST, Array, check_size, check_weights, encode_classes
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.linalg.design import Design, design_of
from empirisk.linalg.threads import single_threaded_blas
from empirisk.machines.neighbors.nearest import EuclideanSearch, shares
from empirisk.messages import coded
from empirisk.names import Estimator
from empirisk.projections.descent import DescentLog, descend
from empirisk.projections.metric_losses import ListedPairs, Triplets, hinge_of_squares
from empirisk.projections.pca import principal
from empirisk.stop import Stopped, interruptible, stopping
from empirisk.validation import validate_data

FORMS = ("triplets", "pairs")
#: Shares of weight that differ by less are equal but for rounding.
ROUNDING = 1e-9
#: Rows that are apart by less of their size are equal but for the rounding of their mean; where only products are
#: known, so are rows whose squared distance is less of their squares.
EQUAL = 1e-14


@dataclass(eq=False, repr=False)
class LearnedMetric(ClassNamePrefixFeaturesOutMixin, CallbackSupportMixin, TransformerMixin, Estimator):
    """What the learned metrics share: targets as classes, the minimisation, the map x -> P x."""

    _state = state.State(
        components_=state.array("f", "width", "columns"),
        margin_=state.number(0),
        n_iter_=state.whole(),
        history_=state.mapping(state.array("f8", None, finite=False)),
        stopped_=state.text(),
    )
    _largest = LARGEST  # number of X

    _: KW_ONLY
    n_components: int | None = None
    bins: int = 10
    max_iter: int = 500
    tol: float = 1e-5
    max_time: float | None = None

    def _check(self) -> None:
        check_count("n_components", self.n_components, optional=True)
        check_count("bins", self.bins, low=2)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, 0.0)
        check_time(self.max_time)
        if self.margin is None or self.margin == np.inf:
            raise Unsuitable(
                f"margin={self.margin!r} leaves the loss without a lower bound, since unlike rows could be moved apart "
                "for ever; give a positive number, or 'auto'."
            )
        if not (isinstance(self.margin, str) and self.margin == "auto"):
            check_number("margin", self.margin, 0.0, above=True)

    def _margin(self, typical: float) -> float:
        """The margin; "auto" is what is typical of the data."""
        if self.margin != "auto":
            return float(self.margin)
        return typical if typical > 0 else 1.0

    def _by_target(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, NDArray[np.intp]]:
        """The rows that have weight, their weights and their classes."""
        matrix, y = validate_data(self, X, y, accept_sparse=FORMATS, dtype=FLOATS)
        check_size("X", matrix, self._largest)
        weights = check_weights(sample_weight, matrix.shape[0])
        codes = self._classes(y, weights)
        rows = np.flatnonzero(weights > 0)
        design = design_of(matrix)
        return design if len(rows) == len(weights) else design.rows(rows), weights[rows], codes[rows]

    def _classes(self, y: NDArray, weights: Array) -> NDArray[np.intp]:
        """Numbers of classes; a target of numbers is cut into ranges of equal weight."""
        if y.dtype.kind == "f" and type_of_target(y) == "continuous":
            order = np.argsort(y, kind="stable")
            reached = np.cumsum(weights[order]) / weights.sum()
            # The last row of a value decides for all rows that have it.
            ends = reached[np.searchsorted(y[order], y, side="right") - 1]
            y = np.ceil(self.bins * (ends - ROUNDING)).astype(int)
        return encode_classes(y, weights, type(self).__name__)[1]

    def _start(self, design: Design, weights: Array) -> Array:
        """P of the Euclidean metric, or of its best approximation of lower rank: the leading principal directions."""
        columns, most = design.shape[1], min(design.shape)
        if self.n_components is None or self.n_components == columns:
            return np.eye(columns)
        if self.n_components > most:
            raise EmpiriskError(f"n_components={self.n_components} is more than X allows, {most}; give fewer, or None.")
        return principal(design, weights, int(self.n_components))[1]

    def _learn(
        self, design: Any, weights: Array, make: Callable[[], Any], data: dict[str, Any], strength: float = 0.0
    ) -> None:
        """Go down from the Euclidean metric; columns are scaled on the way, which changes the way alone.

        ``make`` gives the loss and sets the margin; where there is no time for that, the metric stays Euclidean.
        """
        mean = design.tdot(weights) / weights.sum()
        centred = design.shifted(mean)
        start = self._start(centred, weights)
        spread = np.sqrt(np.maximum(design.squared_columns(weights) / weights.sum() - mean**2, 0.0))
        scale = 1.0 / np.where(spread > ROUNDING * (np.abs(mean) + spread.max()), spread, 1.0)

        def metric(free: Array) -> Array:
            return free.reshape(start.shape) * scale

        def objective(free: Array) -> tuple[float, Array]:
            P = metric(free)
            value, slopes = loss(centred.dot(P.T))
            gradient = centred.tdot(slopes).T + 2 * strength * P
            return value + strength * float(np.sum(P * P)), (gradient * scale).ravel()

        def fitted(free: Array) -> dict[str, Any]:
            return {"components_": metric(free).astype(design.X.dtype, copy=False)}

        free = (start / scale).ravel()
        with interruptible():
            log = DescentLog(self, data)
            try:
                with stopping(log.stops):
                    loss = make()
                free = descend(objective, free, log, fitted)
            except Stopped:
                self.margin_ = self._margin(0.0)
        log.close(fitted(free))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @single_threaded_blas()
    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """P x of each row."""
        check_is_fitted(self)
        matrix: Any = validate_data(self, X, accept_sparse=FORMATS, dtype=FLOATS, reset=False)
        return design_of(matrix).dot(self.components_.T.astype(np.float64)).astype(matrix.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False)
class LargeMarginMetric(LearnedMetric):
    """The metric of large-margin neighbours: near to rows of the same class, a margin away from all others.

    form="triplets":  minimise  sum_i c_i sum_j a_ij ( D_ij + C sum_l c_l max(0, margin + D_ij - D_il) )
    over the k nearest rows j of the class of i, fixed at the start, and all rows l of other classes, with
    D_ij = |P(x_i - x_j)|^2.

    form="pairs":  minimise  sum_i c_i ( sum_j D_ij + C sum_l max(0, margin - D_il) )
    over those of the k nearest rows of i that have its class (j), and those that have not (l).

    The objective starts at the Euclidean metric and never rises. It is a map: use it in ``features=`` of
    `KNNClassifier` and `KNNRegressor`, or as a step of a pipeline.

    Parameters
    ----------
    n_neighbors : int
        The number of neighbours; an amount of weight, as `KNNClassifier` counts it.
    form : {"triplets", "pairs"}
        See above.
    C : float
        What rows of other classes weigh.
    margin : float or "auto"
        The margin; "auto" is the mean squared distance of the neighbours at the start.
    n_components : int or None
        The number of rows of P; None for as many as there are columns.
    bins : int
        A target of numbers is cut into this many ranges of equal weight, which are the classes.
    max_iter, tol, max_time : int, float, float or None
        When to stop: after so many rounds; when one lowers the objective by less than this part of it; after seconds.

    Attributes
    ----------
    components_, margin_, n_iter_, history_, stopped_
        As for `ContrastiveMetric`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 4)) * [0.3, 1, 1, 1], np.arange(60) % 2
    >>> X[:, 0] += y  # one column tells the classes apart, three are noise
    >>> plain = er.KNNClassifier(n_neighbors=3).fit(X[:40], y[:40]).score(X[40:], y[40:])
    >>> machine = er.KNNClassifier(n_neighbors=3, features=er.LargeMarginMetric(n_neighbors=3)).fit(X[:40], y[:40])
    >>> machine.score(X[40:], y[40:]) > plain
    True
    """

    _largest = 1e15  # the products of its images are in single precision, after steps that make them larger

    n_neighbors: int = 3
    form: str = "triplets"
    C: float = 1.0
    margin: float | str | None = "auto"

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LargeMarginMetric:
        """Learn from classes, or from a target of numbers.

        Parameters
        ----------
        X : array or sparse matrix, n x d
            The rows.
        y : array of n
            Their classes, or numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        self._check()
        check_count("n_neighbors", self.n_neighbors)
        check_number("C", self.C, 0.0, above=True)
        if self.form not in FORMS:
            raise EmpiriskError(f"form={self.form!r} must be one of {FORMS}.")
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        design, weights, codes = self._by_target(X, y, sample_weight)
        make = self._triplets if self.form == "triplets" else self._pairs
        self._learn(design, weights, partial(make, design, weights, codes), data)
        return self

    def _triplets(self, design: Any, weights: Array, codes: NDArray[np.intp]) -> Triplets:
        """Target neighbours within each class."""
        groups = [np.flatnonzero(codes == number) for number in range(int(codes.max()) + 1)]
        found = [neighbours(design.rows(group).X, weights[group], self.n_neighbors) for group in groups]
        width = max(places.shape[1] for _, places, _ in found)
        targets, amounts = np.zeros((len(codes), width), np.intp), np.zeros((len(codes), width))
        pulled = 0.0
        for group, (squares, places, counts) in zip(groups, found, strict=True):
            targets[group, : places.shape[1]], amounts[group, : places.shape[1]] = group[places], counts
            pulled += float(weights[group] @ np.sum(counts * squares, axis=1))
        total = float(weights @ amounts.sum(axis=1))
        if total <= 0:
            raise EmpiriskError(
                coded("ER026", "Every class of y has one row only, which has no neighbours to be near; give more rows.")
            )
        self.margin_ = self._margin(pulled / total)
        return Triplets(targets, amounts, codes, weights, float(self.C), self.margin_)

    def _pairs(self, design: Any, weights: Array, codes: NDArray[np.intp]) -> ListedPairs:
        """The nearest rows of all classes."""
        squares, places, counts = neighbours(design.X, weights, self.n_neighbors)
        amounts = (weights[:, None] * counts).ravel()
        first, second = np.repeat(np.arange(len(codes)), places.shape[1]), places.ravel()
        alike = codes[first] == codes[second]
        self.margin_ = self._margin(float(amounts @ squares.ravel()) / max(float(amounts.sum()), ROUNDING))
        pulls, pushes = np.where(alike, amounts, 0.0), np.where(alike, 0.0, self.C * amounts)
        return ListedPairs(first, second, pulls, pushes, hinge_of_squares(self.margin_))


def neighbours(X: Any, weights: Array, k: int) -> tuple[Array, NDArray[np.intp], Array]:
    """Squared distances to the nearest rows, their numbers, and what each counts until k is reached.

    A row is no neighbour of itself, but what its weight has beyond one is.
    """
    longest = int(np.searchsorted(np.cumsum(np.sort(weights)), k * (1 - ROUNDING))) + 2
    squares, places, unit = EuclideanSearch(X).find(X, longest)
    return unit**2 * squares, places, next(shares(places, weights, np.arange(len(weights)), [k]))
