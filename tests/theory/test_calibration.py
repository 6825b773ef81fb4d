"""Calibration of every loss of the list, against minimisers on a grid; and losses that are known not to be."""

import numpy as np
import pytest

import empirisk as er
from empirisk.losses.base import MarginLoss, ResidualLoss
from empirisk.theory import is_calibrated
from tests.catalog import LOSSES

pytestmark = pytest.mark.row("V8")

SCALAR = [loss for loss in LOSSES if not loss.joint]
NOT_CALIBRATED = [er.losses.EpsilonInsensitive(1.0), er.losses.EpsilonInsensitive(1.5)]
F = np.unique(np.concatenate([np.linspace(-40, 40, 8001), np.linspace(-1, 1, 2001), [0.0]]))


def minimisers_have_the_sign(loss) -> bool:
    """Whether all minimisers on the grid have the sign of 2 p - 1, for many p."""
    positive, negative = (loss.value(np.full(len(F), y), F) for y in (1.0, -1.0))
    for p in (0.01, 0.1, 0.3, 0.4, 0.45, 0.55, 0.6, 0.7, 0.9, 0.99):
        expected = p * positive + (1 - p) * negative
        best = F[expected <= expected.min() + 1e-12]
        if not (best * (2 * p - 1) > 0).all():
            return False
    return True


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("loss", [*SCALAR, *NOT_CALIBRATED], ids=repr)
def test_the_verdict_is_that_of_the_minimisers(loss):
    found = is_calibrated(loss)
    assert bool(found) == minimisers_have_the_sign(loss)
    assert repr(loss) in str(found)
    assert ("not classification" in str(found)) != bool(found)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.joint], ids=repr)
def test_joint_losses_against_minimisers_on_a_grid(loss):
    """Scores (0, a, b): the largest score of a minimiser must be that of the first class."""
    a, b = (part.ravel() for part in np.meshgrid(np.linspace(-4, 1, 126), np.linspace(-4, 1, 126)))
    scores = np.column_stack([np.zeros(len(a)), a, b])
    values = np.array([loss.value(np.full(len(a), k), scores) for k in range(3)])
    calibrated = True
    for p in ([0.4, 0.3, 0.3], [0.45, 0.35, 0.2], [0.6, 0.3, 0.1]):
        expected = np.array(p) @ values
        best = expected <= expected.min() + 1e-12
        calibrated &= bool((np.maximum(a, b)[best] < 0).all())
    assert bool(is_calibrated(loss)) == calibrated


def test_the_known_verdicts():
    assert not is_calibrated("perceptron")
    assert not is_calibrated("crammer_singer")
    for name in ("zero_one", "hinge", "squared_hinge", "logistic", "exponential", "squared", "softmax"):
        assert is_calibrated(name)


class Tilted(ResidualLoss):
    """The pinball loss of a quantile: not even, so that calibration asks for the median."""

    def __init__(self, quantile: float = 0.5):
        self.quantile = quantile

    def phi(self, z):
        return np.maximum(-self.quantile * z, (1 - self.quantile) * z)

    def slope(self, z):
        return np.where(z < 0, -self.quantile, 1 - self.quantile)


class Rising(MarginLoss):
    """A convex loss that rises with the margin."""

    def phi(self, z):
        return np.exp(z)

    def slope(self, z):
        return np.exp(z)


class Sigmoid(MarginLoss):
    """Not convex, but calibrated: 1 / (1 + exp(t))."""

    convex = False

    def phi(self, z):
        return 1 / (1 + np.exp(z))


class Bump(MarginLoss):
    """Not convex, and smallest at 0."""

    convex = False

    def phi(self, z):
        return z**2 / (1 + z**2)


@pytest.mark.parametrize("loss", [Tilted(), Tilted(0.3), Tilted(0.7), Rising(), Sigmoid(), Bump()], ids=repr)
def test_losses_of_users_are_judged_by_their_mathematics(loss):
    assert bool(is_calibrated(loss)) == minimisers_have_the_sign(loss)


def test_a_loss_without_slopes_is_refused():
    class Broken(Rising):
        def slope(self, z):
            return np.full_like(z, np.nan)

    with pytest.raises(er.errors.EmpiriskError, match="no slope at labels"):
        is_calibrated(Broken())
