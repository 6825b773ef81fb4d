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

#: Entries of a block of products: two gigabytes of float32, and no more than a 16th of the device.
ENTRIES = 1 << 29
#: The share of a device that rows may take to stay there; others go there in passes, in blocks of a 16th at most.
HELD_SHARE, BLOCK_SHARE = 2, 16
#: Known rows of which first only the nearest one counts: the lists are then found among few of these groups.
GROUP = 128
#: Queries whose lists are found at a time.
QUERIES = 1024


class Assignment:
    """Rows of k-means on a device, which are given their nearest centres; where they do not fit, block by block.

    Parameters
    ----------
    device : Device
        Where they are.
    points, norms : arrays
        The rows with a column of ones, and their squared norms, in float32.
    """

    def __init__(self, device: Device, points: NDArray, norms: NDArray):
        self._device, self._points, self._norms = device, points, norms
        self._held: tuple[jax.Array, jax.Array] | None = None
        if HELD_SHARE * points.nbytes <= device.memory:
            self._held = device.put(points, np.float32), device.put(norms, np.float32)

    def nearest(self, table: NDArray, slack: NDArray, rounding: float) -> NDArray[np.int32]:
        """The centre j with the smallest product with every row; -1 - j where rounding leaves a doubt that it is.

        ``table`` has the centres as `DenseRows` writes them, and ``slack`` the rounding of their norms.
        """
        count, entries = len(self._points), _entries(self._device)
        # Of what a row takes: its products, and itself where it is sent.
        height = max(1, min(count, entries // (len(table) + self._points.shape[1] * (self._held is None))))
        found: list[jax.Array] = []
        with self._device.computing():
            numbers = self._device.put(table, np.float32), self._device.put(slack, np.float32), np.float32(rounding)
            for rows in slices(count, height):
                check_stop()
                # The last block begins earlier, so that all have one shape.
                start = min(rows.start, count - height)
                block = (*self._held, start) if self._held is not None else self._sent(start, height)
                found.append(_nearest(*block, *numbers, height)[rows.start - start :])
                if self._held is None and len(found) > 1:
                    found[-2].block_until_ready()  # else all blocks would be on their way at a time
            # Fetched at once: each array that comes to memory is waited for.
            return np.asarray(jnp.concatenate(found) if len(found) > 1 else found[0])

    def _sent(self, start: int, height: int) -> tuple[jax.Array, jax.Array, int]:
        """Some of the rows on the device, and their squared norms; they begin at the first one of them."""
        rows = slice(start, start + height)
        return self._device.put(self._points[rows], np.float32), self._device.put(self._norms[rows], np.float32), 0


def _entries(device: Device) -> int:
    """Entries of float32 of a block of products."""
    return min(ENTRIES, device.memory // (4 * BLOCK_SHARE))


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
    """The smallest  norms_j - 2 <q_i, b_j>  of every query in order, and their numbers j.

    Known rows that do not fit on the device go there in parts, of whose lists the smallest values are taken.
    """
    most = max(count, device.memory // (HELD_SHARE * 4 * max(known.shape[1], 1)))
    found = [_lists_among(device, queries, known[part], norms[part], count) for part in slices(len(known), most)]
    values = np.concatenate([lists[0] for lists in found], axis=1)
    starts = [part.start for part in slices(len(known), most)]
    places = np.concatenate([start + lists[1] for start, lists in zip(starts, found, strict=True)], axis=1)
    if len(found) == 1:
        return values, places
    order = np.argsort(values, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(places, order, axis=1)


def _lists_among(
    device: Device, queries: NDArray, known: NDArray, norms: NDArray, wanted: int
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """`nearest_lists` among rows that fit on the device."""
    count, spare = min(wanted, len(known)), -len(known) % GROUP
    known = np.concatenate([known, np.zeros((spare, known.shape[1]), known.dtype)])
    norms = np.append(norms, np.full(spare, np.inf, norms.dtype))
    values, places = np.empty((len(queries), count), np.float32), np.empty((len(queries), count), np.intp)
    groups = max(1, min(len(known) // GROUP, _entries(device) // (GROUP * QUERIES)))
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
