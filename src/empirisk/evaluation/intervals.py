"""Confidence intervals of scores: where the mean score of the trained machines on new rows lies.

The aim is the mean score of these machines on all rows there could be. So the machines are given, the rows are the
sample, and their spread gives the variance: binomial for rates, a jackknife over blocks of rows (or of groups) for all
other scores, which also tells their bias: average precision of few rows is too high, R^2 too low. Folds drawn
otherwise would have given other machines and test sets: in simulations that makes the variance 1.0 to 2.1 times that of
the rows, most where there is nothing to find, less where folds are repeated; `allowance` stands for it. How far
machines trained on other data would differ cannot be seen in folds, which share most of their rows. It matters little
for accuracy, area under the ROC curve, R^2 or RMSE, and much for F1 or recall of a machine that has found nothing:
chance then decides how often it says yes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import t as student

from empirisk.errors import EmpiriskError
from empirisk.evaluation.answers import Array, HeldOutAnswers
from empirisk.evaluation.metrics import Metric
from empirisk.theory.luck import clopper_pearson, wilson

#: Blocks of rows for the jackknife: thirty give a stable variance, fewer than five none.
BLOCKS, FEWEST = 30, 5
#: Squared quantile of Student's t with about `BLOCKS` degrees of freedom over that of the normal distribution.
STUDENT_FACTOR = 1.1
#: What the random choice of folds adds to the variance, as a share of the variance due to the rows: for scores of
#: labels, for scores of numbers, and for scores that are biased on few rows, whose bias correction is an estimate too.
FOLDS, FOLDS_OF_NUMBERS, FOLDS_OF_BIASED = 0.4, 0.8, 1.0


@dataclass(frozen=True, eq=False)
class Score:
    """A score with its interval.

    Attributes
    ----------
    name : str
        Which score.
    value : float
        For classes the mean over the folds; for numbers the score of all held-out answers together, since R^2 and RMSE
        of small folds are biased, as for classes where a fold is too small to score.
    interval : (float, float)
        Low and high: where the score of the machines trained in the splits lies, on new rows, on average over the
        machines. NaN where one split gives a number that cannot be taken apart.
    confidence : float
        How often such an interval is right.
    method : str
        "binomial", "jackknife" or "corrected t"; "none" where the score is NaN.
    folds : array
        The score of each fold; empty where folds are too small.
    higher_is_better : bool
        Whether more is better.

    Examples
    --------
    >>> X = np.arange(40.0)[:, None]
    >>> score = er.evaluate(er.LogisticRegression(), X, X[:, 0] > 19).score
    >>> low, high = score.interval
    >>> low < score.value <= high <= 1
    True
    """

    name: str
    value: float
    interval: tuple[float, float]
    confidence: float
    method: str
    folds: Array
    higher_is_better: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The score as JSON has it."""
        return {"name": self.name, "value": self.value, "low": self.interval[0], "high": self.interval[1]}

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} [{self.interval[0]:.4g}, {self.interval[1]:.4g}]"


@dataclass(frozen=True, eq=False)
class EvaluatedPart:
    """A test set: its row numbers, the truth, the answers, and weights if there are any."""

    rows: NDArray[np.intp]
    truth: NDArray
    answers: HeldOutAnswers
    weights: Array | None


@dataclass(frozen=True, eq=False)
class EvaluatedSets:
    """All test sets of an evaluation.

    Attributes
    ----------
    parts : list of Part
        What is scored at once: a fold, or all folds together.
    splits : int
        How many machines were trained.
    share : float
        Test rows per training row.
    groups : array or None
        The group of each row of the data, where rows of a group go together.
    """

    parts: list[EvaluatedPart]
    splits: int
    share: float
    groups: NDArray | None
    confidence: float

    @property
    def tested(self) -> NDArray[np.intp]:
        """The rows that were tested, each once."""
        return np.unique(np.concatenate([part.rows for part in self.parts]))

    @property
    def repeats(self) -> float:
        """How often a row is tested."""
        return sum(len(part.rows) for part in self.parts) / len(self.tested)

    def allowance(self, metric: Metric, labels: bool) -> float:
        """Factor on the variance due to the rows that accounts for the random choice of folds.

        Repeated folds reduce the extra variance of scores of labels, since near ties fall on either side of the
        threshold; they hardly reduce that of scores of numbers.
        """
        if self.splits == 1:
            return 1.0
        if labels:
            return 1 + FOLDS / self.repeats
        return 1 + (FOLDS_OF_BIASED if metric.biased else FOLDS_OF_NUMBERS)


