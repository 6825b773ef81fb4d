"""The classical perceptron against the textbook's few lines, and when it ends."""

import numpy as np
import pytest
from scipy import sparse

from empirisk import losses, penalties
from empirisk.linalg.design import design_of
from empirisk.problem import Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.stochastic.perceptron import Perceptron
from empirisk.stop import Ending, listening_to
from tests.cases import make


def solve(problem, solver, start=None, **limits):
    watch = Watch(**{"max_iter": solver.iteration_limit, **limits})
    return solver.solve(problem, watch, start), watch


def separable(rows=200, columns=6, seed=0, gap=0.3):
    """Points at least ``gap`` away from a plane that does not pass through the origin."""
    random = np.random.default_rng(seed)
    X, w = random.normal(size=(rows, columns)) + 1.0, random.normal(size=columns)
    f = X @ w - 0.7 * w.sum()
    kept = np.abs(f) > gap
    return X[kept], np.sign(f[kept])


def textbook_perceptron(X, y, order, epochs, intercept=True, weights=None):
    """Rosenblatt's loop: the weights after every visit, until an epoch makes no mistake."""
    w, b, history = np.zeros(X.shape[1]), 0.0, []
    weights = np.ones(len(y)) if weights is None else weights
    for epoch in range(epochs):
        mistakes = 0
        for i in order(epoch):
            if y[i] * (w @ X[i] + b) <= 0:
                w = w + weights[i] * y[i] * X[i]
                b = b + weights[i] * y[i] if intercept else 0.0
                mistakes += 1
            history.append(np.append(w, b))
        if mistakes == 0:
            break
    return w, b, np.array(history)


def perceptron_problem(X, y, intercept=True, weights=None):
    design = design_of(X, intercept)
    weights = np.ones(len(y)) if weights is None else weights
    return Problem(losses.Perceptron(), penalties.NoPenalty(), 1.0, design, y, weights, intercept)


def raw_intercept(problem, point):
    """The intercept of the user's rows, which a dense design has shifted."""
    return point.b if problem.design.shift is None else point.b - problem.design.shift @ point.w


@pytest.mark.row("L2")
@pytest.mark.parametrize("convert", [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("intercept", [True, False])
def test_rate_one_is_the_textbook_perceptron(convert, intercept):
    X, y = separable()
    if not intercept:
        X, y = separable(gap=0.0)
    problem = perceptron_problem(convert(X), y, intercept)
    point, watch = solve(problem, Perceptron(shuffle=True, random_state=5), max_iter=7)
    random = np.random.default_rng(5)
    orders = [random.permutation(len(y)) for _ in range(7)]
    _, _, history = textbook_perceptron(X, y, lambda epoch: orders[epoch], watch.iterations, intercept)
    # The weights with the fewest mistakes are returned: those of the textbook after some visit.
    found = np.append(point.w, raw_intercept(problem, point))
    assert min(np.abs(history - found).max(axis=1)) < 1e-10 * np.abs(found).max()


@pytest.mark.row("L2")
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_the_perceptron_stops_when_it_separates(convert):
    X, y = separable()
    problem = perceptron_problem(convert(X), y)
    point, watch = solve(problem, Perceptron())
    w, b, _ = textbook_perceptron(X, y, lambda _: range(len(y)), 1000)
    assert watch.status == Ending.CONVERGED
    assert watch.history["mistakes"][-1] == 0
    assert watch.history["objective"][-1] == 0
    assert point.w == pytest.approx(w, rel=1e-12)
    assert raw_intercept(problem, point) == pytest.approx(b, abs=1e-10)
    assert np.all(y * (X @ w + b) > 0)


@pytest.mark.row("L2")
def test_the_perceptron_goes_on_where_nothing_separates():
    X, y = separable(gap=0.0)
    y[:10] *= -1
    problem = perceptron_problem(X, y)
    point, watch = solve(problem, Perceptron(), max_iter=20)
    assert (watch.status, watch.iterations) == (Ending.MAX_ITER, 20)
    assert all(mistakes > 0 for mistakes in watch.history["mistakes"])
    # The fewest mistakes count, not the smallest weights.
    _, _, history = textbook_perceptron(X, y, lambda _: range(len(y)), 20)
    missed = [int(np.sum(y * (X @ end[:-1] + end[-1]) <= 0)) for end in history]
    found = int(np.sum(y * problem.predict(point) <= 0))
    assert min(missed) <= found <= min(missed[len(y) - 1 :: len(y)]) < 0.3 * len(y)
    assert watch.objection == Ending.MISTAKES_LEFT
    assert watch.notes == [f"not separable in 20 epochs: {found} mistakes left"]


@pytest.mark.row("L2")
def test_the_averaged_perceptron_and_weights():
    X, y = separable()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    problem = perceptron_problem(X, y, weights=weights)
    point, watch = solve(problem, Perceptron(average=True))
    assert (watch.status, watch.history["mistakes"][-1]) == (Ending.NO_MISTAKES, 0)
    relative = weights * len(y) / weights.sum()
    _, _, history = textbook_perceptron(X, y, lambda _: range(len(y)), watch.iterations, weights=relative)
    # The average counts the zeros before the first visit.
    mean = np.append(history, np.zeros((1, history.shape[1])), axis=0).mean(axis=0)
    assert point.w == pytest.approx(mean[:-1], rel=1e-10)
    assert raw_intercept(problem, point) == pytest.approx(mean[-1], abs=1e-9)


@pytest.mark.row("L2")
def test_the_perceptron_is_fast():
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 100))
    y = np.sign(X[:, 0] + 0.5 * random.normal(size=100_000))
    problem = perceptron_problem(X, y)
    solver = Perceptron(shuffle=True)
    solve(problem, solver, max_iter=1)
    _, watch = solve(problem, solver, max_iter=5)
    assert min(np.diff(watch.history["seconds"])) < 0.25


def test_interrupts_inside_an_epoch():
    with listening_to(lambda: True):
        _, watch = solve(perceptron_problem(*separable()), Perceptron())
    assert watch.status == Ending.INTERRUPTED


def test_refusals_say_why():
    assert Perceptron().refusal(make("hinge", "none", 1.0)[0]) == "it needs the perceptron loss"
    assert Perceptron().refusal(make("perceptron", "l2", 1.0)[0]) == "it needs no penalty"
