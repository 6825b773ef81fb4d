"""Autoencoders: a network that is trained to rebuild its input from a few numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import Unsuitable
from empirisk.nets.layers import Dense, Pass, Weights
from empirisk.nets.objective import Decay, ridge
from empirisk.nets.plan import Plan

DECODER = "decoder."


class Rebuilding:
    """J = sum_l R_l(W_l) + sum_i s_i |x_i - decoder(encoder(x_i))|^2, biases free.

    The decoder has the layers of the encoder in reverse; ``tied`` makes its weights theirs, transposed.
    """

    def __init__(self, plan: Plan, decay: Decay, tied: bool):
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
        last = self._last[1]
        moved = {"0.bias": weights["0.bias"] - mean @ weights["0.weight"], last: weights[last] + mean}
        return weights | {name: value.astype(np.float32) for name, value in moved.items()}

    def penalties(self, weights: Weights) -> Any:
        """sum_l R_l(W_l)."""
        return self.decay(weights)

    def l1(self, weights: Weights) -> dict[str, Any]:
        """The factors of the l1 penalty on weights, by name."""
        return self.decay.l1(weights)

    @property
    def projects(self) -> frozenset[str]:
        """The weights that are a closed form of the others: the last layer, which is linear, unless it is tied."""
        closed = self.decay.factor > 0 and self.decay.penalty.ridge and not self.tied
        return frozenset(self._last) if closed else frozenset()

    @property
    def _last(self) -> tuple[str, str]:
        """The weight and the bias of the last layer."""
        place = f"{DECODER}{len(self.decoder.layers) - 1}."
        return place + "weight", place + "bias"

    @property
    def products(self) -> int:
        """How often two numbers are multiplied for one row."""
        return self.plan.products + self.decoder.products

    def projected(self, weights: Weights, x: Any, targets: Any, scale: Any, run: Pass) -> Weights:
        """The best last layer for the others as they are."""
        outputs: list = []
        self.decoder.apply(self.halves(weights)[1], self.plan.apply(weights, x, run), run, outputs)
        before = outputs[-2] if len(outputs) > 1 else self.plan.apply(weights, x, run)
        factor = self.decay.factor * self.decay.penalty.l2
        return dict(zip(self._last, ridge(before, x.reshape(len(x), -1), scale[:, 0], factor, True), strict=True))

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
