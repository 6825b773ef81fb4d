"""Tables of other libraries as Polars frames."""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from scipy import sparse

from empirisk.errors import LETTERS, EmpiriskError


def as_frame(table: Any) -> pl.DataFrame:
    """A table as a Polars frame: Polars, pandas or Arrow, a dict of columns, a list of rows as dicts, or a matrix.

    The columns of a matrix are called x0, x1, ...

    >>> as_frame([{"a": 1}, {"a": 2, "b": "x"}]).columns
    ['a', 'b']
    """
    if isinstance(table, pl.LazyFrame):
        table = table.collect()
    try:
        return flat(table if isinstance(table, pl.DataFrame) else pl.DataFrame(_columns(table), strict=False))
    except EmpiriskError:
        raise
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [""])[0][:LETTERS]
        raise EmpiriskError(f"The table cannot be read ({reason}); give plain columns of equal length.") from error


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a column for each place of lists of numbers that have one length, such as readings of a sensor.

    >>> flat(pl.DataFrame({"wave": [[1.0, 2.0], [3.0, 4.0]], "tags": [["a"], ["a", "b"]]})).columns
    ['wave 1', 'wave 2', 'tags']
    """
    for column in [column for column in frame if column.dtype in (pl.List, pl.Array)]:
        lists = column.cast(pl.List(column.dtype.inner))  # type: ignore[attr-defined]
        lengths = lists.list.len().drop_nulls().unique().to_list()
        names = [f"{column.name} {k + 1}" for k in range(lengths[0] if len(lengths) == 1 else 0)]
        if names and column.dtype.inner.is_numeric() and not set(names) & set(frame.columns):  # type: ignore[attr-defined]
            place, columns = frame.columns.index(column.name), frame.get_columns()
            parts = [lists.list.get(k).alias(name) for k, name in enumerate(names)]
            frame = pl.DataFrame([*columns[:place], *parts, *columns[place + 1 :]])
    return frame


def _columns(table: Any) -> Any:
    """The columns of a table by their names, or a Polars frame of them."""
    if sparse.issparse(table):
        table = table.toarray()
    if isinstance(table, list) and table and all(isinstance(row, (list, tuple)) for row in table):
        if len(set(map(len, table))) > 1:
            raise EmpiriskError("The table is a list of rows of several lengths; give rows of one length.")
        table = np.array(table)
    if isinstance(table, np.ndarray) and table.ndim != 2:
        raise EmpiriskError(
            f"The table has the shape {table.shape}; give rows and columns, as X.reshape(-1, 1) for one."
        )
    if isinstance(table, np.ndarray):
        return {f"x{place}": _plain(column) for place, column in enumerate(table.T)}
    if isinstance(table, Mapping):
        return {str(name): _plain(column) for name, column in table.items()}
    if isinstance(table, list) and table and all(isinstance(row, Mapping) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        return {str(name): _plain([row.get(name) for row in table]) for name in names}
    try:
        frame = nw.from_native(table, eager_only=True, pass_through=True)
        names = [str(name) for name in frame.columns] if isinstance(frame, nw.DataFrame) else []
        if len(set(names)) < len(names):
            raise nw.exceptions.DuplicateError
    except nw.exceptions.DuplicateError as error:
        raise EmpiriskError("The table has two columns of one name; rename one of them.") from error
    if not isinstance(frame, nw.DataFrame):
        raise EmpiriskError(
            f"The table is a {type(table).__name__}; give a Polars or pandas frame, a dict of columns, or a file name."
        )
    # Column by column: Polars itself would need a third library to read pandas.
    pandas = frame.implementation.is_pandas()
    return {str(name): _from_pandas(frame.get_column(name)) for name in frame.columns} if pandas else frame.to_polars()


def _from_pandas(column: nw.Series) -> Any:
    """The values of a pandas column: whole numbers stay whole, and gaps of every kind become null."""
    if column.dtype.is_numeric():
        return pl.Series(
            (column if not column.is_null().any() else column.cast(nw.Float64)).to_numpy(), nan_to_null=True
        )
    if column.dtype in (nw.Datetime, nw.Date):
        plain = column.dt.replace_time_zone(None) if getattr(column.dtype, "time_zone", None) else column
        return pl.Series(plain.to_numpy().astype("datetime64[us]"))
    gaps = column.is_null().to_list()
    return _plain([None if gap else value for value, gap in zip(column.to_list(), gaps, strict=True)])


def _plain(column: Any) -> Any:
    """A column of mixed values as text, where Polars would refuse or guess."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "O":
        column = column.tolist()
    if not isinstance(column, list):
        return column
    kinds = {type(value) for value in column if value is not None}
    if str in kinds and len(kinds) > 1 and kinds <= {str, int, float, bool}:
        return [None if value is None else str(value) for value in column]
    return column
