"""Sections of the report about the model: permutation importance, partial dependence, weights, settings, candidates."""

from typing import Any

import numpy as np

from empirisk import plots
from empirisk.formats import metric_name, number, percent
from empirisk.report.data import correlated
from empirisk.report.figures import guarded, picture
from empirisk.report.page_blocks import Cell, Code, Figures, Paragraph, Section, Table
from empirisk.report.terms import Terms, in_words, terms_of
from empirisk.report.words import CHOSEN, RULE, named
from empirisk.tables.model import settings_of, uncalibrated
from empirisk.trees.tree import TreeClassifier, TreeRegressor

LISTED = 12  # columns in the table of importances, and words in the table of words: the rest matters little
MIN_WORD_ROWS = 10  # test rows that must have a word, and that must lack it: means of fewer are mostly noise
MOST_WEIGHTS = 25  # weights that are listed of a machine with one output
STRONG = 0.7  # rank correlation from which the effect of one column alone says little
CLASS_WEIGHTS = 5  # columns that are listed for, and against, each of several classes


def learned_what(learned: Any) -> Section:
    """The section: permutation importances, partial dependence, and weights, words or the tree where there are any."""
    blocks: list[Any] = []
    if any(fall > 0 for _, fall, _ in learned.importances):
        blocks.append(importances(learned))
    elif learned.importances:
        blocks.append(Paragraph("No column matters to it: shuffled, none of them makes it worse."))
    if learned.effects:
        blocks += effects(learned)
    terms = terms_of(learned.model)
    blocks += words_of_texts(learned) if terms is None else coefficients(learned, terms)
    fitted, encoder = uncalibrated(learned.model.machine), learned.model.pipeline[0]
    if isinstance(fitted, (TreeClassifier, TreeRegressor)):
        told = "On the upper branch the condition holds."
        blocks.append(guarded("The tree", told, lambda views: views.tree(fitted, encoder), wide=True))
    return Section("learned", "What it learned", blocks)


def importances(learned: Any) -> Table:
    """Permutation importances: how much the score suffers when each column is shuffled."""
    top = max(learned.importances[0][1], np.finfo(float).tiny)
    rows = [
        [name, Cell(number(fall), fall, bar=float(np.clip(fall / top, 0, 1))), Cell(number(spread), spread)]
        for name, fall, spread in learned.importances[:LISTED]
    ]
    more = f", {LISTED} of {len(learned.importances)} columns" if len(learned.importances) > LISTED else ""
    unit = f", in units of {learned.target}" if learned.metric in ("rmse", "mae") else ""
    caption = f"How much the {metric_name(learned.metric)} suffers when a column is shuffled{unit}{more}"
    return Table(caption, ["Column", "Worse by", "give or take"], rows, extra=[2])


def effects(learned: Any) -> list[Any]:
    """Partial dependence of the prediction on the most important columns, all on one scale."""
    what, shared = _what(learned), np.concatenate([np.ravel([one.low, one.high]) for one in learned.effects])
    text = (
        "What the model makes of a column: its average prediction if every row had this value. "
        "Bands and bars are 95 % intervals of the change."
    )
    drawn = [
        picture(one.column, "", lambda views, axes, one=one: views.effect(axes, one, what, shared))
        for one in learned.effects
    ]
    together = _with_partners(learned)
    return [*([Paragraph(text)] if any(one.svg for one in drawn) else []), Figures(drawn), *together]


def _with_partners(learned: Any) -> list[Paragraph]:
    """A warning about columns that go together with another: a change of one alone is a row that does not exist."""
    names = {one.column for one in learned.effects}
    pairs = [(pair, r) for pair, r in correlated(learned, STRONG) if names & set(pair)]
    if not pairs:
        return []
    told = ", ".join(f"{' and '.join(pair)} ({r:+.2f})" for pair, r in pairs)
    return [
        Paragraph(
            f"With care: {told} go together. If one changes and the other does not, the row is one that hardly exists, "
            "and what the model makes of it says little."
        )
    ]


def words_of_texts(learned: Any) -> list[Any]:
    """Mean predictions of test rows with and without each word, or letters, of a text, for machines without weights."""
    classes, test, encoder = learned.classes, learned.test, learned.model.pipeline[0]
    if classes is not None and len(classes) != 2:
        return []
    said = test.predictions if classes is None else test.predictions == classes[1]
    said = np.asarray(said if classes is None or test.probabilities is None else test.probabilities[:, 1], dtype=float)
    found = []
    for name, block in encoder.column_blocks():
        there = (block.transform(learned.plan.frame[name][learned.plan.test]) > 0).tocsc()
        rows = np.asarray(there.sum(axis=0)).ravel()
        often = np.flatnonzero((rows >= MIN_WORD_ROWS) & (rows <= len(said) - MIN_WORD_ROWS))
        held = (said @ there)[often] / rows[often]
        others = (said.sum() - held * rows[often]) / (len(said) - rows[often])
        words = block.names()
        found += [(words[k], int(rows[k]), *pair) for k, *pair in zip(often, held, others, strict=True)]
    # By the difference in standard errors, up to a common factor: rare words differ most by chance.
    found.sort(key=lambda word: -abs(word[2] - word[3]) * np.sqrt(word[1]))
    if not found:
        return []
    shown = number if classes is None else lambda share: percent(share, 1)
    rows = [
        [word, Cell(f"{count:,}", count), Cell(shown(mine), mine), Cell(shown(theirs), theirs)]
        for word, count, mine, theirs in found[:LISTED]
    ]
    head = ["Word, or letters", "Test rows", "With it", "Without"]
    return [Table(f"Words that go with the prediction (average {_what(learned)})", head, rows)]


