"""Fast sums over many trees: blocks of rows against flat arrays.

Trees of at most 64 leaves are not walked at all. Each split has a 64-bit mask of the leaves that a row can still reach
after going right; the row's leaf is the first one that survives the masks of all splits at which it goes right. One
comparison for many rows at a time costs less than following one row from node to node.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from empirisk.linalg.threads import in_threads
from empirisk.trees.nodes import Nodes
from empirisk.trees.predict_loops import LARGEST, RECORD, RIGHT, Flat, add_by_masks, add_by_walking, make_masks

Array = NDArray[np.float64]

LEAVES = 64  # leaves that a mask can hold
TASK = 1 << 13  # rows of one call


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
    >>> from empirisk.trees.nodes import Nodes
    >>> stump = Nodes.from_splits(feature=[0, -1, -1], threshold=[0.5, np.nan, np.nan], left=[1, -1, -1],
    ...                           value=[[0.0], [-1.0], [1.0]], n_features=1)
    >>> Ensemble(Nodes.join([stump, stump]).pack(), 1).add(np.array([[0.0], [1.0]]), np.zeros((2, 1))).ravel()
    array([-2.,  2.])
    """

    def __init__(self, packed: Mapping[str, NDArray], n_outputs: int):
        self.flat = flatten(packed)
        self.n_outputs = n_outputs
        bounds = np.append(self.flat.roots, len(self.flat.node)).astype(np.int64)
        leaves = (np.diff(bounds) + 1) // 2
        small = len(self.flat.table) == 0 and bool((leaves <= LEAVES).all())
        self.masks = make_masks(self.flat, bounds) if small else None

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


class PackedTrees:
    """What machines of packed trees share: a machine holds ``packed_``, about 15 bytes a node, and predicts from it."""

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
    feature, left, slot = packed["feature"].astype(np.int32), packed["left"], packed["slot"]
    count, leaf = len(feature), feature < 0
    categorical = np.zeros(count, dtype=bool)
    if "categorical" in packed:
        categorical = np.unpackbits(packed["categorical"], count=count).astype(bool)
    missing_left = np.unpackbits(packed["missing_left"], count=count).astype(bool)
    node = np.zeros(count, dtype=RECORD)
    # Every number is at most the largest one, so that infinity is free to stand for "missing".
    node["threshold"] = np.where(leaf, np.inf, np.minimum(slot, LARGEST))
    node["feature"] = np.where(leaf, 0, feature + np.where(missing_left, 0, RIGHT))
    node["left"] = np.where(leaf, np.arange(count), left)
    return Flat(
        packed["roots"],
        node,
        np.where(leaf, slot, 0.0),
        np.where(categorical, slot, -1).astype(np.int32),
        packed["category_bits"],
        packed["category_counts"],
        packed["leaf_values"],
    )
