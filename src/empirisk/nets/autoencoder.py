"""Autoencoders: a network that is trained to rebuild its input from a few numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import Unsuitable
from empirisk.nets.augment import Augmentation, augmented
from empirisk.nets.enlarging import ConvTranspose, Reshape, Upsample
from empirisk.nets.layers import Activation, Conv, Dense, Flatten, Layer, LayerNorm, Pass, Pool, Shape, Weights
from empirisk.nets.objective import Decay, ridge
from empirisk.nets.plan import Keyed, NetworkPlan, frozen

DECODER = "decoder."


class Rebuilding(Keyed):
    """J = sum_l R_l(W_l) + sum_i s_i |x_i - decoder(encoder(x_i))|^2, biases free.

    The decoder has the layers of the encoder in reverse; ``tied`` makes its weights theirs, transposed. With changes
    of the rows in training (``augment``), what is rebuilt is the row as it was: a denoising autoencoder.
    """

    def __init__(self, plan: NetworkPlan, decay: Decay, tied: bool, augment: tuple[Augmentation, ...] = ()):
        self.plan, self.decay, self.tied, self.augment = plan, decay, tied, augment
        self.decoder = decoder_plan(plan)
        if tied and not all(isinstance(layer, Dense) for layer in plan.layers):
            raise Unsuitable("tied=True takes the weights of dense layers, transposed; leave out the other layers.")
        self.key = plan, decay, tied, frozen(augment)

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
        ins, outs = (weights.get(name) for name in ("0.weight", self._last[1]))
        if ins is None or outs is None or not isinstance(self.plan.layers[0], (Dense, Conv)):
            return weights
        level = mean.reshape(-1, ins.shape[-2]).mean(axis=0)  # of every column, or of every channel
        moved = {
            "0.bias": weights["0.bias"] - level @ ins.reshape(-1, *ins.shape[-2:]).sum(axis=0),
            self._last[1]: outs + mean.reshape(-1, len(outs)).mean(axis=0),
        }
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
        closed = closed and isinstance(self.decoder.layers[-1], Dense)
        return frozenset(self._last) if closed else frozenset()

    @property
    def _last(self) -> tuple[str, str]:
        """The weight and the bias of the last layer that has some."""
        place = DECODER + [place for place, layer, _ in self.decoder.steps if layer.activated][-1]
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
        if run.training and self.augment:
            x = augmented(self.augment, x, run.draw("augment"))
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


def _dense_back(layer: Dense, shape: Shape, function: str) -> list[Layer]:
    dense = Dense(int(np.prod(shape)), function)
    return [dense, Reshape(shape)] if len(shape) == 3 else [dense]


def _conv_back(layer: Conv, shape: Shape, function: str) -> list[Layer]:
    back = ConvTranspose(shape[2], layer.size, layer.stride, layer.padding, activation=function)
    high, wide, _ = back.output(layer.output(shape))
    back.extra = shape[0] - high, shape[1] - wide
    return [back]


#: What leads back through a layer, given the shape of a sample before it and the activation there.
BACK: dict[type[Layer], Any] = {
    Dense: _dense_back,
    Conv: _conv_back,
    Pool: lambda layer, shape, function: [Upsample(*shape[:2])],
    Flatten: lambda layer, shape, function: [Reshape(shape)],
    Activation: lambda layer, shape, function: [],
    LayerNorm: lambda layer, shape, function: [],
}


def decoder_plan(plan: NetworkPlan) -> NetworkPlan:
    """The layers of an encoder in reverse, the last one linear; each ends with the activation that came before it."""
    back: list[Layer] = []
    for number in reversed(range(len(plan.layers))):
        layer = plan.layers[number]
        way = next((BACK[cls] for cls in type(layer).__mro__ if cls in BACK), None)
        if way is None:
            raise Unsuitable(
                f"An autoencoder has no way back through {layer!r}; use Dense, Conv, MaxPool, MeanPool, Flatten, "
                "Activation and LayerNorm."
            )
        place = next(at for at, (_, _, owner) in enumerate(plan.steps) if owner == number)
        before = [step.function for _, step, _ in plan.steps[:place] if isinstance(step, Activation)]
        back += way(layer, plan.shapes[place], before[-1] if before else "linear")
    if back and isinstance(back[-1], Reshape):  # rows come out flat
        back.pop()
    return NetworkPlan(back, plan.shapes[-1], "linear", False, 0.0)
