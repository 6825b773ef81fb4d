"""Comparisons: the test by hand, its error rate in simulation, and what it says."""

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression

import empirisk as er
from empirisk.evaluation.compare import corrected_p, holm, judge_gaps

pytestmark = pytest.mark.row("V2")


def test_the_corrected_test_by_hand():
    gaps = np.array([0.1, 0.2, 0.0, 0.15, 0.05])
    statistic = gaps.mean() / np.sqrt((1 / 5 + 1 / 4) * gaps.var(ddof=1))
    assert corrected_p(gaps, 1 / 4) == pytest.approx(2 * student.sf(statistic, 4))
    assert corrected_p(np.zeros(5), 0.25) == 1
    assert corrected_p(np.full(5, 0.3), 0.25) == 0
    np.testing.assert_allclose(holm([0.01, 0.02, 0.03, 0.5]), [0.04, 0.06, 0.06, 0.5])


def test_real_differences_are_told_from_luck():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 3))
    y = X[:, 0] ** 2 + 0.1 * random.normal(size=150)
    machines = {
        "bag": er.BaggingRegressor(er.TreeRegressor(max_depth=1), 5, random_state=1),
        "other bag": er.BaggingRegressor(er.TreeRegressor(max_depth=1), 5, random_state=2),
        "square": er.Ridge(features=er.maps.Polynomial(2)),
    }
    found = er.compare(machines, X, y)
    assert found.names[0] == "square"
    assert found.ranks["square"] == 1
    real = {frozenset((one.better, one.worse)): one.real for one in found.differences}
    assert real == {
        frozenset(("square", "bag")): True,
        frozenset(("square", "other bag")): True,
        frozenset(("bag", "other bag")): False,
    }
    assert "could be luck" in str(found)
    assert ": real" in repr(found)
    folds = [[fold.test.tolist() for fold in result.folds] for result in found.results.values()]
    assert folds[0] == folds[1] == folds[2]


def test_errors_are_compared_the_right_way_round():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    machines = {"bad": er.Ridge(C=1e-9), "good": er.Ridge()}
    assert er.compare(machines, X, X[:, 0], scoring="rmse").names == ["good", "bad"]


def test_equal_machines_are_rarely_found_to_differ():
    """Two machines that each see another column of noise: neither is better."""

    class First(LinearRegression):
        column = 0

        def fit(self, X, y, sample_weight=None):
            return super().fit(X[:, [self.column]], y, sample_weight)

        def predict(self, X):
            return super().predict(X[:, [self.column]])

    class Second(First):
        column = 1

    random, found = np.random.default_rng(5), 0
    for _ in range(25):
        X = random.normal(size=(60, 2))
        y = X[:, 0] + X[:, 1] + random.normal(size=60)
        result = er.compare({"one": First(), "two": Second()}, X, y, repeats=2, scoring="mse")
        found += result.differences[0].real
    assert found <= 4


def test_bad_comparisons_are_refused():
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    with pytest.raises(er.errors.EmpiriskError, match="at least two machines"):
        er.compare({"one": er.Ridge()}, X, y)
    with pytest.raises(er.errors.EmpiriskError, match="'b' solves another task"):
        er.compare({"a": er.Ridge(), "b": er.SVM()}, X, y > 20)
    with pytest.raises(er.errors.EmpiriskError, match="cannot compare machines"):
        er.compare({"a": er.Ridge(), "b": er.Ridge()}, X, y, cv="holdout")


def test_the_smallest_p_pays_for_all_and_the_largest_for_itself():
    """Three gaps, each real on its own: Holm keeps those that a division of the level by three would lose."""
    random = np.random.default_rng(0)
    noise = random.normal(size=15)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    gaps = [size + 0.1 * noise for size in (0.2, -0.16, 0.15)]
    found = judge_gaps(gaps, 0.25, 0.95)
    p = np.array([raw for raw, _, _ in found])
    assert np.all(p < 0.05)
    assert p.max() > 0.05 / 3
    assert [real for _, _, real in found] == [True, True, True]
    np.testing.assert_allclose([fixed for _, fixed, _ in found], holm(p))
    assert judge_gaps([np.array([0.3])], 0.25, 0.95) == [(1.0, 1.0, False)]
