"""Evaluation by resampling: every score is computed on rows that had no part in the fit, and has an interval."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from empirisk import losses, penalties
from empirisk.certificate import Certificate
from empirisk.errors import EmpiriskError
from empirisk.evaluation.answers import Array, HeldOutAnswers, answers_of
from empirisk.evaluation.data import Data, fit, read_data, seeded, seeds
from empirisk.evaluation.intervals import EvaluatedPart, EvaluatedSets, grade, score
from empirisk.evaluation.metrics import Metric, find_metrics
from empirisk.evaluation.results import EvaluationResult, Fold
from empirisk.evaluation.splits import Split
from empirisk.fits.choice import is_given
from empirisk.fits.leave_one_out import decompose
from empirisk.kernels.base import Kernel
from empirisk.linalg.threads import single_threaded_blas
from empirisk.protocols import has_problems, is_map, learns_with_machine
from empirisk.runs.journal import Journal, fingerprint, freeze, pack, thaw, unpack
from empirisk.runs.parallel import parallel_fits
from empirisk.theory.bound import check_open

#: Fitted attributes of kernels on which no value k(x, z) depends: positions of columns, sizes, and a centre that only
#: reduces rounding. A kernel with no other fitted attribute is the same in every fold.
VALUE_FREE_ATTRIBUTES = {"centre_", "columns_", "n_features_in_", "size_", "diagonal_"}


@single_threaded_blas()
def left_out_predictions(machine: Any, data: Data) -> Array | None:
    """Leave-one-out predictions from one fit, by the hat matrix; None where the machine has no such formula.

    (f(x_i) - y_i) / (1 - h_ii) is the residual of row i when it is left out, on the columns or behind a kernel. There
    is no formula for feature maps and kernels that learn from the rows, since they would have learned from the row
    left out, nor for rows of weight zero, which have no part in the fit.
    """
    if not _applies(machine, data):
        return None
    problems = machine.problems(data.X, data.y, data.weights)
    if machine.features is not None and not is_fixed(problems.machine.features_):
        return None
    parts, factor = decompose(problems[0]), problems[0].penalty.l2
    C = np.array([float(machine.C) / factor])
    columns = [problem.y - parts.residuals(problem.y, C)[:, 0] for problem in problems]
    return columns[0] if data.y.ndim == 1 else np.column_stack(columns)


def _applies(machine: Any, data: Data) -> bool:
    if data.classes is not None or not has_problems(machine):
        return False
    if is_map(machine.features):
        return False
    if data.weights is not None and data.weights.min() == 0:
        return False
    given = machine.loss if isinstance(machine.loss, (list, tuple)) else [machine.loss]
    quadratic = all(losses.find(loss).quadratic for loss in given)
    return quadratic and penalties.find(machine.penalty).ridge and is_given(machine.C) and np.isfinite(machine.C)


def is_fixed(kernel: Kernel) -> bool:
    """Whether a fitted kernel, with all kernels inside it, has learned nothing from the rows.

    >>> learning = er.kernels.Gaussian("median") + er.kernels.Linear()
    >>> is_fixed(er.kernels.Gaussian(2.0).fit(np.eye(3))), is_fixed(learning.fit(np.eye(3)))
    (True, False)
    """
    learned = {name: value for name, value in vars(kernel).items() if name.endswith("_") and not name.startswith("_")}
    inner = {name: value if isinstance(value, list) else [value] for name, value in learned.items()}
    return not learns_with_machine(kernel) and all(
        name in VALUE_FREE_ATTRIBUTES or all(isinstance(one, Kernel) and is_fixed(one) for one in values)
        for name, values in inner.items()
    )


def evidence(machine: Any) -> tuple[dict[str, Any], Certificate | None]:
    """Parameters that a fitted machine chose from the data, and its certificate; pipelines and searches are opened."""
    chosen: dict[str, Any] = {}
    certificate = None
    for prefix, part in _parts(machine):
        found = getattr(part, "chosen_", None) or getattr(part, "best_params_", None)
        if found is None and not is_given(getattr(part, "C", None)):
            found = {"C": part.C_}
        chosen |= {prefix + name: value for name, value in (found or {}).items()}
        certificate = getattr(part, "certificate_", certificate)
    return chosen, certificate


def _parts(machine: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """A fitted machine and the fitted machines inside it, with the prefix of their parameters."""
    yield prefix, machine
    for name, step in getattr(machine, "steps", []):
        yield from _parts(step, f"{prefix}{name}__")
    for name in ("best_estimator_", "regressor_", "estimator_"):
        if hasattr(machine, name):
            yield from _parts(getattr(machine, name), prefix)
            return


def known_parts(machine: Any) -> list[Any]:
    """The values that a search tries; `thaw` finds objects among them by their repr."""
    spaces = [
        value for name, value in machine.get_params().items() if name.rpartition("__")[2] in ("space", "param_grid")
    ]
    maps = [one for space in spaces for one in ([space] if isinstance(space, dict) else space or [])]
    return [value for one in maps for values in one.values() if isinstance(values, (list, tuple)) for value in values]


def evaluate(
    machine: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = 5,
    repeats: int | None = None,
    test_size: float = 0.25,
    groups: ArrayLike | None = None,
    time: bool | ArrayLike = False,
    scoring: Any = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
    journal: Any = None,
) -> EvaluationResult:
    """Score a machine on rows that it has not seen, with an interval for every score.

    Whatever the machine chooses from data (C, columns, thresholds, resampling) it chooses inside each split, from the
    training rows alone. Splits run in parallel within ``er.config(threads=...)``; the result is the same for
    any number.

    Parameters
    ----------
    machine : classifier or regressor
        Of Empirisk or any that keeps scikit-learn's contract, pipelines and searches included. It is not changed.
    X, y : table and targets
        Rows and targets, as ``machine.fit`` takes them.
    cv : int, "loo", "holdout", "random", splitter or pairs
        Folds, stratified for classes; leave-one-out, in closed form for ridge regression on columns or behind a fixed
        kernel; one random split; ``repeats`` random splits; any splitter of scikit-learn; pairs (train, test) of row
        numbers.
    repeats : int
        How often folds are drawn anew (1), or how many random splits (10).
    test_size : float
        Share of the rows that random splits test on.
    groups : array
        Rows of one group are never on both sides of a split.
    time : bool or array
        Train on earlier rows and test on later ones: by this array, or True where the rows are in order.
    scoring : name, scorer, list or dict
        Names of scikit-learn's scorers, and "rmse", "mse", "mae", "log_loss", "brier", "error_rate",
        "false_positive_rate", "poisson_deviance", "gamma_deviance"; a regression loss such as
        ``er.losses.Quantile(0.9)`` is its mean. The first is the score. By default what suits the task; for deviances
        and quantiles "d2", the share of the loss that is explained, and the mean loss.
    sample_weight : array
        Weights of the rows, in fits and in scores.
    confidence : float
        Of the intervals.
    random_state : int, RandomState or None
        Draws the splits, and seeds machines whose ``random_state`` is None.
    journal : path
        A file in which finished splits are noted: run the same again after a crash, and it goes on where it was.

    Returns
    -------
    EvaluationResult

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + X[:, 1] + np.random.default_rng(1).normal(size=200) > 0
    >>> search = er.selection.Search(er.LogisticRegression(), {"C": [0.01, 1.0]})  # searched again inside every split
    >>> result = er.evaluate(search, X, y)
    >>> low, high = result.score.interval
    >>> low < result.score.value < high
    True
    """
    confidence = check_open("confidence", confidence)
    data = read_data(machine, X, y, sample_weight, groups)
    metrics = find_metrics(scoring, data.classes, machine)
    splits = data.splits(cv, repeats=repeats, test_size=test_size, time=time, random_state=random_state)
    _refuse_inner_journal(machine)
    task = Task(machine, data, metrics, splits, seeds(random_state, len(splits)))
    outcomes = _closed_form(task, cv) or _by_refitting(task, journal)
    return _result(task, outcomes, confidence)


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be done: a machine, data, metrics, and splits with a seed each."""

    machine: Any
    data: Data
    metrics: list[Metric]
    splits: list[Split]
    seeds: list[int]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions, parameters, certificate and seconds of one split; ``scores`` has the user's own scorers only."""

    answers: HeldOutAnswers
    scores: dict[str, float]
    parameters: dict[str, Any]
    certificate: Certificate | None
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON; labels are stored as indices into the classes."""
        answers, labels = self.answers, self.answers.classes
        said = answers.predictions if labels is None else np.searchsorted(labels, answers.predictions)
        return {
            "answers": [pack(said), pack(answers.probabilities), pack(answers.decisions)],
            "scores": self.scores,
            "parameters": freeze(self.parameters),
            "seconds": self.seconds,
            "certificate": None if self.certificate is None else asdict(self.certificate),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any], task: Task) -> Outcome:
        """The outcome that `to_json` wrote."""
        said, probabilities, decisions = (unpack(packed) for packed in value["answers"])
        labels, certificate = task.data.classes, value["certificate"]
        return cls(
            HeldOutAnswers(said if labels is None else labels[said], probabilities, decisions, labels),
            value["scores"],
            thaw(value["parameters"], known_parts(task.machine)),
            None if certificate is None else Certificate(**certificate),
            value["seconds"],
        )


def _by_refitting(task: Task, journal: Any) -> list[Outcome]:
    """Fit and test in every split whose result is not in the journal yet."""
    data = task.data
    what = ("evaluate", task.machine, data.X, data.y, data.weights, task.splits, task.seeds)
    notes = Journal(journal, lambda: fingerprint(*what, [metric.name for metric in task.metrics]))

    def run(number: int) -> dict[str, Any]:
        return _one_split(task, number).to_json()

    left = [number for number in range(len(task.splits)) if str(number) not in notes.done]
    alone = len(task.splits) == 1
    parallel_fits(run, left, alone=alone, note=lambda number, outcome: notes.add(str(number), outcome))
    return [Outcome.from_json(notes.done[str(number)], task) for number in range(len(task.splits))]


def _one_split(task: Task, number: int) -> Outcome:
    train, test = task.data.split(*task.splits[number])
    machine = seeded(task.machine, task.seeds[number])
    start = clock.perf_counter()
    fit(machine, train)
    seconds = clock.perf_counter() - start
    answers = answers_of(machine, test.X, task.data.classes)
    scores = {metric.name: _own_score(metric, machine, test) for metric in task.metrics if not metric.named}
    return Outcome(answers, scores, *evidence(machine), seconds)


def _own_score(metric: Metric, machine: Any, test: Data) -> float:
    """The score by the user's own scorer, which must be one number."""
    value = test.score(machine, metric.scorer)
    if np.ndim(value) != 0 or not isinstance(value, (Real, np.generic)):
        raise EmpiriskError(f"scoring={metric.name!r} must give one number, not {type(value).__name__}.")
    return metric.sign * float(value)


