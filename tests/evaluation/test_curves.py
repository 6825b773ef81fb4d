"""Curves: what scikit-learn's curves say, and the right word for it."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import validation_curve as reference

import empirisk as er
from empirisk.evaluation import learning_curve, validation_curve
from empirisk.evaluation.splits import make_splits

pytestmark = pytest.mark.row("V9")
random = np.random.default_rng(0)
X = random.uniform(-1, 1, size=(150, 1))
F = np.sin(3 * X[:, 0]) + 0.3 * random.normal(size=150)


def test_a_validation_curve_is_that_of_scikit_learn():
    machine, values = er.Ridge(C=1e3, features=er.maps.Polynomial(1)), [1, 3, 5]
    curve = validation_curve(machine, X, F, "features__degree", values)
    assert curve.train.shape == curve.validation.shape == (3, 5)
    assert curve.values == values
    splits = make_splits(5, F, classes=False)
    train, test = reference(machine, X, F, param_name="features__degree", param_range=values, cv=splits)
    np.testing.assert_allclose(curve.train, train)
    np.testing.assert_allclose(curve.validation, test)
    assert curve.best == values[int(test.mean(axis=1).argmax())]
    assert "underfitting before it" in curve.diagnosis
    errors = validation_curve(machine, X, F, "features__degree", values, scoring="rmse")
    assert errors.best == curve.best
    assert np.all(errors.validation > 0)


def test_overfitting_is_named_on_a_validation_curve():
    curve = validation_curve(er.TreeRegressor(), X, F, "max_leaf_nodes", [2, 8, 64])
    assert curve.best == 8
    assert "underfitting before it; overfitting after it" in curve.diagnosis
    edge = validation_curve(er.Ridge(), X, F, "C", [1e-6, 1.0])
    assert "try further ones" in edge.diagnosis


def test_learning_curves_name_what_they_see():
    wide = random.normal(size=(150, 60))
    noisy = wide[:, 0] + random.normal(size=150)
    over = learning_curve(LinearRegression(), wide, noisy, sizes=[80, 120])
    assert over.diagnosis.startswith("overfitting")
    assert over.sizes.tolist() == [80, 120]
    assert over.train.shape == over.validation.shape == (2, 5)
    under = learning_curve(LinearRegression(), wide[:, 1:2], noisy, sizes=[60, 120])
    assert under.diagnosis.startswith("underfitting")
    settled = learning_curve(LinearRegression(), X, X[:, 0] + 0.1 * random.normal(size=150), sizes=[80, 120])
    assert settled.diagnosis.startswith("settled")


def test_every_size_holds_every_class():
    rare = np.where(np.arange(150) % 10 == 0, "rare", "common")
    curve = learning_curve(er.NearestCentroid(), X, rare, sizes=[10, 50, 100])
    assert np.all(np.isfinite(curve.validation))
    with pytest.raises(ValueError, match="must be numbers from 2 to 120"):
        learning_curve(er.NearestCentroid(), X, rare, sizes=[10, 500])
    with pytest.raises(ValueError, match="parameter='depth' is none of"):
        validation_curve(er.TreeRegressor(), X, F, "depth", [1])
    with pytest.raises(ValueError, match="at least one value"):
        validation_curve(er.TreeRegressor(), X, F, "max_depth", [])


def test_a_learning_curve_begins_with_the_fits_that_take_longest():
    """The last of them would else run beside idle threads; scores stand by size and fold all the same."""
    seen = []

    class Guess(LinearRegression):
        def fit(self, X, y):
            self.rows_ = len(X)
            seen.append(self.rows_)
            return self

        def predict(self, X):
            return np.full(len(X), float(self.rows_))

    def rows(truth, guessed):
        return guessed[0] + truth.mean()

    with er.config(threads=1):
        curve = learning_curve(Guess(), X, F, sizes=[10, 30, 60], cv=3, scoring=make_scorer(rows))
    assert seen == [60, 60, 60, 30, 30, 30, 10, 10, 10]
    folds = [F[test].mean() for _, test in make_splits(3, F, classes=False)]
    assert np.allclose(curve.validation, np.array([[10.0], [30.0], [60.0]]) + folds)
