"""Every score with an interval: what new rows would say of a machine trained on as many rows.

The rows are the sample, so their spread gives the variance: binomial for rates, a jackknife over blocks of rows (or of
groups) for all other scores. Two things add to it when a score is averaged over folds: each fold trains another
machine, and the folds themselves are drawn. In simulations the variance is 1.05 to 1.7 times that of the rows alone,
less where folds are repeated; `allowance` stands for both. Without it intervals hold the truth 85 to 95 times of 100
instead of 95; Nadeau and Bengio's correction, made for few test rows, is twice as wide as needed here.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import t as student

from empirisk.selection.answers import Answers
from empirisk.selection.metrics import Metric
from empirisk.theory.luck import clopper_pearson, wilson

Array = NDArray[np.float64]
BLOCKS, FEWEST = 30, 5
TRAINING, FOLDS = 0.1, 0.4


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
        Low and high: where the score of machines trained on as many rows lies, on new rows; of the one machine where
        there is one split. NaN where one split gives a number that cannot be taken apart.
    confidence : float
        How often such an interval is right.
    method : str
        "binomial", "jackknife" or "corrected t".
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

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} [{self.interval[0]:.4g}, {self.interval[1]:.4g}]"


@dataclass(frozen=True, eq=False)
class Part:
    """A test set: its row numbers, the truth, the answers, and weights if there are any."""

    rows: NDArray[np.intp]
    truth: NDArray
    answers: Answers
    weights: Array | None


@dataclass(frozen=True, eq=False)
class Trial:
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

    parts: list[Part]
    splits: int
    share: float
    groups: NDArray | None
    confidence: float

    @property
    def tested(self) -> NDArray[np.intp]:
        """The rows that were tested, each once."""
        return np.unique(np.concatenate([part.rows for part in self.parts]))

    @property
    def allowance(self) -> float:
        """What the variance of the rows is multiplied with, to pay for training sets and folds drawn at random."""
        if self.splits == 1:
            return 1.0
        repeats = sum(len(part.rows) for part in self.parts) / len(self.tested)
        return 1 + TRAINING + FOLDS / repeats


def grade(metric: Metric, part: Part, kept: NDArray[np.bool_] | None = None) -> float:
    """The score of a test set, or of a part of it."""
    rows = np.arange(len(part.rows)) if kept is None else np.flatnonzero(kept)
    extra = {} if part.weights is None else {"sample_weight": part.weights[rows]}
    return metric.sign * float(metric.scorer(part.answers.judge(), rows, part.truth[rows], **extra))


def score(metric: Metric, trial: Trial, folds: Array) -> Score:
    """A score with its interval, from the test sets and what each fold scored."""
    if not metric.named:
        value, interval = float(np.mean(folds)), corrected_t(folds, trial.share, trial.confidence)
        return Score(metric.name, value, interval, trial.confidence, "corrected t", folds, metric.sign > 0)
    parts = np.array([grade(metric, part) for part in trial.parts])
    value = float(np.mean(parts))
    if metric.rate or (metric.limits == (0.0, 1.0) and value in (0.0, 1.0)):  # at a limit nothing moves the score
        method, interval = "binomial", _of_rate(metric, trial, parts)
    else:
        method, interval = "jackknife", _around(value, _half_width(metric, trial, parts), metric.limits)
    return Score(metric.name, value, interval, trial.confidence, method, folds, metric.sign > 0)


def _around(value: float, half: float, limits: tuple[float, float]) -> tuple[float, float]:
    """value -+ half on a scale without limits: log odds between 0 and 1, logarithms above 0."""
    low, high = limits
    if (low, high) == (0.0, 1.0) and 0 < value < 1:
        odds, half = np.log(value / (1 - value)), half / (value * (1 - value))
        return float(expit(odds - half)), float(expit(odds + half))
    if low == 0 and value > 0 and np.isinf(high):
        return float(value * np.exp(-half / value)), float(value * np.exp(half / value))
    return max(low, value - half), min(high, value + half)


def corrected_t(values: Array, share: float, confidence: float) -> tuple[float, float]:
    """Nadeau and Bengio's interval for a mean over J splits:  mean -+ t s sqrt(1/J + test rows / training rows)."""
    count = len(values)
    if count < 2:
        return np.nan, np.nan
    half = student.ppf((1 + confidence) / 2, count - 1) * np.std(values, ddof=1) * np.sqrt(1 / count + share)
    return float(np.mean(values) - half), float(np.mean(values) + half)


