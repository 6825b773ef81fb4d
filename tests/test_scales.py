"""Each conversion is tested on solutions: a fit on the other scale solves our problem at the converted C."""

import cvxpy
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.svm import SVC, LinearSVC, LinearSVR, OneClassSVM

from empirisk import scales
from empirisk.errors import EmpiriskError

INVERSES = [
    (scales.from_lambda, scales.to_lambda),
    (scales.from_lambda_without_half, scales.to_lambda_without_half),
    (scales.from_lasso, scales.to_lasso),
    (scales.from_sgd, scales.to_sgd),
    (scales.from_nu, scales.to_nu),
]

LONG = {"fit_intercept": False, "max_iter": 20_000, "tol": None, "average": True, "random_state": 0}


@pytest.fixture(scope="module")
def regression():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 8))
    return X, X @ [3.0, -2.0, 0, 0, 1.0, 0, 0, 0.5] + random.normal(size=60), random.uniform(0.2, 3.0, size=60)


@pytest.fixture(scope="module")
def labels(regression):
    X, y, _ = regression
    return X, np.where(y + np.random.default_rng(1).normal(size=60) > 0, 1.0, -1.0)


def distance_to_optimum(w, gradient, l1, l2):
    """Largest violation of  0 in l1 sign(w) + l2 w + gradient, where gradient is of C * sum loss."""
    at_zero = np.maximum(np.abs(gradient) - l1, 0.0)
    return np.where(w == 0, at_zero, np.abs(gradient + l1 * np.sign(w) + l2 * w)).max()


def solve(objective):
    """Minimise to high precision: a gap of 1e-8, the default, leaves errors of 1e-4 in w."""
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-13)
    cvxpy.Problem(cvxpy.Minimize(objective)).solve(solver="CLARABEL", **tolerances)


def squares_gradient(X, y, w, C, weights=1.0):
    return 2 * C * X.T @ (weights * (X @ w - y))


def logistic_gradient(X, y, w, C):
    return -C * X.T @ (y / (1 + np.exp(y * (X @ w))))


def assert_scale(distance, C):
    """The solution fits at C, and at no C one per cent away: the test can tell the scales apart."""
    assert distance(C) < 1e-6
    assert min(distance(1.01 * C), distance(0.99 * C)) > 1e-3


@pytest.mark.parametrize(("to_C", "from_C"), INVERSES)
def test_there_and_back(to_C, from_C):
    for n in (1, 7, 49, 1000.5):
        for value in (1.0, 0.3, 1e-4):
            assert from_C(to_C(value, n), n) == pytest.approx(value, rel=1e-14)
    assert scales.to_ridge(scales.from_ridge(0.3)) == pytest.approx(0.3, rel=1e-14)
    C, ratio = scales.from_elastic_net(0.3, 0.25, 49)
    assert scales.to_elastic_net(C, ratio, 49) == pytest.approx((0.3, 0.25), rel=1e-14)


def test_texts_with_half_the_squared_norm(regression, labels):
    X, y, _ = regression
    n = len(y)
    w = np.linalg.solve(X.T @ X / n + 0.7 / 2 * np.eye(8), X.T @ y / n)  # lambda/2 |w|^2 + 1/n sum r^2
    assert_scale(lambda C: distance_to_optimum(w, squares_gradient(X, y, w, C), 0, 1), scales.from_lambda(0.7, n))
    X, y = labels
    mean = minimize(
        lambda w: 0.7 / 2 * w @ w + np.mean(np.logaddexp(0, -y * (X @ w))),
        np.zeros(8),
        jac=lambda w: 0.7 * w + logistic_gradient(X, y, w, 1 / n),
        options={"gtol": 1e-9},
    )
    assert_scale(
        lambda C: distance_to_optimum(mean.x, logistic_gradient(X, y, mean.x, C), 0, 1), scales.from_lambda(0.7, n)
    )


def test_texts_with_the_whole_squared_norm(regression):
    X, y, _ = regression
    n = len(y)
    w = np.linalg.solve(X.T @ X / n + 0.7 * np.eye(8), X.T @ y / n)  # lambda |w|^2 + 1/n sum r^2
    C = scales.from_lambda_without_half(0.7, n)
    assert_scale(lambda C: distance_to_optimum(w, squares_gradient(X, y, w, C), 0, 1), C)
    np.testing.assert_allclose(Ridge(scales.to_ridge(C), fit_intercept=False).fit(X, y).coef_, w, rtol=1e-10)


def test_texts_with_the_1_norm(regression):
    X, y, _ = regression
    n = len(y)
    w = cvxpy.Variable(8)
    objective = cvxpy.sum_squares(y - X @ w) / n + 0.9 * cvxpy.norm1(w)
    solve(objective)
    C = scales.from_lambda(0.9, n)
    ours = Lasso(scales.to_lasso(C, n), fit_intercept=False, tol=1e-14, max_iter=100_000).fit(X, y).coef_
    np.testing.assert_allclose(w.value, ours, atol=1e-6)
    assert 0 < np.count_nonzero(ours) < 8


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge(regression, weighted):
    X, y, weights = regression
    weights = weights if weighted else np.ones_like(y)
    w = Ridge(3.0, fit_intercept=False).fit(X, y, sample_weight=weights).coef_
    assert_scale(lambda C: distance_to_optimum(w, squares_gradient(X, y, w, C, weights), 0, 1), scales.from_ridge(3.0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.4, 1.0])
