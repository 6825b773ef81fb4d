"""Learned metrics: linear maps P such that |P x - P z| is small for rows that are alike and large for others."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.certificate import Certificate, Status
from empirisk.contract.arguments import check_count, check_number, check_time
from empirisk.contract.features import FLOATS, FORMATS
from empirisk.contract.inputs import LARGEST, check_size, check_weights, encode_classes
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits.fit import interruptible
from empirisk.linalg.design import Design, design_of
from empirisk.linalg.threads import Stopped, single_threaded_blas, stopping
from empirisk.machines.neighbors.search import EuclideanSearch, shares
from empirisk.projections.convex_metric import Multipliers, PairHinges, leading_rows
from empirisk.projections.course import Course, descend
from empirisk.projections.metric_losses import (
    ClassPairs,
    ListedPairs,
    Triplets,
    hinge_beyond,
    hinge_of_squares,
    square_of_hinge,
)
from empirisk.projections.pca import principal
from empirisk.settings import require
from empirisk.validation import validate_data

Array = NDArray[np.float64]
FORMS = ("triplets", "pairs")
LOSSES = ("one_margin", "two_margins")
#: How certificates call the ends of a fit.
ENDINGS = {"max_iter": Status.ITERATIONS, "max_time": Status.TIME, "callback": Status.EARLY}
#: Shares of weight that differ by less are equal but for rounding.
ROUNDING = 1e-9
#: Rows that are apart by less of their size are equal but for the rounding of their mean; where only products are
#: known, so are rows whose squared distance is less of their squares.
EQUAL = 1e-14


@dataclass(eq=False, repr=False)
class Metric(ClassNamePrefixFeaturesOutMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """What the metrics share: targets as classes, the way down, the map x -> P x."""

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
        with interruptible() as interrupted:
            course = Course(self, data, interrupted)
            try:
                with stopping(course.stops):
                    loss = make()
                free = descend(objective, free, course, fitted)
            except Stopped:
                self.margin_ = self._margin(0.0)
        course.close(fitted(free))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @single_threaded_blas()
    def transform(self, X: ArrayLike) -> NDArray:
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
class ContrastiveMetric(Metric):
    """The metric |P x - P z| of a contrastive loss:

        minimise  alpha mean_{similar} |P(x_i - x_j)|^2  +  beta mean_{dissimilar} max(0, margin - |P(x_i - x_j)|)^2
                  +  strength |P|^2,

    or, with loss="two_margins" and D = |P(x_i - x_j)|^2,

        minimise  alpha mean_{similar} max(0, D - similar_margin)  +  beta mean_{dissimilar} max(0, margin - D)
                  +  strength |P|^2.

    Rows of one class are similar and those of two classes are not; or the user gives the pairs. The loss starts at the
    Euclidean metric and never rises. It is a map: use it in ``features=`` of `KNNClassifier` and `KNNRegressor`, or as
    a step of a pipeline.

    Squared distances are linear in M = P'P, so that the loss of two margins is convex in M: with ``convex=True`` it is
    minimised over all M >= 0, and certified. In P it is not convex.

    Parameters
    ----------
    alpha, beta : float
        What similar pairs and dissimilar pairs weigh.
    margin : float or "auto"
        The distance that dissimilar rows should have; "auto" is their root mean square distance. With two margins it
        is a squared distance, "auto" the mean of those. Without a margin the loss has no lower bound, so None is
        refused.
    strength : float
        Factor of |P|^2.
    loss : {"one_margin", "two_margins"}
        See above.
    similar_margin : float
        The squared distance that similar rows may have, with two margins.
    convex : bool
        Whether to minimise over M, with two margins; ``tol`` then is a relative duality gap.
    n_components : int or None
        The number of rows of P; None for as many as there are columns. Of the convex form the leading directions of M
        are kept, and the certificate tells what the others are worth.
    bins : int
        A target of numbers is cut into this many ranges of equal weight, which are the classes.
    max_iter, tol, max_time : int, float, float or None
        When to stop: after so many rounds; when one lowers the loss by less than this part of it; after seconds.

    Attributes
    ----------
    components_ : array, r x d
        P.
    margin_ : float
        The margin used.
    n_iter_, history_, stopped_ : int, dict, str
        The number of rounds, ``objective`` and ``seconds`` from the start on, and why the fit ended.
    certificate_ : Certificate
        Primal, dual and gap of the convex form.

    Examples
    --------
    >>> X = np.array([[0.0, 5.0], [0.2, -5.0], [1.0, 4.0], [1.1, -4.0]])
    >>> metric = er.ContrastiveMetric().fit(X, [0, 0, 1, 1])
    >>> Z = metric.transform(X)
    >>> np.linalg.norm(Z[0] - Z[1]) < np.linalg.norm(Z[0] - Z[2])
    np.True_
    >>> er.ContrastiveMetric(loss="two_margins", convex=True).fit(X, [0, 0, 1, 1]).certificate_.converged
    True
    """

    _state = state.State(certificate_=state.optional(state.part(Certificate)))

    alpha: float = 1.0
    beta: float = 1.0
    margin: float | str | None = "auto"
    strength: float = 0.0
    _: KW_ONLY
    loss: str = "one_margin"
    similar_margin: float = 0.0
    convex: bool = False

    @with_callbacks
    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
    ) -> "ContrastiveMetric":
        """Learn from classes, or from pairs of row numbers.

        Parameters
        ----------
        X : array or sparse matrix, n x d
            The rows.
        y : array of n, optional
            Their classes, or numbers; needed unless pairs are given.
        sample_weight : array of n, optional
            Weight of each row; a pair weighs the product of its two, so weight 2 equals the row twice.
        similar, dissimilar : arrays of two columns, optional
            The pairs of rows to use in place of those of the classes.
        """
        self._check()
        for name in ("alpha", "beta"):
            check_number(name, getattr(self, name), 0.0, above=True)
        check_number("strength", self.strength, 0.0)
        self._check_form()
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        if similar is not None or dissimilar is not None:
            matrix: Any = validate_data(self, X, accept_sparse=FORMATS, dtype=FLOATS, ensure_min_samples=2)
            check_size("X", matrix)
            weights = check_weights(sample_weight, matrix.shape[0])
            design = design_of(matrix)
            pairs = partial(self._listed, design, weights, similar, dissimilar)
            make = partial(self._of_pairs, design, pairs)
        else:
            design, weights, codes = self._by_target(X, y, sample_weight)
            pairs = partial(self._of_classes, design, weights, codes)
            make = partial(self._of_pairs, design, pairs)
            if self.loss == "one_margin":  # its sums over all pairs need no list of them
                make = partial(self._by_class, design, weights, codes)
        if self.convex:
            self._learn_convex(design, weights, pairs, data)
        else:
            self._learn(design, weights, make, data, float(self.strength))
        return self

    def _check_form(self) -> None:
        if self.loss not in LOSSES:
            raise EmpiriskError(f"loss={self.loss!r} is not known; choose one of {list(LOSSES)}.")
        check_number("similar_margin", self.similar_margin, 0.0)
        if self.loss == "one_margin" and (self.similar_margin > 0 or self.convex):
            raise Unsuitable("similar_margin and convex belong to loss='two_margins', which is convex in M = P'P.")

    def _by_class(self, design: Any, weights: Array, codes: NDArray[np.intp]) -> ClassPairs:
        """All pairs; a row is similar to itself too, as the two are that weight 2 stands for."""
        totals = np.bincount(codes, weights)
        # What the other classes weigh, without a difference: one class may outweigh all others.
        others = np.append(0.0, np.cumsum(totals)[:-1]) + np.append(np.cumsum(totals[::-1])[-2::-1], 0.0)
        alike, unlike = float(totals @ totals), float(totals @ others)
        mean = design.tdot(weights) / weights.sum()
        centred = design.shifted(mean)
        member = weights[:, None] * (codes[:, None] == np.arange(len(totals)))
        sums = centred.tdot(member)
        # Products of unlike rows are those of all less those of like ones. All add up to nothing around the mean, but
        # for its rounding, which counts where one class outweighs all others.
        products = float(np.sum(sums.sum(axis=1) ** 2)) - float(np.sum(sums**2))
        squares = 2 * (float(others @ (member.T @ centred.squared_rows())) - products)
        typical = np.sqrt(max(squares, 0.0) / unlike)
        rounding = EQUAL if isinstance(design.X, np.ndarray) else np.sqrt(EQUAL)
        self.margin_ = self._margin(typical if typical > rounding * np.linalg.norm(mean) else 0.0)
        return ClassPairs(codes, weights, self.alpha / alike, self.beta / unlike, self.margin_)

    def _listed(self, design: Any, weights: Array, similar: Any, dissimilar: Any) -> "Pairs":
        """The pairs that the user gives."""
        if similar is None or dissimilar is None:
            raise EmpiriskError("similar and dissimilar belong together: without one of them nothing holds the other.")
        alike = _pairs("similar", similar, design.shape[0])
        unlike = _pairs("dissimilar", dissimilar, design.shape[0])
        first, second = np.vstack([alike, unlike]).T
        amounts = weights[first] * weights[second]
        is_alike = np.arange(len(first)) < len(alike)
        totals = float(amounts[is_alike].sum()), float(amounts[~is_alike].sum())
        if min(totals) <= 0:
            raise EmpiriskError(
                "sample_weight leaves no similar or no dissimilar pair with weight; raise some of them."
            )
        return Pairs(first, second, is_alike, amounts / np.where(is_alike, *totals))

    def _of_classes(self, design: Any, weights: Array, codes: NDArray[np.intp]) -> "Pairs":
        """All pairs of rows, each once; a row is similar to itself too, at a distance of nothing."""
        rows, columns = design.shape
        require(
            rows * (rows - 1) // 2 * (8 * columns + 40),  # a difference in numbers of 8 bytes, and what is kept of it
            f"loss='two_margins' on the {rows * (rows - 1) // 2} pairs of {rows} rows",
            "give some of them by similar= and dissimilar=, or use loss='one_margin'",
        )
        first, second = np.triu_indices(rows, 1)
        alike = codes[first] == codes[second]
        amounts = 2 * weights[first] * weights[second]
        totals = np.bincount(codes, weights)
        same = float(totals @ totals)
        return Pairs(first, second, alike, amounts / np.where(alike, same, float(amounts[~alike].sum())))

    def _differences(self, design: Any, pairs: "Pairs") -> Any:
        """The differences of the pairs as a table; sets the margin by their lengths."""
        differences = design.rows(pairs.first).X - design.rows(pairs.second).X
        squares = design_of(differences).squared_rows()
        mean = float(pairs.amounts[~pairs.alike] @ squares[~pairs.alike]) / float(pairs.amounts[~pairs.alike].sum())
        self.margin_ = self._margin(mean if self.loss == "two_margins" else np.sqrt(mean))
        return differences

    def _of_pairs(self, design: Any, make: Callable[[], "Pairs"]) -> ListedPairs:
        """The loss of listed pairs."""
        pairs = make()
        self._differences(design, pairs)
        pulls = np.where(pairs.alike, self.alpha * pairs.amounts, 0.0)
        pushes = np.where(pairs.alike, 0.0, self.beta * pairs.amounts)
        if self.loss == "one_margin":
            return ListedPairs(pairs.first, pairs.second, pulls, pushes, square_of_hinge(self.margin_))
        margins = hinge_of_squares(self.margin_), hinge_beyond(float(self.similar_margin))
        return ListedPairs(pairs.first, pairs.second, pulls, pushes, *margins)

    def _learn_convex(self, design: Any, weights: Array, make: Callable[[], "Pairs"], data: dict[str, Any]) -> None:
        """Minimise over M = P'P by the method of multipliers, in columns of equal spread."""
        with interruptible() as interrupted:
            course = Course(self, data, interrupted)
            pairs = make()
            table = self._differences(design, pairs)
            matrix = np.asarray(table.toarray() if sparse.issparse(table) else table, np.float64)
            spread = np.sqrt(pairs.amounts @ matrix**2)  # by their weights: a row of weight 2 is the row twice
            scale = 1.0 / np.where(spread > 0, spread, 1.0)
            amounts = np.where(pairs.alike, self.alpha, self.beta) * pairs.amounts
            problem = PairHinges(
                matrix * scale, pairs.alike, amounts, float(self.similar_margin), self.margin_, self.strength * scale**2
            )
            search = Multipliers(problem, np.diag(1.0 / scale), float(self.tol))
            width = len(self._start(design.shifted(design.tdot(weights) / weights.sum()), weights))

            def fitted() -> dict[str, Any]:
                P = leading_rows(search.best * scale, width)
                return {"components_": P.astype(design.X.dtype, copy=False)}

            course.note(search.primal)
            course.reason = "max_iter"
            for _ in range(int(self.max_iter)):
                settled = search.round(course.left())
                if course.ended(search.primal, fitted):
                    break
                if settled:
                    course.reason = "converged"
                    break
        course.close(fitted())
        status = ENDINGS.get(course.reason, course.reason)
        kept = leading_rows(search.best * scale, width) / scale
        self.certificate_ = search.certificate(kept, status, self.n_iter_, float(self.history_["seconds"][-1]))


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, whether they are alike, and what they weigh: one in all for like and for unlike ones."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    alike: NDArray[np.bool_]
    amounts: Array


