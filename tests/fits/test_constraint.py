"""The constraint form: the least sum of losses within a radius, its bound, and the C that gives the same answer."""

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import empirisk as er
from empirisk import losses, penalties
from empirisk.fits import fit
from tests.truth import constrained_optima

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 6)) + 1.0
NUMBERS = X[:, 0] - X[:, 1] + RANDOM.normal(size=40)
LABELS, THREE = (NUMBERS > 0).astype(int), np.digitize(NUMBERS, np.quantile(NUMBERS, [0.33, 0.66]))
WEIGHTS = RANDOM.uniform(0.5, 2.0, 40)

REGRESSION = ["squared", "absolute", "epsilon_insensitive", "huber", er.losses.Quantile(0.3)]
CLASSIFICATION = ["logistic", "hinge", "squared_hinge", "exponential"]
PENALTIES = ["l2", "l1", "elastic_net", er.penalties.GroupL1(2)]


def machine_for(loss, **parameters):
    """A machine of the loss with its targets, those that CVXPY is given, and the number of classes of a joint loss."""
    found = losses.find(loss)
    if found.joint:
        return er.Classifier(loss, **parameters), THREE, THREE.astype(float), 3
    if found.residual_form:
        return er.Regressor(loss, **parameters), NUMBERS, NUMBERS, 0
    return er.Classifier(loss, **parameters), LABELS, 2.0 * LABELS - 1, 0


def size(machine) -> float:
    """R of all functions that a machine has learned."""
    penalty, w = penalties.find(machine.penalty), np.atleast_2d(machine.coef_)
    if getattr(machine, "scheme_", "") == "joint":
        return penalty.value(w.T)
    return sum(penalty.value(row) for row in w)


@pytest.mark.row("E9")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION, "softmax", "crammer_singer"], ids=str)
def test_the_losses_are_the_least_within_the_radius(loss, penalty, intercept):
    machine, y, given, classes = machine_for(loss, penalty=penalty, fit_intercept=intercept)
    whole = size(machine.set_params(C=50.0).fit(X, y, WEIGHTS))
    radii = [share * whole for share in (0.01, 0.3, 0.9)]
    optima = constrained_optima(loss, penalty, radii, X, given, WEIGHTS, intercept, classes)
    for radius, best in zip(radii, optima, strict=True):
        machine.set_params(C=er.Constraint(radius)).fit(X, y, WEIGHTS)
        certificate = machine.certificate_
        assert certificate.converged
        assert size(machine) == pytest.approx(radius, rel=1e-4)
        assert size(machine) <= radius * (1 + 1e-9)
        assert certificate.primal == pytest.approx(best, rel=2e-6)
        assert certificate.dual <= best * (1 + 1e-6)


@pytest.mark.row("E9")
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared_hinge", "softmax"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net"])
def test_its_C_gives_the_same_answer(loss, penalty):
    machine, y, *_ = machine_for(loss, penalty=penalty, C=er.Constraint(0.7), tol=1e-10)
    machine.fit(X, y)
    again = clone(machine).set_params(C=machine.C_).fit(X, y)
    np.testing.assert_allclose(again.coef_, machine.coef_, atol=1e-3 * np.abs(machine.coef_).max())
    assert size(again) == pytest.approx(0.7, rel=1e-3)


@pytest.mark.row("E9")
def test_where_the_penalty_jumps_the_answer_lies_between_two_fits():
    machine = er.LeastAbsolute(penalty="l1", C=er.Constraint(0.5)).fit(X, NUMBERS)
    below, above = (er.LeastAbsolute(penalty="l1", C=factor * machine.C_).fit(X, NUMBERS) for factor in (0.999, 1.001))
    assert size(below) < 0.49
    assert size(above) > 0.51
    assert size(machine) == pytest.approx(0.5, rel=1e-9)
    assert machine.certificate_.converged


@pytest.mark.row("E9")
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic", "hinge"])
def test_a_radius_that_holds_all_weights_changes_nothing(loss, penalty):
    free, y, *_ = machine_for(loss, penalty="none")
    free.fit(X, y)
    radius = 3 * penalties.find(penalty).value(np.ravel(free.coef_))
    machine, *_ = machine_for(loss, penalty=penalty, C=er.Constraint(radius))
    machine.fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.primal == pytest.approx(free.certificate_.primal, rel=1e-6)
    assert size(machine) < radius
    assert f"< {radius:.6g}" in machine.certificate_.reason


