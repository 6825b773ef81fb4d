"""empirisk score: a model on rows whose truth is known by now."""

import json
from pathlib import Path
from typing import Annotated

import typer

from empirisk.cli.models import load_model
from empirisk.cli.outputs import say
from empirisk.formats import metric_name, number
from empirisk.league.verdict.score import score


def command(
    model: Annotated[Path, typer.Argument(help="A model that `empirisk learn` wrote.")],
    table: Annotated[str, typer.Argument(help="A table with the columns of the model and the true values.")],
    metric: Annotated[str | None, typer.Option(help="A score to begin with, such as auc, f1 or mae.")] = None,
    no_header: Annotated[bool, typer.Option("--no-header", help="Columns are column_1, column_2, ...")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Score a model on new rows, with intervals, and say whether they look like the rows that it learned from."""
    found = score(load_model(model), table, metric, not no_header)
    if as_json:
        about = {
            "rows": found.rows,
            "scores": [one.to_dict() for one in found.scores],
            "drift": [{"column": one.column, "moved": one.moved, "what": one.sentence} for one in found.drift],
            "warnings": list(found.warnings),
        }
        typer.echo(json.dumps(about, indent=1))
        return
    say(f"{found.rows:,} rows of {table}")
    for one in found.scores:
        low, high = one.interval
        before = found.before.get(one.name)
        test = "" if before is None else f"; {number(before['value'], 4)} in the test"
        say(f"  {metric_name(one.name)}: {number(one.value, 4)} ({number(low, 4)} to {number(high, 4)}){test}")
    for warning in found.warnings:
        say(f"! {warning}")
    say("Columns that are spread otherwise than in training:" if found.drift else "The columns look as before.")
    for entry in found.drift:
        say(f"  {entry.sentence}")
