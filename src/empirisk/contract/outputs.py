"""Several outputs of a row: columns of numbers, or of labels, of which each has classes of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.utils import check_consistent_length

from empirisk import state
from empirisk.contract.inputs import check_weights, sorted_classes
from empirisk.contract.multiclass import elected, untied
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.linalg.foreign import received
from empirisk.validation import in_memory_of_numpy

Array = NDArray[np.float64]
Method = TypeVar("Method", bound=Callable[..., Any])


def in_single_precision(method: Method) -> Method:
    """Method decorator: of rows in float32 answers are float32 too, computed in float64.

    Scores of classifiers with a feature map stay in float64, as scikit-learn's do.
    """

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        answers = method(self, X, *args, **kwargs)
        plain = getattr(self, "features", None) is None or is_regressor(self)
        return rounded(answers) if plain and _are_single(X) else answers

    return call  # type: ignore[return-value]


def rounded(answers: Array) -> NDArray[Any]:
    """Answers in float32. Those beyond its range stay as they are: a large number is a better answer than infinity.

    >>> rounded(np.array([1.0])).dtype.name, rounded(np.array([1e300])).dtype.name
    ('float32', 'float64')
    """
    fits = (np.abs(answers[np.isfinite(answers)]) <= np.finfo(np.float32).max).all()
    return answers.astype(np.float32) if fits else answers


def _are_single(X: Any) -> bool:
    """Whether rows are in float32: an array, or every column of a frame."""
    if hasattr(X, "dtypes"):
        return all(str(kind).lower() == "float32" for kind in X.dtypes)
    return getattr(X, "dtype", None) == np.float32


def as_columns(y: NDArray) -> NDArray:
    """One column for each output.

    >>> as_columns(np.array([1.0, 2.0])).shape
    (2, 1)
    """
    return y.reshape(len(y), -1)


def like(answers: Array, several: bool) -> Array:
    """Answers (n_rows, n_outputs) as the target had them: without the axis of the outputs where it had none."""
    return answers if several else answers[:, 0]


def squared(errors: Array) -> Array:
    """The squares; infinity where they are beyond all numbers."""
    with np.errstate(over="ignore"):
        return errors**2


def squared_errors(answers: Array, y: NDArray) -> Array:
    """The squared error of each row, the mean over its outputs."""
    return squared(answers - as_columns(y)).mean(axis=1)


def judged_numbers(answers: Array, y: NDArray, weights: Array) -> tuple[float, float]:
    """Mean squared error and R^2 on the rows that have weight, means over the outputs; NaN where none has.

    >>> judged_numbers(np.array([[1.0], [3.0]]), np.array([1.0, 2.0]), np.ones(2))
    (0.5, -1.0)
    """
    if not weights.any():
        return np.nan, np.nan
    some = weights > 0
    share, y, answers = weights[some] / weights[some].sum(), as_columns(y)[some], answers[some]
    errors, spreads = share @ squared(answers - y), share @ squared(y - share @ y)
    scores = 1.0 - errors[spreads > 0] / spreads[spreads > 0]
    return float(errors.mean()), float(scores.mean()) if len(scores) else np.nan


# --- columns of labels ------------------------------------------------------------------------------------------------


def label_columns(y: Any) -> tuple[Any, bool]:
    """A target of labels, dense, and whether it has several columns of them."""
    y = y.toarray() if issparse(y) else in_memory_of_numpy(y)
    try:
        shape = np.asarray(y).shape
    except ValueError as error:
        raise EmpiriskError("y holds lists of different lengths; give one label for each row, or a table.") from error
    return y, len(shape) == 2 and shape[1] > 1


def classes_of_columns(y: NDArray, weights: Array, class_weight: Any) -> list[NDArray]:
    """The sorted classes of every column."""
    if class_weight is not None:
        raise Unsuitable("class_weight has no meaning for y of several columns; use sample_weight.")
    return [sorted_classes(np.ascontiguousarray(column), weights) for column in y.T]


def indicators(y: NDArray, classes: list[NDArray]) -> NDArray[np.int64]:
    """A column of 0 and 1 for every class of every label: its squared error is the Gini impurity, added up.

    >>> indicators(np.array([[0, 5], [1, 7]]), [np.array([0, 1]), np.array([5, 7])])
    array([[1, 0, 1, 0],
           [0, 1, 0, 1]])
    """
    found = [column[:, None] == names for column, names in zip(y.T, classes, strict=True)]
    return np.concatenate(found, axis=1).astype(np.int64)


def ends_of(classes: list[NDArray]) -> tuple[int, ...]:
    """Where the indicators of each label end."""
    return tuple(np.cumsum([len(names) for names in classes]).tolist())


def wrong_labels(shares: Array, hot: NDArray, ends: tuple[int, ...]) -> Array:
    """1 for rows with a label that is not the one with the largest share, else 0.

    >>> wrong_labels(np.array([[0.9, 0.1, 0.4, 0.6]]), np.array([[1, 0, 1, 0]]), (2, 4))
    array([1.])
    """
    wrong = np.zeros(len(shares), dtype=bool)
    for said, true in zip(_parts(shares, ends), _parts(hot, ends), strict=True):
        wrong |= elected(said, np.arange(said.shape[1])) != true.argmax(axis=1)
    return wrong.astype(np.float64)


def by_label(shares: Array, classes: NDArray | list[NDArray]) -> Any:
    """Shares as they are, or of several labels a list with one array for each."""
    return _parts(shares, ends_of(classes)) if isinstance(classes, list) else shares


def probabilities_of(shares: Array, classes: NDArray | list[NDArray]) -> Any:
    """Probabilities from shares: an array, or of several labels a list with one for each, as scikit-learn gives them.

    >>> probabilities_of(np.array([[0.3, 0.1, 0.2, 0.6]]), [np.array([0, 1]), np.array([5, 7])])
    [array([[0.75, 0.25]]), array([[0.25, 0.75]])]
    """
    if isinstance(classes, list):
        return [probabilities_of(part, names) for part, names in zip(by_label(shares, classes), classes, strict=True)]
    return untied(shares / shares.sum(axis=1, keepdims=True))


class LabelsClassifier(ClassifierMixin):
    """A classifier that learns one label of each row, or several."""

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of the rows whose class is right; of several labels: of the rows whose labels all are."""
        X, y = received(X), in_memory_of_numpy(y)
        labels, several = label_columns(y)
        if several:
            found = self.predict(X)
            check_consistent_length(found, labels)
            right = (found == np.asarray(labels)).all(axis=1)
            return float(np.average(right, weights=check_weights(sample_weight, len(right))))
        return super().score(X, y, sample_weight)


