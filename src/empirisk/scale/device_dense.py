"""Dense data on a device: an array that stays there or goes there in passes, and its products."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from empirisk.lazy import lazy
from empirisk.linalg.blocks import slices
from empirisk.linalg.design import Array, DenseDesign, Design, Shifted
from empirisk.scale.device_rows import HeldRows
from empirisk.scale.devices import Device, as_numpy, compiled
from empirisk.stop import check_stop

if TYPE_CHECKING:
    from empirisk.scale.accelerators import Accelerator

#: Bytes of a block of rows that goes to the device, in float64.
SENT = 1 << 26
#: Columns from which the normal matrix of a row takes sixteen cores longer (2 d^2 operations of 5e11 a second) than the
#: row takes to an accelerator (8 d bytes of 3e10 a second).
WORTH_THE_WAY = 64


class DeviceMatrix(Design):
    """A matrix that is an array on a device; vectors come from memory and go back there."""

    def __init__(self, device: Device, held: jax.Array):
        self.device, self.held, self.remark = device, held, device.remark
        self.shape = (held.shape[0], held.shape[1])

    def _put(self, vector: Array) -> jax.Array:
        return self.device.put(vector, self.held.dtype)

    def dot(self, w):
        with self.device.computing():
            return as_numpy(_dot(self.held, self._put(w)))

    def tdot(self, u):
        with self.device.computing():
            return as_numpy(_tdot(self.held, self._put(u)))

    def gram(self, weights=None):
        with self.device.computing():
            return as_numpy(_gram(self.held, self._put(np.ones(self.shape[0]) if weights is None else weights)))

    def squared_columns(self, weights=None):
        with self.device.computing():
            weights = np.ones(self.shape[0]) if weights is None else weights
            return as_numpy(_squared_columns(self.held, self._put(weights)))

    def squared_rows(self):
        with self.device.computing():
            return as_numpy(_squared_rows(self.held))

    def outer(self, weights=None):
        with self.device.computing():
            weights = np.ones(self.shape[0]) if weights is None else weights
            return as_numpy(_outer(self.held, self._put(weights)))

    def rows(self, chosen):
        with self.device.computing():
            return DeviceMatrix(self.device, self.held[chosen])


@compiled
def _dot(held: jax.Array, w: jax.Array) -> jax.Array:
    return held @ w


@compiled
def _tdot(held: jax.Array, u: jax.Array) -> jax.Array:
    return held.T @ u


@compiled
def _gram(held: jax.Array, weights: jax.Array) -> jax.Array:
    scaled = held * jnp.sqrt(weights)[:, None]
    return scaled.T @ scaled


@compiled
def _outer(held: jax.Array, weights: jax.Array) -> jax.Array:
    scaled = held * jnp.sqrt(weights)[:, None]
    return scaled @ scaled.T


@compiled
def _squared_rows(held: jax.Array) -> jax.Array:
    return (held * held).sum(axis=1)


@compiled
def _squared_columns(held: jax.Array, weights: jax.Array) -> jax.Array:
    return weights @ (held * held)


@compiled
def _means(held: jax.Array) -> jax.Array:
    """The mean of every column; of a constant one its value, which no rounding takes from the intercept."""
    return jnp.where((held == held[0]).all(axis=0), held[0], held.mean(axis=0))


class DeviceDense(DenseDesign):
    """Dense rows, shifted or not, whose products are made on a device; their numbers in memory serve all else.

    Parameters
    ----------
    device : Device
        Where products are made.
    X : array
        The rows in memory, or those of JAX, which come to memory only where a solver asks for single numbers.
    shift : array, optional
        What is subtracted from every row.
    matrix : DeviceMatrix, optional
        The rows on the device, where they are there already.
    """

    def __init__(self, device: Device, X: Any, shift: Array | None = None, matrix: DeviceMatrix | None = None):
        self.device, self.remark, self.shape, self.shift = device, device.remark, X.shape, shift
        self._given, self._row_bytes, self.on_device = X, X.shape[1] * 8, isinstance(X, jax.Array)
        if matrix is not None:
            self.matrix = matrix

    @lazy
    def X(self) -> NDArray:
        """The rows in memory."""
        return np.asarray(self._given)

    @property
    def dtype(self):
        return np.dtype(self._given.dtype)

    @property
    def table(self):
        return HeldRows(cast("Accelerator", self.device), self._given) if self.on_device else self.X

    @lazy
    def matrix(self) -> DeviceMatrix:
        """The rows on the device, in float64."""
        with self.device.computing():
            return DeviceMatrix(self.device, jax.device_put(jnp.asarray(self._given, jnp.float64), self.device.device))

    def predict(self, w, b):
        constant = b if self.shift is None else b - self.shift @ w
        return self.matrix.dot(w) + constant

    def tdot(self, u):
        total = self.matrix.tdot(u)
        return total if self.shift is None else total - np.multiply.outer(self.shift, u.sum(axis=0))

    def predict_and_correlate(self, w, b, slopes, *vectors):
        return Design.predict_and_correlate(self, w, b, slopes, *vectors)

    def fused_pass(self, compiled, w, b, y, scale):
        return None

    @lazy
    def _shifted_matrix(self) -> DeviceMatrix:
        """The rows less the shift: sums of squares of rows far from zero would cancel."""
        if self.shift is None:
            return self.matrix
        with self.device.computing():
            return DeviceMatrix(self.device, self.matrix.held - self.device.put(self.shift))

    def gram(self, weights=None):
        return self._shifted_matrix.gram(weights)

    def squared_columns(self, weights=None):
        return self._shifted_matrix.squared_columns(weights)

    @lazy
    def rough_lengths(self):
        return self.lengths if self.shift is None else Shifted(self.matrix, self.shift).rough_lengths

    def squared_rows(self):
        return self._shifted_matrix.squared_rows()

    def outer(self, weights=None):
        return self._shifted_matrix.outer(weights)

    def shifted(self, shift):
        return DeviceDense(self.device, self._given, shift, self.matrix)

    def rows(self, chosen):
        part = self.matrix.rows(chosen)
        with self.device.computing():
            given = self._given[chosen] if self.on_device else part.held
        return DeviceDense(self.device, given, self.shift, part)

    def centred(self):
        with self.device.computing():
            return self.shifted(as_numpy(_means(self.matrix.held)))


class SentDense(DenseDesign):
    """Dense rows that a device does not hold: of blocks that are sent it makes normal matrices of many columns.

    All else is made in memory, which is read faster than rows travel to a device.

    Parameters
    ----------
    device : Device
        Where normal matrices are made.
    X, shift
        As for `DenseDesign`.
    """

    def __init__(self, device: Device, X: NDArray, shift: Array | None = None):
        super().__init__(X, shift)
        self.device = device
        if X.shape[1] >= WORTH_THE_WAY:
            self.remark = f"normal matrices on {device.name}, to which blocks of rows are sent"

    def gram(self, weights=None):
        columns = self.shape[1]
        if columns < WORTH_THE_WAY:
            return super().gram(weights)
        roots = np.ones(self.shape[0]) if weights is None else np.sqrt(weights)
        with self.device.computing():
            shift = self.device.put(np.zeros(columns) if self.shift is None else self.shift)
            total = jnp.zeros((columns, columns))
            for rows in slices(self.shape[0], max(1, SENT // (8 * columns))):
                check_stop()
                block = self.device.put(self.X[rows], self.X.dtype)
                total.block_until_ready()  # else all blocks would be on their way at a time
                total = _with_gram_of(total, block, shift, self.device.put(roots[rows]))
            return as_numpy(total)

    def shifted(self, shift):
        return SentDense(self.device, self.X, shift)

    def rows(self, chosen):
        part = super().rows(chosen)
        return SentDense(self.device, part.X, part.shift)

    def centred(self):
        return self.shifted(super().centred().shift)


@partial(compiled, donate_argnums=0)
def _with_gram_of(total: jax.Array, block: jax.Array, shift: jax.Array, roots: jax.Array) -> jax.Array:
    scaled = (block - shift) * roots[:, None]
    return total + scaled.T @ scaled
