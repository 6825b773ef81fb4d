"""Permutation importance: how much the score of a fitted machine falls when columns are shuffled among the rows.

The shuffling is scikit-learn's. It shuffles single columns of arrays and pandas frames, so it is given
row numbers in place of the table: entry (i, g) says from which row the columns of group g take their values in row i.
Sparse matrices, frames of every library and groups of columns (all that the encoder makes of one column of a table) are
then the same thing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import hstack, issparse
from sklearn.inspection import permutation_importance
from sklearn.metrics import check_scoring

from empirisk.contract.arguments import check_count
from empirisk.contract.inputs import Array, generator
from empirisk.extras import data_frame

if TYPE_CHECKING:
    import polars as pl

#: Scores a machine on a table and its target.
Scorer = Callable[..., float]

BLOCK = 256  # groups that scikit-learn is given at once: a table of row numbers is dense, and X may be sparse and wide
#: Rows below which nothing is said in a limited time, and groups whose time is foreseen: those that a report shows.
LEAST_ROWS, FIRST_GROUPS = 100, 40


def shuffled(X: Any, columns: NDArray[np.intp], order: NDArray[np.intp]) -> Any:
    """The table with the values of some columns in another order of the rows."""
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        other = frame[order.tolist()]
        moved = (other[frame.columns[column]] for column in columns)
        made = [nw.new_series(one.name, one.to_native(), backend=frame.implementation) for one in moved]
        return frame.with_columns(*made).to_native()
    if issparse(X):
        others = np.setdiff1d(np.arange(X.shape[1]), columns)
        apart = hstack([X[:, others], X[order][:, columns]], format="csr")
        return apart[:, np.argsort(np.concatenate([others, columns]))]
    X = X.copy()
    X[:, columns] = X[np.ix_(order, columns)]
    return X


def falls(
    machine: Any,
    X: Any,
    y: ArrayLike,
    groups: Sequence[NDArray[np.intp]],
    score: Scorer,
    n_repeats: int,
    seed: int,
    sample_weight: ArrayLike | None = None,
) -> Array:
    """How much the score falls when the columns of each group are shuffled together, groups x repeats.

    Parameters
    ----------
    machine : estimator
        The fitted machine.
    X, y : table and target
        Rows that were not used in `fit`; an array, a sparse matrix in CSR or a data frame.
    groups : list of arrays
        The numbers of the columns of each group.
    score : callable
        ``score(machine, X, y)``, greater is better.
    n_repeats, seed : int
        How often each group is shuffled, and what decides the shuffles.
    sample_weight : array, optional
        Weights of the rows, handed to ``score``.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> machine = er.LeastSquares().fit(X, X[:, 0])
    >>> found = falls(machine, X, X[:, 0], [np.array([0, 1]), np.array([2])], check_scoring(machine), 2, 0)
    >>> (found[0] > 1).all(), np.allclose(found[1], 0)
    (np.True_, True)
    """
    if len(groups) > BLOCK:
        parts = [groups[start : start + BLOCK] for start in range(0, len(groups), BLOCK)]
        return np.concatenate([falls(machine, X, y, part, score, n_repeats, seed, sample_weight) for part in parts])
    rows = np.arange(X.shape[0])[:, None]

    def score_rows(machine: Any, picked: NDArray[np.intp], y: ArrayLike, **weights: Any) -> float:
        table = X
        for group in np.flatnonzero((picked != rows).any(axis=0)):
            table = shuffled(table, groups[int(group)], picked[:, group])
        return score(machine, table, y, **weights)

    options = {"n_repeats": n_repeats, "random_state": seed, "sample_weight": sample_weight}
    return permutation_importance(
        machine, np.tile(rows, (1, len(groups))), y, scoring=score_rows, **options
    ).importances


def falls_in_time(
    machine: Any,
    X: NDArray,
    y: NDArray,
    groups: Sequence[NDArray[np.intp]],
    score: Scorer,
    n_repeats: int,
    seed: int,
    seconds: float,
) -> list[tuple[int, float, float]]:
    """The groups whose shuffling was tried alone, with mean and deviation of the fall; none where time is short.

    Where groups are many, several are shuffled together, and those whose score falls most are taken apart as long as
    the time lasts.
    """
    deadline = time.perf_counter() + seconds
    begin = time.perf_counter()
    score(machine, X, y)
    now = time.perf_counter()
    first = min(len(groups), FIRST_GROUPS)
    affordable = int(len(X) * (deadline - now) / (2 * (now - begin) * n_repeats * first))
    if affordable < min(len(X), LEAST_ROWS):
        return []
    X, y = X[:affordable], y[:affordable]

    def tried(parts: list[NDArray[np.intp]]) -> list[tuple[NDArray[np.intp], Array]]:
        together = [np.concatenate([groups[k] for k in part]) for part in parts]
        return list(zip(parts, falls(machine, X, y, together, score, n_repeats, seed), strict=True))

    found = tried(np.array_split(np.arange(len(groups)), first))
    while time.perf_counter() < deadline and any(len(part) > 1 for part, _ in found):
        place = max((k for k in range(len(found)) if len(found[k][0]) > 1), key=lambda k: found[k][1].mean())
        found += tried(np.array_split(found.pop(place)[0], 2))
    return [(int(part[0]), float(fall.mean()), float(fall.std())) for part, fall in found if len(part) == 1]


class Importances:
    """Adds `importances`, unbiased because it looks at rows that the machine has not seen."""

    def importances(
        self,
        X: Any,
        y: ArrayLike,
        *,
        n_repeats: int = 10,
        scoring: Any = None,
        random_state: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> pl.DataFrame:
        """How much the score on held-out rows falls when one column is shuffled (permutation importance).

        A column of noise has an importance of zero up to chance, however many values it has; on the training rows,
        a machine that has learned the noise by heart would seem to need it.

        Parameters
        ----------
        X, y : table and target
            Rows that were not used in `fit`.
        n_repeats : int
            How often each column is shuffled.
        scoring : str, callable or None
            What to measure; None is the machine's own ``score`` (accuracy or R^2).
        random_state : int, RandomState or None
            Decides the shuffles.
        sample_weight : array, optional
            Weights of the rows.

        Returns
        -------
        polars.DataFrame
            Columns ``feature``, ``importance`` (mean fall of the score) and ``deviation`` (over the shuffles).
        """
        check_count("n_repeats", n_repeats)
        if not nw.dependencies.is_into_dataframe(X):
            X = X.tocsr() if issparse(X) else np.asarray(X)
        score, seed = check_scoring(self, scoring=scoring), int(generator(random_state).integers(2**31))
        columns = [np.array([column]) for column in range(X.shape[1])]
        found = falls(self, X, y, columns, score, n_repeats, seed, sample_weight)
        names = getattr(self, "feature_names_in_", [f"x{column}" for column in range(X.shape[1])])
        return data_frame(
            {
                "feature": [str(name) for name in names],
                "importance": found.mean(axis=1),
                "deviation": found.std(axis=1),
            }
        )
