"""The table of solvers, line searches, and solvers asked for by name."""

from dataclasses import replace

import numpy as np
import pytest

import empirisk as er
from empirisk import losses, penalties, solvers
from empirisk.fits.fit import Limits, SolverRun
from empirisk.linalg.design import design_of
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Problem
from empirisk.solvers.choose import TABLE, choose, ranked
from empirisk.solvers.line_search import line_search
from tests.cases import make

LIMITS = Limits(tol=1e-6, max_iter=None, max_time=None)


@pytest.mark.parametrize(
    ("loss", "penalty", "shape", "expected"),
    [
        ("squared", "l2", (50, 5), "closed_form"),
        ("squared", "none", (50, 5), "closed_form"),
        ("squared", "l1", (50, 5), "coordinate_descent"),
        ("logistic", "l2", (50, 5), "newton"),
        ("logistic", "elastic_net", (50, 5), "coordinate_descent"),
        ("hinge", "l2", (50, 5), "interior_point"),
        ("hinge", "l1", (50, 5), "interior_point"),
        ("hinge", "l2", (20_000, 10), "envelope"),
        ("absolute", "none", (20_000, 10), "envelope"),
        ("hinge", "l2", (6000, 5000), "dual_ascent"),
        ("hinge", "l1", (6000, 5000), "proximal"),
        ("logistic", er.penalties.GroupL1(5), (50, 5), "interior_point"),
        ("hinge", er.penalties.GroupL1(5), (50, 500), "working_groups"),
    ],
)
def test_the_table_picks_what_suits(loss, penalty, shape, expected):
    X = np.zeros(shape, dtype=np.float32)
    y = np.where(np.arange(shape[0]) % 2, 1.0, -1.0)
    problem = Problem(losses.find(loss), penalties.find(penalty), 1.0, design_of(X, False), y, np.ones(shape[0]))
    solver, reason = choose(problem)
    assert solver.name() == expected
    assert reason in {row.reason for row in TABLE}


@pytest.mark.parametrize("name", sorted(solvers.NAMES))
def test_every_solver_has_a_problem_it_can_do_and_says_what_it_cannot(name):
    solver = solvers.find(name)
    assert solver.name() == name
    refusals = []
    kernel = GramDesign(er.kernels.Gaussian(), make("squared", "l2", 0.1)[0].design.X)
    for loss in ("squared", "logistic", "hinge", "softmax", "perceptron", er.losses.Power(1.3)):
        for penalty in ("l2", "l1", "none", "positive", er.penalties.GroupL1(2)):
            problem, _ = make(loss, penalty, 0.1)
            refusals.append(solver.refusal(problem))
            if penalty in ("l2", "none"):
                refusals.append(solver.refusal(replace(problem, design=kernel)))
    assert "" in refusals
    assert all(reason == "" or reason.startswith("it needs ") for reason in refusals)


SMOOTH_SOLVERS = [
    "newton",
    "proximal",
    "gradient_descent",
]


@pytest.mark.row("S10")
@pytest.mark.parametrize("name", SMOOTH_SOLVERS)
def test_solvers_by_name_agree_on_a_smooth_problem(name):
    problem, _ = make("logistic", "l2", 0.5)
    best = SolverRun("newton", Limits(1e-12, None, None))([problem])[0].certificate.primal
    found = SolverRun(name, LIMITS)([problem])[0].certificate
    assert found.solver == name
    assert found.converged
    assert found.primal <= best * (1 + 1e-6)


@pytest.mark.parametrize("name", ["interior_point", "envelope", "dual_ascent", "proximal"])
def test_solvers_by_name_agree_on_a_cornered_problem(name):
    problem, _ = make("hinge", "l2", 0.5)
    best = SolverRun("auto", Limits(1e-10, None, None))([problem])[0].certificate.primal
    found = SolverRun(name, LIMITS)([problem])[0].certificate
    assert found.solver == name
    assert found.converged
    assert found.primal <= best * (1 + 1e-6)


