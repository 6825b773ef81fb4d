"""empirisk show: what a model is."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from empirisk.cli.models import load_model
from empirisk.cli.outputs import say
from empirisk.errors import listed
from empirisk.formats import metric_name, number
from empirisk.report.terms import equation
from empirisk.tables.model import TableModel, settings_of


def command(
    model: Annotated[Path, typer.Argument(help="A model that `empirisk learn` wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show what a model is: machine, scores, columns it expects, equation and certificate."""
    loaded = load_model(model)
    about = describe(loaded)
    if as_json:
        typer.echo(json.dumps(about, indent=1, default=str))
        return
    target = about["target"]
    say(f"{about['machine']} that predicts {target['name']!r}: {target['what']}")
    say(f"  {about['settings']}")
    scores = {metric_name(name): value for name, value in about["scores"].items()}
    for name, value in (scores | about["description"]).items():
        if name != "settings":
            say(f"  {name}: {_plain(value)}")
    for key in ("certificate", "equation"):
        if about[key]:
            say(f"{key}: {about[key]}")
    say("columns:")
    for column in loaded.schema.columns:
        say(f"  {column}")


def describe(model: TableModel) -> dict[str, Any]:
    """What there is to know of a model, for people and for JSON."""
    target, machine = model.target, model.machine
    classes = [str(label) for label in model.classes]
    what = f"{len(classes)} classes ({listed(classes)})" if classes else "a number"
    certificate = getattr(machine, "certificate_", None)
    return {
        "machine": type(machine).__name__,
        "settings": settings_of(machine),
        "target": {"name": target.name, "task": target.task, "what": what, "classes": classes},
        "scores": model.scores,
        "description": model.description,
        "certificate": str(certificate) if certificate is not None else "",
        "equation": equation(model),
        "columns": [
            {"name": c.name, "kind": c.kind, "missing": c.missing, "unused": c.type.unused_because}
            for c in model.schema.columns
        ],
    }


def _plain(value: Any) -> str:
    if isinstance(value, dict) and {"value", "low", "high"} <= set(value):
        return f"{number(value['value'], 4)} ({number(value['low'], 4)} to {number(value['high'], 4)})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
