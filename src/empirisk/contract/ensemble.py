"""What ensembles tell of their members: who wins a vote, how clearly, and why many are better than one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from empirisk.contract.inputs import class_codes
from empirisk.contract.members import check_target
from empirisk.contract.multiclass import elected
from empirisk.contract.outputs import as_columns, squared_errors
from empirisk.errors import EmpiriskError, Unsuitable

Array = NDArray[np.float64]


def vote_margins(shares: Array, labels: NDArray[np.int64]) -> Array:
    """Margins of a vote: the share of votes for the true class minus the largest share for any other class."""
    rows, others = np.arange(len(shares)), shares.copy()
    others[rows, labels] = -np.inf
    rival = others.max(axis=1) if shares.shape[1] > 1 else np.zeros(len(shares))
    return shares[rows, labels] - rival


class MemberSpread(NamedTuple):
    """Why a vote is better than its members.

    Attributes
    ----------
    strength : float
        Mean margin of the members (classes), or minus the mean squared error of their mean (numbers).
    correlation : float
        Mean correlation between the margins (the errors) of two members over the rows; NaN for one member.
    variance : float
        Mean over the rows of the variance of the margins (the predictions) over the members.
    """

    strength: float
    correlation: float
    variance: float


class ListOfMembers:
    """An ensemble as the list of its members: ``len(ensemble)`` and loops over it."""

    estimators_: Any

    def __len__(self) -> int:
        check_is_fitted(self)
        return len(self.estimators_)

    def __iter__(self) -> Iterator[Any]:
        check_is_fitted(self)
        return iter(self.estimators_)

    def __bool__(self) -> bool:
        return True  # one that is not fitted is a machine too


class Members(ABC):
    """What ensembles can tell about their members."""

    @abstractmethod
    def _each_answer(self, X: Any) -> Iterator[tuple[float, Array]]:
        """The say of each member, and what it says of rows: class shares (n_rows, n_classes) or numbers (n_rows, 1)."""

    def _labels(self, y: ArrayLike) -> NDArray:
        """The numbers of the classes of rows, or the numbers themselves."""
        classes = getattr(self, "classes_", None)
        if classes is None:
            return check_target(self, y, numbers=True, several=True)
        if isinstance(classes, list):
            raise Unsuitable("Margins, spreads and staged errors are those of one label, and y had several columns.")
        labels = class_codes(column_or_1d(y), classes)
        if (labels < 0).any():
            raise EmpiriskError("y holds classes that were not in the training data; give rows of known classes.")
        return labels

    def staged_errors(self, X: Any, y: ArrayLike) -> Array:
        """The error of the first 1, 2, ... members together: share of wrong classes, or mean squared error.

        Of several outputs the mean over them, here and in `spread`.
        """
        labels, errors, total, say = self._labels(y), [], 0.0, 0.0
        for weight, answers in self._each_answer(X):
            check_consistent_length(answers, labels)
            total, say = total + weight * answers, say + weight
            if hasattr(self, "classes_"):
                errors.append(np.mean(elected(total, np.arange(total.shape[1])) != labels))
            else:
                errors.append(np.mean(squared_errors(total / say, labels)))
        return np.array(errors)

    def spread(self, X: Any, y: ArrayLike) -> MemberSpread:
        """How strong the vote is on rows, and how much its members agree: see `MemberSpread`.

        The error of a vote is at most about  correlation * (1 - s^2) / s^2  with s the strength (Breiman): members
        should be good, and should not err together.
        """
        labels, classes = self._labels(y), hasattr(self, "classes_")
        count, total, squares, deviations = 0, 0.0, 0.0, []
        for _, answers in self._each_answer(X):
            check_consistent_length(answers, labels)
            own = vote_margins(answers, labels) if classes else (answers - as_columns(labels)).ravel()
            count, total, squares = count + 1, total + own, squares + own**2
            deviations.append(own.std())
        strength = np.mean(total) / count if classes else -np.mean((total / count) ** 2)
        sizes = np.array(deviations)
        room = sizes.sum() ** 2 - (sizes**2).sum()
        correlation = (np.var(total) - (sizes**2).sum()) / room if room > 0 else np.nan
        return MemberSpread(float(strength), float(correlation), float(np.mean(squares / count - (total / count) ** 2)))


class ClassMembers(Members):
    """What ensembles of classifiers can tell about their members."""

    def margins(self, X: Any, y: ArrayLike) -> Array:
        """How clear the vote for the right class is: its share minus the largest of another, from -1 to 1."""
        shares, labels = self.predict_proba(X), self._labels(y)  # type: ignore[attr-defined]
        check_consistent_length(shares, labels)
        return vote_margins(shares, labels)