@pytest.mark.row("E9")
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION, "softmax", "crammer_singer"], ids=str)
def test_a_radius_of_zero_leaves_the_best_constant(loss, penalty):
    machine, y, *_ = machine_for(loss, penalty=penalty, C=er.Constraint(0))
    machine.fit(X, y, WEIGHTS)
    (problem,) = machine_for(loss, penalty=penalty)[0].problems(X, y, WEIGHTS)
    assert machine.certificate_.converged
    assert not machine.coef_.any()
    assert machine.certificate_.primal == pytest.approx(problem.origin_value, rel=1e-9)
    assert machine.C_ > 0


@pytest.mark.row("E9")
def test_the_gap_holds_the_rounding_of_a_perfect_fit():
    machine = er.Regressor("gamma", C=er.Constraint(0.1), tol=1e-3).fit(X, np.full(40, 1e8))
    off = X.astype(np.longdouble) @ machine.coef_ + machine.intercept_ - np.log(np.longdouble(1e8))
    losses = 2 * np.sum(off + np.expm1(-off))
    assert losses > 0
    assert losses <= machine.certificate_.primal + machine.certificate_.gap


@pytest.mark.row("E9")
@pytest.mark.parametrize("radius", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "absolute"])
def test_behind_a_kernel_too(loss, radius):
    kernel = er.kernels.Gaussian(2.0)
    machine, y, given, _ = machine_for(loss, features=kernel, C=er.Constraint(radius))
    machine.fit(X, y)
    K = kernel(X)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    assert machine.certificate_.converged
    if radius:
        (best,) = constrained_optima(loss, "l2", [radius], root, given, np.ones(40), True)
        beta = np.zeros(40)
        beta[machine.support_] = np.ravel(machine.dual_coef_)
        assert 0.5 * beta @ K @ beta <= radius * (1 + 1e-9)
        assert machine.certificate_.primal == pytest.approx(best, rel=1e-5, abs=1e-7)
    else:
        assert not np.any(machine.dual_coef_)


@pytest.mark.row("E9")
def test_several_functions_share_the_radius():
    Y = np.column_stack([NUMBERS, X[:, 2] + RANDOM.normal(size=40)])
    machine = er.Lasso(C=er.Constraint(1.0)).fit(X, Y)
    W, b = cp.Variable((6, 2)), cp.Variable((1, 2))
    value = cp.sum_squares(X @ W + np.ones((40, 1)) @ b - Y)
    best = cp.Problem(cp.Minimize(value), [cp.sum(cp.abs(W)) <= 1.0]).solve(solver=cp.CLARABEL)
    assert np.abs(machine.coef_).sum() == pytest.approx(1.0, rel=1e-9)
    assert machine.certificate_.primal == pytest.approx(best, rel=1e-6)
    for scheme in ("one_vs_rest", "one_vs_one", "error_correcting"):
        machine = er.SVM(C=er.Constraint(1.0), multiclass=scheme).fit(X, THREE)
        assert size(machine) == pytest.approx(1.0, rel=1e-6)
        assert machine.certificate_.converged
        np.testing.assert_allclose(machine.dual_coef_ @ machine.support_vectors_, machine.coef_, atol=1e-3)


@pytest.mark.row("E9")
def test_sparse_rows_weights_and_a_map():
    machine = er.LogisticRegression(C=er.Constraint(0.5), penalty="l1")
    dense = clone(machine).fit(X, LABELS, WEIGHTS)
    np.testing.assert_allclose(
        clone(machine).fit(sparse.csr_array(X), LABELS, WEIGHTS).coef_, dense.coef_, rtol=1e-4, atol=1e-6
    )
    twice = clone(machine).fit(np.vstack([X, X]), np.append(LABELS, LABELS))
    doubled = clone(machine).fit(X, LABELS, np.full(40, 2.0))
    np.testing.assert_allclose(twice.coef_, doubled.coef_, rtol=1e-4, atol=1e-6)
    mapped = er.Ridge(C=er.Constraint(1.0), features=er.maps.Polynomial(2)).fit(X, NUMBERS)
    assert 0.5 * mapped.coef_ @ mapped.coef_ == pytest.approx(1.0, rel=1e-6)


