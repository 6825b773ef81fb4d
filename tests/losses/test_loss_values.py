"""Value, derivative, curvature and corners of every loss of one number."""

import numpy as np
import pytest

from empirisk.losses import Exponential, Logistic, SoftHinge, Squared, SquaredHinge
from tests import naive
from tests.catalog import MARGIN_LOSSES, RESIDUAL_LOSSES

pytestmark = pytest.mark.row("E2")
SCALAR = MARGIN_LOSSES + RESIDUAL_LOSSES
CONVEX = [loss for loss in SCALAR if loss.convex]
every_scalar = pytest.mark.parametrize("loss", SCALAR, ids=repr)
every_convex = pytest.mark.parametrize("loss", CONVEX, ids=repr)
Z = np.concatenate([np.linspace(-7.3, 7.4, 295), [-1.0, 0.0, 1.0, 0.7, -0.7, 0.1, -0.1]])
EXTREMES = np.array([-1e4, -800.0, -745.2, -709.0, -37.0, -1e-300, 0.0, 1e-300, 37.0, 709.0, 745.2, 800.0, 1e4])


def targets(loss, z):
    """Pairs (y, f) whose margin or residual is z, with targets of both signs."""
    if loss in MARGIN_LOSSES:
        y = np.where(np.arange(len(z)) % 2, 1.0, -1.0)
        return y, y * z
    y = np.where(np.arange(len(z)) % 2, 0.5, -2.0)
    return y, y + z


def away_from_corners(loss, z, distance=0.02):
    """The z at which the loss is smooth; the joint of the squared hinge and 0 of a power have a jump higher up."""
    edges = [place for place, *_ in naive.kinks(loss)]
    jumps = {"squared_hinge": [1.0], "power": [0.0], "zero_one": [0.0], "huber": [-1.0, 1.0]}.get(loss.name(), [])
    edges += [getattr(loss, "delta", 1.0) * jump for jump in jumps]
    return z[np.all([np.abs(z - edge) > distance for edge in edges], axis=0)] if edges else z


def difference(function, z):
    """Fourth-order central difference, in extended precision."""
    z, h = z.astype(np.longdouble), np.longdouble("1e-3")
    return (8 * (function(z + h) - function(z - h)) - (function(z + 2 * h) - function(z - 2 * h))) / (12 * h)


