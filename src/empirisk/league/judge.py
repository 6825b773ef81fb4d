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
from empirisk.evaluation.intervals import BLOCKS, Part, Score, Trial, corrected_t, grade, score
from empirisk.evaluation.metrics import Metric, find_metrics
from empirisk.formats import number
from empirisk.league.arena import sample
from empirisk.league.contest import Standing
from empirisk.league.result import Test
from empirisk.league.split import Plan, rare_class
from empirisk.report.words import plain as plain_name
from empirisk.settings import settings
from empirisk.theory.bound import chance
from empirisk.theory.luck import luck, verdict

CONFIDENCE = 0.95  # of intervals and of differences: the usual one
#: Test rows on which columns are shuffled, so many times each: enough for two digits; on fewer rows nothing is told.
TESTED_ROWS, LEAST_TESTED, SHUFFLES = 2000, 100, 3
#: Columns whose time is foreseen, those that a report shows; and seconds for all of them.
FIRST_GROUPS, IMPORTANCE_SECONDS = 40, 10.0
#: Seconds for the learning curve, its folds, and the rows that its first point must have.
CURVE_SECONDS, CURVE_FOLDS, LEAST = 20.0, 3, 20
CURVE_SHARES = (0.1, 0.25, 0.5, 1.0)  # of the rows, about twice as many each time
#: Seconds of a processor that the usual scores of one row take, of a number and of a class.
SCORING = 3e-7, 2.5e-6
#: How often answers are dealt to other rows: what none of so many reaches has a chance of 1 %; and on how many rows.
DEALS, DEALT_ROWS = 99, 2000


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
    part = Part(np.arange(len(truth)), truth, answers, None)
    scores = scores_of(part, pipeline, [metric], len(plan.test) / len(plan.train))
    said = _luck(plan, part, metric, scores[0].value) if scores[0].name == metric.name else ""
    return Test(truth, answers.predictions, answers.probabilities, answers.decisions, scores, said)


def scoring(classes: NDArray | None) -> float:
    """Seconds of a processor that the scores of a test row take, with their intervals: one more row of each class."""
    return SCORING[classes is not None] * (BLOCKS + 2 * (0 if classes is None else len(classes)))


def scores_of(part: Part, machine: Any, first: Sequence[Metric], share: float = 1.0) -> list[Score]:
    """The scores that come first and the usual ones; those of a class that the rows lack are left out."""
    classes, trial = part.answers.classes, Trial([part], 1, share, None, CONFIDENCE)
    others = [one for one in find_metrics(None, classes, machine) if one.name not in {m.name for m in first}]
    if classes is not None and len(np.unique(part.truth)) < len(classes):
        others = [one for one in others if one.name == "accuracy"]
    graded = [(one, grade(one, part)) for one in (*first, *others)]
    return [score(one, trial, np.array([value])) for one, value in graded if np.isfinite(value)]


def _luck(plan: Plan, part: Part, metric: Metric, value: float) -> str:
    """Was it luck? By the measure that decides, against the mean of the training rows or the most frequent class."""
    truth, said = part.truth, part.answers.predictions
    if plan.classes is None:
        return paired_luck(truth - said, truth - plan.y[plan.train].mean(), metric.name)
    if not metric.rate:
        return dealt_luck(part, metric, value)
    labels, counts = np.unique(plan.y[plan.train], return_counts=True)
    rate = float(np.mean(truth != labels[counts.argmax()]))
    guess = f"Guessing {str(labels[counts.argmax()])!r} for every row errs in {rate:.1%} of them."
    return f"{guess} {luck(int(np.sum(truth != said)), len(truth), rate)}"


