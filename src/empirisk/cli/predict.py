"""empirisk predict: the rows of a table through a model."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from empirisk.cli.models import load_model
from empirisk.cli.outputs import say
from empirisk.errors import EmpiriskError, listed
from empirisk.explain.contributions import reasons
from empirisk.files.atomic import whole_file
from empirisk.tables.predictions import beside
from empirisk.tables.reading.read import read
from empirisk.tables.reading.spreadsheet import harmless
from empirisk.tables.understanding.profile import sentences

_WRITERS: dict[str, Callable[[pl.DataFrame, io.BytesIO], object]] = {
    ".csv": lambda frame, file: frame.write_csv(file),
    ".tsv": lambda frame, file: frame.write_csv(file, separator="\t"),
    ".parquet": lambda frame, file: frame.write_parquet(file),
    ".arrow": lambda frame, file: frame.write_ipc(file),
    ".feather": lambda frame, file: frame.write_ipc(file),
    ".jsonl": lambda frame, file: frame.write_ndjson(file),
}
#: Endings of tables that spreadsheets open.
TEXTS = (".csv", ".tsv")


def command(
    model: Annotated[Path, typer.Argument(help="A model that `empirisk learn` wrote.")],
    table: Annotated[
        str | None, typer.Argument(help="A table with the columns of the model, or a bundled name.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Where to write: .csv, .tsv, .parquet, .arrow or .jsonl; the screen if not given, or -."
        ),
    ] = None,
    interval: Annotated[
        float | None, typer.Option(help="Also give intervals that hold so many percent of the numbers, such as 90.")
    ] = None,
    forecast: Annotated[
        int | None, typer.Option(help="Instead of a table: the next rows after those that were learned in time order.")
    ] = None,
    no_header: Annotated[bool, typer.Option("--no-header", help="Columns are column_1, column_2, ...")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Name the columns that move each prediction most, and by how much.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep all columns of the table beside the predictions.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write cells that a spreadsheet would run (=, +, -, @) without an apostrophe.")
    ] = False,
) -> None:
    """Predict the rows of a table; columns that name rows are kept beside the predictions."""
    out = None if out == Path("-") else out
    ending = ".csv" if out is None else out.suffix.lower()
    if ending not in _WRITERS:
        raise EmpiriskError(f"--out={str(out)!r} has an ending that is not known; use one of {sorted(_WRITERS)}.")
    loaded = load_model(model)
    if interval is not None and not 0 < interval < 100:
        raise EmpiriskError(f"--interval={interval:g} must lie between 0 and 100, such as 90.")
    if table is not None and forecast is None:
        frame = read(table, header=not no_header)
    elif table is None and forecast is not None:
        frame = loaded.coming(forecast)
    else:
        raise EmpiriskError("predict takes a table with rows to predict, or --forecast with how many come next.")
    answers = beside(loaded, frame, keep, interval)
    if explain:
        answers = answers.with_columns(pl.Series("because", reasons(loaded, frame)))
    if table is None and loaded.unforeseen:
        names = listed([column.name for column in loaded.unforeseen])
        say(f"! Not known of rows that come, and taken as missing: {names}; give a table where they are.", error=True)
    for line in sentences(loaded.unusual(frame)):
        say(f"! {line}", error=True)
    if ending in TEXTS and not raw:
        answers = harmless(answers)
    written = io.BytesIO()
    _WRITERS[ending](answers, written)
    if out is None:
        typer.echo(written.getvalue().decode(), nl=False)
        return
    with whole_file(out.absolute()) as file:
        file.write(written.getvalue())
    say(f"Wrote {answers.height} predictions to {out}.")
