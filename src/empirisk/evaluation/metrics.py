"""Scores by name: scikit-learn's scorers, and short names for errors."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.metrics import get_scorer, make_scorer

from empirisk.contract.regression import PredictsNumbers
from empirisk.errors import EmpiriskError
from empirisk.losses.base import Loss

#: Errors, where less is better, under names of their own; scikit-learn scores them with a minus sign.
ERRORS = {
    "rmse": "neg_root_mean_squared_error",
    "mse": "neg_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "mape": "neg_mean_absolute_percentage_error",
    "log_loss": "neg_log_loss",
    "brier": "neg_brier_score",
    "poisson_deviance": "neg_mean_poisson_deviance",
    "gamma_deviance": "neg_mean_gamma_deviance",
}
#: All names of ours for which less is better.
LESS = {*ERRORS, "error_rate", "false_positive_rate"}
RATES = {"accuracy", "error_rate"}
BIASED = {"r2", "d2", "average_precision", "average_precision_macro"}
#: Scores of one class against the other: the second of two is the positive one, whatever its label.
POSITIVE = ("precision", "recall", "f1", "jaccard")
OF_TWO = (*POSITIVE, "average_precision", "false_positive_rate", "roc_auc")
UNIT = {*RATES, *OF_TWO, "balanced_accuracy", "average_precision_macro", "f1_macro"}
GRADED = ("decision_function", "predict_proba")


@dataclass(frozen=True)
class Metric:
    """One score: how it is called, how it is computed, and which way is better.

    Attributes
    ----------
    name : str
        Its name.
    scorer : callable
        (machine, X, y) -> number, larger is better.
    sign : float
        What the scorer's number is multiplied with to be reported: -1 for errors.
    named : bool
        Whether it looks at the answers alone, so that it can be computed again for part of them.
    """

    name: str
    scorer: Callable[..., Any]
    sign: float = 1.0
    named: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The metric as JSON has it."""
        return {"name": self.name, "sign": self.sign}

    @property
    def rate(self) -> bool:
        """Whether it is a share of the rows."""
        return self.name in RATES

    @property
    def of_probabilities(self) -> bool:
        """Whether it asks for probabilities, and margins will not do."""
        return getattr(self.scorer, "_response_method", None) == "predict_proba"

    @property
    def biased(self) -> bool:
        """Whether its mean over small samples is far from its value on many rows."""
        return self.name in BIASED

    @property
    def limits(self) -> tuple[float, float]:
        """What it cannot be below or above."""
        if self.name in UNIT:
            return 0.0, 1.0
        return (0.0, np.inf) if self.sign < 0 else (-np.inf, 1.0 if self.name in ("r2", "d2") else np.inf)


def mean_average_precision(truth: NDArray, scores: NDArray, *, classes: NDArray, sample_weight=None) -> float:
    """The mean over the classes that occur of the average precision of each against the rest.

    >>> scores = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.1, 0.9]])
    >>> float(mean_average_precision(np.array(["a", "b", "c"]), scores, classes=np.array(["a", "b", "c"])))
    1.0
    """
    present = [place for place, label in enumerate(classes) if (truth == label).any()]
    found = [
        metrics.average_precision_score(truth == classes[place], scores[:, place], sample_weight=sample_weight)
        for place in present
    ]
    return float(np.mean(found))


def find_metrics(scoring: Any, classes: NDArray | None, machine: Any) -> list[Metric]:
    """The metrics asked for, or those that suit the task; the first is the score."""
    if scoring is None:
        scoring = _usual(classes, machine)
    if isinstance(scoring, dict):
        return [_metric(value, classes, str(name)) for name, value in scoring.items()]
    if isinstance(scoring, (str, Metric, Loss)) or callable(scoring):
        scoring = [scoring]
    if not isinstance(scoring, Iterable):
        raise EmpiriskError(f"scoring={scoring!r} must be a name, a scorer, or a list or dictionary of them.")
    found = [_metric(value, classes) for value in scoring]
    if not found or len({metric.name for metric in found}) < len(found):
        raise EmpiriskError("scoring must name at least one score, and each of them once.")
    return found


