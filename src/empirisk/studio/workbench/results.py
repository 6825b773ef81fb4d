"""A run that is over, opened again: its model and its test rows, and what can be asked of them.

Everything is computed from the files of the run, so that a restart loses nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import t as student

from empirisk.errors import EmpiriskError
from empirisk.explain.effects import effects
from empirisk.files.models import load
from empirisk.formats import shown
from empirisk.lazy import lazy
from empirisk.league.result import Test
from empirisk.league.verdict.score import score
from empirisk.report import verdict
from empirisk.service.bodies import Refusal
from empirisk.service.fields import Fields
from empirisk.service.openapi import levels
from empirisk.studio.workbench.job import RESULT
from empirisk.studio.workbench.kept import KeptRows
from empirisk.studio.workbench.lines import NEAREST
from empirisk.tables.kinds.date import DAY
from empirisk.tables.model import TableModel

KEPT = 3  # runs in memory
MOST_ROWS = 200  # rows that a list of errors holds
MOST_COLUMNS = 12  # columns beside them
SLIDER_STEPS = 200  # of a number in the what-if form
MINUTE = 60_000_000.0  # in the microseconds of moments
SEED = 0  # of the rows that effects are averaged over


@lru_cache(maxsize=KEPT)
def opened(folder: Path, changed: float) -> "OpenRun":
    """The run of a folder; read once while its model stays the same."""
    return OpenRun(folder)


def open_run(folder: Path) -> "OpenRun":
    """The run of a folder, if it has a model."""
    path = folder / f"{RESULT}.model"
    if not path.exists():
        raise Refusal(409, "The run has no model yet.")
    return opened(folder, path.stat().st_mtime)


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A model, and where it was learned here, the rows that only judged it; reads like the result of `learn`."""

    folder: Path

    @lazy
    def model(self) -> TableModel:
        """The model."""
        found = load(self.folder / f"{RESULT}.model")
        if not isinstance(found, TableModel):
            raise EmpiriskError("The model was saved without a table; open one that `empirisk learn` wrote.")
        return found

    @lazy
    def rows(self) -> KeptRows:
        """The rows that judged it, and some that it learned from."""
        return KeptRows.read(self.folder)

    @property
    def target(self) -> str:
        """The column that was learned."""
        return self.model.target.name

    @property
    def metric(self) -> str:
        """The score that decided."""
        return next(iter(self.model.scores), "")

    @property
    def classes(self) -> NDArray | None:
        """The classes, or None for numbers."""
        return np.array(self.model.target.classes) if self.model.target.classes else None

    @property
    def test(self) -> Test:
        """The test rows and what the model said of them."""
        rows = self.rows
        return Test(rows.truth[rows.test], rows.said, rows.shares, None, [], "", self.model.threshold)

    @lazy
    def known(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows that it learned from, as the machine sees them, and the deviation of each column."""
        rows = _dense(self.model.encode(self.rows.frame[self.rows.known]))
        scale = np.nanstd(rows, axis=0)
        return rows, np.where(scale > 0, scale, 1.0)


def threshold(run: OpenRun) -> dict[str, Any] | None:
    """Counts at every threshold of a two-class model."""
    found = verdict.threshold(run)
    return None if found is None else {"positive": found.positive, "counts": found.counts, "start": found.start}


def errors(run: OpenRun, columns: list[str]) -> dict[str, Any]:
    """The test rows that it errs on most."""
    test, frame, numbers = run.test, run.rows.frame, run.rows.numbers
    if run.classes is None:
        size = np.abs(test.truth - test.predictions)
        order = np.argsort(-size, kind="stable")[:MOST_ROWS]
        wrong = len(size)
    else:
        mistaken = np.flatnonzero(test.truth != test.predictions)
        size = test.probabilities.max(axis=1) if test.probabilities is not None else np.ones(len(test.truth))
        order = mistaken[np.argsort(-size[mistaken], kind="stable")][:MOST_ROWS]
        wrong = len(mistaken)
    shown_columns = _shown_columns(frame, columns)
    rows = [
        {
            "place": int(k),
            "row": int(numbers[k]) + 1,
            "truth": _plain(test.truth[k]),
            "said": _plain(test.predictions[k]),
            "size": float(size[k]),
            "values": [_cell(run, name, frame[name][int(k)]) for name in shown_columns],
        }
        for k in order
    ]
    return {"columns": shown_columns, "rows": rows, "wrong": wrong, "of": len(test.truth)}


def _shown_columns(frame: pl.DataFrame, wanted: list[str]) -> list[str]:
    """The columns beside rows: those that matter most, where it is known which do."""
    return ([name for name in wanted if name in frame.columns] or frame.columns)[:MOST_COLUMNS]


def _cell(run: OpenRun, name: str, value: Any) -> str:
    """A value of a column as people write it."""
    kind = run.model.schema[name].type
    return kind.level_name(value) if kind.drawn == "levels" and value is not None else shown(value)


class _Tested(NamedTuple):
    """The rows that effects are averaged over."""

    frame: pl.DataFrame
    schema: Any
    target: Any
    classes: NDArray | None
    test: NDArray


def effect(run: OpenRun, column: str) -> dict[str, Any]:
    """What the model makes of a column: the average prediction over its values."""
    if column not in [one.name for one in run.model.schema.used]:
        raise EmpiriskError(f"The model does not use {column!r}.")
    model, rows = run.model, run.rows
    found = effects(
        _Tested(rows.frame, model.schema, model.target, run.classes, rows.test), model.pipeline, [column], SEED
    )
    if not found:
        return {"column": column, "none": f"{column} holds texts, or a single value: it has no curve."}
    one, drawn = found[0], found[0].type.drawn
    sizes = None if drawn == "levels" else one.type.sizes(pl.Series(one.values))
    return {
        "column": column,
        "drawn": drawn,
        "values": [one.type.level_name(value) for value in one.values] if sizes is None else sizes.tolist(),
        "outputs": one.outputs,
        "mean": one.mean,
        "low": one.low,
        "high": one.high,
    }


def form(run: OpenRun, place: int | None) -> dict[str, Any]:
    """The what-if form: every column the model uses, with the values of a test row, or usual ones."""
    row = _row(run, place)
    fields = []
    for column in run.model.schema.used:
        words = levels(run.model, column.name)
        tag, choices = column.type.input(words)
        field = {"name": column.name, "kind": column.kind, "tag": tag, "choices": list(choices)}
        field["missing"] = column.missing > 0
        low, high = column.low, column.high
        if column.type.drawn in STEPS and low is not None and high is not None:
            step = STEPS[column.type.drawn](column)
            field |= {"tag": "range", "drawn": column.type.drawn, "low": low, "high": high, "step": step}
        fields.append(field | {"value": row.get(column.name)})
    return {"fields": fields, "target": run.target, "classes": run.model.classes, "tests": _count(run)}


def _number_step(column: Any) -> float:
    """1 for a column of whole numbers, as it seems: its ends are, and it has no more values than lie between."""
    width = column.high - column.low
    whole = float(column.low).is_integer() and float(column.high).is_integer()
    return 1.0 if whole and width >= 2 and column.distinct <= width + 1 else width / SLIDER_STEPS or 1.0


def _date_step(column: Any) -> float:
    """A day, or where a step of the slider is less, a minute."""
    return DAY if column.high - column.low >= SLIDER_STEPS / 4 * DAY else MINUTE


#: Steps of sliders, by how a column is drawn.
STEPS: dict[str, Callable[[Any], float]] = {"numbers": _number_step, "dates": _date_step}


def _count(run: OpenRun) -> int:
    try:
        return len(run.rows.said)
    except Refusal:
        return 0


def _row(run: OpenRun, place: int | None) -> dict[str, Any]:
    """A test row as JSON has it; without one, usual values."""
    if place is None or not 0 <= place < _count(run):
        examples = ((one, one.type.example(one, levels(run.model, one.name))) for one in run.model.schema.used)
        return {column.name: value for column, value in examples}
    row = run.rows.frame.row(place, named=True)
    levelled = run.model.schema.named(lambda kind: kind.drawn == "levels")
    words = {name: run.model.schema[name].type.level_name(row[name]) for name in levelled if row[name] is not None}
    return {name: _plain(value) for name, value in row.items()} | words


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def what_if(run: OpenRun, row: Any) -> dict[str, Any]:
    """The prediction for one row, the probabilities, and what every column adds."""
    if not isinstance(row, dict):
        raise EmpiriskError("row must be an object of fields.")
    frame, problems = Fields(run.model.schema).check([row])
    if problems:
        raise Refusal(422, f"Field {problems[0]['field']!r}: {problems[0]['problem']}.", problems)
    X = run.model.encode(frame)
    found: dict[str, Any] = {"prediction": _plain(run.model.predict_encoded(X)[0])}
    if run.model.has_probabilities:
        shares = zip(run.model.classes, run.model.pipeline[-1].predict_proba(X)[0], strict=True)
        found["probabilities"] = [[str(label), float(share)] for label, share in shares]
    if run.model.residuals is not None and len(run.model.residuals) > 40:
        low, high = run.model.predict_interval(frame, 0.9)
        found["interval"] = [float(low[0]), float(high[0])]
    try:
        added = run.model.explain(frame)[0]
        found["adds"] = [[column.name, float(v)] for column, v in zip(run.model.schema.used, added, strict=True)]
    except EmpiriskError as reason:
        found["no_adds"] = str(reason)
    return found | {"warnings": run.model.unusual(frame).get(0, [])}


def nearest(run: OpenRun, row: Any, columns: list[str]) -> dict[str, Any]:
    """The training rows most like a row, by the numbers that the machine sees, each in units of its deviation."""
    frame, problems = Fields(run.model.schema).check([row])
    if problems:
        raise Refusal(422, f"Field {problems[0]['field']!r}: {problems[0]['problem']}.", problems)
    rows, scale = run.known
    gaps = np.nan_to_num((rows - _dense(run.model.encode(frame))) / scale)
    distances = np.sqrt((gaps**2).sum(axis=1))
    order = np.argsort(distances, kind="stable")[:NEAREST]
    kept = run.rows
    columns = _shown_columns(kept.frame, columns)
    return {
        "columns": columns,
        "rows": [
            {
                "row": int(kept.numbers[place]) + 1,
                "distance": float(distance),
                "truth": _plain(kept.truth[place]),
                "values": [_cell(run, name, kept.frame[name][int(place)]) for name in columns],
            }
            for place, distance in zip(kept.known[order], distances[order], strict=True)
        ],
    }


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def scored(run: OpenRun, frame: pl.DataFrame) -> dict[str, Any]:
    """How the model does on new rows with the truth, and which columns have moved."""
    found = score(run.model, frame)
    return {
        "rows": found.rows,
        "scores": [one.to_dict() | {"before": found.before.get(one.name)} for one in found.scores],
        "drift": [{"column": one.column, "moved": one.moved, "what": one.sentence} for one in found.drift],
        "warnings": list(found.warnings),
    }


def compare(one: OpenRun, other: OpenRun) -> dict[str, Any]:
    """The difference of the errors of two runs on the test rows that both have, with its 95 % interval."""
    if one.target != other.target or (one.classes is None) != (other.classes is None):
        raise EmpiriskError("Runs are compared where they learn the same column.")
    numbers = [run.rows.numbers[run.rows.test] for run in (one, other)]
    common, *places = np.intersect1d(*numbers, assume_unique=True, return_indices=True)
    first, second = (run.rows.truth[place] for run, place in zip((one, other), places, strict=True))
    if not np.array_equal(first, second):
        raise EmpiriskError("Runs are compared where they learn the same table; the rows of these two differ.")
    if len(common) < 2:
        raise EmpiriskError("The two runs have no test rows in common; learn both with the same seed and share.")
    sizes = [_row_errors(run)[place] for run, place in zip((one, other), places, strict=True)]
    gap = sizes[0] - sizes[1]
    half = float(student.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap)))
    mean = float(gap.mean())
    return {
        "what": "share of wrong rows" if one.classes is not None else "mean absolute error",
        "errors": [float(size.mean()) for size in sizes],
        "difference": mean,
        "low": mean - half,
        "high": mean + half,
        "rows": len(common),
    }


def _row_errors(run: OpenRun) -> NDArray[np.float64]:
    """The error of every test row: whether it is wrong, or how far it is off."""
    if run.classes is not None:
        return (run.test.truth != run.test.predictions).astype(np.float64)
    return np.abs(run.test.truth - run.test.predictions)
