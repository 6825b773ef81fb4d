"""Augmentation: every time an image is seen in training it is another one that means the same."""

from typing import Any

import jax
import jax.numpy as jnp

from empirisk.nets.layers import whole
from empirisk.parts import Part


class Augmentation(Part):
    """A random change of the images of a batch, which keep their shape.

    >>> er.nets.Shift(2).images
    True
    """

    #: Whether it needs images, or takes rows of numbers as well.
    images: bool = True

    def check(self) -> None:
        """Raise a sentence if a parameter makes no sense."""

    def apply(self, x: Any, key: Any) -> Any:
        """The changed batch."""
        raise NotImplementedError


class Mirror(Augmentation):
    """Left and right exchanged, with a probability.

    >>> er.nets.Mirror()
    Mirror()
    """

    def __init__(self, probability: float = 0.5):
        self.probability = probability

    def check(self):
        self._number("probability", "a number from 0 to 1", 0, 1)

    def apply(self, x, key):
        mirrored = jax.random.bernoulli(key, self.probability, (len(x), 1, 1, 1))
        return jnp.where(mirrored, x[:, :, ::-1], x)


class Shift(Augmentation):
    """Each image moved by up to ``pixels`` in both directions; what comes in is zero.

    >>> er.nets.Shift(3)
    Shift(pixels=3)
    """

    def __init__(self, pixels: int = 2):
        self.pixels = pixels

    def check(self):
        whole("pixels", self.pixels, 0)

    def apply(self, x, key):
        p = self.pixels
        wide = jnp.pad(x, ((0, 0), (p, p), (p, p), (0, 0)))
        corners = jax.random.randint(key, (len(x), 2), 0, 2 * p + 1)

        def cut(image, corner):
            return jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), x.shape[1:])

        return jax.vmap(cut)(wide, corners)


class Noise(Augmentation):
    """Normal noise added to every number, of images or of rows.

    >>> er.nets.Noise(0.2)
    Noise(scale=0.2)
    """

    images = False

    def __init__(self, scale: float = 0.1):
        self.scale = scale

    def check(self):
        self._number("scale", "a finite number of at least 0", 0)

    def apply(self, x, key):
        return x + self.scale * jax.random.normal(key, x.shape, x.dtype)


class Masking(Augmentation):
    """Each number set to zero with a probability, of images or of rows.

    >>> er.nets.Masking(0.2)
    Masking(probability=0.2)
    """

    images = False

    def __init__(self, probability: float = 0.3):
        self.probability = probability

    def check(self):
        self._number("probability", "a number from 0 to 1", 0, 1)

    def apply(self, x, key):
        return jnp.where(jax.random.bernoulli(key, self.probability, x.shape), 0, x)


class Scale(Augmentation):
    """Each image made larger or smaller around its middle, by a factor within 1 - change and 1 + change.

    >>> er.nets.Scale(0.2)
    Scale(change=0.2)
    """

    def __init__(self, change: float = 0.1):
        self.change = change

    def check(self):
        self._number("change", "a number from 0 to 0.9", 0, 0.9)

    def apply(self, x, key):
        factors = jax.random.uniform(key, (len(x),), x.dtype, 1 - self.change, 1 + self.change)
        middle = jnp.asarray([x.shape[1] / 2, x.shape[2] / 2], x.dtype)
        return _resampled(x, factors, (1 - factors[:, None]) * middle)


class Crop(Augmentation):
    """A window at a random place, of a share of the height and width, blown up to the whole image.

    >>> er.nets.Crop(0.8)
    Crop(share=0.8)
    """

    def __init__(self, share: float = 0.9):
        self.share = share

    def check(self):
        self._number("share", "a number from 0.1 to 1", 0.1, 1)

    def apply(self, x, key):
        size = jnp.asarray(x.shape[1:3], x.dtype)
        corners = jax.random.uniform(key, (len(x), 2), x.dtype) * (1 - self.share) * size
        factors = jnp.full(len(x), 1 / self.share, x.dtype)
        return _resampled(x, factors, -corners / self.share)


def augmented(steps: tuple[Augmentation, ...], x: Any, key: Any) -> Any:
    """The batch after all augmentations in turn."""
    for number, step in enumerate(steps):
        x = step.apply(x, jax.random.fold_in(key, number))
    return x


def _resampled(x: Any, factors: Any, moves: Any) -> Any:
    """Each image scaled by its factor and then moved, by linear interpolation."""

    def one(image, factor, move):
        scale = jnp.stack([factor, factor])
        return jax.image.scale_and_translate(image, image.shape, (0, 1), scale, move, "linear", antialias=False)

    return jax.vmap(one)(x, factors, moves)
