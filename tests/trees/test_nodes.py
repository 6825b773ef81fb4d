"""Flat nodes: the walk, joining, cutting, and the compact form that predicts the same to the last bit."""

import numpy as np
import pytest

import empirisk as er
from empirisk.trees.table_columns import read_new

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
    return er.TreeRegressor(categorical_features=[3], max_leaf_nodes=100).fit(X, y, weights).nodes_


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
def test_packed_trees_unpack_and_come_apart_with_the_same_bits(table, rng, several):
    y = np.nan_to_num(table)[:, 0] + 0.1 * rng.normal(size=len(table))
    forest = er.ForestClassifier(3, categorical_features=[3]) if several else er.ForestRegressor(3)
    forest.fit(table, np.digitize(y, [-0.5, 0.5]) if several else y)
    nodes, codes = forest.nodes_, read_new(forest, table)
    assert (nodes.category_start >= 0).any() == several
    for number, (_, answers) in enumerate(forest._each_answer(table)):
        one = nodes.tree(number)
        assert np.array_equal(one.predict(codes), answers)
        assert one.predict_leaf(codes)[:, 0].tolist() == [walk(one, row) for row in codes]
    assert number == 2


def test_a_tree_of_one_output_takes_at_most_16_bytes_a_node(rng):
    forest = er.ForestRegressor(1).fit(rng.normal(size=(3000, 10)), rng.normal(size=3000))
    assert sum(array.nbytes for array in forest.packed_.values()) / len(forest.nodes_) <= 16


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
