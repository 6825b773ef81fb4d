"""The report of a result of `learn`: its sections in order, as one HTML page."""

from typing import Any

from empirisk.formats import count, metric_name, number
from empirisk.report import data, machine, verdict
from empirisk.report.page_blocks import Code, Paragraph, Section, Table, render
from empirisk.report.words import code


def page(learned: Any, model_file: str = "table.model") -> str:
    """The report of a result of `learn` as one HTML page that needs no network.

    Parameters
    ----------
    learned : Learned
        What `learn` returns.
    model_file : str
        The name under which the model is saved, for the lines that load it.

    Examples
    --------
    >>> found = er.learn("iris", machines=["centroid"])
    >>> "Nearest centroid" in page(found)
    True
    """
    return render(
        {
            "How good it is": lambda: verdict.test(learned),
            "What it learned": lambda: machine.learned_what(learned),
            "Where it errs": lambda: verdict.errors(learned),
            "The data": lambda: data.data(learned),
            "The league": lambda: machine.league(learned),
            "The machine": lambda: machine.machine(learned),
            "How to use it": lambda: use(learned.origin, learned.seconds, model_file),
        },
        title=f"{learned.name}: {learned.target}",
        byline=byline(learned.origin),
        summary=learned.summary(),
        cards=cards(learned),
        warnings=learned.warnings,
    )


def byline(origin: Any) -> str:
    """The line below the title: the date, the source and the version."""
    return f"{origin.moment:%-d %B %Y}, from {origin.source}, by Empirisk {origin.versions['empirisk']}"


def cards(learned: Any) -> list[tuple[str, str]]:
    """The numbers at the top of the page."""
    first = learned.test.scores[0]
    low, high = first.interval
    return [
        (number(first.value), f"{metric_name(first.name)} on the test part"),
        (f"{number(low)} to {number(high)}", "its 95 % interval"),
        (learned.best.title, "the machine chosen"),
        (f"{learned.train_rows:,} + {len(learned.test.truth):,}", "rows to learn from + to test on"),
    ]


def use(origin: Any, seconds: float, model_file: str, what: str = "") -> Section:
    """The section with the code that loads the model, and the command, seed and versions that reproduce it."""
    rows = [
        ["Source", origin.source],
        ["Command", origin.command],
        ["Seed", str(origin.seed)],
        ["Begun", f"{origin.moment:%-d %B %Y, %H:%M} UTC, {count(round(seconds), 'second')}"],
        ["Versions", ", ".join(f"{name} {version}" for name, version in origin.versions.items())],
    ]
    made = Table("How it was made", [], rows)
    return Section("use", "How to use it", [*([Paragraph(what)] if what else []), Code(code(model_file)), made])
