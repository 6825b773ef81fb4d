"""Penalties of single weights: value, prox, conjugate, share, distance to the subdifferential, critical C."""

import numpy as np
import pytest

from empirisk.penalties import L1, L2, ElasticNet, NoPenalty
from empirisk.penalties.norms import Norms
from tests import naive
from tests.catalog import NORMS, PENALTIES, POSITIVE

pytestmark = pytest.mark.row("E3")
every_separable = pytest.mark.parametrize("penalty", [one for one in PENALTIES if one.separable], ids=repr)
every_norm = pytest.mark.parametrize("penalty", NORMS, ids=repr)
GRID = np.linspace(-12, 12, 4_801)
W = np.array([-3.0, -1.0, -0.2, 0.0, 1e-9, 0.5, 2.0])
SIZES = np.concatenate([np.logspace(-8, 6, 57), [0.5, 1.0, 2.0]])
POINTS = np.concatenate([-SIZES, [0.0], SIZES])


def one(penalty, w):
    """R of each number alone."""
    return np.array([naive.penalty_value(penalty, x) for x in w])


@every_separable
def test_value_is_the_formula(penalty):
    assert penalty.value(W) == pytest.approx(naive.penalty_value(penalty, W), rel=1e-15)
    table = np.arange(-3.0, 3.0).reshape(3, 2)
    assert penalty.value(table) == pytest.approx(naive.penalty_value(penalty, table), rel=1e-15)
    assert penalty.value(np.asfortranarray(table)) == penalty.value(table)
    assert penalty.value(np.zeros(0)) == penalty.value(np.zeros(3)) == 0.0
    assert isinstance(penalty.value(W), float)


def test_elastic_net_ends_in_l1_and_l2():
    for ratio, end in ((0.0, L2()), (1.0, L1())):
        assert (ElasticNet(ratio).l1, ElasticNet(ratio).l2) == (end.l1, end.l2)
    assert (NoPenalty().l1, NoPenalty().l2) == (0, 0)


@every_separable
@pytest.mark.parametrize("step", [0.05, 1.0, 7.0])
def test_prox_beats_a_grid(penalty, step):
    values = one(penalty, GRID)
    for start, point in zip(W, penalty.prox(W, step), strict=True):
        objective = values + (GRID - start) ** 2 / (2 * step)
        reached = naive.penalty_value(penalty, point) + (point - start) ** 2 / (2 * step)
        assert reached <= objective.min() + 1e-14 * (1 + reached)
        assert abs(point - GRID[objective.argmin()]) <= 5.1e-3


@every_norm
def test_prox_satisfies_the_optimality_condition_over_extreme_inputs(penalty):
    for step in np.logspace(-8, 8, 33):
        x = penalty.prox(POINTS, step).astype(np.longdouble)
        missing = penalty.distance(x, (POINTS - x) / step)
        # in units of w, against the rounding of the largest number that takes part
        assert np.all(
            step * missing <= 1e-10 * np.maximum(np.abs(POINTS), step * (penalty.l1 + penalty.l2 * np.abs(x)))
        )


@every_separable
def test_prox_with_a_step_for_each_weight(penalty):
    steps = np.logspace(-2, 2, len(W))
    alone = [penalty.prox(W[[j]], steps[j])[0] for j in range(len(W))]
    np.testing.assert_array_equal(penalty.prox(W, steps), alone)


@every_separable
def test_conjugate_is_the_supremum(penalty):
    values = one(penalty, GRID)
    for v in (-2.5, -1.0, -0.9, -0.3, 0.0, 0.05, 0.5, 1.0, 1.3):
        stated = penalty.conjugate(np.array([v]))
        place = np.argmax(v * GRID - values)
        brute = (v * GRID - values)[place]
        if np.isinf(stated):
            assert brute > 0.2 * np.abs(GRID).max() * min(abs(v), 0.1), "the supremum is at the end of the grid"
            assert place in (0, len(GRID) - 1)
        elif abs(v) <= penalty.l1 + 12 * penalty.l2 or 0 < place < len(GRID) - 1:
            assert brute <= stated + 1e-13
            assert stated - brute <= 1e-5


