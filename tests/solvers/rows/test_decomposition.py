"""The decomposition solver against ground truth, within small memory, from warm starts, and where others hang."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Point, Problem
from empirisk.solvers import Decomposition, Watch
from empirisk.solvers.rows import decomposition
from empirisk.solvers.rows.decomposition import SLOW_ROUNDS
from empirisk.solvers.rows.dual_start import _threshold, best_intercept
from empirisk.solvers.rows.pairs import DualIterate
from empirisk.solvers.rows.row_cache import RowCache, gram, row_source
from empirisk.stop import Deadline, Ending, listening_to
from tests.truth import optimum

pytestmark = pytest.mark.row("S9")
KERNELS = [er.kernels.Gaussian(1.0), er.kernels.Polynomial(2), er.kernels.Laplacian(2.0), er.kernels.Linear()]
LOSSES = ["hinge", losses.EpsilonInsensitive(0.1), "absolute"]
# The general solver loses its digits on squares of nearly singular features.
PAIRS = [(kernel, loss) for kernel in KERNELS for loss in LOSSES] + [
    (kernel, "squared_hinge") for kernel in KERNELS[::2]
]
TINY = "300KB"


def problem_of(loss, kernel, n=60, C=1.0, weighted=False, intercept=True, seed=0, noise=0.3, strength=1.0):
    """A small problem that is not linear."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    f = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + noise * random.normal(size=n)
    loss = losses.find(loss)
    y = f if "regression" in loss.tasks else np.where(f > 0, 1.0, -1.0)
    weights = random.uniform(0.2, 3.0, size=n) if weighted else np.ones(n)
    design = GramDesign(kernel, kernel.prepare(X), X)
    penalty = penalties.L2()
    penalty.l2 = strength
    return Problem(loss, penalty, C, design, y, weights, intercept)


def truth(problem):
    """The optimal value on explicit features V S^1/2 of K = V S V', by a general convex solver."""
    values, vectors = np.linalg.eigh(problem.design.kernel.between(problem.design.items))
    kept = values > 1e-12 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    return optimum(problem.loss, problem.penalty, problem.C, features, problem.y, problem.weights, problem.intercept)


def solved(problem, start=None, tol=1e-6, **limits):
    watch = Watch(tol=tol, **limits)
    point = Decomposition().solve(problem, watch, start)
    return point, watch, verify(problem, point)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kernel", "loss"), PAIRS, ids=str)
def test_the_optimum_is_that_of_a_general_solver(kernel, loss, weighted, intercept):
    problem = problem_of(loss, kernel, weighted=weighted, intercept=intercept)
    _, watch, certificate = solved(problem)
    best = truth(problem)
    assert watch.status == Ending.CONVERGED
    assert certificate.primal == pytest.approx(best, rel=1e-6)
    assert certificate.dual <= best * (1 + 1e-9)
    assert certificate.primal >= best * (1 - 1e-9)


