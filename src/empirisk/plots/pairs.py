"""What was true and what was said: plain arrays, or the result of an evaluation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from empirisk.errors import EmpiriskError

Array = NDArray[np.float64]


def is_result(value: Any) -> bool:
    """Whether a value is the result of an evaluation, which holds both the truth and the predictions."""
    return hasattr(value, "truth") and hasattr(value, "predictions")


def sorted_classes(argument: str, labels: NDArray) -> NDArray:
    """The classes among labels, or a sentence where they have no order."""
    try:
        return np.unique(labels)
    except TypeError:
        raise EmpiriskError(
            f"{argument} holds labels of several types, or missing ones; give them all as text or all as numbers."
        ) from None


def answers(
    truth: Any, predictions: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[NDArray, NDArray, Array]:
    """The true and the predicted values and the weight of each row."""
    if is_result(truth):
        sample_weight = getattr(truth, "weights", None) if sample_weight is None else sample_weight
        truth, predictions = truth.truth, truth.predictions
    if predictions is None:
        raise EmpiriskError("predictions is missing; give the predicted values beside the true ones.")
    said, known = np.asarray(predictions), np.asarray(truth)
    if known.ndim != 1 or said.shape != known.shape or not len(known):
        raise EmpiriskError(
            f"truth of shape {known.shape} and predictions of shape {said.shape} must be as long as each other, "
            "with at least one row."
        )
    return known, said, _weights(sample_weight, len(known))


def _weights(sample_weight: ArrayLike | None, rows: int) -> Array:
    weights = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,) or not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
        raise EmpiriskError(f"sample_weight must hold {rows} numbers, none negative and not all zero.")
    return weights


def numbers(truth: Any, predictions: ArrayLike | None, sample_weight: ArrayLike | None) -> tuple[Array, Array, Array]:
    """True and predicted numbers and the weight of each row."""
    known, said, weights = answers(truth, predictions, sample_weight)
    try:
        known, said = known.astype(np.float64), said.astype(np.float64)
    except (TypeError, ValueError):
        raise EmpiriskError("truth and predictions must be numbers; use er.plots.confusion for classes.") from None
    if not (np.isfinite(known).all() and np.isfinite(said).all()):
        raise EmpiriskError("truth and predictions must be finite; leave out rows with missing values.")
    return known, said, weights


@dataclass(frozen=True)
class Scored:
    """One class against the others: which rows belong to it, how high each was scored for it, and its weight."""

    name: Any
    belongs: NDArray[np.bool_]
    scores: Array
    weights: Array

    @property
    def rate(self) -> float:
        """The share of rows that belong to the class."""
        return self.share(self.belongs)

    def share(self, chosen: NDArray[np.bool_], among: NDArray[np.bool_] | None = None) -> float:
        """The share of the weight among some rows that the chosen ones have."""
        weights = self.weights if among is None else self.weights * among
        return float(np.sum(weights * chosen) / np.sum(weights))


def scored(
    truth: Any, scores: ArrayLike | None, positive: Any, sample_weight: ArrayLike | None, *, decisions: bool = True
) -> list[Scored]:
    """The positive class of two, or every class of several, with its scores.

    A matrix of scores has a column for each class, sorted. ``decisions`` tells whether decision values will do where
    the result of an evaluation holds no probabilities.
    """
    classes = None
    if is_result(truth):
        sample_weight = getattr(truth, "weights", None) if sample_weight is None else sample_weight
        scores = truth.probabilities
        if scores is None and decisions:
            scores = getattr(truth, "decisions", None)
        if scores is None or truth.classes is None:
            raise EmpiriskError("The result holds no probabilities of classes; give the truth and scores instead.")
        truth, classes = truth.truth, truth.classes
    if scores is None:
        raise EmpiriskError("scores is missing; give the scores or probabilities beside the true classes.")
    known, given = np.asarray(truth), np.asarray(scores, dtype=np.float64)
    names = sorted_classes("truth", known) if classes is None else np.asarray(classes)
    if known.ndim != 1 or given.ndim not in (1, 2) or len(given) != len(known) or not len(known):
        raise EmpiriskError(f"scores of shape {given.shape} must have one row for each of the {known.size} of truth.")
    if not np.isfinite(given).all():
        raise EmpiriskError("scores holds values that are not finite; leave out those rows.")
    if positive is not None and positive not in names.tolist():
        raise EmpiriskError(f"positive={positive!r} is not among the classes {names.tolist()[:10]}.")
    if given.ndim == 1:
        if len(names) != 2:
            raise EmpiriskError(f"truth holds {len(names)} classes; one score per row needs two of them.")
        wanted = names[1] if positive is None else positive
        columns = {wanted: given if wanted == names[1] else -given}
    else:
        columns = _by_column(given, names, positive)
    weights = _weights(sample_weight, len(known))
    return [_against_others(name, known == name, values, weights) for name, values in columns.items()]


def _by_column(given: Array, names: NDArray, positive: Any) -> dict[Any, Array]:
    if given.shape[1] != len(names):
        raise EmpiriskError(f"scores has {given.shape[1]} columns for {len(names)} classes; give one for each.")
    wanted = names if len(names) > 2 and positive is None else [names[1] if positive is None else positive]
    return {name: given[:, names.tolist().index(name)] for name in wanted}


def _against_others(name: Any, belongs: NDArray[np.bool_], values: Array, weights: Array) -> Scored:
    counted = belongs[weights > 0]
    if counted.all() or not counted.any():
        word = "only" if counted.all() else "no"
        raise EmpiriskError(f"truth holds {word} rows of class {name!r}; rows of it and of others are needed.")
    return Scored(name, belongs, values, weights)