def _what(learned: Any) -> str:
    """The predicted quantity, for captions."""
    if learned.classes is None:
        return learned.target
    return f"probability of {named(learned, learned.classes[1])}" if len(learned.classes) == 2 else "probability"


def coefficients(learned: Any, terms: Terms) -> list[Any]:
    """Tables of the weights of a linear machine: all of one output, or the largest for each class."""
    if len(terms.weights) == 1:
        return [_one_output(learned, terms)]
    rows = []
    for k, label in enumerate(learned.classes):
        order = np.argsort(terms.weights[k], kind="stable")
        up = [terms.names[j] for j in order[::-1][:CLASS_WEIGHTS] if terms.weights[k, j] > 0]
        down = [terms.names[j] for j in order[:CLASS_WEIGHTS] if terms.weights[k, j] < 0]
        rows.append([str(label), ", ".join(up), ", ".join(down)])
    return [Table("What speaks for each class, loudest first", ["Class", "For", "Against"], rows)]


def _one_output(learned: Any, terms: Terms) -> Table:
    positive = None if learned.classes is None else named(learned, learned.classes[-1])
    odds = str(getattr(uncalibrated(learned.model.machine), "loss", "")).lower().startswith("logistic")
    places = terms.largest(0, MOST_WEIGHTS)
    top = max((abs(float(terms.weights[0, k])) for k in places), default=1.0)
    rows = []
    for k in places:
        weight = float(terms.weights[0, k])
        rows.append(
            [
                terms.names[k],
                Cell(f"{weight:+.3g}", weight, bar=weight / top),
                in_words(terms, k, learned.target, positive, odds),
            ]
        )
    used = int(np.count_nonzero(terms.weights))
    more = f", the {MOST_WEIGHTS} largest of {used:,}" if used > MOST_WEIGHTS else ""
    what = f"predicts {learned.target}" if positive is None else f"says {positive}"
    caption = f"How it {what}: a weighted sum of the columns{more}; it starts at {number(float(terms.constant[0]))}"
    return Table(caption, ["Column", "Weight", "In words"], rows)


def machine(learned: Any) -> Section:
    """The machine: its settings, its equation, its certificate, and whether more rows would help."""
    certificate = getattr(uncalibrated(learned.model.machine), "certificate_", None)
    blocks: list[Any] = [Paragraph(f"{learned.best.title}, with the settings that did best on the folds.")]
    if "probabilities" in learned.model.description:
        blocks.append(Paragraph(f"Its probabilities are made of {learned.model.description['probabilities']}."))
    if certificate is not None:
        blocks.append(Paragraph(f"Certificate of the fit: {certificate}."))
    blocks.append(Code(equation(learned)))
    if learned.curve is not None:
        caption = f"{learned.curve.diagnosis[:1].upper()}{learned.curve.diagnosis[1:]}"
        blocks.append(
            Figures([picture("More rows", caption, lambda _, axes: plots.learning_curve(learned.curve, axes=axes))])
        )
    return Section("machine", "The machine", blocks)


def equation(learned: Any) -> str:
    """The machine as code and, where it has a loss, a penalty and C, the equation that it minimises."""
    fitted = uncalibrated(learned.model.machine)
    lines = [settings_of(fitted)]
    if hasattr(fitted, "loss") and hasattr(fitted, "C") and hasattr(fitted, "penalty"):
        lines += [
            "",
            "minimise   R(w) + C * sum_i c_i * loss(y_i, <w, phi(x_i)> + b)",
            f"loss = {fitted.loss}, R = {fitted.penalty}, C = {number(getattr(fitted, 'C_', fitted.C))}, "
            f"phi = {'the columns' if fitted.features is None else fitted.features}",
        ]
    return "\n".join(lines)


def league(learned: Any) -> Section:
    """The section with the candidates, their cross-validated scores, and the rule that chose among them."""
    played = sum(len(standing.scores) > 0 for standing in learned.standings)
    how = (
        f"{played} kinds of machines were compared by {metric_name(learned.metric)} on the same folds of the "
        f"{learned.train_rows:,} training rows; the test part had no say. "
        f"{RULE.format(CHOSEN[learned.prefer])} {learned.price}"
    )
    head = ["Machine", metric_name(learned.metric).capitalize(), "95 % interval", "Against the one chosen"]
    head += ["Folds", "Seconds a fit", "Certificate"]
    rows = []
    for one in learned.standings:
        interval = learned.intervals.get(one.name)
        rows.append(
            [
                one.title,
                Cell(number(learned.sign * one.mean, 4), learned.sign * one.mean) if len(one.scores) else "-",
                "-" if interval is None else Cell(" to ".join(map(number, interval)), interval[0]),
                learned.differences.get(one.name, one.remark or one.state),
                Cell(_folds(one, learned.best), len(one.scores)),
                Cell(f"{one.seconds:.2g}", one.seconds) if len(one.scores) else "-",
                one.certificate,
            ]
        )
    marked = [place for place, one in enumerate(learned.standings) if one.name == learned.winner]
    return Section("leaderboard", "The league", [Paragraph(how), Table("The league", head, rows, marked, extra=[5, 6])])


def _folds(one: Any, best: Any) -> str:
    """The folds that a candidate has played and, where it had fewer than the one chosen, its training rows."""
    fewer = f" of {one.rows:,} rows" if len(one.scores) and one.rows != best.rows else ""
    return f"{len(one.scores)}{fewer}"
