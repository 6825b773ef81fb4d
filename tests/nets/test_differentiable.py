"""Losses and penalties run the same lines on arrays of NumPy and of JAX, with the same slopes at corners."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from empirisk import errors, losses, penalties
from empirisk.nets.differentiable import differentiable, traceable
from tests.catalog import JOINT_LOSSES, LOSSES, PENALTIES

random = np.random.default_rng(0)


def given(loss):
    """Targets, predictions, dual variables and steps, some of them at corners."""
    if loss in JOINT_LOSSES:
        y, f = random.integers(0, 3, 50).astype(float), 2 * random.normal(size=(50, 3))
        f[:5] = 0.0  # equal scores
    else:
        f = np.concatenate([3 * random.normal(size=45), [0.0, 1.0, -1.0, 0.5, 0.5]])
        y = np.where(random.random(50) < 0.5, 1.0, -1.0) if loss.margin_form else random.normal(size=50)
        y[-2:] = 1.0, 0.5  # margins 0.5 and residuals 0 among them
        if loss.positive:
            y = np.abs(y) if loss.power == 2 else np.where(random.random(50) < 0.3, 0.0, np.abs(y))
    return y, f, loss.derivative(y, f), np.linspace(0.1, 3.0, 50)


def compare(ours, theirs, rtol=1e-12):
    if isinstance(ours, tuple):
        return [compare(*pair, rtol) for pair in zip(ours, theirs, strict=True)]
    assert isinstance(theirs, jax.Array)
    return np.testing.assert_allclose(theirs, ours, rtol=rtol, atol=rtol)


@pytest.mark.row("W5")
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.convex], ids=repr)
def test_losses_run_on_jax_arrays(loss):
    y, f, u, step = given(loss)
    calls = {"value": (y, f), "derivative": (y, f), "curvature": (y, f), "conjugate": (y, u), "prox": (y, f, step)}
    calls |= {"shrink": (y, u), "simplex_point": (y, u)} if loss.joint else {"domain": (y,)}
    calls |= {"link": (f,)} if loss.probabilistic else {"inverse_link": (f,)}
    with jax.enable_x64(True):
        for name, arrays in calls.items():
            method = getattr(loss, name)
            compare(method(*arrays), method(*map(jnp.asarray, arrays)), 1e-9 if name == "prox" else 1e-11)


@pytest.mark.row("W5")
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.convex], ids=repr)
def test_slopes_are_those_that_the_loss_states(loss):
    y, f, u, _ = given(loss)
    with jax.enable_x64(True):
        value = differentiable(loss)
        slopes = jax.jit(jax.grad(lambda f: value(jnp.asarray(y), f).sum()))(f)
    compare(u, slopes)


@pytest.mark.row("W5")
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_penalties_run_on_jax_arrays(penalty):
    w = random.normal(size=(6, 3))
    w[:2] = 0.0
    with jax.enable_x64(True):
        value, slopes = map(np.asarray, jax.jit(jax.value_and_grad(penalty.value))(w))
        compare(penalty.prox(w, 0.5), penalty.prox(jnp.asarray(w), 0.5))
    assert float(value) == pytest.approx(penalty.value(w), rel=1e-12)
    assert penalty.value(w + 1e-7 * slopes) >= float(value) + 1e-7 * np.vdot(slopes, slopes) * (1 - 1e-9)
    np.testing.assert_array_equal(slopes[:2], 0.0)


class OfNumPy(losses.Squared):
    def phi(self, e):
        return np.square(e)


class SumOfNumPy(penalties.Penalty):
    def value(self, w):
        return np.square(w).sum()


@pytest.mark.parametrize(("part", "method", "count"), [(OfNumPy(), "value", 2), (SumOfNumPy(), "value", 1)])
def test_a_part_for_numpy_alone_is_refused(part, method, count):
    with pytest.raises(errors.Unsuitable, match=r"written for NumPy's arrays alone.*namespace"):
        jax.jit(traceable(part, "part", method))(*[jnp.ones(3)] * count)
