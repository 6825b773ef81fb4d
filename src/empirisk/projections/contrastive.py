"""Metrics from pairs of rows that are alike or not, and from triplets: which of two rows is the nearer one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.callback import with_callbacks

from empirisk import state
from empirisk.certificate import Certificate
from empirisk.contract.arguments import check_number
from empirisk.contract.features import FLOATS, FORMATS
from empirisk.contract.inputs import Array, check_size, check_weights
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.linalg.design import Design, design_of
from empirisk.projections.convex_metric import ConvexHinges, HeldProblem, MetricInteriorPoint, leading_rows
from empirisk.projections.descent import DescentLog
from empirisk.projections.metric import EQUAL, LearnedMetric
from empirisk.projections.metric_losses import ClassPairs, DistanceHinges, ListedPairs, square_of_hinge
from empirisk.settings import require
from empirisk.stop import Ending, Stopped, interruptible, stopping
from empirisk.validation import validate_data

LOSSES = ("one_margin", "two_margins", "triplets")
#: Bytes that a pair of rows takes besides its difference, and those of a triplet: places, amounts and what is computed
#: of them in numbers of 8 bytes.
PAIR_BYTES, TRIPLET_BYTES = 40, 120


@dataclass(eq=False, repr=False)
class ContrastiveMetric(LearnedMetric):
    """The metric |P x - P z| of a contrastive loss:

        minimise  alpha mean_{similar} |P(x_i - x_j)|^2  +  beta mean_{dissimilar} max(0, margin - |P(x_i - x_j)|)^2  +
        strength |P|^2,

    or, with loss="two_margins" and D_ij = |P(x_i - x_j)|^2,

        minimise  alpha mean_{similar} max(0, D_ij - similar_margin)  +  beta mean_{dissimilar} max(0, margin - D_ij)  +
        strength |P|^2,

    or, with loss="triplets", over triplets (i, j, l) in which row i is to be nearer to row j than to row l,

        minimise  alpha mean max(0, D_ij - similar_margin)  +  beta mean max(0, margin + D_ij - D_il)  +
        strength |P|^2.

    Rows of one class are similar and those of two classes are not; or the user gives pairs or triplets. The loss starts
    at the Euclidean metric and never rises. It is a map: use it in ``features=`` of `KNNClassifier` and `KNNRegressor`,
    or as a step of a pipeline.

    Squared distances are linear in M = P'P, so that the losses of two margins and of triplets are convex in M: with
    ``convex=True`` they are minimised over all M >= 0, and certified. In P they are not convex.

    Parameters
    ----------
    alpha, beta : float
        What similar pairs and dissimilar pairs weigh. With triplets, alpha may be zero, as ``beta`` pulls too.
    margin : float or "auto"
        The distance that dissimilar rows should have; "auto" is their root mean square distance. With two margins and
        with triplets it is a squared distance, "auto" the mean of those. Without a margin the loss has no lower bound,
        so None is refused.
    strength : float
        Factor of |P|^2.
    loss : {"one_margin", "two_margins", "triplets"}
        See above.
    similar_margin : float
        The squared distance that similar rows may have, with two margins or with triplets.
    convex : bool
        Whether to minimise over M, with two margins or with triplets; ``tol`` then is a relative duality gap.
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
    >>> nearer = er.ContrastiveMetric(loss="triplets", convex=True).fit(X, triplets=[[0, 1, 2], [3, 2, 1]])
    >>> nearer.certificate_.converged
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
        triplets: ArrayLike | None = None,
    ) -> ContrastiveMetric:
        """Learn from classes, from pairs of row numbers, or from triplets of them.

        Parameters
        ----------
        X : array or sparse matrix, n x d
            The rows.
        y : array of n, optional
            Their classes, or numbers; needed unless pairs or triplets are given.
        sample_weight : array of n, optional
            Weight of each row; a pair or a triplet weighs the product of its rows, so weight 2 equals the row twice.
        similar, dissimilar : arrays of two columns, optional
            The pairs of rows to use in place of those of the classes.
        triplets : array of three columns, optional
            For loss="triplets": a row, one that is to be nearer to it, and one that is to be farther away.
        """
        self._check()
        for name in ("alpha", "beta"):
            check_number(name, getattr(self, name), 0.0, above=name == "beta" or self.loss != "triplets")
        check_number("strength", self.strength, 0.0)
        self._check_form()
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        if similar is not None or dissimilar is not None or triplets is not None:
            matrix: Any = validate_data(self, X, accept_sparse=FORMATS, dtype=FLOATS, ensure_min_samples=2)
            check_size("X", matrix)
            weights = check_weights(sample_weight, matrix.shape[0])
            design = design_of(matrix)
            make = self._of_lists(design, weights, similar, dissimilar, triplets)
        else:
            design, weights, codes = self._by_target(X, y, sample_weight)
            make = partial(self._of_classes, design, weights, codes)
        if self.convex:
            self._learn_convex(design, weights, make, data)
        else:
            self._learn(design, weights, make, data, float(self.strength))
        return self

    def _check_form(self) -> None:
        if self.loss not in LOSSES:
            raise EmpiriskError(f"loss={self.loss!r} is not known; choose one of {list(LOSSES)}.")
        check_number("similar_margin", self.similar_margin, 0.0)
        if self.loss == "one_margin" and (self.similar_margin > 0 or self.convex):
            raise Unsuitable(
                "similar_margin and convex belong to loss='two_margins' and loss='triplets', which are convex in "
                "M = P'P."
            )
        if self.convex and not self.alpha > 0 and not self.strength > 0:
            raise Unsuitable(
                "alpha=0 and strength=0 leave the convex form without a bound of M; give one of them a positive number."
            )

    def _of_lists(
        self, design: Design, weights: Array, similar: Any, dissimilar: Any, triplets: Any
    ) -> Callable[[], Any]:
        """What makes the loss of the pairs or the triplets that the user gives."""
        if (triplets is None) == (self.loss == "triplets"):
            raise EmpiriskError("triplets belongs to loss='triplets', similar and dissimilar to the losses of pairs.")
        if triplets is not None:
            if similar is not None or dissimilar is not None:
                raise EmpiriskError("Give triplets, or similar and dissimilar, not both.")
            rows = _row_numbers("triplets", triplets, design.shape[0], 3)
            return partial(self._hinges_of_triplets, design, weights, rows)
        if similar is None or dissimilar is None:
            raise EmpiriskError("similar and dissimilar belong together: without one of them nothing holds the other.")
        alike = _row_numbers("similar", similar, design.shape[0], 2)
        unlike = _row_numbers("dissimilar", dissimilar, design.shape[0], 2)
        first, second = np.vstack([alike, unlike]).T
        amounts = weights[first] * weights[second]
        is_alike = np.arange(len(first)) < len(alike)
        totals = float(amounts[is_alike].sum()), float(amounts[~is_alike].sum())
        if min(totals) <= 0:
            raise EmpiriskError(
                "sample_weight leaves no similar or no dissimilar pair with weight; raise some of them."
            )
        pairs = RowPairs(first, second, is_alike, amounts / np.where(is_alike, *totals))
        return partial(self._of_pairs, design, pairs)

    def _of_classes(self, design: Any, weights: Array, codes: NDArray[np.intp]) -> Any:
        """The loss of all pairs or triplets of the classes."""
        if self.loss == "one_margin":  # its sums over all pairs need no list of them
            return self._by_class(design, weights, codes)
        if self.loss == "triplets":
            return self._hinges_of_triplets(design, weights, self._triplets_of_classes(design, codes))
        return self._of_pairs(design, self._pairs_of_classes(design, weights, codes))

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

    def _pairs_of_classes(self, design: Any, weights: Array, codes: NDArray[np.intp]) -> RowPairs:
        """All pairs of rows, each once; a row is similar to itself too, at a distance of nothing."""
        rows, columns = design.shape
        require(
            rows * (rows - 1) // 2 * (8 * columns + PAIR_BYTES),
            f"loss='two_margins' on the {rows * (rows - 1) // 2} pairs of {rows} rows",
            "give some of them by similar= and dissimilar=, or use loss='one_margin'",
        )
        first, second = np.triu_indices(rows, 1)
        alike = codes[first] == codes[second]
        amounts = 2 * weights[first] * weights[second]
        totals = np.bincount(codes, weights)
        same = float(totals @ totals)
        return RowPairs(first, second, alike, amounts / np.where(alike, same, float(amounts[~alike].sum())))

    def _triplets_of_classes(self, design: Any, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """All triplets of two rows of one class, which may be the same row, and one of another class."""
        rows, columns = design.shape
        sizes = np.bincount(codes)
        count = int(np.sum(sizes**2 * (rows - sizes)))
        require(
            rows * (rows - 1) // 2 * (8 * columns + PAIR_BYTES) + count * TRIPLET_BYTES,
            f"loss='triplets' on the {count} triplets of {rows} rows",
            "give some of them by triplets=, or use LargeMarginMetric",
        )
        found = []
        for number in range(len(sizes)):
            members, others = np.flatnonzero(codes == number), np.flatnonzero(codes != number)
            found.append(np.stack(np.meshgrid(members, members, others, indexing="ij"), axis=-1).reshape(-1, 3))
        return np.vstack(found)

    def _of_pairs(self, design: Any, pairs: RowPairs) -> Any:
        """The loss of listed pairs; sets the margin by the distances of unlike ones."""
        pushes = np.where(pairs.alike, 0.0, pairs.amounts)
        mean = float(pushes @ squared_distances(design, pairs.first, pairs.second)) / float(pushes.sum())
        if self.loss == "one_margin":
            self.margin_ = self._margin(np.sqrt(mean))
            pulls = np.where(pairs.alike, self.alpha * pairs.amounts, 0.0)
            return ListedPairs(pairs.first, pairs.second, pulls, self.beta * pushes, square_of_hinge(self.margin_))
        self.margin_ = self._margin(mean)
        return DistanceHinges(
            pairs.first,
            pairs.second,
            sparse.diags_array(np.where(pairs.alike, 1.0, -1.0), format="csr"),
            np.where(pairs.alike, -float(self.similar_margin), self.margin_),
            np.where(pairs.alike, self.alpha, self.beta) * pairs.amounts,
        )

    def _hinges_of_triplets(self, design: Any, weights: Array, rows: NDArray[np.intp]) -> DistanceHinges:
        """The loss of triplets; sets the margin by the distances of the farther rows."""
        amounts = np.prod(weights[rows], axis=1)
        total = float(amounts.sum())
        if total <= 0:
            raise EmpiriskError("sample_weight leaves no triplet with weight; raise some of them.")
        amounts = amounts / total
        count = design.shape[0]
        low, high = np.minimum(rows[:, :1], rows[:, 1:]), np.maximum(rows[:, :1], rows[:, 1:])
        pairs, places = np.unique(low * count + high, return_inverse=True)
        near, far = places.reshape(low.shape).T
        first, second = np.divmod(pairs, count)
        self.margin_ = self._margin(float(amounts @ squared_distances(design, first, second)[far]))
        pulls = np.bincount(near, amounts, len(pairs))
        pulled = np.flatnonzero(pulls)
        numbers = np.arange(len(rows))
        shape = (len(rows), len(pairs))
        pushed = sparse.csr_array(
            (np.repeat([1.0, -1.0], len(rows)), (np.tile(numbers, 2), np.concatenate([near, far]))), shape
        )
        return DistanceHinges(
            first,
            second,
            sparse.vstack([sparse.eye_array(len(pairs), format="csr")[pulled], pushed], format="csr"),
            np.append(np.full(len(pulled), -float(self.similar_margin)), np.full(len(rows), self.margin_)),
            np.concatenate([self.alpha * pulls[pulled], self.beta * amounts]).astype(np.float64),
        )

    def _learn_convex(self, design: Any, weights: Array, make: Callable[[], Any], data: dict[str, Any]) -> None:
        """Minimise over M = P'P by an interior-point method."""
        width = len(self._start(design.shifted(design.tdot(weights) / weights.sum()), weights))
        with interruptible():
            log = DescentLog(self, data)
            hinges, unit = make(), np.eye(design.shape[1])
            table = differences(design, hinges.first, hinges.second)
            problem = ConvexHinges(
                np.asarray(table.toarray() if sparse.issparse(table) else table, np.float64),
                hinges.signs,
                hinges.offsets,
                hinges.amounts,
                float(self.strength) * unit,
            )
            search = MetricInteriorPoint(HeldProblem.of(problem), unit, float(self.tol))

            def fitted() -> dict[str, Any]:
                return {"components_": leading_rows(search.best, width).astype(design.X.dtype, copy=False)}

            log.note(search.primal)
            log.reason = Ending.MAX_ITER
            try:
                for _ in range(int(self.max_iter)):
                    if search.settled or search.stalled:
                        log.reason = Ending.CONVERGED if search.settled else Ending.STALLED
                        break
                    with stopping(log.stops):
                        search.round()
                    if log.ended(search.primal, fitted):
                        break
            except Stopped:
                pass
        log.close(fitted())
        seconds = float(self.history_["seconds"][-1])
        self.certificate_ = search.certificate(leading_rows(search.best, width), log.reason, self.n_iter_, seconds)


@dataclass(frozen=True)
class RowPairs:
    """Pairs of rows, whether they are alike, and what they weigh: one in all for like and for unlike ones."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    alike: NDArray[np.bool_]
    amounts: Array


def differences(design: Any, first: NDArray[np.intp], second: NDArray[np.intp]) -> Any:
    """x_i - x_j of pairs of rows, as a table of the form of X."""
    return design.rows(first).X - design.rows(second).X


def squared_distances(design: Any, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    """|x_i - x_j|^2 of pairs of rows."""
    return design_of(differences(design, first, second)).squared_rows()


def _row_numbers(name: str, rows: Any, most: int, columns: int) -> NDArray[np.intp]:
    """Pairs or triplets of row numbers, checked."""
    given = np.asarray(rows)
    if given.ndim != 2 or given.shape[1] != columns or not len(given) or given.dtype.kind not in "iu":
        what = {2: "two columns, a row for each pair", 3: "three columns, a row for each triplet"}[columns]
        raise EmpiriskError(f"{name} has shape {given.shape}; give row numbers of X in {what}.")
    if given.min() < 0 or given.max() >= most:
        raise EmpiriskError(
            f"{name} names the row {given.max() if given.min() >= 0 else given.min()}; X has {most} rows."
        )
    return given.astype(np.intp)
