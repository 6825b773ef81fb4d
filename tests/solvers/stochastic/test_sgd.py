"""Stochastic gradients: each rule against a few obvious lines, and early stopping."""

import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk import losses, penalties
from empirisk.errors import EmpiriskError
from empirisk.linalg.design import design_of
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.first_order.gradient_descent import GradientDescent
from empirisk.solvers.first_order.proximal import Proximal
from empirisk.solvers.stochastic.early_stopping import EarlyStopping
from empirisk.solvers.stochastic.sgd import SGD
from empirisk.stop import Deadline, Ending, listening_to
from tests.cases import make


def solve(problem, solver, start=None, **limits):
    watch = Watch(**{"max_iter": solver.iteration_limit, **limits})
    with np.errstate(over="ignore"):
        return solver.solve(problem, watch, start), watch


def best_value(problem) -> float:
    return problem.primal(solve(problem, Proximal(), tol=1e-9)[0])


@pytest.mark.row("S3")
@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax", "squared"])
def test_a_full_batch_is_gradient_descent(loss):
    problem, _ = make(loss, "l2", 0.5)
    rate = 0.05
    point, _ = solve(problem, SGD(batch_size=60, schedule="constant", rate=rate), max_iter=10, tol=0.0)
    # Both keep the best point; here every step is one.
    same, watch = solve(problem, GradientDescent("fixed", rate=rate), max_iter=10, tol=0.0)
    assert np.all(np.diff(watch.history["objective"]) < 0)
    assert point.w == pytest.approx(same.w, rel=1e-9, abs=1e-12)
    assert point.b == pytest.approx(same.b, rel=1e-9, abs=1e-12)


@pytest.mark.row("S3")
@pytest.mark.parametrize("schedule", ["constant", "inverse", "inverse_root", "inverse_regularised"])
def test_batches_and_schedules_by_definition(schedule):
    """The loss sum of a batch is rescaled by n / B; the rate is that of the mean."""
    problem, _ = make("logistic", "l2", 0.5)
    n, B, rate, total = 60, 25, 0.3, problem.scale.sum()
    A = problem.design.columns(np.arange(5))
    w, b, t = np.zeros(5), 0.0, 0
    for epoch_order in (np.random.default_rng(3).permutation(n),):
        for begin in range(0, n, B):
            chosen = epoch_order[begin : begin + B]
            u = problem.scale[chosen] * problem.loss.derivative(problem.y[chosen], A[chosen] @ w + b)
            size = {
                "constant": rate,
                "inverse": rate / (1 + t / 3),
                "inverse_root": rate / np.sqrt(1 + t / 3),
                "inverse_regularised": 1 / (1 / rate + t / total),
            }[schedule]
            w = w - size / total * (n / len(chosen) * A[chosen].T @ u + w)
            b = b - size / total * (n / len(chosen) * u.sum())
            t += 1
    start = Point(np.zeros(5), 0.0)
    solver = SGD(batch_size=B, schedule=schedule, rate=rate, random_state=3)
    point, _ = solve(problem, solver, start, max_iter=1, tol=0.0)
    assert point.w == pytest.approx(w, rel=1e-10)
    assert point.b == pytest.approx(b, rel=1e-10)


def naive_adaptive(rule, gradients, rate):
    """The weights after the given gradients, as the rules are written in their papers."""
    w, mean, square = np.zeros_like(gradients[0]), 0.0, 0.0
    for t, g in enumerate(gradients, start=1):
        if rule == "adagrad":
            square = square + g**2
            w = w - rate * g / (np.sqrt(square) + 1e-8)
        if rule == "rmsprop":
            square = 0.9 * square + 0.1 * g**2
            w = w - rate * g / (np.sqrt(square) + 1e-8)
        if rule == "adam":
            mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
            w = w - rate * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    return w


@pytest.mark.row("S4")
@pytest.mark.parametrize("rule", ["adagrad", "rmsprop", "adam"])
def test_adaptive_rules_by_definition(rule):
    """Far from its corner the absolute loss has a gradient that does not depend on the weights."""
    random = np.random.default_rng(0)
    X = random.normal(size=(6, 3))
    problem = Problem(
        losses.Absolute(), penalties.NoPenalty(), 1.0, design_of(X, False), np.full(6, 1e4), np.ones(6), False
    )
    solver = SGD(batch_size=1, schedule="constant", rate=0.1, adapt=rule, shuffle=False)
    point, _ = solve(problem, solver, max_iter=1, tol=0.0)
    assert point.w == pytest.approx(naive_adaptive(rule, list(-X), 0.1), rel=1e-10)


