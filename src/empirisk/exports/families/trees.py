"""Trees, forests and boosting as graphs: ``TreeEnsemble`` of ai.onnx.ml 5, in double precision."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import Unsuitable
from empirisk.exports.registry import Answers, told_by, write_answers
from empirisk.exports.tensor import Symbolic, apply, constant
from empirisk.trees.boosting import BoostingClassifier, BoostingRegressor
from empirisk.trees.forest import ForestClassifier, ForestRegressor
from empirisk.trees.linear_leaves import has_slopes
from empirisk.trees.nodes import WORD, Nodes
from empirisk.trees.table_columns import Columns
from empirisk.trees.tree import TreeClassifier, TreeRegressor

#: What stands for a missing category in trees with sets: no category has it.
MISSING_CODE = -2.0


def coded(columns: Columns, x: Any) -> Symbolic:
    """The table as trees see it: numbers, and codes of categories; NaN for those that were not met."""
    if all(found is None for found in columns.categories):
        return x[:, :]
    parts = [
        x[:, [place]] if found is None else _codes(x[:, [place]], found, name)
        for place, (found, name) in enumerate(zip(columns.categories, columns.names, strict=True))
    ]
    return np.concatenate(parts, axis=1)


def _codes(column: Symbolic, categories: NDArray, name: str) -> Symbolic:
    """The place of each value among the categories."""
    words = categories.dtype.kind in "OU"
    if words and "" in categories:
        raise Unsuitable(
            f"Column {name!r} has the empty text as a category, which is a missing value in exported files; write "
            "another word in its place before the fit."
        )
    keys = categories.astype(str) if words else categories.astype(np.float64)
    return apply("LabelEncoder", column, keys=keys, values=np.arange(len(keys), dtype=np.float64), default=np.nan)


def leaf_sums(nodes: Nodes, x: Symbolic, target: NDArray, weight: NDArray, n_targets: int) -> Symbolic:
    """The sum over the trees of a number of the leaf that each row reaches, added to the target of the leaf.

    ``target`` and ``weight`` hold an entry for each node, of which those of leaves count.
    """
    leaf = np.asarray(nodes.is_leaf)
    leaves, others = np.cumsum(leaf.astype(int)), np.cumsum((~leaf).astype(int))
    number = np.where(leaf, -leaves, others - 1)  # splits from 0, leaves from -1 downwards
    splits = np.flatnonzero(~leaf)
    by_set = nodes.category_start[splits] >= 0
    sets = {int(number[node]): _members(nodes, int(node)) for node in splits[by_set]}
    return apply(
        "TreeEnsemble",
        _without_missing_codes(x, nodes, np.unique(nodes.feature[splits[by_set]])),
        n_targets=n_targets,
        roots=number[nodes.roots],
        feature=nodes.feature[splits].astype(np.int64),
        split=np.where(np.isnan(nodes.threshold[splits]), 0.0, nodes.threshold[splits]),
        true=number[nodes.left[splits]],
        false=number[nodes.left[splits] + 1],
        missing_true=nodes.missing_left[splits] & ~by_set,
        members=sets,
        target=np.asarray(target)[leaf].astype(np.int64),
        weight=np.asarray(weight, dtype=np.float64)[leaf],
    )


def _without_missing_codes(x: Symbolic, nodes: Nodes, features: NDArray) -> Symbolic:
    """The table with a code for missing categories.

    ONNX Runtime takes two sets that lead to equal leaves for one, also where missing values part between them.
    """
    if not len(features):
        return x
    columns = [x[:, [place]] for place in range(x.shape[1])]
    for place in features:
        columns[place] = np.where(np.isnan(columns[place]), MISSING_CODE, columns[place])
    return np.concatenate(columns, axis=1)


def _members(nodes: Nodes, node: int) -> list[float]:
    """The codes of the categories that go left, and that of missing ones where they do."""
    count, start = int(nodes.category_counts[nodes.feature[node]]), nodes.category_start[node]
    codes = np.arange(count)
    words = nodes.category_bits[start + codes // WORD]
    inside = (words >> (codes % WORD).astype(np.uint64)) & np.uint64(1)
    return codes[inside == 1].astype(np.float64).tolist() + [MISSING_CODE] * bool(nodes.missing_left[node])


def tree_sums(nodes: Nodes, x: Symbolic) -> Symbolic:
    """The sum of the values of all outputs over the trees, rows x outputs."""
    outputs = nodes.value.shape[1]
    if outputs == 1:
        return leaf_sums(nodes, x, np.zeros(len(nodes)), nodes.value[:, 0], 1)
    # A leaf adds to one target: each tree tells the number of its leaf, whose values stand in a table.
    tree = np.searchsorted(nodes.roots, np.arange(len(nodes)), side="right") - 1
    rows = np.cumsum(nodes.is_leaf.astype(int)) - 1
    places = leaf_sums(nodes, x, tree, rows, nodes.n_trees).astype(np.int64)
    return constant(nodes.value[nodes.is_leaf])[places].sum(axis=1)


@write_answers.register
def _(machine: TreeClassifier, x: Any) -> Answers:
    return told_by(machine, "predict predict_proba", _scores=tree_sums(machine.nodes_, coded(machine.columns_, x)))


@write_answers.register
def _(machine: TreeRegressor, x: Any) -> Answers:
    found = tree_sums(machine.nodes_, coded(machine.columns_, x))
    return {"predict": found if machine._several else found[:, 0]}


@write_answers.register(ForestClassifier)
@write_answers.register(ForestRegressor)
def _(machine: Any, x: Any) -> Answers:
    means = tree_sums(machine.nodes_, coded(machine.columns_, x)) / float(machine.n_estimators_)
    return told_by(machine, "predict predict_proba", _mean=means)


@write_answers.register(BoostingClassifier)
@write_answers.register(BoostingRegressor)
def _(machine: Any, x: Any) -> Answers:
    if has_slopes(machine.packed_):
        raise Unsuitable("Linear functions in leaves have no form in exported files; fit with leaves='constant'.")
    nodes, outputs = machine.nodes_, len(machine.baseline_)
    tree = np.searchsorted(nodes.roots, np.arange(len(nodes)), side="right") - 1
    x = coded(machine.columns_, x)
    grown = nodes.n_trees and leaf_sums(nodes, x, tree % outputs, nodes.value[:, 0], outputs)
    scores = (grown or x[:, [0]] * 0.0) + machine.baseline_
    return told_by(machine, "predict predict_proba decision_function", _scores=scores)
