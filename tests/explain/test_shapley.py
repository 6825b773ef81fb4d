"""Shapley values of trees against the definition: every subset of the columns, every path weighed by its rows."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest

import empirisk as er
from empirisk.explain.shapley import node_weights, shapley_values
from empirisk.trees.nodes import Nodes


def expected(nodes, weights, root, x, known):
    """The mean of a tree over rows whose other columns are drawn as the training rows were."""
    feature = nodes.feature[root]
    if feature < 0:
        return nodes.value[root]
    left, right = nodes.left[root], nodes.left[root] + 1
    if feature in known:
        goes_left = nodes.missing_left[root] if np.isnan(x[feature]) else x[feature] <= nodes.threshold[root]
        if nodes.category_start[root] >= 0 and not np.isnan(x[feature]):
            code = int(x[feature])
            goes_left = bool((int(nodes.category_bits[nodes.category_start[root] + code // 64]) >> code % 64) & 1)
        return expected(nodes, weights, left if goes_left else right, x, known)
    share = weights[left] / weights[root]
    others = (expected(nodes, weights, child, x, known) for child in (left, right))
    return sum(part * mean for part, mean in zip((share, 1 - share), others, strict=True))


def by_definition(nodes, weights, x, outputs):
    d = len(x)
    found = np.zeros((d, outputs))
    for number, root in enumerate(nodes.roots):
        for k in range(d):
            others = [j for j in range(d) if j != k]
            for size in range(d):
                for known in combinations(others, size):
                    with_it = expected(nodes, weights, root, x, {*known, k})
                    gain = with_it - expected(nodes, weights, root, x, set(known))
                    share = factorial(size) * factorial(d - size - 1) / factorial(d)
                    place = slice(None) if nodes.value.shape[1] > 1 else number % outputs
                    found[k, place] += share * (gain if nodes.value.shape[1] > 1 else gain[0])
    return found


def table(rows=150, columns=4):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, columns))
    X[random.random(X.shape) < 0.05] = np.nan
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
    return X, score


@pytest.mark.parametrize("kind", ["tree", "forest", "boosting", "regressor"])
def test_every_subset(kind):
    X, score = table()
    y = np.digitize(score, [-0.5, 0.5])
    machine = {
        "tree": er.TreeClassifier(max_leaf_nodes=9),
        "forest": er.ForestClassifier(3, random_state=0),
        "boosting": er.BoostingClassifier(n_estimators=2, max_leaf_nodes=6),
        "regressor": er.TreeRegressor(max_leaf_nodes=9),
    }[kind].fit(X, score if kind == "regressor" else y)
    nodes: Nodes = machine.nodes_
    outputs = 3 if kind == "boosting" else nodes.value.shape[1]
    weights = node_weights(nodes, X)
    found = shapley_values(nodes, weights, X[:6], outputs)
    for row, values in zip(X[:6], found, strict=True):
        assert values == pytest.approx(by_definition(nodes, weights, row, outputs), abs=1e-12)


def test_categories():
    X, score = table(columns=3)
    X[:, 2] = np.arange(len(X)) % 5
    machine = er.TreeRegressor(max_leaf_nodes=8, categorical_features=[2]).fit(X, score + 5 * (X[:, 2] % 2))
    nodes = machine.nodes_
    assert (nodes.category_start >= 0).any()
    weights = node_weights(nodes, X)
    for row, values in zip(X[:6], shapley_values(nodes, weights, X[:6]), strict=True):
        assert values == pytest.approx(by_definition(nodes, weights, row, 1), abs=1e-12)


def test_they_add_up_to_the_prediction():
    X, score = table(400)
    machine = er.BoostingRegressor(n_estimators=30, max_leaf_nodes=8, random_state=0).fit(X, score)
    values = shapley_values(machine.nodes_, node_weights(machine.nodes_, X), X)[:, :, 0]
    predicted = machine.predict(X)
    assert values.sum(axis=1) == pytest.approx(predicted - predicted.mean(), abs=1e-9)


def test_no_row_may_come_through_a_node():
    nodes = er.TreeRegressor(max_leaf_nodes=5).fit(*table()).nodes_
    values = shapley_values(nodes, np.zeros(len(nodes)), table()[0][:3])
    assert np.isfinite(values).all()
