"""What `learn` is asked to do: its options, checked in one place, for the call, the shell and whoever runs jobs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from empirisk.contract.arguments import check_count, check_number
from empirisk.errors import EmpiriskError, listed
from empirisk.formats import seconds_of
from empirisk.parts import is_number
from empirisk.tables.reading.frames import as_frame

#: Options that decide what is fitted on which rows: those of an earlier run with the same may be taken up again.
DECIDING = ("target", "test", "folds", "groups", "time_order", "drop", "seed", "types", "missing", "balance")
#: What the one chosen may be: the simplest that is as good as the best but for chance, or the best.
PREFERENCES = ("simple", "best")
#: Options that may be files, and tables in memory too.
TABLES = ("data", "test_file")


@dataclass(frozen=True, eq=False)
class Request:
    """The options of `learn`, which says what each of them means.

    Its JSON form holds everything but the listener, so that a request can be kept and run again.

    >>> request = Request("iris", machines=["tree"], time=60.0)
    >>> request.to_dict()
    {'data': 'iris', 'machines': ['tree'], 'time': 60.0}
    >>> Request.from_dict(request.to_dict()).machines
    ['tree']
    """

    data: Any
    target: Any = None
    _: KW_ONLY
    metric: str | None = None
    test: float = 0.2
    folds: int | None = None
    groups: str | None = None
    time_order: str | None = None
    machines: Sequence[str] | None = None
    time: float | str | None = None
    balance: bool = False
    drop: Sequence[str] = ()
    types: Mapping[str, str] | None = None
    missing: Sequence[str] = ()
    jobs: int | None = None
    seed: int = 0
    out: str | Path | None = None
    test_file: Any = None
    prefer: str = "simple"
    refit: bool = False
    force: bool = False
    header: bool = True
    listener: Callable[[Any], None] | None = None

    def __post_init__(self):
        if isinstance(self.time, str):
            object.__setattr__(self, "time", seconds_of(self.time))
        if self.target is not None and not isinstance(self.target, str):
            table, name = with_target(self.data, self.target)
            object.__setattr__(self, "data", table)
            object.__setattr__(self, "target", name)
        check_count("folds", self.folds, 2, optional=True)
        check_count("seed", self.seed, 0)
        if self.time is not None:
            check_number("time", self.time, 0, above=True)
        if self.prefer not in PREFERENCES:
            raise EmpiriskError(f"prefer={self.prefer!r} is not known; use 'simple' or 'best'.")
        if not is_number(self.test) or not 0 < self.test < 1:
            raise EmpiriskError(f"test={self.test!r} must be a share between 0 and 1.")
        if self.test_file is not None and (self.groups is not None or self.time_order is not None):
            raise EmpiriskError("test_file decides which rows are tested: groups and time_order cannot do so too.")
        if self.groups is not None and self.time_order is not None:
            raise EmpiriskError("groups and time_order are two ways to divide the rows; give one of them.")
        for name in ("machines", "drop", "missing"):  # one name may stand for a list of one
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, [getattr(self, name)])
            if not isinstance(getattr(self, name), Iterable | None):
                raise EmpiriskError(f"{name}={getattr(self, name)!r} must be a name, or a list of names.")
        if self.types is not None and not isinstance(self.types, Mapping):
            raise EmpiriskError(f"types={self.types!r} must map columns to their kinds, like {{'zip': 'category'}}.")
        object.__setattr__(self, "missing", [str(value) for value in self.missing])

    @property
    def seconds(self) -> float:
        """Seconds that all of it may take; infinite without a limit."""
        return np.inf if self.time is None else float(self.time)

    @property
    def deciding(self) -> list[Any]:
        """The options that decide what is fitted on which rows."""
        return [dict(self.types or {}) if name == "types" else _plain(getattr(self, name)) for name in DECIDING]

    def given(self) -> dict[str, Any]:
        """The options that are not as they are by default, as plain values; tables and the listener as they are."""
        found = {option.name: (_plain(getattr(self, option.name)), _plain(option.default)) for option in fields(self)}
        tables = {"data": self.data} | ({} if self.test_file is None else {"test_file": self.test_file})
        options = {name: value for name, (value, usual) in found.items() if name not in TABLES and value != usual}
        return {name: _plain(table) for name, table in tables.items()} | options

    def to_dict(self) -> dict[str, Any]:
        """The options that are not as they are by default, as JSON has them."""
        found = self.given()
        for name in TABLES:
            if not isinstance(found.get(name, ""), str):
                raise EmpiriskError(f"{name} is no file, which JSON could name; write the table to one first.")
        return {name: value for name, value in found.items() if name != "listener"}

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "Request":
        """The request of such a form; one with an option that is not known is an error."""
        known = [option.name for option in fields(cls)]
        unknown = [name for name in options if name not in known]
        if unknown:
            raise EmpiriskError(
                f"{unknown[0]}={options[unknown[0]]!r} is no option of learn; choose from {listed(known)}."
            )
        return cls(**options)


def with_target(X: Any, y: Any) -> tuple[pl.DataFrame, str]:
    """Rows and what is to be predicted of them as one table, and the name of that column: its own, or "y".

    >>> with_target([[0.5, 1.0], [2.0, 3.0]], [0, 1])
    (shape: (2, 3)
    ┌─────┬─────┬─────┐
    │ x0  ┆ x1  ┆ y   │
    │ --- ┆ --- ┆ --- │
    │ f64 ┆ f64 ┆ i64 │
    ╞═════╪═════╪═════╡
    │ 0.5 ┆ 1.0 ┆ 0   │
    │ 2.0 ┆ 3.0 ┆ 1   │
    └─────┴─────┴─────┘, 'y')
    """
    frame = as_frame(X)
    several = hasattr(y, "columns") or getattr(y, "ndim", 1) > 1
    columns = as_frame(y if several else {getattr(y, "name", None) or "y": y}).get_columns()
    if len(columns) != 1:
        raise EmpiriskError(f"target has {len(columns)} columns; a model predicts one: learn each on its own.")
    [column] = columns
    if len(column) != frame.height:
        raise EmpiriskError(f"target has {len(column)} values for {frame.height} rows; give one for each row.")
    name = column.name
    while name in frame.columns:
        name += "_"
    return frame.with_columns(column.alias(name)), name


def _plain(value: Any) -> Any:
    """Paths as text, sequences as lists, mappings as dicts; anything else as it is."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple)):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