@pytest.mark.row("E9")
def test_a_constraint_is_cloned_searched_evaluated_and_saved(tmp_path):
    machine = er.Ridge(C=er.Constraint(0.5)).fit(X, NUMBERS)
    assert repr(clone(machine)) == "Ridge(C=Constraint(radius=0.5))"
    er.save(machine, tmp_path / "ridge.model")
    loaded = er.load(tmp_path / "ridge.model")
    assert loaded.C.radius == 0.5
    assert loaded.C_ == machine.C_
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
    theirs = GridSearchCV(er.Ridge(C=er.Constraint()), {"C__radius": [1e-4, 1.0]}, cv=3).fit(X, NUMBERS)
    assert theirs.best_params_ == {"C__radius": 1.0}
    ours = er.selection.search(er.Ridge(C=er.Constraint()), {"C__radius": [1e-4, 1.0]}, X, NUMBERS)
    assert ours.best_params_ == {"C__radius": 1.0}
    mixed = er.selection.search(er.Ridge(), {"C": [er.Constraint(1e-4), er.Constraint(1.0)]}, X, NUMBERS)
    assert mixed.best_params_["C"].radius == 1.0
    assert er.evaluate(machine, X, NUMBERS, cv=3).score.value > 0
    assert set(machine.history_) == {"C", "gap", "objective"}
    assert machine.history_["C"][-1] == pytest.approx(machine.C_, rel=1e-2)


@pytest.mark.row("E9")
@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (er.Ridge(C=er.Constraint(-1.0)), "radius=-1.0 of Constraint must be a finite number, zero or positive"),
        (er.Ridge(C=er.Constraint(np.inf)), "radius=inf of Constraint must be"),
        (er.Ridge(C=er.Constraint("1")), "radius='1' of Constraint must be"),
        (er.Regressor("squared", penalty="none", C=er.Constraint(1.0)), "bounds the penalty, and there is none"),
        (er.Ridge(C=er.Constraint), "C=.* must be a positive number"),
        (er.Ridge(C=er.Constraint(1.0), features=er.maps.SeveralKernels(["linear", "gaussian"])), "learns"),
        (er.Lasso(C=er.Constraint(1.0), features="gaussian"), "kernel"),
    ],
    ids=str,
)
def test_a_constraint_without_a_meaning_gets_a_sentence(machine, sentence):
    with pytest.raises(er.errors.EmpiriskError, match=sentence):
        machine.fit(X, NUMBERS)


def test_partial_fit_takes_no_constraint():
    assert not hasattr(er.Ridge(C=er.Constraint(1.0), solver="sgd"), "partial_fit")


@pytest.mark.row("E9")
def test_a_limit_of_time_leaves_weights_within_the_radius():
    random = np.random.default_rng(1)
    rows = random.normal(size=(1500, 2500))
    machine = er.Lasso(C=er.Constraint(5.0), max_time=1e-3)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(rows, rows[:, :40].sum(axis=1))
    assert machine.stopped_ == "max_time"
    assert np.abs(machine.coef_).sum() <= 5.0 * (1 + 1e-9)
    assert machine.certificate_.gap >= 0


def test_a_search_of_the_radius_does_not_ask_every_solver_at_every_C(monkeypatch):
    """Where every fit ends without its last digits, the solver that follows is asked at three C and no more."""
    random, asked = np.random.default_rng(27), []
    solve, certify = er.solvers.Proximal.solve, fit._certify
    monkeypatch.setattr(er.solvers.Proximal, "solve", lambda *given: asked.append(1) or solve(*given))

    def stalled(*given):
        graded = certify(*given)
        return replace(graded, certificate=replace(graded.certificate, status="stalled"))

    monkeypatch.setattr(fit, "_certify", stalled)
    X, y = random.normal(size=(30, 2)), random.integers(0, 2, 30)
    machine = er.SVM(C=er.Constraint(0.1), penalty=er.penalties.GroupL1(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert len(machine.history_["C"]) > 4
    assert len(asked) == 3
    assert machine.certificate_.relative_gap < 1e-4


def test_the_search_ends_where_fits_cannot_prove_what_they_find(monkeypatch):
    """Fits whose gaps stay open bound nothing: once they stand at one C, another C tells no more."""
    run = fit.SolverRun.__call__

    def vaguely(self, *given, **named):
        found = run(self, *given, **named)
        return [
            replace(each, certificate=replace(each.certificate, gap=0.1 * each.certificate.primal)) for each in found
        ]

    monkeypatch.setattr(fit.SolverRun, "__call__", vaguely)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 3)), random.normal(size=20)
    with pytest.warns(ConvergenceWarning):
        machine = er.Ridge(C=er.Constraint(0.01)).fit(X, y)
    assert len(machine.history_["C"]) < 40
    assert machine.certificate_.status == "stalled"
