"""Maps that stand for a kernel, on a device: phi(X) = raw(X) P, of which raw blocks are made anew for every product."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from numpy.typing import NDArray

from empirisk.kernels.base import Kernel
from empirisk.lazy import lazy
from empirisk.linalg.blocks import slices
from empirisk.linalg.design import Array, Design
from empirisk.maps.implicit import some_rows
from empirisk.maps.streamed import StreamedDesign, StreamedMap
from empirisk.scale.device_kernels import DeviceItems, Items, items_on
from empirisk.scale.devices import Device, as_numpy, compiled
from empirisk.settings import require
from empirisk.stop import check_stop

#: Rows of features that are added to a normal matrix at a time.
ROWS = 8192


class DeviceFeatures(StreamedDesign):
    """phi(X) - 1 shift' on a device; products in float64, and those of `rough` in float32."""

    streams = True

    def __init__(
        self, device: Device, features: StreamedMap, items: Any, shift: Array | None = None, dtype: Any = float
    ):
        super().__init__(features, items, shift)
        self.device, self.dtype, self.remark = device, dtype, device.remark

    @lazy
    def _sides(self) -> tuple[Items, DeviceItems]:
        """The items on the device, or for it, and the basis there."""
        left, right = self._features.expressions(self._items)
        assert left is not None  # `streamed_design` has asked
        assert right is not None
        return items_on(self.device, left, self.dtype), DeviceItems.of(self.device, right, self.dtype)

    @lazy
    def _inside(self) -> jax.Array | None:
        """P on the device, with rows of zeros after those of the basis."""
        with self.device.computing():
            if self._projection is None:
                return None
            return self._sides[1].padded(self.device.put_once(self._projection))

    @lazy
    def rough(self) -> DeviceFeatures:
        """The same features in float32, for steps that need few digits."""
        return DeviceFeatures(self.device, self._features, self._items, self.shift, np.float32)

    @property
    def X(self):
        rows, columns = self.shape
        require(8 * rows * columns, f"The features of {rows} rows", "use a smaller rank, or solver='auto'")
        features = np.concatenate([block for _, block in self._rows_of_features()])
        return features if self.shift is None else features + self.shift

    def _rows_of_features(self):
        for part in slices(self.shape[0], ROWS):
            check_stop()
            with self.device.computing():
                phi = as_numpy(self._features_of(np.arange(part.start, part.stop)))
            yield part, phi[: part.stop - part.start]

    def _inward(self, w):
        if self._inside is None:
            return w
        with self.device.computing():
            return as_numpy(_inward(self._inside, self.device.put(w, self.dtype)))[: self._sides[1].count]

    def _outward(self, v):
        if self._inside is None:
            return v
        with self.device.computing():
            padded = self._sides[1].padded(self.device.put(v.reshape(len(v), -1)))
            return as_numpy(_outward(self._inside, padded)).reshape(-1, *v.shape[1:])

    def dot(self, w):
        if not w.any():
            return np.zeros((self.shape[0], *w.shape[1:]))
        items, basis = self._sides
        out = items.sums(basis, self._inward(w))
        return out if self.shift is None else out - self.shift @ w

    def tdot(self, u):
        items, basis = self._sides
        total = self._outward(basis.sums(items, u))
        return total if self.shift is None else total - np.multiply.outer(self.shift, u.sum(axis=0))

    def predict_and_correlate(self, w, b, slopes, *vectors):
        return Design.predict_and_correlate(self, w, b, slopes, *vectors)

    def curved_product(self, w, b, curvatures):
        items, basis = self._sides
        level = b if self.shift is None else b - float(self.shift @ w)
        total, weight = items.weighted_sums(basis, self._inward(w), level, curvatures)
        product = self._outward(total)
        return product if self.shift is None else product - weight * self.shift, weight

    def _features_of(self, places: NDArray[np.intp]) -> jax.Array:
        """phi of some rows less the shift, on the device, with rows after theirs that count for nothing."""
        items, basis = self._sides
        phi = items.take(places).mapped(basis, self._inside)[:, : self.shape[1]]
        return phi if self.shift is None else phi - self.device.put(self.shift, self.dtype)

    def _gram(self, weights: Array, used: NDArray[np.intp]) -> jax.Array:
        """A' diag(weights) A over the used rows, on the device; within `computing`."""
        total = jnp.zeros((self.shape[1], self.shape[1]))
        for part in slices(len(used), ROWS):
            check_stop()
            phi = self._features_of(used[part])
            roots = np.zeros(len(phi))
            roots[: len(used[part])] = np.sqrt(weights[used[part]])
            total = _added(total, phi, self.device.put(roots, self.dtype))
        return total

    def gram(self, weights=None):
        weights = np.ones(self.shape[0]) if weights is None else weights
        with self.device.computing():
            return as_numpy(self._gram(weights, np.flatnonzero(weights)))

    def outer(self, weights=None):
        rows = self.shape[0]
        with self.device.computing():
            phi = self._features_of(np.arange(rows))[:rows]
            scaled = phi if weights is None else phi * self.device.put(weights, self.dtype)
            return as_numpy(_products(scaled, phi))

    def preconditioner(self, curvatures, stiffness):
        rows, columns = self.shape
        chosen = some_rows(rows, min(rows, columns))
        with self.device.computing():
            matrix = self._gram(rows / len(chosen) * curvatures, chosen)
            factor = jnp.linalg.cholesky(matrix + jnp.diag(self.device.put(stiffness)))

        def condition(residual: Array) -> Array:
            with self.device.computing():
                return as_numpy(_solved(factor, self.device.put(residual)))

        return condition

    def squared_columns(self, weights=None):
        weights = np.ones(self.shape[0]) if weights is None else weights
        total = np.zeros(self.shape[1])
        for part, phi in self._rows_of_features():
            total += weights[part] @ phi**2
        return total

    def centred(self):
        plain = DeviceFeatures(self.device, self._features, self._items)
        return plain.shifted(plain.tdot(np.ones(self.shape[0])) / self.shape[0])

    def shifted(self, shift):
        other = DeviceFeatures(self.device, self._features, self._items, shift, self.dtype)
        other._sides, other._inside = self._sides, self._inside
        return other

    def rows(self, chosen):
        other = DeviceFeatures(self.device, self._features, self._items[chosen], self.shift, self.dtype)
        items, basis = self._sides
        other._sides, other._inside = (items.take(np.arange(self.shape[0])[chosen]), basis), self._inside
        return other


