"""Search over parts: the same answer as trying everything one by one."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV, check_cv, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.selection.path import machines_along
from empirisk.selection.search import plan

pytestmark = pytest.mark.row("V2")

random = np.random.default_rng(1)
X = random.normal(size=(80, 3))
F = X[:, 0] ** 2 + 0.3 * random.normal(size=80)
SPACE = {"C": [1e-3, 0.1, 10.0], "features": [None, er.maps.Polynomial(2)], "loss": ["squared", "absolute"]}


@pytest.mark.parametrize("steps", [False, True])
def test_the_scores_are_those_of_trying_everything(steps):
    machine, space = er.Regressor(), SPACE
    if steps:
        machine = make_pipeline(StandardScaler(), er.Regressor())
        space = {f"regressor__{name}": values for name, values in SPACE.items()}
    found = er.selection.search(machine, space, X, F, scoring="rmse", cv=[(np.arange(50), np.arange(50, 80))] * 2)
    grid = GridSearchCV(
        machine, space, cv=[(np.arange(50), np.arange(50, 80))] * 2, scoring="neg_root_mean_squared_error"
    )
    grid.fit(X, F)
    assert [str(setting) for setting in found.cv_results_["params"]] == [str(one) for one in grid.cv_results_["params"]]
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], rtol=1e-3)
    assert str(found.best_params_) == str(grid.best_params_)
    np.testing.assert_allclose(found.predict(X), grid.predict(X), rtol=1e-3, atol=1e-3)
    assert found.best_params_[("regressor__" if steps else "") + "features"] is not None


class Doubled(TransformerMixin, BaseEstimator):
    """Learns nothing, and has no attribute that would say it is fitted."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 2 * X


def test_a_step_may_learn_nothing():
    found = er.selection.search(make_pipeline(Doubled(), er.Ridge()), {"ridge__C": [0.01, 1.0]}, X, F)
    plain = er.selection.search(er.Ridge(), {"C": [0.01, 1.0]}, 2 * X, F)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


def test_a_path_is_fitted_for_settings_that_differ_in_C_alone():
    settings = [{"C": 1.0, "tol": 1e-4}, {"C": 0.1, "tol": 1e-4}, {"C": 1.0, "tol": 1e-6}, {"C": "cv", "tol": 1e-4}]
    runs = plan(er.Ridge(), settings)
    assert sorted((run.places, run.Cs) for run in runs) == [([1, 0], [0.1, 1.0]), ([2], [1.0]), ([3], [])]
    assert all(not run.Cs for run in plan(er.TreeRegressor(), settings))
    for C, machine in zip([0.01, 1.0], machines_along(er.SVM().problems(X, F > 1), [0.01, 1.0]), strict=True):
        alone = er.SVM(C=C).fit(X, F > 1)
        np.testing.assert_allclose(machine.coef_, alone.coef_, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(machine.predict(X), alone.predict(X))
        assert machine.certificate_.converged


@pytest.mark.parametrize(
    "machine", [er.SVM(), er.LogisticRegression(), er.Ridge()], ids=lambda machine: type(machine).__name__
)
def test_a_path_behind_a_kernel_is_that_of_fits_one_by_one(machine, monkeypatch):
    machine.set_params(features=er.kernels.Gaussian("median"), tol=1e-9)
    y = F if isinstance(machine, er.Ridge) else F > 1
    Cs = [0.01, 1.0, 100.0]
    for C, found in zip(Cs, machines_along(machine.problems(X, y), Cs), strict=True):
        alone = clone(machine).set_params(C=C).fit(X, y)
        np.testing.assert_allclose(found._scores(X), alone._scores(X), rtol=1e-5, atol=1e-5)
        assert found.certificate_.converged
    blocks = []
    between = er.kernels.Gaussian.between
    monkeypatch.setattr(er.kernels.Gaussian, "between", lambda *parts: blocks.append(parts) or between(*parts))
    counts = []
    for values in (Cs[:1], Cs):
        blocks.clear()
        list(machines_along(machine.problems(X, y), values))
        counts.append(len(blocks))
    assert 0 < counts[1] < 3 * counts[0]  # the fits share values of the kernel
    grid = GridSearchCV(machine, {"C": Cs}, cv=3).fit(X, y)
    found = er.selection.search(machine, {"C": Cs}, X, y, cv=list(check_cv(3, y, classifier=y is not F).split(X, y)))
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=1e-6)


def test_a_notebook_shows_the_settings_best_first():
    space = {"C": [1e-3, 10.0], "loss": ["squared", "absolute"]}
    search = er.selection.Search(er.Regressor(), space, scoring="rmse", cv=3)
    assert "mean score" not in search._repr_html_()
    shown = search.fit(X, F)._repr_html_()
    found = search.cv_results_
    lines = [f"C={found['params'][k]['C']!r}, loss=&#x27;{found['params'][k]['loss']}" for k in range(4)]
    assert sorted(lines, key=shown.index) == [lines[k] for k in np.argsort(found["rank_test_score"], kind="stable")]
    assert f"{search.best_score_:.4g}" in shown
    assert "sk-container" in shown  # and the machine, as scikit-learn draws it


def test_settings_without_meaning_are_left_out():
    space = [{"penalty": ["l2"], "solver": ["newton"]}, {"penalty": ["l1"], "solver": ["newton"]}]
    found = er.selection.search(er.LogisticRegression(), space, X, F > 1)
    assert list(found.refused_) == [1]
    assert "solver='newton' cannot" in found.refused_[1]
    assert found.best_index_ == 0
    with pytest.raises(er.errors.EmpiriskError, match="no setting that can be fitted"):
        er.selection.search(er.LogisticRegression(), space[1], X, F > 1)


def test_settings_drawn_at_random_are_the_same_again():
    space = {"C": loguniform(1e-3, 1e3)}
    one, two = (er.selection.search(er.Ridge(), space, X, F, candidates=4) for _ in range(2))
    assert one.cv_results_["params"] == two.cv_results_["params"]
    assert len(one.cv_results_["params"]) == 4
    with pytest.raises(er.errors.EmpiriskError, match="candidates="):
        er.selection.search(er.Ridge(), space, X, F)


def test_weights_and_groups_reach_the_search():
    weights = np.where(np.arange(80) < 40, 1.0, 0.0) + 1e-9
    found = er.selection.search(er.Ridge(), {"C": [0.1, 1.0]}, X, F, sample_weight=weights)
    expected = er.Ridge(C=found.best_params_["C"]).fit(X[:40], F[:40])
    np.testing.assert_allclose(found.estimator_.coef_, expected.coef_, rtol=1e-4, atol=1e-6)
    er.selection.search(er.Ridge(), {"C": [0.1, 1.0]}, X, F, groups=np.arange(80) // 4)
    assert cross_val_score(er.selection.Search(er.Ridge(), {"C": [1.0]}), X, F).shape == (5,)


def test_a_bad_space_is_refused():
    with pytest.raises(er.errors.EmpiriskError, match="space='C' must map names"):
        er.selection.search(er.Ridge(), "C", X, F)
    with pytest.raises(ValueError, match="has no parameter 'width'"):
        er.selection.search(er.Ridge(), {"width": [1]}, X, F)
