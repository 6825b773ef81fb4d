"""Columns by their mutual information with the target: any dependence counts, but only that of one column at a time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from empirisk import state
from empirisk.contract.arguments import check_count
from empirisk.contract.inputs import Array, check_weights, sorted_classes
from empirisk.contract.resample import Groups
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.names import Estimator
from empirisk.selection.column_choice import ColumnSelector
from empirisk.validation import validate_data

#: Rows that whole weights may stand for in any table, and for each row of a long one: neighbours of more take minutes.
MOST_ROWS, MOST_COPIES = 100_000, 10


@dataclass(eq=False, repr=False)
class InformationSelection(ColumnSelector, Estimator):
    """The k columns that share most information with the target, each taken alone.

        I(x_j; y) = sum or integral of  p(x_j, y) log( p(x_j, y) / (p(x_j) p(y)) ),  in nats

    It is zero only for columns independent of the target, whatever the form of the dependence; columns that help
    only together are missed, and copies of a good column are taken with it. Estimates are scikit-learn's, from
    distances to the nearest neighbours for numbers and from frequencies for what is discrete.

    Parameters
    ----------
    n_features_to_select : int or None
        The number k of columns; None for half of them, as in scikit-learn's selectors.
    discrete_features : "auto", bool or array
        Which columns are discrete: all of a sparse table and none of a dense one, or a mask or list of columns.
    n_neighbors : int
        Neighbours of the estimates for numbers.
    random_state : int, RandomState or None
        Draws the noise, 1e-10 of the deviation, that tells equal numbers apart.

    Attributes
    ----------
    support_ : array of bool
        The columns selected; of equally good ones the first.
    scores_ : array
        The mutual information of each column with the target, in nats.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 6))
    >>> found = er.selection.InformationSelection(2, random_state=0).fit(X, X[:, 1] ** 2 + np.abs(X[:, 4]))
    >>> np.flatnonzero(found.support_)  # though neither is correlated with y
    array([1, 4])
    """

    _state = state.State(
        n_features_in_=state.size("columns"),
        support_=state.array("b", "columns"),
        scores_=state.array("f8", "columns", low=0),
        sizes={"width": lambda its: int(its["support_"].sum())},
    )

    support_: NDArray[np.bool_] = field(init=False)
    scores_: Array = field(init=False)

    n_features_to_select: int | None = None
    _: KW_ONLY
    discrete_features: Any = "auto"
    n_neighbors: int = 3
    random_state: Any = None

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> InformationSelection:
        """Measure every column, and keep the best.

        Parameters
        ----------
        X : array or sparse matrix, n x d
            The rows.
        y : array of n
            Classes or numbers.
        sample_weight : array of n, optional
            Whole numbers: weight 2 equals the row twice. Distances to neighbours know no other weights.
        """
        check_count("n_neighbors", self.n_neighbors)
        table, target = validate_data(self, X, y, accept_sparse=["csr", "csc"], dtype=np.float64, ensure_min_samples=2)
        size = self._count(table.shape[1])
        weights = check_weights(sample_weight, table.shape[0])
        if target.dtype == object:
            sorted_classes(target, weights)  # labels that have no order are named
        rows = _rows(table, target, weights)
        with np.errstate(invalid="ignore"):  # whether numbers beyond 2^63 are whole is asked by a cast
            classes = type_of_target(target) in ("binary", "multiclass")
        measure = mutual_info_classif if classes else mutual_info_regression
        options = {"discrete_features": self.discrete_features, "n_neighbors": min(self.n_neighbors, len(rows) - 1)}
        target = column_or_1d(target)[rows]
        target = target if classes else _in_range(target.astype(np.float64))
        self.scores_ = measure(self._coded(table[rows]), target, random_state=self.random_state, **options)
        best = np.argsort(-self.scores_, kind="stable")[:size]
        self.support_ = np.isin(np.arange(len(self.scores_)), best)
        return self

    def _coded(self, table: Any) -> Any:
        """The table with the values of discrete columns as whole numbers, which scikit-learn takes for codes."""
        if sparse.issparse(table):
            table = table.copy()
            table.eliminate_zeros()
            table.data = np.unique(table.data, return_inverse=True)[1] + 1.0  # zeros stay
            return table
        scaled = _in_range(table)
        if not isinstance(self.discrete_features, str) and self.discrete_features is not False:
            every = np.arange(table.shape[1])
            for column in every if self.discrete_features is True else every[np.asarray(self.discrete_features)]:
                scaled[:, column] = np.unique(table[:, column], return_inverse=True)[1]
        return scaled

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def _in_range(columns: Array) -> Array:
    """Columns divided by powers of two, which changes no information: squares of large numbers would overflow."""
    return np.ldexp(columns, -np.frexp(np.abs(columns).max(axis=0))[1])


def _rows(table: Any, target: NDArray, weights: Array) -> NDArray[np.intp]:
    """The rows, each as often as its weight says, in an order that they alone decide: the noise goes along with it."""
    if (weights != np.rint(weights)).any():
        raise EmpiriskError(
            "sample_weight must hold whole numbers, how often each row counts: mutual information is estimated from "
            "neighbours, which know no other weights; leave it out, or use L1Selection."
        )
    most = max(MOST_ROWS, MOST_COPIES * len(weights))
    if weights.sum() > most:
        raise EmpiriskError(
            f"sample_weight stands for {weights.sum():.3g} rows, and neighbours among more than {most} take too long; "
            "divide the weights, leave them out, or use L1Selection."
        )
    groups = Groups.of(table, target, weights)
    return np.repeat(groups.first, np.bincount(groups.member, weights).astype(np.intp))