def _closed_form(task: Task, cv: Any) -> list[Outcome]:
    """Leave-one-out without refitting; empty where there is no formula, or a scorer needs the fitted machine."""
    if cv != "loo" or task.data.groups is not None or not all(metric.named for metric in task.metrics):
        return []
    start = clock.perf_counter()
    found = left_out_predictions(task.machine, task.data)
    if found is None:
        return []
    seconds = (clock.perf_counter() - start) / len(found)
    return [Outcome(HeldOutAnswers(found[[row]], None, None, None), {}, {}, None, seconds) for row in range(len(found))]


def _result(task: Task, outcomes: list[Outcome], confidence: float) -> EvaluationResult:
    data = task.data
    tests = [test for _, test in task.splits]
    joined, order = HeldOutAnswers.join([outcome.answers for outcome in outcomes]), np.concatenate(tests)
    rows, first = np.unique(order, return_index=True)
    once = joined.take(first)
    parts = [_part(data, test, outcome.answers) for test, outcome in zip(tests, outcomes, strict=True)]
    pooled = min(map(len, tests)) < 2  # test sets of one row cannot be scored one by one
    each = [outcome.scores for outcome in outcomes] if pooled else _fold_scores(task, parts, outcomes)
    share = sum(len(test) for test in tests) / sum(len(train) for train, _ in task.splits)
    together = [_part(data, order, joined)] if pooled or data.classes is None else parts
    trial = EvaluatedSets(together, len(task.splits), share, data.groups, confidence)
    scores = {
        metric.name: score(metric, trial, np.array([one[metric.name] for one in each if metric.name in one]))
        for metric in task.metrics
    }
    folds = [
        Fold(*split, found, outcome.parameters, outcome.seconds, outcome.certificate)
        for split, found, outcome in zip(task.splits, each, outcomes, strict=True)
    ]
    answers = (once.predictions, data.y[rows], data.classes, once.probabilities, once.decisions)
    weights = None if data.weights is None else data.weights[rows]
    notes = tuple(
        f"{name} is NaN: a test set lacks a class, or all its targets are equal; use stratified or fewer folds."
        for name, found in scores.items()
        if np.isnan(found.value)
    )
    return EvaluationResult(scores, folds, rows, *answers, weights, type(task.machine).__name__, notes)


def _part(data: Data, rows: NDArray, answers: HeldOutAnswers) -> EvaluatedPart:
    return EvaluatedPart(rows, data.y[rows], answers, None if data.weights is None else data.weights[rows])


def _fold_scores(task: Task, parts: list[EvaluatedPart], outcomes: list[Outcome]) -> list[dict[str, float]]:
    """The scores of each fold; NaN without a warning where a fold cannot be scored, since the result has a note."""
    named = [metric for metric in task.metrics if metric.named]
    with warnings.catch_warnings(action="ignore"):
        return [
            {metric.name: grade(metric, part) for metric in named} | outcome.scores
            for part, outcome in zip(parts, outcomes, strict=True)
        ]


def _refuse_inner_journal(machine: Any) -> None:
    """Raise for a search with a journal of its own: every split has other data, which the journal would refuse."""
    given = machine.get_params().items()
    if any(value is not None for name, value in given if name.rpartition("__")[2] == "journal"):
        raise EmpiriskError("journal= of a search is for one fit on all rows; give evaluate(journal=...) instead.")
