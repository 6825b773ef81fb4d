"""Sums, differences, products and ratios of columns, and deviations from group means, as far as they help trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_count
from empirisk.contract.inputs import Array, as_numbers, check_weights, generator
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError
from empirisk.linalg.hashes import row_hashes
from empirisk.linalg.namespace import namespace
from empirisk.names import Estimator
from empirisk.selection.centres import centres
from empirisk.trees.boosting import BoostingRegressor
from empirisk.trees.table_columns import categorical_mask
from empirisk.validation import validate_data

#: Names of the operations, by their numbers: a name stands for one of the two columns.
OPERATIONS = ("{} + {}", "{} - {}", "{} {}", "amounts {} {}", "{} / {}", "{} by {}", "{} {} from place {}")
CENTRED = 3  # operations that come first are of centred columns, those after them of amounts
GROUP = 5  # the operation that takes the mean of a group away
DISTANCE = 6  # the operation that takes the distance from a centre
#: Added to what a ratio divides by, in standard deviations: rows near the least value do not decide.
FLOOR = 0.01
#: The boosting that chooses: small trees, and few of them, tell what is used most.
CHOOSING = {"n_estimators": 60, "max_leaf_nodes": 15}
MOST_CODES = 100_000  # of a column of categories
STANDARD = 1e-9  # a mean, and a deviation less one, that are rounding alone


def _wrong_means(its: Mapping[str, Any]) -> str | None:
    """What is wrong where group means do not go with the operations of a loaded step."""
    for operation, means in zip(its["operations_"], its["group_means_"], strict=True):
        if (len(means) > 0) != (operation == GROUP):
            return "group_means_ do not go with operations_"
    if DISTANCE in its["operations_"] and "centres_" not in its:
        return "centres_ are lacking"
    return None


@dataclass(eq=False, repr=False)
class CombinedColumns(TransformerMixin, Estimator):
    """The columns, and after them those combinations of two of them that trees use most, and distances from places.

    A tree cuts along one column at a time: a cut along x + z, or along x / z, takes it many steps. Of the columns that
    boosting uses most, on a part of the rows, all sums, differences and products (of centred columns, in standard
    deviations), products and ratios of amounts (from the least value, in standard deviations) and deviations from the
    mean of a group are tried together, and those with most gain are kept. Their values do not hang on units. Of each
    pair of coordinates the distances from sixteen centres are kept besides: what is near a place lies in a circle.

    Parameters
    ----------
    n_combinations : int
        Combinations that are kept at the most; those that boosting makes no use of are not.
    n_columns : int
        Columns that are combined: those with the most gain.
    n_rows : int
        Rows by which they are chosen.
    categorical_features : list of int or None
        Columns that hold codes of categories, 0, 1, ...: the groups whose means are taken. NaN, and codes that were not
        met, have the mean of all rows.
    coordinates : list of pairs of int or None
        Columns that together say where something is, such as a latitude and a longitude.
    random_state : int, RandomState or None
        Seed of the boosting.

    Attributes
    ----------
    operations_, left_, right_ : arrays
        What each combination is made of.
    group_means_ : list of arrays
        Of each combination with groups the mean of every code, and at last that of all rows.
    centres_ : array, combinations x 2
        Of each distance the place that it is from, in standard deviations from the mean.
    middle_, least_, size_ : arrays
        Mean, least value and standard deviation of each column.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(1, 2, size=(500, 4))
    >>> found = er.selection.CombinedColumns(1).fit(X, (X[:, 0] - 1.5) * (X[:, 2] - 1.5))
    >>> found.get_feature_names_out().tolist()
    ['x0', 'x1', 'x2', 'x3', 'x0 x2']
    """

    _state = state.State(
        _wrong_means,
        n_features_in_=state.size("columns"),
        middle_=state.array("f8", "columns"),
        least_=state.array("f8", "columns"),
        size_=state.array("f8", "columns", low=0),
        operations_=state.array("i8", "combined", low=0, high=DISTANCE),
        left_=state.array("i8", "combined", low=0, below="columns"),
        right_=state.array("i8", "combined", low=0, below="columns"),
        group_means_=state.several(state.array("f8", None), "combined"),
        centres_=state.optional(state.array("f8", "combined", 2)),  # older files have none
        sizes={"width": lambda its: its["n_features_in_"] + len(its["operations_"])},
    )

    operations_: NDArray[np.int64] = field(init=False)
    left_: NDArray[np.int64] = field(init=False)
    right_: NDArray[np.int64] = field(init=False)
    group_means_: list = field(init=False)
    centres_: Array = field(init=False)

    n_combinations: int = 12
    _: KW_ONLY
    n_columns: int = 8
    n_rows: int = 4000
    categorical_features: Any = None
    coordinates: Any = None
    random_state: Any = None

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> CombinedColumns:
        """Find the combinations.

        Parameters
        ----------
        X : array, n x d
            The rows; NaN is missing.
        y : array of n
            Numbers.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        for name in ("n_combinations", "n_columns", "n_rows"):
            check_count(name, getattr(self, name))
        table, target = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=True, ensure_min_samples=2
        )
        target = as_numbers(target)
        weights = check_weights(sample_weight, len(target))
        codes, places = self._code_columns(table), self._coordinate_pairs(table)
        ranks = np.unique(row_hashes(np.column_stack([table, target])), return_inverse=True)[1].ravel()
        order = np.lexsort((weights, ranks))  # by content: the order of the rows does not matter
        order = order[weights[order] > 0]
        table, target, weights, ranks = table[order], target[order], weights[order], ranks[order]
        self._measure(table, weights)
        chosen = np.unique(ranks, return_inverse=True)[1].ravel() < self.n_rows
        some, seed = table[chosen], int(generator(self.random_state).integers(2**31))

        def gains(columns: Array) -> Array:
            machine: Any = BoostingRegressor(**CHOOSING, categorical_features=codes or None, random_state=seed)
            return machine.fit(columns, target[chosen], weights[chosen]).feature_importances_

        alone = gains(some)
        used = [int(k) for k in np.argsort(-alone, kind="stable") if alone[k] > 0]
        numbers = [k for k in used if k not in codes][: self.n_columns]
        groups = [k for k in used if k in codes][: self.n_columns]
        pairs = list(combinations(numbers, 2))
        tried = [(place, *pair) for pair in pairs for place in range(GROUP)]
        tried += [(OPERATIONS.index("{} / {}"), right, left) for left, right in pairs]
        tried += [(GROUP, left, right) for left in numbers for right in groups]
        self._keep([(*one, 0.0, 0.0) for one in tried], table, weights)
        gained = gains(np.hstack([some, self._combined(some)]))[table.shape[1] :]
        best = [int(k) for k in np.argsort(-gained, kind="stable")[: self.n_combinations] if gained[k] > 0]
        away = [(DISTANCE, *pair, *centre) for pair in places for centre in self._centres(table, pair, weights)]
        self._keep([*((*tried[k], 0.0, 0.0) for k in best), *away], table, weights)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """The columns, and the combinations after them; NaN where one of the two is missing, or where they overflow."""
        check_is_fitted(self)
        table = validate_data(self, X, dtype=(np.float64, np.float32), ensure_all_finite="allow-nan", reset=False)
        with np.errstate(all="ignore"):
            found = self._combined(table.astype(np.float64, copy=False)).astype(table.dtype, copy=False)
        found[~np.isfinite(found)] = np.nan
        return np.hstack([table, found])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """The names of the columns, and such as ``x0 + x1`` of combinations."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        found = enumerate(zip(self.operations_, self.left_, self.right_, strict=True))
        made = (OPERATIONS[k].format(names[a], names[b], place) for place, (k, a, b) in found)
        return np.array([*names, *made], dtype=object)

    def combination(self, number: int, x: Any, z: Any, means: Any) -> Any:
        """One combination, of the values of its two columns; ``means`` are those of its groups, by code."""
        left, right = int(self.left_[number]), int(self.right_[number])
        operation, xp = int(self.operations_[number]), namespace(x)
        if operation == GROUP:
            known = (z >= 0) & (z < len(self.group_means_[number]) - 1)
            place = xp.where(known, z, float(len(self.group_means_[number]) - 1))
            return (x - means[place.astype(int)]) / self.size_[left]
        if operation < CENTRED or operation == DISTANCE:
            p, q = (x - self.middle_[left]) / self.size_[left], (z - self.middle_[right]) / self.size_[right]
            if operation == DISTANCE:
                p, q = p - self.centres_[number, 0], q - self.centres_[number, 1]
                return xp.sqrt(p * p + q * q)  # each step is rounded alike wherever it is taken
            return p + q if operation == 0 else p - q if operation == 1 else p * q
        p, q = (x - self.least_[left]) / self.size_[left], (z - self.least_[right]) / self.size_[right]
        return p * q if operation == CENTRED else p / (xp.maximum(q, 0.0) + FLOOR)

    # --- learning ---------------------------------------------------------------------------------------------------

    def _code_columns(self, table: Array) -> list[int]:
        """The columns that hold codes of categories."""
        codes = np.flatnonzero(categorical_mask(table, self.categorical_features)).tolist()
        for column in codes:
            values = table[:, column][~np.isnan(table[:, column])]
            if ((values < 0) | (values != np.rint(values)) | (values >= MOST_CODES)).any():
                raise EmpiriskError(
                    f"Column {column} of X is in categorical_features, and holds other numbers than codes 0, 1, ...; "
                    "encode its categories, as OrdinalEncoder does."
                )
        return codes

    def _coordinate_pairs(self, table: Array) -> list[tuple[int, int]]:
        """The pairs of columns that are coordinates."""
        given = [] if self.coordinates is None else self.coordinates
        columns = range(table.shape[1])
        if any(len(pair) != 2 or pair[0] == pair[1] or not {*pair} <= {*columns} for pair in given):
            raise EmpiriskError(f"coordinates={given!r} must be pairs of different columns of X, by their places.")
        return [(int(pair[0]), int(pair[1])) for pair in given]

    def _centres(self, table: Array, pair: tuple[int, int], weights: Array) -> Array:
        """Centres of the places that are known, in standard deviations from the mean."""
        points = (table[:, pair] - self.middle_[[*pair]]) / self.size_[[*pair]]
        known = np.isfinite(points).all(axis=1)
        return centres(points[known], weights[known])

    def _measure(self, table: Array, weights: Array) -> None:
        """Mean, least value and deviation of the known values of each column."""
        known = ~np.isnan(table)
        mass = np.where(known, weights[:, None], 0.0)
        total = np.maximum(mass.sum(axis=0), np.finfo(float).tiny)
        reach = np.maximum(np.abs(np.where(known, table, 0.0)).max(axis=0, initial=0.0), np.finfo(float).tiny)
        scaled = np.where(known, table, 0.0) / reach  # squares of large numbers would overflow
        middle = (mass * scaled).sum(axis=0) / total
        deviation = np.sqrt((mass * (scaled - middle) ** 2).sum(axis=0) / total)
        middle, size = middle * reach, np.where(deviation > 1e-12, deviation * reach, 1.0)
        # Standardised columns stay as they are, to the last bit: programs that run a graph leave such steps out.
        self.size_ = np.where(np.abs(size - 1) < STANDARD, 1.0, size)
        self.middle_ = np.where(np.abs(middle) < STANDARD * size, 0.0, middle)
        self.least_ = np.where(known, table, np.inf).min(axis=0, initial=np.inf)
        self.least_ = np.where(np.isfinite(self.least_), self.least_, 0.0)

    def _keep(self, chosen: list[tuple[int, int, int, float, float]], table: Array, weights: Array) -> None:
        """Set what the combinations are made of: operation, columns, and the centre of a distance."""
        found = np.array(chosen, dtype=np.float64).reshape(-1, 5)
        self.operations_, self.left_, self.right_ = found[:, :3].T.astype(np.int64, order="C")
        self.centres_ = np.ascontiguousarray(found[:, 3:])
        self.group_means_ = [
            self._means(table[:, left], table[:, right], weights) if operation == GROUP else np.zeros(0)
            for operation, left, right, *_ in chosen
        ]

    def _means(self, values: Array, codes: Array, weights: Array) -> Array:
        """The mean of the known values of each code, and of all rows; that for codes without any."""
        known = ~np.isnan(values)
        every = np.average(values[known], weights=weights[known])
        both = known & ~np.isnan(codes)
        places = codes[both].astype(np.intp)
        mass = np.bincount(places, weights[both])
        sums = np.bincount(places, weights[both] * (values[both] - every))
        return np.append(every + sums / np.where(mass > 0, mass, 1.0), every)

    def _combined(self, table: Array) -> Array:
        """All combinations."""
        found = np.empty((len(table), len(self.operations_)))
        with np.errstate(all="ignore"):
            for number, (left, right) in enumerate(zip(self.left_, self.right_, strict=True)):
                means = self.group_means_[number]
                found[:, number] = self.combination(number, table[:, left], table[:, right], means)
        found[~np.isfinite(found)] = np.nan
        return found

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
