"""Weak learners for boosting by weights: any machine that takes weights, and trees whose columns are sorted once."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from empirisk.contract.members import seeded
from empirisk.errors import EmpiriskError
from empirisk.trees.nodes import Nodes
from empirisk.trees.tree import TreeClassifier, numbered

Array = NDArray[np.float64]


class Learner(Protocol):
    """Fits a weak machine to the same rows again and again, with other weights."""

    def fit(self, weights: Array, seed: int) -> tuple[Any, NDArray[np.int64]]:
        """A machine for these weights, and the class numbers that it gives the rows."""
        ...


class AnyLearner:
    """A machine of any kind, fitted anew in every round."""

    def __init__(self, machine: Any, X: Any, y: NDArray, classes: NDArray):
        if not has_fit_parameter(machine, "sample_weight"):
            raise EmpiriskError(
                f"estimator={machine!r} does not take sample_weight in fit, which boosting by weights needs; "
                "use a machine that does, or BaggingClassifier."
            )
        self._machine, self._X, self._y, self._classes = machine, X, y, classes

    def fit(self, weights: Array, seed: int) -> tuple[Any, NDArray[np.int64]]:
        """A machine for these weights, and the class numbers that it gives the rows."""
        member = seeded(self._machine, seed).fit(self._X, self._y, sample_weight=weights)
        return member, numbered(np.asarray(member.predict(self._X)), self._classes)


class TreeLearner:
    """Trees on columns that are sorted once for all rounds.

    ``fitted`` are the attributes that every tree shares: names, columns, classes.
    """

    def __init__(self, machine: TreeClassifier, X: Array, labels: NDArray[np.int64], fitted: dict[str, Any]):
        self._machine, self._X, self._labels, self._fitted = machine, X, labels[:, None].astype(np.float64), fitted
        self._grower = machine.grower(X, fitted["columns_"].counts, reuse=True)

    def fit(self, weights: Array, seed: int) -> tuple[TreeClassifier, NDArray[np.int64]]:
        """A tree for these weights, and the class numbers that it gives the rows."""
        member = clone(self._machine)
        vars(member).update(self._fitted)
        member.nodes_ = member.grow_on(self._grower, self._labels, weights)
        return member, said_by_nodes(member.nodes_, self._X)


def said_by_nodes(nodes: Nodes, X: Array) -> NDArray[np.int64]:
    """The class numbers that a tree gives to checked rows."""
    return nodes.value.argmax(axis=1)[nodes.predict_leaf(X)[:, 0]]


def shares_columns(machine: Any) -> bool:
    """Whether a learner is a tree that can be grown on columns sorted once: nothing but weights changes its rows."""
    plain = type(machine) is TreeClassifier and machine.max_features is None
    return plain and machine.class_weight is None and machine.ccp_alpha == 0
