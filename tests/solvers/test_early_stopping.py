"""Early stopping around any solver: the best point for the held-out rows is kept."""

import numpy as np
import pytest

import empirisk as er


def noise(n=80, d=60):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    return X, np.where(X[:, 0] + 2 * random.normal(size=n) > 0, 1, 0)


@pytest.mark.row("E8")
@pytest.mark.parametrize("solver", ["gradient_descent", "proximal", "newton", "coordinate_descent", "dual_ascent"])
def test_the_best_point_for_the_held_out_rows_is_kept(solver):
    X, y = noise()
    stopping = er.solvers.EarlyStopping(solver, validation_fraction=0.25, patience=3)
    machine = er.LogisticRegression(C=1e3, solver=stopping, max_iter=500)
    if solver == "coordinate_descent":
        machine = er.LogisticRegression(penalty="l1", C=1e3, solver=stopping, max_iter=500)
    if solver == "dual_ascent":
        machine = er.SVM(C=1e3, solver=stopping, max_iter=500)
    machine.fit(X, y)
    losses = machine.history_["validation"]
    held_out, rows = stopping._split(len(y))
    problem = machine.problems(X[held_out], y[held_out])[0]
    signs = 2.0 * y[held_out] - 1
    reached = problem.loss.value(signs, machine.decision_function(X[held_out])).mean()
    assert reached == pytest.approx(losses.min(), rel=1e-9)
    assert len(losses) == machine.n_iter_
    if machine.stopped_ == "stopped early":
        assert losses.argmin() == len(losses) - 4
    assert len(rows) == 60


def test_it_stops_before_the_optimum_where_that_overfits():
    X, y = noise()
    machine = er.LogisticRegression(C=1e3, solver=er.solvers.EarlyStopping(validation_fraction=0.25)).fit(X, y)
    whole = er.LogisticRegression(C=1e3).fit(X, y)
    assert machine.certificate_.status == "stopped early"
    assert np.linalg.norm(machine.coef_) < 0.5 * np.linalg.norm(whole.coef_)
    assert machine.certificate_.gap > 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"validation_fraction": 0.0}, "between 0 and 1"), ({"patience": 0}, "patience=0 of EarlyStopping")],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(er.errors.EmpiriskError, match=words):
        er.LogisticRegression(solver=er.solvers.EarlyStopping(**parameters)).fit(*noise())


def test_kernels_are_refused():
    with pytest.raises(er.errors.EmpiriskError, match="explicit features, since rows are held out"):
        er.SVM(features="gaussian", solver=er.solvers.EarlyStopping()).fit(*noise())
