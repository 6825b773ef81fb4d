"""Trees as SHAP knows them: ``shap.TreeExplainer(tree_model(machine), X)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import Unsuitable
from empirisk.trees.nodes import Nodes


def tree_model(machine: Any) -> dict[str, Any]:
    """The trees of a fitted machine as the dictionary that ``shap.TreeExplainer`` takes.

    What is explained is a prediction of numbers, f(x) of boosting for two classes, or the probability of the second of
    two classes.

    Parameters
    ----------
    machine : tree, forest or boosting machine
        Fitted, with one output or two classes.

    Examples
    --------
    >>> machine = er.TreeRegressor(max_depth=1).fit([[0.0], [1.0]], [0.0, 2.0])
    >>> [tree["values"].ravel().tolist() for tree in tree_model(machine)["trees"]]
    [[1.0, 0.0, 2.0]]
    """
    check_is_fitted(machine)
    nodes: Nodes | None = getattr(machine, "nodes_", None)
    if nodes is None:
        raise Unsuitable(f"{type(machine).__name__} has no trees; give a tree, a forest or boosting.")
    if (nodes.category_start >= 0).any():
        raise Unsuitable("Splits by sets of categories have no form in SHAP's trees; learn from codes as numbers.")
    classes = getattr(machine, "classes_", None)
    outputs, count = nodes.value.shape[1], 0 if classes is None or isinstance(classes, list) else len(classes)
    boosted = hasattr(machine, "baseline_")
    several = isinstance(classes, list) or count > 2 or (classes is None and outputs > 1)
    if several or (boosted and len(machine.baseline_) > 1):
        raise Unsuitable("SHAP's trees have one output here; learn one class against the others, or one target.")
    # The leaves of a classifying tree hold a share of each class; a forest keeps that of the second alone.
    values = nodes.value[:, -1] / (1.0 if boosted else nodes.n_trees)
    trees = [_tree(nodes, index, values) for index in range(nodes.n_trees)]
    return {"trees": trees, "base_offset": float(machine.baseline_[0]) if boosted else 0.0}


def _tree(nodes: Nodes, index: int, values: np.ndarray) -> dict[str, Any]:
    """One of the trees. Splits hold no value where they were not kept: SHAP reads those of leaves."""
    bounds = np.append(nodes.roots, len(nodes))
    own = slice(bounds[index], bounds[index + 1])
    leaf, left = nodes.is_leaf[own], nodes.left[own] - bounds[index]
    children = np.where(leaf, -1, left)
    weight = nodes.weight[own] if len(nodes.weight) else np.ones(len(leaf))
    right = np.where(leaf, -1, left + 1)
    return {
        "children_left": children,
        "children_right": right,
        "children_default": np.where(nodes.missing_left[own], children, right),
        "features": np.where(leaf, -2, nodes.feature[own]),
        "thresholds": np.where(leaf, 0.0, nodes.threshold[own]),
        "values": np.nan_to_num(values[own])[:, None],
        "node_sample_weight": weight,
    }
