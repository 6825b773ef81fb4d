"""Weights that are not negative: against CVXPY and against scikit-learn, with and without penalties."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn import linear_model

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.solvers.base import Watch

pytestmark = pytest.mark.row("E3")

MACHINES = [
    (er.LeastSquares(positive=True), 0.0, 0.0, 1.0),
    (er.Ridge(0.7, positive=True), 0.0, 1.0, 0.7),
    (er.Lasso(0.1, positive=True), 1.0, 0.0, 0.1),
    (er.ElasticNet(0.2, l1_ratio=0.3, positive=True), 0.3, 0.7, 0.2),
]


def data(seed, rows, columns):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, columns)) * random.uniform(0.1, 10.0, columns)
    X[:, 1] += X[:, 0]
    return X, X @ random.normal(size=columns) + random.normal(size=rows) + 3, random.uniform(0.5, 2.0, rows)


def test_machines_find_the_minimum_of_cvxpy_and_prove_it():
    wrong = []
    for seed, (rows, columns) in enumerate([(30, 5), (12, 20), (80, 25)]):
        X, y, weights = data(seed, rows, columns)
        for machine, l1, l2, C in MACHINES:
            for intercept in (True, False):
                machine.set_params(fit_intercept=intercept).fit(X, y, weights)
                w, b = cp.Variable(columns, nonneg=True), cp.Variable() if intercept else 0.0
                losses = cp.sum(cp.multiply(weights, cp.square(y - X @ w - b)))
                problem = cp.Problem(cp.Minimize(l1 * cp.sum(w) + l2 / 2 * cp.sum_squares(w) + C * losses))
                problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
                found = machine.certificate_
                above = (found.primal - problem.value) / max(abs(problem.value), 1e-3)
                if not (found.converged and found.relative_gap < 1e-10 and above < 1e-8 and machine.coef_.min() >= 0):
                    wrong.append((machine, seed, intercept, found, above))
    assert not wrong


def test_least_squares_is_that_of_scikit_learn():
    X, y, weights = data(3, 60, 10)
    ours = er.LeastSquares(positive=True).fit(X, y, weights)
    theirs = linear_model.LinearRegression(positive=True).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)
    both = er.LeastSquares(positive=True).fit(X, np.column_stack([y, -y]))
    assert both.coef_.shape == (2, 10)
    assert both.coef_.min() >= 0


def test_other_losses_take_the_constraint_as_a_penalty():
    X, y, _ = data(4, 60, 6)
    for loss, target in (("logistic", y > 3), ("hinge", y > 3), ("huber", y), ("absolute", y)):
        kind = er.Classifier if target.dtype == bool else er.Regressor
        machine = kind(loss, penalty=er.penalties.Positive("elastic_net"), C=0.3).fit(X, target)
        assert machine.certificate_.converged
        assert machine.coef_.min() >= 0 < machine.coef_.max()


def test_what_has_no_meaning_is_refused():
    X, y, _ = data(5, 20, 3)
    with pytest.raises(Unsuitable, match="needs the weights themselves, which a kernel does not give"):
        er.Ridge(positive=True, features="gaussian").fit(X, y)
    with pytest.raises(EmpiriskError, match="positive=3"):
        er.Ridge(positive=3).fit(X, y)
    with pytest.raises(EmpiriskError, match="C='loo' has a closed form"):
        er.Ridge("loo", positive=True).fit(X, y)
    assert er.Ridge("cv", positive=True).fit(X, y).coef_.min() >= 0


def test_a_start_near_the_solution_saves_steps():
    X, y, _ = data(6, 80, 30)
    (problem,) = er.Ridge(C=1.0, positive=True).problems(X, y)
    solver, cold, warm = er.solvers.NonNegative(), Watch(), Watch()
    first = solver.solve(problem, cold)
    again = solver.solve(problem, warm, first)
    np.testing.assert_allclose(again.w, first.w, atol=1e-12)
    assert warm.iterations <= 2 < cold.iterations
