"""The best constant of every loss, and the link from predictions to probabilities."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from empirisk.errors import Unsuitable
from empirisk.linalg.design import design_of
from empirisk.losses import Exponential, Logistic, Power, Quantile, SoftHinge, Softmax, Squared, SquaredHinge, ZeroOne
from empirisk.losses.base import ScalarLoss
from empirisk.penalties import L2
from empirisk.problem import Problem
from tests import naive
from tests.catalog import LOSSES, MARGIN_LOSSES, RESIDUAL_LOSSES

pytestmark = pytest.mark.row("E2")
SCALAR = MARGIN_LOSSES + RESIDUAL_LOSSES
CONVEX = [loss for loss in SCALAR if loss.convex]
PROBABILISTIC_NAMES = {"logistic", "soft_hinge", "exponential", "softmax", "soft_crammer_singer"}


def samples(loss, seed, count=23):
    """Targets with ties, and weights of which some are zero."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], count, p=[0.3, 0.7])
    if loss not in MARGIN_LOSSES:
        y = np.round(rng.standard_normal(count) * 2 + 5, 1)
    return y, rng.choice([0.0, 0.3, 1.0, 2.5], count)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_best_constant_beats_every_other(loss, seed):
    y, weights = samples(loss, seed)

    def objective(b):
        return float(weights @ naive.on_targets(loss, y, b * np.ones(len(y))))

    best = loss.best_constant(y, weights)
    assert isinstance(best, float)
    reached = objective(best)
    low, high = min(-12, y.min()), max(12, y.max())
    others = [objective(b) for b in np.concatenate([np.linspace(low, high, 801), np.unique(y)])]
    rounding = 1e-13 * (1 + reached)
    assert reached <= min(others) + rounding
    if loss.convex:
        assert reached <= minimize_scalar(objective, bounds=(low, high), method="bounded").fun + rounding


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_zero_is_a_subgradient_at_the_best_constant(loss, seed):
    y, weights = samples(loss, seed)
    best = loss.best_constant(y, weights)
    width = 1e-13 * (1 + abs(best))
    left = weights @ naive.slopes_on_targets(loss, y, np.full(len(y), best - width))[0]
    right = weights @ naive.slopes_on_targets(loss, y, np.full(len(y), best + width))[1]
    assert left <= 0 <= right


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(loss):
    y, _ = samples(loss, 9)
    weights = np.arange(len(y)) % 3
    repeated = loss.best_constant(np.repeat(y, weights), np.ones(weights.sum()))
    assert loss.best_constant(y, weights.astype(float)) == pytest.approx(repeated, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_closed_forms_agree_with_the_search(loss):
    """The generic search on the derivative finds the same objective as the closed form of each loss."""
    y, weights = samples(loss, 5)
    closed, searched = (np.full(len(y), b) for b in (loss.best_constant(y, weights), _searched(loss, y, weights)))
    assert weights @ loss.value(y, closed) == pytest.approx(weights @ loss.value(y, searched), rel=1e-12)


def _searched(loss, y, weights):
    return ScalarLoss.best_constant(loss, y, weights)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_one_class_or_one_value(loss, sign):
    y, weights = np.full(5, sign), np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    best = loss.best_constant(y, weights)
    assert np.isfinite(best)
    assert weights @ loss.value(y, np.full(5, best)) == pytest.approx(0.0, abs=1e-150)


def test_symmetric_answers():
    """The middle of the minimisers where there are many: mirrored data have the mirrored constant."""
    rng = np.random.default_rng(3)
    y, weights = np.round(rng.standard_normal(24), 1), rng.integers(1, 4, 24) / 10
    for loss in RESIDUAL_LOSSES:
        mirrored = Quantile(1 - loss.level) if loss.name() == "quantile" else loss
        assert mirrored.best_constant(-y, weights) == pytest.approx(-loss.best_constant(y, weights), abs=1e-14)
    for loss in MARGIN_LOSSES:
        labels = np.where(y > 0.3, 1.0, -1.0)
        assert loss.best_constant(-labels, weights) == pytest.approx(-loss.best_constant(labels, weights), abs=1e-14)


def test_best_constants_everybody_knows():
    y, ones = np.array([1.0, 2.0, 3.0, 10.0]), np.ones(4)
    constants = {loss.name(): loss.best_constant(y, ones) for loss in RESIDUAL_LOSSES if not loss.get_params()}
    assert constants == {"squared": 4.0, "absolute": 2.5}
    labels = np.array([1.0, 1.0, 1.0, -1.0])
    assert Logistic().best_constant(labels, ones) == pytest.approx(np.log(3), rel=1e-15)
    assert Exponential().best_constant(labels, ones) == pytest.approx(0.5 * np.log(3), rel=1e-15)
    assert SquaredHinge().best_constant(labels, ones) == Squared().best_constant(labels, ones) == 0.5
    assert [ZeroOne().best_constant(s * labels, ones) for s in (1, -1)] == [1.0, -1.0]
    assert ZeroOne().best_constant(np.array([1.0, -1.0]), np.ones(2)) == 1.0


def test_the_search_leaves_out_rows_without_weight():
    """Far out the exponential of an absent class is infinite, and zero times that is no number."""
    y, weights = np.array([1.0, -1.0, 1.0]), np.array([1.0, 0.0, 2.0])
    b = _searched(Exponential(), y, weights)
    assert np.exp(-b) < 1e-80


def test_high_powers_do_not_overflow():
    y = np.array([-1e8, 0.0, 3e8])
    assert Power(40.0).best_constant(y, np.ones(3)) == pytest.approx(1e8, rel=1e-6)
    assert Power(40.0).best_constant(np.full(3, 1e8), np.ones(3)) == 1e8


# --- link -----------------------------------------------------------------------------------------------------------

F = np.concatenate([np.linspace(-6.0, 6.0, 241), [-1.0, 1.0, 0.0]])


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=repr)
def test_link_makes_the_prediction_a_minimiser_of_the_expected_loss(loss):
    p = loss.link(F)
    others = np.linspace(-9.0, 9.0, 3601)
    # the zero-one loss of f = 0 is 1 whatever y is: no p makes that a minimiser
    for f, chance in zip(F[F != 0], p[F != 0], strict=True):
        expected = chance * naive.phi(loss, others) + (1 - chance) * naive.phi(loss, -others)
        here = chance * naive.phi(loss, f) + (1 - chance) * naive.phi(loss, -f)
        assert here <= expected.min() + 1e-12 * (1 + here)


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=repr)
def test_link_is_a_monotone_probability_even_far_out(loss):
    f = np.sort(np.concatenate([F, [-1e4, -800.0, -745.2, -40.0, 40.0, 745.2, 800.0, 1e4]]))
    p = loss.link(f)
    assert np.all((p >= 0) & (p <= 1))
    assert np.all(np.diff(p) >= 0)
    np.testing.assert_allclose(loss.link(-f), 1 - p, atol=1e-15)
    assert loss.link(np.zeros(1))[0] == 0.5
    if loss.convex:
        assert p[0] < 1e-9
        assert p[-1] > 1 - 1e-9


