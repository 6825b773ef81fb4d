"""Closed forms of the squared loss by every method, and factors of Gram matrices."""

import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk import stop
from empirisk.errors import EmpiriskError
from empirisk.linalg import threads
from empirisk.solvers.closed.decomposed import singular_parts
from empirisk.solvers.closed.factored import Factor


@pytest.mark.parametrize("name", ["svd", "eigh"])
def test_a_decomposition_is_left_when_the_flag_goes_up(name, monkeypatch):
    X = np.random.default_rng(0).normal(size=(4, 6))
    ask = {
        "svd": lambda: singular_parts(X),
        "eigh": lambda: Factor(X @ X.T),
    }
    monkeypatch.setattr(threads, "MIN_INTERRUPTIBLE_ORDER", 1)
    seen = threading.Event()
    monkeypatch.setattr(np.linalg, name, lambda *_, **__: seen.wait(10))  # it goes on until nobody waits for it
    with pytest.raises(stop.Stopped), stop.stopping(lambda: True):
        ask[name]()
    seen.set()


def relu_features(seed: int, units: int, biased: bool) -> tuple[np.ndarray, np.ndarray]:
    """max(0, X W + b) of 60 rows in the plane, with singular values of every size down to rounding, and targets."""
    random = np.random.default_rng(seed)
    X, W, b = random.normal(size=(60, 2)), random.normal(size=(2, units)), biased * random.normal(size=units)
    return np.maximum(0, X @ W + b), np.sin(X[:, 0]) + 0.1 * random.normal(size=60)


def minimum_norm(X, y, weights, intercept):
    """By NumPy's singular values, with the standard rank cut-off."""
    centre, level = (np.average(X, 0, weights), np.average(y, 0, weights)) if intercept else (0.0, 0.0)
    root = np.sqrt(weights)[:, None]
    return np.linalg.lstsq(root * (X - centre), root * (y - level).reshape(len(y), -1), rcond=None)[0]


