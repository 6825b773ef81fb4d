"""Coordinate descent: right against a general convex solver and by identities; what it keeps, skips and stops at."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.linalg import chosen_columns, factor
from empirisk.linalg.design import design_of
from empirisk.problem import Point, Problem
from empirisk.settings import config
from empirisk.solvers.base import Watch
from empirisk.solvers.columns import coordinate_descent, quadratic, working_set
from empirisk.solvers.columns.coordinate_descent import CoordinateDescent
from empirisk.solvers.columns.quadratic import Quadratic
from empirisk.solvers.columns.working_set import NEAR_SHARE, Screening
from empirisk.stop import Deadline, Ending, listening_to
from tests.cases import KINDS, SHAPES, make
from tests.truth import optimum

SMOOTH = [
    losses.Squared(),
    losses.Logistic(),
    losses.SoftHinge(margin=0.5, temperature=0.3),
    losses.Exponential(),
    losses.SquaredHinge(),
    losses.Power(1.5),
    losses.Power(3.5),
]
SPARSE_PENALTIES = [penalties.L1(), penalties.ElasticNet(0.5), penalties.ElasticNet(0.95)]


def solve(problem, tol=1e-6, start=None, **limits):
    watch = Watch(tol=tol, **limits)
    return CoordinateDescent().solve(problem, watch, start), watch


def truth(arguments) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the general solver's own doubts
        return optimum(*arguments)


def assert_optimal(problem, arguments):
    point, watch = solve(problem)
    assert watch.status == Ending.CONVERGED
    certificate, best = verify(problem, point), truth(arguments)
    scale = problem.magnitude(best)
    assert certificate.relative_gap <= 1e-6
    assert certificate.primal <= best + 1e-6 * scale
    # The general solver is itself exact to about 1e-8 of the value.
    assert certificate.gap >= certificate.primal - best - 1e-8 * scale


@pytest.mark.row("L5")
@pytest.mark.row("L6")
@pytest.mark.row("L12")
@pytest.mark.row("S11")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("penalty", SPARSE_PENALTIES, ids=repr)
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_objective_is_the_optimum_and_the_gap_bounds_it(loss, penalty, shape, kind):
    small = 0.02 if shape == "tall" else 0.3
    for intercept, C in ((True, small), (False, 20 * small)):
        assert_optimal(*make(loss, penalty, C, shape, kind, intercept))


@pytest.mark.parametrize("kind", ["plain", "badly scaled", "sparse"])
@pytest.mark.parametrize("penalty", ["l2", "none"])
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_penalties_without_l1_are_solved_too(loss, penalty, kind):
    for intercept in (True, False):
        assert_optimal(*make(loss, penalty, 0.05, "tall", kind, intercept))


@pytest.mark.parametrize("times", [2.0, 100.0, 1e4])
@pytest.mark.parametrize("loss", SMOOTH[:5], ids=repr)
def test_a_gap_of_1e_10_is_reached_if_asked_for(loss, times):
    for shape in SHAPES:
        problem, _ = make(loss, "l1", 1.0, shape, "badly scaled")
        problem = problem.with_C(times * problem.critical_C)
        point, watch = solve(problem, tol=1e-10)
        assert watch.status == Ending.CONVERGED
        assert verify(problem, point).relative_gap <= 1e-10


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_the_gap_bounds_every_point_on_the_way(loss):
    problem, arguments = make(loss, "l1", 2.0, "wide")
    best = truth(arguments)
    for steps in range(1, 6):
        point, _ = solve(problem, tol=1e-12, max_iter=steps)
        certificate = verify(problem, point)
        assert certificate.gap >= certificate.primal - best - 1e-8 * problem.magnitude(best)


def test_weights_are_zero_up_to_the_critical_C_and_not_beyond():
    for loss in SMOOTH:
        problem, _ = make(loss, "l1", 1.0, "wide")
        below, _ = solve(problem.with_C(0.999 * problem.critical_C))
        above, _ = solve(problem.with_C(1.01 * problem.critical_C), tol=1e-10)
        assert not below.w.any()
        assert 1 <= np.count_nonzero(above.w) <= 3


@pytest.mark.row("L6")
def test_elastic_net_with_ratio_zero_is_ridge():
    problem, (_, _, C, X, y, weights, _, _) = make(losses.Squared(), penalties.ElasticNet(0.0), 0.7, intercept=False)
    point, _ = solve(problem, tol=1e-12)
    A = 2 * C * (X.T * weights)
    assert np.allclose(point.w, np.linalg.solve(A @ X + np.eye(X.shape[1]), A @ y), rtol=1e-9, atol=1e-12)


@pytest.mark.row("L5")
def test_orthogonal_columns_are_soft_thresholded():
    X, y = np.eye(4), np.array([3.0, -2.0, 0.4, -0.1])
    problem = Problem(losses.Squared(), penalties.L1(), 0.5, design_of(X, False), y, np.ones(4), False)
    point, _ = solve(problem, tol=1e-12)
    assert np.allclose(point.w, [2.0, -1.0, 0.0, 0.0])


@pytest.mark.parametrize("loss", SMOOTH[:4], ids=repr)
def test_a_duplicate_column_changes_nothing_but_the_shares(loss):
    problem, (_, penalty, C, X, y, weights, _, _) = make(loss, "l1", 2.0)
    twice = Problem(loss, penalty, C, design_of(np.hstack([X, X]), True), y, weights, True)
    point, both = solve(problem, tol=1e-10)[0], solve(twice, tol=1e-10)[0]
    assert np.allclose(both.w[: X.shape[1]] + both.w[X.shape[1] :], point.w, atol=1e-4 * np.abs(point.w).max())


@pytest.mark.parametrize("loss", SMOOTH[:5], ids=repr)
def test_weight_two_is_the_row_twice(loss):
    random = np.random.default_rng(0)
    _, (_, penalty, C, X, y, _, _, _) = make(loss, "l1", 1.0)
    weights = random.integers(1, 3, len(y))
    weighted = Problem(loss, penalty, C, design_of(X, True), y, weights.astype(float), True)
    rows = np.repeat(np.arange(len(y)), weights)
    repeated = Problem(loss, penalty, C, design_of(X[rows], True), y[rows], np.ones(len(rows)), True)
    first, second = solve(weighted, tol=1e-12)[0], solve(repeated, tol=1e-12)[0]
    assert verify(weighted, first).primal == pytest.approx(verify(repeated, second).primal, rel=1e-11)
    assert np.allclose(first.w, second.w, atol=1e-5 * np.abs(first.w).max())


def wide_problem(loss, C_times, penalty=None, n=80, d=900, seed=0, order="F"):
    random = np.random.default_rng(seed)
    X = np.asarray(random.normal(size=(n, d)) * random.uniform(0.5, 2.0, d) + 1.0, order=order)
    f = X[:, :10] @ random.normal(size=10)
    f = f - f.mean() + random.normal(size=n)
    y = f if "regression" in loss.tasks else np.where(f > 0, 1.0, -1.0)
    penalty = penalty or penalties.L1()
    problem = Problem(loss, penalty, 1.0, design_of(X, True), y, random.uniform(0.5, 2.0, n), True)
    return problem.with_C(C_times * problem.critical_C)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_warm_start_and_path_end_where_a_cold_start_does(loss):
    problem = wide_problem(loss, 1.0)
    shared, start = {}, None
    for times in (0.9, 1.5, 3.0, 5.0, 8.0, 8.0, 30.0, 4.0):
        here = problem.with_C(times * problem.C)
        watch = Watch(tol=1e-9, shared=shared)
        start = CoordinateDescent().solve(here, watch, start)
        assert watch.status == Ending.CONVERGED
        cold, _ = solve(here, tol=1e-9)
        elsewhere, _ = solve(here, tol=1e-9, start=Point(cold.w + 0.1, 0.3))
        for point in (cold, elsewhere):
            assert verify(here, start).primal == pytest.approx(verify(here, point).primal, rel=3e-9)


def test_what_is_known_of_the_columns_is_kept_along_a_path(monkeypatch):
    gathered = []
    original = working_set.columns_of
    monkeypatch.setattr(
        working_set, "columns_of", lambda design, chosen: gathered.append(1) or original(design, chosen)
    )
    problem = wide_problem(losses.Squared(), 1.0)
    shared, start = {}, None
    for times in np.geomspace(1, 30, 20):
        start = CoordinateDescent().solve(problem.with_C(times * problem.C), Watch(shared=shared), start)
    assert len(gathered) == 1  # one working set has served all


def test_another_problem_is_not_mistaken_for_the_next_of_a_path():
    first, second = wide_problem(losses.Squared(), 5.0), wide_problem(losses.Squared(), 5.0, seed=1)
    shared = {}
    start = CoordinateDescent().solve(first, Watch(shared=shared), None)
    watch = Watch(shared=shared)
    point = CoordinateDescent().solve(second, watch, start)
    assert verify(second, point).relative_gap <= 1e-6


@pytest.mark.parametrize("penalty", SPARSE_PENALTIES, ids=repr)
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.SquaredHinge()], ids=repr)
def test_screening_discards_no_active_column(loss, penalty, monkeypatch):
    monkeypatch.setattr(Screening, "early", 0)
    screened = []
    prove = Screening.prove

    def watched(self, radius, l1):
        prove(self, radius, l1)
        screened.append((l1, self.zero.copy()))

    monkeypatch.setattr(Screening, "prove", watched)
    problem, shared, start, rounds = wide_problem(loss, 1.0, penalty), {}, None, 0
    for times in (2.0, 2.2, 2.5, 10.0):
        here = problem.with_C(times * problem.C)
        screened.clear()
        start = CoordinateDescent().solve(here, Watch(tol=1e-10, shared=shared), start)
        assert verify(here, start).relative_gap <= 1e-10
        with monkeypatch.context() as without:
            without.setattr(Screening, "early", 1000)
            exact, _ = solve(here, tol=1e-13)
        active = np.abs(exact.w) > 1e-9 * np.abs(exact.w).max()
        for _, zero in screened:
            assert not (zero & active).any()
        rounds += len(screened)
        # On a path a point may be proved before any column is screened.
        assert not screened or screened[-1][1].mean() > 0.5
    assert rounds >= 2


def test_prices_are_exact_wherever_they_reach_l1(monkeypatch):
    monkeypatch.setattr(Screening, "early", 1)
    monkeypatch.setattr(chosen_columns, "NARROW", 100)
    random = np.random.default_rng(0)
    X = np.asfortranarray(random.normal(size=(50, 400)))
    for design in (
        design_of(X, True),
        design_of(np.ascontiguousarray(X), False),
        design_of(sparse.csr_matrix(X), True),
    ):
        screening, u, skipped = Screening(design), random.normal(size=50), 0
        for step in (0.0, 1e-3, 1e-3, 1e-2, 1.0, 1e-3):
            u = u + step * random.normal(size=50)
            exact = design.tdot(u)
            l1 = np.quantile(np.abs(exact), 0.99)
            screening.update(u, l1, np.arange(400) == 7)
            matters = (np.abs(exact) >= l1) | (np.arange(400) == 7)
            assert np.allclose(screening.values[matters], exact[matters])
            assert np.all(np.abs(screening.values[~matters]) < l1 * (1 + 1e-12))
            skipped += not np.allclose(screening.values, exact)
        assert skipped >= 2


def test_likely_prices_say_whether_they_are_all_that_matters():
    random = np.random.default_rng(0)
    design = design_of(np.asfortranarray(random.normal(size=(50, 400))), True)
    screening, u, nobody = Screening(design), random.normal(size=50), np.zeros(400, dtype=bool)
    l1 = np.quantile(np.abs(design.tdot(u)), 0.99)
    screening.update(u, l1, nobody)
    assert screening.complete
    moved = u + 1e-3 * random.normal(size=50)
    before, exact = screening.values, design.tdot(moved)
    screening.update(moved, l1, nobody, only_near=True)
    near = np.abs(before) >= NEAR_SHARE * l1
    assert not screening.complete
    assert 0 < near.sum() < 100
    assert np.allclose(screening.values[near], exact[near], rtol=1e-12)
    assert np.array_equal(screening.values[~near], before[~near])
    screening.update(moved, l1, nobody)
    assert screening.complete
    assert np.allclose(screening.values, exact, rtol=1e-12)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.Power(3.5)], ids=repr)
def test_sets_that_overflow_are_solved_in_turn(loss, monkeypatch):
    problem = wide_problem(loss, 100.0, d=60)
    best = verify(problem, solve(problem, tol=1e-10)[0]).primal
    for module in (coordinate_descent, working_set):
        monkeypatch.setattr(module, "LARGEST", 8)
    point, watch = solve(problem)
    assert np.count_nonzero(point.w) > 16
    assert watch.status == Ending.CONVERGED
    assert best * (1 - 1e-9) <= verify(problem, point).primal <= best * (1 + 1e-6)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=repr)
def test_order_type_and_threads_do_not_change_the_answer(loss):
    problem = wide_problem(loss, 8.0, n=200, d=1500)
    with config(threads=1):
        one = solve(problem)[0]
    with config(threads=3):
        several = solve(problem)[0]
    assert np.array_equal(one.w, several.w)
    rows = wide_problem(loss, 8.0, n=200, d=1500, order="C")
    assert np.allclose(solve(rows, tol=1e-10)[0].w, solve(problem, tol=1e-10)[0].w, atol=1e-6)
    single = Problem(
        loss, problem.penalty, problem.C, design_of(problem.design.X.astype(np.float32), True), problem.y,
        problem.weights, True,
    )  # fmt: skip
    assert verify(single, solve(single)[0]).relative_gap <= 1e-6


@pytest.mark.row("L12")
def test_many_sparse_columns_with_few_entries():
    random = np.random.default_rng(3)
    X = sparse.random(300, 5000, density=0.01, random_state=random, format="csc")
    y = np.where(np.asarray(X[:, :5].sum(axis=1)).ravel() + 0.1 * random.normal(size=300) > 0.1, 1.0, -1.0)
    for loss in (losses.Logistic(), losses.Squared()):
        problem = Problem(loss, penalties.L1(), 1.0, design_of(X, True), y, np.ones(300), True)
        problem = problem.with_C(30 * problem.critical_C)
        dense = Problem(loss, penalties.L1(), problem.C, design_of(X.toarray(), True), y, np.ones(300), True)
        sparsely, densely = solve(problem, tol=1e-9)[0], solve(dense, tol=1e-9)[0]
        assert verify(problem, sparsely).primal == pytest.approx(verify(dense, densely).primal, rel=1e-8)


def test_long_data_start_on_a_part_of_the_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(60_000, 20))
    y = np.where(X[:, 0] - X[:, 1] + random.logistic(size=60_000) > 0, 1.0, -1.0)
    problem = Problem(losses.Logistic(), penalties.L1(), 1e-3, design_of(X, True), y, np.ones(60_000), True)
    point, watch = solve(problem)
    assert watch.status == Ending.CONVERGED
    assert watch.iterations <= 4
    assert verify(problem, point).relative_gap <= 1e-6


def test_a_useless_start_does_no_harm():
    for loss in SMOOTH:
        problem, _ = make(loss, "l1", 1.0)
        far = Point(np.full(problem.width, 1e6), -1e6)
        point, watch = solve(problem, start=far)
        assert watch.status == Ending.CONVERGED
        assert far.w[0] == 1e6  # and the start is left as it was
        assert verify(problem, point).relative_gap <= 1e-6


def test_an_interrupt_leaves_a_usable_point():
    problem = wide_problem(losses.Logistic(), 50.0)
    calls = iter(range(100))
    with listening_to(lambda: next(calls) >= 3):
        point, watch = solve(problem, tol=1e-12)
    assert watch.status == Ending.INTERRUPTED
    assert watch.iterations <= 4
    certificate = verify(problem, point)
    assert certificate.primal < problem.origin_value
    assert np.isfinite(certificate.gap)


def test_a_deadline_is_kept():
    problem = wide_problem(losses.Squared(), 1000.0, n=400, d=6000)
    point, watch = solve(problem, tol=1e-15, deadline=Deadline(0.05))
    assert watch.status == Ending.MAX_TIME
    assert np.isfinite(verify(problem, point).primal)


def test_what_cannot_be_reached_is_called_stalled():
    problem = wide_problem(losses.Logistic(), 5.0)
    point, watch = solve(problem, tol=0.0)
    assert watch.status == Ending.STALLED
    assert verify(problem, point).relative_gap < 1e-12


def test_dependent_columns_far_from_the_origin_end_soon():
    X = 1e6 + np.random.default_rng(0).normal(size=(2, 12))
    problem = Problem(losses.Squared(), penalties.ElasticNet(), 100.0, design_of(X), np.ones(2), np.ones(2), False)
    _, watch = solve(problem, tol=1e-13)
    assert watch.iterations < 100


def test_bends_that_short_steps_have_met_are_not_met_again(monkeypatch):
    solutions, move = [], Quadratic._move
    monkeypatch.setattr(Quadratic, "_move", lambda *given: solutions.append(1) or move(*given))
    for seed in (0, 2, 3):
        random = np.random.default_rng(seed)
        X = random.standard_cauchy((30, 12))
        first, second = np.triu_indices(12)
        design = design_of(np.hstack([X, X[:, first] * X[:, second]]))
        y = np.where(random.random(30) < 0.5, 1.0, -1.0)
        solve(Problem(losses.SquaredHinge(), penalties.ElasticNet(), 100.0, design, y, np.ones(30), True), tol=1e-13)
    # About 11 000; more than 40 000 where every model knows of the last short step alone.
    assert len(solutions) < 25_000


@pytest.mark.row("S11")
def test_progress_reports_falling_objectives():
    problem = wide_problem(losses.Logistic(), 20.0)
    point, watch = solve(problem)
    objectives = watch.history["objective"]
    assert len(objectives) == watch.iterations >= 3
    assert np.all(np.diff(objectives) <= 0)
    assert objectives[-1] == pytest.approx(problem.primal(point), rel=1e-10)


def test_what_it_cannot_do_is_refused():
    hinge, _ = make(losses.Hinge(), "l1", 1.0)
    joint, _ = make(losses.Softmax(), "l1", 1.0)
    for problem, word in ((hinge, "corners"), (joint, "joint")):
        assert word in CoordinateDescent().refusal(problem)
    assert CoordinateDescent().refusal(make(losses.Squared(), "l1", 1.0)[0]) == ""


def test_columns_that_depend_on_each_other_do_not_hold_it_up():
    """Of columns that digits do not tell apart: it ends after ten rounds that bring nothing."""
    random = np.random.default_rng(0)
    X, y = 1e6 + random.normal(size=(13, 12)), random.integers(0, 2, 13)
    machine = er.LeastSquaresClassifier(
        C=1e4, penalty="elastic_net", features=er.maps.Polynomial(), solver="coordinate_descent"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.n_iter_ <= 30


def test_steps_that_halve_nothing_end_a_round():
    """Columns that digits do not tell apart: every model is left far from its minimum, and so is every step."""
    X = 1e5 + np.random.default_rng(0).normal(size=(8, 5))
    design = design_of(er.maps.Polynomial(3).fit_transform(X))
    y = np.where(np.random.default_rng(0).random(8) < 0.5, 1.0, -1.0)
    problem = Problem(losses.Logistic(), penalties.ElasticNet(), 1.0, design, y, np.ones(8), False)
    _, watch = solve(problem, tol=1e-10)
    assert watch.status == Ending.STALLED
    assert watch.iterations < 300


def test_dependent_columns_cost_their_rank(monkeypatch):
    """The solution is that with a ridge, and nothing larger than the rank is factored once this is known."""
    monkeypatch.setattr(quadratic, "RIDGE", 1e-6)  # with which a dense solution has digits
    random, orders, lower = np.random.default_rng(0), [], factor.lower
    rows = random.normal(size=(3, 40))
    square, right = rows.T @ rows, random.normal(size=40)
    sizes = square.diagonal()
    monkeypatch.setattr(factor, "lower", lambda matrix: orders.append(len(matrix)) or lower(matrix))
    found = quadratic._solve(square, right)
    ridged = np.linalg.solve(square + np.diag(quadratic.RIDGE * sizes), right)
    np.testing.assert_allclose(found, ridged, rtol=1e-6)
    assert max(orders) <= 3
