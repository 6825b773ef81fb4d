"""Closed form and Newton's method behind a kernel, against a general convex solver on explicit features."""

import numpy as np
import pytest

from empirisk import kernels, losses, penalties
from empirisk.certificate import verify
from empirisk.errors import TooLarge
from empirisk.fits.fit import Limits, SolverRun
from empirisk.linalg import single_precision
from empirisk.maps.implicit import GramDesign
from empirisk.problem import Problem
from empirisk.settings import config
from empirisk.solvers import ClosedForm, Newton, Watch
from empirisk.solvers.choose import choose
from empirisk.solvers.closed import closed_form
from empirisk.solvers.newton import kernel as kernel_newton
from empirisk.stop import Deadline, Ending
from tests.cases import targets
from tests.truth import optimum

SMOOTH = [
    losses.SquaredHinge(),
    losses.Logistic(),
    losses.SoftHinge(margin=0.5, temperature=0.3),
    losses.Exponential(),
    losses.Power(1.5),
    losses.Power(3.0),
    losses.Softmax(),
    losses.CrammerSinger(),
]
KERNELS = [kernels.Gaussian(1.5), kernels.Polynomial(2) + kernels.Linear()]


def make(loss, kernel, C=1.0, intercept=True, n=40, penalty=None, dtype=np.float64):
    """A problem behind a kernel, and its optimal value on explicit features."""
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 3)).astype(dtype)
    y = targets(loss, X, random)
    weights = random.uniform(0.3, 3.0, n)
    classes = 3 if loss.joint else 0
    penalty = penalties.L2() if penalty is None else penalty
    design = GramDesign(kernel, kernel.prepare(X), X)
    problem = Problem(loss, penalty, C, design, y, weights, intercept, classes)
    values, vectors = np.linalg.eigh(kernel.block(X.astype(np.float64)))
    kept = values > 1e-14 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    return problem, (loss, penalty, C, features, y, weights, intercept, classes)


def solved(problem, solver, tol=1e-9, **limits):
    watch = Watch(tol=tol, max_iter=solver.iteration_limit, **limits)
    point = solver.solve(problem, watch)
    return point, verify(problem, point), watch


@pytest.mark.row("K9")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_ridge_is_the_solution_of_its_linear_system(kernel, intercept):
    problem, known = make(losses.Squared(), kernel, C=0.7, intercept=intercept)
    point, certificate, _ = solved(problem, ClosedForm())
    assert certificate.relative_gap < 1e-12
    assert certificate.primal == pytest.approx(optimum(*known), rel=1e-7)
    K, y, n = problem.design.matrix, problem.y, len(problem.y)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + np.diag(1 / (2 * 0.7 * problem.weights))
    system[:n, n] = system[n, :n] = 1.0
    if not intercept:
        system[n], system[:, n], system[n, n] = 0.0, 0.0, 1.0
    expected = np.linalg.solve(system, np.append(y, 0.0))
    np.testing.assert_allclose(point.w, expected[:n], rtol=1e-8, atol=1e-10)
    assert point.b == pytest.approx(expected[n], rel=1e-8, abs=1e-10)


@pytest.mark.row("K9")
def test_targets_share_the_factor_and_the_products_come_from_its_other_triangle(monkeypatch):
    problem, _ = make(losses.Squared(), KERNELS[0], n=60)
    shared = {}
    with config(memory=4 * 8 * 60**2 - 8):  # so small that no Gram matrix is kept
        assert not problem.design.keeps_matrix
        first, *_ = solved(problem, ClosedForm(), shared=shared)
        monkeypatch.setattr(kernels.Gaussian, "between", None)
        other = Problem(**{**vars_of(problem), "y": problem.y**2})
        second, certificate, _ = solved(other, ClosedForm(), shared=shared)
    assert certificate.relative_gap < 1e-12
    assert not np.allclose(first.w, second.w)


def vars_of(problem):
    return {name: getattr(problem, name) for name in problem.__dataclass_fields__}


def test_another_C_or_other_weights_need_another_factor():
    problem, _ = make(losses.Squared(), KERNELS[0])
    shared = {}
    for changed in (problem, problem.with_C(50.0), Problem(**{**vars_of(problem), "weights": problem.weights**2})):
        point, certificate, _ = solved(changed, ClosedForm(), shared=shared)
        assert certificate.relative_gap < 1e-12
        alone, *_ = solved(changed, ClosedForm())
        np.testing.assert_allclose(point.w, alone.w, rtol=1e-9, atol=1e-12)


def assert_solves_the_linear_system(problem, point):
    K = KERNELS[0].block(problem.design.source)
    left = K @ point.w + point.w / (2 * problem.scale) + point.b
    np.testing.assert_allclose(left, problem.y, atol=1e-13 * np.abs(point.w).sum())
    assert abs(point.w.sum()) < 1e-9 * np.abs(point.w).sum()