@pytest.mark.row("S8")
@pytest.mark.parametrize("method", ["auto", "cholesky", "svd"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_closed_forms_agree(method, shape):
    problem, _ = make("squared", "l2", 0.5, shape)
    exact = SolverRun(solvers.ClosedForm(method), LIMITS)([problem])[0]
    assert exact.certificate.relative_gap < 1e-10
    with pytest.raises(ValueError, match="method='qr'"):
        SolverRun(solvers.ClosedForm("qr"), LIMITS)([problem])


def test_line_search_finds_minima_and_respects_infinity():
    t, value = line_search(lambda t: ((t - 30.0) ** 2, 2 * (t - 30.0)), 900.0, -60.0)
    assert value < 100
    t, value = line_search(lambda t: (np.inf, np.inf) if t > 1e-3 else ((t - 1) ** 2, 2 * (t - 1)), 1.0, -2.0)
    assert 0 < t <= 1e-3
    assert value < 1
    assert line_search(lambda t: (t, 1.0), 0.0, 1.0) == (0.0, 0.0)


def test_line_search_finds_a_corner_many_digits_below_the_full_step():
    corner, tried = 3e-13, []

    def along(t):
        tried.append(t)
        return (-t, -1.0) if t < corner else (1e14 * (t - corner) - corner, 1e14)

    t, _ = line_search(along, 0.0, -1.0)
    assert t == pytest.approx(corner, rel=1e-3)
    assert len(tried) < 61  # a bracket that is closed has no trials left to make


def test_line_search_cuts_a_step_that_is_far_too_long_at_once():
    """The slope turns from -1e12 to 4e12 about 1e-14; false position took half a digit of the step at a time."""
    turn, tried = 1e-14, []

    def along(t):
        tried.append(t)
        beyond = max(t - turn, 0.0)
        bent = min(beyond, turn)
        return 1 - 1e12 * t + 2.5e26 * bent**2 + 5e12 * (beyond - bent), -1e12 + 5e26 * bent

    t, _ = line_search(along, 1.0, -1e12)
    assert t == pytest.approx(1.2 * turn, rel=1e-2)
    assert len(tried) <= 10


def test_newton_by_conjugate_gradients(monkeypatch):
    from empirisk.solvers.newton import newton

    problem, _ = make("logistic", "l2", 0.5)
    direct = SolverRun("newton", LIMITS)([problem])[0].certificate.primal
    monkeypatch.setattr(newton, "DIRECT", 0)
    found = SolverRun("newton", LIMITS)([problem])[0].certificate
    assert found.converged
    assert found.primal == pytest.approx(direct, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive", "squared_absolute", "perceptron"])
@pytest.mark.parametrize("penalty", ["l2", "none"])
@pytest.mark.parametrize("kind", ["plain", "badly scaled", "sparse"])
def test_newton_on_rounded_corners_is_interior_point(loss, penalty, kind):
    problem, _ = make(loss, penalty, 0.7, "tall", kind)
    exact = SolverRun("interior_point", LIMITS)([problem])[0].certificate
    found = SolverRun("envelope", LIMITS)([problem])[0].certificate
    assert found.converged
    assert found.primal == pytest.approx(exact.primal, rel=2e-6)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_long_data_start_on_every_eighth_row(loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(40_000, 30))
    f = X[:, 0] + random.normal(size=40_000)
    problem = Problem(
        losses.find(loss),
        penalties.L2(),
        0.01,
        design_of(X, True),
        np.sign(f) if loss == "hinge" else f,
        np.ones(40_000),
    )
    fit = SolverRun("auto", LIMITS)([problem])[0]
    assert fit.certificate.solver == "envelope"
    assert fit.certificate.converged
    assert len(fit.history["objective"]) < 60


def test_small_steps_do_not_follow_newton_where_it_met_rounding():
    """Weights of 1e30 leave no digit for the ridge: first-order steps took most of the time and found nothing."""
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    for machine in (er.Ridge(), er.LogisticRegression(), er.Regressor(loss="poisson")):
        for problem in machine.problems(X, y):
            assert not {"proximal", "dual_ascent"} & {solver.name() for solver, _ in ranked(problem)}
    names = [solver.name() for solver, _ in ranked(er.SVR().problems(X, y)[0])]
    assert names[-2:] == ["dual_ascent", "proximal"]
