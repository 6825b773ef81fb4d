"""Permutation importance: scikit-learn's numbers, for every kind of table, and for groups of columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.inspection import permutation_importance
from sklearn.metrics import check_scoring

import empirisk as er
from empirisk.explain import permutation
from empirisk.explain.permutation import falls, falls_in_time, shuffled


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    X = random.integers(0, 4, size=(60, 5)).astype(float)
    y = X[:, 0] * X[:, 1] + 2 * X[:, 3]
    return er.TreeRegressor(max_depth=4).fit(X, y), X, y


def single(X):
    return [np.array([column]) for column in range(X.shape[1])]


@pytest.mark.parametrize("weights", [None, np.arange(60.0)])
def test_single_columns_are_those_of_scikit_learn(fitted, weights, monkeypatch):
    machine, X, y = fitted
    expected = permutation_importance(machine, X, y, n_repeats=3, random_state=7, sample_weight=weights).importances
    found = falls(machine, X, y, single(X), check_scoring(machine), 3, 7, weights)
    np.testing.assert_array_equal(found, expected)
    monkeypatch.setattr(permutation, "BLOCK", 2)
    np.testing.assert_array_equal(falls(machine, X, y, single(X), check_scoring(machine), 3, 7, weights), found)


def test_a_group_of_columns_is_shuffled_together(fitted):
    machine, X, y = fitted
    seen = []

    def score(machine, table, y):
        seen.append(table)
        return 0.0

    falls(machine, X, y, [np.array([4, 0]), np.array([2])], score, 2, 0)
    whole = {tuple(row) for row in X[:, [0, 4]]}
    for table in seen[1:3]:
        assert not np.array_equal(table[:, [0, 4]], X[:, [0, 4]])
        assert {tuple(row) for row in table[:, [0, 4]]} == whole
        np.testing.assert_array_equal(table[:, 1:4], X[:, 1:4])
    for table in seen[3:]:
        assert not np.array_equal(table[:, 2], X[:, 2])
        np.testing.assert_array_equal(np.delete(table, 2, axis=1), np.delete(X, 2, axis=1))


def test_every_kind_of_table_is_shuffled_alike(fitted):
    _, X, _ = fitted
    order, columns = np.random.default_rng(1).permutation(60), np.array([3, 0])
    expected = shuffled(X, columns, order)
    names = list("abcde")
    np.testing.assert_array_equal(shuffled(csr_array(X), columns, order).toarray(), expected)
    np.testing.assert_array_equal(shuffled(pl.DataFrame(X, names), columns, order).to_numpy(), expected)
    np.testing.assert_array_equal(shuffled(pd.DataFrame(X, columns=names), columns, order).to_numpy(), expected)


def test_the_groups_that_matter_are_taken_apart(fitted, monkeypatch):
    machine, X, y = fitted
    monkeypatch.setattr(permutation, "FIRST_GROUPS", 2)
    score = check_scoring(machine)
    found = {column: mean for column, mean, _ in falls_in_time(machine, X, y, single(X), score, 3, 0, 60.0)}
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert min(found[0], found[1], found[3]) > max(found[2], found[4])
    assert falls_in_time(machine, X, y, single(X), score, 3, 0, -1.0) == []