@pytest.mark.row("K9")
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("C", "single"), [(0.7, True), (3e3, False)])
def test_large_systems_with_a_ridge_are_factored_in_single_precision_and_refined(C, single, kept):
    problem, _ = make(losses.Squared(), KERNELS[0], C=C, n=1100)
    shared, n = {}, 1100
    with config(memory=4 * 8 * n**2 - 8 + 8 * kept):
        assert problem.design.keeps_matrix is kept
        point, certificate, watch = solved(problem, ClosedForm(), shared=shared)
        other = Problem(**{**vars_of(problem), "y": problem.y**2})
        assert solved(other, ClosedForm(), shared=shared)[1].relative_gap < 1e-10
    assert kernel_newton.kept_for(problem, watch)["system"].exact is not single
    assert certificate.relative_gap < 1e-10
    assert_solves_the_linear_system(problem, point)


def test_where_single_precision_does_not_settle_the_factor_is_made_in_double(monkeypatch):
    problem, _ = make(losses.Squared(), KERNELS[0], C=1e6, n=150)
    monkeypatch.setattr(closed_form, "single_suffices", lambda *_: True)
    point, _, watch = solved(problem, ClosedForm(), tol=1e-8)
    assert watch.status == Ending.CONVERGED
    assert kernel_newton.kept_for(problem, watch)["system"].exact
    assert_solves_the_linear_system(problem, point)


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_newton_steps_with_factors_of_either_precision_end_at_the_same_place(C, monkeypatch):
    problem, _ = make(losses.Logistic(), KERNELS[0], C=C, n=200)
    exact, *_ = solved(problem, Newton(), tol=1e-10)
    monkeypatch.setattr(single_precision, "LEAST", 100)
    mostly_single, certificate, watch = solved(problem, Newton(), tol=1e-10)
    assert certificate.relative_gap <= 1e-10
    assert watch.iterations <= 40
    np.testing.assert_allclose(problem.predict(mostly_single), problem.predict(exact), atol=1e-3)


def test_a_ridge_below_rounding_stalls_and_says_so():
    problem, _ = make(losses.Squared(), kernels.Linear(), C=1e22)
    point, certificate, watch = solved(problem, ClosedForm())
    assert watch.status == Ending.STALLED
    assert np.all(np.isfinite(point.w))
    assert np.isfinite(certificate.primal)


def test_kernel_machines_without_penalty_are_not_for_the_closed_form():
    problem, _ = make(losses.Squared(), KERNELS[0], penalty=penalties.NoPenalty())
    assert "l2" in ClosedForm().refusal(problem)
    assert "l2" in Newton().refusal(problem)


@pytest.mark.row("K8")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 30.0])
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_smooth_losses_reach_the_optimum(loss, C, intercept):
    problem, known = make(loss, KERNELS[0], C, intercept)
    (fit,) = SolverRun("auto", Limits(1e-8, None, None))([problem])
    assert fit.certificate.converged
    assert fit.certificate.primal == pytest.approx(optimum(*known), rel=1e-6)
    assert fit.certificate.primal - fit.certificate.gap <= optimum(*known) * (1 + 1e-9)


@pytest.mark.row("K8")
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SquaredHinge(), losses.Softmax()], ids=repr)
def test_newton_is_chosen_and_needs_few_steps(loss):
    problem, _ = make(loss, KERNELS[1], C=2.0, n=150)
    assert isinstance(choose(problem)[0], Newton)
    _, certificate, watch = solved(problem, Newton(), tol=1e-10)
    assert certificate.relative_gap <= 1e-10
    assert watch.status == Ending.CONVERGED
    assert watch.iterations <= 15


def test_gradients_with_landmarks_agree_with_the_factor():
    problem, _ = make(losses.Logistic(), KERNELS[0], C=5.0, n=300)
    direct, *_ = solved(problem, Newton(), tol=1e-12)
    indirect, certificate, _ = solved(problem, Newton(direct=10), tol=1e-12)
    assert certificate.relative_gap <= 1e-12
    np.testing.assert_allclose(indirect.w, direct.w, rtol=1e-4, atol=1e-6)


def test_a_time_limit_ends_gradients_inside_a_step():
    problem, _ = make(losses.Logistic(), KERNELS[0], C=5.0, n=300)
    _, _, watch = solved(problem, Newton(direct=10), tol=1e-12, deadline=Deadline(0.0))
    assert watch.status == Ending.MAX_TIME


def test_a_warm_start_at_the_solution_ends_at_once():
    problem, _ = make(losses.Logistic(), KERNELS[0], n=100)
    point, *_ = solved(problem, Newton(), tol=1e-9)
    watch = Watch(tol=1e-8)
    Newton().solve(problem, watch, point)
    assert watch.iterations == 0


def test_softmax_that_does_not_fit_the_memory_says_what_to_do():
    problem, _ = make(losses.Softmax(), KERNELS[0], n=100)
    with config(memory="100KB"), pytest.raises(TooLarge, match="Nystrom"):
        solved(problem, Newton())


def test_single_precision_data_reach_the_usual_tolerance():
    for loss in (losses.Squared(), losses.Logistic()):
        problem, known = make(loss, KERNELS[0], dtype=np.float32)
        (fit,) = SolverRun("auto", Limits(1e-6, None, None))([problem])
        assert fit.certificate.converged
        assert fit.certificate.primal == pytest.approx(optimum(*known), rel=1e-4)