@every_scalar
def test_value_is_the_formula(loss):
    y, f = targets(loss, Z)
    np.testing.assert_allclose(loss.value(y, f), naive.on_targets(loss, y, f), rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(loss.phi(Z), naive.phi(loss, Z), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("f", [-1.7, 0.0, 0.4, 3.0])
def test_squared_loss_of_labels_is_a_margin_loss(f):
    y, f = np.array([-1.0, 1.0]), np.full(2, f)
    np.testing.assert_allclose(Squared().value(y, f), (1 - y * f) ** 2, rtol=1e-15)


def test_zero_one_counts_a_margin_of_zero_as_an_error():
    loss = next(loss for loss in MARGIN_LOSSES if loss.name() == "zero_one")
    y = np.array([1.0, -1.0, 1.0, -1.0])
    assert loss.value(y, np.array([0.0, 0.0, 1e-300, 1e-300])).tolist() == [1, 1, 0, 1]
    assert not loss.convex


@every_scalar
def test_derivative_by_differences(loss):
    z = away_from_corners(loss, Z)
    y, f = targets(loss, z)
    expected = difference(lambda z: naive.phi(loss, z), z)
    np.testing.assert_allclose(loss.slope(z), expected, rtol=1e-7, atol=1e-9)
    sign = y if loss in MARGIN_LOSSES else 1
    np.testing.assert_allclose(loss.derivative(y, f), sign * loss.slope(z), rtol=1e-12, atol=1e-14)


@every_convex
def test_derivative_is_a_subgradient_everywhere(loss):
    z = np.concatenate([Z, [place for place, *_ in naive.kinks(loss)]])
    y, f = targets(loss, z)
    u = loss.derivative(y, f)
    left, right = naive.slopes_on_targets(loss, y, f)
    rounding = 1e-12 * (1 + np.abs(left))
    assert np.all((left - rounding <= u) & (u <= right + rounding))
    # the inequality itself, against every other prediction
    others = np.linspace(-12.0, 12.0, 401)
    lines = loss.value(y, f)[:, None] + u[:, None] * (others - f[:, None])
    values = loss.value(y[:, None], others[None, :])
    assert np.all(lines <= values + 1e-11 * (1 + np.abs(values) + np.abs(lines)))


@every_scalar
def test_curvature_by_differences(loss):
    z = away_from_corners(loss, Z)
    y, f = targets(loss, z)
    if loss.name() in naive.SMOOTH_SLOPE:
        expected = difference(lambda z: naive.SMOOTH_SLOPE[loss.name()](loss, z), z)
    else:
        expected = np.zeros_like(z)
    np.testing.assert_allclose(loss.bend(z), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(loss.curvature(y, f), loss.bend(z), rtol=1e-12)


@every_scalar
def test_curvature_bound_holds_and_is_attained(loss):
    if np.isinf(loss.curvature_bound):
        has_corner = bool(loss.corners) or not loss.convex
        steep = max(loss.bend(np.array([0.0]))[0], loss.bend(np.array([-50.0]))[0])
        assert has_corner or steep > 100, "a bound exists"
        return
    z = np.append(Z, getattr(loss, "margin", 0.0))
    assert loss.bend(z).max() == pytest.approx(loss.curvature_bound, rel=1e-14)
    assert not loss.corners


@every_convex
def test_corners_and_the_smooth_part_make_the_loss(loss):
    y, f = targets(loss, Z)
    z = y * f if loss in MARGIN_LOSSES else f - y
    rest = loss.smooth_part
    total = sum((ramp.value(z) for ramp in loss.corners), np.zeros_like(z))
    if rest is not None:
        assert not rest.corners
        total = total + rest.value(y, f)
    np.testing.assert_array_equal(total, loss.value(y, f))
    assert bool(loss.corners) == any(before != after for _, before, after in naive.kinks(loss))


@every_scalar
def test_extreme_predictions_give_no_nan_and_no_warning(loss):
    y, f = targets(loss, EXTREMES)
    for values in (loss.value(y, f), loss.derivative(y, f), loss.curvature(y, f)):
        assert not np.isnan(values).any()
    assert np.all(loss.value(y, f) >= 0)


def test_small_and_large_logistic_losses_are_exact():
    one = np.ones(1)
    for t in (30.0, 100.0, 700.0):
        assert Logistic().value(one, t * one)[0] == pytest.approx(np.exp(-t), rel=1e-13, abs=0)
        assert Logistic().derivative(one, t * one)[0] == pytest.approx(-np.exp(-t), rel=1e-13, abs=0)
        assert Logistic().value(one, -t * one)[0] == pytest.approx(t, rel=1e-13)
    assert Logistic().value(one, -800 * one)[0] == 800
    assert Exponential().value(one, -800 * one)[0] == np.inf


def test_soft_hinge_between_logistic_and_hinge():
    np.testing.assert_allclose(SoftHinge(0.0, 1.0).phi(Z), Logistic().phi(Z), rtol=1e-15)
    np.testing.assert_allclose(SoftHinge(1.0, 1e-300).phi(Z), np.maximum(0, 1 - Z), rtol=1e-15, atol=1e-299)
    np.testing.assert_allclose(SoftHinge(1.0, 0.01).phi(Z), np.maximum(0, 1 - Z), atol=0.01 * np.log(2) + 1e-15)


def test_weak_powers_of_large_numbers_overflow_quietly():
    huge = np.array([-1e300, 1e300])
    loss = next(loss for loss in RESIDUAL_LOSSES if loss.get_params() == {"p": 3.5})
    assert np.all(np.isinf(loss.phi(huge)))
    assert np.all(np.sign(loss.slope(huge)) == np.sign(huge))
    assert SquaredHinge().phi(np.array([1e200]))[0] == 0