def grade(metric: Metric, part: EvaluatedPart, kept: NDArray[np.bool_] | None = None) -> float:
    """The score of a test set, or of a part of it."""
    rows = np.arange(len(part.rows)) if kept is None else np.flatnonzero(kept)
    extra = {} if part.weights is None else {"sample_weight": part.weights[rows]}
    try:
        return metric.sign * float(metric.scorer(part.answers.judge(), rows, part.truth[rows], **extra))
    except AttributeError as error:
        raise EmpiriskError(
            f"scoring={metric.name!r} needs probabilities or decision values, which the machine does not give; choose "
            "another score, or calibrate the machine with scikit-learn's CalibratedClassifierCV."
        ) from error
    except ValueError as error:
        raise EmpiriskError(f"scoring={metric.name!r} does not suit these answers: {error}") from error


def score(metric: Metric, trial: EvaluatedSets, folds: Array) -> Score:
    """A score with its interval, from the test sets and the score of each fold."""
    parts = folds
    if metric.named:
        # Scikit-learn warns about test sets that lack a class; their score is NaN, which the result explains.
        with warnings.catch_warnings(action="ignore"):
            parts = np.array([grade(metric, part) for part in trial.parts])
    value = float(np.mean(parts))
    if not metric.named:
        method, interval = "corrected t", corrected_t(folds, trial.share, trial.confidence)
    elif np.isnan(value):
        method, interval = "none", (np.nan, np.nan)
    # A score of exactly 0 or 1 stays there whichever rows are left out: the jackknife would give it no width.
    elif metric.rate or (metric.limits == (0.0, 1.0) and value in (0.0, 1.0)):
        method, interval = "binomial", _of_rate(metric, trial, parts)
    else:
        method, interval = "jackknife", _around(value, *_bias_and_half(metric, trial, parts), metric.limits)
    return Score(metric.name, value, interval, trial.confidence, method, folds, metric.sign > 0)


def _around(value: float, bias: float, half: float, limits: tuple[float, float]) -> tuple[float, float]:
    """The interval value - bias -+ half, built on an unbounded scale and widened to include the value itself.

    Scores between 0 and 1 use log odds and positive ones logarithms, so that no limit leaves the range of the score.
    """
    low, high = limits
    centre = value - bias if low < value - bias < high else value
    if (low, high) == (0.0, 1.0) and 0 < centre < 1:
        odds, half = np.log(centre / (1 - centre)), half / (centre * (1 - centre))
        begin, end = float(expit(odds - half)), float(expit(odds + half))
    elif low == 0 and centre > 0 and np.isinf(high):
        begin, end = float(centre * np.exp(-half / centre)), float(centre * np.exp(half / centre))
    else:
        begin, end = max(low, centre - half), min(high, centre + half)
    return min(begin, value), max(end, value)


def corrected_t(values: Array, share: float, confidence: float) -> tuple[float, float]:
    """Nadeau and Bengio's interval for a mean over J splits:  mean -+ t s sqrt(1/J + test rows / training rows)."""
    count = len(values)
    if count < 2:
        return np.nan, np.nan
    half = student.ppf((1 + confidence) / 2, count - 1) * np.std(values, ddof=1) * np.sqrt(1 / count + share)
    return float(np.mean(values) - half), float(np.mean(values) + half)


def _of_rate(metric: Metric, trial: EvaluatedSets, folds: Array) -> tuple[float, float]:
    """A binomial interval with an effective number of rows, which weights, groups and random folds reduce."""
    value, rows = float(np.mean(folds)), trial.tested
    weights = _weights(trial, rows)
    worth = float(weights.sum() ** 2 / (weights**2).sum())
    if not metric.rate:
        # A score at its limit: only the rows that it counts matter, such as the predicted positives for precision.
        worth = min(worth, 1 / np.max(np.abs(_one_more(metric, trial)), initial=1 / (1 + worth)) - 1)
    if trial.groups is not None:
        variance, _, _ = _jackknife(metric, trial, folds)
        clusters = len(np.unique(trial.groups[rows]))
        worth = min(worth, value * (1 - value) / variance if variance > 0 else clusters)
    # Wilson's interval has a normal quantile; the jackknife has Student's, whose square is larger by this factor.
    worth = max(worth / (trial.allowance(metric, labels=True) * (1.0 if trial.splits == 1 else STUDENT_FACTOR)), 1.0)
    method: Callable = clopper_pearson if trial.splits == 1 else wilson
    return method(min(max(value, 0.0), 1.0) * worth, worth, trial.confidence)


def _weights(trial: EvaluatedSets, rows: NDArray[np.intp]) -> Array:
    """The weight of each tested row."""
    weights = np.ones(int(rows.max()) + 1)
    for part in trial.parts:
        if part.weights is not None:
            weights[part.rows] = part.weights
    return weights[rows]


