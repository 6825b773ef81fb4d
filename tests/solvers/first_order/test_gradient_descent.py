"""Gradient descent: each step rule by its definition, and all of them on whole problems."""

import numpy as np
import pytest

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.errors import EmpiriskError
from empirisk.linalg.design import design_of
from empirisk.problem import Point, Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.first_order.gradient_descent import GradientDescent, curvature
from empirisk.stop import Deadline, Ending, listening_to
from tests.cases import make
from tests.truth import optimum

SEARCHES = ["auto", "backtracking", "exact", "fixed", "bold_driver"]


def solve(problem, solver=None, start=None, **limits):
    solver = GradientDescent() if solver is None else solver
    watch = Watch(**{"max_iter": solver.iteration_limit, **limits})
    with np.errstate(over="ignore"):
        return solver.solve(problem, watch, start), watch


def trail(problem, solver, steps, start=None):
    """The points after each of the first steps."""
    points = []

    def note(_, point):
        points.append(Point(np.array(point.w), np.array(point.b)))
        return False

    solve(problem, solver, start, max_iter=steps, tol=0.0, progress=note)
    return points


def gradient(problem, point):
    u = problem.slopes(problem.predict(point))
    return problem.design.tdot(u) + problem.penalty.l2 * point.w, u.sum(axis=0)


@pytest.mark.row("S1")
@pytest.mark.parametrize("step", SEARCHES)
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "softmax"])
def test_smooth_problems_are_solved(loss, step):
    problem, arguments = make(loss, "l2", 0.5)
    point, watch = solve(problem, GradientDescent(step))
    best = optimum(*arguments)
    assert watch.status == Ending.CONVERGED
    assert verify(problem, point).relative_gap <= 1e-6
    assert problem.primal(point) <= best * (1 + 1e-6)


@pytest.mark.row("S1")
@pytest.mark.parametrize("loss", ["exponential", losses.Power(1.5), losses.Power(3.5)], ids=repr)
@pytest.mark.parametrize("penalty", ["l2", "none"])
def test_losses_of_unbounded_curvature_are_solved(loss, penalty):
    problem, _ = make(loss, penalty, 0.5)
    point, watch = solve(problem)
    assert watch.status == Ending.CONVERGED
    assert verify(problem, point).relative_gap <= 1e-6


@pytest.mark.row("S1")
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_fixed_rate_is_a_step_on_the_mean(loss):
    problem, _ = make(loss, "l2", 2.0)
    start = problem.origin()
    total = problem.scale.sum()
    for point in trail(problem, GradientDescent("fixed", rate=0.3), 3, start):
        w, b = gradient(problem, start)
        start = Point(start.w - 0.3 / total * w, start.b - 0.3 / total * b)
        assert point.w == pytest.approx(start.w, rel=1e-12, abs=1e-14)
        assert point.b == pytest.approx(start.b, rel=1e-12, abs=1e-14)


@pytest.mark.row("S1")
def test_exact_steps_on_a_quadratic():
    problem, _ = make("squared", "l2", 0.7, intercept=False)
    start = problem.origin()
    (point,) = trail(problem, GradientDescent("exact"), 1, start)
    g, _ = gradient(problem, start)
    hessian = 2 * problem.design.gram(problem.scale) + np.eye(len(g))
    assert point.w == pytest.approx(-(g @ g) / (g @ hessian @ g) * g, rel=1e-8)


@pytest.mark.row("S1")
@pytest.mark.parametrize("step", ["backtracking", "exact", "fixed", "bold_driver"])
def test_searches_never_climb(step):
    problem, _ = make("logistic", "l2", 20.0)
    _, watch = solve(problem, GradientDescent(step), max_iter=50, tol=0.0)
    assert np.all(np.diff(watch.history["objective"]) <= 1e-14 * problem.origin_value)
    assert len(watch.history["objective"]) == 50


@pytest.mark.row("S1")
def test_the_bold_driver_grows_and_takes_back():
    """Steps of 4, then 4 c, ... on x^2 with gradient 2x: every one overshoots until the rate has shrunk below 1."""
    problem = Problem(
        losses.Squared(), penalties.NoPenalty(), 1.0, design_of(np.eye(1), False), np.zeros(1), np.ones(1), False
    )
    start = Point(np.ones(1))
    points = trail(problem, GradientDescent("bold_driver", rate=4.0, grow=1.5, shrink=0.2), 4, start)
    rate, x, expected = 4.0, 1.0, []
    for _ in range(4):
        trial = x - rate * 2 * x
        x, rate = (trial, rate * 1.5) if trial**2 <= x**2 else (x, rate * 0.2)
        expected.append(x)
    assert [float(point.w[0]) for point in points] == pytest.approx(expected)
    assert expected[0] == 1.0


