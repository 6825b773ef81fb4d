"""A network as one function of weights and samples, with a hash: what is compiled once serves every equal network."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.nets.composite import Chain, as_layers, sequence
from empirisk.nets.device import on_device
from empirisk.nets.layers import Activation, Dense, Layer, Pass, Shape, Weights, activation, drawn
from empirisk.parts import Part

#: Rows that pass through a network at a time, outside training.
BLOCK = 1024
#: The smallest block: few sizes mean few compilations.
LEAST_BLOCK = 64
#: Activations that let about half of the variance through.
HALVES = ("relu", "leaky_relu", "gelu")


def frozen(value: Any) -> Any:
    """A value, parts and lists included, as something with a hash."""
    if isinstance(value, Part):
        return type(value), tuple((name, frozen(item)) for name, item in sorted(value.get_params(deep=False).items()))
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item) for item in value)
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    return value


class Keyed:
    """What is equal, and has one hash, where the kind and the ``key`` are: a compilation for one serves the other."""

    key: Any

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keyed) and type(other) is type(self) and self.key == other.key


class NetworkPlan(Keyed, Chain):
    """Layers in order, each at its place, for samples of one shape.

    Parameters
    ----------
    layers : list of Layer
        The layers as the user wrote them.
    shape : tuple
        The shape of one sample.
    function : str
        The activation that follows layers that state none.
    batch_norm : bool
        Whether the batch is normalised before every activation.
    dropout : float
        Dropout after every activation of a dense layer.
    """

    def __init__(self, layers: Sequence[Layer], shape: Shape, function: str, batch_norm: bool, dropout: float):
        activation(function)
        self.layers, self.shape, self.function = tuple(layers), shape, function
        super().__init__(sequence(self.layers, function, batch_norm, dropout), shape)
        self.key = shape, tuple((place, frozen(layer), number) for place, layer, number in self.steps)

    @property
    def loops_well(self) -> bool:
        """Whether no layer loses by standing inside a compiled loop."""
        return all(layer.loops_well for _, layer, _ in self.steps)

    @property
    def steady(self) -> bool:
        """Whether all layers do the same in training as in prediction."""
        return all(layer.steady for _, layer, _ in self.steps)

    @property
    def width(self) -> int:
        """Numbers that come out for each sample."""
        return int(np.prod(self.shapes[-1]))

    def weights(self, init: str, random: np.random.Generator) -> dict[str, NDArray]:
        """First weights, by name."""
        out = {}
        for number, (place, layer, _) in enumerate(self.steps):
            way = getattr(layer, "init", None) or (self._suitable(number) if init == "auto" else init)
            shapes = layer.shapes(self.shapes[number])
            out |= {place + name: drawn(name, shape, way, random) for name, shape in shapes.items()}
        return out

    def _suitable(self, number: int) -> str:
        """He's variance for what goes into relu and its like, Glorot's for all else."""
        functions = [layer.function for _, layer, _ in self.steps[number + 1 :] if isinstance(layer, Activation)]
        return "he" if functions and functions[0] in HALVES else "glorot"

    def state(self) -> dict[str, NDArray]:
        """First running moments, by name: mean 0 and variance 1."""
        shapes = self.shapes_of_moments().items()
        return {name: np.full(shape, float(name.endswith("variance")), np.float32) for name, shape in shapes}

    def apply(self, weights: Weights, x: Any, run: Pass, outputs: list | None = None) -> Any:
        """phi of a batch as n x width; ``outputs`` collects what comes out of every layer of the user's."""
        for position, (place, layer, number) in enumerate(self.steps):
            x = layer.apply(weights, place, x, run)
            last = position + 1 == len(self.steps) or self.steps[position + 1][2] != number
            if outputs is not None and last:
                outputs.append(x)
        return x.reshape(len(x), -1)


def checked_layers(layers: Any, widths: Any) -> list[Layer]:
    """Layers as objects: a whole number is a dense layer; ``widths`` replaces the widths of the dense ones."""
    for name, value in (("layers", layers), ("widths", () if widths is None else widths)):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            raise EmpiriskError(f"{name}={value!r} must be a list of widths, such as [256, 128].")
    given = as_layers(layers)
    if widths is None:
        return given
    if all(isinstance(layer, Dense) for layer in given):
        return [Dense(width) for width in widths]
    dense = [number for number, layer in enumerate(given) if isinstance(layer, Dense)]
    if len(dense) != len(widths):
        raise EmpiriskError(f"widths={widths!r} must hold one width for each of the {len(dense)} dense layers.")
    for number, width in zip(dense, widths, strict=True):
        given[number] = Dense(width, given[number].activation, given[number].init)
    return given


@partial(jax.jit, static_argnums=(0, 1))
def _through(plan: NetworkPlan, all_layers: bool, weights: Weights, state: Weights, x: Any) -> Any:
    outputs: list = []
    phi = plan.apply(weights, x, Pass(state), outputs)
    return outputs if all_layers else [phi]


def through(plan: NetworkPlan, weights: Weights, state: Weights, X: NDArray, all_layers: bool = False) -> Any:
    """phi_W(X) in the precision of X, or the outputs of all layers, over blocks of rows of a few sizes.

    Blocks are filled up with zeros to powers of two, so that a row's answer depends neither on the number of rows
    nor, but for that, on a compilation of its own.
    """
    with on_device(), jax.enable_x64(X.dtype == np.float64):
        weights, state = ({k: np.asarray(v, X.dtype) for k, v in part.items()} for part in (weights, state))
        parts = []
        for start in range(0, len(X), BLOCK):
            block = X[start : start + BLOCK]
            size = bucket(len(block))
            padded = np.zeros((size, *X.shape[1:]), X.dtype)
            padded[: len(block)] = block
            found = _through(plan, all_layers, weights, state, padded)
            parts.append([np.asarray(out)[: len(block)] for out in found])
    outputs = [np.concatenate(blocks) for blocks in zip(*parts, strict=True)]
    return outputs if all_layers else outputs[0]


def bucket(rows: int, most: int = BLOCK) -> int:
    """The size of the block that some rows fill: a power of two."""
    return min(max(LEAST_BLOCK, 1 << max(rows - 1, 0).bit_length()), max(most, rows))
