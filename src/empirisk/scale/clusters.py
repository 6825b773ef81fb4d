"""k-means, mixtures and principal directions of rows that lie in blocks: the starts from a sample, rounds as passes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk.clusters.expectation import ColumnMoments, Mixture, Moments
from empirisk.clusters.rows import nearest
from empirisk.contract.elsewhere import RowsElsewhere
from empirisk.linalg.design import DenseDesign
from empirisk.scale.blocks import ConstantVector, add
from empirisk.scale.fitting import map_table
from empirisk.scale.table import BlockedTable
from empirisk.stop import Deadline, Ending, interruptible

Array = NDArray[np.float64]


def fit_kmeans(machine: Any, there: RowsElsewhere, sample_weight: Any) -> None:
    """Rounds of k-means, each one pass, from the means of a sample or those that are given."""
    deadline = Deadline(machine.max_time)
    table = map_table(machine, there.table(None, sample_weight).counting())
    centres = _first_means(machine, table)
    labels, history = ConstantVector(table.place, -1.0), {"inertia": [], "changes": []}
    ending = Ending.MAX_ITER
    with interruptible():
        while True:
            labels, (sums, numbers) = table.place.run(
                _round_of(centres), table.rows, table.weights, labels, outputs=1, combine=add
            )
            inertia, changes = numbers
            counts = sums[:, -1]
            history["inertia"].append(float(inertia))
            history["changes"].append(float(changes))
            if changes == 0:
                ending = Ending.CONVERGED
                break
            if len(history["changes"]) > machine.max_iter or deadline():
                ending = deadline.reason or ending
                break
            # A mean without rows stays where it is.
            centres = np.where(counts[:, None] > 0, sums[:, :-1] / np.maximum(counts, 1e-300)[:, None], centres)
    machine.cluster_centers_, machine.squares_of_means_, machine.counts_ = centres, None, counts
    machine.labels_, machine.inertia_ = np.empty(0, np.int32), history["inertia"][-1]
    machine.n_iter_, machine.stopped_ = len(history["inertia"]), ending
    machine.history_ = {name: np.array(values) for name, values in history.items()}


def _first_means(machine: Any, table: BlockedTable) -> Array:
    """The means that are given, or those of a sample."""
    if not isinstance(machine.init, str):
        return np.array(machine.init, dtype=np.float64)
    X, _, weights = table.sample()
    start = clone(machine).set_params(features=None, batch_size=None)
    with warnings.catch_warnings(action="ignore"):  # a start need not converge
        return start.fit(X, sample_weight=weights).cluster_centers_


def _round_of(centres: Array) -> Any:
    """What a round makes of a block: the clusters, the sums and weights of each, the sum of squares, the changes."""

    def run(X: NDArray, weights: Array, before: Array) -> tuple:
        labels, squares = nearest(DenseDesign(X), centres)
        sums = np.zeros((len(centres), X.shape[1] + 1))
        weighted = np.column_stack([X * weights[:, None], weights])
        np.add.at(sums, labels, weighted)
        return labels.astype(float), (sums, np.array([weights @ squares, np.count_nonzero(labels != before)]))

    return run


def fit_mixture(machine: Any, there: RowsElsewhere, sample_weight: Any) -> None:
    """Rounds of expectation and maximisation, each one pass, from the mixture of a sample."""
    deadline = Deadline(machine.max_time)
    table = there.table(None, sample_weight).counting()
    X, _, weights = table.sample()
    with warnings.catch_warnings(action="ignore"):  # a start need not converge
        start = clone(machine).fit(X, sample_weight=weights)
    columns = _column_moments(table)
    form, floor, history, mixture = machine.covariance_type, machine.reg_covar, [], start._last()
    here = Moments(X[:1], weights[:1], form, floor, columns)
    ending = Ending.MAX_ITER
    with interruptible():
        for _ in range(machine.max_iter):
            likelihood, sums = table.place.run(
                _expectation_of(mixture, form, floor, columns), table.rows, table.weights, combine=add
            )
            history.append(likelihood / columns.weight)
            if len(history) > 1 and history[-1] - history[-2] <= machine.tol:
                ending = Ending.CONVERGED
                break
            if deadline():
                ending = deadline.reason
                break
            mixture = here._of_sums(sums)
    machine.__dict__.update({name: value for name, value in vars(start).items() if name.endswith("_")})
    machine.__dict__.update(mixture.attributes(form))
    if table.names is not None:
        machine.feature_names_in_ = np.array(table.names, dtype=object)
    machine.history_, machine.lower_bound_ = {"log_likelihood": np.array(history)}, float(history[-1])
    machine.n_iter_, machine.converged_, machine.stopped_ = len(history), ending == Ending.CONVERGED, ending
    machine.seen_ = dict(vars(columns))


def _column_moments(table: BlockedTable) -> ColumnMoments:
    """The weight, means and variances of the columns, in two passes: the second is around the means."""
    total, sums = table.place.run(lambda X, w: (float(w.sum()), w @ X), table.rows, table.weights, combine=add)
    mean = sums / total
    squares = table.place.run(lambda X, w: w @ (X - mean) ** 2, table.rows, table.weights, combine=add)
    return ColumnMoments(total, mean, squares / total)


def _expectation_of(mixture: Mixture, form: str, floor: float, columns: ColumnMoments) -> Any:
    def run(X: NDArray, weights: Array) -> tuple[float, Array]:
        block = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(weights)
        likelihood, sums = Moments(*block, form, floor, columns)._expected(mixture)
        return likelihood * float(weights.sum()), sums

    return run
