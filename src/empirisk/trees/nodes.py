"""Trees as flat arrays: one tree, or many joined end to end, and the walk from a row to its leaf."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from empirisk import state
from empirisk.trees.binned.bins import MISSING, Binning
from empirisk.trees.binned.splits import NODE
from empirisk.trees.walk import Flat, flat_nodes, walk

Array = NDArray[np.float64]
Packed = dict[str, NDArray]

WORD = 64  # categories in one word of a category set
NO_TABLE = np.zeros((0, 1))


def wrong_trees(roots, feature, left, category_start, category_counts, words: int) -> str | None:
    """What is wrong in trees from a file: every path must end at a leaf and stay inside the arrays."""
    count = len(feature)
    starts_well = len(roots) == 0 if count == 0 else len(roots) > 0 and roots[0] == 0
    if not starts_well or np.any(np.diff(roots) <= 0) or np.any(roots >= count):
        return "roots are not where trees start"
    splits = np.flatnonzero(feature >= 0)
    children = left[splits].astype(np.int64)
    ends = np.append(roots[1:], count)[np.searchsorted(roots, splits, side="right") - 1] if len(splits) else splits
    if np.any(children <= splits) or np.any(children + 1 >= ends):
        return "left points outside its tree"
    parents = np.bincount(np.concatenate([children, children + 1]), minlength=count)
    parents[roots] += 1
    if np.any(parents != 1):
        return "left makes no trees"
    if np.any(category_start[feature < 0] >= 0):
        return "category_start splits a leaf"
    with_sets = splits[category_start[splits] >= 0]
    needed = (category_counts[feature[with_sets]].astype(np.int64) + WORD - 1) // WORD
    if np.any(category_start[with_sets] + needed > words):
        return "category_start points outside category_bits"
    return None


def _wrong_nodes(its: Mapping[str, Any]) -> str | None:
    leaf = its["feature"] < 0
    if not np.all(np.isfinite(its["value"][leaf])):
        return "value is not finite in a leaf"
    if np.any(np.isnan(its["threshold"]) & ~leaf & (its["category_start"] < 0)):
        return "threshold is missing in a split"
    start, counts = its["category_start"], its["category_counts"]
    return wrong_trees(its["roots"], its["feature"], its["left"], start, counts, len(its["category_bits"]))


def _by_node_or_none() -> state.Rule:
    return state.either(state.array("f8", "nodes"), state.array("f8", 0))


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one tree, or of many trees joined end to end, as public arrays.

    Node k is a leaf where ``feature[k] == -1``. Otherwise its children are ``left[k]`` and ``left[k] + 1``, and a row
    x goes left

    - in a numeric split, where ``x[feature] <= threshold`` (infinity: every present value goes left);
    - in a categorical split, where the bit of its category code is set;
    - where the value is missing (NaN, or a code outside ``range(category_counts[feature])``), if ``missing_left``.

    Attributes
    ----------
    roots : (n_trees,) int32
        The node at which each tree starts.
    feature : (n_nodes,) int32
        Column of the split, -1 in a leaf.
    threshold : (n_nodes,) float64
        Largest value that goes left; NaN in leaves and categorical splits.
    left : (n_nodes,) int32
        Node of the left child, the right child being the next node; -1 in a leaf.
    missing_left : (n_nodes,) bool
        Whether a missing value goes left.
    category_start : (n_nodes,) int32
        Where the node's set of categories starts in `category_bits`; -1 unless the split is categorical.
    category_bits : (n_words,) uint64
        Sets of category codes: bit ``code % 64`` of word ``category_start + code // 64`` says "left".
    category_counts : (n_features,) int32
        Number of categories of each column, 0 for a numeric column.
    value : (n_nodes, n_outputs) float64
        Prediction in each node: a mean or median, or class probabilities.
    weight, impurity, gain : (n_nodes,) float64
        Training weight in the node, its impurity, and the decrease of weight * impurity by its split (0 in a leaf).
        Empty after `unpack`, which restores what predictions need.

    Examples
    --------
    >>> from empirisk.trees.nodes import Nodes
    >>> stump = Nodes.from_splits(feature=[0, -1, -1], threshold=[0.5, np.nan, np.nan], left=[1, -1, -1],
    ...                           value=[[0.0], [-1.0], [1.0]], n_features=1)
    >>> stump.predict(np.array([[0.0], [1.0]])).ravel()
    array([-1.,  1.])
    """

    _state = state.State(
        _wrong_nodes,
        roots=state.array("i4", "trees"),
        feature=state.array("i4", "nodes", low=-1, below="columns"),
        threshold=state.array("f8", "nodes", finite=False),
        left=state.array("i4", "nodes", low=-1, below="nodes"),
        missing_left=state.array("b", "nodes"),
        category_start=state.array("i4", "nodes", low=-1),
        category_bits=state.array("u8", "words"),
        category_counts=state.array("i4", "columns", low=0),
        value=state.array("f8", "nodes", "outputs", finite=False),
        weight=_by_node_or_none(),
        impurity=_by_node_or_none(),
        gain=_by_node_or_none(),
    )

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Array
    left: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    category_start: NDArray[np.int32]
    category_bits: NDArray[np.uint64]
    category_counts: NDArray[np.int32]
    value: Array
    weight: Array
    impurity: Array
    gain: Array

    @classmethod
    def from_splits(cls, feature, threshold, left, value, n_features: int, **others) -> "Nodes":
        """One tree from its essential arrays; the ``others`` (named as the attributes) default to none or zero."""
        count = len(feature)
        defaults = {
            "roots": [0],
            "missing_left": np.zeros(count),
            "category_start": np.full(count, -1),
            "category_bits": [],
            "category_counts": np.zeros(n_features),
            "weight": np.zeros(count),
            "impurity": np.zeros(count),
            "gain": np.zeros(count),
        }
        given = {"feature": feature, "threshold": threshold, "left": left, "value": value, **others}
        return cls(**{name: _typed(name, array) for name, array in (defaults | given).items()})

    @property
    def n_trees(self) -> int:
        """How many trees the arrays hold."""
        return len(self.roots)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self.feature < 0

    def __len__(self) -> int:
        return len(self.feature)

    def predict_leaf(self, X: Array) -> NDArray[np.int32]:
        """The leaf that each row reaches in each tree, (n_rows, n_trees).

        ``X`` holds numbers and category codes as floats, NaN where missing.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        leaves = np.empty((len(X), self.n_trees), dtype=np.int32)
        slot = np.where(self.category_start >= 0, np.nan, self.threshold)
        flat = Flat(
            # Copies: what a file held may not be written to, which would be another type to compile for.
            np.array(self.roots),
            flat_nodes(self.feature, slot, self.left, self.missing_left),
            np.zeros(0),
            np.array(self.category_start) if len(self.category_bits) else np.zeros(0, dtype=np.int32),
            np.array(self.category_bits),
            np.array(self.category_counts),
            np.zeros((0, 1)),
        )
        walk(flat, X, leaves=leaves)
        return leaves

    def predict(self, X: Array) -> Array:
        """The mean over the trees of the values in the leaves that each row reaches, (n_rows, n_outputs)."""
        leaves = self.predict_leaf(X)
        total = np.zeros((len(leaves), self.value.shape[1]))
        for tree in range(self.n_trees):
            total += self.value[leaves[:, tree]]
        return total / self.n_trees

    def parents(self) -> NDArray[np.int32]:
        """The parent of each node, -1 for a root."""
        parents = np.full(len(self), -1, dtype=np.int32)
        splits = np.flatnonzero(~self.is_leaf)
        parents[self.left[splits]] = parents[self.left[splits] + 1] = splits
        return parents

    def cut(self, at: NDArray[np.bool_]) -> "Nodes":
        """The tree in which the marked nodes are leaves: what was below them is gone. Children come after parents."""
        keep, parents = np.zeros(len(self), dtype=bool), self.parents()
        for node, parent in enumerate(parents):
            keep[node] = parent < 0 or (keep[parent] and not at[parent])
        number = np.cumsum(keep) - 1
        arrays = {name: getattr(self, name)[keep] for name in _BY_NODE}
        ends = at[keep] | self.is_leaf[keep]
        words = (self.category_counts[self.feature[keep]] + WORD - 1) // WORD
        start, bits = gather_sets(np.where(ends, -1, arrays["category_start"]), words, self.category_bits)
        arrays |= {
            "roots": number[self.roots],
            "feature": np.where(ends, -1, arrays["feature"]),
            "left": np.where(ends, -1, number[np.where(ends, 0, arrays["left"])]),
            "threshold": np.where(ends, np.nan, arrays["threshold"]),
            "missing_left": np.where(ends, False, arrays["missing_left"]),
            "gain": np.where(ends, 0.0, arrays["gain"]),
            "category_start": start,
            "category_bits": bits,
            "category_counts": self.category_counts,
        }
        return Nodes(**{name: _typed(name, array) for name, array in arrays.items()})

    def tree(self, index: int) -> "Nodes":
        """One of the trees, on its own."""
        bounds = np.append(self.roots, len(self))
        nodes = slice(bounds[index], bounds[index + 1])
        left = self.left[nodes]
        parts = {name: getattr(self, name)[nodes] for name in _BY_NODE if len(getattr(self, name))}
        return Nodes(
            **{name: getattr(self, name) for name in _FIELDS}
            | parts
            | {
                "roots": np.zeros(1, dtype=np.int32),
                "left": np.where(left < 0, left, left - bounds[index]).astype(np.int32),
            }
        )

    @classmethod
    def unpack(cls, packed: Packed) -> "Nodes":
        """The nodes of packed trees (see `pack_trees`): every prediction is the same to the last bit.

        The values of splits are NaN, and ``weight``, ``impurity`` and ``gain`` are empty: they were not kept.
        """
        feature, slot, table = packed["feature"], packed["slot"], packed["leaf_values"]
        count, leaf = len(feature), feature < 0
        categorical = bits_of(packed, "categorical")
        value = np.full((count, table.shape[1]), np.nan)
        value[leaf] = table[slot[leaf].astype(np.intp)] if len(table) else slot[leaf, None]
        arrays = {
            "roots": packed["roots"],
            "missing_left": bits_of(packed, "missing_left"),
            "category_start": np.where(categorical, slot, -1),
            "category_bits": packed["category_bits"],
            "category_counts": packed["category_counts"],
        }
        nothing = dict.fromkeys(("weight", "impurity", "gain"), np.zeros(0))
        threshold = np.where(leaf | categorical, np.nan, slot)
        return cls.from_splits(feature, threshold, packed["left"], value, 0, **arrays, **nothing)


def paths_to(nodes: Nodes, leaves: NDArray[np.integer]) -> csr_array:
    """The nodes on the way from a root to each leaf: a sparse indicator, leaves by nodes."""
    parents, paths = nodes.parents(), {}
    for leaf in np.unique(leaves).tolist():
        path, node = [], leaf
        while node >= 0:
            path.append(node)
            node = int(parents[node])
        paths[leaf] = path[::-1]
    passed = [paths[leaf] for leaf in leaves.tolist()]
    ends = np.concatenate([[0], np.cumsum([len(path) for path in passed])])
    places = np.concatenate([*passed, []]).astype(np.int64)
    return csr_array((np.ones(len(places), dtype=np.int64), places, ends), shape=(len(leaves), len(nodes)))


_FIELDS = tuple(Nodes.__dataclass_fields__)
_BY_NODE = tuple(name for name in _FIELDS if name not in ("roots", "category_bits", "category_counts"))
_TYPES = {
    "roots": np.int32,
    "feature": np.int32,
    "left": np.int32,
    "missing_left": np.bool_,
    "category_start": np.int32,
    "category_bits": np.uint64,
    "category_counts": np.int32,
}


def _typed(name: str, array) -> NDArray:
    return np.ascontiguousarray(array, dtype=_TYPES.get(name, np.float64))


def gather_sets(
    start: NDArray[np.int32], words: NDArray[np.integer], bits: NDArray[np.uint64]
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Sets of categories without those that no node uses: where each node's set starts now, and the words.

    ``start`` is -1 for a node without a set, ``words`` the number of words in each node's set.
    """
    used = np.flatnonzero(start >= 0)
    chunks = [bits[start[node] : start[node] + words[node]] for node in used]
    moved = np.full(len(start), -1, dtype=np.int32)
    moved[used] = np.cumsum(words[used]) - words[used]
    return moved, np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.uint64)


