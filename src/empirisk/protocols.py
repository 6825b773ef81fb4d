"""What rooms ask of objects that other rooms, or users, make: a protocol for each, and the question whether one is met.

An object is known by its methods, as in scikit-learn. The questions use `hasattr`, since `isinstance` with a protocol
takes the class alone: a pipeline has ``transform`` only where its last step does.
"""

from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from empirisk.fits.fit import Fit, SolverRun
    from empirisk.machines.base import Problems
    from empirisk.machines.online import OnlineSteps
    from empirisk.problem import Problem
    from empirisk.solvers.base import Watch
    from empirisk.trees.nodes import Nodes
    from empirisk.trees.table_columns import Columns


class FeatureMap(Protocol):
    """An explicit phi in the slot ``features``: any transformer of scikit-learn."""

    def fit(self, X: Any, y: Any = None, /) -> Any:
        """Learn from rows what the map needs."""
        ...

    def transform(self, X: Any, /) -> Any:
        """phi of every row."""
        ...


class BlockwiseMap(FeatureMap, Protocol):
    """A map that need not keep phi(X): it makes a block of rows at a time."""

    def mapped(self, X: Any, late: "Callable[[], bool] | None" = None, /) -> Any:
        """phi(X), or a design that makes it block by block."""
        ...

    def products(self, X: Any, w: NDArray[np.float64], /) -> NDArray[np.float64]:
        """phi(X) w."""
        ...


class LearningFeatures(Protocol):
    """Features, a map or a kernel, that learn together with the machine."""

    def learn_with(self, problems: "list[Problem]", run: "SolverRun", /) -> "tuple[list[Problem], list[Fit]]":
        """Learn with the problems of a machine: the problems on the learned features, and their fits."""
        ...


class LearningMap(FeatureMap, LearningFeatures, Protocol):
    """A map that learns together with the machine, such as a network."""


class SteppingMap(LearningMap, Protocol):
    """A map that learns together with the machine from rows as they come."""

    def step_with(self, X: Any, problems: "list[Problem]", watch: "Watch", /) -> "OnlineSteps":
        """One pass over some rows with the problems of a machine: what `partial_fit` does."""
        ...


class HasProblems(Protocol):
    """A machine that states its equation as problems."""

    loss: Any
    penalty: Any
    features: Any
    C: Any
    solver: Any

    def problems(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "Problems":
        """The problems that `fit` would solve."""
        ...


class TreeModel(Protocol):
    """A fitted tree, or trees joined: a forest, or boosting."""

    nodes_: "Nodes"
    columns_: "Columns"
    n_features_in_: int


class WeightedMembers(Protocol):
    """A fitted machine whose prediction is a weighted sum of those of its members."""

    def weighted_members(self) -> list[tuple[float, Any]]:
        """The weight of each member in the sum, and the member."""
        ...


class Contributes(Protocol):
    """A fitted machine whose f is a constant and a sum of what each column adds."""

    def contributions(self, X: Any, /) -> NDArray[np.float64]:
        """What each column adds to each output, rows x columns x outputs."""
        ...


def has_contributions(machine: Any) -> TypeGuard[Contributes]:
    """Whether a machine says itself what each column adds to f."""
    return hasattr(machine, "contributions")


def is_map(features: Any) -> TypeGuard[FeatureMap]:
    """Whether features are an explicit map, not a kernel.

    >>> is_map(er.maps.Polynomial(2)), is_map(er.kernels.Gaussian())
    (True, False)
    """
    return hasattr(features, "transform")


def is_blockwise(features: Any) -> TypeGuard[BlockwiseMap]:
    """Whether a map makes phi(X) a block of rows at a time."""
    return hasattr(features, "mapped")


def learns_with_machine(features: Any) -> TypeGuard[LearningFeatures]:
    """Whether features, a map or a kernel, learn together with the machine.

    >>> several = er.maps.SeveralKernels([er.kernels.Linear(), er.kernels.Gaussian()])
    >>> learns_with_machine(several), is_learning_map(several)
    (True, False)
    """
    return hasattr(features, "learn_with")


def is_learning_map(features: Any) -> TypeGuard[LearningMap]:
    """Whether features are a map that learns together with the machine."""
    return is_map(features) and learns_with_machine(features)


def takes_steps(features: Any) -> TypeGuard[SteppingMap]:
    """Whether a map that learns together with the machine can do so from rows as they come."""
    return is_learning_map(features) and hasattr(features, "step_with")


def has_problems(machine: Any) -> TypeGuard[HasProblems]:
    """Whether a machine states its equation as problems.

    >>> has_problems(er.SVM()), has_problems(er.TreeClassifier())
    (True, False)
    """
    return hasattr(machine, "problems")


def is_grown(machine: Any) -> TypeGuard[TreeModel]:
    """Whether a machine is made of trees that have been grown."""
    return hasattr(machine, "nodes_")


def has_weighted_members(machine: Any) -> TypeGuard[WeightedMembers]:
    """Whether a machine predicts a weighted sum of what its members predict."""
    return hasattr(machine, "weighted_members")
