"""Extremely randomised trees: one cut drawn for each node and column."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

import empirisk as er
from empirisk.trees.binned import together

pytestmark = [pytest.mark.row("T6"), pytest.mark.row("T8")]

ONE = {"n_estimators": 1, "max_leaf_nodes": 2, "splitter": "random"}


@pytest.mark.parametrize("target", ["numbers", "two", "three", "several", "boosted"])
def test_cuts_are_drawn_between_the_values_of_a_node(target):
    """The first cut of many trees of one column lies about evenly over its bins, wherever the target changes."""
    X = np.arange(101.0)[:, None]
    step = (X[:, 0] > 70).astype(int)
    y = {"three": step + (X[:, 0] > 85), "several": np.column_stack([step, X[:, 0]]).astype(float)}.get(target, step)
    kind = er.ForestClassifier if target in ("two", "three") else er.ForestRegressor
    options = {"bootstrap": False}
    if target == "boosted":
        kind, options = er.BoostingRegressor, {"min_samples_leaf": 1}
    y = y.astype(int if kind is er.ForestClassifier else float)
    machines = [kind(**ONE, **options, random_state=seed).fit(X, y) for seed in range(200)]
    cuts = np.array([machine.nodes_.threshold[0] for machine in machines])
    assert cuts.min() < 10
    assert cuts.max() > 90
    assert np.std(cuts) == pytest.approx(100 / np.sqrt(12), rel=0.15)
    best = kind(**ONE | {"splitter": "best"}, **options, random_state=0).fit(X, y)
    assert best.nodes_.threshold[0] > 49


def test_forests_of_random_cuts_are_those_of_scikit_learn():
    X, y = make_friedman1(1200, noise=1.0, random_state=0)
    ours = er.ForestRegressor(100, splitter="random", max_features=None, bootstrap=False, random_state=0)
    theirs = ExtraTreesRegressor(100, random_state=0).fit(X[:600], y[:600])
    assert ours.fit(X[:600], y[:600]).score(X[600:], y[600:]) > theirs.score(X[600:], y[600:]) - 0.02
    X, y = make_classification(1200, 10, n_informative=6, n_classes=3, random_state=0)
    ours = er.ForestClassifier(100, splitter="random", bootstrap=False, random_state=0)
    theirs = ExtraTreesClassifier(100, random_state=0).fit(X[:600], y[:600])
    assert ours.fit(X[:600], y[:600]).score(X[600:], y[600:]) > theirs.score(X[600:], y[600:]) - 0.03


def test_boosting_with_random_cuts_is_the_same_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(together, "SHARE", 1 << 12)
    X, y = make_friedman1(20_000, noise=1.0, random_state=0)
    X[::7, 0] = np.nan
    found = []
    for threads in (1, 2, 5):
        with er.config(threads=threads):
            machine = er.BoostingRegressor(n_estimators=5, splitter="random", random_state=0).fit(X, y)
            found.append(machine.predict(X))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert not np.array_equal(found[0], er.BoostingRegressor(n_estimators=5).fit(X, y).predict(X))


@pytest.mark.parametrize("machine", [er.ForestClassifier(), er.BoostingClassifier()], ids=lambda it: type(it).__name__)
def test_another_splitter_is_refused(machine):
    with pytest.raises(ValueError, match="splitter='worst' is not known"):
        machine.set_params(splitter="worst").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("target", ["classes", "labels", "numbers"])
def test_the_same_seed_gives_the_same_cuts_of_several_outputs(target):
    """Nodes below the first one were known by what happened to stand in memory."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    X[random.random(X.shape) < 0.1] = np.nan
    y = random.integers(0, 6, 60)
    y = {"classes": y, "labels": np.column_stack([y % 2, y % 3]), "numbers": random.normal(size=(60, 2))}[target]
    cls = er.ForestRegressor if target == "numbers" else er.ForestClassifier
    for seed in range(10):
        machine = cls(3, splitter="random", random_state=seed)
        one = machine.fit(X, y).predict(X)
        del [random.integers(1 << 62, size=20_000) for _ in range(6)][:]  # other numbers where nodes will be
        np.testing.assert_array_equal(machine.fit(X, y).predict(X), one)
