"""Columns of tables: arrays, sparse matrices and data frames, by position or by name."""

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.errors import EmpiriskError


def is_frame(X: Any) -> bool:
    """Whether X is a data frame with named columns."""
    return not isinstance(X, np.ndarray) and hasattr(X, "columns") and not sparse.issparse(X)


def is_table(X: Any) -> bool:
    """Whether X is an array, a sparse matrix or a data frame."""
    return isinstance(X, np.ndarray) or sparse.issparse(X) or is_frame(X)


def _array(X: Any) -> Any:
    table = X if is_table(X) else np.asarray(X)
    if len(table.shape) != 2:
        raise EmpiriskError(f"X has {len(table.shape)} dimension(s); columns are chosen from a table with two.")
    return table


def width_of(X: Any) -> int:
    """The number of columns."""
    return _array(X).shape[1]


def position(X: Any, columns: Any) -> NDArray[np.intp]:
    """The positions of columns that are given by name, position, slice or mask."""
    table = _array(X)
    count = table.shape[1]
    if isinstance(columns, slice):
        if any(isinstance(end, str) for end in (columns.start, columns.stop)):
            raise EmpiriskError(f"columns={columns!r} is a slice of names; list the names, or slice by position.")
        return np.arange(count)[columns]
    single = isinstance(columns, str) or np.ndim(columns) == 0
    wanted = np.asarray([columns] if single else columns)
    if wanted.dtype.kind in "US" or wanted.dtype == object:
        return _by_name(table, wanted.tolist())
    if wanted.dtype == bool and len(wanted) != count:
        raise EmpiriskError(f"columns is a mask of length {len(wanted)}, but X has {count} columns.")
    if wanted.dtype.kind not in "bui" or wanted.size == 0:
        raise EmpiriskError(f"columns={columns!r} must hold positions or names of columns, at least one.")
    if wanted.dtype != bool and (wanted.max() >= count or wanted.min() < -count):
        raise EmpiriskError(f"columns={columns!r} names a position that X, with {count} columns, does not have.")
    return np.arange(count)[wanted]


def _by_name(table: Any, names: list) -> NDArray[np.intp]:
    if not is_frame(table):
        raise EmpiriskError(f"columns={names!r} are names, but X is no data frame; give a data frame or positions.")
    known = list(table.columns)
    missing = [name for name in names if name not in known]
    if missing:
        raise EmpiriskError(f"columns {missing!r} are not in X; it has {known!r}.")
    return np.array([known.index(name) for name in names], dtype=np.intp)


def select(X: Any, columns: Any, as_objects: bool = False) -> Any:
    """The chosen columns as a table, or the values of the one chosen column as a list."""
    table, chosen = _array(X), position(X, columns)
    if as_objects and len(chosen) != 1:
        raise EmpiriskError(f"columns={columns!r} must be a single column for a kernel on objects.")
    if is_frame(table):
        frame = nw.from_native(table, eager_only=True)
        names = [frame.columns[i] for i in chosen]
        return frame.get_column(names[0]).to_list() if as_objects else frame.select(names).to_numpy()
    if as_objects and sparse.issparse(table):
        raise EmpiriskError("X is sparse, and a kernel on objects needs a list, an array or a data frame.")
    if as_objects:
        return table[:, chosen[0]].tolist()
    # Neighbouring columns of an array are a view, not a copy.
    if isinstance(table, np.ndarray) and np.array_equal(chosen, np.arange(chosen[0], chosen[0] + len(chosen))):
        return table[:, chosen[0] : chosen[0] + len(chosen)]
    if sparse.issparse(table):
        table = sparse.csr_matrix(table)
    return table[:, chosen]
