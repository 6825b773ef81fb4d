"""Collections of Dask as tables: arrays and data frames whose partitions stay on the workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.inputs import LARGEST
from empirisk.errors import EmpiriskError, MissingValues
from empirisk.scale.blocks import Blocked, TableRows
from empirisk.scale.cluster import DaskCluster, forgive
from empirisk.scale.table import DOUBLE, BlockedTable, checked_weights, ones
from empirisk.stop import Stopped


class DaskTable:
    """A Dask array or data frame as X: its partitions are the blocks.

    Parameters
    ----------
    X : dask array of two dimensions, or dask data frame
        The rows.
    """

    def __init__(self, X: Any):
        self.X = X
        self.framed = hasattr(X, "columns")
        self.names = [str(name) for name in X.columns] if self.framed else None

    def table(self, y: Any = None, sample_weight: Any = None) -> BlockedTable:
        """The rows, targets and weights, where they lie, checked."""
        client = current_client()
        forgive(client)
        if not self.framed and np.ndim(self.X) != 2:
            raise EmpiriskError(f"X has {np.ndim(self.X)} dimensions; give a Dask array of two, or a data frame.")
        partitions = client.compute(partitions_of(self.X))
        blocks = client.map(
            _rows, partitions, range(len(partitions)), names=self.names, columns=self.X.shape[1], pure=False
        )
        first = DaskCluster(client, [1] * len(blocks))
        lengths = _lengths(first, blocks, "X")
        filled = [number for number, length in enumerate(lengths) if length]
        if not filled:
            raise EmpiriskError("X has no rows; give a collection that has some.")
        place = DaskCluster(client, [lengths[number] for number in filled])
        rows = TableRows(place, [blocks[number] for number in filled], (self.X.shape[1],))
        targets, labels, kind = (None, None, DOUBLE)
        if y is not None:
            targets, labels, kind = self._targets(place, lengths, filled, y)
        weights = ones(place)
        if sample_weight is not None:
            columns = self._column(place, lengths, filled, sample_weight, "sample_weight")
            weights = Blocked(place, client.map(_floats, columns, filled, name="sample_weight", pure=False))
        return BlockedTable(rows, targets, checked_weights(weights), labels, kind, self.names)

    def _column(self, place: DaskCluster, lengths: list[int], filled: list[int], values: Any, name: str) -> list:
        """The partitions of a column beside those of X."""
        if not hasattr(values, "dask"):
            raise EmpiriskError(f"{name} is no collection of Dask, and X is one; give both as collections.")
        if hasattr(values, "rechunk") and len(values.chunks[0]) == len(lengths) and np.isnan(values.chunks[0]).any():
            pass  # partitions of unknown lengths are compared below
        elif hasattr(values, "rechunk") and values.chunks[0] != tuple(lengths):
            values = values.rechunk((tuple(lengths),))
        parts: Any = place.client.compute(partitions_of(values))
        theirs = _lengths(place, parts, name)
        if theirs != lengths:
            raise EmpiriskError(
                f"{name} has partitions of {theirs[:8]} rows and X of {lengths[:8]}; give both the same partitions."
            )
        return [parts[number] for number in filled]

    def _targets(self, place: DaskCluster, lengths: list[int], filled: list[int], y: Any):
        columns = self._column(place, lengths, filled, y, "y")
        kind = np.dtype(y.dtype) if isinstance(y.dtype, np.dtype) else np.dtype(object)
        if kind.kind in "biuf":
            return Blocked(place, place.client.map(_floats, columns, filled, name="y", pure=False)), None, kind
        vector = Blocked(place, columns)
        names = np.unique(np.concatenate(place.run(_names, vector, combine=_listed)))
        codes = place.client.map(_codes, columns, names=names, pure=False)
        return Blocked(place, codes), names, DOUBLE

    def map_blocks(self, function: Callable[[Any], Any], named: bool = False) -> Any:
        """function(block) of every partition, as a collection of Dask."""
        apply = _Framed(function, self.names if named else None, self.framed)
        one = np.zeros((1, self.X.shape[1]))
        shape = np.asarray(apply.answer(one))
        if self.framed:
            import pandas as pd

            meta = pd.Series(dtype=shape.dtype) if shape.ndim == 1 else pd.DataFrame(shape[:0])
            return self.X.map_partitions(apply, meta=meta)
        import dask.array as da

        X = self.X.rechunk({1: -1})
        if shape.ndim == 1:
            return da.map_blocks(apply, X, dtype=shape.dtype, drop_axis=1)
        return da.map_blocks(apply, X, dtype=shape.dtype, chunks=(X.chunks[0], (shape.shape[1],)))


class _Framed:
    """Answers for a partition, in its kind."""

    def __init__(self, function: Callable[[Any], Any], names: list[str] | None, framed: bool):
        self.function, self.names, self.framed = function, names, framed

    def answer(self, block: NDArray) -> NDArray:
        """The answers for an array, which has names where the machine was fitted with them."""
        if self.names is None:
            return np.asarray(self.function(block))
        import pandas as pd

        return np.asarray(self.function(pd.DataFrame(block, columns=self.names)))

    def __call__(self, part: Any) -> Any:
        if not self.framed:
            return self.answer(np.asarray(part))
        import pandas as pd

        found = self.answer(np.asarray(part, dtype=np.float64))
        return pd.Series(found, index=part.index) if found.ndim == 1 else pd.DataFrame(found, index=part.index)


def _lengths(place: DaskCluster, parts: list, name: str) -> list[int]:
    """The rows of each partition; a sentence where the collection's own tasks cannot make it."""
    found = []
    for number, length in enumerate(place.client.map(len, parts, pure=False)):
        try:
            found.append(place.result(length))
        except (EmpiriskError, Stopped):
            raise
        except Exception as error:  # noqa: BLE001 - the tasks of others may raise anything
            raise EmpiriskError(
                f"Partition {number} of {name} cannot be computed ({error}); mend it or leave it out."
            ) from None
    return found


