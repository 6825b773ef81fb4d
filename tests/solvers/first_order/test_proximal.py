"""Proximal methods against a general convex solver, and by what they promise about units, steps and limits."""

import warnings

import numpy as np
import pytest

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.linalg.design import design_of
from empirisk.problem import Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.first_order.primal_dual import PrimalDual
from empirisk.solvers.first_order.proximal import Proximal
from empirisk.solvers.first_order.scaling import Scaling
from empirisk.stop import Deadline, Ending, listening_to
from tests import catalog
from tests.cases import KINDS, SHAPES, make
from tests.truth import optimum

CONVEX = [loss for loss in catalog.LOSSES if loss.convex]
PENALTIES = ("l2", "l1", "elastic_net", "none")
SETTINGS = [(shape, kind) for kind in KINDS for shape in SHAPES]
# Every loss with every penalty; the kinds of data take turns.
CASES = [
    (loss, penalty, *SETTINGS[(3 * i + 5 * j) % len(SETTINGS)], bool((i + j) % 2))
    for i, loss in enumerate(CONVEX)
    for j, penalty in enumerate(PENALTIES)
]
# Where y is 0, deviances fall for ever as f does: wide data without a penalty have no minimum that steps could reach.
CASES = [
    (loss, penalty, "tall" if penalty == "none" and loss.positive and not loss.attained else shape, *rest)
    for loss, penalty, shape, *rest in CASES
]


def solve(problem, solver=None, start=None, **limits):
    solver = Proximal() if solver is None else solver
    watch = Watch(**{"max_iter": solver.iteration_limit, **limits})
    with np.errstate(over="ignore", under="ignore"):
        return solver.solve(problem, watch, start), watch


@pytest.mark.row("S5")
@pytest.mark.parametrize(("loss", "penalty", "shape", "kind", "intercept"), CASES, ids=repr)
def test_every_loss_with_every_penalty_reaches_the_optimum(loss, penalty, shape, kind, intercept):
    problem, arguments = make(loss, penalty, 0.05 if shape == "tall" else 2.0, shape, kind, intercept)
    point, watch = solve(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the general solver's own doubts
        best = optimum(*arguments)
    assert watch.status == Ending.CONVERGED
    assert verify(problem, point).relative_gap <= 1e-6
    assert problem.primal(point) <= best + 1e-6 * problem.magnitude(best)


@pytest.mark.row("S5")
def test_lasso_on_orthonormal_columns_is_the_soft_threshold():
    random = np.random.default_rng(0)
    Q, _ = np.linalg.qr(random.normal(size=(30, 8)))
    y = Q @ np.array([3.0, -2.0, 0.1, 0.0, 0.4, -0.45, 1.0, -5.0]) + 0.1 * random.normal(size=30)
    problem = Problem(losses.Squared(), penalties.L1(), 1.0, design_of(Q, False), y, np.ones(30), False)
    point, _ = solve(problem, tol=1e-12)
    z = Q.T @ y
    assert point.w == pytest.approx(np.sign(z) * np.maximum(np.abs(z) - 0.5, 0), abs=1e-6)


@pytest.mark.row("S5")
def test_momentum_helps_and_changes_nothing_else():
    problem, _ = make("logistic", "l1", 5.0, "wide")
    plain, slow = solve(problem, Proximal(accelerated=False))
    fast, quick = solve(problem)
    assert problem.primal(plain) == pytest.approx(problem.primal(fast), rel=2e-6)
    assert 2 * quick.iterations < slow.iterations
    falls = np.diff(slow.history["objective"])
    assert np.all(falls <= 1e-13 * problem.origin_value)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_units_of_the_columns_do_not_matter(loss):
    random = np.random.default_rng(1)
    X = random.normal(size=(50, 4))
    y = np.where(X[:, 0] + random.normal(size=50) > 0, 1.0, -1.0)
    histories = []
    for units in (np.ones(4), 2.0 ** np.array([-20, 3, 0, 17])):
        design = design_of(X * units, True)
        problem = Problem(losses.find(loss), penalties.NoPenalty(), 1.0, design, y, np.ones(50))
        histories.append(solve(problem)[1].history["objective"])
    assert histories[0] == pytest.approx(histories[1], rel=1e-9)


def test_where_gradient_steps_crawl_the_primal_dual_method_takes_over():
    problem, arguments = make("squared_hinge", "l2", 50.0, "wide", "badly scaled", False)
    point, watch = solve(problem)
    assert watch.iterations > 5000
    assert watch.status == Ending.CONVERGED
    best = optimum(*arguments)
    assert problem.primal(point) <= best + 1e-6 * problem.magnitude(best)


@pytest.mark.parametrize("loss", ["logistic", "softmax", "hinge", "crammer_singer"])
def test_a_warm_start_is_used(loss):
    problem, _ = make(loss, "elastic_net", 1.0)
    point, cold = solve(problem, tol=1e-8)
    _, warm = solve(problem, start=point)
    assert warm.status == Ending.CONVERGED
    assert warm.iterations < 0.5 * cold.iterations


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_history_limits_and_interrupts(loss):
    problem, _ = make(loss, "l1", 1.0)
    point, watch = solve(problem, max_iter=7, tol=0.0)
    assert watch.status == Ending.MAX_ITER
    assert len(watch.history["objective"]) == watch.iterations == 7
    assert problem.primal(point) == pytest.approx(min(watch.history["objective"]))
    with listening_to(lambda: True):
        point, watch = solve(problem)
    assert (watch.status, watch.iterations) == (Ending.INTERRUPTED, 1)
    assert np.isfinite(problem.primal(point))
    _, watch = solve(problem, deadline=Deadline(0.0))
    assert watch.status == Ending.MAX_TIME


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_a_tolerance_beyond_rounding_stalls(loss):
    problem, _ = make(loss, "l2", 1.0)
    point, watch = solve(problem, tol=0.0)
    assert watch.status == Ending.STALLED
    assert watch.iterations < 5000
    assert verify(problem, point).relative_gap < 1e-12


def test_a_loss_that_is_not_convex_is_refused():
    problem, _ = make("hinge", "l2", 1.0)
    problem = Problem(losses.ZeroOne(), penalties.L2(), 1.0, problem.design, problem.y, problem.weights)
    assert Proximal().refusal(problem) == "it needs a convex loss"


@pytest.mark.parametrize("seed", range(4))
def test_momentum_ends_where_it_is_there(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 3))
    y = X[:, 0] + random.normal(size=60)
    machine = er.Lasso(solver=Proximal()).fit(X, y)
    assert machine.certificate_.converged
    assert machine.n_iter_ < 100


def test_where_no_step_is_safe_the_place_stays_and_the_method_is_stuck(monkeypatch):
    problem, _ = make("hinge", "l2", 1.0)
    method = PrimalDual(Scaling(problem), problem.origin())
    before = method.here
    # Products of weights as huge as 1e45 round to this.
    monkeypatch.setattr(method, "_longest", lambda here, there: 0.0)
    method.step()
    assert method.stuck
    assert method.here is before


def test_a_step_whose_product_with_the_balance_is_zero_is_none(monkeypatch):
    problem, _ = make("hinge", "l2", 1.0)
    method = PrimalDual(Scaling(problem), problem.origin())
    method.balance, before = 1e-200, method.here
    monkeypatch.setattr(method, "_longest", lambda here, there: 1e-200)
    method.step()
    assert method.stuck
    assert method.here is before
