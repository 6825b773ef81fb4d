"""Fast sums over many trees: blocks of rows against flat arrays.

Trees of at most 64 leaves are not walked at all. Each split has a 64-bit mask of the leaves that a row can still reach
after going right; the row's leaf is the first one that survives the masks of all splits at which it goes right. One
comparison for many rows at a time costs less than following one row from node to node.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.linalg.blocks import in_threads

Array = NDArray[np.float64]

LEAVES = 64  # leaves that a mask can hold
BLOCK = 128  # rows against one tree at a time: their values stay in the nearest memory
TASK = 1 << 13  # rows of one call
LARGEST = np.finfo(np.float64).max
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Flat(NamedTuple):
    """Joined trees for compiled code; node k is a leaf where ``left[k] == k``.

    ``feature`` is 0 and ``threshold`` infinite in a leaf, so that a row that has arrived stays. ``right`` marks the
    splits that send missing values right. ``value`` is the prediction of a leaf, or its row in ``table``.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Array
    left: NDArray[np.int32]
    right: NDArray[np.bool_]
    value: Array
    category_start: NDArray[np.int32]
    category_bits: NDArray[np.uint64]
    category_counts: NDArray[np.int32]
    table: Array


class Masks(NamedTuple):
    """The splits of small trees: those of tree t are ``start[t] : start[t + 1]``, its leaves follow ``leaf_start[t]``.

    ``mask`` holds the leaves that remain after going right; ``leaf_value`` the predictions from left to right.
    """

    start: NDArray[np.int64]
    node: NDArray[np.int64]
    mask: NDArray[np.uint64]
    leaf_start: NDArray[np.int64]
    leaf_value: Array


class Ensemble:
    """Sums of trees, ready for many rows.

    Parameters
    ----------
    packed : mapping
        What `Nodes.pack` gives.
    n_outputs : int
        Number of outputs. Where trees have one value each, tree t adds to output  t mod n_outputs.

    Examples
    --------
    >>> from empirisk.trees.ensemble_predict import Ensemble
    >>>     >>> stump = Nodes.from_splits(feature=[0, -1, -1], threshold=[0.5, np.nan, np.nan], left=[1, -1, -1],
    ...                           value=[[0.0], [-1.0], [1.0]], n_features=1)
    >>> Ensemble(Nodes.join([stump, stump]).pack(), 1).add(np.array([[0.0], [1.0]]), np.zeros((2, 1))).ravel()
    array([-2.,  2.])
    """

    def __init__(self, packed: Mapping[str, NDArray], n_outputs: int):
        self.flat = flatten(packed)
        self.n_outputs = n_outputs
        bounds = np.append(self.flat.roots, len(self.flat.left))
        leaves = (np.diff(bounds) + 1) // 2
        small = len(self.flat.table) == 0 and bool((leaves <= LEAVES).all())
        self.masks = make_masks(self.flat.left, bounds.astype(np.int64), self.flat.value) if small else None

    def add(self, X: Array, out: Array, first: int = 0, last: int | None = None) -> Array:
        """Add the predictions of the trees ``first : last`` to ``out``, of shape (n_rows, n_outputs); return it."""
        trees = (first, len(self.flat.roots) if last is None else last)

        def run(start: int) -> None:
            rows = slice(start, start + TASK)
            if self.masks is not None:
                add_by_masks(self.flat, self.masks, trees, X[rows], out[rows])
            else:
                add_by_walking(self.flat, trees, X[rows], out[rows])

        in_threads(run, range(0, len(X), TASK))
        return out


_READY: WeakKeyDictionary[Any, tuple[Any, Ensemble]] = WeakKeyDictionary()


def ready(machine: Any, trees: Any, make: Callable[[], Ensemble]) -> Ensemble:
    """The ensemble of a fitted machine, made when first asked for and again when its ``trees`` are others.

    It is kept beside the machine, not in it: predicting changes nothing in a machine, and files stay small.
    """
    kept = _READY.get(machine)
    if kept is None or kept[0] is not trees:
        kept = _READY[machine] = (trees, make())
    return kept[1]


def flatten(packed: Mapping[str, NDArray]) -> Flat:
    """Packed trees as compiled code takes them."""
    feature, left, slot = packed["feature"].astype(np.int32), packed["left"], packed["slot"]
    count, leaf = len(feature), feature < 0
    categorical = np.zeros(count, dtype=bool)
    if "categorical" in packed:
        categorical = np.unpackbits(packed["categorical"], count=count).astype(bool)
    return Flat(
        packed["roots"],
        np.where(leaf, 0, feature).astype(np.int32),
        # Every number is at most the largest one, so that infinity is free to stand for "missing".
        np.where(leaf, np.inf, np.minimum(slot, LARGEST)),
        np.where(leaf, np.arange(count), left).astype(np.int32),
        ~np.unpackbits(packed["missing_left"], count=count).astype(bool) & ~leaf,
        np.where(leaf, slot, 0.0),
        np.where(categorical, slot, -1).astype(np.int32),
        packed["category_bits"],
        packed["category_counts"],
        packed["leaf_values"],
    )


