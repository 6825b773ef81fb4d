"""The sentences and tables of the report."""

from typing import Any

import numpy as np

MOST_COLUMNS = 200
PLAIN = {
    "roc_auc": "area under the ROC",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "r2": "R² (share of the variance explained)",
    "f1": "F1 (mean of precision and recall)",
}


def number(value: float, digits: int = 3) -> str:
    """A number as people write it.

    >>> number(48_592.3), number(0.0312345), number(1.5e12)
    ('48,600', '0.0312', '1.5e+12')
    """
    if not np.isfinite(value):
        return "-"
    short = f"{value:.{digits}g}"
    return f"{float(short):,.0f}" if 1e3 <= abs(value) < 1e9 else short


def plain(name: str) -> str:
    """The name of a score in words.

    >>> plain("balanced_accuracy"), plain("neg_log_loss")
    ('balanced accuracy', 'negative log loss')
    """
    return PLAIN.get(name, name.replace("neg_", "negative ").replace("_", " "))


def cards(learned: Any) -> list[dict[str, str]]:
    """The few numbers that come first."""
    first = learned.test.scores[0]
    low, high = first.interval
    return [
        {"value": number(first.value), "label": f"{plain(first.name)} on the test part"},
        {"value": f"{number(low)} to {number(high)}", "label": "its 95 % interval"},
        {"value": learned.champion.title, "label": "the machine chosen"},
        {"value": f"{learned.train_rows:,} + {len(learned.test.truth):,}", "label": "rows to learn from + to test on"},
    ]


def league(learned: Any) -> str:
    """How the winner was found."""
    played = sum(standing.state == "done" for standing in learned.standings)
    return (
        f"{played} kinds of machines were compared by {plain(learned.metric)} on the same folds of the "
        f"{learned.train_rows:,} training rows; the test part had no say. The winner is the simplest machine "
        "that is not worse than the best by more than one standard error of their difference."
    )


def rows(learned: Any) -> list[dict[str, Any]]:
    """The leaderboard."""
    table = []
    for standing in learned.standings:
        played = len(standing.scores) > 0
        interval = learned.intervals.get(standing.name)
        table.append(
            {
                "title": standing.title,
                "winner": standing.name == learned.winner,
                "score": number(learned.sign * standing.mean, 4) if played else "-",
                "interval": "-" if interval is None else f"{number(interval[0])} to {number(interval[1])}",
                "difference": learned.differences.get(standing.name, standing.remark or standing.state),
                "seconds": f"{standing.seconds:.2g}" if played else "-",
                "certificate": standing.certificate,
            }
        )
    return table


def test(learned: Any) -> list[str]:
    """What the test says, and whether it was luck."""
    return [learned.test.luck] if learned.test.luck else []


def scores(learned: Any) -> list[dict[str, str]]:
    """All scores on the test part."""
    return [
        {
            "name": plain(score.name),
            "value": number(score.value, 4),
            "interval": " to ".join(map(number, score.interval)),
        }
        for score in learned.test.scores
    ]


def machine(learned: Any) -> list[str]:
    """What was chosen, and what its certificate proves."""
    fitted = learned.model.machine
    sentences = [f"{learned.champion.title}, with the settings that did best on the folds."]
    certificate = getattr(fitted, "certificate_", None)
    if certificate is not None:
        sentences.append(f"Certificate of the fit: {certificate}.")
    return sentences


def equation(learned: Any) -> str:
    """The machine as code and, where it is one, as the equation."""
    fitted = learned.model.machine
    lines = [repr(fitted)]
    if hasattr(fitted, "loss") and hasattr(fitted, "C") and hasattr(fitted, "penalty"):
        lines += [
            "",
            "minimise   R(w) + C * sum_i c_i * loss(y_i, <w, phi(x_i)> + b)",
            f"loss = {fitted.loss}, R = {fitted.penalty}, C = {number(getattr(fitted, 'C_', fitted.C))}, "
            f"phi = {'the columns' if fitted.features is None else fitted.features}",
        ]
    return "\n".join(lines)


def columns(learned: Any) -> list[dict[str, str]]:
    """The columns of the table."""
    return [
        {
            "name": column.name,
            "kind": column.kind if column.used else f"{column.kind}, not used",
            "missing": f"{column.missing:,}" if column.missing else "",
            "distinct": f"{column.distinct:,}",
            "typical": _values(column),
        }
        for column in learned.model.schema.columns[:MOST_COLUMNS]
    ]


def _values(column: Any) -> str:
    if column.low is not None and column.high is not None:
        return f"{number(column.low, 4)} to {number(column.high, 4)}"
    return ", ".join(example[:40] for example in column.examples[:4])


def data(learned: Any) -> str:
    """The table in a sentence."""
    count = len(learned.model.schema.columns)
    shown = f" The first {MOST_COLUMNS} are listed." if count > MOST_COLUMNS else ""
    rows = learned.train_rows + len(learned.test.truth)
    return f"{rows:,} rows with a known {learned.target}, and {count:,} other columns.{shown}"


def code(file: str) -> str:
    """How to use the model."""
    return f'import empirisk as er\nmodel = er.load({file!r})\nmodel.predict(er.tables.read("new.csv"))'