def _loss_of(machine: Any) -> Loss | None:
    """The one loss of a regressor of ours that is scored by it, also at the end of a pipeline or inside a search."""
    while not isinstance(machine, PredictsNumbers):
        machine = machine.steps[-1][1] if getattr(machine, "steps", None) else getattr(machine, "estimator", None)
        if machine is None:
            return None
    return machine.scoring_loss


def _mean_loss(loss: Loss) -> Metric:
    """The weighted mean of a loss of numbers, such as a deviance or the pinball loss."""

    def mean(truth: NDArray, said: NDArray, sample_weight=None) -> float:
        return float(np.average(loss.value(truth, loss.forward_link(said)), axis=0, weights=sample_weight).mean())

    return Metric(f"mean_{loss.name()}", make_scorer(mean, greater_is_better=False), -1.0)


def _explained(loss: Loss) -> Metric:
    """D^2, the share of the loss of the best constant that is explained."""

    def share(truth: NDArray, said: NDArray, sample_weight=None) -> float:
        weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return loss.explained(truth, loss.forward_link(said), weights)

    return Metric("d2", make_scorer(share))


def _usual(classes: NDArray | None, machine: Any) -> Sequence[str | Metric]:
    if classes is None:
        loss = _loss_of(machine)
        return ["r2", "rmse", "mae"] if loss is None else [_explained(loss), _mean_loss(loss), "mae"]
    if len(classes) > 2:
        return ["accuracy", "balanced_accuracy", "f1_macro"]
    graded = any(hasattr(machine, method) for method in GRADED)
    return ["accuracy", "balanced_accuracy", "f1"] + ["roc_auc"] * graded


def _metric(value: Any, classes: NDArray | None, name: str | None = None) -> Metric:
    if isinstance(value, Metric):
        return value
    if isinstance(value, Loss):
        if classes is not None or "regression" not in value.tasks:
            raise EmpiriskError(f"scoring={value!r} scores numbers by losses of numbers alone; use a name.")
        return _mean_loss(value)
    if callable(value):
        return Metric(name or getattr(value, "__name__", str(value)), value, named=False)
    if not isinstance(value, str):
        raise EmpiriskError(f"scoring={value!r} must be a name or a scorer.")
    return Metric(name or value, _scorer(value, classes), -1.0 if value in LESS else 1.0)


def _scorer(value: str, classes: NDArray | None) -> Callable[..., Any]:
    if classes is not None and len(classes) != 2 and value in OF_TWO:
        other = "roc_auc_ovr" if value == "roc_auc" else f"{value}_macro"
        raise EmpiriskError(f"scoring={value!r} is for two classes, but y holds {len(classes)}; use {other!r}.")
    if value == "error_rate":
        return make_scorer(metrics.zero_one_loss, greater_is_better=False)
    told = {} if classes is None else _told_classes(classes)
    known = ERRORS.get(value, value)
    if value not in told and known not in metrics.get_scorer_names():
        raise EmpiriskError(
            f"scoring={value!r} is not known; use a name of sklearn.metrics.get_scorer_names() or one of "
            f"{sorted(LESS)}."
        )
    return told[value] if value in told else get_scorer(known)


def _told_classes(classes: NDArray) -> dict[str, Callable[..., Any]]:
    """Scorers that are told the classes: which of two is positive, or all, as a fold may lack one."""
    negative, positive = classes[:2]
    graded: dict[str, Any] = {"response_method": GRADED}
    probable: dict[str, Any] = {"response_method": "predict_proba", "greater_is_better": False}

    def fall_out(truth, said, sample_weight=None) -> float:
        kept = metrics.recall_score(truth, said, pos_label=negative, sample_weight=sample_weight, zero_division=1)
        return 1.0 - kept

    every = {"pos_label": positive} if len(classes) == 2 else {"labels": classes}
    shares = {name: getattr(metrics, f"{name}_score") for name in POSITIVE}
    return {
        "log_loss": make_scorer(metrics.log_loss, labels=classes, **probable),
        "brier": make_scorer(metrics.brier_score_loss, **every, **probable),
        "average_precision": make_scorer(metrics.average_precision_score, pos_label=positive, **graded),
        "average_precision_macro": make_scorer(mean_average_precision, classes=classes, **graded),
        "false_positive_rate": make_scorer(fall_out, greater_is_better=False),
        **{name: make_scorer(share, pos_label=positive, zero_division=0) for name, share in shares.items()},
    }
