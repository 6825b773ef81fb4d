"""Autoencoders: a network that is trained to rebuild its input from a few numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from empirisk.errors import Unsuitable
from empirisk.nets.device import on_device
from empirisk.nets.layers import Dense, Pass, Weights
from empirisk.nets.plan import Plan

DECODER = "decoder."
#: Iterations of the last, exact part of the training.
POLISH = 5000


class Rebuilding:
    """J = decay/2 sum_l |W_l|_F^2 + sum_i s_i |x_i - decoder(encoder(x_i))|^2, biases free.

    The decoder has the layers of the encoder in reverse; ``tied`` makes its weights theirs, transposed.
    """

    def __init__(self, plan: Plan, decay: float, tied: bool):
        self.plan, self.decay, self.tied = plan, decay, tied
        self.decoder = decoder_plan(plan)

    def __hash__(self) -> int:
        return hash((self.plan, self.decay, self.tied))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rebuilding) and (self.plan, self.decay, self.tied) == (
            other.plan,
            other.decay,
            other.tied,
        )

    def first(self, weights: dict[str, NDArray], random: np.random.Generator) -> dict[str, NDArray]:
        """First weights of both halves."""
        decoder = self.decoder.weights("auto", random)
        return weights | {
            DECODER + name: value for name, value in decoder.items() if not (self.tied and name.endswith("weight"))
        }

    def centred(self, weights: dict[str, NDArray], mean: NDArray) -> dict[str, NDArray]:
        """The weights with biases for which rows are counted from their mean, on the way in and on the way out.

        Far from zero, units would answer all rows alike, and learn nothing.
        """
        last = f"{DECODER}{len(self.plan.layers) - 1}.bias"
        moved = {"0.bias": weights["0.bias"] - mean @ weights["0.weight"], last: weights[last] + mean}
        return weights | {name: value.astype(np.float32) for name, value in moved.items()}

    def penalties(self, weights: Weights) -> Any:
        """decay/2 sum_l |W_l|_F^2."""
        return 0.5 * self.decay * sum(jnp.vdot(v, v) for name, v in weights.items() if name.endswith(".weight"))

    def losses(self, weights: Weights, x: Any, targets: Any, scale: Any, run: Pass) -> Any:
        """The sum of squared errors of a batch."""
        flat = x.reshape(len(x), -1)
        rebuilt = self.decoder.apply(self.halves(weights)[1], self.plan.apply(weights, x, run), run)
        return (scale[:, 0] * ((flat - rebuilt) ** 2).sum(axis=1)).sum()

    def halves(self, weights: Weights) -> tuple[Weights, Weights]:
        """The weights of the encoder and of the decoder."""
        encoder = {name: value for name, value in weights.items() if not name.startswith(DECODER)}
        decoder = {name[len(DECODER) :]: value for name, value in weights.items() if name.startswith(DECODER)}
        if self.tied:
            last = len(self.plan.layers) - 1
            decoder |= {f"{last - n}.weight": weights[f"{n}.weight"].T for n in range(last + 1)}
        return encoder, decoder


def decoder_plan(plan: Plan) -> Plan:
    """The layers of an encoder in reverse, the last one linear."""
    if not all(isinstance(layer, Dense) for layer in plan.layers) or len(plan.shape) != 1:
        raise Unsuitable("An autoencoder needs a network of dense layers on rows; leave out the other layers.")
    widths = [layer.output(())[0] for layer in plan.layers[:-1]]
    back: list[Any] = [Dense(width) for width in reversed(widths)]
    return Plan([*back, Dense(plan.shape[0], "linear")], plan.shapes[-1], plan.function, False, 0.0)


@partial(jax.jit, static_argnums=0)
def _value_and_slopes(objective: Rebuilding, weights: Weights, x: Any, scale: Any) -> Any:
    def value(weights):
        return objective.penalties(weights) + objective.losses(weights, x, None, scale, Pass({}))

    return jax.value_and_grad(value)(weights)


def polished(
    objective: Rebuilding, weights: dict[str, NDArray], x: NDArray, scale: NDArray, stop: Callable[[], str]
) -> dict[str, NDArray]:
    """The weights after some rounds of a quasi-Newton method on all rows in double precision: to the last digits."""
    names = sorted(weights)
    ends = np.cumsum([weights[name].size for name in names])

    def unpacked(flat: NDArray) -> dict[str, NDArray]:
        parts = np.split(flat, ends[:-1])
        return {name: part.reshape(weights[name].shape) for name, part in zip(names, parts, strict=True)}

    def at(flat: NDArray) -> tuple[float, NDArray]:
        value, slopes = _value_and_slopes(objective, unpacked(flat), x, scale)
        return float(value), np.concatenate([np.asarray(slopes[name]).ravel() for name in names])

    def ask(flat: NDArray) -> None:
        if stop():
            raise StopIteration  # what has been reached is the result

    start = np.concatenate([weights[name].ravel() for name in names]).astype(np.float64)
    with on_device(), jax.enable_x64(True):
        x, scale = x.astype(np.float64), scale.astype(np.float64)
        # The objective is flat where weights trade places between layers: it ends by the gradient.
        options = {"maxiter": POLISH, "maxfun": 2 * POLISH, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-8}
        found = minimize(at, start, jac=True, method="L-BFGS-B", options=options, callback=ask)
    return {name: value.astype(np.float32) for name, value in unpacked(found.x).items()}
