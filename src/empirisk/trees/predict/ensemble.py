"""Sums of many trees, ready for many rows."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.linalg.threads import in_threads
from empirisk.trees.columns import Columns, wrong_categories
from empirisk.trees.nodes import Nodes, unpacked_bits, wrong_trees
from empirisk.trees.predict.masks import add_by_masks, make_masks
from empirisk.trees.predict.walk import TASK, Flat, flat_nodes, walk

Array = NDArray[np.float64]

FEW = 4  # trees up to which masks are not worth their preparation
NO_LEAVES = np.zeros((0, 0), dtype=np.int32)


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
    >>> from empirisk.trees.predict.ensemble import Ensemble
    >>> from empirisk.trees.nodes import Nodes
    >>> stump = Nodes.from_splits(feature=[0, -1, -1], threshold=[0.5, np.nan, np.nan], left=[1, -1, -1],
    ...                           value=[[0.0], [-1.0], [1.0]], n_features=1)
    >>> Ensemble(Nodes.join([stump, stump]).pack(), 1).add(np.array([[0.0], [1.0]]), np.zeros((2, 1))).ravel()
    array([-2.,  2.])
    """

    def __init__(self, packed: Mapping[str, NDArray], n_outputs: int):
        self.flat = flatten(packed)
        self.n_outputs = n_outputs
        self.masks = make_masks(self.flat) if len(self.flat.roots) > FEW else None

    def add(self, X: Array, out: Array, first: int = 0, last: int | None = None) -> Array:
        """Add the predictions of the trees ``first : last`` to ``out``, of shape (n_rows, n_outputs); return it."""
        last = len(self.flat.roots) if last is None else last
        if self.masks is None:
            walk(self.flat, X, out, NO_LEAVES, first, last)
            return out

        def run(start: int) -> None:
            rows = slice(start, start + TASK)
            add_by_masks(self.flat, self.masks, first, last, X[rows], out[rows])

        in_threads(run, range(0, len(X), TASK))
        return out


_READY: WeakKeyDictionary[Any, tuple[Any, Ensemble]] = WeakKeyDictionary()


def _wrong_packing(packed: Mapping[str, NDArray]) -> str | None:
    """What is wrong in packed trees from a file; compiled code looks at none of it again."""
    feature, slot, table = packed["feature"], packed["slot"], packed["leaf_values"]
    leaf, count = feature < 0, len(feature)
    bits = [packed[name] for name in ("missing_left", "categorical") if name in packed]
    if any(len(part) != (count + 7) // 8 for part in bits):
        return "packed_ has not one bit for each node"
    categorical = np.zeros(count, dtype=bool)
    if "categorical" in packed:
        categorical = unpacked_bits(packed["categorical"], count) & ~leaf
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
        lambda its: _wrong_packing(its["packed_"]),
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
        ),
    )

    packed_: dict[str, NDArray]

    @property
    def nodes_(self) -> Nodes:
        """All trees as public flat arrays, unpacked from `packed_` on each access."""
        check_is_fitted(self)
        return Nodes.unpack(self.packed_)

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
    count, leaf = len(feature), feature < 0
    start = np.zeros(0, dtype=np.int32)
    if "categorical" in packed:
        start = np.where(unpacked_bits(packed["categorical"], count), slot, -1).astype(np.int32)
    return Flat(
        # Copies: what a file held may not be written to, which would be another type to compile for.
        np.array(packed["roots"]),
        flat_nodes(feature, slot, packed["left"], unpacked_bits(packed["missing_left"], count)),
        np.where(leaf, slot, 0.0),
        start,
        np.array(packed["category_bits"]),
        np.array(packed["category_counts"]),
        np.array(packed["leaf_values"]),
    )
