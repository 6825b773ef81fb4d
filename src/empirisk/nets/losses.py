"""The losses and penalties of the library in JAX, which differentiates them; tests hold each equal to its original."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from empirisk import losses, penalties
from empirisk.errors import Unsuitable
from empirisk.losses.base import Loss
from empirisk.penalties.base import Penalty

Function = Callable[..., Any]


def _margin(phi: Function) -> Function:
    return lambda y, f: phi(y * f)


def _residual(phi: Function) -> Function:
    return lambda y, f: phi(f - y)


def _size(e: Any) -> Any:
    """|e| with slope 0 at 0."""
    return e * jnp.sign(e)


def _soft_hinge(loss: Any) -> Function:
    return _margin(lambda t: loss.temperature * jax.nn.softplus((loss.margin - t) / loss.temperature))


def _insensitive(loss: Any) -> Function:
    return _residual(lambda e: jnp.where(_size(e) > loss.epsilon, _size(e) - loss.epsilon, 0))


def _own(y: Any, f: Any) -> Any:
    return jnp.take_along_axis(f, y.astype(int)[:, None], axis=1)[:, 0]


def _softmax(y: Any, f: Any) -> Any:
    return jax.nn.logsumexp(f, axis=1) - _own(y, f)


def _soft_crammer_singer(loss: Any) -> Function:
    def value(y: Any, f: Any) -> Any:
        cost = loss.margin * (1 - jax.nn.one_hot(y.astype(int), f.shape[1], dtype=f.dtype))
        return loss.temperature * _softmax(y, (f + cost) / loss.temperature)

    return value


def _crammer_singer(y: Any, f: Any) -> Any:
    behind = f - _own(y, f)[:, None] + 1 - jax.nn.one_hot(y.astype(int), f.shape[1], dtype=f.dtype)
    # The first of equal maxima, as in the original: a maximum alone would share the slope out among them.
    return jnp.take_along_axis(behind, behind.argmax(axis=1)[:, None], axis=1)[:, 0]


def _group_l1(penalty: Any) -> Function:
    def value(w: Any) -> Any:
        blocks = penalty.blocks(len(w))
        rows = w.reshape(len(w), -1)
        squares = jax.ops.segment_sum((rows**2).sum(axis=1), blocks, int(blocks.max()) + 1)
        # Where a group is zero its norm has no slope: 0 is one of its subgradients.
        norms = jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)
        return jnp.sqrt(np.bincount(blocks) * rows.shape[1]).astype(w.dtype) @ norms

    return value


#: From a loss to its function of (y, f); of corners the slope is that of the original.
LOSSES: dict[type[Loss], Callable[[Any], Function]] = {
    losses.Perceptron: lambda loss: _margin(lambda t: jnp.where(t <= 0, -t, 0)),
    losses.Hinge: lambda loss: _margin(lambda t: jnp.where(t < 1, 1 - t, 0)),
    losses.SquaredHinge: lambda loss: _margin(lambda t: jnp.maximum(1 - t, 0) ** 2),
    losses.SoftHinge: _soft_hinge,
    losses.Exponential: lambda loss: _margin(lambda t: jnp.exp(-t)),
    losses.Squared: lambda loss: _residual(lambda e: e**2),
    losses.EpsilonInsensitive: _insensitive,
    losses.Power: lambda loss: _residual(lambda e: _size(e) ** loss.p),
    losses.SquaredAbsolute: lambda loss: _residual(lambda e: e**2 + loss.weight * _size(e)),
    losses.Softmax: lambda loss: _softmax,
    losses.SoftCrammerSinger: _soft_crammer_singer,
    losses.CrammerSinger: lambda loss: _crammer_singer,
}

PENALTIES: dict[type[Penalty], Callable[[Any], Function]] = {
    penalties.NoPenalty: lambda penalty: lambda w: jnp.zeros((), w.dtype),
    penalties.GroupL1: _group_l1,
    penalties.L1: lambda penalty: lambda w: _size(w).sum(),
    penalties.L2: lambda penalty: lambda w: 0.5 * jnp.vdot(w, w),
    penalties.ElasticNet: lambda penalty: (
        lambda w: penalty.ratio * _size(w).sum() + 0.5 * (1 - penalty.ratio) * jnp.vdot(w, w)
    ),
}


def loss_function(loss: Loss) -> Function:
    """The JAX form of a loss, as a function of (y, f): its own lines where they suit both NumPy and JAX."""
    return loss.value if loss.portable else _form(loss, LOSSES, "loss")


def penalty_function(penalty: Penalty) -> Function:
    """The JAX form of a penalty, as a function of w."""
    return _form(penalty, PENALTIES, "penalty")


def _form(part: Any, table: dict[type, Callable[[Any], Function]], argument: str) -> Function:
    for cls in type(part).__mro__:
        if cls in table:
            return table[cls](part)
    known = sorted(cls.name() for cls in table)
    raise Unsuitable(f"{argument}={part!r} has no form that a network can be trained with; choose one of {known}.")
