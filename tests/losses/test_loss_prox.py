"""Prox of every convex loss of one number: brute force, and the optimality condition over extreme inputs."""

import numpy as np
import pytest

from empirisk.errors import Unsuitable
from empirisk.losses import Exponential, Logistic, Power, SoftHinge, ZeroOne, regression
from tests import naive
from tests.catalog import MARGIN_LOSSES, RESIDUAL_LOSSES

pytestmark = pytest.mark.row("E2")
CONVEX = [loss for loss in MARGIN_LOSSES + RESIDUAL_LOSSES if loss.convex]
HARD = [SoftHinge(1.0, 1e-3), SoftHinge(20.0, 5.0), Power(1.1), Power(1.999), Power(12.0)]
SIZES = np.concatenate([np.logspace(-8, 6, 85), [0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0]])
POINTS = np.concatenate([-SIZES, [0.0], SIZES])
STEPS = np.concatenate([np.logspace(-8, 8, 33), [0.25, 0.5, 2.0]])


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
@pytest.mark.parametrize("step", [0.03, 0.5, 2.0, 20.0])
def test_prox_beats_a_grid(loss, step):
    y = np.array([1.0, -1.0, 1.0, -1.0])
    f = np.array([-2.3, 0.4, 0.9, 5.0])
    x = loss.prox(y, f, step)
    grid = np.linspace(-30, 30, 60_001).astype(np.longdouble)
    for target, start, point in zip(y, f, x, strict=True):
        objective = naive.on_targets(loss, target, grid) + (grid - start) ** 2 / (2 * step)
        reached = naive.on_targets(loss, target, np.longdouble(point)) + (point - start) ** 2 / (2 * step)
        assert reached <= objective.min() + 1e-13 * (1 + reached)
        assert abs(point - grid[objective.argmin()]) <= 1.1e-3


def encloses_root(loss, x, z, step, width):
    """Whether the increasing map x - z + step * subdifferential(x) passes zero between x - width and x + width."""
    x, z, step, width = (np.asarray(value, dtype=np.longdouble) for value in (x, z, step, width))
    left, right = naive.slopes(loss, x - width)[0], naive.slopes(loss, x + width)[1]
    return (x - width - z + step * left <= 0) & (x + width - z + step * right >= 0)


@pytest.mark.parametrize("loss", CONVEX + HARD, ids=repr)
def test_optimality_over_extreme_inputs(loss):
    for step in STEPS:
        x = loss.phi_prox(POINTS, step)
        assert np.all(np.isfinite(x))
        # where step * slope cancels z, the rounding of z is left
        width = 1e-11 * np.abs(x) + 1e-14 * np.minimum(1, np.abs(POINTS))
        enclosed = encloses_root(loss, x, POINTS, step, width)
        assert enclosed.all(), (step, POINTS[~enclosed][:5], x[~enclosed][:5])


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_prox_is_monotone_and_shrinks_distances(loss):
    z = np.sort(POINTS)
    for step in (1e-6, 0.1, 1.0, 1e6):
        x = loss.phi_prox(z, step)
        rounding = 1e-14 * (1 + np.abs(z[1:]))
        assert np.all(np.diff(x) >= -rounding)
        assert np.all(np.diff(x) <= np.diff(z) + rounding)


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_each_sample_may_have_its_own_step(loss):
    steps = np.logspace(-3, 3, len(POINTS))
    y = np.where(np.arange(len(POINTS)) % 2, 1.0, -1.0)
    together = loss.prox(y, POINTS, steps)
    alone = [loss.prox(y[[i]], POINTS[[i]], steps[i])[0] for i in range(len(POINTS))]
    np.testing.assert_allclose(together, alone, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_moreau_decomposition(loss):
    """z - prox(z) is step times a subgradient, at which Fenchel-Young holds with equality."""
    y = np.where(np.arange(len(POINTS)) % 2, 1.0, -1.0)
    f = np.clip(POINTS, -50, 50)
    x = loss.prox(y, f, 1.7)
    low, high = loss.domain(y)
    u = (f - x) / 1.7
    np.testing.assert_allclose(np.clip(u, low, high), u, atol=1e-13)
    gap = loss.value(y, x) + loss.conjugate(y, np.clip(u, low, high)) - u * x
    assert np.abs(gap).max() <= 1e-11


def test_corners_are_met_exactly():
    for loss in CONVEX:
        for place, before, after in naive.kinks(loss):
            if before < after:
                z = place + 1e3 * np.linspace(before, after, 7)[1:-1]
                assert np.all(loss.phi_prox(z, 1e3) == place), loss


def test_tiny_temperature_is_the_hinge():
    z = np.array([-5.0, -0.5, 0.0, 0.5, 2.0])
    np.testing.assert_allclose(SoftHinge(1.0, 1e-12).phi_prox(z, 1.0), [-4.0, 0.5, 1.0, 1.0, 2.0], atol=1e-10)


@pytest.mark.parametrize("step", [1e-6, 0.1, 1.0, 10.0, 1e6])
def test_the_search_ends_in_few_rounds(step):
    """No point may rattle between its last two digits until the rounds run out."""

    class Counted(SoftHinge):
        rounds = 0

        def bend(self, t):
            Counted.rounds += 1
            return super().bend(t)

    points = np.random.default_rng(0).standard_normal(50_000)
    for margin, temperature in [(0.0, 1.0), (0.5, 0.3), (20.0, 5.0)]:
        Counted.rounds = 0
        Counted(margin, temperature).phi_prox(points, step)
        assert Counted.rounds <= 10


def test_the_default_power_needs_no_search(monkeypatch):
    """r^2 + 1.5 step r = |e| by its closed form, to the last digits at every size."""
    monkeypatch.setattr(regression, "monotone_root", None)
    sizes = np.logspace(-300, 300, 121)
    for step in np.logspace(-150, 150, 61):
        half = 0.75 * np.longdouble(step)
        r = sizes / (half + np.sqrt(half**2 + sizes))
        np.testing.assert_allclose(Power(1.5).phi_prox(-sizes, step), -(r**2).astype(float), rtol=2e-15)
    assert Power(1.5).phi_prox(np.zeros(1), 1.0) == 0


def test_two_known_points():
    assert Logistic().phi_prox(np.array([-3.0]), 6.0)[0] == pytest.approx(0.0, abs=1e-15)
    assert Exponential().phi_prox(np.array([-1.0]), 1.0)[0] == pytest.approx(0.0, abs=1e-15)


def test_a_loss_without_prox_says_so():
    with pytest.raises(Unsuitable, match=r"loss=ZeroOne\(\) states no prox; choose"):
        ZeroOne().prox(np.ones(1), np.ones(1), 1.0)
