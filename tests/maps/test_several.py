"""Learned weights of several kernels, against the joint problem in a general convex solver."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import empirisk as er
from empirisk.errors import Unsuitable
from empirisk.fits import fit
from tests.fuzz import cases

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RANDOM.normal(size=40)
KERNELS = [
    er.kernels.Gaussian(0.5).on([0]),
    er.kernels.Linear(),
    er.kernels.Gaussian(1.0).on([2]),
    er.kernels.Gaussian(2.0),
]
LOSSES = {
    "Ridge": cp.square,
    "SVR": lambda r: cp.pos(cp.abs(r) - 0.1),
    "SVM": lambda t: cp.pos(1 - t),
    "LogisticRegression": lambda t: cp.logistic(-t),
}


def joint_optimum(name, norm, C, weights, target):
    """min 1/2 |(|w_1|, ..., |w_M|)|_q^2 + C sum c loss, q = 1 or 4/3: what is left when beta is minimised out."""
    sizes, f = [], cp.Variable()
    for kernel in KERNELS:
        values, vectors = np.linalg.eigh(kernel(X))
        kept = values > 1e-12 * values[-1]
        w = cp.Variable(kept.sum())
        sizes.append(cp.norm(w))
        f = f + (vectors[:, kept] * np.sqrt(values[kept])) @ w
    terms = LOSSES[name](f - target if name in ("Ridge", "SVR") else cp.multiply(target, f))
    penalty = 0.5 * cp.square(cp.sum(cp.hstack(sizes)) if norm == 1 else cp.pnorm(cp.hstack(sizes), 4 / 3))
    problem = cp.Problem(cp.Minimize(penalty + C * cp.sum(cp.multiply(weights, terms))))
    return float(problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8))


@pytest.mark.row("K13")
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("name", LOSSES)
def test_the_joint_problem_is_solved(name, norm):
    machine = getattr(er, name)(C=2.0, features=er.maps.SeveralKernels(KERNELS, norm))
    target = F if name in ("Ridge", "SVR") else np.where(F > 0, 1.0, -1.0)
    weights = RANDOM.uniform(0.5, 2.0, len(F))
    machine.fit(X, target, weights)
    truth = joint_optimum(name, norm, 2.0, weights, target)
    certificate, beta = machine.certificate_, machine.features_.beta_
    assert certificate.converged
    assert certificate.primal == pytest.approx(truth, rel=2e-6)
    assert certificate.primal - certificate.gap <= truth * (1 + 1e-7)  # a true bound
    assert np.linalg.norm(beta, norm) == pytest.approx(1.0)
    assert beta.min() >= 0
    alone = [clone(machine).set_params(features=kernel).fit(X, target, weights) for kernel in KERNELS]
    assert certificate.primal <= min(fit.certificate_.primal for fit in alone) * (1 + 1e-12)


@pytest.mark.row("K13")
def test_norm_one_selects_and_norm_two_combines():
    parts = [er.kernels.Gaussian().on([j]) for j in range(3)]
    selected = er.Ridge(features=er.maps.SeveralKernels(parts, 1)).fit(X, np.sin(X[:, 0])).features_.beta_
    combined = er.Ridge(features=er.maps.SeveralKernels(parts, 2)).fit(X, np.sin(X[:, 0])).features_.beta_
    assert np.count_nonzero(selected > 1e-6) < 3
    assert selected.argmax() == combined.argmax() == 0
    assert combined.min() > 1e-4


def test_the_machine_is_that_of_the_weighted_sum():
    machine = er.SVM(C=2.0, features=er.maps.SeveralKernels(KERNELS, 2)).fit(X, F > 0)
    total = sum(float(b) * k for b, k in zip(machine.features_.beta_, KERNELS, strict=True))
    plain = er.SVM(C=2.0, features=total).fit(X, F > 0)
    np.testing.assert_allclose(machine.decision_function(X), plain.decision_function(X), atol=1e-4)
    part = machine.linear_part()
    expected = machine.features_.beta_[1] * X[machine.support_].T @ machine.dual_coef_[0]
    np.testing.assert_allclose(part, [expected], rtol=1e-9)


def test_several_outputs_share_the_weights():
    y = np.digitize(F, [-0.5, 0.5])
    for machine in (er.SVM(), er.LogisticRegression(), er.SVM(multiclass="one_vs_one")):
        machine.set_params(features=er.maps.SeveralKernels(KERNELS)).fit(X, y)
        assert machine.certificate_.converged
        assert machine.features_.beta_.shape == (4,)
        assert machine.score(X, y) > 0.8


def test_one_kernel_is_that_kernel_and_names_will_do():
    one = er.Ridge(features=er.maps.SeveralKernels(["gaussian"])).fit(X, F)
    np.testing.assert_allclose(one.predict(X), er.Ridge(features="gaussian").fit(X, F).predict(X), atol=1e-9)
    assert er.maps.SeveralKernels(["linear", "gaussian"]).fit(X).block(X).shape == (40, 40)


def test_parameters_sparse_rows_and_searches():
    machine = er.Ridge(features=er.maps.SeveralKernels(["linear", "gaussian"]))
    search = GridSearchCV(machine, {"features__norm": [1, 2], "C": [0.1, 1.0]}, cv=3).fit(X, F)
    assert set(search.best_params_) == {"features__norm", "C"}
    thin = clone(machine).fit(sparse.csr_matrix(X), F)
    np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X)), clone(machine).fit(X, F).predict(X), atol=1e-4)
    assert clone(machine).set_params(C="cv", cv=3, Cs=3).fit(X, F).certificate_.converged


def test_without_memory_for_the_matrices_nothing_changes():
    machine = er.LogisticRegression(features=er.maps.SeveralKernels(KERNELS, 2))
    kept = clone(machine).fit(X, F > 0)
    with er.config(memory=8 * 7 * 40**2):
        streamed = clone(machine).fit(X, F > 0)
    np.testing.assert_allclose(streamed.features_.beta_, kept.features_.beta_, atol=1e-4)


def test_bad_arguments_are_sentences():
    for features, message in (
        (er.maps.SeveralKernels([]), "not empty"),
        (er.maps.SeveralKernels("linear"), "must be a list"),
        (er.maps.SeveralKernels(["linear"], norm=3), "norm=3 must be 1"),
        (er.maps.SeveralKernels(["linear", "spectrum"]), "mixes kernels on strings and vectors"),
    ):
        with pytest.raises(ValueError, match=message):
            er.SVM(features=features).fit(X, F > 0)


def test_a_time_limit_ends_the_search():
    with pytest.warns(Warning, match="max_time"):
        er.SVM(features=er.maps.SeveralKernels(KERNELS), max_time=1e-9).fit(X, F > 0)


@pytest.mark.row("K13")
def test_where_no_weights_can_be_learned_they_are_refused():
    several = er.maps.SeveralKernels(KERNELS)
    for machine in (er.KNNClassifier(), er.KNNRegressor(), er.NearestCentroid(), er.Perceptron()):
        with pytest.raises(Unsuitable, match=r"learns together with a machine|has weights to learn"):
            machine.set_params(features=several).fit(X, F > 0)
    with pytest.raises(Unsuitable, match="all that features= holds"):
        er.SVM(features=several + er.kernels.Linear()).fit(X, F > 0)


@pytest.mark.row("K13")
def test_kernels_on_different_columns_of_a_table():
    table = pd.DataFrame({"x": X[:, 0], "word": np.where(F > 0, "aab", "bbc")})
    parts = [er.kernels.Gaussian().on("x"), er.kernels.Spectrum(2).on("word")]
    machine = er.SVM(features=er.maps.SeveralKernels(parts, 2)).fit(table, F > 0)
    assert machine.certificate_.converged
    assert machine.score(table, F > 0) == 1.0


def test_fits_that_miss_their_tolerance_do_not_lead_the_search_about():
    machine = er.SVR(features=er.maps.SeveralKernels(KERNELS), solver="dual_ascent", max_iter=2, C=100.0)
    with pytest.warns(Warning, match="did not reach tol"):
        machine.fit(X, F)
    fits = int(machine.certificate_.reason.split("weights of the kernels by ")[1].split()[0])
    assert len(KERNELS) < fits <= len(KERNELS) + 3


def test_the_gap_holds_the_rounding_of_kernels_and_targets():
    near = np.column_stack([X[:6, 0], np.full((6, 2), 1e6)])
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1e12])
    alone = er.Ridge(C=0.1, features=er.kernels.Linear(), tol=1e-3).fit(near, y).certificate_
    several = er.maps.SeveralKernels([er.kernels.Linear()])
    joint = er.Ridge(C=0.1, features=several, tol=1e-3).fit(near, y).certificate_
    assert alone.gap > 1e3 * np.finfo(float).eps * alone.primal
    assert joint.gap == pytest.approx(alone.gap, rel=0.1)


def test_solvers_in_vain_are_not_asked_at_all_weights(monkeypatch):
    """Targets of 1e45 far from the origin: no solver has digits for them, at any weights."""
    case, solve, names = cases.make(1025612), fit._solve, []
    monkeypatch.setattr(fit, "_solve", lambda solver, *rest: names.append(solver.name()) or solve(solver, *rest))
    machine = case.machine.fit(case.X, case.y, sample_weight=case.weights)
    assert f"by {names.count('closed_form')} fits" in machine.certificate_.reason
    assert len(names) - names.count("closed_form") <= 3 < names.count("closed_form")


@pytest.mark.filterwarnings("error")
def test_energies_whose_squares_are_beyond_floats_have_a_norm():
    several = er.maps.SeveralKernels(KERNELS[:2], norm=2)
    assert several.largest(np.array([3e200, 4e200])) == pytest.approx(5e200)
