"""k-means, mixtures and principal directions of rows that lie in blocks: the starts from a sample, rounds as passes."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from empirisk.clusters.expectation import ColumnMoments, Mixture, Moments
from empirisk.clusters.kmeans import check_means
from empirisk.clusters.rows import nearest
from empirisk.contract.elsewhere import RowsElsewhere
from empirisk.contract.progress import FitCallbacks
from empirisk.errors import Unsuitable
from empirisk.linalg.design import DenseDesign
from empirisk.scale.blocks import ConstantVector, add
from empirisk.scale.fitting import map_table
from empirisk.scale.table import BlockedTable
from empirisk.stop import Deadline, Ending, Stopped, interruptible, requested, stopping

Array = NDArray[np.float64]


def fit_kmeans(machine: Any, there: RowsElsewhere, sample_weight: Any, last: Array | None, watch: FitCallbacks) -> None:
    """Rounds of k-means, each one pass, from means of the ``last`` fit, those that are given, or those of a sample."""
    deadline = Deadline(machine.max_time)
    table = map_table(machine, there.table(None, sample_weight).counting())
    following = _first_means(machine, table, last)
    labels, history, ending = ConstantVector(table.place, -1.0), {"inertia": [], "changes": []}, ""
    with interruptible():
        while not ending:
            try:
                with _may_end_after(history["inertia"], deadline):
                    labels, (sums, (inertia, changes)) = table.place.run(
                        _round_of(following), table.rows, table.weights, labels, outputs=1, combine=add
                    )
            except Stopped:
                if not history["inertia"]:
                    raise
                break
            centres, counts = following, sums[:, -1]
            history["inertia"].append(float(inertia))
            history["changes"].append(float(changes))
            # A mean without rows stays where it is.
            following = np.where(counts[:, None] > 0, sums[:, :-1] / np.maximum(counts, 1e-300)[:, None], centres)
            known = {"cluster_centers_": centres, "squares_of_means_": None}
            if watch.told("round", lambda known=known: known):
                ending = Ending.CALLBACK
            elif changes == 0:
                ending = Ending.CONVERGED
            elif len(history["changes"]) > machine.max_iter:
                ending = Ending.MAX_ITER
            elif deadline():
                ending = deadline.reason
    machine.cluster_centers_, machine.squares_of_means_, machine.counts_ = centres, None, counts
    machine.labels_, machine.inertia_ = np.empty(0, np.int32), history["inertia"][-1]
    machine.n_iter_, machine.stopped_ = len(history["inertia"]), ending or deadline.reason
    machine.history_ = {name: np.array(values) for name, values in history.items()}


def _may_end_after(rounds: list[float], deadline: Deadline) -> AbstractContextManager[Any]:
    """A round is given up when the time is over; the first one, before which there is nothing to keep, by the user."""
    return stopping(deadline if rounds else requested)


def _silent(machine: Any) -> Any:
    """A clone for the sample, of whose rounds no callback is told."""
    return clone(machine).set_callbacks()


def _first_means(machine: Any, table: BlockedTable, last: Array | None) -> Array:
    """The means of the last fit where they suit, those that are given, or those of a sample."""
    shape = machine.n_clusters, table.rows.shape[1]
    if last is not None and last.shape == shape:
        return last.astype(np.float64)
    if not isinstance(machine.init, str):
        given = np.asarray(machine.init)
        if given.ndim == 1:
            raise Unsuitable("init as a list of clusters needs the rows in memory; give means (k x d).")
        check_means(given, *shape)
        return given.astype(np.float64)
    X, _, weights = table.sample()
    start = _silent(machine).set_params(features=None, batch_size=None)
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


def fit_mixture(
    machine: Any, there: RowsElsewhere, sample_weight: Any, last: Mixture | None, watch: FitCallbacks
) -> None:
    """Rounds of expectation and maximisation, each one pass, from the ``last`` mixture or that of a sample."""
    deadline = Deadline(machine.max_time)
    table = there.table(None, sample_weight).counting()
    X, _, weights = table.sample()
    start = _silent(machine)
    if last is not None and last.means.shape[1] == X.shape[1]:
        # The sample has no say in where the rounds begin.
        start.set_params(max_iter=1, n_init=1)
    else:
        last = None
    with warnings.catch_warnings(action="ignore"):  # a start need not converge
        start.fit(X, sample_weight=weights)
    machine.n_features_in_ = X.shape[1]
    if table.names is not None:
        machine.feature_names_in_ = np.array(table.names, dtype=object)
    columns = _column_moments(table)
    form, floor, history = machine.covariance_type, machine.reg_covar, []
    following, here, ending = last or start._last(), Moments(X[:1], weights[:1], form, floor, columns), ""
    with interruptible():
        while not ending:
            try:
                with _may_end_after(history, deadline):
                    likelihood, sums = table.place.run(
                        _expectation_of(following, form, floor, columns), table.rows, table.weights, combine=add
                    )
            except Stopped:
                if not history:
                    raise
                break
            mixture = following
            history.append(likelihood / columns.weight)
            if watch.told("round", lambda mixture=mixture: mixture.attributes(form)):
                ending = Ending.CALLBACK
            elif len(history) > 1 and history[-1] - history[-2] <= machine.tol:
                ending = Ending.CONVERGED
            elif len(history) == machine.max_iter:
                ending = Ending.MAX_ITER
            elif deadline():
                ending = deadline.reason
            else:
                following = here._of_sums(sums)
    machine.__dict__.update({name: value for name, value in vars(start).items() if name.endswith("_")})
    machine.__dict__.update(mixture.attributes(form))
    machine.history_, machine.lower_bound_ = {"log_likelihood": np.array(history)}, float(history[-1])
    machine.n_iter_, machine.stopped_ = len(history), ending or deadline.reason
    machine.converged_ = machine.stopped_ == Ending.CONVERGED
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
