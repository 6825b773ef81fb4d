"""Newton's method: a start on part of the rows, factors that are kept, and what a watch remembers of a proof."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk import certificate, losses, penalties
from empirisk.certificate import verify
from empirisk.linalg import factor
from empirisk.linalg.design import design_of
from empirisk.problem import Point, Problem
from empirisk.solvers import base
from empirisk.solvers.base import Watch
from empirisk.solvers.line_search import line_search
from empirisk.solvers.newton import newton, proximal_newton
from empirisk.solvers.newton.loop import NewtonPoint
from empirisk.solvers.newton.newton import ExplicitNewtonLoop, Newton, descend
from empirisk.stop import Deadline, Ending, listening_to

SMOOTH = [losses.Logistic(), losses.SquaredHinge(), losses.Squared(), losses.SoftHinge(0.5, 0.3)]


def long_problem(loss, C=0.01, n=20_000, d=60, dtype=np.float64):
    random = np.random.default_rng(0)
    X = (random.normal(size=(n, d)) + 1.0).astype(dtype)
    y = np.where(X @ random.normal(size=d) + 3 * random.normal(size=n) > 0, 1.0, -1.0)
    return Problem(loss, penalties.L2(), C, design_of(X, True), y, random.uniform(0.5, 2.0, n))


def solve(problem, tol=1e-6, start=None, **limits):
    watch = Watch(tol=tol, **limits)
    return Newton().solve(problem, watch, start), watch


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("C", [1e-4, 0.01, 10.0])
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_hessian_of_part_of_the_rows_serves_for_all(loss, C, dtype, monkeypatch):
    sizes = []
    made = factor.ColumnForm.__init__

    def counted(self, design, *others):
        sizes.append(design.shape[0])
        made(self, design, *others)

    monkeypatch.setattr(factor.ColumnForm, "__init__", counted)
    problem = long_problem(loss, C, dtype=dtype)
    point, watch = solve(problem)
    assert watch.status == Ending.CONVERGED
    assert verify(problem, point).relative_gap <= 1e-6
    assert sizes.count(20_000) <= 2
    assert sizes.count(2_500) >= 1
    assert watch.iterations <= 10


def test_a_bad_factor_is_replaced():
    problem = long_problem(losses.Logistic())
    far = newton.Hessian(problem, factor.normal_equations(problem.design, np.ones(20_000), np.full(60, 1e9), True))
    watch = Watch(tol=1e-10)
    course = ExplicitNewtonLoop(problem, watch)
    course.hessian = far
    point = descend(course, course.start(None))
    assert watch.status == Ending.CONVERGED
    assert watch.iterations <= 12
    assert verify(problem, point).relative_gap <= 1e-10


def test_corrections_make_a_step_follow_the_changes_seen():
    problem = long_problem(losses.Squared(), n=500, d=3)
    stiffness = np.ones(3)
    model = newton.Hessian(problem, factor.normal_equations(problem.design, np.ones(500), stiffness, True))
    exact = np.diag([4.0, 3.0, 2.0, 1.0])
    for direction in np.eye(4):
        model.learn(direction, exact @ direction)
    zero = np.zeros(3)
    place = NewtonPoint(zero, 0.0, np.zeros(500), zero, 0.0, gradient=np.array([1.0, 2.0, 3.0]), constant=4.0)
    w, b, decrement = model.step(place)
    np.testing.assert_allclose(np.append(w, b), [-0.25, -2 / 3, -1.5, -4.0], rtol=1e-10)
    np.testing.assert_allclose(decrement, 0.25 + 4 / 3 + 4.5 + 16.0)


def test_stops_when_asked():
    problem = long_problem(losses.Logistic())
    with listening_to(lambda: True):
        point, watch = solve(problem)
    assert watch.status == Ending.INTERRUPTED
    assert np.isfinite(verify(problem, point).primal)
    _, watch = solve(problem, deadline=Deadline(0.0))
    assert watch.status == Ending.MAX_TIME


def test_a_proof_is_remembered_for_its_own_point_only(monkeypatch):
    problem = long_problem(losses.Squared(), n=100, d=3)
    calls = []
    monkeypatch.setattr(base, "Proof", lambda *both: calls.append(both) or certificate.Proof(*both))
    watch, point, other = Watch(), problem.origin(), Point(np.ones(3))
    watch.proves(problem, point)
    assert watch.proof(problem, point).certificate.primal == pytest.approx(problem.origin_value)
    assert len(calls) == 1
    assert watch.proof(problem, other).certificate == verify(problem, other)
    assert len(calls) == 2


def test_few_entries_in_many_columns_make_no_matrix(monkeypatch):
    A = sparse.random(900, 1000, 0.003, random_state=0, format="csr")
    y = np.where(A @ np.random.default_rng(0).normal(size=1000) > 0.1, 1, -1)
    exact = er.LogisticRegression(C=10.0, tol=1e-9).fit(A.toarray(), y)
    monkeypatch.setattr(newton, "normal_equations", None)  # nobody asks for it
    fast = er.LogisticRegression(C=10.0, tol=1e-9).fit(A, y)
    np.testing.assert_allclose(fast.coef_, exact.coef_, atol=1e-3)
    assert fast.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize("features", [None, er.kernels.Gaussian()])
def test_tiny_targets_take_no_more_steps_than_others(features):
    """All curvatures of |e|^1.5 are then huge; cut down to one bound they told nothing, and steps led nowhere."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 3)), random.normal(size=20)
    machine = er.Regressor(loss="power", features=features, solver="newton", tol=1e-4)
    steps = [machine.set_params(C=unit**0.5).fit(X, unit * y).certificate_.iterations for unit in (1.0, 1e-40)]
    assert machine.certificate_.converged
    assert steps[1] <= steps[0] + 3


