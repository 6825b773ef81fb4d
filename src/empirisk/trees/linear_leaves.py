"""Leaves of boosting that hold a linear function of the columns of numbers on their path.

The constant v of a leaf is the Newton step -G / (H + l2). Beside it stand slopes b of the columns z, centred at their
mean over the leaf: with gradient g and curvature h they make least

    sum_i g_i (v + b z_i) + 1/2 h_i (v + b z_i)^2  +  1/2 (l2 + prior) sum_j b_j^2 s_j^2,

s_j being half the range of column j in the leaf, so that units do not matter. (Its deviation would not do: where the
curvature of a few rows outweighs that of the others, it is next to nothing.) As z is centred by curvature, v stays the
best constant. A row that lacks one of the columns has z = 0, which is the constant. Beyond what the rows of the leaf
held, a column counts as if it were at that end: nothing is said of values that were never there.

Shi, Li, Li: Gradient boosting with piece-wise linear regression trees. IJCAI, 2019 (arXiv 1802.05640).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import plain, plain_loop
from empirisk.linalg.threads import parallel_map
from empirisk.trees.binned.splits import CURVATURE, GRADIENT, SCORE

Array = NDArray[np.float64]

FOLDS = 5  # parts of the rows of a leaf, each of which judges slopes of the others
PRIOR_ROWS = 3.0  # rows at the ends of the range that ask for a slope of zero in each leaf
FLAT = 1e-12  # a column whose values in a leaf lie within this part of their size is constant there
#: What is known of a column in a leaf: its slope, its mean there, the least and the largest value.
SLOPE, CENTRE, LEAST, LARGEST = range(4)
#: A leaf to be fitted: its rows and the buffer they are in, its columns, whether slopes are added to the scores, and at
#: last whether it has slopes; its constant, and penalty and rate of all leaves.
LEAF = np.dtype(
    [(name, np.int64) for name in ("buffer", "start", "stop", "first", "last", "add", "sloped")]
    + [(name, np.float64) for name in ("constant", "penalty", "rate")]
)


class Slopes(NamedTuple):
    """The slopes of the leaves of a tree: how many each node has, and behind each other their columns and values."""

    counts: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: Array


class GrownTree(NamedTuple):
    """A tree as boosting grows it: its nodes, and the slopes of its leaves where these hold linear functions."""

    nodes: NDArray[np.void]
    slopes: Slopes | None = None


def columns_on_paths(tree: NDArray[np.void], numeric: NDArray[np.bool_]) -> dict[int, list[int]]:
    """The columns of numbers that are split on the way to each leaf."""
    left, feature = tree["left"].tolist(), tree["feature"].tolist()
    paths: dict[int, list[int]] = {0: []}
    for node, child in enumerate(left):  # parents come before their children
        if child >= 0:
            column, path = feature[node], paths.pop(node)
            more = [*path, column] if numeric[column] and column not in path else path
            paths[child] = paths[child + 1] = more
    return paths


def fit_slopes(
    tree: NDArray[np.void], X: Array, data: Array, rows: NDArray[np.int32], numeric: NDArray[np.bool_],
    fold: NDArray[np.int8], penalty: float, rate: float, add: bool,
) -> Slopes:  # fmt: skip
    """The slopes of the leaves of a grown tree; with ``add`` they are added to the scores of its rows.

    Parameters
    ----------
    tree, X, data, rows
        The nodes; the table; what is known of its rows (see `GRADIENT`); the two buffers in which rows of nodes lie.
    numeric
        The columns that may have slopes.
    fold
        The part of every row: a leaf has slopes where they lower the loss of the parts that they were not fitted to.
        Empty where every leaf is to have them.
    penalty, rate
        ``l2 + prior``, and the share of the step that is taken.
    """
    paths = {leaf: columns for leaf, columns in columns_on_paths(tree, numeric).items() if columns}
    leaves, places = np.zeros(len(paths), dtype=LEAF), np.array(list(paths), dtype=np.intp)
    sizes = np.array([len(columns) for columns in paths.values()], dtype=np.int64)
    columns = np.array([column for path in paths.values() for column in path], dtype=np.int32)
    leaves["last"] = np.cumsum(sizes)
    leaves["first"] = leaves["last"] - sizes
    leaves["buffer"], leaves["start"] = tree["depth"][places] & 1, tree["start"][places]
    leaves["stop"], leaves["constant"] = tree["stop"][places], tree["value"][places] / rate
    leaves["penalty"], leaves["rate"], leaves["add"] = penalty, rate, add
    values, most = np.zeros((len(columns), 4)), int(sizes.max(initial=0))

    def run(leaf: int) -> None:
        room = np.zeros((FOLDS + 2, most, most + 2))
        own = slice(leaves["first"][leaf], leaves["last"][leaf])
        slope_leaf(leaves[leaf : leaf + 1], X, data, rows, columns[own], values[own], fold, room)

    parallel_map(run, range(len(leaves)))
    sloped = leaves["sloped"] != 0
    counts = np.zeros(len(tree), dtype=np.int32)
    counts[places[sloped]] = sizes[sloped]
    # Entries in the order of the nodes, as files and predictions have them.
    order = [k for k in np.argsort(places) if sloped[k]]
    ranges = list(zip(leaves["first"].tolist(), leaves["last"].tolist(), strict=True))
    kept = np.concatenate([np.arange(0), *(np.arange(*ranges[k]) for k in order)])
    return Slopes(counts, columns[kept], values[kept])


@plain
def has_all(X, row, columns):
    """Whether a row lacks none of the columns."""
    missing = 0
    for column in columns:
        missing += X[row, column] != X[row, column]
    return missing == 0


@plain
def line_at(X, row, columns, values):
    """What slopes add to the constant of a row."""
    total = 0.0
    for k in range(len(columns)):
        x, value = X[row, columns[k]], values[k]
        if x != x:
            return 0.0
        x = value[LEAST] if x < value[LEAST] else value[LARGEST] if x > value[LARGEST] else x
        total += value[SLOPE] * (x - value[CENTRE])
    return total


@plain
def describe_leaf(X, data, rows, columns, values):
    """Write mean, least and largest value of each column over the rows that have all; returns their curvature."""
    mass = 0.0
    for k in range(len(columns)):
        values[k, CENTRE], values[k, LEAST], values[k, LARGEST] = 0.0, np.inf, -np.inf
    for row in rows:
        if has_all(X, row, columns):
            h = data[CURVATURE, row]
            mass += h
            for k in range(len(columns)):
                x, value = X[row, columns[k]], values[k]
                value[CENTRE] += h * x
                value[LEAST] = x if x < value[LEAST] else value[LEAST]
                value[LARGEST] = x if x > value[LARGEST] else value[LARGEST]
    for k in range(len(columns)):
        values[k, CENTRE] /= mass
    return mass


@plain
def add_products(X, data, row, columns, values, constant, products):
    """Add a row to the products of the columns, and behind the last one to those with the slope of its loss."""
    size, h = len(columns), data[CURVATURE, row]
    gradient = data[GRADIENT, row] + h * constant
    for i in range(size):
        z = X[row, columns[i]] - values[i, CENTRE]
        products[i, size] += z * gradient
        for j in range(i + 1):
            products[i, j] += h * z * (X[row, columns[j]] - values[j, CENTRE])


@plain
def solve_slopes(products, left_out, penalty, values, work):
    """Write the slopes of (products - left_out) to ``values``, by a Cholesky factor that is made in ``work``.

    Columns are scaled by half their range in the leaf, that of a constant column being taken as infinite.
    """
    size = len(values)
    for i in range(size):
        spread, reach = values[i, LARGEST] - values[i, LEAST], max(abs(values[i, LEAST]), abs(values[i, LARGEST]))
        work[i, size + 1] = 2.0 / spread if spread > FLAT * reach else 0.0
    for i in range(size):
        for j in range(i + 1):
            total = (products[i, j] - left_out[i, j]) * work[i, size + 1] * work[j, size + 1]
            total += penalty if i == j else 0.0
            for k in range(j):
                total -= work[i, k] * work[j, k]
            work[i, j] = math.sqrt(max(total, FLAT * penalty)) if i == j else total / work[j, j]
        total = -(products[i, size] - left_out[i, size]) * work[i, size + 1]
        for k in range(i):
            total -= work[i, k] * work[k, size]
        work[i, size] = total / work[i, i]
    for i in range(size - 1, -1, -1):
        total = work[i, size]
        for k in range(i + 1, size):
            total -= work[k, i] * work[k, size]
        work[i, size] = total / work[i, i]
    for i in range(size):
        values[i, SLOPE] = work[i, size] * work[i, size + 1]


@plain
def loss_of(products, values):
    """What slopes add to the loss of the rows whose products are given, to the second order."""
    size, total = len(values), 0.0
    for i in range(size):
        total += values[i, SLOPE] * (products[i, size] + 0.5 * values[i, SLOPE] * products[i, i])
        for j in range(i):
            total += values[i, SLOPE] * values[j, SLOPE] * products[i, j]
    return total


@plain_loop
def slope_leaf(leaves, X, data, rows, columns, values, fold, room):
    """Fit the slopes of one leaf, judge them, and add what they say to the scores; see `fit_slopes`.

    ``room`` holds the products of each fold, those of all rows, and room for a factor.
    """
    leaf, size = leaves[0], len(columns)
    own, folds = rows[leaf.buffer, leaf.start : leaf.stop], len(room) - 2
    whole, work = room[folds], room[folds + 1]
    mass = describe_leaf(X, data, own, columns, values)
    if not (mass > 0.0 and mass < np.inf):
        return
    judged = len(fold) > 0
    for row in own:
        if has_all(X, row, columns):
            add_products(X, data, row, columns, values, leaf.constant, room[fold[row]] if judged else whole)
    change = 0.0
    if judged:
        for k in range(folds):
            for i in range(size):
                for j in range(size + 1):
                    whole[i, j] += room[k, i, j]
        for k in range(folds):
            solve_slopes(whole, room[k], leaf.penalty, values, work)
            change += loss_of(room[k], values)
        room[0] = 0.0
    if change > 0.0 or change != change:
        return
    solve_slopes(whole, room[0], leaf.penalty, values, work)
    for k in range(size):
        values[k, SLOPE] *= leaf.rate
        if not abs(values[k, SLOPE]) < np.inf:
            return
    leaf.sloped = 1
    if leaf.add:
        for row in own:
            data[SCORE, row] += line_at(X, row, columns, values)


# --- predicting -------------------------------------------------------------------------------------------------------

#: The slopes of packed trees: how many each node has, their columns, and what is known of each (see `SLOPE`).
COUNTS, COLUMNS, VALUES = "slope_counts", "slope_columns", "slope_values"


def pack_slopes(trees: Sequence[GrownTree]) -> dict[str, NDArray]:
    """The slopes of trees end to end, entries beside those of `empirisk.trees.nodes.pack_trees`; none without any."""
    found = [tree.slopes for tree in trees if tree.slopes is not None]
    if not found:
        return {}
    return {
        COUNTS: np.concatenate([slopes.counts for slopes in found]),
        COLUMNS: np.concatenate([slopes.columns for slopes in found]),
        VALUES: np.concatenate([slopes.values for slopes in found]),
    }


def has_slopes(packed: Mapping[str, NDArray]) -> bool:
    """Whether leaves of packed trees hold linear functions."""
    return COUNTS in packed


def wrong_slopes(packed: Mapping[str, NDArray]) -> str | None:
    """What is wrong in the slopes of packed trees from a file."""
    there = [name in packed for name in (COUNTS, COLUMNS, VALUES)]
    if not any(there):
        return None
    if not all(there):
        return "packed_ has a part of the slopes only"
    counts, columns, values = packed[COUNTS], packed[COLUMNS], packed[VALUES]
    if int(counts.sum(dtype=np.int64)) != len(columns) or len(columns) != len(values):
        return "packed_ has not the slopes that its leaves count"
    if np.any((counts > 0) & (packed["feature"] >= 0)):
        return "packed_ has slopes in a split"
    if np.any(packed["category_counts"][columns] > 0):
        return "packed_ has slopes of categories"
    return "packed_ has a range that ends before it begins" if np.any(values[:, LEAST] > values[:, LARGEST]) else None


def slope_ends(packed: Mapping[str, NDArray]) -> NDArray[np.int64]:
    """Where the slopes of each node begin, and at last where they end."""
    return np.concatenate([[0], np.cumsum(packed[COUNTS], dtype=np.int64)])


@plain_loop
def add_slopes(X, leaves, first, last, ends, columns, values, out):
    """Add what slopes say of rows to the outputs; ``leaves`` holds the leaf of each row in each tree."""
    for row in range(len(X)):
        for tree in range(first, last):
            begin, end = ends[leaves[row, tree]], ends[leaves[row, tree] + 1]
            if begin < end:
                out[row, tree % out.shape[1]] += line_at(X, row, columns[begin:end], values[begin:end])