def test_lasso_and_elastic_net(regression, weighted, l1_ratio):
    X, y, weights = regression
    weights = weights if weighted else np.ones_like(y)
    machine = ElasticNet(alpha=0.3, l1_ratio=l1_ratio, fit_intercept=False, tol=1e-14, max_iter=100_000)
    w = machine.fit(X, y, sample_weight=weights).coef_
    C, ratio = scales.from_elastic_net(0.3, l1_ratio, weights.sum())
    assert scales.from_lasso(0.3, weights.sum()) == C
    assert_scale(lambda C: distance_to_optimum(w, squares_gradient(X, y, w, C, weights), ratio, 1 - ratio), C)


def test_logistic_regression_has_our_C(labels):
    X, y = labels
    w = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y).coef_[0]
    assert_scale(lambda C: distance_to_optimum(w, logistic_gradient(X, y, w, C), 0, 1), 0.3)


def test_linear_svc_has_our_C(labels):
    X, y = labels
    w = LinearSVC(C=0.03, fit_intercept=False, dual=False, tol=1e-12).fit(X, y).coef_[0]  # squared hinge

    def gradient(C):
        return -2 * C * X.T @ (y * np.maximum(0, 1 - y * (X @ w)))

    assert_scale(lambda C: distance_to_optimum(w, gradient(C), 0, 1), 0.03)


def test_svc_and_linear_svr_have_our_C(regression, labels):
    X, y = labels
    w, b = cvxpy.Variable(8), cvxpy.Variable()
    hinge = cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(y, X @ w + b)))
    solve(cvxpy.sum_squares(w) / 2 + 0.05 * hinge)
    np.testing.assert_allclose(SVC(kernel="linear", C=0.05, tol=1e-10).fit(X, y).coef_[0], w.value, atol=1e-6)
    X, y, _ = regression
    tube = cvxpy.sum(cvxpy.pos(cvxpy.abs(y - X @ w) - 0.2))
    solve(cvxpy.sum_squares(w) / 2 + 0.05 * tube)
    machine = LinearSVR(epsilon=0.2, C=0.05, fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    np.testing.assert_allclose(machine.fit(X, y).coef_, w.value, atol=1e-6)


def test_sgd_classifier(labels):
    X, y = labels
    w = SGDClassifier(loss="log_loss", alpha=0.5, **LONG).fit(X, y).coef_[0]
    C = scales.from_sgd(0.5, len(y))
    exact = LogisticRegression(C=C, fit_intercept=False, tol=1e-12).fit(X, y).coef_[0]
    np.testing.assert_allclose(w, exact, atol=1e-4 * np.abs(exact).max())


def test_sgd_regressor_halves_its_squares(regression):
    X, y, _ = regression
    w = SGDRegressor(alpha=0.5, **LONG).fit(X, y).coef_
    exact = Ridge(scales.to_ridge(scales.from_lasso(0.5, len(y))), fit_intercept=False).fit(X, y).coef_
    np.testing.assert_allclose(w, exact, atol=1e-3 * np.abs(exact).max())


def test_one_class_nu(regression):
    X = regression[0] + 2.0
    n = len(X)
    C = scales.from_nu(0.3, n)
    w, rho = cvxpy.Variable(8), cvxpy.Variable()
    objective = cvxpy.sum_squares(w) / 2 - rho + C * cvxpy.sum(cvxpy.pos(rho - X @ w))
    solve(objective)
    machine = OneClassSVM(kernel="linear", nu=0.3, tol=1e-10).fit(X)
    # scikit-learn lets its dual variables sum to nu n where ours sum to 1: the same set, w and rho times nu n.
    np.testing.assert_allclose(machine.coef_[0] * C, w.value, atol=1e-6)
    np.testing.assert_allclose(machine.offset_[0] * C, rho.value, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize(("to_C", "from_C"), INVERSES)
def test_bad_values_are_named(to_C, from_C, value):
    with pytest.raises(EmpiriskError, match=r"(strength|alpha|nu)="):
        to_C(value, 10)
    with pytest.raises(EmpiriskError, match="C="):
        from_C(value, 10)
    with pytest.raises(EmpiriskError, match="n="):
        to_C(0.5, value)


def test_bad_ratios_and_nus_are_named():
    with pytest.raises(EmpiriskError, match=r"l1_ratio=1\.5"):
        scales.from_elastic_net(1.0, 1.5, 10)
    with pytest.raises(EmpiriskError, match=r"l1_ratio=-0\.5"):
        scales.to_elastic_net(1.0, -0.5, 10)
    with pytest.raises(EmpiriskError, match=r"nu=1\.5"):
        scales.from_nu(1.5, 10)
    with pytest.raises(EmpiriskError, match=r"at least 1/n"):
        scales.to_nu(0.05, 10)
