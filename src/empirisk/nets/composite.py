"""Layers made of layers: side by side, around a shortcut; and the order of layers and their activations."""

from collections.abc import Sequence
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
        steps, shapes = self._steps(), self._shapes(shape)
        if shapes[-1] != shape:
            raise EmpiriskError(
                f"The layers of Residual lead from samples of shape {shape} to {shapes[-1]}, which cannot be added; "
                "choose their widths or padding so that the shape stays."
            )
        return shapes[len(steps)]

    def shapes(self, shape):
        parts = zip(self._steps(), self._shapes(shape), strict=False)
        return {place + name: size for (place, layer), at in parts for name, size in layer.shapes(at).items()}

    def moments(self, shape):
        parts = zip(self._steps(), self._shapes(shape), strict=False)
        return {place + name: size for (place, layer), at in parts for name, size in layer.moments(at).items()}

    def products(self, shape):
        parts = zip(self._steps(), self._shapes(shape), strict=False)
        return sum(layer.products(at) for (_, layer), at in parts)

    def apply(self, weights, place, x, run):
        inner = x
        for within, layer in self._steps():
            inner = layer.apply(weights, place + within, inner, run)
        return x + inner

    def _steps(self) -> list[tuple[str, Layer]]:
        """The layers of F and the activations between them."""
        layers = _inside(self)
        steps = sequence(layers, self.activation or "linear", False, 0.0)
        own = isinstance(layers[-1], Activation)
        last = len(steps) if own or not isinstance(steps[-1][1], Activation) else len(steps) - 1
        return [(place, layer) for place, layer, _ in steps[:last]]

    def _shapes(self, shape: Shape) -> list[Shape]:
        """The shape of a sample before each of the layers of F, and after the last."""
        shapes = [shape]
        for _, layer in self._steps():
            shapes.append(tuple(layer.output(shapes[-1])))
        return shapes