@compiled
def _inward(projection: jax.Array, w: jax.Array) -> jax.Array:
    return projection @ w


@compiled
def _outward(projection: jax.Array, v: jax.Array) -> jax.Array:
    return projection.T @ v


@partial(compiled, donate_argnums=0)
def _added(total: jax.Array, block: jax.Array, scale: jax.Array) -> jax.Array:
    scaled = block * scale[:, None]
    return total + (scaled.T @ scaled).astype(total.dtype)


@compiled
def _products(left: jax.Array, right: jax.Array) -> jax.Array:
    return left @ right.T


@compiled
def _solved(factor: jax.Array, right: jax.Array) -> jax.Array:
    return cho_solve((factor, True), right)


def streamed_design(device: Device, features: StreamedMap, items: Any) -> DeviceFeatures | None:
    """phi(X) of a map on a device; None where the map has no expressions there."""
    known = all(side is not None for side in features.expressions(items[:1]))
    return DeviceFeatures(device, features, items) if known else None


def squares_of_sums(device: Device, kernel: Kernel, centres: Any, coefficients: Array, others: Any) -> Array:
    """The sums of squares of the rows of K(others, centres) c."""
    left, right = kernel.expression(others), kernel.expression(centres)
    assert left is not None  # whoever asks knows that the kernel runs here
    assert right is not None
    items, basis = items_on(device, left, np.float64), DeviceItems.of(device, right, np.float64)
    with device.computing():
        mapped = items.mapped(basis, basis.padded(device.put(coefficients)))
        return as_numpy((mapped**2).sum(axis=1))[: items.count]


def inverse_root(device: Device, kernel: Kernel, landmarks: Any) -> Array | None:
    """L^-T of the landmarks' Gram matrix L L', in float64; None where K has no expression, or is singular."""
    expression = kernel.expression(landmarks)
    if expression is None:
        return None
    items = DeviceItems.of(device, expression, np.float64)
    with device.computing():
        core = items.mapped(items, None)[: items.count, : items.count]
        root = solve_triangular(jnp.linalg.cholesky(core), jnp.eye(len(core)), lower=True).T
        if not bool(jnp.isfinite(root).all()):
            return None
        found = device.fetched(root)
        device.keep(found, root)
    return found
