"""Combinations of columns: found where they matter, by the values that they were defined to have."""

import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.selection import CombinedColumns
from empirisk.selection.centres import centres
from empirisk.selection.combined import DISTANCE

pytestmark = pytest.mark.row("F8")
RANDOM = np.random.default_rng(4)
X = RANDOM.uniform(1, 9, size=(600, 5))
X[:, 4] = RANDOM.integers(0, 6, 600)
LEVELS = RANDOM.normal(size=6) * 20
TARGETS = {
    "x0 + x1": X[:, 0] / X[:, 0].std() + X[:, 1] / X[:, 1].std(),
    "x0 - x1": X[:, 0] / X[:, 0].std() - X[:, 1] / X[:, 1].std(),
    "x2 x3": (X[:, 2] - 5) * (X[:, 3] - 5),
    "x0 / x2": np.log((X[:, 0] - 0.99) / (X[:, 2] - 0.98)),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_one_that_makes_the_target_is_found(name):
    step = CombinedColumns(1).fit(X, TARGETS[name])
    found = step.transform(X)[:, 5]
    assert abs(spearmanr(found, TARGETS[name]).statistic) > 0.98  # trees know no more than the order
    assert np.array_equal(step.transform(X)[:, :5], X)


def test_values_are_those_of_the_formulas():
    y = TARGETS["x0 + x1"] + TARGETS["x2 x3"] + np.log(X[:, 0] / X[:, 2]) + X[:, 3] * LEVELS[X[:, 4].astype(int)] / 9
    weights = RANDOM.integers(1, 3, 600)
    step = CombinedColumns(500, categorical_features=[4]).fit(X, y, weights)
    repeated = np.repeat(X, weights, axis=0)
    middle, size, least = repeated.mean(axis=0), repeated.std(axis=0), X.min(axis=0)
    p, u = (X - middle) / size, (X - least) / size
    seen = set()
    for place, (operation, a, b) in enumerate(zip(step.operations_, step.left_, step.right_, strict=True)):
        means = np.array([repeated[repeated[:, 4] == code, a].mean() for code in range(6)])
        wanted = [
            p[:, a] + p[:, b], p[:, a] - p[:, b], p[:, a] * p[:, b], u[:, a] * u[:, b], u[:, a] / (u[:, b] + 0.01),
            (X[:, a] - means[X[:, 4].astype(int)]) / size[a],
        ][operation]  # fmt: skip
        assert step.transform(X)[:, 5 + place] == pytest.approx(wanted, abs=1e-9)
        seen.add(int(operation))
    assert seen == set(range(6))
    # A code that is missing or was not met has the mean of all rows; a missing number makes a missing one.
    odd = X[:3].copy()
    odd[:, 4] = [np.nan, 77, -1]
    group = int(np.flatnonzero(step.operations_ == 5)[0])
    left = int(step.left_[group])
    assert step.transform(odd)[:, 5 + group] == pytest.approx((odd[:, left] - middle[left]) / size[left])
    odd[:, :4] = np.nan
    assert np.isnan(step.transform(odd)[:, 5:]).all()


def test_boosting_is_better_with_a_difference_and_noise_changes_little():
    plain, combined = (
        make_pipeline(*steps, er.BoostingRegressor(random_state=0)) for steps in ([], [CombinedColumns(random_state=0)])
    )
    y = 3 * np.sin(X[:, 1] - X[:, 3]) + X[:, 0]
    errors = [np.mean((one.fit(X[:400], y[:400]).predict(X[400:]) - y[400:]) ** 2) for one in (plain, combined)]
    assert errors[1] < 0.5 * errors[0]
    # Groups of one row each cannot tell a random target: means are those of columns.
    codes = np.column_stack([X[:, :4], np.arange(600)])
    noise = RANDOM.normal(size=600)
    step = CombinedColumns(categorical_features=[4], random_state=0)
    honest = make_pipeline(step, er.BoostingRegressor(n_estimators=30, categorical_features=[4], random_state=0))
    assert honest.fit(codes[:400], noise[:400]).score(codes[400:], noise[400:]) < 0.05


def test_weights_are_repetition_and_the_order_does_not_matter():
    y = TARGETS["x2 x3"] + X[:, 0]
    weights = RANDOM.integers(0, 3, 600)
    step = CombinedColumns(4, n_rows=200, categorical_features=[4])
    names = step.fit(X, y, weights).get_feature_names_out().tolist()
    values = step.transform(X)
    order = RANDOM.permutation(600)
    for other in ((X[order], y[order], weights[order]), (np.repeat(X, weights, axis=0), np.repeat(y, weights))):
        again = CombinedColumns(4, n_rows=200, categorical_features=[4]).fit(*other)
        assert again.get_feature_names_out().tolist() == names
        assert again.transform(X) == pytest.approx(values)


def test_it_is_saved_and_exported(tmp_path):
    y = X[:, 0] / X[:, 2] + LEVELS[X[:, 4].astype(int)] * X[:, 1]
    steps = (
        CombinedColumns(30, categorical_features=[4], coordinates=[(0, 3)]),
        er.BoostingRegressor(n_estimators=5, categorical_features=[4]),
    )
    machine = make_pipeline(*steps).fit(X, y)
    assert {5, 6} <= set(machine[0].operations_)
    er.save(machine, tmp_path / "it.model")
    assert np.array_equal(er.load(tmp_path / "it.model").predict(X), machine.predict(X))
    er.export(machine, tmp_path / "it.onnx")  # compares answers before it writes


def test_distances_from_places():
    """A circle in the plane is one cut along a distance; weights are repetition, and a missing number makes one."""
    weights = RANDOM.integers(0, 3, 600)
    near = np.hypot(X[:, 0] - 3, X[:, 1] - 7)
    step = CombinedColumns(3, coordinates=[(0, 1)], random_state=0).fit(X, near, weights)
    away = np.flatnonzero(step.operations_ == DISTANCE)
    assert len(away) == 16
    found = step.transform(X)[:, 5:]
    p = (X - np.average(X, axis=0, weights=weights)) / np.repeat(X, weights, axis=0).std(axis=0)
    for place in away:
        wanted = np.hypot(p[:, 0] - step.centres_[place, 0], p[:, 1] - step.centres_[place, 1])
        assert found[:, place] == pytest.approx(wanted, abs=1e-9)
    assert max(abs(spearmanr(found[:, place], near).statistic) for place in away) > 0.9
    assert len(set(step.get_feature_names_out())) == 5 + found.shape[1]
    again = CombinedColumns(3, coordinates=[(0, 1)], random_state=0)
    again.fit(np.repeat(X, weights, axis=0), np.repeat(near, weights))
    assert again.centres_ == pytest.approx(step.centres_)
    odd = X[:2].copy()
    odd[:, 1] = np.nan
    assert np.isnan(step.transform(odd)[:, 5 + away]).all()


def test_centres_are_means_of_parts_of_equal_weight():
    points, weights = RANDOM.normal(size=(400, 2)), np.ones(400)
    found = centres(points, weights)
    assert found.shape == (16, 2)
    assert found.mean(axis=0) == pytest.approx(points.mean(axis=0))  # of 25 points each
    nearest = np.argmin(((points[:, None] - found) ** 2).sum(axis=2), axis=1)
    assert np.bincount(nearest, minlength=16).min() >= 10
    assert centres(np.ones((5, 2)), weights[:5]).tolist() == [[1.0, 1.0]]
    assert centres(points[:0], weights[:0]).shape == (0, 2)


def test_bad_input_is_told():
    y = X[:, 0]
    for step, words in (
        (CombinedColumns(0), "n_combinations=0"),
        (CombinedColumns(n_rows=0), "n_rows=0"),
        (CombinedColumns(coordinates=[(0, 9)]), "coordinates="),
        (CombinedColumns(categorical_features=[9]), "categorical_features names 9"),
        (CombinedColumns(categorical_features=[0]), "Column 0 of X is in categorical_features"),
    ):
        with pytest.raises(EmpiriskError, match=words):
            step.fit(X, y)


def test_huge_and_constant_columns_overflow_to_missing_values():
    odd = np.column_stack([X[:, 0] * 1e300, X[:, 1] * 1e300, np.full(600, 7.0), np.full(600, np.nan), X[:, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = CombinedColumns().fit(odd, X[:, 0] * X[:, 1])
        assert not np.isinf(step.transform(odd)).any()
        assert np.isfinite(step.transform(odd)[:, [0, 1, 2, 4]]).all()
        assert not np.isinf(step.transform(-odd)).any()
