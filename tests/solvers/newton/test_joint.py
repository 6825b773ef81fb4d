"""Newton steps on all classes at once: right, warm, stopped in time, and refused where the matrix would not fit."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.linalg import gradients
from empirisk.linalg.design import design_of
from empirisk.problem import Problem
from empirisk.settings import config
from empirisk.solvers.base import Watch
from empirisk.solvers.corners.interior_point import InteriorPoint
from empirisk.solvers.newton import joint
from empirisk.solvers.newton.newton import Newton
from empirisk.stop import Deadline, Ending, listening_to
from tests.cases import make
from tests.truth import optimum


def solve(problem, tol=1e-6, start=None, **limits):
    watch = Watch(tol=tol, **limits)
    solver = Newton() if problem.loss.smooth and problem.penalty.smooth else InteriorPoint()
    return solver.solve(problem, watch, start), watch


def long_problem(loss, n=20_000, d=60, classes=3):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) + 1.0
    y = (X @ random.normal(size=(d, classes)) + 3 * random.normal(size=(n, classes))).argmax(axis=1).astype(float)
    return Problem(losses.find(loss), penalties.L2(), 0.01, design_of(X, True), y, np.ones(n), True, classes)


@pytest.mark.row("L9")
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize(
    ("loss", "penalty"), [("softmax", "l2"), ("softmax", "l1"), ("crammer_singer", "l2"), ("crammer_singer", "l1")]
)
def test_the_optimum_is_reached_to_the_last_digits(loss, penalty, shape):
    problem, arguments = make(loss, penalty, 0.5, shape, seed=3)
    point, watch = solve(problem, tol=1e-9)
    assert watch.status == Ending.CONVERGED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the general solver's own doubts
        best = optimum(*arguments)
    assert abs(verify(problem, point).primal - best) <= 1e-7 * best


def test_a_start_on_part_of_the_rows_leaves_few_steps_on_all():
    problem = long_problem("softmax")
    point, watch = solve(problem)
    assert verify(problem, point).relative_gap <= 1e-6
    assert watch.iterations <= 4
    again, watch = solve(problem, start=point)
    assert watch.iterations <= 1
    np.testing.assert_allclose(again.w, point.w, atol=1e-3 * np.abs(point.w).max())


def test_the_diagonal_conditions_wide_data(monkeypatch):
    problem, _ = make("softmax", "l2", 0.5, "wide")
    expected = verify(problem, solve(problem)[0]).primal
    monkeypatch.setattr(joint, "CHEAP", 0)  # no exact steps
    monkeypatch.setattr(gradients, "WIDE", 10)
    point, watch = solve(problem)
    assert watch.status == Ending.CONVERGED
    assert abs(verify(problem, point).primal - expected) <= 2e-6 * expected


def test_exact_and_near_steps_lead_to_the_same_optimum(monkeypatch):
    problem, _ = make("softmax", "l2", 0.5)
    exact, _ = solve(problem, tol=1e-12)
    monkeypatch.setattr(joint, "CHEAP", 0)
    near, _ = solve(problem, tol=1e-12)
    assert not np.array_equal(exact.w, near.w)  # they were found in two ways
    np.testing.assert_allclose(exact.w, near.w, atol=1e-5 * np.abs(near.w).max())


def waves_without_a_penalty(seed, rank):
    """Six classes on waves over a line, which hardly differ: many planes divide some of the classes."""
    random = np.random.default_rng(seed)
    along = random.normal(size=(30, 1)) @ random.normal(size=(1, 3))
    X = np.cos(along @ random.normal(size=(3, rank)) + random.uniform(0, 2 * np.pi, rank))
    y = random.permutation(np.arange(30) % 6).astype(float)
    return Problem(losses.Softmax(), penalties.NoPenalty(), 0.1, design_of(X, True), y, np.ones(30), True, 6)


@pytest.mark.parametrize(("seed", "rank"), [(1, 8), (2, 6), (2, 8), (4, 6)])
def test_nearly_dependent_columns_without_a_penalty_take_few_steps(seed, rank):
    """Steps of conjugate gradients used up all iterations."""
    with np.errstate(all="ignore"):
        _, watch = solve(waves_without_a_penalty(seed, rank), tol=1e-3)
    assert watch.status == Ending.CONVERGED
    assert watch.iterations <= 150


def test_proofs_that_fail_become_rare_but_the_last_point_gets_one():
    """Without a minimiser nothing is proved, however near the place seems."""
    problem = waves_without_a_penalty(3, 6)
    seen = []
    with np.errstate(all="ignore"):
        _, watch = solve(problem, tol=1e-3, max_iter=200, progress=lambda _, point: seen.append(point))
    assert (watch.status, len(seen)) == (Ending.MAX_ITER, 200)
    assert 8 < len(watch.history["gap"]) < 60
    assert watch.proof(problem, seen[-1]).certificate is watch.latest


@pytest.mark.parametrize(("loss", "penalty"), [("softmax", "l2"), ("crammer_singer", "l2"), ("softmax", "l1")])
def test_ends_for_lack_of_digits_at_the_best_point(loss, penalty):
    problem, _ = make(loss, penalty, 0.5)
    point, watch = solve(problem, tol=0.0)
    assert watch.status == Ending.STALLED
    assert verify(problem, point).relative_gap <= 1e-9


@pytest.mark.parametrize("loss", ["softmax", "crammer_singer"])
def test_stops_when_asked(loss):
    problem = long_problem(loss, n=300, d=5)
    with listening_to(lambda: True):
        point, watch = solve(problem)
    assert watch.status == Ending.INTERRUPTED
    assert np.all(np.isfinite(point.w))
    _, watch = solve(problem, max_iter=1)
    assert (watch.status, watch.iterations) == (Ending.MAX_ITER, 1)
    _, watch = solve(problem, deadline=Deadline(0.0))
    assert watch.status == Ending.MAX_TIME


def test_a_matrix_that_does_not_fit_is_refused_but_smooth_problems_need_none():
    hinge, smooth = long_problem("crammer_singer", n=300, d=50), long_problem("softmax", n=300, d=50)
    assert InteriorPoint().refusal(hinge) == ""
    with config(memory="100KB"):
        assert "a matrix of (columns + 1) x classes rows that fits" in InteriorPoint().refusal(hinge)
        assert Newton().refusal(smooth) == ""


@pytest.mark.parametrize("far", [0.0, 1.0, 100.0])
def test_softmax_without_a_penalty_is_certified_on_badly_scaled_columns(far):
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(90, 5)) * np.logspace(-4, 4, 5) + far, random.integers(0, 3, 90)
        machine = er.LogisticRegression(penalty="none").fit(X, y)
        # The scales of the columns change the weights and nothing else.
        plain = er.LogisticRegression(penalty="none").fit((X - far) / np.logspace(-4, 4, 5), y)
        assert machine.certificate_.converged
        assert machine.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("classes", [3, 5])
def test_softmax_without_penalty_and_intercept_is_certified_on_ten_orders_of_magnitude(classes):
    for seed, columns in itertools.product(range(4), (3, 5, 8)):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(90, columns)), random.integers(0, classes, 90)
        machine = er.LogisticRegression(penalty="none", fit_intercept=False, multiclass="joint")
        plain = clone(machine).fit(X, y)
        assert machine.fit(X * np.logspace(-5, 5, columns), y).certificate_.converged
        assert machine.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)
