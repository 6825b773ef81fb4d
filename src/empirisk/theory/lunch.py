"""No free lunch: over all labellings of a finite domain, every machine errs on half of what it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from empirisk.errors import EmpiriskError
from empirisk.theory.bound import check_whole

MOST = 20  # rows of the domain: a million labellings


@dataclass(frozen=True, eq=False)
class NoFreeLunch:
    """The errors of a machine on rows it has not seen, over labellings of a finite domain.

    Attributes
    ----------
    errors : array of int
        For each labelling, how many of the unseen rows the machine gets wrong.
    unseen : int
        The number of rows it has not seen.
    average : float
        The mean share of errors; exactly 1/2 over all labellings.
    counts : array of unseen + 1
        The labellings with 0, 1, ... errors.
    machine : str
        Which machine.

    Examples
    --------
    >>> found = er.theory.no_free_lunch(er.KNNClassifier(1), np.arange(6.0)[:, None], train=3)
    >>> found.average, found.counts
    (0.5, array([ 8, 24, 24,  8]))
    """

    errors: NDArray[np.int64]
    unseen: int
    machine: str

    @property
    def average(self) -> float:
        """The mean share of errors on unseen rows."""
        return int(self.errors.sum()) / (len(self.errors) * self.unseen)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The labellings with 0, 1, ... errors."""
        return np.bincount(self.errors, minlength=self.unseen + 1)

    def __str__(self) -> str:
        return (
            f"{self.machine} gets {100 * self.average:.6g} % of {self.unseen} unseen rows wrong on average over "
            f"{len(self.errors)} labellings: between {self.errors.min()} and {self.errors.max()} of them."
        )


def no_free_lunch(machine: Any, X: ArrayLike, train: int, labelings: ArrayLike | None = None) -> NoFreeLunch:
    """Train on the first rows of a finite domain under every labelling, and count the errors on the other rows.

    If every labelling is as likely as any other, the labels of the unseen rows are independent coins: whatever a
    machine predicts, it errs on exactly half of them on average, and as often with 0, 1, ... errors as coins say. A
    machine is better than another only on some labellings; give these to see it.

    Parameters
    ----------
    machine : classifier
        It is cloned, and fitted once for each labelling of the training rows. Where all of these have one label, the
        answer is that label.
    X : array, m x d
        The domain, of at most 20 rows.
    train : int
        The training rows: the first so many, fewer than m.
    labelings : array of 0 and 1, labellings x m, optional
        The labellings that can occur, each as likely as any other; all 2^m by default.

    Returns
    -------
    NoFreeLunch

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> print(er.theory.no_free_lunch(er.SVM(), X, train=4).average)
    0.5
    >>> X = X[[0, 7, 2, 5, 1, 3, 4, 6]]
    >>> steps = [X[:, 0] >= cut for cut in range(9)]  # labellings with one step along the line
    >>> er.theory.no_free_lunch(er.KNNClassifier(1), X, 4, steps).average < 0.2
    True
    """
    domain = np.asarray(X)
    if domain.ndim != 2 or len(domain) < 2:
        raise EmpiriskError(f"X of shape {domain.shape} must be a table of at least two rows, the domain.")
    rows = len(domain)
    if check_whole("train", train) >= rows:
        raise EmpiriskError(f"train={train} must leave some of the {rows} rows of X unseen.")
    every = _all_labelings(rows) if labelings is None else np.asarray(labelings)
    if every.ndim != 2 or every.shape[1] != rows or not len(every) or not np.isin(every, (0, 1)).all():
        raise EmpiriskError(f"labelings must be a table of 0 and 1 with {rows} columns, one for each row of X.")
    every = every.astype(np.int8)
    seen, member = np.unique(every[:, :train], axis=0, return_inverse=True)
    said = np.array([_answers(machine, domain, labels) for labels in seen], dtype=np.int8)
    errors = np.count_nonzero(said[member.ravel()] != every[:, train:], axis=1)
    return NoFreeLunch(errors, rows - train, type(machine).__name__)


def _all_labelings(rows: int) -> NDArray[np.int8]:
    if rows > MOST:
        raise EmpiriskError(f"X has {rows} rows and 2^{rows} labellings; give at most {MOST} rows, or labelings.")
    return ((np.arange(2**rows)[:, None] >> np.arange(rows)) & 1).astype(np.int8)


def _answers(machine: Any, domain: NDArray, labels: NDArray[np.int8]) -> NDArray:
    """What a machine trained on the first rows says about the others."""
    train = len(labels)
    if labels.min() == labels.max():
        return np.full(len(domain) - train, labels[0])
    return np.asarray(clone(machine).fit(domain[:train], labels).predict(domain[train:]))
