"""What each column offers a node: its best split."""

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from empirisk.trees.compiled import loop
from empirisk.trees.exact.criteria import GINI
from empirisk.trees.exact.describe import clear, lacks
from empirisk.trees.exact.deviation import scan_absolute
from empirisk.trees.exact.presort import MISSING, ROW
from empirisk.trees.exact.scan import EXACT, HEAVIER, NO_SPLIT, scan_squares, scan_sums, scan_variance
from empirisk.trees.exact.subsets import subset_by_mean, subset_by_median, subset_by_sums

#: A column's best split; see `empirisk.trees.exact.scan`.
OFFER = np.dtype([("gain", np.float64), ("cut", np.int64), ("upper", np.int64), ("side", np.int64)])


class Sorted(NamedTuple):
    """The columns: `empirisk.trees.exact.presort.Presorted`, and the number of categories of each column.

    The absolute criterion adds one more row of keys: the rows in the order of y.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    first: NDArray[np.int64]
    counts: NDArray[np.int32]


class Search(NamedTuple):
    """Room to work in: what each column offers, and the sums of the node (of both children of one that was split)."""

    offers: NDArray[np.void]  # (n_features,) of OFFER
    in_left: NDArray[np.bool_] | None  # (n_features, most categories): ranks that go left; None: no categories
    total: NDArray[np.float64]  # (2, 1 + n_sums)
    limits: NDArray[np.float64]  # (2, 4): see `empirisk.trees.exact.describe.describe_classes`


@loop
def scan_columns(columns, target, search, child, start, stop, chosen):
    """Write what the best splits of the chosen columns offer the node whose rows are ``start:stop``."""
    missing = np.zeros(search.total.shape[1])
    for column in chosen:
        keys = columns.keys[column, start:stop]
        present = len(keys)
        while present > 0 and keys[present - 1] >> 32 == MISSING:
            present -= 1
        sum_rows(target, keys[present:], missing)
        if columns.counts[column] > 0:
            gain, side = best_subset(target, search, child, column, keys, present, start, missing)
            cut, upper = np.int64(-1), np.int64(-1)
        else:
            total, limits = search.total[child], search.limits[child]
            gain, cut, upper, side = best_cut(target, keys, present, start, total, missing, limits)
        offer = search.offers[column]
        offer.gain, offer.cut, offer.upper, offer.side = gain, cut, upper, side


def sum_rows(target, keys, sums) -> Any:
    """Write the weight and the sums of some rows."""
    raise TypeError("sum_rows is for compiled code only.")


@overload(sum_rows)
def _sum_rows(target, keys, sums):
    if lacks(target, "slots"):

        def sum_one(target, keys, sums):
            clear(sums)
            for key in keys:
                sums[0] += target.rows[key & ROW, 0]
                sums[1] += target.rows[key & ROW, 1]

        return sum_one

    def sum_several(target, keys, sums):
        clear(sums)
        for key in keys:
            sums[0] += target.rows[key & ROW, 0]
            for j in range(target.slots.shape[1]):
                sums[1 + target.slots[key & ROW, j]] += target.rows[key & ROW, 1 + j]

    return sum_several


def best_cut(target, keys, present, start, total, missing, limits) -> Any:
    """Best split of a numeric column, by the scan that the target asks for; the missing rows follow the present."""
    raise TypeError("best_cut is for compiled code only.")


@overload(best_cut)
def _best_cut(target, keys, present, start, total, missing, limits):
    if not lacks(target, "ordered"):
        return lambda target, keys, present, start, total, missing, limits: scan_absolute(
            keys[:present],
            keys[present:],
            target.rows,
            target.places,
            target.ordered[start : start + len(keys)],
            total,
            limits,
        )
    if lacks(target, "slots"):
        return lambda target, keys, present, start, total, missing, limits: scan_variance(
            keys[:present], target.rows, total, missing, limits
        )

    def by_sums(target, keys, present, start, total, missing, limits):
        if target.criterion == GINI and present == len(keys) and total[0] <= EXACT:
            return scan_squares(keys, target.rows, target.slots, total, limits)
        return scan_sums(target.criterion, keys[:present], target.rows, target.slots, total, missing, limits)

    return by_sums


def best_subset(target, search, child, column, keys, present, start, missing) -> Any:
    """Best split of a categorical column; see `empirisk.trees.exact.subsets`."""
    raise TypeError("best_subset is for compiled code only.")


@overload(best_subset)
def _best_subset(target, search, child, column, keys, present, start, missing):
    if isinstance(search.types[search.fields.index("in_left")], types.NoneType):
        return lambda target, search, child, column, keys, present, start, missing: (NO_SPLIT, np.int64(HEAVIER))
    if not lacks(target, "ordered"):
        return lambda target, search, child, column, keys, present, start, missing: subset_by_median(
            keys[:present],
            keys[present:],
            target.rows,
            target.places,
            target.ordered[start : start + len(keys)],
            search.total[child],
            search.limits[child],
            search.in_left[column],
        )
    if lacks(target, "slots"):
        return lambda target, search, child, column, keys, present, start, missing: subset_by_mean(
            keys[:present], target.rows, search.total[child], missing, search.limits[child], search.in_left[column]
        )
    return lambda target, search, child, column, keys, present, start, missing: subset_by_sums(
        target, keys[:present], search.total[child], missing, search.limits[child], search.in_left[column]
    )
