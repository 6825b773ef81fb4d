"""k-means on rows that lie on a device: its half-steps are made there, labels and means come to memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from empirisk.clusters.dense_rows import EXACT, DenseRows, shares_of
from empirisk.linalg.blocks import slices
from empirisk.linalg.design import Array
from empirisk.scale.device_kernels import _room
from empirisk.scale.device_nearest import Assignment
from empirisk.scale.device_rows import HeldRows
from empirisk.scale.devices import as_numpy, compiled
from empirisk.stop import check_stop

#: Rows of a block of sums; the rows are filled up to a multiple of it.
HEIGHT = 1 << 14
#: Differences of rows in doubt and means that are made at a time.
DIFFERENCES = 1 << 26


class ClusteredRows(DenseRows):
    """Rows on a device, and the state of one run of k-means on them.

    Parameters
    ----------
    rows : HeldRows
        The rows.
    weights, order
        As for `DenseRows`.
    """

    def __init__(self, rows: HeldRows, weights: Array, order: NDArray[np.intp]):
        self._device, self.weights, self.order = rows.accelerator, weights, order
        self.count, self.width = len(order), rows.shape[1]
        self.shares = shares_of(self.count)
        self.rounding = 2 * (self.width + 4) * float(np.finfo(np.float32).eps)
        height = min(HEIGHT, _room(self.count))
        room = -(-self.count // height) * height
        with self._device.computing():
            self._X = jnp.pad(rows.held[order], ((0, room - self.count), (0, 0)))
            self._weights, self._height = jnp.pad(self._device.put(weights), (0, room - self.count)), height
            mean, unit, spread = _around_mean(self._X, self._weights, self.count)
            self.mean, self.unit, self.spread = as_numpy(mean), float(unit) or 1.0, float(spread)
            self._points, norms = _scaled(self._X[: self.count], mean, self.unit)
            self._assignment = Assignment(self._device, self._points, norms)

    def start_at_rows(self, chosen):
        self.start_at(self._some(chosen))

    def _some(self, chosen: NDArray[np.intp]) -> Array:
        """Few of the rows, in memory."""
        with self._device.computing():
            return as_numpy(self._X[chosen])

    def row(self, row):
        return self._some(np.array([row]))[0]

    def box(self):
        with self._device.computing():
            own = self._X[: self.count]
            return as_numpy(own.min(axis=0)), as_numpy(own.max(axis=0))

    def exact_squares(self, chosen):
        with self._device.computing():
            return as_numpy(_least_squares_to(self._X, self._device.put(chosen, np.int64)))[: self.count]

    def squares_to(self, chosen, closest, out):
        step = self.shares[0][1]
        with self._device.computing():
            there = self._device.put(chosen, np.int64), self._device.put(closest, np.float32)
            weights = self._weights[: self.count]
            squares, totals = _squares_to(self._points, *there, weights, step)
            out[:] = np.asarray(squares)
            return as_numpy(totals)

    def assign(self):
        table, _, squares = self.table()
        found = self._assignment.nearest(table, 2 * self.rounding * squares, self.rounding)
        doubtful = np.flatnonzero(found < 0)
        labels = np.array(found)
        labels[doubtful] = self._settled(doubtful)
        changes = int(np.count_nonzero(labels != self.labels))
        self.labels = labels
        return changes

    def _settled(self, doubtful: NDArray[np.intp]) -> NDArray[np.int32]:
        """The nearest centres of some rows by their differences in float64."""
        out = np.empty(len(doubtful), np.int32)
        height = min(_room(len(doubtful)), _room(max(1, DIFFERENCES // (2 * self.centres.size))))
        with self._device.computing():
            centres = self._device.put(self.centres)
            for part in slices(len(doubtful), height):
                check_stop()
                rows, own = np.zeros(height, np.int64), np.full(height, -1, np.int64)
                rows[: part.stop - part.start] = doubtful[part]
                own[: part.stop - part.start] = self.labels[doubtful[part]]
                places = self._device.put(rows, np.int64), self._device.put(own, np.int64)
                out[part] = np.asarray(_nearest_exactly(self._X, centres, *places))[: part.stop - part.start]
        return out

    def move(self):
        """Every centre to the mean of its rows; one without rows stays."""
        check_stop()
        sums = self._tally(len(self.centres))
        self.filled = np.bincount(self.labels, minlength=len(self.centres)) > 0
        self.totals = np.where(self.filled, sums[:, -1], 0.0)
        means = sums[:, :-1] / np.where(self.filled, sums[:, -1], 1.0)[:, None]
        self.centres = np.where(self.filled[:, None], means, self.centres)

    renew = move

    def _tally(self, clusters):
        with self._device.computing():
            return as_numpy(_sums_of(self._X, self._weights, self._placed_labels(), clusters, self._height))

    def _placed_labels(self) -> jax.Array:
        """The labels on the device, with zeros after them."""
        labels = np.zeros(len(self._X), np.int32)
        labels[: self.count] = self.labels
        return self._device.put(labels, np.int32)

    def relabel(self, row, cluster):
        self.labels[self.exact_squares(np.array([row])) == 0] = cluster
        self.renew()

    def own_squares(self):
        with self._device.computing():
            centres = self._device.put(self.centres)
            return as_numpy(_own_squares(self._X, centres, self._placed_labels()))[: self.count]

    settled_squares = own_squares


def clustered_rows(device: Any, rows: HeldRows, weights: Array, order: NDArray[np.intp]) -> ClusteredRows:
    """Rows of k-means that lie on a device."""
    return ClusteredRows(rows, weights, order)


def distances(device: Any, rows: HeldRows, centres: Array) -> Array:
    """The distance of every row to every centre, by differences in float64."""
    with device.computing():
        return as_numpy(jnp.sqrt(_squares_between(rows.held, device.put(centres))))


@compiled
def _around_mean(X: jax.Array, weights: jax.Array, count: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The mean of the first rows, the largest difference to it, and the weighted sum of squared distances to it."""
    X, inside = X.astype(jnp.float64), (jnp.arange(len(X)) < count)[:, None]
    mean = (weights @ X) / weights.sum()
    gaps = jnp.where(inside, X - mean, 0.0)
    return mean, jnp.abs(gaps).max(), weights @ (gaps * gaps).sum(axis=1)


