"""Classifiers by a loss whose f is a sum of pieces: what boosting and the additive machines answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from empirisk import losses
from empirisk.contract.elsewhere import blockwise
from empirisk.contract.multiclass import winners
from empirisk.contract.outputs import LabelsClassifier
from empirisk.trees.objectives import Objective, classes_objective, labels_objective, outputs_of, probabilities
from empirisk.validation import available_if

Array = NDArray[np.float64]


def has_probabilities(machine: ClassesByLoss) -> bool:
    """Whether the loss implies probabilities; else an `AttributeError` with the reason."""
    if losses.find(machine.loss).probabilistic:
        return True
    raise AttributeError(f"loss={machine.loss!r} implies no probabilities; use loss='logistic' or calibrate.")


def has_one_label(machine: ClassesByLoss) -> bool:
    """Scores of several labels have no form that scikit-learn's tools agree on."""
    if not isinstance(getattr(machine, "classes_", None), list):
        return True
    raise AttributeError("there is no decision_function of several labels; use predict_proba.")


def counts_of_classes(classes: NDArray | list[NDArray]) -> list[int]:
    """The number of classes of each label."""
    return [len(names) for names in (classes if isinstance(classes, list) else [classes])]


class ClassesByLoss(LabelsClassifier):
    """From the scores f, one for two classes and one for each of more, to classes and probabilities."""

    loss: Any
    classes_: Any
    _scores: Callable[[ArrayLike], Array]  # f of every row and output

    def _objective(self, target: NDArray, weights: Array) -> Objective:
        loss = losses.find(self.loss)
        if isinstance(self.classes_, list):
            return labels_objective(loss, target, counts_of_classes(self.classes_), weights)
        return classes_objective(loss, target, len(self.classes_), weights)

    def _each_label(self, scores: Array) -> list[tuple[Array, NDArray]]:
        """The scores and the classes of each label."""
        if not isinstance(self.classes_, list):
            return [(scores, self.classes_)]
        ends = np.cumsum([outputs_of(count) for count in counts_of_classes(self.classes_)])
        return list(zip(np.split(scores, ends[:-1], axis=1), self.classes_, strict=True))

    def _winners(self, scores: Array) -> NDArray:
        """The classes with the largest scores."""
        found = [winners(f[:, 0] if len(classes) == 2 else f, classes) for f, classes in self._each_label(scores)]
        return np.column_stack(found) if isinstance(self.classes_, list) else found[0]

    def _probabilities(self, scores: Array) -> Any:
        """The probabilities of scores."""
        loss = losses.find(self.loss)
        each = [probabilities(loss, f, len(classes)) for f, classes in self._each_label(scores)]
        return each if isinstance(self.classes_, list) else each[0]

    @available_if(has_one_label)
    @blockwise
    def decision_function(self, X: ArrayLike) -> Array:
        """f(x): for two classes one number, positive for ``classes_[1]``; else a score per class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row, or of each label; for two classes f = 0 is the second one."""
        return self._winners(self._scores(X))

    @available_if(has_probabilities)
    @blockwise
    def predict_proba(self, X: ArrayLike) -> Any:
        """Probabilities of the classes; of several labels a list."""
        return self._probabilities(self._scores(X))

    @available_if(has_probabilities)
    @blockwise
    def predict_log_proba(self, X: ArrayLike) -> Any:
        """Logarithm of `predict_proba`."""
        found = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(each) for each in found] if isinstance(found, list) else np.log(found)
