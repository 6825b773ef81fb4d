"""Nearest rows on a device: the nearest centre of every row, and lists of the nearest known rows of queries."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.linalg.accelerator import lie_on_device
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
    points, norms : arrays, in memory or there
        The rows with a column of ones, and their squared norms, in float32.
    """

    def __init__(self, device: Device, points: Any, norms: Any):
        self._device, self._points, self._norms = device, points, norms
        self._held: tuple[jax.Array, jax.Array] | None = None
        if isinstance(points, jax.Array):
            self._held = points, norms
        elif HELD_SHARE * points.nbytes <= device.memory:
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
    with device.computing():
        rows = device.put(known.reshape(-1, GROUP, known.shape[1]), np.float32)
        levels = device.put(norms.reshape(-1, GROUP), np.float32)
        for some in slices(len(queries), QUERIES):
            padded = np.zeros((QUERIES, queries.shape[1]), np.float32)
            padded[: some.stop - some.start] = queries[some]
            found = _lists_of(device, device.put(padded, np.float32), rows, levels, count)
            values[some], places[some] = (np.asarray(each)[: some.stop - some.start] for each in found)
    return values, places


def _lists_of(
    device: Device, asked: jax.Array, rows: jax.Array, levels: jax.Array, count: int
) -> tuple[jax.Array, jax.Array]:
    """The lists of some queries, on the device: first the nearest row of every group, then those of few groups."""
    check_stop()
    groups = max(1, min(len(rows), _entries(device) // (GROUP * len(asked))))
    minima = [_minima(asked, rows, levels, start, groups) for start in range(0, len(rows), groups)]
    return _lists(asked, rows, levels, jnp.concatenate(minima, axis=1)[:, : len(rows)], count)


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


class Neighbours:
    """Known rows on a device, among which the nearest of each query are found there; lists of them come to memory.

    Parameters
    ----------
    device : Device
        Where they are.
    known : array, in memory or there
        The rows.
    """

    def __init__(self, device: Device, known: Any):
        self._device = device
        with device.computing():
            self._known = known.held if lie_on_device(known) else device.put(known)
            #: A power of two, in units of which squares are found, so that none overflows.
            self.unit = float(np.ldexp(1.0, int(np.clip(np.frexp(float(jnp.abs(self._known).max()))[1], -1000, 1000))))
            self._centre = _mean(self._known, self.unit)

    def find(self, X: Any, count: int, extra: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Squared distances in units and numbers of the nearest rows of each row of X, beyond doubt of rounding.

        ``extra`` candidates more than are asked for are found in float32, and judged by their differences in float64.
        """
        count = min(count, len(self._known))
        wanted = min(count + extra, len(self._known))
        with self._device.computing():
            queries = X.held if lie_on_device(X) else self._device.put(X)
            squares, places, sure = self._lists(queries, wanted, count, np.float32)
            doubtful = np.flatnonzero(~sure)
            if len(doubtful):
                squares[doubtful], places[doubtful], sure = self._lists(queries[doubtful], wanted, count, np.float64)
                doubtful = doubtful[~sure]
            for row in doubtful:  # one far row takes all digits from the products of the others
                check_stop()
                every = np.asarray(_squares_to_all(self._known, queries[row], self.unit))
                nearest = np.lexsort((np.arange(len(every)), every))[:count]
                squares[row, :count], places[row, :count] = every[nearest], nearest
        return squares[:, :count], places[:, :count]

    def _lists(
        self, queries: jax.Array, wanted: int, count: int, dtype: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.bool_]]:
        """Lists from products in a precision, in the order of their differences, and which of them are beyond doubt."""
        rows, levels, largest = _grouped(self._known, self._centre, self.unit, -len(self._known) % GROUP, dtype)
        rounding = 2 * (rows.shape[2] + 4) * float(np.finfo(dtype).eps)
        squares, places = np.empty((len(queries), wanted)), np.empty((len(queries), wanted), np.intp)
        sure = np.empty(len(queries), bool)
        for some in slices(len(queries), QUERIES):
            asked = jnp.pad(queries[some], ((0, QUERIES - (some.stop - some.start)), (0, 0)))
            around, own = _around(asked, self._centre, self.unit, dtype)
            values, candidates = _lists_of(self._device, around, rows, levels, wanted)
            found, order = _by_differences(asked, self._known, candidates, self.unit)
            bound = values[:, -1] + own - rounding * (own + largest)
            parts = found, order, (found[:, count - 1] <= bound) | (wanted == len(self._known))
            squares[some], places[some], sure[some] = (np.asarray(each)[: some.stop - some.start] for each in parts)
        return squares, places, sure


def neighbours(device: Device, known: Any) -> Neighbours:
    """A search among rows on a device."""
    return Neighbours(device, known)


@compiled
def _mean(X: jax.Array, unit: Any) -> jax.Array:
    return (X.astype(jnp.float64) / unit).mean(axis=0)


def _centred(X: jax.Array, centre: jax.Array, unit: Any, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Rows around a centre, in units and in a precision, and their squared norms."""
    part = (X.astype(jnp.float64) / unit - centre).astype(dtype)
    return part, (part * part).sum(axis=1)


_around = partial(compiled, static_argnames="dtype")(_centred)


@partial(compiled, static_argnames=("spare", "dtype"))
def _grouped(
    X: jax.Array, centre: jax.Array, unit: Any, spare: int, dtype: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Known rows and their norms in groups, the last filled up by rows infinitely far; and the largest norm."""
    rows, norms = _centred(X, centre, unit, dtype)
    filled, levels = jnp.pad(rows, ((0, spare), (0, 0))), jnp.pad(norms, (0, spare), constant_values=jnp.inf)
    return filled.reshape(-1, GROUP, X.shape[1]), levels.reshape(-1, GROUP), norms.max().astype(jnp.float64)


@compiled
def _by_differences(queries: jax.Array, known: jax.Array, places: jax.Array, unit: Any) -> tuple[jax.Array, jax.Array]:
    """The lists in the order of squared distances from differences in float64; of equal ones the first row first."""

    def one(pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        query, listed = pair
        gaps = (known[listed].astype(jnp.float64) - query.astype(jnp.float64)) / unit
        squares = (gaps * gaps).sum(axis=1)
        order = jnp.lexsort((listed, squares))
        return squares[order], listed[order]

    return lax.map(one, (queries, places), batch_size=64)


@compiled
def _squares_to_all(known: jax.Array, query: jax.Array, unit: Any) -> jax.Array:
    gaps = (known.astype(jnp.float64) - query.astype(jnp.float64)) / unit
    return (gaps * gaps).sum(axis=1)
