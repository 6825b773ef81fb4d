"""Items of kernels: columns of tables, and prepared items, which have a length and can be indexed by rows."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.errors import EmpiriskError, MissingValues
from empirisk.linalg.accelerator import lie_on_device
from empirisk.settings import holding
from empirisk.validation import in_memory_of_numpy, readable


def is_frame(X: Any) -> bool:
    """Whether X is a data frame with named columns."""
    return not isinstance(X, np.ndarray) and hasattr(X, "columns") and not sparse.issparse(X)


def is_table(X: Any) -> bool:
    """Whether X is an array, in memory or on a device, a sparse matrix or a data frame."""
    return isinstance(X, np.ndarray) or sparse.issparse(X) or is_frame(X) or lie_on_device(X)


def table_of(X: Any) -> Any:
    """X, or the array of a list of rows."""
    table = X if is_table(X) else np.asarray(X)
    if len(table.shape) != 2:
        raise EmpiriskError(f"X has {len(table.shape)} dimension(s); columns are chosen from a table with two.")
    return table


def position(X: Any, columns: Any) -> NDArray[np.intp]:
    """The positions of columns that are given by name, position, slice or mask."""
    table = table_of(X)
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
    table, chosen = table_of(X), position(X, columns)
    if as_objects and len(chosen) != 1:
        raise EmpiriskError(f"columns={columns!r} must be a single column for a kernel on objects.")
    if is_frame(table):
        frame = nw.from_native(table, eager_only=True)  # by position: names may be numbers
        return frame[:, int(chosen[0])].to_list() if as_objects else frame[:, chosen.tolist()].to_numpy()
    if as_objects and sparse.issparse(table):
        raise EmpiriskError("X is sparse, and a kernel on objects needs a list, an array or a data frame.")
    if as_objects:
        return table[:, chosen[0]].tolist()
    # Neighbouring columns of an array are a view, not a copy.
    in_a_row = len(chosen) and np.array_equal(chosen, np.arange(chosen[0], chosen[0] + len(chosen)))
    if isinstance(table, np.ndarray) and in_a_row:
        return table[:, chosen[0] : chosen[0] + len(chosen)]
    if sparse.issparse(table):
        table = sparse.csr_matrix(table)
    return table[:, chosen]


def size(items: Any) -> int:
    """The number of prepared items."""
    return items.shape[0] if sparse.issparse(items) else len(items)


class Parts:
    """One group of prepared items for every part of a composed kernel."""

    def __init__(self, *groups: Any):
        self.groups = groups

    def __len__(self) -> int:
        return size(self.groups[0])

    def __getitem__(self, chosen) -> "Parts":
        # Parts of a sum often look at the same array; its rows are then copied once.
        taken = {id(group): group[chosen] for group in self.groups}
        return Parts(*(taken[id(group)] for group in self.groups))

    def __iter__(self):
        return iter(self.groups)

    @property
    def accelerator(self) -> Any:
        """The device on which a group lies; None where all are in memory."""
        return next((group.accelerator for group in self.groups if lie_on_device(group)), None)


def in_memory(items: Any) -> Any:
    """Prepared items, copied to memory where they are rows on a device."""
    return Parts(*map(in_memory, items)) if isinstance(items, Parts) else in_memory_of_numpy(items)


class Chosen:
    """Some of the prepared items, copied only as far as they are asked for."""

    def __init__(self, items: Any, rows: NDArray[np.intp]):
        self.items, self.rows = items, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen) -> Any:
        return self.items[self.rows[chosen]]


class Objects:
    """A list of prepared objects."""

    def __init__(self, values: Sequence):
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, chosen) -> "Objects":
        return Objects([self.values[i] for i in np.arange(len(self.values))[chosen]])

    def __iter__(self):
        return iter(self.values)


class Ragged:
    """Several prepared values of every item, one after the other."""

    def __init__(self, values: Any, counts: Sequence[int] | NDArray):
        self.values, self.counts = values, np.array(counts)
        self.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, chosen) -> "Ragged":
        items = np.arange(len(self))[chosen]
        spans = [np.arange(*self.starts[i : i + 2].tolist()) for i in items]
        return Ragged(self.values[np.concatenate([*spans, np.empty(0, np.intp)])], self.counts[items])

    def part(self, start: int, stop: int) -> Any:
        """The values of a range of items."""
        return self.values[int(self.starts[start]) : int(self.starts[stop])]

    def ranges(self, most: float, first: int = 0) -> list[tuple[int, int]]:
        """Ranges of items, from the first on, that have about so many values each."""
        before = self.starts[first:] - self.starts[first]
        total = int(before[-1])
        cuts = first + np.searchsorted(before, np.arange(most, total, most)) if total > most else []
        return list(pairwise(np.unique([first, *cuts, len(self)]).tolist()))


#: Whether the rows at hand have been validated, so that tables need not be searched for NaN again.
_validated: ContextVar[bool] = ContextVar("validated", default=False)


def validated() -> AbstractContextManager[Any]:
    """Inside this context rows are known to be finite: the caller has checked them."""
    return holding(_validated, True)


def as_matrix(X: Any, allow_sparse: bool = True, name: str = "X") -> Any:
    """X as a finite 2-d array or CSR matrix: float32 is kept, all else becomes float64; no needless copy.

    Rows on a device, which are checked there, stay as they are.
    """
    if lie_on_device(X):
        return X
    if sparse.issparse(X):
        if not allow_sparse:
            raise EmpiriskError(f"{name} is sparse, and this kernel needs a dense array; give {name}.toarray().")
        matrix = X.tocsr()
        matrix = matrix if matrix.dtype == np.float32 else matrix.astype(np.float64, copy=False)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
    else:
        matrix = values = as_floats(X, name)
        if values.ndim != 2:
            raise EmpiriskError(
                f"{name} has {values.ndim} dimension(s), but it must be a table with one row per item; "
                f"reshape it, for instance with {name}.reshape(-1, 1)."
            )
    if 0 in matrix.shape:
        raise EmpiriskError(f"{name} has shape {matrix.shape}; give at least one row and one column.")
    if not _validated.get():
        require_finite(values, name)
    return matrix


def as_floats(values: Any, name: str) -> NDArray:
    """The values as an array: float32 is kept, all else becomes float64."""
    array = np.asarray(readable(values, name))
    if array.dtype in (np.float32, np.float64):
        return array
    if np.iscomplexobj(array):
        raise EmpiriskError(f"{name} holds complex numbers; give real ones.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as problem:
        raise EmpiriskError(f"{name} holds values that are not numbers ({problem}); encode them first.") from problem


def as_finite(values: Any, name: str) -> NDArray:
    """The values as an array of finite floats."""
    array = as_floats(values, name)
    require_finite(array, name)
    return array


def require_finite(values: NDArray, name: str) -> None:
    """Raise if a value is NaN or infinite."""
    # The sum is finite for most data and costs one pass without a temporary.
    with np.errstate(over="ignore", invalid="ignore"):
        quick = np.isfinite(values.sum(dtype=np.float64))
    if not quick and not np.isfinite(values).all():
        raise MissingValues(f"{name} contains NaN or infinity; replace those entries or drop the rows.")


def as_objects(X: Any, what: str, good: Callable[[Any], bool], name: str = "X") -> list:
    """X as a list of objects, each of the right kind."""
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise EmpiriskError(f"{name} must be a list of {what}, not a single {type(X).__name__}; wrap it in a list.")
    # Pipelines hand a list of objects on as a table with one column.
    if is_table(X) and len(X.shape) == 2 and X.shape[1] == 1:
        X = select(X, 0, as_objects=True)
    values = X.tolist() if hasattr(X, "tolist") else list(X)
    if not values:
        raise EmpiriskError(f"{name} is empty; give at least one of {what}.")
    for i, value in enumerate(values):
        if not good(value):
            raise EmpiriskError(f"{name} must be a list of {what}, but entry {i} is of type {type(value).__name__}.")
    return values
