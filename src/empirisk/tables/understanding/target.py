"""The column to predict: classes or numbers, and how its values are read and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk import state
from empirisk.errors import EmpiriskError, MissingValues, OneClass, option
from empirisk.tables.kinds.base import counted
from empirisk.tables.reading.frames import as_frame
from empirisk.tables.understanding.column import Column, as_missing
from empirisk.tables.understanding.guess import column_words, guess
from empirisk.tables.understanding.schema import find_column

MOST_CLASSES = 20  # whole numbers with at most so many values, each met often, are classes
#: But of more than so many values, one that is met that many times less than another is in the tail of a count.
FEW, SELDOM = 5, 500
MOST_NUMBERED = 30  # and so many if they are numbered 0, 1, 2, ... and about as frequent: more are counts
EVEN = 5  # times that the most frequent of those has the rows of the least frequent, at the most
MOST_ASKED = 100  # different whole numbers up to which a number may be meant as a class
OFTEN = 5  # rows for each class
TASKS = ("classification", "regression")
AS_ASKED, WHOLE = "as asked", "different whole numbers"  # reasons for a task


@dataclass(frozen=True)
class Target:
    """What is predicted.

    Attributes
    ----------
    name : str
        The column.
    task : str
        "classification" or "regression".
    classes : tuple
        The classes, sorted, as text, whole numbers or truth values; empty for numbers.
    column : Column
        How its values are written.
    reason : str
        Why the task is this one, in words.

    Examples
    --------
    >>> target = er.tables.Target.of({"x": [1, 2, 3], "spam": ["yes", "no", "yes"]}, "spam")
    >>> target.task, target.classes
    ('classification', ('no', 'yes'))
    >>> target.values({"spam": ["no", "yes"]})
    array(['no', 'yes'], dtype='<U3')
    """

    _state = state.State(name=state.text(), task=state.text(*TASKS), column=state.part(Column))

    name: str
    task: str
    classes: tuple[Any, ...]
    column: Column
    reason: str = ""

    @classmethod
    def of(cls, table: Any, name: str, task: str | None = None, missing: Sequence[str] = ()) -> Target:
        """Find out what a column asks for; ``task`` says it outright, ``missing`` which values stand for none."""
        if task not in (None, *TASKS):
            raise EmpiriskError(f"task={task!r} is not known; choose 'classification' or 'regression'.")
        frame = as_frame(table)
        name = find_column(name, frame.columns)
        series = as_missing(frame[name], missing)
        column = _column(series, tuple(missing))
        kind, reason = _task(series, column, task)
        if kind == "regression":
            return cls(name, kind, (), column, reason)
        labels = _labels(series, column)
        found = labels.drop_nulls().unique().sort().to_list()
        if len(found) == 1:
            raise OneClass(f"target={name!r} has one value only, {found[0]!r}; there is nothing to learn.")
        return cls(name, kind, tuple(found), column, reason)

    def values(self, table: Any) -> NDArray[Any]:
        """The target of every row, as machines take it; a missing value is an error."""
        series = self._series(as_frame(table)[self.name])
        if series.null_count():
            raise MissingValues(f"target={self.name!r} is missing in {series.null_count()} rows; leave those rows out.")
        if self.task == "regression" or not isinstance(self.classes[0], str):
            return series.to_numpy()
        return np.array(series.to_list())

    @property
    def question(self) -> str:
        """What the user should say otherwise if the task was guessed wrongly; empty where there is no doubt."""
        name, count = self.name, len(self.classes) or self.column.distinct
        if self.reason == AS_ASKED:
            return ""
        if count > 2 and self.classes and not isinstance(self.classes[0], str):
            return (
                f"{name!r} holds {count} different whole numbers, taken as classes; where they are quantities, say so "
                f"with {option('types', {name: 'number'})}."
            )
        if not self.classes and self.reason.endswith(WHOLE) and count <= MOST_ASKED:
            return (
                f"{name!r} holds {count} different whole numbers, taken as a quantity; where they are classes, say so "
                f"with {option('types', {name: 'category'})}."
            )
        return ""

    def known(self, table: Any) -> NDArray[np.bool_]:
        """Which rows have a target."""
        return self._series(as_frame(table)[self.name]).is_not_null().to_numpy()

    def numbers(self, series: pl.Series) -> pl.Series:
        """The values of a target of numbers, null where one is missing or infinite."""
        numbers = self.column.convert(series)
        return numbers.set(~numbers.is_finite() & numbers.is_not_null(), None)

    def _series(self, series: pl.Series) -> pl.Series:
        if self.task == "regression":
            return self.numbers(series)
        return _labels(as_missing(series, self.column.missing_values), self.column)


def _column(series: pl.Series, missing: tuple[str, ...]) -> Column:
    """The column as it would be read; a target is never dropped for naming rows."""
    column = guess(series, missing)
    problem = column.type.target_problem(column)
    if column.distinct == 0 and not isinstance(series.dtype, pl.Struct | pl.List | pl.Array):
        problem = "has no values; choose another column"
    if problem:
        raise EmpiriskError(f"target={series.name!r} {problem}.")
    if series.dtype.is_numeric() and column.type.dtype == pl.String:  # codes, or numbers of the rows
        return replace(column, kind="number", low=None, high=None)
    return column


def _task(series: pl.Series, column: Column, asked: str | None) -> tuple[str, str]:
    distinct, present = column.distinct, len(series) - column.missing
    if asked == "regression":
        if column.type.dtype != pl.Float64:
            raise EmpiriskError(f"target={series.name!r} holds words, not numbers; use task='classification'.")
        return asked, AS_ASKED
    if asked == "classification":
        return asked, AS_ASKED
    words = column.type.dtype == pl.String
    if words and (column.type.task is None or distinct > max(0.5 * present, 2)):
        raise EmpiriskError(
            f"target={series.name!r} has {distinct} different texts in {present} rows, too many to be classes; "
            "choose another column."
        )
    if column.type.task == "classification":
        return "classification", f"{distinct} different words"
    numbers = column.convert(series).drop_nulls()
    numbers = numbers.filter(numbers.is_finite())
    if distinct == 2:
        return "classification", "two different numbers"
    if not bool((numbers == numbers.round()).all()):
        return "regression", f"{distinct} different numbers"
    rows = counted(numbers)["rows"]
    tail = distinct > FEW and (rows[-1] < OFTEN or SELDOM * rows[-1] < rows[0])
    if distinct <= MOST_CLASSES and present >= OFTEN * distinct and not tail:
        return "classification", f"{distinct} {WHOLE}"
    numbered = numbers.min() in (0, 1) and numbers.max() - numbers.min() == distinct - 1  # type: ignore[operator]
    if distinct <= MOST_NUMBERED and numbered and rows[-1] >= OFTEN and rows[0] <= EVEN * rows[-1]:
        return "classification", f"{distinct} classes numbered in a row"
    return "regression", f"{distinct} {WHOLE}"


def _labels(series: pl.Series, column: Column) -> pl.Series:
    """The classes of rows: truth values, whole numbers where all are whole, else text."""
    if series.dtype == pl.Boolean:
        return series
    if series.dtype.is_numeric():
        numbers = column.convert(series) if column.used else series.cast(pl.Float64)
        numbers = numbers.set(~numbers.is_finite() & numbers.is_not_null(), None)
        whole = bool((numbers.drop_nulls() == numbers.drop_nulls().round()).all())
        # Scikit-learn takes broken numbers for quantities: as classes they are words.
        return numbers.cast(pl.Int64) if whole else numbers.cast(pl.String)
    if column.type.task == "regression":
        return _labels(column.convert(series), column)
    return column_words(series)
