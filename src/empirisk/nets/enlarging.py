"""Layers that make images larger: the way back of an autoencoder."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from empirisk.errors import EmpiriskError
from empirisk.nets.layers import LAYOUT, Layer, pair, whole


@dataclass(eq=False, repr=False)
class ConvTranspose(Layer):
    """The transpose of a convolution: every number of an image adds its multiple of a filter to a larger image.

    It leads from the shapes that ``Conv(size, stride, padding)`` gives back to those that it takes: an axis of length o
    becomes (o - 1) s + g - 2 p + e, for filters of size g, stride s, padding p and e = ``extra``.

    Parameters
    ----------
    filters : int
        Number of channels that come out.
    size, stride, padding : int or (int, int)
        Those of the convolution.
    extra : int or (int, int)
        Places that are added below and to the right, which a stride cannot tell.
    activation, init : str or None
        As for `Dense`.

    >>> er.nets.ConvTranspose(3, 5, stride=2, extra=1).output((12, 12, 4))
    (28, 28, 3)
    """

    activated = True
    loops_well = False

    filters: int = 16
    size: int | tuple[int, int] = 3
    stride: int | tuple[int, int] = 1
    padding: int | tuple[int, int] = 0
    extra: int | tuple[int, int] = 0
    _: KW_ONLY
    activation: str | None = None
    init: str | None = None

    def _geometry(self) -> list[tuple[int, int, int, int]]:
        """Size, stride, padding and extra along both axes."""
        parts = (pair("size", self.size), pair("stride", self.stride), pair("padding", self.padding, least=0))
        return list(zip(*parts, pair("extra", self.extra, least=0), strict=True))

    def output(self, shape):
        _require_image(self, shape)
        high, wide = ((o - 1) * s + g - 2 * p + e for o, (g, s, p, e) in zip(shape[:2], self._geometry(), strict=True))
        if high < 1 or wide < 1:
            raise EmpiriskError(f"{self!r} leaves nothing of an image of {shape[:2]}; use a smaller padding.")
        return high, wide, whole("filters", self.filters)

    def shapes(self, shape):
        outputs = self.output(shape)[2]
        return {"weight": (*pair("size", self.size), shape[2], outputs), "bias": (outputs,)}

    def products(self, shape):
        return shape[0] * shape[1] * super().products(shape)

    def apply(self, weights, place, x, run):
        around = [(g - 1 - p, g - 1 - p + e) for g, _, p, e in self._geometry()]
        turned = weights[place + "weight"][::-1, ::-1]
        spread = pair("stride", self.stride)
        grown = lax.conv_general_dilated(x, turned, (1, 1), around, lhs_dilation=spread, dimension_numbers=LAYOUT)
        return grown + weights[place + "bias"]


class Upsample(Layer):
    """Each place of an image repeated, to a given height and width: the nearest neighbour.

    Parameters
    ----------
    height, width : int
        Those of the image that comes out.

    >>> er.nets.Upsample(7, 7).output((3, 3, 8))
    (7, 7, 8)
    """

    def __init__(self, height: int = 2, width: int = 2):
        self.height = height
        self.width = width

    def output(self, shape):
        _require_image(self, shape)
        return whole("height", self.height), whole("width", self.width), shape[2]

    def apply(self, weights, place, x, run):
        sizes = zip((self.height, self.width), x.shape[1:3], strict=True)
        rows, columns = (np.arange(new) * old // new for new, old in sizes)
        return jnp.take(jnp.take(x, rows, axis=1), columns, axis=2)


class Reshape(Layer):
    """A row of numbers as an image.

    Parameters
    ----------
    shape : tuple
        (height, width, channels).

    >>> er.nets.Reshape((4, 4, 2)).output((32,))
    (4, 4, 2)
    """

    def __init__(self, shape: tuple[int, ...] = (1, 1, 1)):
        self.shape = shape

    def output(self, shape):
        wanted = tuple(whole("shape", side) for side in self.shape)
        if int(np.prod(wanted)) != int(np.prod(shape)):
            raise EmpiriskError(f"{self!r} gets samples of {int(np.prod(shape))} numbers; give as many places.")
        return wanted

    def apply(self, weights, place, x, run):
        return x.reshape(len(x), *self.shape)


def _require_image(layer: Layer, shape: Any) -> None:
    if len(shape) != 3:
        raise EmpiriskError(f"{layer!r} needs images, but gets samples of shape {shape}; put Reshape before it.")