@pytest.mark.parametrize("strength", [0.25, 3.0])
def test_the_strength_of_the_penalty_counts(strength):
    problem = problem_of("hinge", KERNELS[0], strength=strength)
    assert solved(problem)[2].primal == pytest.approx(truth(problem), rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", losses.EpsilonInsensitive(0.1), "squared_hinge"], ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_on_demand_in_little_memory_give_the_same(loss, intercept):
    # In this budget neither the matrix nor all rows fit: the working set shrinks, and rows are computed again.
    problem = problem_of(loss, KERNELS[0], n=300, C=3.0, intercept=intercept)
    _, _, whole = solved(problem)
    assert problem.design.keeps_matrix
    with er.config(memory=TINY):
        again = problem_of(loss, KERNELS[0], n=300, C=3.0, intercept=intercept)
        assert not again.design.keeps_matrix
        _, watch, certificate = solved(again)
        assert watch.status == Ending.CONVERGED
        assert "matrix" not in vars(again.design)
    assert certificate.primal == pytest.approx(whole.primal, rel=2e-6)
    assert certificate.dual <= whole.primal


def test_the_ring_of_rows_always_returns_the_rows_asked_for():
    problem = problem_of("hinge", KERNELS[0], n=80)
    K = problem.design.matrix
    with er.config(memory="16KB"):
        cache = RowCache(problem.design, 6)
        random = np.random.default_rng(0)
        assert cache.room < 40
        for turn in range(60):
            wanted = random.choice(cache.columns, cache.room // 3, replace=False)
            np.testing.assert_allclose(cache.rows[cache.fetch(wanted)], K[np.ix_(wanted, cache.columns)], atol=1e-14)
            if turn % 20 == 19:
                cache.narrow(np.sort(random.choice(len(cache.columns), len(cache.columns) * 3 // 4, replace=False)))
        assert len(cache.columns) < 80


def test_a_point_that_stops_early_is_feasible_and_its_gap_is_true():
    problem = problem_of("hinge", KERNELS[0], n=300, C=10.0)
    exact = solved(problem, tol=1e-10)[2].primal
    for rounds in (1, 2, 3):
        point = Decomposition(size=20).solve(problem, Watch(max_iter=rounds))
        certificate = verify(problem, point)
        assert abs(point.u.sum()) < 1e-10
        assert certificate.primal - certificate.gap <= exact <= certificate.primal * (1 + 1e-12)


def test_warm_starts_along_C_save_rounds():
    problem = problem_of(losses.EpsilonInsensitive(0.05), KERNELS[0], n=400, seed=3)
    solver, cold, warm, start = Decomposition(size=50), 0, 0, None
    for C in np.geomspace(0.1, 10, 8):
        first, second = Watch(max_iter=5000), Watch(max_iter=5000)
        a = solver.solve(problem.with_C(C), first)
        start = solver.solve(problem.with_C(C), second, start)
        assert verify(problem.with_C(C), start).relative_gap <= 1e-6
        assert verify(problem.with_C(C), a).relative_gap <= 1e-6
        cold, warm = cold + first.iterations, warm + second.iterations
    assert warm < 0.8 * cold


def test_a_warm_start_at_the_solution_ends_at_once():
    problem = problem_of("hinge", KERNELS[0], n=300)
    point, watch, _ = solved(problem)
    _, again, certificate = solved(problem, Point(point.w, point.b, point.u))
    assert again.iterations <= 1 < watch.iterations
    assert certificate.relative_gap <= 1e-6


def test_it_stops_when_told_to():
    problem = problem_of("hinge", KERNELS[0], n=500, C=1e4)
    asked = iter([False, False, True])
    with listening_to(lambda: next(asked)):
        _, watch, certificate = solved(problem)
    assert watch.status == Ending.INTERRUPTED
    assert watch.iterations == 3
    assert np.isfinite(certificate.primal)
    _, watch, _ = solved(problem, tol=0.0, deadline=Deadline(0.3), max_iter=10**9)
    assert watch.status in (Ending.MAX_TIME, Ending.STALLED)


def test_indefinite_similarities_end_with_a_status():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 2))
    sigmoid = er.kernels.Callable(lambda A, B: np.tanh(A @ B.T - 1.0))
    design = GramDesign(sigmoid, sigmoid.prepare(X), X)
    assert np.linalg.eigvalsh(design.matrix)[0] < -0.1
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    _, watch, _ = solved(Problem(losses.Hinge(), penalties.L2(), 10.0, design, y, np.ones(80)), max_iter=300)
    assert watch.status


HANGING = {
    "large C": (lambda X: X, 1e6, er.kernels.Gaussian(1.0)),
    "unscaled columns": (lambda X: X * np.array([1e4, 1.0, 1e-3]), 1e3, er.kernels.Linear()),
    "unscaled columns, polynomial": (lambda X: 50 * X, 10.0, er.kernels.Polynomial(3)),
    "duplicated rows": (lambda X: X[np.arange(len(X)) // 4], 1e4, er.kernels.Gaussian(1.0)),
    "all rows equal": (lambda X: np.ones_like(X), 1.0, er.kernels.Gaussian(1.0)),
}


@pytest.mark.parametrize("case", HANGING)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_others_hang_a_fit_ends_with_a_status(case):
    change, C, kernel = HANGING[case]
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = (X[:, 0] + random.normal(size=200) > 0).astype(int)
    machine = er.SVM(C=C, features=kernel).fit(change(X), y)
    certificate = machine.certificate_
    # Beyond the digits of the kernel's values there is nothing to reach, but the certificate says so.
    beyond = (er.kernels.Polynomial(3), er.kernels.Linear())
    assert certificate.converged or (certificate.status == Ending.STALLED and kernel in beyond)
    assert np.isfinite(certificate.gap)


def test_the_gap_holds_in_more_digits_where_float64_has_none_left():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    signs = np.where(X[:, 0] + random.normal(size=200) > 0, 1, -1)
    X, C = X * np.array([1e4, 1.0, 1e-3]), 1e3
    with pytest.warns(ConvergenceWarning, match="stalled"):
        machine = er.SVM(C=C, features=er.kernels.Linear()).fit(X, signs)
    a, rows = np.zeros(200, np.longdouble), X.astype(np.longdouble)
    a[machine.support_] = machine.dual_coef_.ravel()
    w = a @ rows
    margins = signs * (rows @ w + float(machine.intercept_[0]))
    primal = 0.5 * w @ w + C * np.maximum(0, 1 - margins).sum()
    dual = (a * signs).sum() - 0.5 * w @ w
    assert 0 <= primal - dual <= machine.certificate_.gap


def test_what_it_cannot_do_is_refused():
    problem = problem_of("hinge", KERNELS[0])
    assert Decomposition().refusal(problem) == ""
    assert "conjugate" in Decomposition().refusal(problem_of("logistic", KERNELS[0]))
    with pytest.raises(er.errors.Unsuitable, match="it needs a kernel as features"):
        er.SVM(solver="decomposition").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("exact", [0.0, 5e-324, -5e-324, -1e-300, 3.7, -2.5e40])
def test_an_intercept_beside_zero_takes_no_more_looks_than_a_number_has_bits(exact):
    looks = []
    below, above = _threshold(lambda b: looks.append(b) or b >= exact, -1e45, 1e45)
    assert above == exact
    assert np.nextafter(below, np.inf) == exact
    assert len(looks) <= 64


def test_the_best_intercept_beats_a_grid():
    random = np.random.default_rng(1)
    for loss in ("hinge", losses.EpsilonInsensitive(0.2)):
        problem = problem_of(loss, KERNELS[0], n=31, weighted=True)
        products = random.normal(size=31)
        b = best_intercept(problem, products, 0.0, 0.0)
        lost = [problem.loss_sum(products + shift) for shift in np.linspace(-4, 4, 2001)]
        assert problem.loss_sum(products + b) <= min(lost) + 1e-12


def test_proofs_without_an_end_are_no_progress():
    """Rounding leaves no dual point that is feasible: every gap is infinite, and none below the last."""
    X = 1e6 * np.random.default_rng(0).normal(size=(20, 2))  # all but the landmarks are far from every landmark
    features = er.maps.Nystrom(er.kernels.Gaussian(), rank=4, random_state=0)
    (problem,) = er.OneClassSVM(nu=1.0, features=features).problems(X, np.zeros(20))
    assert er.solve(problem, "decomposition").certificate.iterations < 20


def test_a_pace_too_slow_by_many_digits_is_seen_after_a_few_rounds():
    """Multipliers of 1e50 whose products with the kernel cancel: a round of all pair steps gains some 1e20 of 1e48."""
    random = np.random.default_rng(0)
    X, kernel = random.choice([-1.0, 1.0], size=(20, 1)), er.kernels.Linear()
    design = GramDesign(kernel, kernel.prepare(X), X)
    y, weights = random.permutation([-1.0, 1.0] * 10), np.full(20, 1e48)
    problem = Problem(losses.SquaredHinge(), penalties.L2(), 100.0, design, y, weights)
    with np.errstate(all="ignore"):
        _, watch, certificate = solved(problem, tol=1e-3)
    assert watch.status == Ending.STALLED
    assert watch.iterations <= SLOW_ROUNDS + 2
    # No more is lost than the digits that were not there.
    assert certificate.primal <= problem.origin_value


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_start_that_has_lost_the_dual_value_is_not_begun_from(monkeypatch, share):
    """The same rounds would lead to the same place again; a start as good as the place itself is taken."""
    problem = problem_of("hinge", er.kernels.Gaussian(1.0))
    u = solved(problem, tol=1e-9)[0].u
    monkeypatch.setattr(decomposition, "_interior_start", lambda problem, watch: Point(-share * u, 0.0, share * u))
    watch, source = Watch(tol=1e-9), row_source(gram(problem), 6)
    run = decomposition.DecompositionRun(problem, watch, DualIterate(problem, source, 60, Point(-u, 0.0, u)))
    before = run.state
    run.restart()
    assert (run.state is before) == (share == 0)
    assert watch.status == ("" if share else Ending.STALLED)
    assert watch.notes == (["restarted from an interior point"] if share else [])