@njit(cache=True, nogil=True)
def make_masks(left, bounds, value):
    """The masks of trees of at most 64 leaves each; children come after their parents."""
    trees = bounds.shape[0] - 1
    start, leaf_start = np.zeros(trees + 1, dtype=np.int64), np.zeros(trees + 1, dtype=np.int64)
    count = left.shape[0]
    node, mask = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.uint64)
    leaf_value = np.empty(count, dtype=np.float64)
    below, place = np.ones(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    splits, leaves = 0, 0
    for tree in range(trees):
        for k in range(bounds[tree + 1] - 1, bounds[tree] - 1, -1):
            if left[k] != k:
                below[k] = below[left[k]] + below[left[k] + 1]
        for k in range(bounds[tree], bounds[tree + 1]):
            if left[k] == k:
                leaf_value[leaves + place[k]] = value[k]
                continue
            lefts = below[left[k]]
            place[left[k]], place[left[k] + 1] = place[k], place[k] + lefts
            gone = ((np.uint64(1) << np.uint64(lefts)) - np.uint64(1)) << np.uint64(place[k])
            node[splits], mask[splits] = k, ~gone
            splits += 1
        leaves += below[bounds[tree]]
        start[tree + 1], leaf_start[tree + 1] = splits, leaves
    return Masks(start, node[:splits], mask[:splits], leaf_start, leaf_value[:leaves])


@njit(cache=True, nogil=True)
def in_set(flat, node, value):
    """Whether a category goes left at a categorical split; missing or unknown ones as the split says."""
    if value >= 0 and value < flat.category_counts[flat.feature[node]]:
        code = np.int64(value)
        word = flat.category_bits[flat.category_start[node] + (code >> 6)]
        return (word >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)
    return not flat.right[node]


@njit(cache=True, nogil=True)
def fill_columns(X, first, size, columns):
    """Columns of a block of rows, twice: in the second copy missing values are infinite, above every threshold."""
    width, holes = X.shape[1], False
    for r in range(size):
        for f in range(width):
            columns[f, r] = X[first + r, f]
            holes |= X[first + r, f] != X[first + r, f]
    if holes:
        for f in range(width):
            for r in range(size):
                columns[width + f, r] = columns[f, r] if columns[f, r] == columns[f, r] else np.inf
    return holes


@njit(cache=True, nogil=True)
def add_by_masks(flat, masks, trees, X, out):
    """Add the values of small trees, a block of rows at a time."""
    width = X.shape[1]
    columns = np.zeros((2 * width, BLOCK), dtype=np.float64)
    alive = np.empty(BLOCK, dtype=np.uint64)
    lowest = np.empty(BLOCK, dtype=np.float64)
    bits = lowest.view(np.uint64)
    for first in range(0, X.shape[0], BLOCK):
        size = min(BLOCK, X.shape[0] - first)
        holes = fill_columns(X, first, size, columns)
        for tree in range(trees[0], trees[1]):
            alive[:] = ALL
            for k in range(masks.start[tree], masks.start[tree + 1]):
                node, mask = masks.node[k], masks.mask[k]
                values = columns[flat.feature[node] + (width if holes and flat.right[node] else 0)]
                if flat.category_start[node] >= 0:
                    values = columns[flat.feature[node]]
                    for r in range(size):
                        alive[r] &= ALL if in_set(flat, node, values[r]) else mask
                    continue
                threshold = flat.threshold[node]
                for r in range(BLOCK):
                    alive[r] = alive[r] & mask if values[r] > threshold else alive[r]
            # The lowest bit as a float is a power of two, whose exponent is the number of the bit.
            for r in range(BLOCK):
                lowest[r] = float(np.int64(alive[r] & (~alive[r] + np.uint64(1))))
            leaf, output = np.uint64(masks.leaf_start[tree]), tree % out.shape[1]
            for r in range(size):
                out[first + r, output] += masks.leaf_value[leaf + ((bits[r] >> np.uint64(52)) & np.uint64(2047)) - np.uint64(1023)]


@njit(cache=True, nogil=True)
def add_by_walking(flat, trees, X, out):
    """Add the values of trees of any size: a block of rows goes down together until all have arrived."""
    width, outputs = X.shape[1], out.shape[1]
    columns = np.zeros((2 * width, BLOCK), dtype=np.float64)
    place = np.empty(BLOCK, dtype=np.int32)
    plain = flat.category_bits.shape[0] == 0
    for first in range(0, X.shape[0], BLOCK):
        size = min(BLOCK, X.shape[0] - first)
        shift = width if fill_columns(X, first, size, columns) else 0
        for tree in range(trees[0], trees[1]):
            place[:] = flat.roots[tree]
            moved = True
            while moved:
                moved = step_down(flat, columns, shift, place, size) if plain else step_any(flat, columns, shift, place, size)
            for r in range(size):
                value = flat.value[place[r]]
                if flat.table.shape[0] == 0:
                    out[first + r, tree % outputs] += value
                else:
                    for output in range(outputs):
                        out[first + r, output] += flat.table[np.int64(value), output]


@njit(cache=True, nogil=True)
def step_down(flat, columns, shift, place, size):
    """One level down at numeric splits; whether any row moved."""
    moved = np.int32(0)
    for r in range(size):
        node = np.uint64(place[r])
        column = np.uint64(flat.feature[node] + (shift if flat.right[node] else 0))
        goal = flat.left[node] + np.int32(columns[column, r] > flat.threshold[node])
        moved |= goal ^ place[r]
        place[r] = goal
    return moved != 0


@njit(cache=True, nogil=True)
def step_any(flat, columns, shift, place, size):
    """One level down at splits of any kind; whether any row moved."""
    moved = False
    for r in range(size):
        node = place[r]
        if flat.category_start[node] >= 0:
            goal = flat.left[node] + (0 if in_set(flat, node, columns[flat.feature[node], r]) else 1)
        else:
            column = flat.feature[node] + (shift if flat.right[node] else 0)
            goal = flat.left[node] + (1 if columns[column, r] > flat.threshold[node] else 0)
        moved |= goal != node
        place[r] = goal
    return moved
