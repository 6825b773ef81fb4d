"""Trees and forests as scikit-learn's own, for programs that know those alone: dtreeviz, plot_tree, recursion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import ensemble, tree
from sklearn.tree import _tree as internals
from sklearn.utils.validation import check_is_fitted

from empirisk.errors import Unsuitable
from empirisk.trees.nodes import Nodes, paths_to
from empirisk.trees.table_columns import read_new


def scikit_learn_trees(machine: Any, X: ArrayLike | None = None) -> Any:
    """A fitted tree or forest as scikit-learn's machine of that kind.

    It takes rows in float32, as all of scikit-learn's trees do: a row within the rounding of a threshold may go the
    other way.

    Parameters
    ----------
    machine : tree or forest
        Fitted, without columns of categories, for one column of classes or numbers.
    X : rows, optional
        The training rows, of which the nodes then have counts: those of a forest keep none, and partial dependence by
        recursion needs them.

    Examples
    --------
    >>> machine = er.TreeRegressor(max_depth=1).fit([[0.0], [1.0]], [0.0, 2.0])
    >>> scikit_learn_trees(machine).predict([[0.2], [0.8]])
    array([0., 2.])
    """
    check_is_fitted(machine)
    nodes, classes = getattr(machine, "nodes_", None), getattr(machine, "classes_", None)
    if not isinstance(nodes, Nodes) or hasattr(machine, "baseline_"):
        raise Unsuitable(f"{type(machine).__name__} is no tree or forest; give one of those.")
    if (nodes.category_start >= 0).any():
        raise Unsuitable(
            "Splits by sets of categories have no form in scikit-learn's trees; learn from codes as numbers."
        )
    if isinstance(classes, list):
        raise Unsuitable("scikit-learn's trees have one column of labels here; learn one label at a time.")
    rows = None if X is None else read_new(machine, X)
    if not hasattr(machine, "estimators_"):
        return _as_machine(nodes, classes, rows, machine)
    kind = ensemble.RandomForestRegressor if classes is None else ensemble.RandomForestClassifier
    forest = kind(n_estimators=machine.n_estimators_)
    forest.estimators_ = [_as_machine(one.nodes_, classes, rows, one, forest=True) for one in machine.estimators_]
    return _fitted(forest, machine, classes)


def _fitted(theirs: Any, machine: Any, classes: NDArray | None) -> Any:
    """With the attributes that say what it was fitted to."""
    theirs.n_features_in_, theirs.n_outputs_ = machine.n_features_in_, 1
    if classes is not None:
        theirs.classes_, theirs.n_classes_ = classes, len(classes)
    return theirs


def _as_machine(nodes: Nodes, classes: NDArray | None, rows: Any, machine: Any, forest: bool = False) -> Any:
    """One tree; those of a forest of classes number them."""
    theirs = tree.DecisionTreeRegressor() if classes is None else tree.DecisionTreeClassifier()
    theirs.tree_, theirs.max_features_ = _structure(nodes, rows, machine.n_features_in_), machine.n_features_in_
    numbered = classes if classes is None or not forest else np.arange(len(classes), dtype=np.float64)
    return _fitted(theirs, machine, numbered)


def _structure(nodes: Nodes, rows: Any, columns: int) -> Any:
    leaf, count = np.asarray(nodes.is_leaf), len(nodes)
    weight = nodes.weight if len(nodes.weight) else np.ones(count)
    if rows is not None:
        paths = paths_to(nodes, nodes.predict_leaf(rows)[:, 0])
        weight = np.asarray(paths.sum(axis=0), dtype=np.float64).ravel()
    table: Any = np.zeros(count, internals.NODE_DTYPE)
    table["left_child"] = np.where(leaf, -1, nodes.left)
    table["right_child"] = np.where(leaf, -1, nodes.left + 1)
    table["feature"] = np.where(leaf, -2, nodes.feature)
    table["threshold"] = np.where(leaf, -2.0, nodes.threshold)
    table["impurity"] = nodes.impurity if len(nodes.impurity) else 0.0
    table["n_node_samples"], table["weighted_n_node_samples"] = np.rint(weight), weight
    table["missing_go_to_left"] = nodes.missing_left
    values = np.nan_to_num(nodes.value)[:, None, :]
    depth = np.zeros(count, dtype=int)
    for node, parent in enumerate(nodes.parents()):
        depth[node] = depth[parent] + 1 if parent >= 0 else 0
    found = internals.Tree(columns, np.array([values.shape[2]], dtype=np.intp), 1)
    found.__setstate__({"max_depth": int(depth.max()), "node_count": count, "nodes": table, "values": values})
    return found
