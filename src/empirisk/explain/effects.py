"""What the model makes of a column: the average prediction if every row had this value of it (partial dependence)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

if TYPE_CHECKING:
    from empirisk.tables.kinds import Kind
    from empirisk.tables.understanding.schema import Schema
    from empirisk.tables.understanding.target import Target

#: Rows whose predictions are averaged, and columns that are looked at.
ROWS, COLUMNS = 200, 6
#: Values of a column that are tried, by how it is drawn.
VALUES = {"numbers": 9, "dates": 9, "levels": 10, "": 0}
MOST_CLASSES = 4  # lines of a picture that are told apart
SECONDS = 10.0  # for all the pictures: a report is not waited for longer
NORMAL = 1.96  # standard errors of a 95 % interval


@dataclass(frozen=True, eq=False)
class Effect:
    """The average prediction over the values of a column.

    Attributes
    ----------
    column : str
        The column.
    type : Kind
        What it holds.
    values : list
        Numbers, moments or words.
    outputs : list of str
        The classes whose probability is followed, or the target.
    mean, low, high : arrays, outputs x values
        The average over rows, and the 95 % interval of how far it is from the average over values: rows differ by more
        than this column, and that is no doubt about its effect.
    """

    column: str
    type: "Kind"
    values: list[Any]
    outputs: list[str]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class TestedTable(Protocol):
    """What effects are computed from: a table, its columns, and the rows that no machine learned from."""

    @property
    def frame(self) -> pl.DataFrame: ...
    @property
    def schema(self) -> "Schema": ...
    @property
    def target(self) -> "Target": ...
    @property
    def classes(self) -> NDArray | None: ...
    @property
    def test(self) -> NDArray: ...


def effects(
    plan: TestedTable, pipeline: Pipeline, columns: Sequence[str], seed: int, seconds: float = SECONDS
) -> list[Effect]:
    """The effects of columns that hold no texts, as far as the time goes."""
    deadline = time.perf_counter() + seconds
    rows = np.sort(np.random.default_rng(seed).permutation(plan.test)[:ROWS])
    frame, found = plan.frame[rows], []
    for name in columns:
        kind = plan.schema[name].type
        values = kind.trial_values(plan.frame[name], VALUES[kind.drawn])
        if len(values) < 2:
            continue
        begin = time.perf_counter()
        found.append(_effect(plan, pipeline, frame, name, kind, values))
        now = time.perf_counter()
        if len(found) == COLUMNS or now + (now - begin) > deadline:
            break
    return found


def _effect(
    plan: TestedTable, pipeline: Pipeline, frame: pl.DataFrame, name: str, kind: "Kind", values: list[Any]
) -> Effect:
    many = pl.concat([frame] * len(values))
    column = pl.Series(name, np.repeat(np.arange(len(values)), frame.height))
    tried = pl.Series(name, values, dtype=plan.frame[name].dtype).gather(column)
    said = _outputs(pipeline, many.with_columns(tried), plan.classes).reshape(len(values), frame.height, -1)
    mean = said.mean(axis=1).T
    moves = said - said.mean(axis=0, keepdims=True)
    error = moves.std(axis=1, ddof=min(1, frame.height - 1)).T / np.sqrt(frame.height)
    names = [plan.target.name] if plan.classes is None else [str(label) for label in plan.classes]
    shown = np.array([len(names) - 1]) if len(names) <= 2 else np.argsort(-np.ptp(mean, axis=1), kind="stable")
    shown = np.sort(shown[:MOST_CLASSES])
    low, high = mean - NORMAL * error, mean + NORMAL * error
    if plan.classes is not None:
        low, high = np.maximum(low, 0), np.minimum(high, 1)
    return Effect(name, kind, values, [names[k] for k in shown], mean[shown], low[shown], high[shown])


def _outputs(pipeline: Pipeline, frame: pl.DataFrame, classes: NDArray | None) -> NDArray[np.float64]:
    """Numbers, or the probability of each class; where there is none, whether the class was named."""
    if classes is None:
        return np.asarray(pipeline.predict(frame), dtype=np.float64)[:, None]
    if hasattr(pipeline, "predict_proba"):
        return np.asarray(pipeline.predict_proba(frame), dtype=np.float64)
    return (np.asarray(pipeline.predict(frame))[:, None] == classes).astype(np.float64)