@pytest.mark.parametrize("loss", [loss for loss in MARGIN_LOSSES if loss.probabilistic], ids=repr)
def test_link_inverts_the_best_constant(loss):
    y = np.array([1.0, -1.0])
    for chance in (1e-6, 0.1, 0.5, 0.77, 1 - 1e-6):
        b = loss.best_constant(y, np.array([chance, 1 - chance]))
        assert loss.link(np.array([b]))[0] == pytest.approx(chance, rel=1e-9)


def test_logistic_link_keeps_small_probabilities():
    f = np.array([-700.0, -100.0, -3.0, 0.0, 3.0])
    np.testing.assert_allclose(Logistic().link(f), expit(f), rtol=1e-13)


def test_link_where_both_slopes_underflow():
    loss = SoftHinge(margin=-1e4, temperature=1.0)
    f = np.array([-1e4, -5.0, 0.0, 1.0, 1e4])
    np.testing.assert_allclose(loss.link(f), expit(2 * f), rtol=1e-10)
    tiny = SoftHinge(margin=-1.0, temperature=1e-307).link(np.array([-2.0, 0.0, 2.0]))
    assert tiny.tolist() == [0.0, 0.5, 1.0]


def test_soft_hinge_constant_with_large_margins():
    y, weights = np.array([1.0, -1.0]), np.array([3.0, 1.0])
    for margin, temperature in [(1e4, 1.0), (1.0, 1e-4), (-1e4, 1.0), (2.0, 0.5)]:
        loss = SoftHinge(margin, temperature)
        b = loss.best_constant(y, weights)
        assert loss.link(np.array([b]))[0] == pytest.approx(0.75, abs=1e-8)


def test_which_losses_report_probabilities():
    assert {loss.name() for loss in LOSSES if loss.probabilistic} == PROBABILISTIC_NAMES
    with pytest.raises(Unsuitable, match=r"loss=Squared\(\) states no link; choose"):
        Squared().link(np.zeros(1))


@pytest.mark.parametrize("loss", [Power(1.7), Softmax()], ids=repr)
def test_a_problem_looks_for_its_constant_once(loss, monkeypatch):
    found, find = [], type(loss).best_constant
    monkeypatch.setattr(type(loss), "best_constant", lambda *given: (found.append(1), find(*given))[1])
    design, y, classes = design_of(np.eye(4), True), np.array([0.0, 1.0, 2.0, 2.0]), 3 * loss.joint
    problem = Problem(loss, L2(), 1.0, design, y, np.ones(4), classes=classes)
    first = problem.origin()
    assert problem.origin_value > 0
    assert len(found) == 1
    # a solver that moves its own constants moves no others
    moved = first.b
    moved += 1.0
    assert not np.isclose(problem.origin().b, moved).any()
