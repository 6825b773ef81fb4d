"""Certificates name the algorithm that ran, and its reason, on every way through the table."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import empirisk as er
from empirisk import solvers
from empirisk.certificate import Proof
from empirisk.errors import Unsuitable
from empirisk.fits import passes
from empirisk.fits.fit import Limits, SolverRun
from empirisk.linalg.design import design_of
from empirisk.problem import Point, Problem
from empirisk.solvers import choose
from empirisk.solvers.closed.factored import Factored
from empirisk.solvers.corners.interior_point import InteriorPoint
from tests.cases import make

PENALTIES = ["l2", "l1", "elastic_net", "none", er.penalties.GroupL1(2)]
FEATURES = [None, er.kernels.Gaussian(2.0)]
MARGIN = ["perceptron", "hinge", "squared_hinge", "logistic", "exponential", er.losses.SoftHinge(0.5, 0.3), "squared"]
RESIDUAL = [
    "squared",
    "absolute",
    er.losses.Power(1.3),
    er.losses.Power(3.0),
    "epsilon_insensitive",
    "squared_absolute",
]
REASONS = {row.reason: row.solver.name() for row in choose.TABLE}


@pytest.fixture
def ran(monkeypatch):
    """The names of the solvers whose own code did the work, in order; `Factored` hands it on."""
    names, stack = [], []
    for name, cls in solvers.NAMES.items():

        def solve(self, *args, _name=name, _solve=cls.solve, **kwargs):
            stack.append(self)
            try:
                return _solve(self, *args, **kwargs)
            finally:
                stack.pop()
                if not isinstance(self, Factored) and all(isinstance(above, Factored) for above in stack):
                    names.append(_name)

        monkeypatch.setattr(cls, "solve", solve)
    return names


def data(rows=24):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 4))
    return X, X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * random.normal(size=rows)


def check(machine, X, y, ran):
    """Fit, and compare the certificate with what ran; a combination without a meaning is refused before any work."""
    ran.clear()
    try:
        machine.fit(X, y)
    except Unsuitable:
        assert ran == []
        return False
    certificate = machine.certificate_
    named = certificate.solver.split(" and ")
    assert set(named) <= set(ran)
    if "; after " not in certificate.reason:
        assert set(named) == set(ran)
    # Of the reasons in the table, those of the solvers named are there, and of a factor that it was one.
    stated = {name for reason, name in REASONS.items() if reason in certificate.reason}
    assert stated - {"factored"} == set(named)
    return True


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("features", FEATURES, ids=["explicit", "kernel"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_the_certificate_names_what_ran(penalty, features, ran):
    X, t = data()
    several, classes = np.column_stack([t, -t + X[:, 0]]), np.digitize(t, [-0.7, 0.7])
    limits = {"penalty": penalty, "C": 0.3, "tol": 1e-4, "max_iter": 300}
    fitted = sum(check(er.Classifier(loss, features, **limits), X, y, ran) for loss in MARGIN for y in (t > 0, classes))
    for loss in ("softmax", "crammer_singer"):
        fitted += check(er.Classifier(loss, features, **limits), X, classes, ran)
    fitted += sum(check(er.Regressor(loss, features, **limits), X, y, ran) for loss in RESIDUAL for y in (t, several))
    assert fitted == (28 if features is None or penalty in ("l2", "none") else 0)


def test_the_ways_that_once_were_named_wrongly(ran):
    X, t = data()
    y, kernel = np.digitize(t, [-0.7, 0.7]), er.kernels.Gaussian(2.0)
    expected = {
        er.Classifier("crammer_singer", kernel): "interior_point",
        er.Classifier("crammer_singer"): "interior_point",
        er.Classifier("softmax", penalty="l1"): "interior_point",
        er.Classifier("softmax"): "newton",
        er.Classifier("softmax", kernel): "newton",
        er.Perceptron(features=kernel): "perceptron",
    }
    for machine, name in expected.items():
        ran.clear()
        machine.fit(X, y)
        assert set(ran) == {name}
        assert machine.solver_ == machine.certificate_.solver == name
    machine = er.Regressor(er.losses.Power(1.3), kernel, solver=Factored()).fit(X, t)
    assert machine.certificate_.solver == "envelope" == ran[-1]
    assert machine.certificate_.reason == (
        "asked for by name; curvature without bounds: Newton's method on envelopes of the loss"
    )


def test_a_solver_further_down_the_table_says_whom_it_follows(monkeypatch, ran):
    problem, _ = make("hinge", "l2", 1.0)

    def tired(self, problem, watch, start=None):
        watch.status = "stalled"
        return problem.origin()

    monkeypatch.setattr(InteriorPoint, "solve", tired)
    certificate = SolverRun("auto", Limits(1e-6, None, None))([problem])[0].certificate
    assert certificate.converged
    assert certificate.solver == "dual_ascent" == ran[-1]
    assert certificate.reason.endswith("; after interior_point (stalled)")


def test_what_was_done_to_a_problem_is_said(monkeypatch):
    X, t = data()
    hard = er.SVM(C=np.inf).fit(X, np.sign(X[:, 0]))
    assert "C=inf, kept by an exact penalty of C=" in hard.certificate_.reason
    monkeypatch.setattr(passes, "MANY", 10)
    twice = er.SVM(features=er.kernels.Gaussian(2.0)).fit(np.tile(X, (3, 1)), np.tile(np.sign(t), 3))
    assert "72 rows as 24 different ones" in twice.certificate_.reason


def test_problems_that_took_different_ways_are_all_named(monkeypatch, ran):
    X, t = data()
    y = np.column_stack([t, t + X[:, 0]])
    original, tired = InteriorPoint.solve, []

    def tired_once(self, problem, watch, start=None):
        if not tired:
            tired.append(True)
            watch.status = "stalled"
            return problem.origin()
        return original(self, problem, watch, start)

    monkeypatch.setattr(InteriorPoint, "solve", tired_once)
    machine = er.Regressor("absolute").fit(X, y)
    assert machine.certificate_.solver == "dual_ascent and interior_point"
    assert machine.certificate_.reason.count(" and ") >= 1


@pytest.mark.parametrize("level", [1.0, 7.3, -1e9, 1e30])
@pytest.mark.parametrize("features", [None, "linear", er.kernels.Gaussian(2.0)], ids=["explicit", "linear", "gaussian"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "squared_absolute", "power"])
def test_a_constant_target_is_fitted_to_its_rounding(loss, features, level):
    X, _ = data()
    y = np.where(X[:, 0] > 0, 3 * (0.1 * level), 0.3 * level)  # the same number but for its last digit
    machine = er.Regressor(loss, features=features).fit(X, y)
    assert machine.certificate_.converged
    assert machine.predict(X) == pytest.approx(y, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*did not reach tol:sklearn.exceptions.ConvergenceWarning")  # gaps hold there too
@pytest.mark.parametrize("degree", [3, 5, 9])
def test_the_gap_holds_for_the_kernel_without_its_rounding(degree):
    exact = np.vectorize(Fraction, otypes=[object])
    for seed in range(20):
        random = np.random.default_rng(seed)
        X, C = 10 * np.outer(random.normal(size=8), random.normal(size=12)), float(random.choice([0.01, 0.3, 1, 30]))
        y = np.where(np.arange(8) < 4, -1.0, 1.0)
        machine = er.LeastSquaresClassifier(
            C=C, features=er.kernels.Polynomial(degree), penalty="l2", fit_intercept=False
        )
        found = machine.fit(X, y).certificate_
        rows, beta, t = exact(X), exact(np.zeros(8)), exact(y)
        beta[machine.support_] = exact(machine.dual_coef_.ravel())
        K = (rows @ rows.T + 1) ** degree
        stored = beta @ K @ beta / 2 + Fraction(C) * np.sum((t - K @ beta) ** 2)
        least = t @ _solution(K + np.diag([1 / (2 * Fraction(C))] * 8), t) / 2
        assert found.primal - found.gap <= least <= stored <= found.primal + found.gap


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("far", [1e6, 1e7, 3e7])
@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array])
def test_the_bound_holds_where_columns_depend_but_for_little_and_lie_far_from_zero(rows, far):
    exact = np.vectorize(Fraction, otypes=[object])
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, y = far + random.normal(size=(8, 2)), random.normal(-1.0, 0.1, size=8)
        products = er.maps.Polynomial(interaction_only=True)
        found = er.LeastSquares(features=products, solver=er.solvers.Newton(), tol=1e-10).fit(rows(X), y).certificate_
        A, t = exact(np.column_stack([products.fit(X).transform(X), np.ones(8)])), exact(y)
        least = np.sum((A @ _solution(A.T @ A, A.T @ t) - t) ** 2)
        assert found.dual <= least


def _solution(matrix, right):
    """The solution of a positive definite system of fractions."""
    system = np.column_stack([matrix, right])
    for k in range(len(system)):
        system[k] /= system[k, k]
        system[k + 1 :] -= np.multiply.outer(system[k + 1 :, k], system[k])
    for k in reversed(range(len(system))):
        system[:k] -= np.multiply.outer(system[:k, k], system[k])
    return system[:, -1]


def test_the_gap_holds_beside_the_corner_of_a_joint_loss():
    hidden = 0
    for seed in range(20):
        x, (large, _) = np.random.default_rng(seed).normal(size=(2, 2))
        terms = np.array([[1e6 * large, 1.001e6 * large], [1 - 1e6 * large, -1.001e6 * large]])
        w = terms / x[:, None]  # F_0 - F_1 is 1, to rounding
        rows, loss = design_of(x[None], False), er.losses.CrammerSinger()
        problem = Problem(loss, er.penalties.NoPenalty(), 1e9, rows, np.zeros(1), np.ones(1), False, 2)
        found = Proof(problem, Point(w)).with_rounding()
        ahead = sum(Fraction(a) * (Fraction(own) - Fraction(other)) for a, (own, other) in zip(x, w, strict=True))
        stored = 10**9 * max(1 - ahead, 0)
        assert abs(stored - Fraction(found.primal)) <= found.gap
        hidden += found.primal < stored
    assert hidden


@pytest.mark.parametrize("loss", ["absolute", er.losses.Quantile(0.1)])
def test_a_fit_that_interpolates_targets_far_from_zero_has_converged(loss):
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(15, 30)), 2000.0 + random.normal(size=15)
        machine = er.Regressor(loss, penalty="none").fit(X, y)
        assert machine.certificate_.converged
        assert np.abs(machine.predict(X) - y).max() <= 1e-10
