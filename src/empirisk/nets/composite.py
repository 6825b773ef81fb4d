"""Layers made of layers: side by side, around a shortcut; and the order of layers and their activations."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from empirisk.errors import EmpiriskError
from empirisk.nets.layers import Activation, BatchNorm, Dense, Dropout, Layer, Shape


def sequence(layers: Sequence[Layer], function: str, batch_norm: bool, dropout: float) -> list[tuple[str, Layer, int]]:
    """The layers with their activations, each after the normalisation that follows its layer, by place and number."""
    steps: list[tuple[str, Layer, int]] = []
    waiting: list[tuple[str, Layer, int]] = []
    for number, layer in enumerate(layers):
        if not layer.normalises:
            steps, waiting = steps + waiting, []
        steps.append((f"{number}.", layer.within(function), number))
        if layer.activated:
            own = getattr(layer, "activation", None) or function
            if batch_norm:
                steps.append((f"{number}.norm.", BatchNorm(), number))
            waiting = [(f"{number}.", Activation(own), number)]
            if dropout and isinstance(layer, Dense):
                waiting.append((f"{number}.dropout.", Dropout(dropout), number))
        elif layer.normalises:
            steps, waiting = steps + [(place, step, number) for place, step, _ in waiting], []
    return steps + waiting


class Chain:
    """Layers in turn for samples of one shape.

    Attributes
    ----------
    steps : list of (place, layer, number)
        What happens in turn: where its weights are found, and to which of the user's layers it belongs.
    shapes : list of tuple
        The shape of a sample before the first step, and after each.
    """

    def __init__(self, steps: list[tuple[str, Layer, int]], shape: Shape):
        self.steps, self.shapes = steps, [shape]
        for _, layer, _ in steps:
            self.shapes.append(tuple(layer.output(self.shapes[-1])))

    @property
    def products(self) -> int:
        """How often two numbers are multiplied for one sample."""
        return sum(layer.products(shape) for (_, layer, _), shape in zip(self.steps, self.shapes[:-1], strict=True))

    def shapes_of_weights(self) -> dict[str, Shape]:
        """The shape of every weight, by name."""
        return self._collect(lambda layer, shape: layer.shapes(shape))

    def shapes_of_moments(self) -> dict[str, Shape]:
        """The shape of every running moment, by name."""
        return self._collect(lambda layer, shape: layer.moments(shape))

    def _collect(self, of: Callable[[Layer, Shape], dict[str, Shape]]) -> dict[str, Shape]:
        parts = zip(self.steps, self.shapes[:-1], strict=True)
        return {place + name: value for (place, layer, _), shape in parts for name, value in of(layer, shape).items()}


def as_layers(layers: Sequence[Any]) -> list[Layer]:
    """Layers as objects: a whole number is a dense layer."""
    return [layer if isinstance(layer, Layer) else Dense(layer) for layer in layers]


def _inside(block: Any) -> list[Layer]:
    """The layers of a block."""
    if isinstance(block.layers, (str, bytes)) or not hasattr(block.layers, "__len__") or not len(block.layers):
        raise EmpiriskError(f"layers of {type(block).__name__} must be a list of layers, not empty.")
    return as_layers(block.layers)


class Branch(Layer):
    """Layers side by side on the same input, their outputs joined along the channels: two sizes of filters at once.

    Parameters
    ----------
    layers : list of layers
        The branches; their outputs must have the same height and width.

    >>> sizes = er.nets.Branch([er.nets.Conv(4, 3, padding=1), er.nets.Conv(6, 5, padding=2)])
    >>> sizes.output((28, 28, 1))
    (28, 28, 10)
    """

    activated = True
    activation = None
    loops_well = False

    def __init__(self, layers: Sequence[Layer] = ()):
        self.layers = layers

    def output(self, shape):
        outputs = [layer.output(shape) for layer in _inside(self)]
        if len({output[:-1] for output in outputs}) > 1:
            raise EmpiriskError(f"The layers of Branch give {outputs}, which cannot be joined; adjust the padding.")
        return (*outputs[0][:-1], sum(output[-1] for output in outputs))

    def shapes(self, shape):
        parts = [layer.shapes(shape) for layer in _inside(self)]
        return {f"{number}.{name}": value for number, part in enumerate(parts) for name, value in part.items()}

    def apply(self, weights, place, x, run):
        parts = [layer.apply(weights, f"{place}{number}.", x, run) for number, layer in enumerate(_inside(self))]
        return jnp.concatenate(parts, axis=-1)


class Residual(Layer):
    """x + F(x): layers in turn, with a shortcut around them; the activation follows the sum.

    Inside, the activation follows every layer but the last. What comes out of F must have the shape of x.

    Parameters
    ----------
    layers : list of int and Layer
        The layers of F; a number is a dense layer of that width.
    activation : str or None
        A function of its own; None takes that of the network.

    >>> er.nets.Residual([er.nets.Conv(8, padding=1), er.nets.Conv(4, padding=1)]).output((28, 28, 4))
    (28, 28, 4)
    """

    activated = True

    def __init__(self, layers: Sequence[Any] = (), activation: str | None = None):
        self.layers = layers
        self.activation = activation

    @property
    def loops_well(self) -> bool:
        """Whether all layers inside do."""
        return all(layer.loops_well for layer in _inside(self))

    @property
    def steady(self) -> bool:
        """Whether all layers inside are."""
        return all(layer.steady for layer in _inside(self))

    def within(self, function):
        return Residual(self.layers, self.activation or function)

    def output(self, shape):
        reached = Chain(self.inner_steps(), shape).shapes[-1]
        if reached != shape:
            raise EmpiriskError(
                f"The layers of Residual lead from samples of shape {shape} to {reached}, which cannot be added; "
                "choose their widths or padding so that the shape stays."
            )
        return reached

    def shapes(self, shape):
        return Chain(self.inner_steps(), shape).shapes_of_weights()

    def moments(self, shape):
        return Chain(self.inner_steps(), shape).shapes_of_moments()

    def products(self, shape):
        return Chain(self.inner_steps(), shape).products

    def apply(self, weights, place, x, run):
        inner = x
        for within, layer, _ in self.inner_steps():
            inner = layer.apply(weights, place + within, inner, run)
        return x + inner

    def inner_steps(self) -> list[tuple[str, Layer, int]]:
        """The layers of F and the activations between them, as in `Chain`."""
        layers = _inside(self)
        steps = sequence(layers, self.activation or "linear", False, 0.0)
        own = isinstance(layers[-1], Activation)
        return steps if own or not isinstance(steps[-1][1], Activation) else steps[:-1]