def _bias_and_half(metric: Metric, trial: EvaluatedSets, folds: Array) -> tuple[float, float]:
    """Jackknife estimate of the bias of a score, and half the width of its interval."""
    rows, freedom, bias = _jackknife(metric, trial, folds)
    if freedom < 1:
        return 0.0, np.nan
    moves = _one_more(metric, trial)
    variance = trial.allowance(metric, labels=len(moves) > 0) * (rows + float(np.sum(moves**2)))
    return bias, float(student.ppf((1 + trial.confidence) / 2, freedom) * np.sqrt(variance))


def _one_more(metric: Metric, trial: EvaluatedSets) -> Array:
    """How much one more row of each class, predicted rightly or wrongly, would change a score of labels; else empty.

    A machine that never predicts the positive class has a jackknife variance of zero for precision or recall. These
    changes stand for the kinds of rows that the sample lacks, as adding a success and a failure does for a proportion.
    """
    answers = HeldOutAnswers.join([part.answers for part in trial.parts])
    if answers.classes is None:
        return np.empty(0)
    labels = replace(answers, probabilities=None, decisions=None)
    rows, truth = (np.concatenate([getattr(part, name) for part in trial.parts]) for name in ("rows", "truth"))
    weights = None if trial.parts[0].weights is None else _weights(trial, rows)

    def with_row(label: Any, said: Any) -> float:
        more = replace(labels, predictions=np.append(labels.predictions, said))
        heavier = None if weights is None else np.append(weights, weights.mean())
        return grade(metric, EvaluatedPart(np.append(rows, -1), np.append(truth, label), more, heavier))

    pairs = zip(answers.classes, np.roll(answers.classes, 1), strict=True)
    with _without_checks():
        try:
            before = grade(metric, EvaluatedPart(rows, truth, labels, weights))
            moved = [with_row(label, said) for label, other in pairs for said in (label, other)]
        except EmpiriskError:  # the metric needs probabilities or decision values
            return np.empty(0)
    return trial.repeats * (np.array(moved) - before)


@contextmanager
def _without_checks() -> Iterator[None]:
    """Within, scikit-learn's checks and warnings are off: the whole data were checked, and parts may lack a class."""
    rules = sklearn.config_context(assume_finite=True, skip_parameter_validation=True)
    with warnings.catch_warnings(action="ignore"), rules:
        yield


def _jackknife(metric: Metric, trial: EvaluatedSets, folds: Array) -> tuple[float, float, float]:
    """Delete-a-block jackknife: the variance of the score, its degrees of freedom, and its bias.

    Blocks lie inside one test set. Where there are groups, or one pooled test set, a block is left out of all of them.
    """
    with _without_checks():
        if trial.groups is not None or len(trial.parts) == 1:
            block, pairs = _blocks(trial), list(zip(trial.parts, folds, strict=True))
            return _spread(
                [
                    float(np.nanmean([_without(metric, part, block[part.rows] != number, old) for part, old in pairs]))
                    for number in range(block.max() + 1)
                ],
                float(np.mean(folds)),
            )
        found = []
        for part, old in zip(trial.parts, folds, strict=True):
            count = min(len(part.rows), max(FEWEST, BLOCKS // len(trial.parts)))
            block = np.random.default_rng(0).permutation(np.arange(len(part.rows)) % count)
            found.append(_spread([_without(metric, part, block != number, old) for number in range(count)], old))
    # Repeated folds test the same rows again: they must not divide the variance as new rows would.
    variance, freedom, bias = np.sum(found, axis=0)
    return trial.repeats * variance / len(trial.parts) ** 2, freedom / trial.repeats, bias / len(trial.parts)


def _spread(scores: Sequence[float], score: float) -> tuple[float, float, float]:
    """Jackknife variance, degrees of freedom and bias from the scores that leave each block out."""
    moved = np.asarray(scores)
    count, mean = len(moved), float(np.nanmean(moved))
    variance = (count - 1) / count * float(np.nansum((moved - mean) ** 2))
    return variance, count - 1.0, (count - 1) * (mean - score)


def _blocks(trial: EvaluatedSets) -> NDArray[np.intp]:
    """The block of each row; rows of one group share a block, and rows that are not tested have -1."""
    rows, random = trial.tested, np.random.default_rng(0)
    members = np.arange(len(rows)) if trial.groups is None else np.unique(trial.groups[rows], return_inverse=True)[1]
    block = np.full(int(rows.max()) + 1, -1)
    block[rows] = random.permutation(members.max() + 1)[members] % min(BLOCKS, members.max() + 1)
    return block


def _without(metric: Metric, part: EvaluatedPart, kept: NDArray[np.bool_], before: float) -> float:
    """The score of the rows that are kept; the score before where these cannot be scored."""
    if kept.all():
        return before
    if not kept.any():
        return np.nan
    try:
        value = grade(metric, part, kept)
    except EmpiriskError:  # the rows that are left lack a class
        return before
    return value if np.isfinite(value) else before