@dataclass(eq=False, repr=False)
class LargeMarginMetric(Metric):
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
    k : int
        The number of neighbours; an amount of weight, as for `KNNClassifier`.
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
    >>> plain = er.KNNClassifier(k=3).fit(X[:40], y[:40]).score(X[40:], y[40:])
    >>> machine = er.KNNClassifier(k=3, features=er.LargeMarginMetric(k=3)).fit(X[:40], y[:40])
    >>> machine.score(X[40:], y[40:]) > plain
    True
    """

    _largest = 1e15  # the products of its images are in single precision, after steps that make them larger

    k: int = 3
    form: str = "triplets"
    C: float = 1.0
    margin: float | str | None = "auto"

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "LargeMarginMetric":
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
        check_count("k", self.k)
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
        found = [neighbours(design.rows(group).X, weights[group], self.k) for group in groups]
        width = max(places.shape[1] for _, places, _ in found)
        targets, amounts = np.zeros((len(codes), width), np.intp), np.zeros((len(codes), width))
        pulled = 0.0
        for group, (squares, places, counts) in zip(groups, found, strict=True):
            targets[group, : places.shape[1]], amounts[group, : places.shape[1]] = group[places], counts
            pulled += float(weights[group] @ np.sum(counts * squares, axis=1))
        total = float(weights @ amounts.sum(axis=1))
        if total <= 0:
            raise EmpiriskError(
                "Every class of y has one row only, which has no neighbours to be near; give more rows."
            )
        self.margin_ = self._margin(pulled / total)
        return Triplets(targets, amounts, codes, weights, float(self.C), self.margin_)

    def _pairs(self, design: Any, weights: Array, codes: NDArray[np.intp]) -> ListedPairs:
        """The nearest rows of all classes."""
        squares, places, counts = neighbours(design.X, weights, self.k)
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


def _pairs(name: str, pairs: Any, rows: int) -> NDArray[np.intp]:
    """Pairs of row numbers, checked."""
    given = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2 or not len(given) or given.dtype.kind not in "iu":
        raise EmpiriskError(
            f"{name} has shape {given.shape}; give row numbers of X in two columns, a row for each pair."
        )
    if given.min() < 0 or given.max() >= rows:
        raise EmpiriskError(
            f"{name} names the row {given.max() if given.min() >= 0 else given.min()}; X has {rows} rows."
        )
    return given.astype(np.intp)
