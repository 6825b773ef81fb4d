"""Machines around a machine: what a search, a threshold, a balance and a choice of columns share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.names import Estimator
from empirisk.validation import available_if

Array = NDArray[np.float64]


def inner_has(method: str) -> Callable[[Any], bool]:
    """Whether the machine inside, fitted or not, has a method; raises what it would raise."""

    def check(around: Any) -> bool:
        getattr(getattr(around, "estimator_", around.estimator), method)
        return True

    return check


def transformed(steps: list[tuple[str, Any]], X: Any) -> Any:
    """The rows after some fitted steps of a pipeline; one that learns nothing and does not say so is fitted too."""
    for _, step in steps:
        if step not in (None, "passthrough"):
            X = step.transform(X)
    return X


class Around(MetaEstimatorMixin, Estimator):
    """A machine around ``estimator``; after ``fit``, ``estimator_`` is the one inside."""

    _state = state.State(
        estimator=state.part(has="fit", fitted=False),
        estimator_=state.part(has="predict", columns="inner", classes="classes"),
    )

    estimator: Any
    estimator_: Any

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, where the machine predicts classes."""
        return self.estimator_.classes_

    def _table(self, X: Any) -> Any:
        """The rows as the machine inside takes them."""
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.non_deterministic = inner.non_deterministic
        return tags


class Whole(CallbackSupportMixin):
    """The machine inside sees the rows as they are: what it notes about columns holds outside too."""

    estimator_: Any

    @property
    def n_features_in_(self) -> int:
        """The columns seen in ``fit``."""
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names, where they have names."""
        return self.estimator_.feature_names_in_


class Delegating(Around):
    """A machine whose answers are those of the machine inside."""

    def _ask(self, method: str, X: Any, *others: Any, **weights: Any) -> Any:
        """What a method of the machine inside answers."""
        check_is_fitted(self)
        return getattr(self.estimator_, method)(self._table(X), *others, **weights)

    def predict(self, X: Any) -> NDArray[Any]:
        """What the machine inside predicts."""
        return self._ask("predict", X)

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes."""
        return self._ask("predict_proba", X)

    @available_if(inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`."""
        return self._ask("predict_log_proba", X)

    @available_if(inner_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Values of the decision function."""
        return self._ask("decision_function", X)

    @available_if(inner_has("score"))
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The machine's own score: accuracy for classes, R^2 for numbers."""
        return self._ask("score", X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
