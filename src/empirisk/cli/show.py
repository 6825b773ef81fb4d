"""empirisk show: what a model is."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from empirisk.cli.models import load_model
from empirisk.tables.columns import UNUSED
from empirisk.tables.model import TableModel

TERMS = 8  # of an equation that are shown


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
    typer.echo(f"{about['machine']} that predicts {target['name']!r}: {target['what']}")
    typer.echo(f"  {about['settings']}")
    for section in ("scores", "description"):
        for name, value in about[section].items():
            typer.echo(f"  {name}: {_plain(value)}")
    for key in ("certificate", "equation"):
        if about[key]:
            typer.echo(f"{key}: {about[key]}")
    typer.echo("columns:")
    for column in loaded.schema.columns:
        typer.echo(f"  {column}")


def describe(model: TableModel) -> dict[str, Any]:
    """What there is to know of a model, for people and for JSON."""
    target, machine = model.target, model.machine
    classes = [str(label) for label in model.classes]
    what = f"{len(classes)} classes ({_short(classes)})" if classes else "a number"
    certificate = getattr(machine, "certificate_", None)
    return {
        "machine": type(machine).__name__,
        "settings": " ".join(repr(machine).split()),
        "target": {"name": target.name, "task": target.task, "what": what, "classes": classes},
        "scores": model.scores,
        "description": model.description,
        "certificate": str(certificate) if certificate is not None else "",
        "equation": equation(model),
        "columns": [
            {"name": c.name, "kind": c.kind, "missing": c.missing, "unused": UNUSED.get(c.kind, "")}
            for c in model.schema.columns
        ],
    }


def equation(model: TableModel) -> str:
    """The largest terms of a linear machine on encoded columns; nothing for other machines."""
    weights = getattr(model.machine, "coef_", None)
    encoder = model.pipeline[0]
    names = getattr(encoder, "names_", None)
    if weights is None or names is None or np.ndim(weights) > 2:
        return ""
    weights = np.atleast_2d(weights)
    if weights.shape != (1, len(names)):
        return ""
    largest = np.argsort(-np.abs(weights[0]), kind="stable")[:TERMS]
    terms = [f"{weights[0, k]:+.4g} [{names[k]}]" for k in largest if weights[0, k] != 0]
    more = int(np.count_nonzero(weights)) - len(terms)
    constant = float(np.ravel(getattr(model.machine, "intercept_", 0.0))[0])
    rest = f" and {more} smaller terms" if more > 0 else ""
    return f"f = {constant:.4g} {' '.join(terms)}{rest}; numbers are centred and scaled"


def _short(values: list[str]) -> str:
    return ", ".join(values[:10]) + (", ..." if len(values) > 10 else "")


def _plain(value: Any) -> str:
    if isinstance(value, dict) and {"value", "low", "high"} <= set(value):
        return f"{value['value']:.4g} ({value['low']:.4g} to {value['high']:.4g})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
