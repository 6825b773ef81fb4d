"""What the model learned: which columns matter, what it makes of them, and the machine itself."""

from typing import Any

import numpy as np

from empirisk import plots
from empirisk.formats import number
from empirisk.report.blocks import Cell, Code, Figures, Section, Table, Text
from empirisk.report.figures import guarded, picture
from empirisk.report.terms import Terms, in_words, terms_of
from empirisk.report.words import named, plain
from empirisk.tables.model import settings_of, uncalibrated
from empirisk.trees.tree import TreeClassifier, TreeRegressor

IMPORTANT = 12  # columns that are listed
SPOKEN = 10  # test rows that must have a word, and lack it
WEIGHTS, SIDES = 25, 5  # weights that are listed; for each of several classes, on each side


def learned_what(learned: Any) -> Section:
    """Which columns matter, and what the model makes of them."""
    blocks: list[Any] = []
    if any(fall > 0 for _, fall, _ in learned.importances):
        blocks.append(importances(learned))
    elif learned.importances:
        blocks.append(Text("No column matters to it: shuffled, none of them makes it worse."))
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
    """How much the score suffers without each column."""
    top = max(learned.importances[0][1], np.finfo(float).tiny)
    rows = [
        [name, Cell(number(fall), fall, bar=float(np.clip(fall / top, 0, 1))), Cell(number(spread), spread)]
        for name, fall, spread in learned.importances[:IMPORTANT]
    ]
    more = f", {IMPORTANT} of {len(learned.importances)} columns" if len(learned.importances) > IMPORTANT else ""
    caption = f"How much the {plain(learned.metric)} suffers when a column is shuffled{more}"
    return Table(caption, ["Column", "Worse by", "give or take"], rows, extra=[2])


def effects(learned: Any) -> list[Any]:
    """What the model makes of the leading columns, all on one scale."""
    what, shared = _what(learned), np.concatenate([np.ravel([one.low, one.high]) for one in learned.effects])
    text = (
        "What the model makes of a column: its average prediction if every row had this value. "
        "Bands and bars are 95 % intervals of the change."
    )
    drawn = [
        picture(one.column, "", lambda views, axes, one=one: views.effect(axes, one, what, shared))
        for one in learned.effects
    ]
    return [Text(text), Figures(drawn)]


def words_of_texts(learned: Any) -> list[Any]:
    """What the model says of test rows with a word, or letters, of a text and without, for machines that are no sum."""
    classes, test, encoder = learned.classes, learned.test, learned.model.pipeline[0]
    if classes is not None and len(classes) != 2:
        return []
    said = test.predictions if classes is None else test.predictions == classes[1]
    said = np.asarray(said if classes is None or test.probabilities is None else test.probabilities[:, 1], dtype=float)
    found = []
    for name, block in encoder.column_blocks():
        there = (block.transform(learned.plan.frame[name][learned.plan.test]) > 0).tocsc()
        rows = np.asarray(there.sum(axis=0)).ravel()
        often = np.flatnonzero((rows >= SPOKEN) & (rows <= len(said) - SPOKEN))
        held = (said @ there)[often] / rows[often]
        others = (said.sum() - held * rows[often]) / (len(said) - rows[often])
        words = block.names()
        found += [(words[k], int(rows[k]), *pair) for k, *pair in zip(often, held, others, strict=True)]
    found.sort(key=lambda word: -abs(word[2] - word[3]) * np.sqrt(word[1]))  # in standard errors, all but a factor
    if not found:
        return []
    shown = number if classes is None else "{:.1%}".format
    rows = [
        [word, Cell(f"{count:,}", count), Cell(shown(mine), mine), Cell(shown(theirs), theirs)]
        for word, count, mine, theirs in found[:IMPORTANT]
    ]
    head = ["Word, or letters", "Test rows", "With it", "Without"]
    return [Table(f"Words that go with the prediction (average {_what(learned)})", head, rows)]


def _what(learned: Any) -> str:
    """What is predicted."""
    if learned.classes is None:
        return learned.target
    return f"probability of {named(learned, learned.classes[1])}" if len(learned.classes) == 2 else "probability"


