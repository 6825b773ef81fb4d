"""Results of an evaluation: scores, folds, held-out predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from empirisk.certificate import Certificate
from empirisk.errors import WORDS, EmpiriskError
from empirisk.evaluation.intervals import Array, Score
from empirisk.notebook import html


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: training rows, test rows, scores, chosen parameters and certificate.

    Attributes
    ----------
    train, test : arrays of int
        Row numbers.
    scores : dict
        Score by name; empty where a fold is too small to be scored alone.
    parameters : dict
        What was chosen inside the fold, such as C.
    seconds : float
        Time of the fit.
    certificate : Certificate or None
        The evidence of the fit, where the machine gives one.

    Examples
    --------
    >>> result = er.evaluate(er.Ridge(), np.arange(20.0)[:, None], np.arange(20.0), cv=4)
    >>> len(result.folds[0].test), sorted(result.folds[0].scores)
    (5, ['mae', 'r2', 'rmse'])
    """

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    scores: dict[str, float]
    parameters: dict[str, Any]
    seconds: float
    certificate: Certificate | None


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult:
    """What `evaluate` found; printed, it is a table, and the ``notes`` that go with it.

    Attributes
    ----------
    score : Score
        The first score: ``value``, ``interval`` (low, high), ``folds``.
    scores : dict of Score
        All scores by name.
    folds : list of Fold
        Train and test rows, scores, parameters, seconds and certificate of each split.
    rows : array of int
        The rows that were tested, increasing. Predictions and all that follows are theirs, each from the first split
        that tested the row.
    predictions, truth : arrays
        What was said about those rows, and what is true.
    classes : array or None
        The classes; None for numbers.
    probabilities : array, rows x classes, or None
        Probabilities, where the machine gives them.
    decisions : array or None
        Values of the decision function, where the machine has one.
    parameters : list of dict
        What was chosen in each split.
    seconds : array
        Time of each fit.
    certificates : list
        The certificate of each fit, or None.
    weights : array or None
        Weights of the rows tested.

    Examples
    --------
    >>> X = np.arange(40.0)[:, None]
    >>> result = er.evaluate(er.SVM(C="cv"), X, np.where(X[:, 0] > 19, "yes", "no"), scoring="accuracy")
    >>> result.predictions.shape, result.confusion.shape, len(result.parameters)
    ((40,), (2, 2), 5)
    """

    scores: dict[str, Score]
    folds: list[Fold]
    rows: NDArray[np.intp]
    predictions: NDArray
    truth: NDArray
    classes: NDArray | None
    probabilities: Array | None
    decisions: Array | None
    weights: Array | None
    machine: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def score(self) -> Score:
        """The first score."""
        return next(iter(self.scores.values()))

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """What was chosen in each split."""
        return [fold.parameters for fold in self.folds]

    @property
    def seconds(self) -> Array:
        """Time of each fit."""
        return np.array([fold.seconds for fold in self.folds])

    @property
    def certificates(self) -> list[Certificate | None]:
        """The certificate of each fit, or None."""
        return [fold.certificate for fold in self.folds]

    @property
    def confusion(self) -> NDArray:
        """Rows of each true class (down) by predicted class (across), weighted where there are weights."""
        if self.classes is None:
            raise EmpiriskError("confusion counts classes, but this evaluation predicts numbers.")
        return confusion_matrix(self.truth, self.predictions, labels=self.classes, sample_weight=self.weights)

    def __str__(self) -> str:
        first = self.score
        width = max(len(name) for name in self.scores)
        trained = int(np.median([len(fold.train) for fold in self.folds]))
        lines = [
            f"{self.machine}: {len(self.folds)} splits, trained on {trained} rows, tested on {len(self.rows)}",
            f"{'':{width}}  {'value':>8}  {100 * first.confidence:g} % interval",
        ]
        for name, score in self.scores.items():
            low, high = score.interval
            lines.append(f"{name:{width}}  {score.value:8.4g}  [{low:.4g}, {high:.4g}]")
        known = [certificate.converged for certificate in self.certificates if certificate is not None]
        certified = f"; {sum(known)} of {len(known)} certified optimal" if known else ""
        lines.append(f"fits took {self.seconds.sum():.3g} s{certified}")
        lines += [f"chosen: {text}" for text in _counted(self.parameters)]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        scores = [
            [name, f"{score.value:.4g}", f"{score.interval[0]:.4g} to {score.interval[1]:.4g}"]
            for name, score in self.scores.items()
        ]
        head = ["score", "value", f"{100 * self.score.confidence:g} % interval"]
        return html(f"{self.machine}, {len(self.folds)} splits", head, scores, self.notes)


def _counted(parameters: list[dict[str, Any]]) -> list[str]:
    """Each choice with how often it was made, in the order of the splits."""
    texts = [", ".join(f"{name}={_short(value)}" for name, value in chosen.items()) for chosen in parameters if chosen]
    return [f"{text} ({texts.count(text)} of {len(parameters)})" for text in dict.fromkeys(texts)][:WORDS]


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return str({key: _short(item) for key, item in value.items()})
    return f"{value:.4g}" if isinstance(value, float) else str(value)
