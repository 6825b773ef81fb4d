"""Dual coordinate ascent: one update by its formula, whole problems against a general convex solver."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.linalg.design import design_of
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.rows.dual_ascent import DualAscent
from empirisk.stop import Deadline, Ending, listening_to
from tests import catalog
from tests.cases import make
from tests.truth import optimum

LOSSES = [loss for loss in catalog.LOSSES if loss.convex and loss.dual_quadratic is not None]


def solve(problem, solver=None, start=None, **limits):
    solver = DualAscent() if solver is None else solver
    watch = Watch(**{"max_iter": solver.iteration_limit, **limits})
    return solver.solve(problem, watch, start), watch


def text(rows=300, columns=2000, seed=0):
    """Long sparse rows of unit length, labels that follow some of the columns."""
    random = np.random.default_rng(seed)
    X = sparse.random(rows, columns, 40 / columns, format="csr", random_state=random)
    X = sparse.csr_matrix(sparse.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X)
    f = X @ random.normal(size=columns)
    return X, np.where(f + 0.3 * f.std() * random.normal(size=rows) > 0.2 * f.std(), 1.0, -1.0)


@pytest.mark.row("S6")
@pytest.mark.parametrize("kind", ["plain", "constant and duplicate columns", "sparse"])
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("penalty", ["l2", "elastic_net"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_optimum_is_reached(loss, penalty, shape, kind):
    problem, arguments = make(loss, penalty, 0.5, shape, kind, intercept=kind != "plain")
    point, watch = solve(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the general solver's own doubts
        best = optimum(*arguments)
    assert watch.status == Ending.CONVERGED
    assert verify(problem, point).relative_gap <= 1e-6
    assert problem.primal(point) <= best + 1e-6 * problem.magnitude(best)


@pytest.mark.row("S6")
@pytest.mark.parametrize("C", [0.01, 10.0])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_update_is_the_formula(C, label):
    """alpha <- clip(alpha + (1 - z) / k, 0, C), from alpha = 0, is all that one sample needs."""
    x = np.array([[1.0, -2.0, 0.5]])
    problem = Problem(losses.Hinge(), penalties.L2(), C, design_of(x, False), np.array([label]), np.ones(1), False)
    point, _ = solve(problem)
    alpha = np.clip(1.0 / float(x[0] @ x[0]), 0.0, C)
    assert -label * point.u == pytest.approx([alpha], rel=1e-12)
    assert point.w == pytest.approx(alpha * label * x[0], rel=1e-12)


@pytest.mark.row("S6")
def test_wide_sparse_data_like_liblinear():
    X, y = text()
    problem = Problem(losses.Hinge(), penalties.L2(), 3.0, design_of(X, False), y, np.ones(len(y)), False)
    point, watch = solve(problem)
    rival = LinearSVC(loss="hinge", C=3.0, tol=1e-9, max_iter=100_000, fit_intercept=False).fit(X, y)
    assert watch.status == Ending.CONVERGED
    assert problem.primal(point) <= problem.primal(Point(rival.coef_[0])) * (1 + 1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_and_dense_rows_agree(intercept):
    X, y = text(rows=100, columns=300)
    values = []
    for data in (X, sparse.csc_matrix(X), X.toarray(), np.asfortranarray(X.toarray()), X.toarray().astype(np.float32)):
        problem = Problem(losses.Hinge(), penalties.L2(), 3.0, design_of(data, intercept), y, np.ones(100), intercept)
        values.append(problem.primal(solve(problem, tol=1e-9)[0]))
    assert values[:4] == pytest.approx([values[0]] * 4, rel=1e-8)
    assert values[4] == pytest.approx(values[0], rel=1e-5)


def test_the_intercept_balances_the_dual():
    X, y = text()
    problem = Problem(losses.Hinge(), penalties.L2(), 3.0, design_of(X, True), y, np.ones(len(y)))
    point, _ = solve(problem, tol=1e-9)
    assert abs(point.u.sum()) < 1e-6 * np.abs(point.u).sum()
    fixed = Problem(losses.Hinge(), penalties.L2(), 3.0, design_of(X, False), y, np.ones(len(y)), False)
    assert problem.primal(point) < problem.primal(solve(fixed)[0])


def test_rows_of_zeros_and_weights():
    X, y = text(rows=60, columns=100)
    X = sparse.csr_matrix(sparse.vstack([X, sparse.csr_matrix((2, 100))]))
    y = np.append(y, [1.0, -1.0])
    twice = Problem(losses.Hinge(), penalties.L2(), 1.0, design_of(X, True), y, np.full(62, 2.0))
    doubled = sparse.csr_matrix(sparse.vstack([X, X]))
    repeated = Problem(losses.Hinge(), penalties.L2(), 1.0, design_of(doubled, True), np.tile(y, 2), np.ones(124))
    first, watch = solve(twice, tol=1e-9)
    assert watch.status == Ending.CONVERGED
    assert twice.primal(first) == pytest.approx(repeated.primal(solve(repeated, tol=1e-9)[0]), rel=1e-8)


def test_the_seed_decides_the_bits():
    problem, _ = make("hinge", "l2", 5.0)
    points = [solve(problem, DualAscent(random_state=seed))[0] for seed in (3, 3, 4)]
    assert np.array_equal(points[0].u, points[1].u)
    assert np.array_equal(points[0].w, points[1].w)
    assert not np.array_equal(points[0].u, points[2].u)


def test_a_warm_start_is_used():
    X, y = text()
    problem = Problem(losses.Hinge(), penalties.L2(), 3.0, design_of(X, True), y, np.ones(len(y)))
    point, cold = solve(problem, tol=1e-8)
    _, warm = solve(problem, start=point)
    assert cold.iterations >= 2
    assert (warm.status, warm.iterations) == (Ending.CONVERGED, 0)
    _, next_one = solve(problem.with_C(3.3), start=point)
    assert next_one.status == Ending.CONVERGED


def test_history_limits_and_interrupts():
    X, y = text()
    problem = Problem(losses.Hinge(), penalties.L2(), 100.0, design_of(X, True), y, np.ones(len(y)))
    point, watch = solve(problem, max_iter=3, tol=0.0)
    assert watch.status == Ending.MAX_ITER
    assert len(watch.history["objective"]) == 3
    assert problem.primal(point) == pytest.approx(watch.history["objective"][-1], rel=1e-9)
    with listening_to(lambda: True):
        _, watch = solve(problem)
    assert watch.status == Ending.INTERRUPTED
    _, watch = solve(problem, deadline=Deadline(0.0))
    assert watch.status == Ending.MAX_TIME


def test_a_hopeless_pace_is_given_up():
    problem, _ = make("hinge", "l2", 50.0, "tall", "badly scaled")
    point, watch = solve(problem)
    assert watch.status == Ending.STALLED
    assert watch.iterations < 500
    assert np.isfinite(problem.primal(point))


@pytest.mark.parametrize(
    ("loss", "penalty", "reason"),
    [
        ("logistic", "l2", "is made of straight and quadratic pieces"),
        ("hinge", "l1", "needs a penalty with an l2 part"),
        ("hinge", "none", "needs a penalty with an l2 part"),
        ("crammer_singer", "l2", "one output"),
    ],
)
def test_refusals_say_why(loss, penalty, reason):
    problem, _ = make(loss, penalty, 1.0)
    assert reason in DualAscent().refusal(problem)