def current_client() -> Any:
    """The client of the cluster that is in use."""
    from distributed import default_client

    try:
        return default_client()
    except ValueError as error:
        raise EmpiriskError(
            "X is a collection of Dask, but no cluster is there to compute with it; begin with "
            "dask.distributed.Client(), or Client('tcp://...')."
        ) from error


def partitions_of(collection: Any) -> list:
    """The partitions of a collection, of an array those of its rows."""
    if hasattr(collection, "rechunk") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))


def _rows(part: Any, number: int, names: list[str] | None, columns: int) -> NDArray:
    """The numbers of a partition, checked."""
    if names is not None and [str(name) for name in part.columns] != names:
        raise EmpiriskError(f"Partition {number} of X has other columns than {names}; give all partitions the same.")
    try:
        dtype = np.float32 if getattr(part, "dtype", None) == np.float32 else np.float64
        block = np.ascontiguousarray(np.asarray(part), dtype=dtype)
    except (TypeError, ValueError) as error:
        raise EmpiriskError(f"Partition {number} of X holds what is no number ({error}); encode it first.") from error
    if block.ndim != 2 or block.shape[1] != columns:
        raise EmpiriskError(f"Partition {number} of X has the shape {block.shape}, and X has {columns} columns.")
    wrong = np.argwhere(~(np.abs(block) <= LARGEST))
    if len(wrong):
        row, column = wrong[0]
        name = int(column) if names is None else names[column]
        raise MissingValues(
            f"Partition {number} of X, row {row + 1}, holds {block[row, column]} in the column {name!r}; fill it in, "
            "or drop the row."
        )
    return block


def _floats(part: Any, number: int, name: str) -> NDArray:
    """The numbers of a partition of a column, checked."""
    values = np.asarray(part, dtype=np.float64)
    wrong = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if len(wrong):
        raise MissingValues(
            f"Partition {number} of {name}, row {wrong[0] + 1}, holds {values[wrong[0]]}; fill it in, or drop the row."
        )
    return values


def _names(part: Any) -> list[NDArray]:
    return [np.unique(np.asarray(part).astype(str))]


def _listed(left: list, right: list) -> list:
    return [np.unique(np.concatenate(left + right))]


def _codes(part: Any, names: NDArray) -> NDArray:
    return np.searchsorted(names, np.asarray(part).astype(str)).astype(np.float64)
