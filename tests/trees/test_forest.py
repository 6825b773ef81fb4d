"""Random forests: exact trees in the limit, honest out-of-bag judgement, importances fair to noise."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification, make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.settings import config

pytestmark = pytest.mark.row("T6")


def one_tree(kind, **options):
    """A forest of one tree that sees all rows and columns."""
    return kind(1, bootstrap=False, max_features=None, random_state=0, **options)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [{"max_depth": 3}, {"max_leaf_nodes": 6}, {"max_depth": 4, "min_samples_leaf": 7}])
def test_one_regression_tree_is_the_exact_one(seed, limit):
    X, y = make_friedman1(250, noise=1.0, random_state=seed)
    X[::5, 1] = np.nan
    tree = er.TreeRegressor(**limit).fit(X, y)
    np.testing.assert_allclose(one_tree(er.ForestRegressor, **limit).fit(X, y).predict(X), tree.predict(X), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize(
    "limit", [{"max_depth": 3}, {"max_leaf_nodes": 7}, {"max_depth": 3, "min_impurity_decrease": 0.02}]
)
def test_one_class_tree_is_the_exact_one(classes, criterion, limit):
    X, y = make_classification(240, 6, n_informative=5, n_redundant=0, n_classes=classes, flip_y=0.2, random_state=1)
    X[::4, 0] = np.nan
    tree = er.TreeClassifier(criterion, **limit).fit(X, y)
    forest = one_tree(er.ForestClassifier, criterion=criterion, **limit).fit(X, y)
    np.testing.assert_allclose(forest.predict_proba(X), tree.predict_proba(X), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", [er.ForestClassifier, er.ForestRegressor])
def test_weights_of_any_size_weigh(kind):
    X, y = make_classification(300, 5, n_redundant=0, flip_y=0.2, random_state=2)
    weights = np.random.default_rng(0).random(300) + 0.5
    exact = er.TreeClassifier if kind is er.ForestClassifier else er.TreeRegressor
    tree = exact(max_depth=3).fit(X, y, sample_weight=weights)
    for scale in (1.0, 1e-6, 1e7):
        forest = one_tree(kind, max_depth=3, min_samples_leaf=0).fit(X, y, sample_weight=scale * weights)
        if kind is er.ForestClassifier:
            np.testing.assert_allclose(forest.predict_proba(X), tree.predict_proba(X), rtol=1e-5)
        else:
            np.testing.assert_allclose(forest.predict(X), tree.predict(X), rtol=1e-5)


def test_numbers_with_outliers_are_divided_as_finely_as_others():
    random = np.random.default_rng(3)
    X = random.normal(size=(2000, 2))
    y = np.sign(X[:, 0])
    y[7] = 1e7
    forest = er.ForestRegressor(30, random_state=0).fit(X, y)
    far = np.abs(X[:, 0] - X[7, 0]) > 0.5
    assert np.abs(forest.predict(X)[far] - np.sign(X[far, 0])).mean() < 0.02


def test_the_out_of_bag_error_is_that_of_new_rows():
    X, y = make_classification(3000, 10, n_informative=5, n_classes=3, flip_y=0.1, random_state=4)
    forest = er.ForestClassifier(60, random_state=0).fit(X[:1500], y[:1500])
    assert abs(forest.oob_error_ - (1 - forest.score(X[1500:], y[1500:]))) < 0.03
    assert forest.oob_error_ == pytest.approx(1 - forest.oob_score_)
    judged = forest.oob_decision_function_
    assert (judged.argmax(axis=1) != y[:1500]).mean() == pytest.approx(forest.oob_error_)
    assert forest.score(X[:1500], y[:1500]) > 0.97  # what the training rows would say
    X, y = make_friedman1(1500, noise=1.0, random_state=0)
    forest = er.ForestRegressor(60, random_state=0).fit(X[:750], y[:750])
    assert abs(forest.oob_score_ - forest.score(X[750:], y[750:])) < 0.05
    assert forest.oob_error_ == pytest.approx(np.mean((forest.oob_prediction_ - y[:750]) ** 2))


def test_rows_that_every_tree_saw_have_no_judgement():
    X, y = make_classification(40, 4, random_state=0)
    forest = er.ForestClassifier(1, random_state=0).fit(X, y)
    missing = np.isnan(forest.oob_decision_function_[:, 0])
    assert 0 < missing.sum() < 40
    forest.set_params(bootstrap=False).fit(X, y)
    assert np.isnan([forest.oob_score_, forest.oob_error_]).all()
    assert np.isnan(forest.oob_decision_function_).all()
    assert np.isnan(er.ForestRegressor(3, bootstrap=False).fit(X, y).oob_score_)


@pytest.mark.parametrize("weights", [None, "whole"])
def test_importances_are_fair_to_noise(weights):
    random = np.random.default_rng(5)
    signal, noise = random.integers(0, 2, (1500, 2)), random.normal(size=(1500, 6))  # noise has many values to split at
    y = (signal[:, 0] ^ (random.random(1500) < 0.1)) + 2 * signal[:, 1]
    X = np.column_stack([signal, noise])
    times = random.integers(1, 3, 1500) if weights else None
    forest = er.ForestClassifier(60, random_state=0).fit(X, y, sample_weight=times)
    importances = forest.oob_importances_
    assert (importances[:2] > 0.2).all()
    assert (np.abs(importances[2:]) < 0.02).all()
    with config(threads=1):
        again = er.ForestClassifier(60, random_state=0).fit(X, y, sample_weight=times)
        assert np.array_equal(again.oob_importances_, importances)
    forest = er.ForestRegressor(60, random_state=0).fit(X, y)
    assert (forest.oob_importances_[:2] > 0.15).all()
    assert (np.abs(forest.oob_importances_[2:]) < 0.03).all()


def test_importances_say_when_they_cannot_be():
    X, y = make_classification(60, 4, random_state=0)
    forest = er.ForestClassifier(3, bootstrap=False).fit(X, y)
    assert not hasattr(forest, "oob_importances_")
    with pytest.raises(AttributeError, match=r"importances\(X, y\)"):
        _ = forest.oob_importances_
    assert forest.importances(X, y, n_repeats=2)["importance"].len() == 4


def test_forests_are_as_good_as_those_of_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    ours = er.ForestClassifier(200, random_state=0).fit(X, y).oob_score_
    assert ours > RandomForestClassifier(200, oob_score=True, random_state=0).fit(X, y).oob_score_ - 0.01
    X, y = load_diabetes(return_X_y=True)
    ours = er.ForestRegressor(200, random_state=0).fit(X, y).oob_score_
    theirs = RandomForestRegressor(200, max_features=1 / 3, oob_score=True, random_state=0).fit(X, y).oob_score_
    assert ours > theirs - 0.02


def test_limits_hold():
    X, y = make_classification(500, 6, flip_y=0.3, random_state=0)
    nodes = er.ForestClassifier(5, max_leaf_nodes=8, random_state=0).fit(X, y).nodes_
    assert all(nodes.tree(k).is_leaf.sum() == 8 for k in range(5))
    nodes = er.ForestClassifier(5, max_depth=2, random_state=0).fit(X, y).nodes_
    assert all(len(nodes.tree(k)) <= 7 for k in range(5))
    forest = one_tree(er.ForestClassifier, min_samples_leaf=40).fit(X, y)
    assert np.bincount(forest.nodes_.predict_leaf(X)[:, 0])[forest.nodes_.is_leaf].min() >= 40


def test_few_columns_make_trees_differ():
    X, y = make_classification(400, 9, n_informative=3, random_state=0)
    roots = er.ForestClassifier(40, max_features=1, random_state=0).fit(X, y).nodes_
    assert len(np.unique(roots.feature[roots.roots])) == 9
    constant = np.column_stack([np.ones((400, 20)), X])  # constant columns do not count as looked at
    forest = er.ForestClassifier(10, max_features=1, random_state=0).fit(constant, y)
    assert (forest.nodes_.feature[forest.nodes_.roots] >= 20).all()


@pytest.mark.parametrize(
    ("forest", "message"),
    [
        (er.ForestClassifier(criterion="error"), "criterion='error' is not known"),
        (er.ForestClassifier(bootstrap="maybe"), "bootstrap='maybe' must be"),
        (er.ForestRegressor(max_samples=0.0), "max_samples=0.0 must be"),
        (er.ForestRegressor(max_samples=0.5, bootstrap=False), "max_samples=0.5 needs bootstrap=True"),
    ],
)
def test_parameters_without_meaning_are_refused(forest, message):
    X, y = make_classification(60, 4, random_state=0)
    with pytest.raises(EmpiriskError, match=message):
        forest.fit(X, y)