class LogProbabilities:
    """A classifier whose `predict_proba` gives an array, or a list of them, and so its logarithm."""

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`."""
        found = self.predict_proba(X)  # type: ignore[attr-defined]
        with np.errstate(divide="ignore"):
            return [np.log(each) for each in found] if isinstance(found, list) else np.log(found)


def predicted(shares: Any, classes: NDArray | list[NDArray]) -> NDArray:
    """The most probable class of each row; of several labels a column for each."""
    if isinstance(classes, list):
        return np.column_stack([elected(each, names) for each, names in zip(shares, classes, strict=True)])
    return elected(shares, classes)


#: The classes of a machine that may learn several labels: an array, or a list with one for each.
CLASSES = state.either(state.labels(None), state.several(state.labels(None)))


def wrong_classes(classes: NDArray | list[NDArray], columns: int) -> str | None:
    """What is wrong where a model from a file has not one column for each class of each label."""
    ends = ends_of(classes if isinstance(classes, list) else [classes])
    if isinstance(classes, list) and len(classes) < 2:
        return "classes_ is a list for one label alone"
    return None if ends[-1] == columns else "classes_ are not those of the columns"


def _parts(shares: NDArray, ends: tuple[int, ...]) -> list[NDArray]:
    """The columns of each label, in arrays of their own."""
    return [part.copy() for part in np.split(shares, ends[:-1], axis=1)]