def coefficients(learned: Any, terms: Terms) -> list[Any]:
    """The weights of a linear machine in words."""
    if len(terms.weights) == 1:
        return [_one_output(learned, terms)]
    rows = []
    for k, label in enumerate(learned.classes):
        order = np.argsort(terms.weights[k], kind="stable")
        up = [terms.names[j] for j in order[::-1][:SIDES] if terms.weights[k, j] > 0]
        down = [terms.names[j] for j in order[:SIDES] if terms.weights[k, j] < 0]
        rows.append([str(label), ", ".join(up), ", ".join(down)])
    return [Table("What speaks for each class, loudest first", ["Class", "For", "Against"], rows)]


def _one_output(learned: Any, terms: Terms) -> Table:
    positive = None if learned.classes is None else named(learned, learned.classes[-1])
    odds = str(getattr(uncalibrated(learned.model.machine), "loss", "")).lower().startswith("logistic")
    places = terms.largest(0, WEIGHTS)
    top = max((abs(float(terms.weights[0, k])) for k in places), default=1.0)
    rows = []
    for k in places:
        weight = float(terms.weights[0, k])
        rows.append(
            [terms.names[k], Cell(f"{weight:+.3g}", weight, bar=abs(weight) / top), in_words(terms, k, positive, odds)]
        )
    used = int(np.count_nonzero(terms.weights))
    more = f", the {WEIGHTS} largest of {used:,}" if used > WEIGHTS else ""
    what = "predicts" if positive is None else f"says {positive}"
    caption = f"How it {what}: a weighted sum of the columns{more}; it starts at {number(float(terms.constant[0]))}"
    return Table(caption, ["Column", "Weight", "In words"], rows)


def machine(learned: Any) -> Section:
    """The machine: its settings, its equation, its certificate, and whether more rows would help."""
    certificate = getattr(uncalibrated(learned.model.machine), "certificate_", None)
    blocks: list[Any] = [Text(f"{learned.champion.title}, with the settings that did best on the folds.")]
    if "probabilities" in learned.model.description:
        blocks.append(Text(f"Its probabilities are made of {learned.model.description['probabilities']}."))
    if certificate is not None:
        blocks.append(Text(f"Certificate of the fit: {certificate}."))
    blocks.append(Code(equation(learned)))
    if learned.curve is not None:
        caption = f"{learned.curve.diagnosis[:1].upper()}{learned.curve.diagnosis[1:]}"
        blocks.append(
            Figures([picture("More rows", caption, lambda _, axes: plots.learning_curve(learned.curve, axes=axes))])
        )
    return Section("machine", "The machine", blocks)


def equation(learned: Any) -> str:
    """The machine as code and, where it is one, as the equation."""
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
    """Who competed, and how the winner was found."""
    played = sum(len(standing.scores) > 0 for standing in learned.standings)
    how = (
        f"{played} kinds of machines were compared by {plain(learned.metric)} on the same folds of the "
        f"{learned.train_rows:,} training rows; the test part had no say. The winner is the simplest machine "
        "that is not worse than the best by more than one standard error of their difference."
    )
    head = ["Machine", plain(learned.metric).capitalize(), "95 % interval", "Against the winner"]
    head += ["Seconds a fit", "Certificate"]
    rows = []
    for one in learned.standings:
        interval = learned.intervals.get(one.name)
        rows.append(
            [
                one.title,
                Cell(number(learned.sign * one.mean, 4), learned.sign * one.mean) if len(one.scores) else "-",
                "-" if interval is None else Cell(" to ".join(map(number, interval)), interval[0]),
                learned.differences.get(one.name, one.remark or one.state),
                Cell(f"{one.seconds:.2g}", one.seconds) if len(one.scores) else "-",
                one.certificate,
            ]
        )
    marked = [place for place, one in enumerate(learned.standings) if one.name == learned.winner]
    return Section("leaderboard", "The league", [Text(how), Table("The league", head, rows, marked, extra=[4, 5])])
