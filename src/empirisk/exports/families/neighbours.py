"""Nearest neighbours as graphs: distances to all rows that are kept, and the first of them in order."""

from typing import Any

import numpy as np

from empirisk.exports.families.kernels import block, dense, diagonal
from empirisk.exports.families.maps import mapped
from empirisk.exports.registry import Answers, told_by, write_answers
from empirisk.exports.tensor import Symbolic, apply, constant
from empirisk.kernels.items import validated
from empirisk.linalg.namespace import summed_gaps
from empirisk.machines.neighbors.machines import KNNClassifier, KNNRegressor, Neighbors
from empirisk.machines.neighbors.nearest import KERNEL_ROUNDING


def _squares(machine: Neighbors, x: Symbolic) -> Symbolic:
    """Squared distances to the rows kept."""
    if machine.norms_ is None:
        return summed_gaps(mapped(machine, x), dense(machine.rows_), 2)
    kernel = machine._fitted_kernel
    with validated():
        known = kernel.prepare(machine.rows_)
    squares = np.asarray(machine.norms_, dtype=np.float64) - 2.0 * block(kernel, x, known)
    if machine.weights != "distance":
        return squares  # less k(x, x), which changes no order
    own = diagonal(kernel, x)
    seen = squares + own > KERNEL_ROUNDING * np.finfo(float).eps * np.abs(own)
    return np.where(seen, squares + own, 0.0)


def _found(machine: Neighbors, x: Symbolic) -> tuple[Symbolic, Symbolic]:
    """The places of the nearest rows, and what each counts: weight until k is reached, over the distance if asked."""
    count = min(machine._length(machine.n_neighbors_), len(machine.weights_))
    squares, places = apply("TopK", _squares(machine, x), k=count, axis=1, largest=0)
    weights = constant(machine.weights_)[places]
    before = weights @ np.triu(np.ones((count, count)), 1)
    amounts = np.minimum(np.maximum(machine.n_neighbors_ - before, 0.0), weights)
    if machine.weights != "distance":
        return places, amounts
    distances = np.sqrt(squares)
    nearest = distances.min(axis=1, keepdims=True)
    further = distances > nearest
    return places, amounts * np.where(further, nearest / np.where(further, distances, 1.0), 1.0)


def _counted(places: Symbolic, amounts: Symbolic, values: Any) -> Symbolic:
    """The sum of the values of the neighbours, each times what it counts."""
    return (constant(values)[places] * amounts[:, :, None]).sum(axis=1)


@write_answers.register
def _(machine: KNNClassifier, x: Symbolic) -> Answers:
    places, amounts = _found(machine, x)
    if isinstance(machine.classes_, list):
        labels = zip(machine.codes_.T, machine.classes_, strict=True)
        votes: Any = [_counted(places, amounts, np.eye(len(names))[codes]) for codes, names in labels]
    else:
        votes = _counted(places, amounts, np.eye(len(machine.classes_))[machine.codes_]) * machine.class_factors_
    return told_by(machine, "predict predict_proba", _scores=votes)


@write_answers.register
def _(machine: KNNRegressor, x: Symbolic) -> Answers:
    places, amounts = _found(machine, x)
    share = amounts / amounts.sum(axis=1, keepdims=True)
    means = _counted(places, share, machine.targets_.reshape(len(machine.targets_), -1))
    return {"predict": means if machine.targets_.ndim == 2 else means[:, 0]}