def larger(loss, penalty="l2") -> Problem:
    """Fifteen hundred samples with a noisy linear rule."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 8))
    f = X @ random.normal(size=8)
    loss = losses.find(loss)
    y = np.where(f + random.logistic(size=1500) > 0.5, 1.0, -1.0)
    if loss.joint:
        y = np.digitize(f + random.normal(size=1500), [-1.0, 1.0]).astype(float)
    classes = 3 if loss.joint else 0
    return Problem(loss, penalties.find(penalty), 0.1, design_of(X, True), y, np.ones(1500), True, classes)


@pytest.mark.row("S3")
@pytest.mark.row("S4")
@pytest.mark.parametrize(
    ("parameters", "epochs", "accuracy"),
    [
        ({}, 100, 5e-3),
        ({"average": True}, 100, 1e-3),
        ({"batch_size": 1, "average": True}, 20, 2e-2),
        ({"schedule": "inverse"}, 100, 3e-3),
        ({"schedule": "inverse_regularised", "average": True}, 100, 2e-3),
        ({"adapt": "adagrad", "schedule": "constant"}, 100, 5e-3),
        ({"adapt": "rmsprop"}, 100, 2e-3),
        ({"adapt": "adam"}, 100, 2e-3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax", "crammer_singer"])
def test_the_optimum_is_approached(loss, parameters, epochs, accuracy):
    problem = larger(loss)
    point, watch = solve(problem, SGD(**parameters), max_iter=epochs)
    assert problem.primal(point) <= best_value(problem) * (1 + accuracy)
    assert len(watch.history["objective"]) == watch.iterations


@pytest.mark.row("S3")
def test_a_loose_tolerance_is_proven():
    _, watch = solve(larger("logistic"), SGD(average=True), tol=1e-3)
    assert watch.status == Ending.CONVERGED
    assert watch.iterations < 50


@pytest.mark.row("S3")
def test_the_l1_penalty_makes_exact_zeros():
    problem, _ = make("squared", "l1", 0.05)
    point, _ = solve(problem, SGD(batch_size=10), max_iter=300)
    exact, _ = solve(problem, Proximal(), tol=1e-9)
    assert np.array_equal(point.w == 0, exact.w == 0)
    assert (exact.w == 0).any()
    assert problem.primal(point) <= problem.primal(exact) * (1 + 1e-3)


@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_the_seed_decides_the_bits(loss):
    problem, _ = make(loss, "elastic_net", 0.5)
    points = [solve(problem, SGD(random_state=seed), max_iter=3, tol=0.0)[0] for seed in (1, 1, 2)]
    assert np.array_equal(points[0].w, points[1].w)
    assert not np.array_equal(points[0].w, points[2].w)


def test_sparse_dense_and_single_precision_agree():
    dense, arguments = make("logistic", "l2", 0.5, "tall", "sparse", False)
    X, y, weights = arguments[3:6]
    points = []
    for data in (X, X.toarray(), np.asfortranarray(X.toarray()), X.toarray().astype(np.float32)):
        problem = Problem(dense.loss, dense.penalty, 0.5, design_of(data, False), y, weights, False)
        points.append(solve(problem, SGD(batch_size=7), max_iter=5, tol=0.0)[0].w)
    assert points[1] == pytest.approx(points[0], rel=1e-10)
    assert points[2] == pytest.approx(points[0], rel=1e-10)
    assert points[3] == pytest.approx(points[0], rel=1e-5)


@pytest.mark.row("E8")
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_early_stopping_returns_the_best_validation_point(loss):
    problem, _ = make(loss, "none", 1.0, "wide")
    inner = SGD(batch_size=5, rate=1.0)
    solver = EarlyStopping(inner, validation_fraction=0.4, n_iter_no_change=4, random_state=2)
    seen = []

    def note(_, point):
        seen.append(point)
        return False

    point, watch = solve(problem, solver, progress=note)
    scores = watch.history["validation"]
    assert watch.status == Ending.EARLY_STOPPING
    assert len(scores) == watch.iterations == np.argmin(scores) + 1 + 4
    assert np.array_equal(point.w, seen[int(np.argmin(scores))].w)
    held_out = np.sort(np.random.default_rng(2).permutation(20)[:8])
    f = problem.predict(point)[held_out]
    value = problem.weights[held_out] @ problem.loss.value(problem.y[held_out], f) / problem.weights[held_out].sum()
    assert min(scores) == pytest.approx(value, rel=1e-12)


@pytest.mark.row("E8")
def test_held_out_rows_are_not_trained_on():
    problem, _ = make("squared", "l2", 1.0, "tall", "plain", False)
    held_out = np.sort(np.random.default_rng(0).permutation(60)[:15])
    y = problem.y.copy()
    y[held_out] = 1e6
    spoilt = Problem(problem.loss, problem.penalty, 1.0, problem.design, y, problem.weights, False)
    solver = EarlyStopping(SGD(rate=0.01), validation_fraction=0.25, n_iter_no_change=50)
    points = [solve(one, solver, Point(np.zeros(5)), max_iter=1, tol=0.0)[0] for one in (problem, spoilt)]
    assert np.array_equal(points[0].w, points[1].w)


def test_a_warm_start_is_used():
    problem, _ = make("logistic", "l2", 0.5)
    exact, _ = solve(problem, Proximal(), tol=1e-9)
    point, _ = solve(problem, SGD(rate=1e-6), exact, max_iter=1, tol=0.0)
    assert point.w == pytest.approx(exact.w, rel=1e-3)


def test_limits_and_interrupts_inside_an_epoch():
    random = np.random.default_rng(0)
    X = random.normal(size=(200_000, 2))
    y = np.sign(X[:, 0])
    problem = Problem(losses.Logistic(), penalties.L2(), 1.0, design_of(X, True), y, np.ones(len(y)))
    begin = time.perf_counter()
    with listening_to(lambda: time.perf_counter() > begin + 0.3):
        point, watch = solve(problem, SGD(batch_size=1))
    assert (watch.status, watch.iterations) == (Ending.INTERRUPTED, 1)
    assert np.isfinite(problem.primal(point))
    _, watch = solve(problem, SGD(batch_size=1), deadline=Deadline(0.2))
    assert watch.status == Ending.MAX_TIME


def test_a_rate_that_diverges_leaves_a_finite_point():
    problem, _ = make("exponential", "l2", 1.0)
    point, watch = solve(problem, SGD(batch_size=5, schedule="constant", rate=50.0))
    assert watch.status == Ending.STALLED
    assert np.isfinite(problem.primal(point))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"batch_size": 0}, "batch_size=0 of SGD must be a whole number"),
        ({"schedule": "cosine"}, "schedule='cosine' of SGD is not known"),
        ({"adapt": "momentum"}, "adapt='momentum' of SGD is not known"),
        ({"rate": 0.0}, "rate=0.0 of SGD must be a positive number"),
    ],
)
def test_parameters_without_meaning_are_named(parameters, message):
    problem, _ = make("logistic", "l2", 1.0)
    with pytest.raises(EmpiriskError, match=message):
        solve(problem, SGD(**parameters))


def test_refusals_say_why():
    problem, _ = make("logistic", "l1", 1.0)
    assert "needs a penalty with an l2 part" in SGD(schedule="inverse_regularised").refusal(problem)
    assert SGD().refusal(problem) == ""


@pytest.mark.row("S4")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # slopes at corners prove little
@pytest.mark.parametrize("machine", [er.LogisticRegression, er.SVM, er.Ridge])
def test_the_defaults_of_adagrad_come_near_the_optimum(machine):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    f = X @ [1.0, -2.0, 0.5] + 0.5 * random.normal(size=60)
    y = f if machine is er.Ridge else f > 0
    best = machine().fit(X, y).certificate_.primal
    assert machine(solver=er.solvers.SGD(adapt="adagrad")).fit(X, y).certificate_.primal <= 1.01 * best


def test_much_that_is_missing_after_all_passes_is_said():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 20)) * np.logspace(-1, 1, 20)
    y = X @ random.normal(size=20)
    with pytest.warns(ConvergenceWarning, match=r"\(finished\) .*raise max_iter, or use solver='auto'"):
        er.Ridge(solver="sgd", max_iter=3).fit(X, y)
