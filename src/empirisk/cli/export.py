"""empirisk export: a model for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from empirisk.cli.outputs import say
from empirisk.errors import EmpiriskError
from empirisk.exports.write import export
from empirisk.files.models import load
from empirisk.tables.reading.read import read


def command(
    model: Annotated[Path, typer.Argument(help="A model file: that of a table, or of any estimator.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="A model of ONNX; where nothing else is asked for.")] = False,
    python: Annotated[bool, typer.Option("--python", help="A file of Python that needs NumPy alone.")] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="A statement of SQL, for linear machines and single trees.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write: .onnx, .py or .sql; beside the model if not given."),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="A table to compare the file with the model on; made up if not given.")
    ] = None,
) -> None:
    """Write a model for other programs, and print how much its answers differ from the model's."""
    asked = [ending for ending, wanted in ((".onnx", onnx), (".py", python), (".sql", sql)) if wanted]
    if out is not None and asked and asked != [out.suffix]:
        raise EmpiriskError(f"--out={str(out)!r} has not the ending that is asked for; use {' or '.join(asked)}.")
    loaded = load(model)
    table = None if rows is None else read(rows)
    endings = asked or ([out.suffix] if out is not None else [".onnx"])
    for ending in endings:
        say(str(export(loaded, model.with_suffix(ending) if out is None else out, table)))
