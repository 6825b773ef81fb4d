"""Early stopping around any solver: the best point for the held-out rows is kept."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er


def noise(n=80, d=60):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    return X, np.where(X[:, 0] + 2 * random.normal(size=n) > 0, 1, 0)


MACHINES = {
    "gradient_descent": er.LogisticRegression(C=1e3),
    "proximal": er.LogisticRegression(C=1e3),
    "newton": er.LogisticRegression(C=1e3),
    "coordinate_descent": er.LogisticRegression(penalty="l1", C=1e3),
    "dual_ascent": er.SVM(C=1e3),
    "interior_point": er.SVM(C=1e3),
    "envelope": er.SVM(C=1e3),
    "perceptron": er.Classifier("perceptron", penalty="none"),
    "sgd": er.LogisticRegression(C=1e3),
    "decomposition": er.SVM(C=1e3, features=er.kernels.Gaussian(5.0)),
    "newton behind a kernel": er.LogisticRegression(C=1e3, features=er.kernels.Gaussian(5.0)),
    "dual_ascent behind a kernel": er.SVM(C=1e3, features=er.kernels.Gaussian(5.0)),
    "doubly_stochastic": er.SVM(C=1e3, features=er.kernels.Gaussian(5.0)),
}


@pytest.mark.row("E8")
@pytest.mark.parametrize("solver", MACHINES)
def test_the_best_point_for_the_held_out_rows_is_kept(solver):
    X, y = noise()
    stopping = er.solvers.EarlyStopping(solver.split()[0], validation_fraction=0.25, n_iter_no_change=3)
    machine = clone(MACHINES[solver]).set_params(solver=stopping, max_iter=500)
    machine.fit(X, y)
    losses = machine.history_["validation"]
    held_out, rows = stopping._split(len(y))
    signs = 2.0 * y[held_out] - 1
    reached = losses_of(machine).value(signs, machine.decision_function(X[held_out])).mean()
    assert reached == pytest.approx(losses.min(), rel=1e-9)
    assert len(losses) == machine.n_iter_
    assert machine.stopped_ in ("early_stopping", "finished", "max_iter")
    waited = len(losses) - 1 - losses.argmin()
    assert waited <= 3
    if solver in ("gradient_descent", "proximal", "dual_ascent"):  # these would go on for long
        assert waited == 3
    assert len(rows) == 60
    if machine.features is not None:
        assert not np.isin(machine.support_, held_out).any()


def losses_of(machine):
    return er.losses.find(machine.loss)


def test_it_stops_before_the_optimum_where_that_overfits():
    X, y = noise()
    machine = er.LogisticRegression(C=1e3, solver=er.solvers.EarlyStopping(validation_fraction=0.25)).fit(X, y)
    whole = er.LogisticRegression(C=1e3).fit(X, y)
    assert machine.certificate_.status == "early_stopping"
    assert np.linalg.norm(machine.coef_) < 0.5 * np.linalg.norm(whole.coef_)
    assert machine.certificate_.gap > 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"validation_fraction": 0.0}, "between 0 and 1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change=0 of EarlyStopping"),
    ],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(er.errors.EmpiriskError, match=words):
        er.LogisticRegression(solver=er.solvers.EarlyStopping(**parameters)).fit(*noise())


def test_it_allows_as_many_iterations_as_the_solver_inside():
    X, y = noise()
    inner = er.solvers.SGD(rate=1e-3)
    stopping = er.solvers.EarlyStopping(inner, n_iter_no_change=10**6)
    with pytest.warns(ConvergenceWarning, match="finished"):  # at so small a rate
        machines = [er.LogisticRegression(C=1.0, solver=solver).fit(X, y) for solver in (inner, stopping)]
    assert machines[0].n_iter_ == machines[1].n_iter_ > inner.iteration_limit