def dealt_luck(part: Part, metric: Metric, value: float) -> str:
    """How often answers that have nothing to do with their rows score as well: the truth is dealt anew (permuted)."""
    random = np.random.default_rng(0)
    # Fewer rows make chance wilder, so that the answer is on the safe side.
    some = sample(part.truth, DEALT_ROWS, 0, np.arange(len(part.truth)))
    part = Part(np.arange(len(some)), part.truth[some], part.answers.take(some), None)
    dealt = (replace(part, truth=random.permutation(part.truth)) for _ in range(DEALS))
    found = metric.sign * np.array([grade(metric, one) for one in dealt])
    probability = (1 + np.sum(found >= metric.sign * value)) / (DEALS + 1)
    average, best = (number(metric.sign * float(of(found))) for of in (np.mean, np.max))
    return (
        f"Dealt to other rows at random, {DEALS} times, the same answers' {plain_name(metric.name)} is {average} on "
        f"average and {best} at best; on their own rows it is {number(value)}. Chance alone does as well with "
        f"probability {chance(float(probability))}: {verdict(probability)}."
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
    sentence = (
        f"Over {rows} rows the model's {word} error is {mine.mean() / max(theirs.mean(), 1e-300):.0%} of the mean's."
    )
    if gains.mean() <= 0:
        return f"{sentence} That is no less, so it shows nothing."
    error = gains.std(ddof=1) / np.sqrt(rows) if rows > 1 else np.inf
    probability = float(student.sf(gains.mean() / max(error, 1e-300), max(rows - 1, 1)))
    return f"{sentence} Chance alone does that with probability {chance(probability)}: {verdict(probability)}."


def interval(standing: Standing, metric: Metric, share: float) -> tuple[float, float]:
    """The interval of a mean over folds, as the metric is reported."""
    low, high = sorted(metric.sign * limit for limit in corrected_t(standing.scores, share, CONFIDENCE))
    return max(low, metric.limits[0]), min(high, metric.limits[1])


def differences(standings: Sequence[Standing], winner: Standing, share: float) -> dict[str, str]:
    """How each contestant compares with the winner, in words; a difference is real beyond chance of the folds.

    The test is Nadeau and Bengio's, with Holm's correction for the number of rivals, on the folds that the winner had
    the time for.
    """
    rivals = [s for s in standings if s.state == "done" and s.name != winner.name]
    folds, words = len(winner.scores), {winner.name: "chosen"}
    if folds == 1:
        return words | {rival.name: "compared on one fold only" for rival in rivals}
    gaps = [rival.scores[:folds] - winner.scores for rival in rivals]
    for rival, gap, (_, _, real) in zip(rivals, gaps, judge_gaps(gaps, share, CONFIDENCE), strict=True):
        words[rival.name] = "no real difference" if not real else "really worse" if gap.mean() < 0 else "really better"
    return words


def importances(
    plan: Plan, pipeline: Pipeline, metric: Metric, seed: int, seconds: float = IMPORTANCE_SECONDS
) -> list[tuple[str, float, float]]:
    """How much the metric falls on test rows when a column is shuffled, greatest first; none where time is short.

    Where columns are many, they are shuffled in groups, and the groups that matter most are taken apart, for a while.
    """
    deadline = time.perf_counter() + seconds
    random = np.random.default_rng(seed)
    rows = random.permutation(plan.test)[:TESTED_ROWS]
    encoder, machine = pipeline[0], pipeline[-1]
    encoded, truth = encoder.transform(plan.frame[rows]), plan.y[rows]
    if encoded.shape[0] * encoded.shape[1] * 8 > settings().memory // 8:
        return []
    X = np.asarray(encoded.toarray() if hasattr(encoded, "toarray") else encoded)
    begin = time.perf_counter()
    before = metric.scorer(machine, X, truth)
    now = time.perf_counter()
    groups = min(len(plan.schema.used), FIRST_GROUPS)
    fitting = int(len(X) * (deadline - now) / (2 * (now - begin) * SHUFFLES * groups))
    if fitting < min(len(X), LEAST_TESTED):
        return []
    if fitting < len(X):
        X, truth = X[:fitting], truth[:fitting]
        before = metric.scorer(machine, X, truth)

    def fall(columns: NDArray) -> tuple[float, float]:
        places = np.flatnonzero(np.isin(encoder.sources_, columns))
        drops = []
        for _ in range(SHUFFLES):
            shuffled = X.copy()
            shuffled[:, places] = X[random.permutation(len(X))][:, places]
            drops.append(before - metric.scorer(machine, shuffled, truth))
        return float(np.mean(drops)), float(np.std(drops))

    columns = np.arange(len(plan.schema.used))
    found = [(fall(group), group) for group in np.array_split(columns, groups)]
    while time.perf_counter() < deadline and any(len(group) > 1 for _, group in found):
        place = max((k for k in range(len(found)) if len(found[k][1]) > 1), key=lambda k: found[k][0][0])
        _, group = found.pop(place)
        found += [(fall(part), part) for part in np.array_split(group, 2)]
    single = [(plan.schema.used[group[0]].name, *drop) for drop, group in found if len(group) == 1]
    return sorted(single, key=lambda entry: -entry[1])


def curve(
    plan: Plan, winner: Standing, metric: Metric, seed: int, once: float, seconds: float = CURVE_SECONDS
) -> LearningCurve | None:
    """Scores of the winner on ever more rows of a few folds; None where that takes long, ``once`` being one fit."""
    folds = plan.folds[: max(min(CURVE_FOLDS, int(seconds / (once * sum(CURVE_SHARES)))), 0)]
    if len(folds) < 2 or len(plan.train) * CURVE_SHARES[0] < LEAST:
        return None
    pipeline = plan.pipeline(winner.machine)
    rows, y = plan.frame[plan.train], plan.y[plan.train]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return learning_curve(pipeline, rows, y, sizes=CURVE_SHARES, cv=folds, scoring=metric, random_state=seed)
