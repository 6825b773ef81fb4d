"""Coordinate descent: exact on sparse problems of every shape, and consistent with its neighbours."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import empirisk as er
from empirisk.machines.fitting import Limits, run
from tests.cases import KINDS, SHAPES, make
from tests.truth import optimum

LIMITS = Limits(tol=1e-6, max_iter=None, max_time=None)


@pytest.mark.row("S11")
@pytest.mark.row("L5")
@pytest.mark.row("L6")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "badly scaled"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("penalty", ["l1", "elastic_net"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_by_name_it_is_the_optimum(loss, penalty, shape, kind, intercept):
    problem, arguments = make(loss, penalty, 0.3, shape, kind, intercept, seed=7)
    certificate = run([problem], "coordinate_descent", LIMITS)[0].certificate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the general solver's own doubts
        best = optimum(*arguments)
    assert certificate.converged, certificate
    assert certificate.primal <= best * (1 + 1e-6)
    assert certificate.gap >= certificate.primal - best - 1e-8 * best


@pytest.mark.row("S11")
def test_wide_data_with_few_weights_awake():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 2000))
    w = np.zeros(2000)
    w[:5] = 3.0
    y = X @ w + 0.1 * random.normal(size=80)
    machine = er.Lasso(C=0.05).fit(X, y)
    assert machine.certificate_.converged
    assert set(np.flatnonzero(np.abs(machine.coef_) > 0.5)) == set(range(5))
    thin = er.Lasso(C=0.05).fit(sparse.csc_matrix(X), y)
    np.testing.assert_allclose(thin.coef_, machine.coef_, atol=1e-4)
    rows, columns = np.flatnonzero(machine.coef_), np.flatnonzero(machine.coef_ == 0)
    residual = y - machine.predict(X)
    correlations = 2 * 0.05 * np.abs((X - X.mean(axis=0)).T @ residual)
    np.testing.assert_allclose(correlations[rows], 1, atol=1e-4)
    assert correlations[columns].max() <= 1 + 1e-4


@pytest.mark.row("S11")
def test_a_warm_path_is_its_cold_fits():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 100))
    y = X[:, 0] - X[:, 1] + random.normal(size=60)
    found = er.selection.path(er.Lasso(), X, y, Cs=15)
    assert np.count_nonzero(found.coefs[0]) <= 1
    for k in range(0, 15, 4):
        alone = er.Lasso(C=found.Cs[k]).fit(X, y)
        assert found.objectives[k] == pytest.approx(alone.certificate_.primal, rel=2e-6)
