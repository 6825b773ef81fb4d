"""What a table holds, as the page shows it: few numbers, whatever the number of rows."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from empirisk.errors import EmpiriskError, labels
from empirisk.formats import metric_name, shown
from empirisk.league.candidates.everyone import candidates_for
from empirisk.league.request import Request
from empirisk.league.rows.split import plan
from empirisk.league.verdict.judge import metric_for
from empirisk.report.data import spark_counts
from empirisk.settings import holding
from empirisk.studio.workbench.job import OPTIONS
from empirisk.tables import read, understand
from empirisk.tables.kinds import USED
from empirisk.tables.reading import datasets
from empirisk.tables.understanding.column import Column

KEPT = 3  # tables in memory: the one that is looked at, and those before it
#: Scores to choose from, of numbers and of classes.
METRICS = (
    ("rmse", "mae", "r2", "mape"),
    ("accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1", "log_loss"),
)
FEW_ROWS = 8  # rows that are shown as they are
MOST_COLUMNS = 150  # that are shown, of a longer list the first ones and the last, which often is the target
MOST_NAMES = 50  # of columns that a part of a name offers
MOST_WARNINGS = 20  # that are listed: more are not read
MOST_CELLS = 1000  # of the first rows: with the columns, an answer holds at most 5 000 points
NOTE_ROWS = 5000  # rows, from the first, in which leaks and copies are looked for
SAMPLE_ROWS = 20_000  # rows, from all over the table, by which columns of a longer one are described


def version(source: str) -> float:
    """When a file was changed; 0 for a bundled table."""
    return os.stat(source).st_mtime if source not in datasets.NAMES else 0.0


@lru_cache(maxsize=KEPT)
def frame_of(source: str, changed: float) -> pl.DataFrame:
    """A table, kept in memory."""
    return read(source)


@lru_cache(maxsize=KEPT)
def described(source: str, changed: float) -> dict[str, dict[str, Any]]:
    """Every column of a table, as it is guessed."""
    frame = spread_out(frame_of(source, changed))
    columns = list(understand(frame).columns)
    shown_columns = columns if len(columns) <= MOST_COLUMNS else [*columns[: MOST_COLUMNS - 1], columns[-1]]
    return {column.name: column_told(frame[column.name], column) for column in shown_columns}


@lru_cache(maxsize=256)
def corrected(source: str, changed: float, name: str, kind: str) -> dict[str, Any]:
    """One column, taken for another kind than was guessed."""
    frame = spread_out(frame_of(source, changed).select(name))
    return column_told(frame[name], understand(frame, types={name: kind}).columns[0])


def spread_out(frame: pl.DataFrame) -> pl.DataFrame:
    """At most about so many rows, from all over a table."""
    return frame.gather_every(-(-frame.height // SAMPLE_ROWS)) if frame.height > SAMPLE_ROWS else frame


def column_told(series: pl.Series, column: Column) -> dict[str, Any]:
    """What the page shows of a column: kind, histogram, what is missing, and what was noticed."""
    values = column.parse(series) if column.used else series
    low, high = column.low, column.high
    span = f"{column.written(low)} to {column.written(high)}" if low is not None and high is not None else ""
    return {
        "name": column.name,
        "kind": column.kind,
        "used": column.used,
        "missing": column.missing / max(len(series), 1),
        "distinct": column.distinct,
        "range": span,
        "examples": [shown(value) for value in series.drop_nulls().head(3).to_list()],
        "bars": spark_counts(values, column.type) if column.used else [],
        "notes": list(column.remarks()) + ([] if column.used else [column.type.why_not(column)]),
        "target": not column.type.target_problem(column),
    }


def told(name: str, source: str, types: Mapping[str, str]) -> dict[str, Any]:
    """A table as the page shows it."""
    changed = version(source)
    frame, columns = frame_of(source, changed), dict(described(source, changed))
    for column, kind in types.items():
        if column not in columns or kind not in USED:
            raise EmpiriskError(f"types: {column!r} cannot be {kind!r} here.")
        columns[column] = corrected(source, changed, column, kind)
    most = max(MOST_CELLS // max(len(columns), 1), 1)
    head = frame.head(min(FEW_ROWS, most)).select(list(columns))
    return {
        "name": name,
        "rows": frame.height,
        "described": spread_out(frame).height,
        "width": frame.width,
        "columns": list(columns.values()),
        "head": [[shown(value) for value in row] for row in head.rows()],
        "kinds": list(USED),
        "options": OPTIONS,
        "target": datasets.about(source).target if source in datasets.NAMES else None,
    }


def names(source: str, part: str) -> list[str]:
    """Columns to choose from, shown or not, whose names hold a part: those that begin with it first."""
    found = [name for name in frame_of(source, version(source)).columns if part.casefold() in name.casefold()]
    return sorted(found, key=lambda name: not name.casefold().startswith(part.casefold()))[:MOST_NAMES]


def notes(source: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What `learn` would notice of a table with these options, looked for in its first rows, and what it may take."""
    frame = frame_of(source, version(source))
    with holding(labels, OPTIONS):
        found = plan(Request(frame.head(NOTE_ROWS), **options))
    classes = found.classes is not None
    metric = metric_for(None, found.classes, bool(options.get("balance")), found.y[found.train]).name
    return {
        "task": found.target.task,
        "reason": found.target.reason,
        "classes": None if found.classes is None else len(found.classes),
        "warnings": list(found.warnings)[:MOST_WARNINGS],
        "folds": len(found.folds),
        "machines": [[one.name, one.title] for one in candidates_for(classes) if one.name != "baseline"],
        "metrics": [
            ["", f"as usual: {metric_name(metric)}"],
            *([name, metric_name(name)] for name in METRICS[classes]),
        ],
    }
