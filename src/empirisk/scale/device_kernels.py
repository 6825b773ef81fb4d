"""Blocks and sums of kernels on a device: the expression of a kernel, compiled by JAX and streamed over blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.kernels.expression import Expression, evaluate
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.blocks import slices
from empirisk.linalg.design import Array
from empirisk.scale.devices import Device, as_numpy, compiled
from empirisk.stop import check_stop

#: Panels that wait on the device at a time: the next one is ready when one ends, and Ctrl-C waits for few.
WAITING = 2

#: Panels of rows that are computed by one call: a call takes as long as a panel of few columns.
PANELS = 8

#: Rows that items are padded to at least: as many as a processor multiplies at a time.
LEAST_ROOM = 256

#: The share of a device that items may take to stay there, beside blocks and copies in float32; others are sent in
#: parts that take a 16th of it.
HELD_SHARE, PART_SHARE = 4, 16

jax.tree_util.register_dataclass(Expression, ["parts", "numbers", "rows"], ["operation", "whole"])


class DeviceItems:
    """Prepared items of a kernel on a device, with rows of zeros after them so that few shapes are compiled.

    Parameters
    ----------
    device : Device
        Where they are.
    expression : Expression
        One side of the kernel, of all items.
    count : int
        The number of items; the rows beyond are zeros.
    """

    def __init__(self, device: Device, expression: Expression, count: int):
        self.device, self.expression, self.count = device, expression, count

    @classmethod
    def of(cls, device: Device, expression: Expression, dtype: Any) -> DeviceItems:
        """The items of an expression in memory, in a precision."""
        count = len(expression)
        room = _room(count)

        def put(rows: Any) -> jax.Array:
            if lie_on_device(rows):
                return rows.padded(room, dtype)
            padded = np.zeros((room, *np.shape(rows)[1:]), dtype)
            padded[:count] = rows
            return device.put(padded, dtype)

        with device.computing():
            return cls(device, expression.with_rows(put), count)

    def parts(self) -> Iterator[tuple[slice, DeviceItems]]:
        """Themselves, as `SentItems` have parts."""
        yield slice(0, self.count), self

    def take(self, chosen: NDArray[np.intp]) -> DeviceItems:
        """Some of the items."""
        places = np.zeros(_room(len(chosen)), dtype=np.int64)
        places[: len(chosen)] = chosen
        with self.device.computing():
            return DeviceItems(self.device, _taken(self.expression, places), len(chosen))

    few = take

    def block(self, others: Items) -> NDArray:
        """k(a_i, b_j), in the precision of the items."""
        if isinstance(others, SentItems):
            return np.concatenate([self.block(part) for _, part in others.parts()], axis=1)
        if not self.count:
            return np.empty((0, others.count), self.expression.dtype)
        height = min(self.device.height, _room(self.count))
        found = []
        with self.device.computing():
            for rows in slices(self.count, height):
                check_stop()
                found.append(np.asarray(_block(self.expression, rows.start, others.expression, height)))
        return np.concatenate(found)[: self.count, : others.count]

    def sums(self, others: Items, coefficients: Array) -> Array:
        """sum_j k(a_i, b_j) c_j for every i and every column of c: added up in float64, no block is kept."""
        if isinstance(others, SentItems):
            return np.add.reduce([self.sums(part, coefficients[rows]) for rows, part in others.parts()])
        room, tail = _room(others.count), coefficients.shape[1:]
        padded = np.zeros((room, int(np.prod(tail))))
        padded[: others.count] = coefficients.reshape(others.count, -1)
        height, width = min(self.device.height, _room(self.count)), _side(others.count, self.device.width)
        panels = min(PANELS, -(-self.count // height))
        found: list[jax.Array] = []
        with self.device.computing():
            weights = self.device.put(padded, others.expression.dtype)
            for rows in slices(self.count, panels * height):
                check_stop()
                sides = self.expression, rows.start, others.expression
                found.append(_sums(*sides, weights, others.count, height, width, panels))
                if len(found) > WAITING:
                    found[-1 - WAITING].block_until_ready()
            return as_numpy(jnp.concatenate(found))[: self.count].reshape(self.count, *tail)

    def weighted_sums(
        self, others: DeviceItems, coefficients: Array, level: float, scales: Array
    ) -> tuple[Array, float]:
        """K' s and the sum of s, with s = scales (K c + level): every block of K is made once for both products."""
        side, tallest = _side(others.count, self.device.width), min(_room(self.count), self.device.height)
        columns = -(-others.count // side) * side
        # Rows of which all columns take no more room than a block has elsewhere, as a power of two.
        height = min(tallest, 1 << max(self.device.height * self.device.width // columns, 1).bit_length() - 1)
        panels = min(PANELS * tallest // height, -(-self.count // height))
        padded = np.zeros(columns)
        padded[: others.count] = coefficients
        sums: tuple[jax.Array, jax.Array]
        with self.device.computing():
            weights, spread = self.device.put(padded, others.expression.dtype), self.device.put_once(scales)
            spread = jnp.pad(spread, (0, _room(self.count) - self.count))
            sums, before = (jnp.zeros(columns), jnp.zeros(())), []
            for rows in slices(self.count, panels * height):
                check_stop()
                sides = self.expression, rows.start, others.expression
                sums = _weighted_sums(sums, *sides, weights, level, spread, height, panels)
                before.append(sums[1])
                if len(before) > WAITING:
                    before.pop(0).block_until_ready()
            return as_numpy(sums[0])[: others.count], float(sums[1])

    def padded(self, matrix: jax.Array) -> jax.Array:
        """A matrix on the device with a row for every item, with zeros after them as the items have."""
        return jnp.pad(matrix.astype(self.expression.dtype), ((0, _room(self.count) - self.count), (0, 0)))

    def mapped(self, others: DeviceItems, matrix: jax.Array | None) -> jax.Array:
        """K(a, b) times a padded matrix, or K(a, b) without one; it stays on the device, with rows after the items'."""
        height = min(self.device.height, _room(self.count))
        found = []
        with self.device.computing():
            for rows in slices(self.count, height):
                check_stop()
                found.append(_mapped(self.expression, rows.start, others.expression, matrix, height))
            return jnp.concatenate(found) if len(found) > 1 else found[0]


class SentItems:
    """Prepared items that a device does not hold: they stay in memory, and each product sends them there in parts.

    A product with n items takes n / 4 operations for each byte of a part, which its way does not hold up.

    Parameters
    ----------
    device : Device
        Where they are sent.
    expression : Expression
        One side of the kernel, of all items, in memory.
    dtype : type
        The precision that they have there.
    """

    def __init__(self, device: Device, expression: Expression, dtype: Any):
        self.device, self.count = device, len(expression)
        self._expression, self._dtype = expression, dtype
        self._height = max(LEAST_ROOM, self.count * device.memory // (PART_SHARE * _bytes(expression)))

    def parts(self) -> Iterator[tuple[slice, DeviceItems]]:
        """Some of the items after others, on the device, each with where they are among all."""
        for rows in slices(self.count, self._height):
            yield rows, DeviceItems.of(self.device, _some(self._expression, rows), self._dtype)

    def take(self, chosen: NDArray[np.intp]) -> Items:
        """Some of the items."""
        return items_on(self.device, _some(self._expression, chosen), self._dtype)

    def few(self, chosen: NDArray[np.intp]) -> DeviceItems:
        """Few of the items, on the device."""
        return DeviceItems.of(self.device, _some(self._expression, chosen), self._dtype)

    def block(self, others: Items) -> NDArray:
        """As that of `DeviceItems`."""
        return np.concatenate([part.block(others) for _, part in self.parts()])

    def sums(self, others: Items, coefficients: Array) -> Array:
        """As those of `DeviceItems`."""
        return np.concatenate([part.sums(others, coefficients) for _, part in self.parts()])

    def weighted_sums(
        self, others: DeviceItems, coefficients: Array, level: float, scales: Array
    ) -> tuple[Array, float]:
        """As those of `DeviceItems`."""
        found = [part.weighted_sums(others, coefficients, level, scales[rows]) for rows, part in self.parts()]
        return np.add.reduce([sums for sums, _ in found]), sum(total for _, total in found)

    def mapped(self, others: DeviceItems, matrix: jax.Array | None) -> jax.Array:
        """As that of `DeviceItems`, without rows after the items'."""
        found = [part.mapped(others, matrix)[: part.count] for _, part in self.parts()]
        with self.device.computing():
            return jnp.concatenate(found)


#: Items of a kernel for a device, wherever they are.
Items = DeviceItems | SentItems


def items_on(device: Device, expression: Expression, dtype: Any) -> Items:
    """The items of an expression for a device: there, where it holds them."""
    if HELD_SHARE * _bytes(expression) > device.memory:
        return SentItems(device, expression, dtype)
    return DeviceItems.of(device, expression, dtype)


def _bytes(expression: Expression) -> int:
    """Bytes of the items in float64."""
    own = 0 if expression.rows is None else 8 * int(np.prod(np.shape(expression.rows)))
    return own + sum(map(_bytes, expression.parts))


def _some(expression: Expression, chosen: Any) -> Expression:
    return expression.with_rows(lambda rows: rows[chosen])


def _room(count: int) -> int:
    """The next power of two: few shapes are compiled, and a block of rows divides it."""
    return max(LEAST_ROOM, 1 << max(count - 1, 0).bit_length())


def _side(count: int, most: int) -> int:
    """The side of blocks of items: a power of two, of which a multiple exceeds the count by little."""
    side = min(most, _room(count))
    while side > LEAST_ROOM and -(-count // side) * side > count + count // 16:
        side //= 2
    return side


@compiled
def _taken(expression: Expression, places: jax.Array) -> Expression:
    return expression.with_rows(lambda rows: rows[places])


def _part(expression: Expression, start: Any, count: int) -> Expression:
    return expression.with_rows(lambda rows: lax.dynamic_slice_in_dim(rows, start, count))


@partial(compiled, static_argnames="height")
def _block(left: Expression, start: Any, right: Expression, height: int) -> jax.Array:
    return evaluate(_part(left, start, height), right)


@partial(compiled, static_argnames="height")
def _mapped(left: Expression, start: Any, right: Expression, matrix: jax.Array | None, height: int) -> jax.Array:
    block = evaluate(_part(left, start, height), right)
    return block if matrix is None else block @ matrix


@partial(compiled, static_argnames=("height", "width", "panels"))
def _sums(
    left: Expression,
    start: Any,
    right: Expression,
    coefficients: jax.Array,
    count: Any,
    height: int,
    width: int,
    panels: int,
) -> jax.Array:
    def panel(number: jax.Array) -> jax.Array:
        own = _part(left, start + number * height, height)

        def add(place: Any, total: jax.Array) -> jax.Array:
            some = _part(right, place * width, width)
            c, block = lax.dynamic_slice_in_dim(coefficients, place * width, width), evaluate(own, some)
            # Of one column the sum is made as the block is: a product would write the block to memory and read it.
            part = (block * c[:, 0]).sum(axis=1, keepdims=True) if c.shape[1] == 1 else block @ c
            return total + part.astype(jnp.float64)

        blocks = (count + width - 1) // width
        return lax.fori_loop(0, blocks, add, jnp.zeros((height, coefficients.shape[1]), jnp.float64))

    return lax.map(panel, jnp.arange(panels)).reshape(panels * height, -1)


@partial(compiled, static_argnames=("height", "panels"))
def _weighted_sums(
    sums: tuple[jax.Array, jax.Array],
    left: Expression,
    start: Any,
    right: Expression,
    coefficients: jax.Array,
    level: Any,
    scales: jax.Array,
    height: int,
    panels: int,
) -> tuple[jax.Array, jax.Array]:
    some = _part(right, 0, len(coefficients))

    def add(number: Any, sums: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        place = start + number * height
        block = evaluate(_part(left, place, height), some)
        f = (block * coefficients).sum(axis=1, dtype=jnp.float64) + level
        scaled = lax.dynamic_slice_in_dim(scales, place, height) * f
        part = (block * scaled.astype(block.dtype)[:, None]).sum(axis=0, dtype=jnp.float64)
        return sums[0] + part, sums[1] + scaled.sum()

    return lax.fori_loop(0, panels, add, sums)
