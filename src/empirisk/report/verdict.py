"""Sections of the report about the test: scores, confusion matrix, thresholds, largest errors, subgroups."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import fisher_exact, ttest_ind_from_stats

from empirisk import plots
from empirisk.formats import count, metric_name, number, percent, shown
from empirisk.report.figures import picture
from empirisk.report.page_blocks import Cell, Chooser, Figure, Figures, Paragraph, Section, Table
from empirisk.report.words import error_of, named
from empirisk.tables.spread import coverage_by_parts

MOST_CLASSES = 30  # classes up to which the whole confusion matrix is shown
CONFUSED_PAIRS = 20  # most frequent confusions, listed where there are more classes
WORST_ROWS = 12  # largest errors that are listed
WORST_COLUMNS = 5  # important columns that are shown beside each of them
THRESHOLDS = 100  # thresholds that the reader can choose from: one for each per cent, and as many quantiles
MOST_GROUPS = 12  # subgroups that are listed
MIN_GROUP_ROWS = 20  # test rows that a subgroup, and its complement, must have
MOST_LEVELS = 20  # values of a column that make subgroups
TOP = (10, 50, 100, 500, 1000)  # rows with the highest scores of which the hits are told
COVERAGE = 0.9  # of the intervals that are told
SIGNIFICANCE = 0.05  # Bonferroni-corrected p value up to which a subgroup is listed


def test(learned: Any) -> Section:
    """The test: scores, and how the predictions look."""
    # That it was no luck is no praise for a model that was told the answer.
    blocks: list[Any] = [Paragraph(learned.test.luck)] if learned.test.luck and not learned.leaks else []
    blocks.append(scores(learned))
    blocks += [] if learned.classes is None else [by_class(learned), *confusion(learned)]
    blocks += [Paragraph(_threshold(learned))] if learned.test.threshold else []
    highest = top_rows(learned)
    blocks += [highest] if highest.rows else []
    chooser = threshold(learned)
    blocks += [] if chooser is None else [chooser]
    covered = coverage(learned)
    blocks += [covered] if covered.rows else []
    blocks += [] if learned.backtest is None else [ahead(learned)]
    drawn = list(figures(learned))
    return Section("test", "How good it is", [*blocks, *([Figures(drawn)] if drawn else [])])


def scores(learned: Any) -> Table:
    """All scores on the test part."""
    caption = f"Scores on the {count(len(learned.test.truth), 'test row')}"
    rows = []
    for one in learned.test.scores:
        interval = Cell(" to ".join(map(number, one.interval)), one.interval[0])
        rows.append([metric_name(one.name), Cell(number(one.value, 4), one.value), interval])
    return Table(caption, ["Score", "Value", "95 % interval"], rows, [0])


def coverage(learned: Any) -> Table:
    """How often the intervals of the model hold the truth, for parts of its predictions."""
    found, head = learned.errors, [f"Predicted {learned.target}", "Test rows", "Truth inside", "Mean width"]
    caption = f"Intervals of {percent(COVERAGE, 0)}: how often they held the truth, by the prediction"
    if found is None:
        return Table(caption, head, [])
    limits = learned.model.limits or (-np.inf, np.inf)
    rows = [
        [
            f"{number(part.low)} to {number(part.high)}",
            Cell(f"{part.rows:,}", part.rows),
            Cell(percent(part.inside, 0), part.inside, bar=part.inside),
            Cell(number(part.width), part.width),
        ]
        for part in coverage_by_parts(found, COVERAGE, limits)
    ]
    return Table(caption, head, rows)


def ahead(learned: Any) -> Table:
    """How far forecasts are off, by how far ahead they look, beside the last season again and again."""
    name, size = error_of(learned.metric)
    rows = []
    for step in learned.backtest.told:
        truth, said, naive = (part[:, step - 1] for part in learned.backtest)
        rows.append([Cell(str(step), step), _number(size(truth, said)), _number(size(truth, naive))])
    caption = f"Forecasts that begin at {len(learned.backtest.truth)} moments of the test: {name}"
    return Table(caption, ["Moments ahead", "The model", "The last season again"], rows)


def by_class(learned: Any) -> Table:
    """Precision, recall and F1 of each class, and the class that it is most often confused with."""
    truth, said = learned.test.truth, learned.test.predictions
    head = ["Class", "Test rows", "Found (recall)", "Right when named (precision)", "F1", "Most often taken for"]
    rows = []
    for label in learned.classes:
        there, called = truth == label, said == label
        hits, total, calls = int((there & called).sum()), int(there.sum()), int(called.sum())
        others, counts = np.unique(said[there & ~called], return_counts=True)
        taken = f"{others[counts.argmax()]} ({count(int(counts.max()), 'row')})" if len(others) else ""
        shares = map(_share, (hits, hits, 2 * hits), (total, calls, total + calls))
        rows.append([str(label), Cell(f"{total:,}", total), *shares, taken])
    return Table("Each class", head, rows, extra=[4, 5])


def _threshold(learned: Any) -> str:
    """From which probability on a rare class is named, and why not from a half on."""
    place, least = learned.test.threshold
    return (
        f"{named(learned, learned.classes[place])} is named where its probability is {number(least, 2)} or more, even "
        "where the other class is more probable: from a half on, too few would be named."
    )


def _share(some: int, total: int) -> Cell:
    return Cell("-", -1) if not total else Cell(percent(some / total, 1), some / total, bar=some / total)


def top_rows(learned: Any) -> Table:
    """How many of the rows with the highest scores belong to a rare class: precision, gains and lift."""
    rare = learned.rare
    head, rows = ["Rows with the highest scores", "Hits", "Precision", "Found of all", "Times chance (lift)"], []
    name = "" if rare is None else named(learned, rare)
    values = None if rare is None else learned.test.values_of(learned.classes.tolist().index(rare))
    if values is not None:
        are = learned.test.truth == rare
        order = np.argsort(-values, kind="stable")
        for taken in sorted({k for k in (*TOP, int(are.sum())) if k <= len(are) / 2}):
            hits = int(are[order[:taken]].sum())
            lift = hits / taken / max(are.mean(), 1e-12)
            cells = [_share(hits, taken), _share(hits, int(are.sum())), Cell(number(lift, 2), lift)]
            rows.append([Cell(f"{taken:,}", taken), Cell(f"{hits:,}", hits), *cells])
    return Table(f"Hits among the rows that it scores highest for {name}", head, rows)


def confusion(learned: Any) -> Iterator[Table]:
    """The confusion matrix, or the most frequent confusions where there are many classes."""
    truth, said, classes = learned.test.truth, learned.test.predictions, learned.classes
    if len(classes) <= MOST_CLASSES:
        counts = np.array([[np.sum((truth == a) & (said == b)) for b in classes] for a in classes])
        head = ["Truth ↓ said →", *map(str, classes)]
        # Beyond 60 % of the colour, neither dark nor light letters are easy to read.
        shades = 0.6 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        rows = [
            [str(label), *(Cell(str(times or "·"), times, shade=shade) for times, shade in zip(*row, strict=True))]
            for label, *row in zip(classes, counts.tolist(), shades.tolist(), strict=True)
        ]
        yield Table("What was taken for what: rows are the truth, the diagonal is right", head, rows, dense=True)
        return
    wrong = truth != said
    pairs, counts = np.unique(np.stack([truth[wrong], said[wrong]]).astype(str), axis=1, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CONFUSED_PAIRS]
    rows = [[*pairs[:, k].tolist(), Cell(f"{counts[k]:,}", int(counts[k]))] for k in order]
    if rows:
        yield Table("The most frequent mistakes", ["Truth", "Said", "Rows"], rows)


def threshold(learned: Any) -> Chooser | None:
    """The counts at each threshold of a two-class model, for the slider of the page."""
    if learned.classes is None or len(learned.classes) != 2 or learned.test.probabilities is None:
        return None
    chances, there = learned.test.probabilities[:, 1], learned.test.truth == learned.classes[1]
    # A regular grid, and quantiles of the probabilities: those of a rare class are nearly all close to zero.
    even, steps = np.linspace(0, 1, THRESHOLDS + 1), np.quantile(chances, np.linspace(0, 1, THRESHOLDS + 1))
    place, start = learned.test.threshold or (1, 0.5)
    start = start if place == 1 else 1 - start
    limits = np.unique([*np.concatenate([even, steps]).round(4), start])
    said = chances[None, :] >= limits[:, None]
    found, alarms = ((said & part).sum(axis=1).tolist() for part in (there, ~there))
    counts = {"thresholds": limits.tolist(), "found": found, "alarms": alarms}
    counts |= {"positives": int(there.sum()), "negatives": int((~there).sum())}
    return Chooser(named(learned, learned.classes[1]), counts, int(np.searchsorted(limits, start)))


def figures(learned: Any) -> Iterator[Figure]:
    """How the predictions on the test part look."""
    truth, classes = learned.test.truth, learned.classes
    if classes is None:
        if learned.plan.in_order:
            order = np.argsort(learned.plan.times[learned.plan.test], kind="stable")
            told = "The test part in order of time: what was, and what the model said from the rows before."
            yield picture("Over time", told, lambda views, axes: views.over_time(axes, learned, order))
        yield from residuals(learned)
        return
    graded = learned.test.probabilities if learned.test.probabilities is not None else learned.test.decisions
    if len(classes) != 2 or graded is None:
        return
    scores, positive = graded[:, 1] if graded.ndim == 2 else graded, classes[1]
    name, asked = named(learned, positive), {"truth": truth, "scores": scores, "positive": positive}
    told = f"How many of {name} are found (upwards) at the price of how many false alarms (to the right)."
    yield picture("ROC", told, lambda _, axes: plots.roc(**asked, axes=axes))
    told = f"How many of those called {name} are right, over how many are found."
    yield picture("Precision and recall", told, lambda _, axes: plots.precision_recall(**asked, axes=axes))
    if learned.test.probabilities is not None:
        yield picture(
            "Calibration",
            "Whether 80 % means 80 %: points on the diagonal keep their word. Numbers above count the rows.",
            lambda views, axes: views.calibration(axes, truth, scores, positive),
        )


def residuals(learned: Any) -> Iterator[Figure]:
    """Predictions against the truth, and their errors."""
    name, size = error_of(learned.metric)
    truth, said = learned.test.truth, learned.test.predictions
    captions = (
        ("Truth and prediction", "Points on the line are right."),
        ("Errors", f"Truth minus prediction; their {name} is {number(size(truth, said))}."),
    )
    for place, (title, caption) in enumerate(captions):
        yield picture(title, caption, lambda views, axes, place=place: views.residuals(axes, truth, said, place))


def errors(learned: Any) -> Section:
    """Where the model errs most."""
    rows, groups = worst(learned), subgroups(learned)
    blocks: list[Any] = [rows] if rows.rows else [Paragraph("It made no mistake on the test part.")]
    none = Paragraph(
        f"No group of at least {MIN_GROUP_ROWS} test rows has more or fewer errors than the others beyond chance."
    )
    return Section("errors", "Where it errs", [*blocks, groups if groups.rows else none])


def losses(learned: Any) -> NDArray[np.float64]:
    """The error of each test row: squared or absolute as the metric is, or whether it is wrong."""
    truth, said = learned.test.truth, learned.test.predictions
    if learned.classes is not None:
        return (truth != said).astype(np.float64)
    gaps = np.abs(truth - said)
    return gaps if error_of(learned.metric)[0] == "mean absolute error" else gaps**2


def worst(learned: Any) -> Table:
    """The test rows with the largest errors or, of classes, the mistakes with the highest predicted probability."""
    test, rows = learned.test, learned.plan.test
    numbers = learned.plan.numbers[rows]
    beside = leading(learned)[:WORST_COLUMNS]
    head = ["Row", "Truth", "Said"]
    if learned.classes is None:
        gaps = np.abs(test.truth - test.predictions)
        head.append("Off by")
        order = np.argsort(-gaps, kind="stable")[:WORST_ROWS]
        cells = [[_number(test.truth[k]), _number(test.predictions[k]), _number(gaps[k])] for k in order]
        caption = "The largest errors of the test part"
    else:
        wrong = np.flatnonzero(test.truth != test.predictions)
        sure = test.probabilities.max(axis=1) if test.probabilities is not None else np.zeros(len(rows))
        order = wrong[np.argsort(-sure[wrong], kind="stable")][:WORST_ROWS]
        cells = [[str(test.truth[k]), str(test.predictions[k])] for k in order]
        caption = f"Mistakes of the test part ({len(wrong):,} in all)"
        if test.probabilities is not None:
            head.append("How sure")
            cells = [
                [*row, Cell(percent(float(sure[k]), 0), float(sure[k]))] for row, k in zip(cells, order, strict=True)
            ]
            caption = f"The mistakes it was most sure of ({len(wrong):,} in all)"
    frame, schema = learned.plan.frame[rows], learned.plan.schema
    truths = {name: schema[name].type.as_json for name in beside if schema[name].type.truth}
    table = [
        [
            Cell(f"{numbers[k] + 1:,}", int(numbers[k])),
            *row,
            *(shown(truths[name](frame[name][int(k)]) if name in truths else frame[name][int(k)]) for name in beside),
        ]
        for row, k in zip(cells, order, strict=True)
    ]
    return Table(caption, [*head, *beside], table, extra=range(len(head) + 2, len(head) + len(beside)))


def _number(value: float) -> Cell:
    return Cell(number(float(value), 4), float(value))


def subgroups(learned: Any) -> Table:
    """Groups of test rows on which the error differs from the others' beyond chance, the worst first.

    p values are multiplied by the number of groups that are tested (Bonferroni).
    """
    loss = losses(learned)
    groups = list(_groups(learned))
    large = [
        (name, inside)
        for name, inside in groups
        if MIN_GROUP_ROWS <= inside.sum() <= len(inside) - MIN_GROUP_ROWS and np.ptp(loss) > 0
    ]
    chances = _chances(loss, [inside for _, inside in large], counted=learned.classes is not None)
    found = [
        (name, int(inside.sum()), loss[inside].mean(), loss[~inside].mean())
        for (name, inside), chance in zip(large, chances, strict=True)
        if chance * len(groups) <= SIGNIFICANCE
    ]
    found.sort(key=lambda group: group[3] - group[2])
    # The root of a mean squared error is in the unit of the target.
    numbers = learned.classes is None
    back = np.sqrt if numbers and error_of(learned.metric)[0] != "mean absolute error" else float
    word = error_of(learned.metric)[0].capitalize() if numbers else "Wrong"
    rows = []
    for name, size, mine, theirs in found[:MOST_GROUPS]:
        values = [Cell(number(float(v)) if numbers else percent(v, 1), float(v)) for v in (back(mine), back(theirs))]
        rows.append([name, Cell(f"{size:,}", size), *values])
    return Table(
        "Groups of test rows that differ from the others beyond chance", ["Group", "Test rows", word, "Elsewhere"], rows
    )


def _chances(loss: NDArray[np.float64], groups: Sequence[NDArray[np.bool_]], *, counted: bool) -> NDArray[np.float64]:
    """p values of differences between groups and the other rows: Fisher's exact test of counts, Welch's of means.

    Wide tables have thousands of groups, of which many have the same counts: those are tested once.
    """
    if not counted:
        parts = [[loss[inside] for inside in groups], [loss[~inside] for inside in groups]]
        told = [[(part.mean(), part.std(ddof=1), len(part)) for part in side] for side in parts]
        mine, theirs = (np.array(side).reshape(-1, 3).T for side in told)
        return ttest_ind_from_stats(*mine, *theirs, equal_var=False).pvalue
    wrong, rows = int((loss > 0).sum()), len(loss)

    @cache
    def chance(hits: int, size: int) -> float:
        return float(fisher_exact([[hits, size - hits], [wrong - hits, rows - size - wrong + hits]]).pvalue)

    return np.array([chance(int((loss[inside] > 0).sum()), int(inside.sum())) for inside in groups])


def _groups(learned: Any) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Subgroups of the test rows: by missing values, by words and truth values, and by quarters of numbers."""
    frame = learned.plan.frame[learned.plan.test]
    for column in learned.model.schema.used:
        series = frame[column.name]
        if series.null_count():
            yield f"{column.name} is missing", series.is_null().to_numpy()
        for words, rows in column.type.groups(series, MOST_LEVELS):
            yield f"{column.name} {words}", rows


def leading(learned: Any) -> list[str]:
    """The columns by permutation importance, or in the order of the table where no column has any."""
    known = [name for name, fall, _ in learned.importances if fall > 0]
    return known or [column.name for column in learned.model.schema.used]
