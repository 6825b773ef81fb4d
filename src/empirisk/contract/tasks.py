"""Estimators whose loss says what they predict: classes or numbers."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import ClassifierTags, RegressorTags

from empirisk import losses
from empirisk.names import Estimator


class TaskByLoss(Estimator):
    """A classifier if its ``loss`` knows no other task, else a regressor."""

    loss: Any

    def _task(self) -> str:
        """What is predicted: "classification" or "regression"."""
        # Asked by tags before any parameter is checked.
        known = losses.NAMES.get(self.loss) if isinstance(self.loss, str) else self.loss
        return "classification" if getattr(known, "tasks", frozenset()) == {"classification"} else "regression"

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy of classes, or R^2 of numbers."""
        scored: Any = ClassifierMixin if self._task() == "classification" else RegressorMixin
        return float(scored.score(self, X, y, sample_weight))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self._task() == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


def predicts_classes(estimator: TaskByLoss) -> bool:
    """Whether it does; raises AttributeError if not, for scikit-learn's ``available_if``."""
    if estimator._task() != "classification":
        raise AttributeError(f"{type(estimator).__name__}(loss={estimator.loss!r}) predicts numbers, not classes.")
    return True
