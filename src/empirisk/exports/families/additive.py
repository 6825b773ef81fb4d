"""Additive machines as graphs: the bin of every column, and tables of what the bins add."""

from functools import reduce
from typing import Any

import numpy as np

from empirisk.exports.families.trees import coded
from empirisk.exports.registry import Answers, told_by, write_answers
from empirisk.exports.tensor import Symbolic, constant
from empirisk.trees.additive.machines import Additive, AdditiveClassifier, AdditiveRegressor
from empirisk.trees.binned.bins import MISSING


def bin_of(machine: Additive, column: int, x: Symbolic) -> Symbolic:
    """The bin of a column of rows: how many edges are below its values, or that of the category."""
    known = machine.category_bins_[column]
    missing = np.isnan(x[:, column])
    if known is not None:
        # One more bin, so that a column without categories has a table too.
        place = np.where(missing, float(len(known)), x[:, column]).astype(int)
        return constant(np.append(known, MISSING).astype(np.int64))[place]
    edges = machine.edges_[column]
    below = (x[:, [column]] > edges[np.isfinite(edges)]).astype(np.float64).sum(axis=1)
    return np.where(missing, float(MISSING), below).astype(int)


@write_answers.register(AdditiveClassifier)
@write_answers.register(AdditiveRegressor)
def _(machine: Any, x: Any) -> Answers:
    x = coded(machine.columns_, x)
    bins = [bin_of(machine, column, x) for column in range(machine.n_features_in_)]
    terms = [constant(shape)[own] for shape, own in zip(machine.shapes_, bins, strict=True)]
    for (left, right), grid in zip(machine.pairs_, machine.grids_, strict=True):
        side = grid.shape[1]
        row, place = (constant(machine.coarse_[k].astype(np.float64))[bins[k]] for k in (left, right))
        terms.append(constant(grid.reshape(-1, grid.shape[2]))[(float(side) * row + place).astype(int)])
    scores = reduce(np.add, terms) + machine.intercept_
    return told_by(machine, "predict predict_proba decision_function", _scores=scores)
