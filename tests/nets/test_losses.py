"""The JAX forms of losses and penalties are their originals: values and slopes, at corners too."""

import jax
import numpy as np
import pytest

from empirisk import errors
from empirisk.nets.losses import loss_function, penalty_function
from tests.catalog import JOINT_LOSSES, LOSSES, PENALTIES

random = np.random.default_rng(0)
TRAINABLE = [loss for loss in LOSSES if loss.convex]


@pytest.mark.row("W5")
@pytest.mark.parametrize("loss", TRAINABLE, ids=repr)
def test_losses_are_equal(loss):
    if loss in JOINT_LOSSES:
        y, f = random.integers(0, 3, 50).astype(float), 2 * random.normal(size=(50, 3))
        f[:5] = 0.0  # equal scores
    else:
        f = np.concatenate([3 * random.normal(size=45), [0.0, 1.0, -1.0, 0.5, 0.5]])
        y = np.where(random.random(50) < 0.5, 1.0, -1.0) if loss.margin_form else random.normal(size=50)
        y[-2:] = 1.0, 0.5  # margins 0.5 and residuals 0 among them
        if loss.positive:
            y = np.abs(y) if loss.power == 2 else np.where(random.random(50) < 0.3, 0.0, np.abs(y))
    with jax.enable_x64(True):
        value = loss_function(loss)
        values = np.asarray(value(y, f))
        slopes = np.asarray(jax.grad(lambda f: value(y, f).sum())(f))
    np.testing.assert_allclose(values, loss.value(y, f), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes, loss.derivative(y, f), rtol=1e-10, atol=1e-10)


@pytest.mark.row("W5")
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_penalties_are_equal(penalty):
    w = random.normal(size=(6, 3))
    with jax.enable_x64(True):
        assert float(penalty_function(penalty)(w)) == pytest.approx(penalty.value(w), rel=1e-12)


def test_a_loss_without_a_form_is_refused():
    (counts,) = (loss for loss in LOSSES if not loss.convex)
    with pytest.raises(errors.Unsuitable, match="no form that a network"):
        loss_function(counts)
