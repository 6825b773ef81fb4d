"""scikit-learn's contract, for every public estimator, with no check skipped."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import empirisk as er
from tests.estimator_checks import check_contract

CLASSIFIERS = [
    er.Classifier(),
    er.Classifier(loss="exponential", penalty="elastic_net"),
    er.Classifier(loss="squared_hinge", multiclass="one_vs_one"),
    er.Classifier(loss="crammer_singer"),
    er.Classifier(multiclass="error_correcting"),
    er.SVM(),
    er.SVM(penalty="l1"),
    er.LogisticRegression(),
    er.LogisticRegression(penalty="l1"),
    er.LogisticRegression(multiclass="one_vs_rest"),
    er.LeastSquaresClassifier(),
    er.Perceptron(),
    er.NearestCentroid(),
]
REGRESSORS = [
    er.Regressor(),
    er.Regressor(loss="squared_absolute", penalty="elastic_net"),
    er.Regressor(loss="quantile"),
    er.LeastSquares(),
    er.Ridge(),
    er.Ridge(C="loo"),
    er.Lasso(),
    er.ElasticNet(),
    er.LeastAbsolute(),
    er.SVR(),
]
MAPS = [
    er.maps.Polynomial(),
    er.maps.Periodic(),
]
MACHINES = CLASSIFIERS + REGRESSORS


def data(machine, n=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    f = X[:, 0] - 0.5 * X[:, 1] + 0.3 * random.normal(size=n)
    return X, (np.array(["low", "high"])[(f > 0).astype(int)] if is_classifier(machine) else f)


@pytest.mark.parametrize("estimator", MACHINES + MAPS, ids=repr)
def test_check_estimator_passes_with_nothing_skipped(estimator):
    check_contract(estimator, least=40)


@pytest.mark.parametrize("machine", [er.Regressor("poisson"), er.BoostingRegressor("gamma", n_estimators=9)], ids=repr)
def test_deviances_pass_every_check_whose_targets_they_have(machine):
    """scikit-learn's check of several targets gives negative ones, whatever the tag says; the others heed it."""
    results = check_estimator(machine, on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] != "passed"}
    assert list(failed) == ["check_regressor_multioutput"]
    assert "positive; use 'squared'" in failed["check_regressor_multioutput"]


