"""From grown trees in bins to the compact form of `empirisk.trees.nodes.Nodes.pack`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.binned.bins import MISSING, Binning
from empirisk.trees.binned.splits import NODE

Array = NDArray[np.float64]
Packed = dict[str, NDArray]


def finish(nodes: NDArray[np.void], roots: NDArray, table: Array, binning: Binning) -> Packed:
    """Grown trees (see `empirisk.trees.binned.splits`) end to end as packed arrays.

    Where there is a ``table``, the values of leaves are rows in it.
    """
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
        "left": nodes["left"].astype(np.int32),
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
    joined["missing_left"] = np.packbits(np.concatenate([_bits(part, "missing_left") for part in parts]))
    # Sets of categories and rows of the table of leaf values come behind those of the trees before.
    categorical = np.concatenate([_bits(part, "categorical") for part in parts])
    for name, mine in (("category_bits", categorical), ("leaf_values", leaf)):
        joined[name] = np.concatenate([part[name] for part in parts])
        lengths = np.array([len(part[name]) for part in parts])
        joined["slot"] += np.where(mine, np.repeat(np.cumsum(lengths) - lengths, sizes), 0.0)
    if categorical.any():
        joined["categorical"] = np.packbits(categorical)
    return joined


def _bits(part: Packed, name: str) -> NDArray[np.uint8]:
    count = len(part["left"])
    return np.unpackbits(part[name], count=count) if name in part else np.zeros(count, dtype=np.uint8)


def no_trees(binning: Binning) -> Packed:
    """The packed form of no tree at all."""
    return finish(np.zeros(0, dtype=NODE), np.zeros(0, dtype=np.int32), np.zeros((0, 1)), binning)
