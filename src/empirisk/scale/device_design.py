"""Designs whose products are made on a device: data behind a kernel, and dense data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.kernels.base import Kernel
from empirisk.kernels.items import size
from empirisk.lazy import lazy
from empirisk.linalg import tiled
from empirisk.linalg.design import Array, DenseDesign
from empirisk.linalg.lapack import invert_triangle
from empirisk.maps.implicit import REMEMBERED, GramDesign, some_rows
from empirisk.scale.device_dense import DeviceDense, DeviceMatrix, SentDense
from empirisk.scale.device_kernels import Items, items_on
from empirisk.scale.devices import Device
from empirisk.settings import require

#: Rows on which values in float32 are compared with those in float64.
SAMPLE = 256
#: The largest error of a value in float32, in units of the mean k(x, x), with which solvers still get on.
ROUGH = 1e-3
#: The rank of a preconditioner: one in so many rows, but no less than the first number and no more than the second,
#: whose square takes a second of a processor to factor.
ROWS_OF_RANK, LEAST_RANK, MOST_RANK = 16, 200, 4000
#: What is added to the diagonal of a low-rank core, in units of its mean, so that it can be factored.
JITTER = 1e-10


class DeviceGram(GramDesign):
    """Samples behind a kernel, on a device: blocks are made when they are needed, and none is kept.

    Products are those of float64; `single` has those of float32.
    """

    streams = True

    def __init__(
        self, device: Device, kernel: Kernel, items: Any, source: Any, centres: Any = None, dtype: Any = float
    ):
        super().__init__(kernel, items, source, centres)
        self.device, self.dtype, self.remark = device, dtype, device.remark

    def like(self, items, centres=None):
        return DeviceGram(self.device, self.kernel, items, self.source, centres, self.dtype)

    @lazy
    def held(self) -> Items:
        """The samples on the device, or for it."""
        return self._put(self.items) if self._places is None else self.root.held.take(self._places)  # type: ignore[attr-defined]

    @lazy
    def held_centres(self) -> Items:
        """The z_j on the device, or for it."""
        return self.held if self._centres is None else self._put(self._centres)

    def _put(self, items: Any) -> Items:
        expression = self.kernel.expression(items)
        assert expression is not None  # `gram_design` has asked
        return items_on(self.device, expression, self.dtype)

    @property
    def keeps_matrix(self):
        return "matrix" in vars(self)

    @lazy
    def matrix(self):
        rows, columns = self.shape
        require(8 * rows * columns, f"A Gram matrix of {rows} x {columns}", "use features=maps.Nystrom(kernel)")
        return self.held.block(self.held_centres).astype(np.float64, copy=False)

    def fresh_matrix(self):
        return self.matrix.copy()

    @lazy
    def single(self):
        if self._places is not None:
            return self.root.single.rows(self._places)
        rough = DeviceGram(self.device, self.kernel, self.items, self.source, dtype=np.float32)
        chosen = np.arange(0, self.shape[0], max(1, self.shape[0] // SAMPLE))[:SAMPLE]
        exact, found = (design.block(chosen, chosen) for design in (self, rough))
        off = np.abs(exact - found).max(initial=0.0)
        return rough if off <= ROUGH * max(float(self.diagonal.mean()), np.finfo(float).tiny) else self

    def block(self, rows, columns=slice(None)):
        return _some(self.held, rows).block(_some(self.held_centres, columns))

    def dot(self, w):
        # A difference to a product that is known would add its rounding to ours, and costs as much as a new one.
        for known, product in self._known:
            if np.array_equal(known, w):
                return product.copy()
        used = np.flatnonzero(w.reshape(len(w), -1).any(axis=1))
        product = self._product(used, w[used]) if len(used) else np.zeros((self.shape[0], *w.shape[1:]))
        self._known = [(w.copy(), product), *self._known][:REMEMBERED]
        return product.copy()

    def low_rank(self):
        rows = self.shape[0]
        rank = max(min(rows, LEAST_RANK), min(MOST_RANK, rows // ROWS_OF_RANK, self.device.memory // (32 * rows)))
        chosen = some_rows(rows, rank)
        core = np.array(self.block(chosen, chosen), dtype=np.float64, order="C")
        core.flat[:: rank + 1] += JITTER * core.diagonal().mean()
        tiled.factor(core)
        invert_triangle(core)
        # In float64: a preconditioner cancels where it removes the large eigenvalues, by more than float32 has digits.
        landmarks = self.held.few(chosen)
        with self.device.computing():
            inverse = landmarks.padded(self.device.put(np.tril(core).T))
        factor = self.held.mapped(landmarks, inverse)
        with self.device.computing():
            return DeviceMatrix(self.device, factor[:rows])

    def partial_product(self, rows: NDArray | slice, columns: NDArray | slice, coefficients: Array) -> Array:
        """K[rows, columns] coefficients."""
        return _some(self.held, rows).sums(_some(self.held_centres, columns), coefficients)

    def _product(self, columns, coefficients):
        return self.partial_product(slice(None), columns, coefficients)


def _some(items: Items, chosen: Any) -> Items:
    """Some of the items; all of them without a copy."""
    if isinstance(chosen, slice) and chosen == slice(None):
        return items
    places = np.arange(items.count)[chosen]
    return (
        items if len(places) == items.count and np.array_equal(places, np.arange(items.count)) else items.take(places)
    )


def dense_design(device: Device, X: NDArray) -> DenseDesign:
    """Dense rows on a device; in memory where they, and a copy of them, would take more than half of it."""
    return (SentDense if 32 * X.size > device.memory else DeviceDense)(device, X)


def gram_design(device: Device, kernel: Kernel, items: Any, source: Any) -> DeviceGram | None:
    """Samples behind a kernel on a device; None where the kernel has no expression."""
    return None if kernel.expression(items[:1]) is None else DeviceGram(device, kernel, items, source)


def kernel_block(device: Device, kernel: Kernel, others: Any, centres: Any) -> Array:
    """k(x_i, z_j) on a device, in float64, of a kernel that has an expression."""
    left, right = kernel.expression(others), kernel.expression(centres)
    assert left is not None
    assert right is not None
    return items_on(device, left, np.float64).block(items_on(device, right, np.float64))


def kernel_sums(device: Device, kernel: Kernel, centres: Any, coefficients: Array, others: Any) -> Array | None:
    """K(others, centres) c on a device, in float64; None where the kernel has no expression."""
    left, right = kernel.expression(others), kernel.expression(centres)
    if left is None or right is None or not size(others):
        return None
    return items_on(device, left, np.float64).sums(items_on(device, right, np.float64), coefficients)
