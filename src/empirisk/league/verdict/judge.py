"""The verdict: the test, used once, and what can be said of the winner and its rivals."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_squared_error
from sklearn.pipeline import Pipeline

from empirisk.errors import EmpiriskError
from empirisk.evaluation.answers import answers_of
from empirisk.evaluation.compare import judge_gaps
from empirisk.evaluation.curves import LearningCurve, learning_curve
from empirisk.evaluation.intervals import BLOCKS, EvaluatedPart, EvaluatedSets, Score, corrected_t, grade, score
from empirisk.evaluation.metrics import Metric, find_metrics
from empirisk.explain.permutation import falls_in_time
from empirisk.formats import metric_name, number, percent
from empirisk.league.records import CandidateResult
from empirisk.league.result import HALF, Test
from empirisk.league.rows.encoded_folds import sample
from empirisk.league.rows.split import Plan, rare_class
from empirisk.settings import settings
from empirisk.tables.model import named_from
from empirisk.theory.bound import chance
from empirisk.theory.luck import luck, verdict

CONFIDENCE = 0.95  # of intervals and of differences: the usual one
#: Test rows on which columns are shuffled, and how often each is: enough for two digits; seconds for all of them.
TESTED_ROWS, SHUFFLES, IMPORTANCE_SECONDS = 2000, 3, 10.0
#: Seconds for the learning curve, its folds, and the rows that its first point must have.
CURVE_SECONDS, CURVE_FOLDS, MIN_CURVE_ROWS = 20.0, 3, 20
CURVE_SHARES = (0.1, 0.25, 0.5, 1.0)  # of the rows, about twice as many each time
#: Seconds of a processor that the usual scores of one row take, of a number and of a class.
SCORING_SECONDS = 3e-7, 2.5e-6
#: How often answers are dealt to other rows: what none of so many reaches has a chance of 1 %; and on how many rows.
PERMUTATIONS, PERMUTED_ROWS = 99, 2000


#: What may be said of two machines.
SAME, NOT_PROVEN, ONE_FOLD = "no real difference", "not proven with these rows", "compared on one fold only"
MATTERS = 0.05  # share of what the winner gained over guessing from which a difference matters
MOST_NAMED = 3  # times the expected rows of a rare class that may be named


#: What people call scores.
ALIASES = {
    "acc": "accuracy",
    "bacc": "balanced_accuracy",
    "auc": "roc_auc",
    "ap": "average_precision",
    "logloss": "log_loss",
}
#: Scores of two classes that have another name for several: how it ends.
OF_SEVERAL = {"roc_auc": "_ovr", **dict.fromkeys(("average_precision", "f1", "precision", "recall"), "_macro")}


def metric_for(name: str | None, classes: NDArray | None, balance: bool, y: NDArray | None = None) -> Metric:
    """The score that decides: as asked, else accuracy (balanced where classes are), or the root mean squared error.

    Where a class is rare in ``y``, accuracy would hide it: average precision decides, of the rare one of two classes,
    or its mean over several.
    """
    if name is None:
        name = "rmse" if classes is None else "balanced_accuracy" if balance else "accuracy"
        rare = rare_class(y) if name == "accuracy" and y is not None else None
        if classes is not None and rare is not None:
            # The second of two classes is the one that is to be found.
            name, classes = "average_precision", classes if len(classes) > 2 else classes[np.argsort(classes == rare)]
    meant = ALIASES.get(name, name)
    if classes is not None and len(classes) > 2:
        meant += OF_SEVERAL.get(meant, "")
    try:
        found = find_metrics(meant, classes, None)[0]
    except EmpiriskError as error:
        raise EmpiriskError(str(error).replace(f"scoring={meant!r}", f"metric={name!r}")) from error
    of_numbers = found.scorer._score_func.__module__ == mean_squared_error.__module__
    if of_numbers != (classes is None):
        holds, better = ("numbers", "rmse, mae or r2") if classes is None else ("classes", "accuracy, f1 or log_loss")
        raise EmpiriskError(f"metric={name!r} does not suit a target that holds {holds}; use {better}.")
    return found


def test(plan: Plan, pipeline: Pipeline, metric: Metric) -> Test:
    """Score the fitted pipeline on the test part."""
    truth = plan.y[plan.test]
    answers = answers_of(pipeline, plan.frame[plan.test], plan.classes)
    threshold = rare_threshold(plan, answers.probabilities)
    if threshold is not None and plan.classes is not None and answers.probabilities is not None:
        answers = replace(answers, predictions=named_from(plan.classes, answers.probabilities, *threshold))
    part = EvaluatedPart(np.arange(len(truth)), truth, answers, None)
    scores = scores_of(part, pipeline, [metric], len(plan.test) / len(plan.train))
    said = _luck(plan, part, metric, scores[0].value) if scores[0].name == metric.name else ""
    return Test(truth, answers.predictions, answers.probabilities, answers.decisions, scores, said, threshold)


def rare_threshold(plan: Plan, shares: NDArray | None) -> tuple[int, float] | None:
    """The number of a rare class of two, and the probability from which it is named; None where a half is right.

    A model that never says more than a half finds nobody. As many rows are named as the class has among the training
    rows, by share, and half of that at the least is named at a half where that is kept. The truth of the rows whose
    probabilities ``shares`` are is not looked at.
    """
    if shares is None or plan.classes is None or len(plan.classes) != 2:
        return None
    rare = rare_class(plan.y[plan.train])
    if rare is None:
        return None
    place = int(np.flatnonzero(plan.classes == rare)[0])
    expected = max(round(float(np.mean(plan.y[plan.train] == rare)) * len(shares)), 1)
    if np.sum(shares[:, place] >= HALF) >= expected / 2:
        return None
    ordered = np.sort(shares[:, place])[::-1]
    between = (ordered[expected - 1] + ordered[min(expected, len(ordered) - 1)]) / 2
    threshold = float(min(between if between > 0 else ordered[expected - 1], HALF))
    # Where many rows have the same probability, a threshold there names them all, and tells nothing.
    return (place, threshold) if np.sum(shares[:, place] >= threshold) <= MOST_NAMED * expected else None


def scoring(classes: NDArray | None) -> float:
    """Seconds of a processor that the scores of a test row take, with their intervals: one more row of each class."""
    return SCORING_SECONDS[classes is not None] * (BLOCKS + 2 * (0 if classes is None else len(classes)))


def scores_of(part: EvaluatedPart, machine: Any, first: Sequence[Metric], share: float = 1.0) -> list[Score]:
    """The scores that come first and the usual ones; those of a class that the rows lack are left out."""
    classes, trial = part.answers.classes, EvaluatedSets([part], 1, share, None, CONFIDENCE)
    others = [one for one in find_metrics(None, classes, machine) if one.name not in {m.name for m in first}]
    if classes is not None and len(np.unique(part.truth)) < len(classes):
        others = [one for one in others if one.name == "accuracy"]
    graded = [(one, grade(one, part)) for one in (*first, *others)]
    return [score(one, trial, np.array([value])) for one, value in graded if np.isfinite(value)]


def _luck(plan: Plan, part: EvaluatedPart, metric: Metric, value: float) -> str:
    """Was it luck? By the measure that decides, against the mean of the training rows or the most frequent class."""
    truth, said = part.truth, part.answers.predictions
    if plan.classes is None:
        return paired_luck(truth - said, truth - plan.y[plan.train].mean(), metric.name)
    if not metric.rate:
        return permutation_luck(part, metric, value)
    labels, counts = np.unique(plan.y[plan.train], return_counts=True)
    rate = float(np.mean(truth != labels[counts.argmax()]))
    guess = f"Guessing {str(labels[counts.argmax()])!r} for every row errs in {percent(rate)} of them."
    return f"{guess} {luck(int(np.sum(truth != said)), len(truth), rate)}"


def permutation_luck(part: EvaluatedPart, metric: Metric, value: float) -> str:
    """How often answers that have nothing to do with their rows score as well: the truth is dealt anew (permuted)."""
    random = np.random.default_rng(0)
    # Fewer rows make chance wilder, so that the answer is on the safe side.
    some = sample(part.truth, PERMUTED_ROWS, 0, np.arange(len(part.truth)))
    part = EvaluatedPart(np.arange(len(some)), part.truth[some], part.answers.take(some), None)
    dealt = (replace(part, truth=random.permutation(part.truth)) for _ in range(PERMUTATIONS))
    found = metric.sign * np.array([grade(metric, one) for one in dealt])
    probability = (1 + np.sum(found >= metric.sign * value)) / (PERMUTATIONS + 1)
    average, best = (number(metric.sign * float(of(found))) for of in (np.mean, np.max))
    return (
        f"Dealt to other rows at random, {PERMUTATIONS} times, the same answers' {metric_name(metric.name)} is "
        f"{average} on average and {best} at best; on their own rows it is {number(value)}. Chance alone does as "
        f"well with probability {chance(float(probability))}: {verdict(probability)}."
    )


def paired_luck(errors: NDArray, others: NDArray, metric: str) -> str:
    """How likely chance makes the loss of a model so much smaller than that of the mean, row by row (a paired t test).

    The loss is the one that decides: absolute errors where the metric is of those, else squared ones.
    """
    word, power = ("absolute", 1) if metric == "mae" or "absolute" in metric else ("squared", 2)
    # Divided by their size, so that no unit makes squares overflow.
    size = max(float(np.abs(others).max()), float(np.abs(errors).max()), np.finfo(float).tiny)
    mine, theirs = np.abs(errors / size) ** power, np.abs(others / size) ** power
    gains, rows = theirs - mine, len(mine)
    part = mine.mean() / max(theirs.mean(), 1e-300)
    share = percent(part, 0) if part == 0 or part >= 0.01 else "less than 1 %"
    sentence = f"Over {rows} rows the model's {word} error is {share} of the mean's."
    if gains.mean() <= 0:
        return f"{sentence} That is no less, so it shows nothing."
    error = gains.std(ddof=1) / np.sqrt(rows) if rows > 1 else np.inf
    probability = float(student.sf(gains.mean() / max(error, 1e-300), max(rows - 1, 1)))
    return f"{sentence} Chance alone does that with probability {chance(probability)}: {verdict(probability)}."


def interval(result: CandidateResult, metric: Metric, share: float) -> tuple[float, float]:
    """The interval of a mean over folds, as the metric is reported."""
    low, high = sorted(metric.sign * limit for limit in corrected_t(result.scores, share, CONFIDENCE))
    return max(low, metric.limits[0]), min(high, metric.limits[1])


def differences(results: Sequence[CandidateResult], winner: CandidateResult, share: float) -> dict[str, str]:
    """How each candidate compares with the winner, in words; a difference is real beyond chance of the folds.

    The test is Nadeau and Bengio's, with Holm's correction for the number of rivals, on the folds that both had the
    time for. No difference is real only where its whole interval is so narrow that it would not matter.
    """
    rivals = [one for one in results if one.name != winner.name and len(one.scores) and one.rows == winner.rows]
    words = {winner.name: "chosen"}
    common = {rival.name: min(len(rival.scores), len(winner.scores)) for rival in rivals}
    words |= {name: ONE_FOLD for name, folds in common.items() if folds == 1}
    rivals = [rival for rival in rivals if common[rival.name] > 1]
    gaps = [rival.scores[: common[rival.name]] - winner.scores[: common[rival.name]] for rival in rivals]
    matters = MATTERS * max(
        (winner.mean - one.mean for one in results if one.place == 0 and len(one.scores)), default=0
    )
    for rival, gap, (_, _, real) in zip(rivals, gaps, judge_gaps(gaps, share, CONFIDENCE), strict=True):
        narrow = np.abs(corrected_t(gap, share, CONFIDENCE)).max() <= matters
        same = SAME if narrow else NOT_PROVEN
        words[rival.name] = same if not real else "really worse" if gap.mean() < 0 else "really better"
    return words


def importances(
    plan: Plan, pipeline: Pipeline, metric: Metric, seed: int, seconds: float = IMPORTANCE_SECONDS
) -> list[tuple[str, float, float]]:
    """How much the metric falls on test rows when a column is shuffled, greatest first; none where time is short."""
    deadline = time.perf_counter() + seconds
    # A few rows of every class, and in no order: where time is short, the first ones are looked at alone.
    rows = np.random.default_rng(seed).permutation(sample(plan.y[plan.test], TESTED_ROWS, seed, plan.test))
    encoder, machine = pipeline[0], pipeline[-1]
    encoded = encoder.transform(plan.frame[rows])
    if encoded.shape[0] * encoded.shape[1] * 8 > settings().memory // 8:
        return []
    X = np.asarray(encoded.toarray() if hasattr(encoded, "toarray") else encoded)
    made_of = [np.flatnonzero(encoder.sources_ == column) for column in range(len(plan.schema.used))]
    rest = deadline - time.perf_counter()
    found = falls_in_time(machine, X, plan.y[rows], made_of, metric.scorer, SHUFFLES, seed, rest)
    names = [column.name for column in plan.schema.used]
    return sorted(((names[k], mean, deviation) for k, mean, deviation in found), key=lambda entry: -entry[1])


def curve_shares(rows: int) -> tuple[float, ...]:
    """The shares of so many rows at which a learning curve has points; none where rows are too few for two of them.

    >>> curve_shares(120), curve_shares(30)
    ((0.25, 0.5, 1.0), ())
    """
    shares = tuple(share for share in CURVE_SHARES if share * rows >= MIN_CURVE_ROWS)
    return shares if len(shares) > 1 else ()


def curve(
    plan: Plan, winner: CandidateResult, metric: Metric, seed: int, once: float, seconds: float = CURVE_SECONDS
) -> LearningCurve | None:
    """Scores of the winner on ever more rows of a few folds; None where that takes long, ``once`` being one fit."""
    shares = curve_shares(len(plan.train))
    folds = plan.folds[: max(min(CURVE_FOLDS, int(seconds / (once * sum(shares)))), 0)]
    if len(folds) < 2:
        return None
    pipeline = plan.pipeline(winner.machine)
    rows, y = plan.frame[plan.train], plan.y[plan.train]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return learning_curve(pipeline, rows, y, sizes=shares, cv=folds, scoring=metric, random_state=seed)
