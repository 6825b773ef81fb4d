"""Sums of many trees, ready for many rows.

Trees of at most 64 leaves are not walked at all: each split has a 64-bit mask of the leaves that a row can still reach
after going right, and the row's leaf is the first one that survives the masks of all splits at which it goes right. One
comparison for many rows at a time costs less than following one row from node to node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.linalg.compiled import plain_loop
from empirisk.linalg.threads import parallel_map
from empirisk.trees.linear_leaves import COLUMNS, VALUES, add_slopes, has_slopes, slope_ends, wrong_slopes
from empirisk.trees.nodes import Nodes, bits_of, paths_to, wrong_trees
from empirisk.trees.table_columns import Columns, read_new, wrong_categories
from empirisk.trees.walk import COLUMN, RIGHT, TASK, Flat, flat_nodes, walk

Array = NDArray[np.float64]

FEW = 4  # trees up to which masks are not worth their preparation
LEAVES = 64  # leaves that a mask can hold
SIDE = 128  # rows side by side under the masks of one tree: their values stay in the nearest memory
_intrinsic: Any = intrinsic  # its types do not know that the first argument is left out
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)  # every leaf of a mask


class Ensemble:
    """Sums of trees, ready for many rows.

    Parameters
    ----------
    packed : mapping
        What `empirisk.trees.nodes.pack_trees` gives.
    n_outputs : int
        Number of outputs. Where trees have one value each, tree t adds to output  t mod n_outputs.

    Examples
    --------
    >>> from empirisk.trees.predict import Ensemble
    >>> X = np.array([[0.0], [1.0]])
    >>> forest = er.ForestRegressor(5, bootstrap=False).fit(X, [3.0, 5.0])
    >>> Ensemble(forest.packed_, 1).add(X, np.zeros((2, 1))).ravel()
    array([15., 25.])
    """

    def __init__(self, packed: Mapping[str, NDArray], n_outputs: int):
        self.flat = flatten(packed)
        self.n_outputs = n_outputs
        self.packed = packed if has_slopes(packed) else None
        self.masks = make_masks(self.flat) if len(self.flat.roots) > FEW and self.packed is None else None

    def add(self, X: Array, out: Array, first: int = 0, last: int | None = None) -> Array:
        """Add the predictions of the trees ``first : last`` to ``out``, of shape (n_rows, n_outputs); return it."""
        last = len(self.flat.roots) if last is None else last
        if self.packed is not None:
            self._add_lines(X, out, first, last)
            return out
        if self.masks is None:
            walk(self.flat, X, out, first=first, last=last)
            return out

        def run(start: int) -> None:
            rows, alive = slice(start, start + TASK), np.empty(SIDE, dtype=np.uint64)
            add_by_masks(self.flat, self.masks, first, last, X[rows], out[rows], np.zeros((X.shape[1], SIDE)), alive)

        parallel_map(run, range(0, len(X), TASK))
        return out

    def _add_lines(self, X: Array, out: Array, first: int, last: int) -> None:
        """`add` for trees with slopes: the leaves of rows are noted on the way."""
        packed: Any = self.packed
        ends, columns, values = slope_ends(packed), np.array(packed[COLUMNS]), np.array(packed[VALUES])

        def run(start: int) -> None:
            rows = slice(start, start + TASK)
            leaves = np.empty((len(X[rows]), last), dtype=np.int32)
            walk(self.flat, X[rows], out[rows], leaves, first, last)
            add_slopes(X[rows], leaves, first, last, ends, columns, values, out[rows])

        parallel_map(run, range(0, len(X), TASK))


_READY: WeakKeyDictionary[Any, tuple[Any, Ensemble]] = WeakKeyDictionary()


def _wrong_packing(packed: Mapping[str, NDArray]) -> str | None:
    """What is wrong in packed trees from a file; compiled code looks at none of it again."""
    feature, slot, table = packed["feature"], packed["slot"], packed["leaf_values"]
    leaf, count = feature < 0, len(feature)
    bits = [packed[name] for name in ("missing_left", "categorical") if name in packed]
    if any(len(part) != (count + 7) // 8 for part in bits):
        return "packed_ has not one bit for each node"
    categorical = bits_of(packed, "categorical")
    if np.any(categorical & leaf):
        return "packed_ has categories in a leaf"
    points = categorical | (leaf if len(table) else False)
    ends = np.where(categorical, len(packed["category_bits"]) + 1, max(len(table), 1))
    with np.errstate(invalid="ignore"):
        inside = (slot >= 0) & (slot < ends) & (slot == np.floor(slot))
    if not np.all(np.where(points, inside, np.where(leaf, np.isfinite(slot), ~np.isnan(slot)))):
        return "packed_ has a slot that points nowhere"
    start = np.where(categorical, slot, -1).astype(np.int64)
    named = packed["roots"], feature, packed["left"], start, packed["category_counts"]
    return wrong_trees(*named, len(packed["category_bits"]))


def wrong_outputs(packed: Mapping[str, NDArray], outputs: int, trees: int) -> str | None:
    """What is wrong where the leaves from a file have not the numbers that are read from them."""
    table = packed["leaf_values"]
    if len(packed["roots"]) != trees:
        return "packed_ has not the trees that it should have"
    return None if table.shape[1] == outputs and (outputs == 1 or len(table)) else "packed_ has leaves of another width"


class PackedTrees:
    """What machines of packed trees share: a machine holds ``packed_``, about 15 bytes a node, and predicts from it."""

    _state = state.State(
        lambda its: wrong_categories(its["columns_"], its["packed_"]["category_counts"]),
        lambda its: _wrong_packing(its["packed_"]) or wrong_slopes(its["packed_"]),
        n_features_in_=state.size("columns"),
        columns_=state.part(Columns, columns="columns"),
        n_estimators_=state.whole(),
        packed_=state.record(
            roots=state.array("i4", "trees"),
            feature=state.either(*(state.array(kind, "nodes", low=-1, below="columns") for kind in ("i2", "i4"))),
            left=state.array("i4", "nodes", low=-1, below="nodes"),
            slot=state.array("f8", "nodes", finite=False),
            missing_left=state.array("u1", None),
            category_bits=state.array("u8", None),
            category_counts=state.array("i4", "columns", low=0),
            leaf_values=state.array("f8", None, None),
            categorical=state.optional(state.array("u1", None)),
            slope_counts=state.optional(state.array("i4", "nodes", low=0)),
            slope_columns=state.optional(state.array("i4", "slopes", low=0, below="columns")),
            slope_values=state.optional(state.array("f8", "slopes", 4)),
        ),
    )

    packed_: dict[str, NDArray]

    @property
    def nodes_(self) -> Nodes:
        """All trees as public flat arrays, unpacked from `packed_` on each access."""
        check_is_fitted(self)
        if has_slopes(self.packed_):  # not there: what is made of leaf values alone would be wrong
            raise AttributeError(
                "nodes_ has a number for each leaf, and the leaves of this machine hold linear functions; fit it with "
                "leaves='constant'."
            )
        return Nodes.unpack(self.packed_)

    def _splits(self) -> Nodes:
        """All trees, for the ways through them."""
        check_is_fitted(self)
        return Nodes.unpack(self.packed_)

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The leaf that each row reaches in each tree, (n_rows, n_trees): its number among the nodes of that tree."""
        nodes = self._splits()
        return nodes.predict_leaf(read_new(self, X)) - nodes.roots

    def decision_path(self, X: Any) -> tuple[csr_array, NDArray[np.int64]]:
        """The nodes that each row passes in all trees, rows by nodes; and where the nodes of each tree begin."""
        nodes = self._splits()
        paths = [paths_to(nodes, leaves) for leaves in nodes.predict_leaf(read_new(self, X)).T]
        total = paths[0]
        for path in paths[1:]:
            total = total + path
        return csr_array(total), np.append(nodes.roots, len(nodes)).astype(np.int64)

    def _ensemble(self, n_outputs: int) -> Ensemble:
        """The trees ready for many rows, made when first asked for and again after a new fit.

        They are kept beside the machine, not in it: predicting changes nothing in a machine, and files stay small.
        """
        kept = _READY.get(self)
        if kept is None or kept[0] is not self.packed_:
            kept = _READY[self] = (self.packed_, Ensemble(self.packed_, n_outputs))
        return kept[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def flatten(packed: Mapping[str, NDArray]) -> Flat:
    """Packed trees as compiled code takes them."""
    feature, slot = packed["feature"].astype(np.int32), packed["slot"]
    leaf = feature < 0
    start = np.zeros(0, dtype=np.int32)
    if "categorical" in packed:
        start = np.where(bits_of(packed, "categorical"), slot, -1).astype(np.int32)
    return Flat(
        # Copies: what a file held may not be written to, which would be another type to compile for.
        np.array(packed["roots"]),
        flat_nodes(feature, slot, packed["left"], bits_of(packed, "missing_left")),
        np.where(leaf, slot, 0.0),
        start,
        np.array(packed["category_bits"]),
        np.array(packed["category_counts"]),
        np.array(packed["leaf_values"]),
    )


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


@plain_loop
def add_by_masks(flat, masks, first, last, X, out, columns, alive):
    """Add the values of the trees ``first : last``; ``columns`` and ``alive`` are room for the rows side by side."""
    width, sets = X.shape[1], flat.category_start.shape[0] > 0
    for begin in range(0, X.shape[0], SIDE):
        size, holes = SIDE if X.shape[0] - begin > SIDE else X.shape[0] - begin, False
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
