"""The joint multiclass losses: value, derivatives, conjugate, prox, best constant."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from empirisk.errors import Unsuitable
from empirisk.losses import CrammerSinger, Hinge, Logistic, SoftCrammerSinger, Softmax, find
from tests import naive
from tests.catalog import JOINT_LOSSES, LOSSES

pytestmark = pytest.mark.row("E2")
every_joint = pytest.mark.parametrize("loss", JOINT_LOSSES, ids=repr)
CLASSES = 4


def rows(seed=0, count=60, scale=2.0, classes=CLASSES):
    """Class codes and scores; some scores are whole numbers, so that maxima tie."""
    rng = np.random.default_rng(seed)
    F = scale * rng.standard_normal((count, classes))
    F[::3] = np.round(F[::3])
    return rng.integers(0, classes, count), F


def simplex_points(y, seed=1, classes=CLASSES):
    """Random dual variables p - onehot(y), some on the boundary of the simplex."""
    p = np.random.default_rng(seed).dirichlet(np.full(classes, 0.7), len(y))
    p[::4, 0] = 0.0
    p[1::7] = np.eye(classes)[y[1::7]]
    p /= p.sum(axis=1, keepdims=True)
    return p - np.eye(classes)[y]


@every_joint
def test_value_is_the_formula(loss):
    y, F = rows()
    expected = [naive.joint_value(loss, code, row) for code, row in zip(y, F, strict=True)]
    np.testing.assert_allclose(loss.value(y, F), expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(loss.value(y.astype(float), F), loss.value(y, F))


def test_softmax_derivative_by_differences():
    y, F = rows()
    h, eye = 1e-3, np.eye(CLASSES)
    for j in range(CLASSES):
        near = Softmax().value(y, F + h * eye[j]) - Softmax().value(y, F - h * eye[j])
        far = Softmax().value(y, F + 2 * h * eye[j]) - Softmax().value(y, F - 2 * h * eye[j])
        np.testing.assert_allclose(Softmax().derivative(y, F)[:, j], (8 * near - far) / (12 * h), atol=1e-11)


@every_joint
def test_curvature_by_differences(loss):
    y, F = rows()
    F = F + 0.01 * np.random.default_rng(5).standard_normal(F.shape)  # off the corners
    h, eye = 1e-5, np.eye(CLASSES)
    for j in range(CLASSES):
        change = (loss.derivative(y, F + h * eye[j]) - loss.derivative(y, F - h * eye[j])) / (2 * h)
        np.testing.assert_allclose(loss.curvature(y, F)[:, :, j], change, atol=1e-9)


@every_joint
def test_derivative_is_a_subgradient_also_where_scores_tie(loss):
    y, F = rows()
    u = loss.derivative(y, F)
    np.testing.assert_allclose(u.sum(axis=1), 0, atol=1e-15)
    for seed in range(20):
        _, other = rows(seed + 100)
        line = loss.value(y, F) + (u * (other - F)).sum(axis=1)
        assert np.all(line <= loss.value(y, other) + 1e-12)


def test_curvature_bound_holds_and_is_attained():
    y, F = rows(count=300)
    largest = np.linalg.eigvalsh(Softmax().curvature(y, F)).max()
    assert largest <= Softmax().curvature_bound
    tied = np.array([[0.0, 0.0, -800.0, -800.0]])
    largest = np.linalg.eigvalsh(Softmax().curvature(np.zeros(1), tied)).max()
    assert largest == pytest.approx(Softmax().curvature_bound, rel=1e-14)
    assert CrammerSinger().curvature_bound == np.inf


# --- conjugate ------------------------------------------------------------------------------------------------------


def test_softmax_conjugate_is_the_supremum():
    y, _ = rows(count=12)
    for code, u in zip(y, simplex_points(y), strict=True):
        code, u = np.array([code]), u[None]
        lowest = minimize(
            lambda f, code=code, u=u: (Softmax().value(code, f[None]) - (u * f[None]).sum(axis=1))[0],
            np.zeros(CLASSES),
            jac=lambda f, code=code, u=u: (Softmax().derivative(code, f[None]) - u)[0],
            method="BFGS",
            options={"gtol": 1e-9},
        )
        assert Softmax().conjugate(code, u)[0] == pytest.approx(-lowest.fun, abs=1e-6)


def linear_supremum(code, u):
    """sup_F <u, F> - loss(code, F) of the Crammer-Singer loss as a linear program; infinite if unbounded."""
    gap = np.eye(CLASSES) - np.eye(CLASSES)[code]
    cost = np.arange(CLASSES) != code
    answer = linprog(
        np.append(-u, 1.0), A_ub=np.column_stack([gap, -np.ones(CLASSES)]), b_ub=-1.0 * cost, bounds=(None, None)
    )
    return np.inf if answer.status in (2, 3, 4) else -answer.fun


def test_crammer_singer_conjugate_is_the_supremum():
    y, _ = rows(count=24)
    inside = simplex_points(y)
    outside = inside + np.array([0.3, -0.2, -0.1, 0.0]) * np.where(inside.min(axis=1) < -0.5, 5, 0)[:, None]
    for u in (inside, outside, inside + 0.1):
        expected = [linear_supremum(code, row) for code, row in zip(y, u, strict=True)]
        np.testing.assert_allclose(CrammerSinger().conjugate(y, u), expected, atol=1e-9)


@every_joint
def test_conjugate_is_infinite_off_the_simplex_only(loss):
    y, _ = rows()
    u = simplex_points(y)
    assert np.all(np.isfinite(loss.conjugate(y, u)))
    assert np.all(np.isinf(loss.conjugate(y, u + 1e-6)))
    away = u + 2 * (np.eye(CLASSES)[(y + 1) % CLASSES] - np.eye(CLASSES)[y])
    assert np.all(np.isinf(loss.conjugate(y, away)))


@every_joint
def test_fenchel_young(loss):
    y, F = rows()
    u = simplex_points(y)
    excess = loss.value(y, F) + loss.conjugate(y, u) - (u * F).sum(axis=1)
    assert excess.min() >= -1e-13
    assert excess.max() > 0.1
    u = loss.derivative(y, F)
    np.testing.assert_allclose(loss.value(y, F) + loss.conjugate(y, u), (u * F).sum(axis=1), atol=1e-13)


@every_joint
def test_shrink_repairs_dual_points(loss):
    y, _ = rows()
    u = simplex_points(y)
    np.testing.assert_allclose(loss.shrink(y, u), u, atol=1e-15)
    moved = u + 0.3 * np.random.default_rng(2).standard_normal(u.shape)
    assert np.all(np.isfinite(loss.conjugate(y, loss.shrink(y, moved))))
    np.testing.assert_array_equal(loss.shrink(y, np.full(u.shape, -5.0)), np.zeros(u.shape))


# --- prox -----------------------------------------------------------------------------------------------------------


@every_joint
@pytest.mark.parametrize("step", [0.1, 1.0, 8.0])
def test_prox_against_a_conic_solver(loss, step):
    y, F = rows(seed=3, count=4)
    for code, row, x in zip(y, F, loss.prox(y, F, step), strict=True):
        z, cost = cp.Variable(CLASSES), 1.0 * (np.arange(CLASSES) != code)
        soft = getattr(loss, "temperature", 1.0)
        top = cp.max(z + cost)
        if loss.name() != "crammer_singer":
            top = soft * cp.log_sum_exp((z + getattr(loss, "margin", 0.0) * cost) / soft)
        objective = top - z[int(code)] + cp.sum_squares(z - row) / (2 * step)
        cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
        theirs, ours = (naive.joint_value(loss, code, v) + np.sum((v - row) ** 2) / (2 * step) for v in (z.value, x))
        assert -1e-14 <= theirs - ours <= 1e-7
        # strong convexity: a point is as near to the solution as its objective is
        np.testing.assert_allclose(x, z.value, atol=np.sqrt(2 * step * 1e-7))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("classes", [2, 5, 40])
def test_softmax_prox_over_extreme_inputs(scale, classes):
    """The distance to the solution by one Newton step on the optimality condition, in extended precision."""
    y, F = rows(seed=4, count=40, scale=scale, classes=classes)
    onehot = np.eye(classes)[y]
    for step in np.logspace(-8, 8, 17):
        x = Softmax().prox(y, F, step)
        long = x.astype(np.longdouble)
        e = np.exp(long - long.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        u = np.where(onehot > 0, -(p * (1 - onehot)).sum(axis=1, keepdims=True), p)
        residual = (long - F + step * u).astype(float)
        p = p.astype(float)
        hessian = np.eye(classes) + step * (p[:, :, None] * np.eye(classes) - p[:, :, None] * p[:, None, :])
        move = np.linalg.solve(hessian, residual[:, :, None])[:, :, 0]
        assert np.all(np.abs(move).max(axis=1) <= 1e-13 * (1 + np.abs(x).max(axis=1))), step


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
def test_crammer_singer_prox_over_extreme_inputs(scale):
    y, F = rows(seed=5, count=25, scale=scale)
    for step in np.logspace(-8, 8, 9):
        expected = [naive.crammer_singer_prox(code, row, step) for code, row in zip(y, F, strict=True)]
        np.testing.assert_allclose(CrammerSinger().prox(y, F, step), expected, rtol=0, atol=2e-15 * (1 + scale * 4))


@every_joint
def test_each_sample_may_have_its_own_step(loss):
    y, F = rows(count=30)
    steps = np.logspace(-2, 2, 30)
    alone = [loss.prox(y[[i]], F[[i]], steps[i])[0] for i in range(30)]
    np.testing.assert_allclose(loss.prox(y, F, steps), alone, rtol=1e-13, atol=1e-13)


# --- constants, extremes, two classes -------------------------------------------------------------------------------


def test_softmax_best_constant_gives_the_class_frequencies():
    y, weights = np.array([0, 1, 1, 2, 2, 2, 0]), np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.0, 0.25])
    b = Softmax().best_constant(y, weights)
    assert b.sum() == pytest.approx(0, abs=1e-14)
    np.testing.assert_allclose(Softmax().link(b[None])[0], np.bincount(y, weights) / weights.sum(), rtol=1e-14)
    np.testing.assert_allclose(weights @ Softmax().derivative(y, np.tile(b, (7, 1))), 0, atol=1e-14)
    assert np.all(np.isfinite(Softmax().best_constant(y, (y > 0) * 1.0)))


@pytest.mark.parametrize(
    "shares", [[1, 1, 1, 1], [3, 1, 1, 1], [2, 3, 5, 1], [1, 9, 1, 1], [5, 2, 0.5, 1], [0, 1, 0, 0]]
)
def test_crammer_singer_best_constant_against_a_linear_program(shares):
    y, weights = np.arange(CLASSES), np.array(shares, dtype=float)
    b, excess = cp.Variable(CLASSES), cp.Variable(CLASSES, nonneg=True)
    rules = [excess[k] >= 1 + b[j] - b[k] for k in range(CLASSES) for j in range(CLASSES) if j != k]
    best = cp.Problem(cp.Minimize(weights @ excess), rules).solve(solver=cp.HIGHS)
    found = CrammerSinger().best_constant(y, weights)
    assert found.shape == (CLASSES,)
    assert weights @ CrammerSinger().value(y, np.tile(found, (CLASSES, 1))) == pytest.approx(best, abs=1e-9)


@every_joint
def test_extreme_scores_give_no_nan_and_no_warning(loss):
    F = np.array([[800.0, -800.0, 0.0], [-1e4, 1e4, 1e4], [0.0, 0.0, 0.0], [1e6, 1e6 + 1, -1e6]])
    for code in range(3):
        y = np.full(4, code)
        for values in (loss.value(y, F), loss.derivative(y, F), loss.curvature(y, F)):
            assert np.all(np.isfinite(values))
        for step in (1e-8, 1.0, 1e8):
            assert np.all(np.isfinite(loss.prox(y, F, step)))
        assert np.all(np.isfinite(loss.conjugate(y, loss.derivative(y, F))))


def test_small_softmax_losses_are_exact():
    F, y = np.array([[0.0, 40.0, 0.0], [1000.0, 1100.0, 1000.0]]), np.array([1, 1])
    expected = 2 * np.exp([-40.0, -100.0])
    np.testing.assert_allclose(Softmax().value(y, F), expected, rtol=1e-12)
    np.testing.assert_allclose(Softmax().derivative(y, F)[:, 1], -expected, rtol=1e-12)


SOFT = [loss for loss in JOINT_LOSSES if loss.name() == "soft_crammer_singer"]
TWO = [(two, find(two.joint_form)) for two in (Logistic(), Hinge())] + [(loss.two_class_form, loss) for loss in SOFT]


@pytest.mark.parametrize(("two", "joint"), TWO, ids=repr)
def test_two_classes_are_the_margin_loss(two, joint):
    f = np.linspace(-5, 5, 41)
    for code, y in enumerate([-1.0, 1.0]):
        scores = np.column_stack([np.zeros_like(f), f])
        codes, labels = np.full(41, code), np.full(41, y)
        np.testing.assert_allclose(joint.value(codes, scores), two.value(labels, f), atol=1e-14)


def test_joint_forms_are_joint_losses():
    names = {loss.name(): loss.joint_form for loss in LOSSES if loss.joint_form}
    assert names == {"logistic": "softmax", "hinge": "crammer_singer"}
    assert all(loss.joint == (loss in JOINT_LOSSES) for loss in LOSSES)


def test_softmax_link_minimises_the_expected_loss():
    F = np.array([[0.3, -2.0, 1.0], [800.0, -800.0, 0.0]])
    p = Softmax().link(F)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-15)
    slope = sum(p[:, [k]] * Softmax().derivative(np.full(2, k), F) for k in range(3))
    np.testing.assert_allclose(slope, 0, atol=1e-15)


# --- between softmax and Crammer-Singer -----------------------------------------------------------------------------


@pytest.mark.row("E12")
def test_without_margin_the_soft_loss_is_the_softmax():
    y, F = rows()
    soft = SoftCrammerSinger(margin=0.0, temperature=1.0)
    for use in ("value", "derivative", "curvature"):
        np.testing.assert_allclose(getattr(soft, use)(y, F), getattr(Softmax(), use)(y, F), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(soft.link(F), Softmax().link(F), rtol=1e-13)
    np.testing.assert_allclose(soft.prox(y, F, 2.0), Softmax().prox(y, F, 2.0), atol=1e-13)
    u = simplex_points(y)
    np.testing.assert_allclose(soft.conjugate(y, u), Softmax().conjugate(y, u), atol=1e-15)
    weights = np.random.default_rng(0).random(len(y))
    np.testing.assert_allclose(soft.best_constant(y, weights), Softmax().best_constant(y, weights), atol=1e-12)


@pytest.mark.row("E12")
def test_a_low_temperature_is_the_crammer_singer_loss():
    y, F = rows()
    for temperature in (1e-2, 1e-6, 1e-300):
        soft = SoftCrammerSinger(temperature=temperature)
        bound = temperature * np.log(CLASSES) + 1e-14
        assert np.all(np.abs(soft.value(y, F) - CrammerSinger().value(y, F)) <= bound)
    near = SoftCrammerSinger(temperature=1e-7).prox(y, F, 1.5)
    np.testing.assert_allclose(near, CrammerSinger().prox(y, F, 1.5), atol=1e-5)


@pytest.mark.row("E12")
@pytest.mark.parametrize("loss", SOFT, ids=repr)
def test_soft_link_minimises_the_expected_loss(loss):
    F = np.concatenate([rows()[1], [[800.0, -800.0, 0.0, 0.0], [5.0, 3.0, 0.0, -40.0]]])
    p = loss.link(F)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    slope = sum(p[:, [k]] * loss.derivative(np.full(len(F), k), F) for k in range(CLASSES))
    np.testing.assert_allclose(slope, 0, atol=1e-13)
    assert np.all(np.take_along_axis(p, F.argmax(axis=1)[:, None], axis=1)[:, 0] >= p.max(axis=1) - 1e-15)


@pytest.mark.row("E12")
@pytest.mark.parametrize("loss", [*SOFT, SoftCrammerSinger(temperature=1e-3), SoftCrammerSinger(3.0, 0.2)], ids=repr)
@pytest.mark.parametrize("shares", [[1, 1, 1, 1], [3, 1, 1, 1], [2, 3, 5, 1], [1, 9, 1, 1], [0, 1, 0, 0], [1, 1, 0, 0]])
def test_soft_best_constant_gives_the_class_frequencies(loss, shares):
    y, weights = np.arange(CLASSES), np.array(shares, dtype=float)
    b = loss.best_constant(y, weights)
    assert b.sum() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(loss.link(b[None])[0], weights / weights.sum(), atol=1e-9)
    slope = weights @ loss.derivative(y, np.tile(b, (CLASSES, 1)))
    np.testing.assert_allclose(slope, 0, atol=1e-9 * weights.sum())


@pytest.mark.row("E12")
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("loss", SOFT, ids=repr)
def test_soft_prox_over_extreme_inputs(loss, scale):
    """The optimality condition  x + step derivative(x) = F."""
    y, F = rows(seed=4, count=40, scale=scale)
    for step in np.logspace(-6, 6, 13):
        x = loss.prox(y, F, step)
        residual = x - F + step * loss.derivative(y, x)
        hessian = np.eye(CLASSES) + step * loss.curvature(y, x)
        move = np.linalg.solve(hessian, residual[:, :, None])[:, :, 0]
        assert np.abs(move).max() <= 1e-12 * (1 + np.abs(x).max()), step


def test_what_joint_losses_do_not_state():
    with pytest.raises(Unsuitable, match=r"loss=CrammerSinger\(\) states no link; choose"):
        CrammerSinger().link(np.zeros((1, 3)))
    with pytest.raises(Unsuitable, match=r"loss=Softmax\(\) states no interval of dual variables; choose"):
        Softmax().domain(np.zeros(1))