@compiled
def _scaled(X: jax.Array, mean: jax.Array, unit: Any) -> tuple[jax.Array, jax.Array]:
    """The rows around a mean in a unit, with a column of ones, and their squared norms, in float32."""
    centred = (X.astype(jnp.float64) - mean) / unit
    points = jnp.concatenate([centred, jnp.ones((len(X), 1))], axis=1).astype(jnp.float32)
    return points, (centred * centred).sum(axis=1).astype(jnp.float32)


def _squares_between(X: jax.Array, centres: jax.Array) -> jax.Array:
    gaps = X.astype(jnp.float64)[:, None, :] - centres
    return (gaps * gaps).sum(axis=2)


@compiled
def _nearest_exactly(X: jax.Array, centres: jax.Array, rows: jax.Array, own: jax.Array) -> jax.Array:
    """The nearest centre of some rows; one that they have already is left for a gain beyond rounding alone."""
    squares = _squares_between(X[rows], centres)
    kept = jnp.where(own >= 0, jnp.take_along_axis(squares, own[:, None], axis=1)[:, 0] * (1 - EXACT), jnp.inf)
    best = squares.argmin(axis=1)
    return jnp.where(kept <= squares.min(axis=1), own, best).astype(jnp.int32)


@partial(compiled, static_argnames=("clusters", "height"))
def _sums_of(X: jax.Array, weights: jax.Array, labels: jax.Array, clusters: int, height: int) -> jax.Array:
    """The weighted sum of each cluster's rows, and its weight: products, whose order of summation is fixed."""

    def add(number: Any, total: jax.Array) -> jax.Array:
        some, w, own = (lax.dynamic_slice_in_dim(each, number * height, height) for each in (X, weights, labels))
        member = jnp.where(own == jnp.arange(clusters)[:, None], w, 0.0)
        wide = jnp.concatenate([some.astype(jnp.float64), jnp.ones((height, 1))], axis=1)
        return total + member @ wide

    return lax.fori_loop(0, len(X) // height, add, jnp.zeros((clusters, X.shape[1] + 1)))


@compiled
def _own_squares(X: jax.Array, centres: jax.Array, labels: jax.Array) -> jax.Array:
    gaps = X.astype(jnp.float64) - centres[labels]
    return (gaps * gaps).sum(axis=1)


@compiled
def _least_squares_to(X: jax.Array, chosen: jax.Array) -> jax.Array:
    """The squared distance of every row to the nearest of some."""

    def nearer(least: jax.Array, place: jax.Array) -> tuple[jax.Array, None]:
        gaps = X.astype(jnp.float64) - X[place]
        return jnp.minimum(least, (gaps * gaps).sum(axis=1)), None

    return lax.scan(nearer, jnp.full(len(X), jnp.inf), chosen)[0]


@partial(compiled, static_argnames="step")
def _squares_to(
    points: jax.Array, chosen: jax.Array, closest: jax.Array, weights: jax.Array, step: int
) -> tuple[jax.Array, jax.Array]:
    """What `clusters.dense_rows.approach` finds, and its totals by share."""

    def one(place: jax.Array) -> jax.Array:
        gaps = points - points[place]
        return jnp.minimum((gaps * gaps).sum(axis=1), closest)

    squares = lax.map(one, chosen)
    both = jnp.stack([weights * squares.astype(jnp.float64), weights * (squares > 0)], axis=1)
    spare = -both.shape[2] % step
    return squares, jnp.pad(both, ((0, 0), (0, 0), (0, spare))).reshape(*both.shape[:2], -1, step).sum(3).transpose(
        2, 1, 0
    )
