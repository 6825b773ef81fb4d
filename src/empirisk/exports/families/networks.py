"""Networks as graphs. Filters and windows are gathered as rows of a matrix: ONNX has them in single precision alone."""

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.exports.registry import Answers, refused, write_answers
from empirisk.exports.tensor import Symbolic, constant, error_function, expit
from empirisk.nets.composite import Branch, Residual
from empirisk.nets.enlarging import Reshape, Upsample
from empirisk.nets.layers import (
    LEAK,
    Activation,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Filter,
    Flatten,
    Layer,
    LayerNorm,
    MaxPool,
    MeanPool,
    pair,
)
from empirisk.nets.network import Network

Weights = dict[str, NDArray[np.float64]]

#: The functions of single numbers, by name, as `empirisk.nets.layers` has them for JAX.
ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": expit,
    "tanh": np.tanh,
    "leaky_relu": lambda x: np.where(x >= 0, x, LEAK * x),
    "gelu": lambda x: 0.5 * x * (1.0 + error_function(x * (1 / np.sqrt(2)))),
    "softplus": lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
    "sign": lambda x: np.where(x >= 0, 1.0, -1.0),
}


@write_answers.register
def _(network: Network, x: Symbolic) -> Answers:
    plan, kept = network.plan(), network.weights_ | network.state_
    weights = {name: np.asarray(value, dtype=np.float64) for name, value in kept.items()}
    x = x if len(network.shape_) == 1 else x.reshape(len(x), *network.shape_)
    for place, layer, _ in plan.steps:
        x = forward(layer, weights, place, x)
    return {"transform": _flat(x)}


@singledispatch
def forward(layer: Layer, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    """What comes out of a layer, outside training; its weights are those whose names begin with ``place``."""
    raise refused(layer, "the layer is not known as a graph")


def _flat(x: Symbolic) -> Symbolic:
    return x if x.ndim == 2 else x.reshape(len(x), int(np.prod(x.shape[1:])))


@forward.register
def _(layer: Activation, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    return ACTIVATIONS[layer.function](x)


@forward.register
def _(layer: Dense, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    return _flat(x) @ weights[place + "weight"] + weights[place + "bias"]


@forward.register
def _(layer: Flatten, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    return _flat(x)


@forward.register
def _(layer: Reshape, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    return x.reshape(len(x), *layer.shape)


@forward.register
def _(layer: Upsample, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    sizes = zip((layer.height, layer.width), x.shape[1:3], strict=True)
    rows, columns = (np.arange(new) * old // new for new, old in sizes)
    return x[:, rows][:, :, columns]


@forward.register
def _(layer: Dropout, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    return x


@forward.register
def _(layer: BatchNorm, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    scale = weights[place + "scale"] / np.sqrt(weights[place + "variance"] + layer.epsilon)
    return (x - weights[place + "mean"]) * scale + weights[place + "shift"]


@forward.register
def _(layer: LayerNorm, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    axis = x.ndim - 1
    apart = x - x.mean(axis=axis, keepdims=True)
    size = np.sqrt((apart * apart).mean(axis=axis, keepdims=True) + layer.epsilon)
    return apart / size * weights[place + "scale"] + weights[place + "shift"]


@forward.register
def _(layer: Branch, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    parts = [forward(one, weights, f"{place}{number}.", x) for number, one in enumerate(layer.layers)]
    return np.concatenate(parts, axis=parts[0].ndim - 1)


@forward.register
def _(layer: Residual, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    inner = x
    for within, one, _ in layer.inner_steps():
        inner = forward(one, weights, place + within, inner)
    return x + inner


# --- windows ----------------------------------------------------------------------------------------------------------


def windows(x: Symbolic, size: Any, stride: Any, padding: Any, outside: float) -> Symbolic:
    """The windows of images: rows x places x entries of a window x channels; ``outside`` beside the image."""
    high, wide, channels = x.shape[1:]
    (tall, broad), (down, across), (above, left) = size, stride, padding
    numbers = np.full((high + 2 * above, wide + 2 * left, channels), high * wide * channels, dtype=np.int64)
    inner = np.arange(high * wide * channels).reshape(high, wide, channels)
    numbers[above : above + high, left : left + wide] = inner
    seen = np.lib.stride_tricks.sliding_window_view(numbers, (tall, broad), axis=(0, 1))[::down, ::across]
    places = seen.transpose(0, 1, 3, 4, 2).reshape(-1, tall * broad, channels)
    flat = _flat(x)
    padded = np.concatenate([flat, flat[:, [0]] * 0.0 + outside], axis=1)
    return padded[:, places]


def _as_image(x: Symbolic, layer: Any, shape: tuple[int, ...]) -> Symbolic:
    return x.reshape(len(x), *layer.output(shape))


def _slide(layer: Any, x: Symbolic, kernel: NDArray, stride: Any, padding: Any) -> Symbolic:
    """Cross-correlation with a kernel of height x width x in x out."""
    shape, flat = x.shape[1:], kernel.reshape(-1, kernel.shape[3])
    seen = windows(x, kernel.shape[:2], stride, padding, 0.0)
    places = seen.shape[1]
    return _as_image(seen.reshape(len(x), places, len(flat)) @ flat, layer, shape)


@forward.register
def _(layer: Conv, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    kernel = weights[place + "weight"]
    kernel = kernel[::-1, ::-1] if layer.flip else kernel
    stride, padding = pair("stride", layer.stride), pair("padding", layer.padding, least=0)
    return _slide(layer, x, kernel, stride, padding) + weights[place + "bias"]


@forward.register
def _(layer: Filter, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    size, shape = int(layer.size), x.shape[1:]
    seen = windows(x, (size, size), (1, 1), (size // 2, size // 2), 0.0)
    return _as_image((seen * layer.kernel().reshape(-1, 1)).sum(axis=2), layer, shape)


@forward.register
def _(layer: MaxPool, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    return _as_image(windows(x, *layer._geometry(), -np.inf).max(axis=2), layer, x.shape[1:])


@forward.register
def _(layer: MeanPool, weights: Weights, place: str, x: Symbolic) -> Symbolic:
    inside = windows(constant(np.ones((1, *x.shape[1:]))), *layer._geometry(), 0.0).value.sum(axis=2)
    return _as_image(windows(x, *layer._geometry(), 0.0).sum(axis=2) / inside, layer, x.shape[1:])
