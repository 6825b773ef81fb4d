"""empirisk datasets: the bundled tables."""

import json
from typing import Annotated

import typer

from empirisk.tables.reading import datasets


def command(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the bundled tables."""
    found = []
    for name in datasets.NAMES:
        about, frame = datasets.about(name), datasets.table(name)
        found.append(
            {"name": name, "rows": frame.height, "columns": frame.width, "target": about.target, "about": about.about}
        )
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    for entry in found:
        size = f"{entry['rows']} x {entry['columns']}"
        typer.echo(f"{entry['name']:14} {size:>10}  target {entry['target']:10} {entry['about']}")
    typer.echo("\nTry one: empirisk learn iris --target species")
