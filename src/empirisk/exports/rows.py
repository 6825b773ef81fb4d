"""The rows that a graph is traced and checked on, and how they are given to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.exports.registry import load_family
from empirisk.exports.tensor import Tensor, entry
from empirisk.extras import data_frame

#: Rows that are made up for a check where none are given.
CHECKED = 64
#: Rows that are traced: shapes are known from them. Not as many as any check has, so that none is kept by mistake.
TRACED = 3


class ColumnTensors:
    """The columns of a table as tensors of one column each: numbers and words side by side."""

    def __init__(self, parts: Sequence[Tensor]):
        self.parts = list(parts)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.parts[0]), len(self.parts)

    def __getitem__(self, key: Any) -> Any:
        """Some of the columns, side by side where they are of one type."""
        chosen = [self.parts[place] for place in np.arange(len(self.parts))[key[1]]]
        kinds = {part.dtype.kind == "f" for part in chosen}
        return ColumnTensors(chosen) if len(kinds) > 1 else np.concatenate(chosen, axis=1)


@dataclass(frozen=True)
class ExportRows:
    """Rows for a model, and the same for its graph.

    Attributes
    ----------
    table : Any
        As the model takes them.
    arrays : dict
        As the graph does, by the names of its inputs.
    """

    table: Any
    arrays: dict[str, NDArray[Any]]

    def entries(self) -> tuple[Tensor, ...]:
        """The inputs of the graph, with the first rows."""
        return tuple(entry(name, array[:TRACED]) for name, array in self.arrays.items())

    @staticmethod
    def joined(entries: tuple[Tensor, ...]) -> Any:
        """What functions of families are given: one tensor, or columns."""
        return entries[0] if entries[0].node.attributes["name"] == "X" else ColumnTensors(entries)


def rows_for(model: Any, given: Any = None) -> ExportRows:
    """Rows as they are given, or made up from what the model knows of its columns."""
    load_family(type(model))
    return make_rows(model, given)


@singledispatch
def make_rows(model: Any, given: Any) -> ExportRows:
    """`rows_for` of a class; a family may have its own way."""
    if given is None:
        given = _made_up(model)
    if not nw.dependencies.is_into_dataframe(given):
        return _plain(np.asarray(given, dtype=np.float64), given)
    frame = nw.from_native(given, eager_only=True)
    if all(kind.is_numeric() for kind in frame.schema.values()):
        return _plain(np.asarray(frame.to_numpy(), dtype=np.float64), given)
    return ExportRows(given, {name: _column(frame[name]) for name in frame.columns})


def _plain(array: NDArray[np.float64], given: Any) -> ExportRows:
    if array.ndim < 2 or not len(array):
        raise EmpiriskError("rows to check an export on must be a table of one row or more.")
    return ExportRows(given, {"X": array.reshape(len(array), -1)})


def _column(series: Any) -> NDArray[Any]:
    """A column of a data frame: numbers with NaN, or text with "", where values are missing."""
    if series.dtype.is_numeric():
        return np.array([np.nan if value is None else value for value in series.to_list()], dtype=float)[:, None]
    words = ["" if value is None or value != value else str(value) for value in series.to_list()]
    return np.array(words, dtype=object)[:, None]


def _made_up(model: Any) -> Any:
    """Rows of numbers at random, near and far; categories as the model has met them."""
    random = np.random.default_rng(0)
    categories = _categories(model)
    width = getattr(model, "n_features_in_", None) or len(categories)
    if not width:
        raise EmpiriskError(f"{type(model).__name__} does not say how many columns it takes; give rows as X.")
    X = random.normal(size=(CHECKED, width)) * np.where(np.arange(CHECKED) % 4 == 3, 10.0, 1.0)[:, None]
    if not any(found is not None for found in categories):
        return X
    names = getattr(model, "feature_names_in_", [f"x{place}" for place in range(width)])
    columns: dict[str, Any] = {name: X[:, place] for place, name in enumerate(names)}
    for name, found in zip(names, categories, strict=True):
        if found is not None:
            columns[name] = [found[place] for place in random.integers(len(found), size=CHECKED)]
    return data_frame(columns)


def _categories(model: Any) -> tuple[Any, ...]:
    """The categories of each column of a table that trees or encoders have learned from, in a model or inside it."""
    if hasattr(model, "columns_"):
        return tuple(None if found is None else (*found, None) for found in model.columns_.categories)
    if hasattr(model, "steps"):
        return _categories(model.steps[0][1])
    if hasattr(model, "transformers_"):
        return _encoded(model)
    for name in ("estimator_", "best_estimator_", "estimators_", "calibrated_classifiers_", "estimator"):
        found = getattr(model, name, None)
        inner = next(iter(found), None) if isinstance(found, list) else found
        if inner is not None and not isinstance(inner, np.ndarray):
            return _categories(inner)
    return ()


def _encoded(model: Any) -> tuple[Any, ...]:
    """The categories of each column of a `ColumnTransformer`, of those that go to an encoder."""
    found: list[Any] = [None] * model.n_features_in_
    for name, step, _ in model.transformers_:
        known: Any = getattr(step[-1] if hasattr(step, "steps") else step, "categories_", ())
        for place, categories in zip(model._transformer_to_input_indices.get(name, ()), known, strict=False):
            found[place] = tuple(each for each in categories.tolist() if each is not None and each == each) or None
    return tuple(found)