@every_separable
def test_conjugate_adds_up(penalty):
    v = np.array([0.3, -0.8, 1.7])
    assert penalty.conjugate(v) == pytest.approx(sum(penalty.conjugate(np.array([x])) for x in v), rel=1e-14)
    assert penalty.conjugate(v.reshape(3, 1)) == penalty.conjugate(v)
    assert penalty.conjugate(np.zeros(0)) == 0.0


@every_norm
def test_fenchel_young(penalty):
    rng = np.random.default_rng(0)
    for _ in range(50):
        w, v = rng.standard_normal((2, 6)) * 2
        w[::2] = 0.0
        v = penalty.feasible_share(v) * v
        assert penalty.value(w) + penalty.conjugate(v) >= v @ w - 1e-12
        slope = penalty.l1 * np.where(w == 0, np.clip(v, -1, 1), np.sign(w)) + penalty.l2 * w
        assert penalty.value(w) + penalty.conjugate(slope) == pytest.approx(slope @ w, rel=1e-12, abs=1e-13)


@every_norm
def test_feasible_share_is_the_largest_factor_that_fits(penalty):
    rng = np.random.default_rng(1)
    for size in np.logspace(-12, 12, 200):
        v = size * rng.standard_normal(rng.integers(1, 9))
        share = penalty.feasible_share(v)
        assert 0 <= share <= 1
        assert np.isfinite(penalty.conjugate(share * v))
        if share < 1:
            assert np.isinf(penalty.conjugate(v))
            assert np.isinf(penalty.conjugate((share + 1e-14 * max(share, penalty.l1 == 0)) * v))
    assert penalty.feasible_share(np.zeros(3)) == 1.0
    assert penalty.feasible_share(np.zeros(0)) == 1.0


def test_feasible_share_survives_rounding_at_any_strength():
    class Strong(Norms):
        l1 = 0.7

    sizes = np.random.default_rng(2).uniform(0.7, 5.0, 2000)
    assert all(Strong().conjugate(Strong().feasible_share(v) * v) == 0 for v in sizes[:, None])
    # without the guard some of these products round to the outside
    assert any(Strong().conjugate(0.7 / v * v) == np.inf for v in sizes[:, None])


@every_norm
def test_distance_to_the_subdifferential(penalty):
    step = np.longdouble(1e-6)
    for w in W[np.abs(W) != 1e-9]:
        right, left = (
            (naive.penalty_value(penalty, w + s * step) - naive.penalty_value(penalty, w)) / (s * step) for s in (1, -1)
        )
        for v in (-4.0, -0.7, 0.0, 0.9, 3.0):
            expected = max(0.0, left - v, v - right)
            assert penalty.distance(np.array([w]), np.array([v]))[0] == pytest.approx(expected, abs=2e-6)


@every_norm
def test_critical_C_is_where_zero_stops_being_optimal(penalty):
    gradient, zero = np.array([0.4, -2.5, 1.0]), np.zeros(3)
    critical = penalty.critical_C(gradient)
    assert np.all(penalty.distance(zero, -critical * gradient) <= 1e-15)
    assert np.any(penalty.distance(zero, -(critical + 1e-9) * gradient) > 0)
    assert critical == pytest.approx(penalty.l1 / 2.5, rel=1e-15)
    assert penalty.critical_C(np.zeros(3)) == np.inf
    assert penalty.critical_C(gradient.reshape(3, 1)) == critical


def test_the_critical_C_of_gradients_without_digits_warns_of_nothing():
    for penalty in (*POSITIVE[1:], L1(), ElasticNet()):
        assert penalty.critical_C(np.full(2, -5e-324)) == np.inf
