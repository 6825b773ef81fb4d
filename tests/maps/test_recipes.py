"""Recipes: steps of scikit-learn in one line, and the documentation runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import boxcox
from sklearn.utils.estimator_checks import parametrize_with_checks

import empirisk as er
from empirisk import maps
from empirisk.maps.recipes import Logarithm

ROOT = Path(__file__).parents[2]
random = np.random.default_rng(0)
X = np.exp(random.normal(size=(80, 3)))


@pytest.mark.row("F3")
def test_standardised_is_the_scaled_columns():
    y = X[:, 0]
    found = maps.standardised(er.Ridge()).fit(X * [1, 1e6, 1e-6], y)
    plain = er.Ridge().fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    np.testing.assert_allclose(found.predict(X * [1, 1e6, 1e-6]), plain.predict((X - X.mean(axis=0)) / X.std(axis=0)))
    thin = maps.standardised(er.Ridge(), sparse=True).fit(sparse.csr_array(X), y)
    assert thin.score(sparse.csr_array(X), y) > 0.9


@pytest.mark.row("F3")
def test_logarithms_of_features_and_target():
    y = np.exp(1 + 2 * np.log1p(X[:, 0]))
    machine = maps.log_target(maps.log_features(er.LeastSquares()))
    np.testing.assert_allclose(machine.fit(X, y).predict(X), y, rtol=1e-8)
    assert er.evaluate(machine, X, y).score.value > 0.99
    weighted = maps.log_target(er.LeastSquares())
    assert er.evaluate(weighted, X, y, sample_weight=np.ones(80)).score.value < 1
    with pytest.raises(ValueError, match="log_target needs positive targets"):
        machine.fit(X, -y)
    with pytest.raises(ValueError, match="log_features needs numbers above -1"):
        maps.log_features(er.Ridge()).fit(-3 * X, y)


@pytest.mark.row("F3")
def test_box_cox_of_features_and_target():
    y = (3 + X[:, 0]) ** 2
    machine = maps.box_cox_target(er.LeastSquares()).fit(X, y)
    _, power = boxcox(y)
    assert machine.transformer_.lambdas_[0] == pytest.approx(power, abs=1e-3)
    assert machine.score(X, y) > 0.5
    assert np.isfinite(machine.predict(1e6 * X)).all()
    features = maps.box_cox_features(er.LeastSquares()).fit(X, np.log(X[:, 0]))
    assert features.score(X, np.log(X[:, 0])) > 0.99
    both = maps.box_cox_features(er.LeastSquares(), positive=False)
    assert both.fit(-X, X[:, 0]).score(-X, X[:, 0]) > 0.4
    with pytest.raises(ValueError, match="positive"):
        maps.box_cox_features(er.LeastSquares()).fit(-X, y)


@pytest.mark.row("F3")
def test_box_cox_with_a_given_power():
    y = (3 + X[:, 0]) ** 2
    machine = maps.box_cox_target(er.LeastSquares(), power=0.5).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), y, rtol=1e-8)  # the root of y is linear in x
    found = maps.box_cox_features(er.LeastSquares(), power=-1.0).fit(X, 1 / X[:, 0])
    np.testing.assert_allclose(found.predict(X), 1 / X[:, 0], rtol=1e-6)
    logs = maps.box_cox_features(er.LeastSquares(), power=0.0).fit(X, np.log(X[:, 0]))
    np.testing.assert_allclose(logs.predict(X), np.log(X[:, 0]), atol=1e-8)
    with pytest.raises(ValueError, match="power='x' must be a number"):
        maps.box_cox_target(er.LeastSquares(), power="x").fit(X, y)
    with pytest.raises(ValueError, match="power=2 is for Box-Cox"):
        maps.box_cox_features(er.LeastSquares(), power=2, positive=False)


RECIPES = {
    "logarithms": maps.log_target(maps.log_features(er.LeastSquares())),
    "powers": maps.box_cox_target(maps.box_cox_features(er.LeastSquares())),
    "given powers": maps.box_cox_target(maps.box_cox_features(er.LeastSquares(), power=0.5), power=0.0),
    "both signs": maps.box_cox_features(er.Ridge(), positive=False),
    "scaled": maps.standardised(er.Ridge()),
}


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_go_through_a_file(name, tmp_path):
    machine = RECIPES[name].fit(X, X[:, 0] + X[:, 1])
    er.save(machine, tmp_path / "a.model")
    np.testing.assert_array_equal(er.load(tmp_path / "a.model").predict(X), machine.predict(X), strict=True)


@parametrize_with_checks([Logarithm()])  # the others need numbers above zero, which the checks do not give
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.row("F4")
def test_zeros_and_ones_for_words(tmp_path):
    texts = ["good good film", "bad film", "good play", "bad bad bad play"]
    machine = maps.bag_of_words(er.SVM(), weighted=False, binary=True).fit(texts, [1, 0, 1, 0])
    assert set(machine[0].transform(texts).toarray().ravel()) == {0, 1}
    er.save(machine, tmp_path / "a.model")
    assert er.load(tmp_path / "a.model").predict(texts).tolist() == [1, 0, 1, 0]
    assert maps.bag_of_words(er.SVM(), weighted=False)[0].fit_transform(texts).max() == 3


@pytest.mark.row("F4")
def test_bag_of_words():
    texts = ["good film", "bad film", "a good good play", "bad bad play"] * 5
    labels = [1, 0, 1, 0] * 5
    counts = maps.bag_of_words(er.SVM(), weighted=False).fit(texts, labels)
    assert counts[0].transform(["good good film"]).toarray()[0, counts[0].vocabulary_["good"]] == 2
    assert maps.bag_of_words(er.LogisticRegression(), pairs=True).fit(texts, labels).predict(["good day"]) == [1]
    assert len(maps.bag_of_words(er.SVM(), words=2).fit(texts, labels)[0].vocabulary_) == 2
    result = er.evaluate(maps.bag_of_words(er.SVM()), texts, labels, scoring="accuracy")
    assert result.score.value == 1


@pytest.mark.parametrize("page", ["evaluation.md", "model-file.md", "recipes.md"])
def test_the_code_in_the_documentation_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
