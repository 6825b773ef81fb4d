"""Out-of-fold predictions of a machine, kept so that any score can be computed from them without a second fit."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.pipeline import Pipeline

from empirisk.contract.meta import Around, transformed
from empirisk.errors import EmpiriskError
from empirisk.messages import coded
from empirisk.validation import available_if

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldOutAnswers:
    """Answers to some rows.

    Attributes
    ----------
    predictions : array of m
        Labels or numbers.
    probabilities : array, m x classes, or None
        Probabilities of all classes.
    decisions : array or None
        Values of the decision function.
    classes : array or None
        The classes; None for numbers.
    """

    predictions: NDArray
    probabilities: Array | None
    decisions: Array | None
    classes: NDArray | None

    def __len__(self) -> int:
        return len(self.predictions)

    def judge(self) -> Any:
        """An estimator that gives these answers to row numbers, for scikit-learn's scorers."""
        return _StoredRegressor(self) if self.classes is None else _StoredClassifier(self)

    @staticmethod
    def join(parts: "list[HeldOutAnswers]") -> "HeldOutAnswers":
        """The answers of several parts, one after the other."""

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            return None if any(value is None for value in values) else np.concatenate(values)

        return HeldOutAnswers(joined("predictions"), joined("probabilities"), joined("decisions"), parts[0].classes)

    def take(self, rows: NDArray) -> "HeldOutAnswers":
        """The answers to some of the rows."""
        probabilities, decisions = (
            None if value is None else value[rows] for value in (self.probabilities, self.decisions)
        )
        return HeldOutAnswers(self.predictions[rows], probabilities, decisions, self.classes)


def answers_of(machine: Any, X: Any, classes: NDArray | None) -> HeldOutAnswers:
    """Predictions of a fitted machine for rows, with probabilities and decision values where it has them."""
    if classes is not None:
        machine = _computed_once(machine, X)
    predictions = np.asarray(machine.predict(X))
    if classes is None:
        if not np.all(np.isfinite(predictions)):
            raise EmpiriskError(
                coded("ER007", "The machine predicted NaN or infinity on rows it had not seen; check its parameters.")
            )
        return HeldOutAnswers(predictions, None, None, None)
    known = np.asarray(machine.classes_)
    places = np.searchsorted(classes, known)
    probabilities = decisions = None
    if hasattr(machine, "predict_proba"):
        probabilities = np.zeros((len(predictions), len(classes)))
        probabilities[:, places] = machine.predict_proba(X)
    if hasattr(machine, "decision_function") and len(known) == len(classes):
        decisions = np.asarray(machine.decision_function(X), dtype=np.float64)
    return HeldOutAnswers(predictions, probabilities, decisions, classes)


def _computed_once(machine: Any, X: Any) -> Any:
    """A copy of the machine for these rows only, which transforms and scores them once.

    ``predict``, ``predict_proba`` and ``decision_function`` would each repeat the steps of a pipeline and the products
    with the weights. The copy keeps the rows as they arrive at the last step, and the scores of the machine there.
    """
    if type(machine) is Pipeline:  # a subclass may predict differently
        rows = transformed(machine.steps[:-1], X)
        return Pipeline([("rows", _StoredRows(rows)), ("machine", _computed_once(machine[-1], rows))])
    if isinstance(machine, Around):
        around = copy(machine)
        around.estimator_ = _computed_once(machine.estimator_, machine._table(X))
        return around
    if hasattr(machine, "_scores"):
        scores, machine = machine._scores(X), copy(machine)
        machine._scores = lambda X: scores.copy()
    return machine


class _StoredRows(BaseEstimator):
    """A pipeline step that ignores its input and returns rows that were transformed before."""

    def __init__(self, rows: Any):
        self.rows = rows

    def transform(self, X) -> Any:
        return self.rows


class _StoredPredictions(BaseEstimator):
    """An estimator that looks stored predictions up by row number; it has the methods that the machine had."""

    def __init__(self, answers: HeldOutAnswers):
        self.answers = answers

    def predict(self, X) -> NDArray:
        return self.answers.predictions[X]

    @available_if(lambda self: self.answers.probabilities is not None)
    def predict_proba(self, X) -> Array:
        return np.asarray(self.answers.probabilities)[X]

    @available_if(lambda self: self.answers.decisions is not None)
    def decision_function(self, X) -> Array:
        return np.asarray(self.answers.decisions)[X]


class _StoredClassifier(ClassifierMixin, _StoredPredictions):
    @property
    def classes_(self) -> NDArray:
        return np.asarray(self.answers.classes)


class _StoredRegressor(RegressorMixin, _StoredPredictions):
    pass