@pytest.mark.parametrize("slope", [-1e-3, -1.0, -1e9])
def test_a_slope_that_is_rounding_is_seen_through_in_few_trials(slope):
    """The line rises, whatever its slope at zero was said to be."""
    trials = []
    assert line_search(lambda t: (trials.append(t) or 1.0 + t + t * t, 1.0 + 2 * t), 1.0, slope) == (0.0, 1.0)
    assert len(trials) <= 50


@pytest.mark.parametrize("least", [0.3, 1e-3, 1e-7, 30.0])
def test_the_least_place_of_a_line_is_found_however_near(least):
    t, _ = line_search(lambda t: ((t / least - 1) ** 2, 2 * (t / least - 1) / least), 1.0, -2.0 / least)
    assert t == pytest.approx(least, rel=0.1)


@pytest.mark.parametrize(("share", "ends"), [(1e-6, newton.CRAWL_STEPS), (0.2, None)])
def test_steps_that_crawl_end(share, ends):
    """Steps of a curvature without digits fall for ever; steps that gain something may take as many as they need."""
    random = np.random.default_rng(0)
    X = random.normal(size=(20, 3))
    problem = Problem(losses.Squared(), penalties.L2(), 1.0, design_of(X, False), random.normal(size=20), np.ones(20))
    best = er.solve(problem).point

    class Slow(ExplicitNewtonLoop):
        def moved(self, place):
            return self.at(Point(place.w + share * (best.w - place.w), place.b + share * (best.b - place.b)))

    watch = Watch(tol=1e-12, max_iter=1000)
    course = Slow(problem, watch)
    descend(course, course.at(Point(np.full(3, 1e9), 1e9)))
    assert watch.status == (Ending.STALLED if ends else Ending.CONVERGED)
    assert (watch.iterations == ends) if ends else watch.iterations > newton.CRAWL_STEPS


@pytest.mark.parametrize("penalty", [er.penalties.GroupL1(), er.penalties.ElasticNet(1.0)], ids=str)
def test_proximal_newton_ends_where_its_model_has_no_digits(penalty):
    """A Hessian of 1e12 beside slopes of one: steps that went uphill promised less than nothing, round after round."""
    X, y = np.full((2, 1), 1e6), [1.38, 0.34]
    machine = er.Regressor(
        loss=er.losses.Quantile(0.85), penalty=penalty, C=100.0, fit_intercept=False, solver=er.solvers.ProximalNewton()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.set_params(tol=1e-10, max_time=20.0).fit(X, y, sample_weight=[3, 2])
    assert machine.certificate_.status != "max_time"
    assert machine.certificate_.iterations < 1000


def test_envelopes_of_huge_predictions_know_their_curvature():
    """Squares of 1e45 and a corner: steps of a prox that rounding swallowed took the most curvature for that of the
    squares, and hundreds of small steps followed where two or three are enough."""
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4))
    y = 1e45 * (X @ [1.0, -2.0, 0.0, 0.5] + 0.1 * random.normal(size=30))
    machine = er.Regressor("squared_absolute", penalty="l1", C=1e-44, solver=er.solvers.ProximalNewton()).fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.iterations < 20
    np.testing.assert_allclose(machine.coef_, er.Lasso(C=1e-44).fit(X, y).coef_, rtol=1e-4)


def test_models_are_solved_no_finer_than_the_fit_needs(monkeypatch):
    """A choice of C asks for few digits; models of twenty took seconds where columns of zeros and ones depend."""
    asked = []
    monkeypatch.setattr(proximal_newton, "Watch", lambda **given: asked.append(given["tol"]) or Watch(**given))
    X = np.random.default_rng(0).integers(0, 2, (13, 5)).astype(float)
    machine = er.SVR(penalty="l1", solver=er.solvers.ProximalNewton())
    for tol, least in ((1e-3, 1e-10), (1e-10, 1e-20)):
        machine.set_params(tol=tol).fit(X, X @ np.arange(5.0))
        assert machine.certificate_.converged
        assert min(asked) == pytest.approx(least, rel=1e-9, abs=0)
        asked.clear()


def test_the_model_of_dependent_columns_has_as_many_rows_as_they_have_rank():
    """All 454 products of twelve columns on thirteen rows: inner problems of 454 rows took half a minute together."""
    random = np.random.default_rng(0)
    table = random.normal(size=(13, 30))[:, random.integers(30, size=200)] * 10.0 ** random.integers(-6, 6, 200)
    slopes, step = random.normal(size=13) @ table, random.normal(size=200) / np.abs(table).max(axis=0)
    rows, offsets = proximal_newton._as_least_squares(table.T @ table, slopes)
    assert len(rows) == 13
    exact = slopes @ step + 0.5 * np.sum((table @ step) ** 2)
    assert 0.5 * (np.sum((rows @ step + offsets) ** 2) - offsets @ offsets) == pytest.approx(exact, rel=1e-9)
    # A slope that no curvature goes with gets the least.
    rows, offsets = proximal_newton._as_least_squares(np.diag([4.0, 0.0, 0.0]), np.array([2.0, 3.0, 0.0]))
    np.testing.assert_allclose(rows.T @ rows, np.diag([4.0, proximal_newton.LEAST_ROOT**2, 0.0]))
    np.testing.assert_allclose(rows.T @ offsets, [2.0, 3.0, 0.0])
    rows, offsets = proximal_newton._as_least_squares(np.zeros((2, 2)), np.zeros(2))
    assert not rows.any()
    assert not offsets.any()