@pytest.mark.row("L3")
@pytest.mark.parametrize("scales", [0, 3], ids=["one scale", "six orders"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "several"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("units", [40, 60, 200])
def test_minimum_norm_where_singular_values_lie_at_rounding(units, intercept, kind, scales):
    for seed, biased in ((0, False), (1, False), (1, True)):
        X, y = relu_features(seed, units, biased)
        X = X * np.logspace(-scales, scales, units)
        y = np.column_stack([y, X[:, 0] - y]) if kind == "several" else y
        weights = np.random.default_rng(seed).uniform(0.3, 3.0, 60) if kind == "weighted" else np.ones(60)
        machine = er.LeastSquares(fit_intercept=intercept)
        machine.fit(sparse.csr_array(X) if kind == "sparse" else X, y, weights)  # a warning would be an error
        expected = minimum_norm(X, y, weights, intercept)
        assert machine.certificate_.converged
        norm = np.linalg.norm(machine.coef_)
        # Weights that cancel to one digit in 1e12 are known to four.
        assert norm == pytest.approx(np.linalg.norm(expected), rel=1e-9 * 10 ** (2 * scales))
        missed = X @ expected - y.reshape(60, -1)
        missed -= intercept * np.average(missed, 0, weights)
        value = float(weights @ (missed**2).sum(axis=1))
        assert machine.certificate_.primal == pytest.approx(value, rel=1e-4, abs=1e-12)


@pytest.mark.row("L3")
@pytest.mark.parametrize("units", [60, 200])
def test_the_minimum_norm_stays_where_its_proof_lacks_digits(units):
    """Other solvers would be asked for what is missing, and find another minimiser."""
    for seed in (0, 1):
        X, y = relu_features(seed, units, True)
        with pytest.warns(ConvergenceWarning):
            machine = er.LeastSquares(tol=0.0).fit(X, y)
        expected = minimum_norm(X, y, np.ones(60), True)
        assert np.linalg.norm(machine.coef_) == pytest.approx(np.linalg.norm(expected), rel=1e-6)


def test_no_remedy_names_a_parameter_that_least_squares_does_not_have():
    X, y = relu_features(0, 40, True)
    for machine in (er.LeastSquares(tol=0.0), er.Regressor("squared", penalty="none", tol=0.0)):
        with pytest.warns(ConvergenceWarning, match="standardise the columns, or raise tol"):
            machine.fit(X, y)
    with pytest.warns(ConvergenceWarning, match="lower C"):
        er.Ridge(tol=0.0).fit(X, y)


@pytest.mark.row("S8")
@pytest.mark.parametrize("kind", ["tall", "wide", "sparse", "dependent", "kernel"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["l2", "none"])
def test_all_methods_give_the_same_answer(penalty, intercept, kind):
    random = np.random.default_rng(4)
    X = random.normal(size=(8, 20) if kind == "wide" else (30, 4)) + 1.0
    X = np.hstack([X, X[:, :2] - X[:, 2:4]]) if kind == "dependent" else X
    y, weights = random.normal(size=(len(X), 2)), random.uniform(0.5, 2.0, len(X))
    features = er.kernels.Gaussian(2.0) if kind == "kernel" else None
    given = sparse.csr_array(X) if kind == "sparse" else X
    found, refused = {}, set()
    for method in ("auto", "cholesky", "eigen", "svd"):
        machine = er.Regressor(
            "squared", features, penalty, 3.0, fit_intercept=intercept, solver=er.solvers.ClosedForm(method)
        )
        try:
            found[method] = machine.fit(given, y, weights)
        except er.errors.Unsuitable:
            refused.add(method)
    expected = {"svd"} if kind == "kernel" else {"cholesky"} if kind in ("wide", "dependent") else set()
    if penalty == "l2":
        assert refused == expected - {"cholesky"}
    elif kind == "kernel":
        assert refused == {"auto", "cholesky", "eigen", "svd"}
    else:
        assert refused == expected
    for machine in found.values():
        assert machine.certificate_.converged
        np.testing.assert_allclose(machine.predict(given), found["auto"].predict(given), rtol=1e-9, atol=1e-10)
        if kind != "kernel":
            np.testing.assert_allclose(machine.coef_, found["auto"].coef_, rtol=1e-8, atol=1e-10)
    assert all(method in machine.certificate_.reason for method, machine in found.items() if method == "eigen")


@pytest.mark.row("S8")
def test_a_method_that_does_not_apply_says_why():
    X, y = np.random.default_rng(0).normal(size=(5, 7)), np.arange(5.0)
    cases = [
        (er.LeastSquares(solver=er.solvers.ClosedForm("cholesky")), X, "a penalty, or more rows than the 7 columns"),
        (er.LeastSquares(solver=er.solvers.ClosedForm("cholesky")), X[:, [0, 0]], "some columns of X depend on others"),
        (er.Ridge(features="gaussian", solver=er.solvers.ClosedForm("svd")), X, "which a kernel does not have"),
        (er.Ridge(solver=er.solvers.ClosedForm("qr")), X, "choose one of"),
        (er.Ridge(solver=er.solvers.ClosedForm(cutoff=2.0)), X, "cutoff=2.0 of ClosedForm must be a share"),
        (er.Ridge(solver=er.solvers.ClosedForm(cutoff="0")), X, "cutoff='0' of ClosedForm must be a share"),
    ]
    for machine, rows, sentence in cases:
        with pytest.raises(er.errors.EmpiriskError, match=sentence):
            machine.fit(rows, y)


@pytest.mark.row("S8")
def test_eigenvalues_are_cut_off_like_singular_values():
    X, y = np.diag([1.0, 1e-3]), np.ones(2)
    for method in ("eigen", "svd"):
        solver = er.solvers.ClosedForm(method, cutoff=0.1)
        cut = er.LeastSquares(fit_intercept=False, solver=solver, tol=2).fit(X, y)
        np.testing.assert_allclose(cut.coef_, [1, 0], atol=1e-12)


@pytest.mark.row("S8")
@pytest.mark.parametrize(("method", "function"), [("eigen", "eigh"), ("svd", "svd")])
def test_one_decomposition_serves_every_C_and_target(method, function, monkeypatch):
    random = np.random.default_rng(0)
    X, y, calls = random.normal(size=(20, 3)), random.normal(size=(20, 2)), []
    ask = getattr(np.linalg, function)
    monkeypatch.setattr(np.linalg, function, lambda *a, **b: calls.append(1) or ask(*a, **b))
    machine = er.Ridge(solver=er.solvers.ClosedForm(method))
    found = er.selection.path(machine, X, y, Cs=[0.1, 1.0, 10.0])
    assert len(calls) == 1
    np.testing.assert_allclose(found.coefs[1], er.Ridge(C=1.0).fit(X, y).coef_, rtol=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, 0.1])
def test_cholesky_refuses_a_column_without_a_weight_of_its_own_in_every_format(level):
    """It is zero, or beside the intercept constant."""
    X = np.column_stack([np.random.default_rng(0).normal(size=13), np.full(13, level)])
    y = X[:, 0] + 1.0
    for rows in (X, sparse.csr_array(X)):
        machine = er.LeastSquares(solver=er.solvers.ClosedForm("cholesky"))
        with pytest.raises(EmpiriskError, match="some columns of X depend on others"):
            machine.fit(rows, y)
        np.testing.assert_allclose(machine.set_params(solver="closed_form").fit(rows, y).coef_, [1.0, 0.0], atol=1e-12)
        if level:
            machine.set_params(solver=er.solvers.ClosedForm("cholesky"), fit_intercept=False).fit(rows, y)
            np.testing.assert_allclose(machine.coef_, [1.0, 1 / level], rtol=1e-12)


def test_eigenvalues_of_products_that_are_made_in_blocks_give_the_same_machine():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(700, 3)), random.normal(size=700)
    found = [
        er.Ridge(features=er.kernels.Gaussian(), solver=er.solvers.ClosedForm(method)).fit(X, y).predict(X)
        for method in ("auto", "eigen")
    ]
    np.testing.assert_allclose(*found, atol=1e-8)
