"""Flat nodes: the walk, joining, cutting, and the compact form that predicts the same to the last bit."""

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.trees.nodes import Nodes

pytestmark = pytest.mark.row("T1")


@pytest.fixture
def table(rng):
    X = rng.normal(size=(400, 4))
    X[:, 3] = rng.integers(0, 90, size=400)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def grown(X, rng, several, weights=None):
    seen = np.nan_to_num(X)
    y = seen[:, 0] + np.sin(seen[:, 3]) + 0.1 * rng.normal(size=len(X))
    if several:
        return er.TreeClassifier(categorical_features=[3]).fit(X, np.digitize(y, [-0.5, 0.5]), weights).nodes_
    return er.TreeRegressor(categorical_features=[3], max_leaves=100).fit(X, y, weights).nodes_


def two_trees(table, rng, several):
    return [grown(table, rng, several, rng.integers(0, 3, size=len(table))) for _ in range(2)]


def walk(nodes, row, root=0):
    """One row's way, written as the documentation states it."""
    node = root
    while nodes.feature[node] >= 0:
        x, start = row[nodes.feature[node]], nodes.category_start[node]
        if np.isnan(x) or (start >= 0 and not 0 <= x < nodes.category_counts[nodes.feature[node]]):
            left = nodes.missing_left[node]
        elif start >= 0:
            left = int(nodes.category_bits[start + int(x) // 64]) >> (int(x) % 64) & 1
        else:
            left = x <= nodes.threshold[node]
        node = nodes.left[node] + (0 if left else 1)
    return node


@pytest.mark.parametrize("several", [False, True])
def test_a_row_goes_where_the_arrays_say(table, rng, several):
    nodes = grown(table, rng, several)
    unseen = table.copy()
    unseen[::3, 3] = 400.0  # a code that does not exist counts as missing
    unseen[1::3, 3] = -1.0
    for X in (table, unseen):
        assert nodes.predict_leaf(X)[:, 0].tolist() == [walk(nodes, row) for row in X]
    assert (nodes.category_start >= 0).any()
    assert (nodes.category_bits >= 0).all()


@pytest.mark.parametrize("several", [False, True])
def test_the_compact_form_predicts_the_same_bits(table, rng, several):
    trees = two_trees(table, rng, several)
    forest = Nodes.join(trees)
    back = Nodes.unpack(forest.pack())
    assert np.array_equal(forest.predict_leaf(table), back.predict_leaf(table))
    assert np.array_equal(forest.predict(table), back.predict(table))
    assert np.array_equal(forest.predict(table), (trees[0].predict(table) + trees[1].predict(table)) / 2)


def test_a_tree_of_one_output_takes_less_than_24_bytes_a_node(rng):
    X = rng.normal(size=(3000, 10))
    nodes = er.TreeRegressor().fit(X, rng.normal(size=3000)).nodes_
    assert len(nodes) == 5999
    assert sum(array.nbytes for array in nodes.pack().values()) / len(nodes) <= 16


@pytest.mark.parametrize("several", [False, True])
def test_joined_trees_come_apart_again(table, rng, several):
    trees = two_trees(table, rng, several)
    forest = Nodes.join(trees)
    for number, tree in enumerate(trees):
        one = forest.tree(number)
        assert np.array_equal(one.predict(table), tree.predict(table))
        assert one.left.dtype == np.int32
        assert np.array_equal(one.left, tree.left)


def test_cutting_leaves_a_valid_smaller_tree(table, rng):
    nodes = grown(table, rng, several=False)
    at = np.zeros(len(nodes), dtype=bool)
    at[[3, 4, 10]] = True
    smaller = nodes.cut(at)
    leaves = smaller.predict_leaf(table)[:, 0]
    parents = nodes.parents()
    for row, leaf in zip(table, leaves, strict=True):
        node, way = walk(nodes, row), []
        while node >= 0:
            way.append(node)
            node = parents[node]
        stop = next((node for node in way[::-1] if at[node]), way[0])
        assert np.array_equal(smaller.value[leaf], nodes.value[stop])
    assert (smaller.gain[smaller.is_leaf] == 0).all()
    assert np.array_equal(
        np.sort(np.append(smaller.left[~smaller.is_leaf], smaller.left[~smaller.is_leaf] + 1)),
        np.arange(1, len(smaller)),
    )
    assert len(smaller.category_bits) == 2 * (smaller.category_start >= 0).sum()


def test_trees_on_other_columns_are_not_joined(table, rng):
    one, two = (er.TreeRegressor(categorical_features=c).fit(table, np.arange(400.0)).nodes_ for c in ([3], None))
    with pytest.raises(EmpiriskError, match="same columns"):
        Nodes.join([one, two])
