"""Conjugates of every loss of one number: brute force, Fenchel-Young, domain."""

import numpy as np
import pytest

from tests import naive
from tests.catalog import MARGIN_LOSSES, RESIDUAL_LOSSES

pytestmark = pytest.mark.row("E2")
SCALAR = MARGIN_LOSSES + RESIDUAL_LOSSES
every_scalar = pytest.mark.parametrize("loss", SCALAR, ids=repr)
every_convex = pytest.mark.parametrize("loss", [loss for loss in SCALAR if loss.convex], ids=repr)
H = 1e-3
GRID = H * np.arange(-80_000, 80_001)
#: Where losses are straight: at the ends of its interval the supremum of a rounded one is approached, not attained.
FAR = np.array([-1e6, 1e6])


def dual_points(loss, limit=3.0, count=25):
    """Numbers v inside the interval of phi*, its finite ends included."""
    low, high = np.clip(loss.interval, -limit, limit)
    return np.linspace(low, high, count)


def pairs(loss, seed=0, count=400):
    """Random targets and predictions."""
    rng = np.random.default_rng(seed)
    f = 3 * rng.standard_normal(count)
    y = rng.choice([-1.0, 1.0], count) if loss in MARGIN_LOSSES else 2 * rng.standard_normal(count)
    return y, f


@every_scalar
def test_conjugate_is_the_supremum(loss):
    grid = np.concatenate([GRID, [place for place, *_ in naive.kinks(loss)]])
    values, far_values = (naive.phi(loss, points.astype(np.longdouble)) for points in (grid, FAR))
    for v in dual_points(loss):
        stated = loss.conjugate(np.ones(1), np.array([v]))[0] - (0.0 if loss in MARGIN_LOSSES else v)
        brute = np.max(v * grid - values)
        assert brute <= stated + 1e-12 * (1 + abs(stated))
        assert stated - max(brute, np.max(v * FAR - far_values)) <= 2e-6, (v, stated, brute)


@every_scalar
def test_conjugate_is_infinite_outside_the_domain_only(loss):
    y, _ = pairs(loss)
    low, high = loss.domain(y)
    far = np.array([-3000, 3000], dtype=np.longdouble)
    for end, out in ((low, -1), (high, 1)):
        finite = np.isfinite(end)
        assert np.all(np.isfinite(loss.conjugate(y[finite], end[finite])))
        u = np.where(finite, end, 0.0) + 0.5 * out
        assert np.all(np.isinf(loss.conjugate(y, u)) == finite)
        # and rightly so: the supremum grows without bound
        for target, dual in list(zip(y[finite], u[finite], strict=True))[:5]:
            assert np.max(dual * far - naive.on_targets(loss, target, far)) > 1e3
    assert np.all(np.isfinite(loss.conjugate(y, np.clip(0.0, low, high))))


@every_convex
def test_fenchel_young(loss):
    y, f = pairs(loss)
    low, high = loss.domain(y)
    u = np.clip(2 * np.random.default_rng(1).standard_normal(len(y)), low, high)
    excess = loss.value(y, f) + loss.conjugate(y, u) - u * f
    assert excess.min() >= -1e-12
    assert excess.max() > 0.1
    u = loss.derivative(y, f)
    scale = 1 + np.abs(loss.value(y, f)) + np.abs(u * f)
    assert np.all(np.abs(loss.value(y, f) + loss.conjugate(y, u) - u * f) <= 1e-13 * scale)


@every_convex
def test_dual_quadratic_is_the_conjugate(loss):
    v = dual_points(loss)
    if loss.dual_quadratic is None:
        # then none fits: the conjugate is no a v + e |v| + q v^2 / 2
        basis = np.column_stack([v, np.abs(v), v**2])
        fitted = basis @ np.linalg.lstsq(basis, loss.phi_conjugate(v))[0]
        assert np.abs(fitted - loss.phi_conjugate(v)).max() > 1e-3
        return
    a, e, q = loss.dual_quadratic
    np.testing.assert_allclose(loss.phi_conjugate(v), a * v + e * np.abs(v) + q * v**2 / 2, rtol=1e-14, atol=1e-15)


@every_convex
def test_derivatives_lie_in_the_domain(loss):
    extremes = np.array([-1e4, -800.0, -1.0, 0.0, 1.0, 800.0, 1e4])
    y = np.where(np.arange(7) % 2, 1.0, -1.0)
    low, high = loss.domain(y)
    u = loss.derivative(y, extremes)
    assert np.all((low <= u) & (u <= high))
