"""Expectations of mixtures on a device, in float64: the rows stay there or go there in passes, sums come to memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.linalg.blocks import Array, slices
from empirisk.scale.devices import Device, as_numpy, compiled
from empirisk.stop import check_stop

#: Blocks of rows that one call goes through, between two looks at whether to stop.
BLOCKS = 16
#: Shares below exp(-40) are lost in the rounding of a sum of shares: as on the processor, they are zero.
NEGLIGIBLE = -40.0


class Expectation:
    """Rows of a mixture on a device; where they, and what is made of them, would take more than half of it, in passes.

    Parameters
    ----------
    device : Device
        Where they are.
    X, weights : arrays
        The rows around some centre, and their weights.
    pairs : array, 2 x products
        Which entries of (x, 1) are multiplied.
    """

    def __init__(self, device: Device, X: Array, weights: Array, pairs: NDArray[np.intp]):
        self._device = device
        self._height = max(1, device.height * device.width // pairs.shape[1])
        self._blocks = min(BLOCKS, -(-len(X) // self._height))
        self._given, self._span = (X, weights), self._height * self._blocks
        with device.computing():
            self._pairs = device.put(pairs, np.int64)
            self._held = self._sent(slice(None)) if 16 * X.size <= device.memory else None

    def _sent(self, part: slice) -> tuple[jax.Array, jax.Array]:
        """Some of the rows and their weights on the device, and rows without weight after them."""
        X, weights = (self._device.put(each[part]) for each in self._given)
        spare = -len(X) % self._span
        return jnp.pad(X, ((0, spare), (0, 0))), jnp.pad(weights, (0, spare))

    def sums(self, terms: Array) -> tuple[float, Array]:
        """The weighted log-likelihood, and the sums of the products weighed among the components, k x products.

        ``terms`` turns the products into log w_k + log p_k.
        """
        with self._device.computing():
            there = self._device.put(terms)
            total = jnp.zeros(()), jnp.zeros(terms.shape)
            for part in slices(len(self._given[0]), self._span):
                check_stop()
                rows, start = (self._sent(part), 0) if self._held is None else (self._held, part.start)
                total = _added(total, (*rows, self._pairs), start, there, self._height, self._blocks)
                total[0].block_until_ready()
            return float(total[0]), as_numpy(total[1])


def expectation(device: Device, X: Array, weights: Array, pairs: NDArray[np.intp]) -> Expectation:
    """The rows of a mixture on a device."""
    return Expectation(device, X, weights, pairs)


@partial(compiled, static_argnames=("height", "blocks"))
def _added(total: tuple, data: tuple, start: Any, terms: jax.Array, height: int, blocks: int) -> tuple:
    rows, weights, (left, right) = data

    def add(number: Any, total: tuple) -> tuple:
        X, w = (lax.dynamic_slice_in_dim(each, start + number * height, height) for each in (rows, weights))
        entries = jnp.concatenate([X, jnp.ones((height, 1))], axis=1)
        products = entries[:, left] * entries[:, right]
        levels = products @ terms.T
        top = levels.max(axis=1, keepdims=True)
        shares = jnp.where(levels - top > NEGLIGIBLE, jnp.exp(levels - top), 0.0)
        whole = shares.sum(axis=1)
        likelihood, sums = total
        return likelihood + w @ (top[:, 0] + jnp.log(whole)), sums + (shares * (w / whole)[:, None]).T @ products

    return lax.fori_loop(0, blocks, add, total)
