"""Sums over trees of at most 64 leaves, which are not walked at all.

Each split has a 64-bit mask of the leaves that a row can still reach after going right; the row's leaf is the first
one that survives the masks of all splits at which it goes right. One comparison for many rows at a time costs less than
following one row from node to node.
"""

from typing import Any, NamedTuple

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from empirisk.trees.compiled import loop
from empirisk.trees.predict.walk import COLUMN, RIGHT, Flat

Array = NDArray[np.float64]

LEAVES = 64  # leaves that a mask can hold
SIDE = 128  # rows side by side under the masks of one tree: their values stay in the nearest memory
_intrinsic: Any = intrinsic  # its types do not know that the first argument is left out
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Masks(NamedTuple):
    """The splits of small trees: those of tree t are ``start[t] : start[t + 1]``, its leaves follow ``leaf_start[t]``.

    ``mask`` holds the leaves that remain after going right; ``leaf_value`` are the predictions from left to right.
    """

    start: NDArray[np.int64]
    node: NDArray[np.int64]
    mask: NDArray[np.uint64]
    leaf_start: NDArray[np.int64]
    leaf_value: Array


def make_masks(flat: Flat) -> Masks | None:
    """The masks, or None where a tree is too large for them or has several outputs."""
    count, left = len(flat.node), flat.node["left"]
    bounds = np.append(flat.roots, count)
    if len(flat.table) or (np.diff(bounds) > 2 * LEAVES - 1).any():
        return None
    leaf = left == np.arange(count)
    levels = [flat.roots]
    while len(levels[-1]):
        inside = levels[-1][~leaf[levels[-1]]]
        levels.append(np.concatenate([left[inside], left[inside] + 1]))
    below, place = np.ones(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for level in reversed(levels):
        inside = level[~leaf[level]]
        below[inside] = below[left[inside]] + below[left[inside] + 1]
    for level in levels:
        inside = level[~leaf[level]]
        place[left[inside]] = place[inside]
        place[left[inside] + 1] = place[inside] + below[left[inside]]
    tree = np.repeat(np.arange(len(flat.roots)), np.diff(bounds))
    leaf_start = np.concatenate([[0], np.cumsum(np.bincount(tree[leaf], minlength=len(flat.roots)))])
    leaf_value = np.empty(int(leaf.sum()))
    leaf_value[leaf_start[tree[leaf]] + place[leaf]] = flat.value[leaf]
    split = np.flatnonzero(~leaf)
    gone = ((np.uint64(1) << below[left[split]].astype(np.uint64)) - np.uint64(1)) << place[split].astype(np.uint64)
    start = np.concatenate([[0], np.cumsum(np.bincount(tree[split], minlength=len(flat.roots)))])
    return Masks(start, split, ~gone, leaf_start, leaf_value)


@_intrinsic
def lowest_bit(typingctx, bits):
    """The number of the lowest bit that is set."""

    def build(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), build


@loop
def add_by_masks(flat, masks, first, last, X, out):
    """Add the values of the trees ``first : last``."""
    width, sets = X.shape[1], flat.category_start.shape[0] > 0
    columns = np.zeros((width, SIDE), dtype=np.float64)
    alive = np.empty(SIDE, dtype=np.uint64)
    for begin in range(0, X.shape[0], SIDE):
        size = min(SIDE, X.shape[0] - begin)
        holes = False
        for r in range(size):
            for f in range(width):
                columns[f, r] = X[begin + r, f]
                holes |= columns[f, r] != columns[f, r]
        for tree in range(first, last):
            for r in range(SIDE):
                alive[r] = ALL
            for k in range(masks.start[tree], masks.start[tree + 1]):
                here, mask = masks.node[k], masks.mask[k]
                threshold, feature = flat.node[here].threshold, flat.node[here].feature
                column = np.uint64(feature & COLUMN)
                if sets and flat.category_start[here] >= 0:
                    for r in range(size):
                        x, right = columns[column, r], feature >= RIGHT
                        if x >= 0 and x < flat.category_counts[column]:
                            code = np.int64(x)
                            word = flat.category_bits[flat.category_start[here] + (code >> 6)]
                            right = (word >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(0)
                        alive[r] = alive[r] & mask if right else alive[r]
                elif holes and feature >= RIGHT:
                    for r in range(SIDE):
                        alive[r] = alive[r] if columns[column, r] <= threshold else alive[r] & mask
                else:
                    for r in range(SIDE):
                        alive[r] = alive[r] & mask if columns[column, r] > threshold else alive[r]
            leaf, output = np.uint64(masks.leaf_start[tree]), tree % out.shape[1]
            for r in range(size):
                out[begin + r, output] += masks.leaf_value[leaf + lowest_bit(alive[r])]