# Not for C="loo": leaving out one of two equal rows is not leaving out both.
@pytest.mark.parametrize("machine", [m for m in MACHINES if m.get_params().get("C") != "loo"], ids=repr)
def test_weight_two_is_the_row_twice(machine):
    X, y = data(machine)
    twice = np.arange(len(y)) % 3 == 0
    weighted = clone(machine).set_params(**({"random_state": 0} if "random_state" in machine.get_params() else {}))
    repeated = clone(weighted).fit(np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]]))
    weighted.fit(X, y, sample_weight=1.0 + twice)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_clone_pickle_and_sparse_agree(machine):
    X, y = data(machine)
    machine = clone(machine)
    if "random_state" in machine.get_params():
        machine.set_params(random_state=0)
    machine.fit(X, y)
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(machine.predict(X), again.predict(X))
    for format in ("csr_matrix", "csc_array"):
        thin = clone(machine).fit(getattr(sparse, format)(X), y)
        np.testing.assert_allclose(thin.coef_, machine.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_fit_evidence_is_complete(machine):
    X, y = data(machine)
    machine = clone(machine).fit(X, y)
    certificate = machine.certificate_
    names = [
        "primal",
        "dual",
        "gap",
        "relative_gap",
        "converged",
        "status",
        "solver",
        "reason",
        "iterations",
        "seconds",
    ]
    for name in names:
        assert hasattr(certificate, name)
    assert machine.solver_ == certificate.solver
    assert machine.n_iter_ == certificate.iterations >= 1
    assert machine.coef_.shape[-1] == 4
    assert np.ndim(machine.intercept_) in (0, 1)
    assert all(isinstance(values, np.ndarray) for values in machine.history_.values())
    assert str(certificate)


def test_grid_search_reaches_into_parts():
    X, y = data(er.Ridge())
    machine = er.Regressor(loss=er.losses.EpsilonInsensitive(0.1), features=er.maps.Polynomial(2))
    search = GridSearchCV(machine, {"loss__epsilon": [0.01, 0.3], "features__degree": [1, 2], "C": [0.1, 1.0]}, cv=3)
    search.fit(X, y)
    assert set(search.best_params_) == {"loss__epsilon", "features__degree", "C"}
    assert machine.loss.epsilon == 0.1
    assert machine.features.degree == 2
    nested = GridSearchCV(er.Classifier(penalty=er.penalties.ElasticNet(0.5)), {"penalty__l1_ratio": [0.1, 0.9]}, cv=3)
    assert nested.fit(X, y > 0).best_params_


def test_data_frames_names_and_pipelines():
    X, y = data(er.SVM())
    frame = pd.DataFrame(X, columns=list("abcd"))
    machine = er.SVM().fit(frame, y)
    assert list(machine.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(frame[list("dcba")])
    pipeline = make_pipeline(StandardScaler(), er.maps.Polynomial(2), er.LogisticRegression())
    pipeline.set_output(transform="pandas")
    assert pipeline.fit(frame, y).score(frame, y) > 0.8
    names = er.maps.Polynomial(2).set_output(transform="pandas").fit_transform(frame).columns
    assert "a b" in names


def test_features_are_fitted_inside_and_left_alone():
    X, y = data(er.Ridge())
    scaler = StandardScaler()
    machine = er.Ridge(features=scaler).fit(X, y)
    assert not hasattr(scaler, "mean_")
    assert hasattr(machine.features_, "mean_")
    outside = er.Ridge().fit(scaler.fit_transform(X), y)
    np.testing.assert_allclose(machine.predict(X), outside.predict(scaler.transform(X)))
    with pytest.raises(ValueError, match="features='not a map' is not known"):
        er.Ridge(features="not a map").fit(X, y)


def test_text_through_a_vectoriser():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["good film", "bad film", "good play", "bad play"] * 5
    machine = er.SVM(features=TfidfVectorizer()).fit(texts, [1, 0, 1, 0] * 5)
    assert machine.predict(["a good day"]) == [1]


def test_metadata_routing():
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        X, y = data(er.Ridge())
        machine = er.Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(machine, {"C": [0.1, 1.0]}, cv=3)
        search.fit(X, y, sample_weight=np.linspace(0.1, 2, len(y)))
        direct = clone(search.best_estimator_).fit(X, y, sample_weight=np.linspace(0.1, 2, len(y)))
        np.testing.assert_allclose(search.best_estimator_.coef_, direct.coef_)


@pytest.mark.parametrize(
    "machine", [er.LogisticRegression(), er.LogisticRegression(multiclass="one_vs_rest")], ids=repr
)
def test_predict_is_the_argmax_of_the_probabilities(machine):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = np.array(list("abc"))[random.integers(3, size=200)]
    machine.fit(X, y)
    p = machine.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(machine.predict(X), machine.classes_[p.argmax(axis=1)])
    np.testing.assert_allclose(machine.predict_log_proba(X), np.log(p))


def test_probabilities_only_where_the_loss_implies_them():
    assert not hasattr(er.SVM(), "predict_proba")
    assert hasattr(er.LogisticRegression(), "predict_proba")
    assert not hasattr(er.LogisticRegression(multiclass="one_vs_one"), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        _ = er.SVM().predict_proba


def test_imports_stay_light():
    code = (
        "import sys, empirisk as er; er.SVM; "
        "print('jax' in sys.modules, 'matplotlib' in sys.modules, 'polars' in sys.modules)"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "0"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert out.stdout.split() == ["False", "False", "False"]