def bits_of(packed: Mapping[str, NDArray], name: str) -> NDArray[np.bool_]:
    """One mark for each node from the bits that `pack_trees` made of them; none where it made no bits."""
    count = len(packed["left"])
    return np.unpackbits(packed[name], count=count).astype(bool) if name in packed else np.zeros(count, dtype=bool)


# --- packed trees -----------------------------------------------------------------------------------------------------


def pack_trees(trees: Sequence[NDArray[np.void]], binning: Binning, table: Array = NO_TABLE) -> Packed:
    """Trees grown in bins (see `empirisk.trees.binned.splits`), end to end in about 15 bytes a node.

    A leaf has no threshold and a split's own value is never predicted, so one float64 ``slot`` serves both. Where there
    is a ``table``, as for several outputs, the slot of a leaf is its row in it.
    """
    sizes = np.array([len(tree) for tree in trees], dtype=np.int64)
    roots = np.cumsum(sizes) - sizes
    nodes = np.concatenate([np.zeros(0, NODE), *trees], dtype=NODE)  # without the type NumPy would look at every field
    leaf, feature = nodes["left"] < 0, nodes["feature"]
    categorical = ~leaf & binning.categorical[feature]
    numeric = np.flatnonzero(~leaf & ~categorical)
    slot = np.where(leaf, nodes["value"], 0.0)
    slot[numeric] = binning.edges[feature[numeric], nodes["bin"][numeric]]
    marks = np.ascontiguousarray(nodes["marks"])
    missing_left = marks[:, MISSING >> 6] < 0  # its bit is the one of the sign
    narrow = np.int16 if len(binning.counts) <= np.iinfo(np.int16).max else np.int32
    packed = {
        "roots": roots.astype(np.int32),
        "feature": np.where(leaf, -1, feature).astype(narrow),
        "left": (nodes["left"] + np.where(leaf, 0, np.repeat(roots, sizes))).astype(np.int32),
        "slot": slot,
        "missing_left": np.packbits(missing_left & ~leaf),
        "category_bits": np.zeros(0, dtype=np.uint64),
        "category_counts": binning.category_counts,
        "leaf_values": table,
    }
    if categorical.any():
        left = np.unpackbits(marks.view(np.uint8), axis=1, bitorder="little").astype(bool)
        places = np.flatnonzero(categorical)
        sets = [binning.category_set(int(feature[node]), left[node]) for node in places]
        slot[places] = np.cumsum([0, *map(len, sets[:-1])])
        packed |= {"category_bits": np.concatenate(sets), "categorical": np.packbits(categorical)}
    return packed


