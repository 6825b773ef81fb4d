"""Scores of classes: which rows belong to one, how high each was scored for it, and what every threshold finds."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from empirisk.contract.inputs import Array, check_weights
from empirisk.errors import EmpiriskError, listed
from empirisk.evaluation.answers import answers_of


def is_result(value: Any) -> bool:
    """Whether a value is the result of an evaluation, which holds both the truth and the predictions."""
    return hasattr(value, "truth") and hasattr(value, "predictions")


def of_machine(truth: Any, scores: Any, y: Any) -> tuple[Any, Any]:
    """The truth and the scores as they are; for a fitted machine, its rows and ``y``, what it says of them.

    A model of tables needs no ``y`` where the table holds it.

    >>> machine = er.NearestCentroid().fit([[0.0], [1.0]], ["a", "b"])
    >>> of_machine(machine, [[0.2], [0.9]], ["a", "b"])[0].predictions
    array(['a', 'b'], dtype='<U1')
    """
    if not hasattr(truth, "predict"):
        if y is not None:
            raise EmpiriskError("y goes with a fitted machine and its rows; without one, give the truth and scores.")
        return truth, scores
    model = getattr(truth, "model", truth)  # what `learn` returns holds one, which knows the name of its target
    if y is None and scores is not None and hasattr(model, "truth"):
        y = model.truth(scores)
    if scores is None or y is None:
        raise EmpiriskError("A machine is drawn on rows with known values: give the machine, X and y.")
    machine = getattr(truth, "pipeline", truth)
    classes = np.asarray(machine.classes_) if is_classifier(machine) else None
    found = answers_of(machine, scores, classes)
    known: dict[str, Any] = {"truth": np.asarray(y), "classes": classes, "weights": None}
    said = {name: getattr(found, name) for name in ("predictions", "probabilities", "decisions")}
    if machine is not truth:  # a rare class is named from a threshold on
        said["predictions"] = truth.predict(scores)
    return SimpleNamespace(**known, **said), None


def sorted_classes(argument: str, labels: NDArray) -> NDArray:
    """The classes among labels, or a sentence where they have no order."""
    try:
        return np.unique(labels)
    except TypeError:
        raise EmpiriskError(
            f"{argument} holds labels of several types, or missing ones; give them all as text or all as numbers."
        ) from None


@dataclass(frozen=True)
class ClassScores:
    """One class against the others: which rows belong to it, how high each was scored for it, and its weight."""

    name: Any
    belongs: NDArray[np.bool_]
    scores: Array
    weights: Array

    def __post_init__(self):
        counted = self.belongs[self.weights > 0]
        if counted.all() or not counted.any():
            word = "only" if counted.all() else "no"
            raise EmpiriskError(f"truth holds {word} rows of class {self.name!r}; rows of it and of others are needed.")

    def steps(self) -> tuple[Array, Array, Array]:
        """Thresholds, falling from infinity, and the weights of the rows at or above: of the class, and of others."""
        counted = self.weights > 0
        levels, place = np.unique(-self.scores[counted], return_inverse=True)
        weights, belongs = self.weights[counted], self.belongs[counted]
        hits, alarms = (np.cumsum(np.bincount(place, weights * part)) for part in (belongs, ~belongs))
        return np.append(np.inf, -levels), np.append(0.0, hits), np.append(0.0, alarms)

    def share(self, chosen: NDArray[np.bool_], among: NDArray[np.bool_] | None = None) -> float:
        """The share of the weight among some rows that the chosen ones have."""
        weights = self.weights if among is None else self.weights * among
        return float(np.sum(weights * chosen) / np.sum(weights))


def scored(
    truth: Any, scores: ArrayLike | None, positive: Any, sample_weight: ArrayLike | None, *, decisions: bool = True
) -> list[ClassScores]:
    """The positive class of two, or every class of several, with its scores.

    A matrix of scores has a column for each class, sorted. ``decisions`` tells whether decision values will do where
    the result of an evaluation holds no probabilities.
    """
    classes = None
    if is_result(truth):
        sample_weight = truth.weights if sample_weight is None else sample_weight
        scores = truth.decisions if truth.probabilities is None and decisions else truth.probabilities
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
        raise EmpiriskError(f"positive={positive!r} is not among the classes {listed(names.tolist())}.")
    if given.ndim == 1:
        if len(names) != 2:
            raise EmpiriskError(f"truth holds {len(names)} classes; one score per row needs two of them.")
        given = np.column_stack([-given, given])
    if given.shape[1] != len(names):
        raise EmpiriskError(f"scores has {given.shape[1]} columns for {len(names)} classes; give one for each.")
    weights = check_weights(sample_weight, len(known))
    wanted = names if len(names) > 2 and positive is None else [names[1] if positive is None else positive]
    return [ClassScores(name, known == name, given[:, names.tolist().index(name)], weights) for name in wanted]


def scored_one(truth: Any, scores: ArrayLike | None, positive: Any, sample_weight: ArrayLike | None) -> ClassScores:
    """The positive class against the others; of several classes it has to be named."""
    found = scored(truth, scores, positive, sample_weight)
    if len(found) > 1:
        names = listed([one.name for one in found])
        raise EmpiriskError(f"positive is missing: truth holds the classes {names}; say which of them to find.")
    return found[0]
