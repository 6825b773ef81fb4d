"""The pinball and the Huber loss: what they are minimised by, their relatives, and those of scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

import empirisk as er
from empirisk.losses import Absolute, Huber, Quantile, Squared

pytestmark = pytest.mark.row("E11")


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3))
    return X, X @ [1.0, -2.0, 0.0] + random.standard_t(2, size=120) * (1 + np.abs(X[:, 0]))


def test_half_the_absolute_loss_is_the_loss_of_the_median():
    y, f = np.zeros(5), np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    np.testing.assert_array_equal(2 * Quantile(0.5).value(y, f), Absolute().value(y, f))


def test_a_large_delta_is_the_squared_loss_and_a_small_one_the_absolute():
    y, f = np.zeros(5), np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    np.testing.assert_array_equal(Huber(10.0).value(y, f), Squared().value(y, f))
    np.testing.assert_allclose(Huber(1e-9).value(y, f) / 2e-9, Absolute().value(y, f), atol=1e-8)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_a_share_of_the_rows_lies_below(rows, level):
    X, y = rows
    machine = er.Regressor(er.losses.Quantile(level), penalty="none").fit(X, y)
    below, on = np.sum(y < machine.predict(X) - 1e-9), np.sum(np.abs(y - machine.predict(X)) <= 1e-9)
    assert below <= level * len(y) <= below + on
    assert on >= 4  # a corner of the linear programme: as many rows as unknowns


@pytest.mark.parametrize("level", [0.2, 0.7])
def test_the_objective_of_scikit_learn(rows, level):
    X, y = rows
    theirs = QuantileRegressor(quantile=level, alpha=0.05, solver="highs").fit(X, y)
    ours = er.Regressor(Quantile(level), penalty="l1", C=er.scales.from_lambda(0.05, n=len(y)), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


@pytest.mark.parametrize("loss", ["quantile", Quantile(0.8), "huber", Huber(0.2)], ids=repr)
@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(2.0)], ids=repr)
def test_weight_two_is_the_row_twice(rows, loss, features):
    X, y = rows
    X, y = X[:40], y[:40]
    weights = np.arange(40) % 3
    machine = er.Regressor(loss, features, C=0.7, tol=1e-10)
    once = machine.fit(X, y, weights).predict(X)
    twice = machine.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict(X)
    np.testing.assert_allclose(once, twice, atol=1e-4)


def test_outliers_move_the_huber_loss_less_than_the_squared_one(rows):
    X, _ = rows
    y = X[:, 0] + 0.01 * np.random.default_rng(1).normal(size=len(X))
    y[:5] += 1000.0
    robust = er.Regressor(Huber(0.05), penalty="none").fit(X, y)
    np.testing.assert_allclose(robust.coef_, [1.0, 0.0, 0.0], atol=0.02)


def test_leaves_of_boosting_are_quantiles_of_their_residuals(rows):
    X, y = rows
    machine = er.BoostingRegressor(Quantile(0.3), learning_rate=1.0, n_estimators=1, max_leaf_nodes=4).fit(X, y)
    leaves = machine.nodes_.predict_leaf(X)[:, 0]
    for leaf in np.unique(leaves):
        own, value = y[leaves == leaf], machine.predict(X)[leaves == leaf][0]
        assert np.mean(own < value - 1e-9) <= 0.3 <= np.mean(own <= value + 1e-9)


def test_boosting_takes_no_newton_step_where_the_huber_loss_is_straight(rows):
    X, y = rows
    y = 1e6 * y  # every row is an outlier, where the curvature is zero
    machine = er.BoostingRegressor("huber", n_estimators=20).fit(X, y)
    assert np.abs(machine.predict(X)).max() <= np.abs(y).max()


@pytest.mark.parametrize(
    ("y", "weights", "best"),
    [([1e45], [1.0], 1e45), ([1e45, 2e45, 3e45], [1, 1, 1], 2e45), ([1e45, 2e45], [3, 1], 1e45), ([0, 4], [1, 1], 2)],
)
def test_the_best_constant_of_targets_beside_which_delta_is_lost(y, weights, best):
    assert Huber().best_constant(np.array(y, dtype=float), np.array(weights, dtype=float)) == best