def _of_rate(metric: Metric, trial: Trial, folds: Array) -> tuple[float, float]:
    """A binomial interval with the number of rows that the answers are worth."""
    value, rows = float(np.mean(folds)), trial.tested
    weights = _weights(trial, rows)
    worth = float(weights.sum() ** 2 / (weights**2).sum())
    if trial.groups is not None:
        variance, _ = _jackknife(metric, trial, folds)
        clusters = len(np.unique(trial.groups[rows]))
        worth = min(worth, value * (1 - value) / variance) if variance > 0 else float(clusters)
    worth = max(worth / trial.allowance, 1.0)
    method: Callable = clopper_pearson if trial.splits == 1 else wilson
    return method(min(max(value, 0.0), 1.0) * worth, worth, trial.confidence)


def _weights(trial: Trial, rows: NDArray[np.intp]) -> Array:
    """The weight of each tested row."""
    weights = np.ones(int(rows.max()) + 1)
    for part in trial.parts:
        if part.weights is not None:
            weights[part.rows] = part.weights
    return weights[rows]


def _half_width(metric: Metric, trial: Trial, folds: Array) -> float:
    rows, freedom = _jackknife(metric, trial, folds)
    if freedom < 1:
        return np.nan
    return float(student.ppf((1 + trial.confidence) / 2, freedom) * np.sqrt(trial.allowance * rows))


def _jackknife(metric: Metric, trial: Trial, folds: Array) -> tuple[float, int]:
    """Variance of the score, from how it moves when a block of rows is left out, and its degrees of freedom.

    Blocks lie inside the test sets where each row is tested once: one test set is then scored anew for each.
    """
    block, strata = _blocks(trial)
    variance, freedom = 0.0, 0
    with warnings.catch_warnings(), sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore")  # of scores that the rows left over do not allow
        for numbers in strata:
            moved = np.zeros(len(numbers))
            for k, number in enumerate(numbers):
                pairs = zip(trial.parts, folds, strict=True)
                moved[k] = np.nanmean([_without(metric, part, block[part.rows] != number, old) for part, old in pairs])
            if len(numbers) > 1:
                variance += (len(numbers) - 1) / len(numbers) * float(np.sum((moved - moved.mean()) ** 2))
                freedom += len(numbers) - 1
    return variance, freedom


def _blocks(trial: Trial) -> tuple[NDArray[np.intp], list[NDArray[np.intp]]]:
    """The block of each row of the data (-1 for none), and which blocks are dealt from the same rows."""
    rows, random = trial.tested, np.random.default_rng(0)
    block = np.full(int(rows.max()) + 1, -1)
    if trial.groups is not None:
        names = np.unique(trial.groups[rows], return_inverse=True)[1]
        block[rows] = random.permutation(names.max() + 1)[names] % BLOCKS
        return block, [np.unique(block[rows])]
    once = sum(len(part.rows) for part in trial.parts) == len(rows)
    labels = np.zeros(len(block), dtype=np.intp)
    for part in trial.parts:
        if part.answers.classes is not None:
            labels[part.rows] = np.searchsorted(part.answers.classes, part.truth)
    strata, start = [], 0
    for members in [part.rows for part in trial.parts] if once else [rows]:
        count = min(len(members), max(FEWEST, BLOCKS // len(trial.parts)) if once else BLOCKS // 2)
        order = random.permutation(members)
        # Dealt class by class, so that every block holds as much of each as can be.
        block[order[np.argsort(labels[order], kind="stable")]] = start + np.arange(len(order)) % count
        strata.append(np.arange(start, start + count))
        start += count
    return block, strata


def _without(metric: Metric, part: Part, kept: NDArray[np.bool_], before: float) -> float:
    """The score of a test set without a block; as before where the rest cannot be scored."""
    if kept.all():
        return before
    if not kept.any():
        return np.nan
    try:
        value = grade(metric, part, kept)
    except ValueError:  # a class is gone
        return before
    return value if np.isfinite(value) else before
