"""The table taken apart: what is learned from, what is predicted, and which rows only judge."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from empirisk import tables
from empirisk.errors import EmpiriskError
from empirisk.selection.splits import make_splits
from empirisk.tables import datasets
from empirisk.tables.schema import find_column

#: Rows a class must have: two to learn from in folds, one to be tested on.
LEAST_OF_CLASS = 3
LEAST_ROWS = 10
RARE, RELATIVELY_RARE = 0.05, 0.3
FEW_TESTS = 50


@dataclass(frozen=True, eq=False)
class Plan:
    """What `learn` works on.

    Attributes
    ----------
    name : str
        Of the table.
    frame : DataFrame
        The columns to learn from, of all rows with a target.
    schema, target
        What the columns hold, and what is predicted.
    y : array
        The target of every row.
    train, test : arrays
        Row numbers.
    folds : list of (train, validation)
        Numbers among the training rows.
    warnings : list of str
        What deserves a second look.
    """

    name: str
    frame: pl.DataFrame
    schema: Any
    target: Any
    y: NDArray
    train: NDArray
    test: NDArray
    folds: list[tuple[NDArray, NDArray]]
    warnings: list[str]

    @property
    def classes(self) -> NDArray | None:
        """The classes in order, or None for numbers."""
        return np.array(self.target.classes) if self.target.classes else None

    @property
    def encoder(self) -> tables.TableEncoder:
        """What makes numbers of the columns, not fitted yet."""
        return tables.TableEncoder(self.schema)

    def pipeline(self, machine: Any) -> Pipeline:
        """The encoder and a copy of the machine, to be fitted together."""
        return Pipeline([("table", self.encoder), ("machine", clone(machine))])


@dataclass(frozen=True)
class Wishes:
    """How the user wants the rows to be used."""

    target: str | None = None
    test: float = 0.2
    folds: int = 5
    groups: str | None = None
    time_order: str | None = None
    drop: tuple[str, ...] = ()
    seed: int = 0


def plan(data: Any, wishes: Wishes) -> Plan:
    """Read the table, find out what it holds, and hold out the test part before anything is learned."""
    table = tables.read(data)
    name = str(data) if isinstance(data, str) else getattr(data, "name", "table")
    target = tables.Target.of(table, _target_name(data, wishes.target, table))
    warnings: list[str] = []
    known = target.known(table)
    if not known.all():
        warnings.append(f"{(~known).sum():,} rows without a value of {target.name!r} were left out.")
        table = table.filter(pl.Series(known))
    table, target = _without_rare_classes(table, target, warnings)
    if table.height < LEAST_ROWS:
        raise EmpiriskError(f"The table has {table.height} rows with a target; at least {LEAST_ROWS} are needed.")
    groups, moments = _column(table, wishes.groups, "groups"), _column(table, wishes.time_order, "time_order")
    special = [column.name for column in (groups, moments) if column is not None]
    dropped = [find_column(column, table.columns, "drop") for column in wishes.drop]
    schema = tables.understand(table, without=list(dict.fromkeys([target.name, *special, *dropped])))
    y = target.values(table)
    train, test = _held_out(y, target, groups, moments, wishes)
    folds = _folds(y[train], target, groups, moments, train, wishes, warnings)
    found = Plan(name, schema.features(table), schema, target, y, train, test, folds, warnings)
    _look_twice(found)
    return found


def _target_name(data: Any, target: str | None, table: pl.DataFrame) -> str:
    if target is not None:
        return target
    if isinstance(data, str) and data in datasets.NAMES:
        return datasets.about(data).target
    raise EmpiriskError(f"target is missing; name the column to predict, one of {', '.join(table.columns[:12])}.")


def _column(table: pl.DataFrame, name: str | None, argument: str) -> pl.Series | None:
    return None if name is None else table[find_column(name, table.columns, argument)]


def _without_rare_classes(table: pl.DataFrame, target: Any, warnings: list[str]) -> tuple[pl.DataFrame, Any]:
    """Rows of classes that are too small to be both learned and tested are left out."""
    if not target.classes:
        return table, target
    labels, codes, counts = np.unique(target.values(table), return_inverse=True, return_counts=True)
    rare = labels[counts < LEAST_OF_CLASS]
    if len(rare) == 0:
        return table, target
    shown = ", ".join(map(str, rare[:5])) + (", ..." if len(rare) > 5 else "")
    warnings.append(
        f"Classes of {target.name!r} with fewer than {LEAST_OF_CLASS} rows were left out: {shown} ({len(rare)} in all)."
    )
    table = table.filter(pl.Series(counts[codes] >= LEAST_OF_CLASS))
    if table.height == 0:
        raise EmpiriskError(f"target={target.name!r} has no class with {LEAST_OF_CLASS} rows; choose another column.")
    return table, tables.Target.of(table, target.name, target.task)


def _held_out(y: NDArray, target: Any, groups: Any, moments: Any, wishes: Wishes) -> tuple[NDArray, NDArray]:
    if not 0 < wishes.test < 1:
        raise EmpiriskError(f"test={wishes.test!r} must be a share between 0 and 1.")
    [(train, test)] = make_splits(
        "holdout",
        y,
        classes=bool(target.classes),
        groups=None if groups is None else _codes(groups),
        test_size=max(wishes.test, len(target.classes) / len(y) if moments is None and groups is None else 0.0),
        time=False if moments is None else _codes(moments),
        random_state=wishes.seed,
    )
    if target.classes and len(np.unique(y[train])) < 2:
        raise EmpiriskError("The training part holds one class only; give another time_order or groups column.")
    return np.sort(train), np.sort(test)


def _folds(y, target, groups, moments, train, wishes: Wishes, warnings: list[str]) -> list[tuple[NDArray, NDArray]]:
    """Folds of the training rows: as many as asked for, but no more than the smallest class has rows."""
    count = wishes.folds
    if target.classes and groups is None and moments is None:
        smallest = int(np.unique(y, return_counts=True)[1].min())
        if smallest < count:
            count = max(2, smallest)
            warnings.append(f"The smallest class has {smallest} training rows: {count} folds were used.")
    return make_splits(
        count,
        y,
        classes=bool(target.classes) and moments is None,
        groups=None if groups is None else _codes(groups)[train],
        time=False if moments is None else _codes(moments)[train],
        random_state=wishes.seed,
    )


def _codes(column: pl.Series) -> NDArray:
    """The rank of every value; missing ones come first."""
    return column.rank("dense").fill_null(0).to_numpy()


def _look_twice(found: Plan) -> None:
    """Warn of leaks, imbalance, rows on both sides of the split, and a test that says little."""
    training = found.frame[found.train].with_columns(pl.Series(found.target.name, found.y[found.train]))
    for name, reason in tables.look_for_leaks(training, found.schema, found.target).items():
        found.warnings.append(f"Column {name!r} may give the target away: {reason}; leave it out with --drop if so.")
    unused = [column for column in found.schema.columns if not column.used]
    if unused:
        shown = ", ".join(str(column) for column in unused[:5]) + (", ..." if len(unused) > 5 else "")
        found.warnings.append(f"{len(unused)} columns are not learned from ({shown}).")
    if found.target.classes:
        labels, counts = np.unique(found.y[found.train], return_counts=True)
        if counts.min() < min(RARE, RELATIVELY_RARE / len(labels)) * len(found.train):
            rare, share = labels[counts.argmin()], counts.min() / len(found.train)
            found.warnings.append(
                f"Class {str(rare)!r} has {share:.1%} of the rows: accuracy hides it; look at balanced accuracy, or "
                "use --balance."
            )
    rows = found.frame.hash_rows(seed=1).to_numpy()
    twins = int(np.isin(rows[found.test], rows[found.train]).sum())
    if twins:
        found.warnings.append(f"{twins:,} test rows equal a training row in every column: the test may flatter.")
    if len(found.test) < FEW_TESTS:
        found.warnings.append(f"The test part has {len(found.test)} rows only: its scores are uncertain.")
