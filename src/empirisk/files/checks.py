"""What must hold in a loaded state before compiled code walks it: a tree that points outside would read other memory.

Everything else that a wrong state can do ends in an ordinary error of NumPy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.files.archive import damaged
from empirisk.trees.nodes import WORD, Nodes

_TYPES = {
    "roots": np.int32,
    "left": np.int32,
    "slot": np.float64,
    "missing_left": np.uint8,
    "category_bits": np.uint64,
    "category_counts": np.int32,
    "leaf_values": np.float64,
}


def check_state(state: dict[str, Any]) -> None:
    """Raise unless the trees and the kept rows in the state of a machine fit its columns and outputs."""
    _check_trees(state)
    _check_rows(state)


def _check_rows(state: dict[str, Any]) -> None:
    """Rows that were kept from training must be as wide as new ones will be, and their classes must exist."""
    columns, mapped = state.get("n_features_in_"), hasattr(state.get("features_"), "transform")
    for name in ("support_vectors_", "landmarks_", "rows_"):
        shape = getattr(state.get(name), "shape", ())
        if columns is not None and not mapped and len(shape) == 2 and shape[1] != columns:
            raise damaged("the rows in it do not fit the number of columns")
    if "rows_" not in state:
        return
    rows, weights = state["rows_"], np.asarray(state.get("weights_", ()))
    count = len(weights)
    codes = np.asarray(state.get("codes_", np.zeros(count, dtype=np.int64)))
    kept = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    classes = len(state.get("classes_", (0,)))
    if kept != count or codes.shape != (count,) or np.any(codes < 0) or np.any(codes >= classes):
        raise damaged("the rows in it do not fit their classes")


def _check_trees(state: dict[str, Any]) -> None:
    nodes = state.get("nodes_")
    packed = state.get("packed_")
    if packed is not None:
        nodes = _unpacked(packed)
    if nodes is None:
        return
    if not isinstance(nodes, Nodes):
        raise damaged("its trees are of an unknown kind")
    if packed is not None:
        check_nodes(nodes)
    if len(nodes.category_counts) != state.get("n_features_in_"):
        raise damaged("its trees do not fit the number of columns")
    _check_outputs(nodes, state)


def _check_outputs(nodes: Nodes, state: dict[str, Any]) -> None:
    """The values in the leaves must have the width that the machine writes them to."""
    outputs, trees = nodes.value.shape[1], nodes.n_trees
    baseline = state.get("baseline_")
    if baseline is not None:
        if outputs != 1 or np.shape(baseline) != (len(baseline),) or trees != state["n_estimators_"] * len(baseline):
            raise damaged("its trees do not fit the number of outputs")
    elif "packed_" in state and outputs > 1 and outputs != len(state.get("classes_", ())):
        raise damaged("its trees do not fit the number of classes")


def _unpacked(packed: Any) -> Nodes:
    """The nodes of a packed forest, once its arrays have the types that compiled code takes."""
    if not isinstance(packed, dict) or not set(_TYPES) | {"feature"} <= set(packed):
        raise damaged("its forest is not whole")
    if any(packed[name].dtype != kind for name, kind in _TYPES.items()) or packed["feature"].dtype.kind != "i":
        raise damaged("its forest holds numbers of another type")
    slot, leaf = packed["slot"], packed["feature"] < 0
    table = packed["leaf_values"]
    # Slots of leaves are rows of the table; NumPy would count a negative one from the end, compiled code would not.
    if len(table) and not np.all((slot[leaf] >= 0) & (slot[leaf] < len(table))):
        raise damaged("its forest points outside its leaves")
    return Nodes.unpack(packed)


def check_nodes(nodes: Nodes) -> None:
    """Raise unless every path through the trees ends at a leaf and stays inside the arrays."""
    count = len(nodes.feature)
    by_node = (nodes.threshold, nodes.left, nodes.missing_left, nodes.category_start, nodes.value)
    if any(len(array) != count for array in by_node) or nodes.value.ndim != 2:
        raise damaged("its trees have arrays of different lengths")
    features = len(nodes.category_counts)
    roots, feature, left = (_whole(array) for array in (nodes.roots, nodes.feature, nodes.left))
    if np.any(feature >= features) or np.any(feature < -1) or np.any(nodes.category_counts < 0):
        raise damaged("its trees split on columns that do not exist")
    starts_well = len(roots) == 0 if count == 0 else len(roots) > 0 and roots[0] == 0
    if not starts_well or np.any(np.diff(roots) <= 0) or np.any(roots >= count):
        raise damaged("its trees do not start where they should")
    _check_children(roots, left, np.flatnonzero(feature >= 0), count)
    _check_sets(nodes, feature)


def _check_children(roots: NDArray, left: NDArray, splits: NDArray, count: int) -> None:
    """Every node but a root is the child of one earlier node of its own tree."""
    children = left[splits]
    ends = np.append(roots[1:], count)[np.searchsorted(roots, splits, side="right") - 1] if len(splits) else splits
    if np.any(children <= splits) or np.any(children + 1 >= ends):
        raise damaged("its trees point outside themselves")
    parents = np.bincount(np.concatenate([children, children + 1]), minlength=count)
    parents[roots] += 1
    if np.any(parents != 1):
        raise damaged("its trees are not trees")


def _check_sets(nodes: Nodes, feature: NDArray) -> None:
    """The set of categories of every categorical split lies inside the words."""
    start = _whole(nodes.category_start)
    with_sets = np.flatnonzero((start >= 0) & (feature >= 0))
    words = (nodes.category_counts[feature[with_sets]].astype(np.int64) + WORD - 1) // WORD
    if np.any(start[with_sets] + words > len(nodes.category_bits)):
        raise damaged("its trees point outside their categories")


def _whole(array: NDArray) -> NDArray[np.int64]:
    if array.dtype.kind != "i" or array.ndim != 1:
        raise damaged("its trees hold numbers of another type")
    return array.astype(np.int64)
