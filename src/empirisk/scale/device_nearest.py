"""Nearest rows on a device: the nearest centre of every row, and lists of the nearest known rows of queries."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.linalg.blocks import slices
from empirisk.scale.devices import Device, compiled
from empirisk.stop import check_stop

#: Entries of a block of products: two gigabytes of float32.
ENTRIES = 1 << 29
#: Known rows of which first only the nearest one counts: the lists are then found among few of these groups.
GROUP = 128
#: Queries whose lists are found at a time.
QUERIES = 1024


class Assignment:
    """Rows of k-means on a device, which are given their nearest centres.

    Parameters
    ----------
    device : Device
        Where they are.
    points, norms : arrays
        The rows with a column of ones, and their squared norms, in float32.
    """

    def __init__(self, device: Device, points: NDArray, norms: NDArray):
        self._device, self._points, self._norms = device, device.put(points, np.float32), device.put(norms, np.float32)

    def nearest(self, table: NDArray, slack: NDArray, rounding: float) -> NDArray[np.int32]:
        """The centre j with the smallest product with every row; -1 - j where rounding leaves a doubt that it is.

        ``table`` has the centres as `DenseRows` writes them, and ``slack`` the rounding of their norms.
        """
        count, height = len(self._points), max(1, min(len(self._points), ENTRIES // len(table)))
        found = []
        with self._device.computing():
            numbers = self._device.put(table, np.float32), self._device.put(slack, np.float32), np.float32(rounding)
            for rows in slices(count, height):
                check_stop()
                # The last block begins earlier, so that all have one shape.
                start = min(rows.start, count - height)
                found.append(_nearest(self._points, self._norms, start, *numbers, height)[rows.start - start :])
            # Fetched at once: each array that comes to memory is waited for.
            return np.asarray(jnp.concatenate(found) if len(found) > 1 else found[0])


def assignment(device: Device, points: NDArray, norms: NDArray) -> Assignment:
    """Rows of k-means on a device."""
    return Assignment(device, points, norms)


@partial(compiled, static_argnames="height")
def _nearest(
    points: jax.Array, norms: jax.Array, start: Any, table: jax.Array, slack: jax.Array, rounding: Any, height: int
) -> jax.Array:
    rows, squares = (lax.dynamic_slice_in_dim(array, start, height) for array in (points, norms))
    values, places = rows @ table.T, jnp.arange(len(table), dtype=jnp.int32)
    infinite = jnp.array(jnp.inf, values.dtype)
    every = values, jnp.full_like(values, infinite), jnp.broadcast_to(places, values.shape)
    # One pass over the products, of which memory is the limit; `argmin` and two `min` would be three.
    best, second, label = lax.reduce(every, (infinite, infinite, jnp.int32(0)), _smaller, (1,))
    return jnp.where(second <= best + slack[label] + 2 * rounding * squares, -1 - label, label)


def _smaller(left: tuple, right: tuple) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of two sets of values the smallest one, the next, and the place of the smallest one."""
    (low, next_low, place), (other, next_other, other_place) = left, right
    first = low <= other
    second = jnp.minimum(jnp.maximum(low, other), jnp.minimum(next_low, next_other))
    return jnp.minimum(low, other), second, jnp.where(first, place, other_place)


def nearest_lists(
    device: Device, queries: NDArray, known: NDArray, norms: NDArray, count: int
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """The smallest  norms_j - 2 <q_i, b_j>  of every query in order, and their numbers j."""
    spare = -len(known) % GROUP
    known = np.concatenate([known, np.zeros((spare, known.shape[1]), known.dtype)])
    norms = np.append(norms, np.full(spare, np.inf, norms.dtype))
    values, places = np.empty((len(queries), count), np.float32), np.empty((len(queries), count), np.intp)
    groups = max(1, min(len(known) // GROUP, ENTRIES // (GROUP * QUERIES)))
    with device.computing():
        rows = device.put(known.reshape(-1, GROUP, known.shape[1]), np.float32)
        levels = device.put(norms.reshape(-1, GROUP), np.float32)
        for some in slices(len(queries), QUERIES):
            check_stop()
            padded = np.zeros((QUERIES, queries.shape[1]), np.float32)
            padded[: some.stop - some.start] = queries[some]
            asked = device.put(padded, np.float32)
            minima = [_minima(asked, rows, levels, start, groups) for start in range(0, len(rows), groups)]
            found = _lists(asked, rows, levels, jnp.concatenate(minima, axis=1)[:, : len(rows)], count)
            values[some], places[some] = (np.asarray(each)[: some.stop - some.start] for each in found)
    return values, places


@partial(compiled, static_argnames="groups")
def _minima(queries: jax.Array, rows: jax.Array, levels: jax.Array, start: Any, groups: int) -> jax.Array:
    """The smallest value in every group of a block of groups; those beyond the last are infinite."""
    numbers = start + jnp.arange(groups)
    inside = jnp.minimum(numbers, len(rows) - 1)
    values = levels[inside] - 2 * jnp.einsum("qd,grd->qgr", queries, rows[inside])
    return jnp.where(numbers < len(rows), values.min(axis=2), jnp.inf)


@partial(compiled, static_argnames="count")
def _lists(
    queries: jax.Array, rows: jax.Array, levels: jax.Array, minima: jax.Array, count: int
) -> tuple[jax.Array, jax.Array]:
    """The smallest values, which lie in the groups with the smallest minima."""
    _, near = lax.top_k(-minima, min(count, minima.shape[1]))

    def one(query: jax.Array, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = levels[chosen] - 2 * (rows[chosen] @ query)
        numbers = chosen[:, None] * GROUP + jnp.arange(GROUP)
        smallest, places = lax.top_k(-values.ravel(), count)
        return -smallest, numbers.ravel()[places]

    return lax.map(lambda pair: one(*pair), (queries, near), batch_size=64)
