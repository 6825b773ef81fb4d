"""From a design to rows that k-means runs on, in an order that the rows decide, not the user's table."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.clusters.dense_rows import DenseRows
from empirisk.clusters.device_rows import DeviceRows
from empirisk.clusters.product_rows import DesignRows, KernelRows
from empirisk.kernels.tiles import dense, density
from empirisk.linalg.accelerator import lie_on_device
from empirisk.linalg.design import design_of

Array = NDArray[np.float64]

FULL = 2 / 3  # share of entries from which 8 bytes for each take less room than 12 for each that is not zero
LONG_ROUND = 1 << 29  # products of a round, all shares together, from which it is worth a look at the clock
SLOWER = 16  # products of numbers in float32 in the time of one of sparse rows
QUICK = 2048  # items whose Gram matrix takes milliseconds
SLICE_BYTES = 1 << 26  # rows that are given their cluster at a time, so that their copies stay small


def rows_of(design: Any, weights: Array, order: NDArray[np.intp]) -> Any:
    """The rows of a design, some of them in some order, as k-means wants them."""
    if design.implicit:
        return KernelRows(design, weights, order)
    if design.on_device:
        return design.device.clustered_rows(design.table, weights, order)
    table, device = getattr(design, "X", None), getattr(design, "device", None)
    if not isinstance(table, np.ndarray):
        return DesignRows(design, weights, order)
    return DenseRows(table, weights, order) if device is None else DeviceRows(table, weights, order, device)


def some_rows_of(design: Any, weights: Array, chosen: NDArray[np.intp]) -> Any:
    """Few rows of a design, for which nothing is evaluated at the others."""
    if not design.implicit:
        return rows_of(design, weights, chosen)
    rows = KernelRows(design.like(design.items[chosen]), weights, np.arange(len(chosen)))
    rows.order = chosen
    return rows


def is_long(design: Any, clusters: int) -> bool:
    """Whether a round takes so long that it must be given up half-way when the time is over."""
    rows, width = design.shape
    if design.implicit:
        return rows > QUICK
    table = None if design.on_device else getattr(design, "X", None)
    plain = design.on_device or isinstance(table, np.ndarray)
    products = rows * width if plain else SLOWER * (rows + getattr(table, "nnz", rows * width))
    return products * clusters > LONG_ROUND


def in_least_room(design: Any) -> Any:
    """The design, of an array where its sparse table takes more room: differences of dense rows keep their digits."""
    table = None if design.on_device else getattr(design, "X", None)
    return design_of(dense(table)) if sparse.issparse(table) and density(table) > FULL else design


def keys(design: Any) -> Array:
    """A number for every row, equal for equal rows: sorted by it, rows have the same order however they came.

    With draws along that order, a fit depends neither on the order of the rows nor on whether equal rows come as one
    row with a weight. Objects without coordinates keep the order they have, and so do rows of a Gram matrix.
    """
    if not design.implicit:
        return design.dot(_direction(design.shape[1]))
    takes, root = design.kernel.takes, design.root
    # A kernel of objects, such as a function of one's own, has prepared the numbers of a table as a matrix.
    table = root.source if takes == "vectors" else root.items
    if lie_on_device(table):
        return table @ _direction(table.shape[1])
    if takes == "gram" or not (sparse.issparse(table) or (isinstance(table, np.ndarray) and table.ndim == 2)):
        return np.arange(design.shape[0], dtype=np.float64)
    return np.asarray(table @ _direction(table.shape[1]), dtype=np.float64)


def _direction(width: int) -> Array:
    return np.random.default_rng(0).normal(size=width)


def nearest(design: Any, centres: Array) -> tuple[NDArray[np.int32], Array]:
    """The nearest centre of every row, and the squared distance to it."""
    labels, squares = np.empty(design.shape[0], np.int32), np.empty(design.shape[0])
    step = max(1, SLICE_BYTES // (8 * max(design.shape[1], len(centres))))
    for start in range(0, design.shape[0], step):
        part = np.arange(start, min(start + step, design.shape[0]))
        rows = rows_of(design, np.ones(len(part)), part).begin()
        rows.start_at(centres)
        rows.assign()
        labels[part], squares[part] = rows.labels, rows.own_squares()
    return labels, squares