def join(parts: Sequence[Packed]) -> Packed:
    """Packed trees end to end, in the order given."""
    sizes = np.array([len(part["left"]) for part in parts])
    shift = np.cumsum(sizes) - sizes
    leaf = np.concatenate([part["feature"] for part in parts]) < 0
    joined = {name: np.concatenate([part[name] for part in parts]) for name in ("feature", "left", "slot")}
    joined["left"] += np.where(leaf, 0, np.repeat(shift, sizes)).astype(np.int32)
    joined["roots"] = np.concatenate([part["roots"] + step for part, step in zip(parts, shift, strict=True)])
    joined["roots"] = joined["roots"].astype(np.int32)
    joined["category_counts"] = parts[0]["category_counts"]
    joined["missing_left"] = np.packbits(np.concatenate([bits_of(part, "missing_left") for part in parts]))
    # Sets of categories and rows of the table of leaf values come behind those of the trees before.
    categorical = np.concatenate([bits_of(part, "categorical") for part in parts])
    for name, mine in (("category_bits", categorical), ("leaf_values", leaf)):
        joined[name] = np.concatenate([part[name] for part in parts])
        lengths = np.array([len(part[name]) for part in parts])
        joined["slot"] += np.where(mine, np.repeat(np.cumsum(lengths) - lengths, sizes), 0.0)
    if categorical.any():
        joined["categorical"] = np.packbits(categorical)
    return joined
