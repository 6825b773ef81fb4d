"""Newton's method on proximal steps of the dual: losses of any curvature, to the optimum, warm, and stopped in time."""

import warnings

import numpy as np
import pytest

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.linalg.design import design_of
from empirisk.problem import Problem
from empirisk.solvers.base import Watch
from empirisk.solvers.corners import envelope
from empirisk.solvers.corners.envelope import Envelope
from empirisk.stop import Deadline, Ending, listening_to
from tests.cases import KINDS, make
from tests.truth import optimum

STEEP = [losses.Power(1.1), losses.Power(1.5), losses.Power(4.0), losses.Exponential(), losses.Logistic()]


def solve(problem, tol=1e-6, start=None, **limits):
    watch = Watch(tol=tol, **limits)
    return Envelope().solve(problem, watch, start), watch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("loss", STEEP, ids=repr)
def test_the_optimum_is_reached(loss, penalty, kind):
    problem, arguments = make(loss, penalty, 0.2, "tall", kind, seed=5)
    point, watch = solve(problem)
    assert watch.status == Ending.CONVERGED
    certificate = verify(problem, point)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the general solver's own doubts
        best = optimum(*arguments)
    assert certificate.primal <= best + 1e-6 * problem.magnitude(best)
    assert certificate.gap >= certificate.primal - best - 1e-8 * problem.magnitude(best)


def test_an_exact_fit_is_found_at_once():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4)) * [1.0, 1e3, 1e-3, 1.0]
    y = X @ [1.0, 2.0, 3.0, 4.0] + 5.0
    problem = Problem(losses.Power(1.3), penalties.NoPenalty(), 1.0, design_of(X, True), y, np.ones(30))
    point, watch = solve(problem)
    assert (watch.status, watch.iterations) == (Ending.CONVERGED, 0)
    np.testing.assert_allclose(point.w, [1.0, 2.0, 3.0, 4.0], rtol=1e-6)


def test_targets_far_from_zero_lose_no_digits():
    problem, _ = make(losses.Power(1.2), "l2", 0.2)
    near = verify(problem, solve(problem)[0])
    far = Problem(problem.loss, problem.penalty, problem.C, problem.design, problem.y + 1e6, problem.weights)
    point, watch = solve(far)
    assert watch.status == Ending.CONVERGED
    assert abs(verify(far, point).primal - near.primal) <= 1e-6 * near.primal


def test_a_warm_start_saves_steps():
    problem, _ = make(losses.Power(1.5), "l2", 0.2)
    point, cold = solve(problem)
    nearby = problem.with_C(0.201)
    again, warm = solve(nearby, start=point)
    assert warm.status == Ending.CONVERGED
    assert warm.iterations < cold.iterations
    assert verify(nearby, again).relative_gap <= 1e-6


@pytest.mark.parametrize("loss", STEEP[:3], ids=repr)
def test_ends_for_lack_of_digits_at_the_best_point(loss):
    problem, _ = make(loss, "l2", 0.2)
    point, watch = solve(problem, tol=0.0)
    assert watch.status == Ending.STALLED
    proven = [gap for gap in watch.history["gap"] if np.isfinite(gap)]
    assert verify(problem, point).gap <= min(proven) * (1 + 1e-9)
    assert verify(problem, point).relative_gap <= 1e-8


def test_stops_when_asked():
    problem, _ = make(losses.Power(1.5), "l2", 0.2)
    with listening_to(lambda: True):
        point, watch = solve(problem)
    assert (watch.status, watch.iterations) == (Ending.INTERRUPTED, 1)
    assert np.all(np.isfinite(point.w))
    _, watch = solve(problem, deadline=Deadline(0.0))
    assert watch.status == Ending.MAX_TIME
    _, watch = solve(problem, max_iter=2)
    assert (watch.status, watch.iterations) == (Ending.MAX_ITER, 2)


def test_refusals_say_why():
    assert "corners" in Envelope().refusal(make("hinge", "l1", 1.0)[0])
    assert "joint" in Envelope().refusal(make("softmax", "l2", 1.0)[0])


def test_weights_that_nothing_bends_take_few_trials(monkeypatch):
    """Columns that depend on each other, with l1: Newton's step is then without bounds, and only kinks end it."""
    counted, search = [], envelope.line_search

    def counting(along, value, slope):
        return search(lambda t: (counted.append(t), along(t))[1], value, slope)

    monkeypatch.setattr(envelope, "line_search", counting)
    X = np.zeros((13, 3))
    X[[0, 7, 7, 10, 11], [1, 1, 2, 2, 0]] = 1.3, 0.4, -0.7, -0.9, 0.5
    y = np.random.default_rng(0).normal(size=13)
    machine = er.Regressor("power", er.maps.Periodic(), "l1", C=10.0, tol=1e-4).fit(X, y)
    assert machine.certificate_.converged
    assert len(counted) < 100


def test_steps_that_gain_nothing_end_a_round(monkeypatch):
    """Equal rows with different labels, and weights of thirty digits: steps are short, and gain seven digits less."""
    steps, take = [], envelope.Envelopes.step
    monkeypatch.setattr(envelope.Envelopes, "step", lambda state: (steps.append(state), take(state))[1])
    for seed in range(6):
        rows = np.random.default_rng(seed).normal(size=(2, 8))
        X, y = rows[[0, 1, 0, 1]], np.array([1.0, 1.0, -1.0, 1.0])
        problem = Problem(losses.SoftHinge(), penalties.L2(), 100.0, design_of(X, True), y, np.full(4, 1e30))
        with np.errstate(all="ignore"):
            _, watch = solve(problem, tol=1e-3)
        assert watch.status == Ending.STALLED
    assert len(steps) < 300


def test_envelopes_that_come_and_go_are_no_progress():
    """Those too near for the rounding of predictions are taken back; that they come near again is nothing new."""
    problem, _ = make(losses.Power(1.5), "l1", 0.2)
    state, rises = envelope.Envelopes(problem, problem.origin()), []
    for state.value in (1.0, 2.0, 1.0, 2.0, 3.0):
        rises.append(state.rising())
    assert rises == [True, True, False, False, True]
