"""Layers: each states the shape that comes out, the weights it needs, and its function."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.parts import Part

Shape = tuple[int, ...]
Weights = dict[str, Any]

#: The slope of "leaky_relu" below zero.
LEAK = 0.01
ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: jnp.maximum(x, 0),
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "leaky_relu": lambda x: jnp.where(x >= 0, x, LEAK * x),
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),  # x Phi(x), Phi the normal distribution
    "softplus": jax.nn.softplus,
    # For constructions: its derivative is zero, so that nothing is learned through it.
    "sign": lambda x: jnp.where(x >= 0, 1, -1).astype(x.dtype),
}
INITIALISATIONS = ("auto", "he", "glorot", "normal")
#: Images are n x height x width x channels, kernels height x width x in x out.
LAYOUT = ("NHWC", "HWIO", "NHWC")


class Pass:
    """What a layer knows in a forward pass: whether this is training, the rows' weights, and randomness.

    Attributes
    ----------
    training : bool
        Whether dropout drops and batch normalisation looks at the batch.
    rows : array or None
        Weights of the rows of the batch; None for equal ones.
    key : callable or None
        Gives the key of all randomness, where any is drawn; None outside training.
    state : dict
        What layers remember without learning it by gradients: running moments.
    fixed : set of str
        Names of weights that stay as they are.
    """

    def __init__(
        self,
        state: Weights,
        training: bool = False,
        rows: Any = None,
        key: Any = None,
        fixed: frozenset[str] = frozenset(),
    ):
        self.state, self.training, self.rows, self.key, self.fixed = dict(state), training, rows, key, fixed

    def draw(self, place: str) -> Any:
        """A key of its own for each place."""
        return jax.random.fold_in(self.key(), sum(ord(letter) * 31**i for i, letter in enumerate(place)) % 2**31)


class Layer(Part):
    """One step of a network.

    Attributes
    ----------
    activated : bool
        Whether the activation of the network follows where the layer states none of its own.

    >>> er.nets.Conv(8, 3, padding=1).output((28, 28, 1))
    (28, 28, 8)
    """

    activated: ClassVar[bool] = False
    #: Whether it is as fast inside a compiled loop as outside, on a CPU.
    loops_well: ClassVar[bool] = True
    #: Whether it does the same in training as in prediction.
    steady: ClassVar[bool] = True
    #: Whether it goes before the activation of the layer that it follows.
    normalises: ClassVar[bool] = False

    def output(self, shape: Shape) -> Shape:
        """The shape of one sample after the layer."""
        return shape

    def shapes(self, shape: Shape) -> dict[str, Shape]:
        """The shapes of the weights for samples of a shape; "weight" is penalised, all others are free."""
        return {}

    def moments(self, shape: Shape) -> dict[str, Shape]:
        """The shapes of what is remembered without being learned by gradients."""
        return {}

    def within(self, function: str) -> Layer:
        """The layer in a network with that activation."""
        return self

    def products(self, shape: Shape) -> int:
        """How often two numbers are multiplied for one sample."""
        return sum(int(np.prod(size)) for size in self.shapes(shape).values())

    def apply(self, weights: Weights, place: str, x: Any, run: Pass) -> Any:
        """The function; the weights of the layer are those whose names begin with ``place``."""
        raise NotImplementedError


class Activation(Layer):
    """A function of each number: "linear", "relu", "leaky_relu", "gelu", "softplus", "sigmoid", "tanh" or "sign".

    >>> er.nets.Activation("tanh").output((5,))
    (5,)
    """

    def __init__(self, function: str = "relu"):
        self.function = function

    def output(self, shape):
        activation(self.function)
        return shape

    def apply(self, weights, place, x, run):
        return activation(self.function)(x)


class Dense(Layer):
    """x -> W'x + b, each output of all inputs; images are flattened first.

    Parameters
    ----------
    width : int
        Number of outputs.
    activation : str or None
        A function of its own; None takes that of the network.
    init : str or None
        "he", "glorot" or "normal"; None takes that of the network.

    >>> er.nets.Dense(3).output((5,))
    (3,)
    """

    activated = True

    def __init__(self, width: int = 100, activation: str | None = None, init: str | None = None):
        self.width = width
        self.activation = activation
        self.init = init

    def output(self, shape):
        return (whole("width", self.width),)

    def shapes(self, shape):
        (outputs,) = self.output(shape)
        return {"weight": (int(np.prod(shape)), outputs), "bias": (outputs,)}

    def apply(self, weights, place, x, run):
        return x.reshape(len(x), -1) @ weights[place + "weight"] + weights[place + "bias"]


@dataclass(eq=False, repr=False)
class Conv(Layer):
    """Filters that slide over an image: out[i, j, f] = sum W[a, b, c, f] x[i s + a - p, j s + b - p, c] + b_f.

    This is cross-correlation, which most libraries call convolution; ``flip=True`` turns the filters by half a turn,
    which makes it convolution proper. The output has floor((i - g + 2 p) / s + 1) places along an axis of length i, for
    filters of size g, padding p and stride s.

    Parameters
    ----------
    filters : int
        Number of filters.
    size : int or (int, int)
        Height and width of a filter.
    stride, padding : int or (int, int)
        Step of the filters, and zeros added on each side.
    flip : bool
        Whether the filters are turned.
    activation, init : str or None
        As for `Dense`.

    >>> er.nets.Conv(4, 5, stride=2).output((28, 28, 3))
    (12, 12, 4)
    """

    activated = True
    loops_well = False

    filters: int = 16
    size: int | tuple[int, int] = 3
    stride: int | tuple[int, int] = 1
    padding: int | tuple[int, int] = 0
    _: KW_ONLY
    flip: bool = False
    activation: str | None = None
    init: str | None = None

    def output(self, shape):
        return (*places(self, shape, self.size, self.stride, self.padding), whole("filters", self.filters))

    def shapes(self, shape):
        outputs = self.output(shape)[2]
        return {"weight": (*pair("size", self.size), shape[2], outputs), "bias": (outputs,)}

    def products(self, shape):
        high, wide, _ = self.output(shape)
        return high * wide * super().products(shape)

    def apply(self, weights, place, x, run):
        kernel = weights[place + "weight"]
        kernel = kernel[::-1, ::-1] if self.flip else kernel
        return slide(x, kernel, self.stride, self.padding) + weights[place + "bias"]


class Filter(Layer):
    """A fixed filter on every channel, with nothing to learn: smoothing ("gaussian") or edges ("laplace").

    Parameters
    ----------
    kind : {"gaussian", "laplace"}
        exp(-r^2 / (2 width^2)) with sum 1; or the Laplacian of it, with sum 0.
    size : int
        Height and width, odd; the image keeps its size.
    width : float
        Width of the bell in pixels.

    >>> round(float(er.nets.Filter("gaussian").kernel().sum()), 6)
    1.0
    """

    def __init__(self, kind: str = "gaussian", size: int = 5, width: float = 1.0):
        self.kind = kind
        self.size = size
        self.width = width

    def kernel(self) -> NDArray[Any]:
        """The filter as a square array."""
        if self.kind not in ("gaussian", "laplace"):
            raise EmpiriskError(f"kind={self.kind!r} of Filter is not known; choose 'gaussian' or 'laplace'.")
        size = whole("size", self.size)
        if size % 2 == 0:
            raise EmpiriskError(f"size={self.size!r} of Filter must be odd, so that it has a middle.")
        self._number("width", "a positive number of pixels", np.finfo(float).tiny)
        steps = (np.arange(size) - size // 2) / self.width
        squares = steps[:, None] ** 2 + steps**2
        bell = np.exp(-0.5 * squares)
        bell /= bell.sum()
        if self.kind == "gaussian":
            return bell
        edges = (squares - 2) * bell / self.width**2
        return edges - edges.mean()

    def output(self, shape):
        self.kernel()
        return (*places(self, shape, self.size, 1, self.size // 2), shape[2])

    def apply(self, weights, place, x, run):
        channels = x.shape[3]
        kernel = jnp.asarray(np.tile(self.kernel()[:, :, None, None], (1, 1, 1, channels)), x.dtype)
        return slide(x, kernel, 1, self.size // 2, groups=channels)


@dataclass(eq=False, repr=False)
class Pool(Layer):
    """One number for each window of an image.

    Parameters
    ----------
    size : int or (int, int)
        Height and width of a window.
    stride : int, (int, int) or None
        Step of the windows; None is their size.
    padding : int or (int, int)
        Places added on each side, which take no part.
    """

    size: int | tuple[int, int] = 2
    stride: int | tuple[int, int] | None = None
    padding: int | tuple[int, int] = 0

    def _geometry(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        size = pair("size", self.size)
        padding = pair("padding", self.padding, least=0)
        if any(2 * p > g for p, g in zip(padding, size, strict=True)):
            raise EmpiriskError(f"padding={self.padding!r} must be at most half of size={self.size!r}.")
        return size, size if self.stride is None else pair("stride", self.stride), padding

    def output(self, shape):
        size, stride, padding = self._geometry()
        return (*places(self, shape, size, stride, padding), shape[2])

    def _windows(self, x: Any, start: float, combine: Any) -> Any:
        (high, wide), (down, across), (above, left) = self._geometry()
        around = ((0, 0), (above, above), (left, left), (0, 0))
        first = np.asarray(start, x.dtype)  # known before compilation, as only then it has a gradient
        return lax.reduce_window(x, first, combine, (1, high, wide, 1), (1, down, across, 1), around)

    def _tiles(self, x: Any) -> Any | None:
        """The windows as two axes of their own where they neither overlap nor stand out: much faster on a CPU."""
        size, stride, padding = self._geometry()
        if size != stride or any(padding):
            return None
        rows, columns = (length // g for length, g in zip(x.shape[1:3], size, strict=True))
        whole_windows = x[:, : rows * size[0], : columns * size[1]]
        return whole_windows.reshape(len(x), rows, size[0], columns, size[1], x.shape[3])


class MaxPool(Pool):
    """The largest number of each window.

    Parameters
    ----------
    size : int or pair of int
        Height and width of a window.
    stride : int, pair of int or None
        Steps from one window to the next; None is the size, so that windows tile the image.
    padding : int or pair of int
        Rows and columns around the image that no window counts.

    Examples
    --------
    >>> er.nets.MaxPool(2).output((7, 7, 3))
    (3, 3, 3)
    """

    def apply(self, weights, place, x, run):
        tiles = self._tiles(x)
        return self._windows(x, -jnp.inf, lax.max) if tiles is None else tiles.max(axis=(2, 4))


class MeanPool(Pool):
    """The mean of each window, over the places inside the image.

    Parameters
    ----------
    size : int or pair of int
        Height and width of a window.
    stride : int, pair of int or None
        Steps from one window to the next; None is the size, so that windows tile the image.
    padding : int or pair of int
        Rows and columns around the image that no window counts.

    Examples
    --------
    >>> er.nets.MeanPool(3, stride=2).output((7, 7, 3))
    (3, 3, 3)
    """

    def apply(self, weights, place, x, run):
        tiles = self._tiles(x)
        if tiles is not None:
            return tiles.mean(axis=(2, 4))
        return self._windows(x, 0.0, lax.add) / self._windows(jnp.ones_like(x[:1]), 0.0, lax.add)


class BatchNorm(Layer):
    """Every channel shifted and scaled to mean 0 and variance 1 over the batch, then by learned numbers.

    It goes before the activation of the layer it follows. Prediction uses running moments, so that the answer for a row
    does not depend on the others; so does a frozen layer in training.

    Parameters
    ----------
    momentum : float
        The share of the running moments that a batch leaves as it is.
    epsilon : float
        Added to the variance.

    >>> er.nets.BatchNorm().output((28, 28, 8))
    (28, 28, 8)
    """

    steady = False
    normalises = True

    def __init__(self, momentum: float = 0.9, epsilon: float = 1e-5):
        self.momentum = momentum
        self.epsilon = epsilon

    def output(self, shape):
        for name in ("momentum", "epsilon"):
            self._number(name, "a number from 0 to 1", 0, 1)
        return shape

    def shapes(self, shape):
        return {"scale": (shape[-1],), "shift": (shape[-1],)}

    def moments(self, shape):
        return {"mean": (shape[-1],), "variance": (shape[-1],)}

    def apply(self, weights, place, x, run):
        if run.training and place + "scale" not in run.fixed:
            rows = jnp.ones(len(x), x.dtype) if run.rows is None else run.rows
            share = (rows / rows.sum()).reshape(-1, *[1] * (x.ndim - 1)) / np.prod(x.shape[1:-1])
            axes = tuple(range(x.ndim - 1))
            mean = (share * x).sum(axes)
            variance = (share * (x - mean) ** 2).sum(axes)
            for name, moment in (("mean", mean), ("variance", variance)):
                before = run.state[place + name]
                run.state[place + name] = self.momentum * before + (1 - self.momentum) * lax.stop_gradient(moment)
        else:
            mean, variance = run.state[place + "mean"], run.state[place + "variance"]
        scale = weights[place + "scale"] / jnp.sqrt(variance + self.epsilon)
        return (x - mean) * scale + weights[place + "shift"]


class LayerNorm(Layer):
    """The channels of every sample, at every place of an image, shifted and scaled to mean 0 and variance 1.

    Learned numbers then scale and shift each channel. It goes before the activation of the layer it follows, and does
    the same in training as in prediction: no row depends on the others.

    Parameters
    ----------
    epsilon : float
        Added to the variance.

    >>> er.nets.LayerNorm().output((100,))
    (100,)
    """

    normalises = True

    def __init__(self, epsilon: float = 1e-5):
        self.epsilon = epsilon

    def output(self, shape):
        self._number("epsilon", "a number above 0 and at most 1", np.finfo(float).tiny, 1)
        return shape

    def shapes(self, shape):
        return {"scale": (shape[-1],), "shift": (shape[-1],)}

    def apply(self, weights, place, x, run):
        apart = x - x.mean(axis=-1, keepdims=True)
        size = jnp.sqrt((apart**2).mean(axis=-1, keepdims=True) + self.epsilon)
        return apart / size * weights[place + "scale"] + weights[place + "shift"]


class Dropout(Layer):
    """In training every number is zero with probability ``rate``, and the others are divided by 1 - rate.

    >>> er.nets.Dropout(0.5).output((100,))
    (100,)
    """

    steady = False

    def __init__(self, rate: float = 0.5):
        self.rate = rate

    def output(self, shape):
        self._number("rate", "a number from 0 to below 1", 0, np.nextafter(1, 0))
        return shape

    def apply(self, weights, place, x, run):
        if not run.training or self.rate == 0:
            return x
        kept = jax.random.bernoulli(run.draw(place), 1 - self.rate, x.shape)
        return jnp.where(kept, x / (1 - self.rate), 0)


class Flatten(Layer):
    """An image as one row of numbers.

    >>> er.nets.Flatten().output((4, 4, 2))
    (32,)
    """

    def output(self, shape):
        return (int(np.prod(shape)),)

    def apply(self, weights, place, x, run):
        return x.reshape(len(x), -1)


def activation(name: str) -> Any:
    """The function that a name stands for."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise EmpiriskError(f"activation={name!r} is not known; choose one of {sorted(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def drawn(name: str, shape: Shape, init: str, random: np.random.Generator) -> NDArray:
    """A weight to begin with: ones for scales, zeros for biases and shifts, and what multiplies at random.

    "he" has variance 2 / inputs, "glorot" is uniform with 2 / (inputs + outputs), "normal" has 1 / inputs.
    """
    if not name.endswith("weight"):
        return (np.ones if name.endswith("scale") else np.zeros)(shape, np.float32)
    places = int(np.prod(shape[:-2]))  # of a filter; 1 for a dense layer
    inputs, outputs = places * shape[-2], places * shape[-1]
    if init == "he":
        values = random.normal(size=shape) * np.sqrt(2 / inputs)
    elif init == "glorot":
        values = random.uniform(-1, 1, size=shape) * np.sqrt(6 / (inputs + outputs))
    elif init == "normal":
        values = random.normal(size=shape) / np.sqrt(inputs)
    else:
        raise EmpiriskError(f"init={init!r} is not known; choose one of {list(INITIALISATIONS)} or give the weights.")
    return values.astype(np.float32)


def slide(x: Any, kernel: Any, stride: Any, padding: Any, groups: int = 1) -> Any:
    """Cross-correlation of images with a kernel."""
    around = [(side, side) for side in pair("padding", padding, least=0)]
    return lax.conv_general_dilated(
        x, kernel, pair("stride", stride), around, dimension_numbers=LAYOUT, feature_group_count=groups
    )


def places(layer: Layer, shape: Shape, size: Any, stride: Any, padding: Any) -> tuple[int, int]:
    """floor((i - g + 2 p) / s + 1) along both axes of an image."""
    if len(shape) != 3:
        raise EmpiriskError(
            f"{layer!r} needs images, but gets samples of shape {shape}; give X of shape (n, height, width, channels) "
            "or shape=(height, width, channels) to Network, and put it before Dense and Flatten."
        )
    parts = zip(shape[:2], pair("size", size), pair("stride", stride), pair("padding", padding, least=0), strict=True)
    high, wide = ((i - g + 2 * p) // s + 1 for i, g, s, p in parts)
    if high < 1 or wide < 1:
        raise EmpiriskError(f"{layer!r} is larger than the image of {shape[:2]} that it gets; use a smaller size.")
    return high, wide


def pair(name: str, value: Any, least: int = 1) -> tuple[int, int]:
    """Two whole numbers from one or two."""
    given = (value, value) if isinstance(value, Integral) else tuple(value)
    if len(given) != 2:
        raise EmpiriskError(f"{name}={value!r} must be a whole number, or two: height and width.")
    return whole(name, given[0], least), whole(name, given[1], least)


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise EmpiriskError(f"{name}={value!r} must be a whole number of at least {least}.")
    return int(value)