@pytest.mark.row("S1")
@pytest.mark.row("S2")
@pytest.mark.parametrize(("step", "power"), [("decreasing", 1.0), ("decreasing_root", 0.5), ("fixed", 0.0)])
def test_decreasing_steps(step, power):
    """Far from its corner the absolute loss has one slope, so the points tell the steps."""
    design = design_of(np.ones((4, 1)), False)
    problem = Problem(losses.Absolute(), penalties.NoPenalty(), 1.0, design, np.full(4, 1e3), np.ones(4), False)
    points = trail(problem, GradientDescent(step, rate=2.0), 5)
    steps = np.diff([0.0] + [float(point.w[0]) for point in points])
    assert steps == pytest.approx(2.0 * np.arange(1, 6) ** -power)


@pytest.mark.row("S2")
@pytest.mark.parametrize(
    ("loss", "penalty", "accuracy"),
    [
        ("hinge", "l2", 1e-3),
        ("hinge", "l1", 1e-2),
        ("absolute", "none", 1e-2),
        ("epsilon_insensitive", "l2", 1e-3),
        ("logistic", "l1", 1e-4),
        ("crammer_singer", "l2", 1e-2),
    ],
)
def test_subgradients_at_corners_keep_the_best_point(loss, penalty, accuracy):
    problem, arguments = make(loss, penalty, 1.0)
    point, watch = solve(problem, max_iter=3000)
    best = optimum(*arguments)
    assert problem.primal(point) <= best * (1 + accuracy)
    assert problem.primal(point) == pytest.approx(min(watch.history["objective"]), rel=1e-9)


def test_the_curvature_bounds_the_hessian():
    for intercept in (True, False):
        problem, _ = make("logistic", "l2", 3.0, intercept=intercept)
        design = problem.design
        columns = design.columns(np.arange(design.shape[1]))
        A = np.column_stack([columns, np.ones(len(columns))]) if intercept else columns
        largest = 0.25 * np.linalg.eigvalsh(A.T @ (problem.scale[:, None] * A))[-1] + 1.0
        assert largest <= curvature(problem) <= 1.1 * largest


def test_sparse_data_and_a_warm_start():
    problem, _ = make("logistic", "l2", 1.0, "tall", "sparse")
    point, cold = solve(problem, tol=1e-9)
    _, warm = solve(problem, start=point)
    assert warm.status == Ending.CONVERGED
    assert warm.iterations < 0.5 * cold.iterations


def test_limits_and_interrupts():
    problem, _ = make("logistic", "l2", 1.0)
    with listening_to(lambda: True):
        _, watch = solve(problem)
    assert (watch.status, watch.iterations) == (Ending.INTERRUPTED, 1)
    _, watch = solve(problem, deadline=Deadline(0.0))
    assert watch.status == Ending.MAX_TIME
    point, watch = solve(problem, tol=0.0)
    assert watch.status == Ending.STALLED
    assert verify(problem, point).relative_gap < 1e-12


def test_a_rate_that_diverges_leaves_the_best_point():
    problem, _ = make("squared", "l2", 1.0)
    point, watch = solve(problem, GradientDescent("fixed", rate=1e6))
    assert watch.status == Ending.STALLED
    assert problem.primal(point) <= problem.origin_value


def test_refusals_say_why():
    smooth, _ = make("exponential", "l2", 1.0)
    assert "bounded curvature for step='fixed', or a rate" in GradientDescent("fixed").refusal(smooth)
    assert GradientDescent("fixed", rate=0.1).refusal(smooth) == ""
    for loss, penalty in (("hinge", "l2"), ("logistic", "l1"), ("crammer_singer", "l2")):
        cornered, _ = make(loss, penalty, 1.0)
        for step in ("backtracking", "exact", "bold_driver"):
            assert "without corners for this step, or step='decreasing'" in GradientDescent(step).refusal(cornered)
        assert GradientDescent().refusal(cornered) == ""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"step": "newton"}, "step='newton' of GradientDescent is not known"),
        ({"rate": -1.0}, "rate=-1.0 of GradientDescent must be a positive number"),
        ({"grow": 0.9}, "grow=0.9"),
        ({"shrink": 1.5}, "shrink=1.5"),
    ],
)
def test_parameters_without_meaning_are_named(parameters, message):
    problem, _ = make("logistic", "l2", 1.0)
    with pytest.raises(EmpiriskError, match=message):
        solve(problem, GradientDescent(**parameters))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exact_steps_where_rounding_leaves_no_descent():
    """Columns so small beside the targets that the slope along the gradient is the rounding of the intercept."""
    X, y = 1e-30 * np.random.default_rng(0).normal(size=(20, 2)), np.zeros(20)
    y[3] = 1e45
    machine = er.LeastSquares(solver=GradientDescent("exact")).fit(X, y, sample_weight=np.arange(20) % 3 + 1)
    assert np.isfinite(machine.predict(X)).all()
