"""A plane through the data: two columns vary over a grid, the others keep one value each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from empirisk.errors import EmpiriskError
from empirisk.plots.style import padded

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plane:
    """Two columns of a table, and a grid over them.

    Attributes
    ----------
    names : tuple of two str
        The names of the columns.
    places : tuple of two int
        Their numbers.
    points : array, n x 2
        The data, seen on the plane.
    across, up : arrays
        The places of the grid.
    rows : table
        The grid as rows for a machine, of the same kind as the data; ``across`` varies fastest.
    held : bool
        Whether there are other columns, which keep one value.
    """

    names: tuple[str, str]
    places: tuple[int, int]
    points: Array
    across: Array
    up: Array
    rows: Any
    held: bool

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom, top."""
        return self.across[0], self.across[-1], self.up[0], self.up[-1]

    def shaped(self, values: NDArray) -> NDArray:
        """What was computed for ``rows``, as a picture."""
        return np.asarray(values).reshape(len(self.up), len(self.across))


def plane(X: Any, columns: Sequence[int | str], held: Mapping[Any, Any] | None, resolution: int) -> Plane:
    """The plane of two columns of X; the others are held at the given values, else at their median or commonest."""
    table = _Frame(X) if nw.dependencies.is_into_dataframe(X) else _Matrix(X)
    if isinstance(columns, (str, int)) or len(columns) != 2:
        raise EmpiriskError(f"columns={columns!r} must name exactly two columns; the others can be held at values.")
    if not 2 <= resolution <= 2000:
        raise EmpiriskError(f"resolution={resolution!r} must be a whole number from 2 to 2000.")
    first, second = (_place(column, table.names, "columns") for column in columns)
    if first == second:
        raise EmpiriskError(f"columns={columns!r} must name two different columns.")
    fixed = {_place(column, table.names, "held"): value for column, value in (held or {}).items()}
    points = np.column_stack([table.numbers(first), table.numbers(second)])
    seen = points[np.isfinite(points).all(axis=1)]
    if not len(seen):
        raise EmpiriskError(f"columns={columns!r} hold no row with both values; choose other columns.")
    across, up = (np.linspace(*padded(seen[:, k], 0.08), resolution) for k in (0, 1))
    varied = {first: np.tile(across, resolution), second: np.repeat(up, resolution)}
    rows = table.rows(varied, {k: fixed.get(k) for k in range(len(table.names)) if k not in varied})
    names = str(table.names[first]), str(table.names[second])
    return Plane(names, (first, second), points, across, up, rows, len(table.names) > 2)


def _place(column: Any, names: Sequence[str], argument: str) -> int:
    """The number of a column given by name or by number."""
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and -len(names) <= column < len(names):
        return int(column) % len(names)
    shown = ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")
    raise EmpiriskError(f"{argument} names the column {column!r}, which X has not; its {len(names)} are {shown}.")


class _Matrix:
    """An array, dense or sparse."""

    def __init__(self, X: Any):
        self._values = X.toarray() if issparse(X) else np.asarray(X)
        if self._values.ndim != 2 or not len(self._values):
            raise EmpiriskError(f"X of shape {self._values.shape} must be a table with at least one row.")
        self.names = [f"x{k}" for k in range(self._values.shape[1])]

    def numbers(self, column: int) -> Array:
        return _as_numbers(self._values[:, column], self.names[column])

    def rows(self, varied: dict[int, Array], held: dict[int, Any]) -> NDArray:
        dtype = self._values.dtype if self._values.dtype.kind in "fO" else np.float64
        rows = np.empty((len(next(iter(varied.values()))), len(self.names)), dtype=dtype)
        for column, values in varied.items():
            rows[:, column] = values
        for column, value in held.items():
            rows[:, column] = _median(self.numbers(column)) if value is None else value
        return rows


class _Frame:
    """A data frame of any library that narwhals knows."""

    def __init__(self, X: Any):
        self._frame = nw.from_native(X, eager_only=True)
        self.names = list(self._frame.columns)
        if not len(self._frame):
            raise EmpiriskError("X has no rows; give at least one.")

    def numbers(self, column: int) -> Array:
        series = self._frame[self.names[column]]
        return _as_numbers(series.to_numpy(), self.names[column])

    def rows(self, varied: dict[int, Array], held: dict[int, Any]) -> Any:
        count = len(next(iter(varied.values())))
        series = {column: self._series(self.names[column], values) for column, values in varied.items()}
        for column, value in held.items():
            series[column] = self._constant(self.names[column], value, count)
        frame = self._frame[[0] * count]  # the kind of frame, its index and the order of its columns
        return frame.with_columns(*(series[column] for column in sorted(series))).to_native()

    def _series(self, name: str, values: Array) -> Any:
        return nw.new_series(name, values, nw.Float64(), backend=self._frame.implementation)

    def _constant(self, name: str, value: Any, count: int) -> Any:
        series = self._frame[name]
        if series.dtype.is_numeric():
            number = _median(self.numbers(self.names.index(name))) if value is None else float(value)
            return self._series(name, np.full(count, number))
        # A row that has the value stands for it, so that the type of the column stays as it is.
        entries = series.to_list()
        if value is None:
            value = Counter(entries).most_common(1)[0][0]
        if value not in entries:
            raise EmpiriskError(f"held[{name!r}]={value!r} does not occur in the column; give one of its values.")
        return series[[entries.index(value)] * count]


def _as_numbers(values: NDArray, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise EmpiriskError(f"The column {name!r} is not numeric; choose another, or hold it at a value.") from None


def _median(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")
