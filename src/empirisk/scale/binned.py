"""Rows in files for trees on bins: a byte for every number is kept, and the rows themselves stay in the files."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.elsewhere import RowsElsewhere
from empirisk.errors import Unsuitable
from empirisk.extras import data_frame
from empirisk.linalg.hashes import row_hashes
from empirisk.scale.boosting import fit_boosting
from empirisk.scale.disk import Disk, Folder
from empirisk.scale.table import BlockedTable
from empirisk.settings import require, settings
from empirisk.stop import check_stop
from empirisk.trees.binned.bins import BinnedRows, Binning, aligned, new_bytes

#: The share of the memory budget that rows may take to be kept as they are.
WHOLE_SHARE = 4


def rows_for_trees(machine: Any, there: RowsElsewhere, y: Any, sample_weight: Any) -> tuple[Any, Any, Any] | None:
    """The rows in memory where they fit, else to be binned; None where the machine has learned from them in blocks.

    Bins that do not fit are kept in a file. Where what is known of each row beside them does not fit either, and on a
    cluster, boosting learns in blocks.
    """
    table = there.table(y, sample_weight).counting()
    place, name = table.place, type(machine).__name__
    needed = place.count * machine.bytes_beside_bins(table.rows.shape[1])
    if not isinstance(place, Disk) or needed > settings().memory:
        if machine.learns_in_passes:
            fit_boosting(machine, table)
            return None
        if not isinstance(place, Disk):
            raise Unsuitable(f"{name} takes no collection of Dask; use boosting, or er.scan of files.")
        require(needed, f"{name} on {place.count} rows beside their bins", "use boosting, which learns in passes")
    weights, targets = place.gathered(table.weights), table.labelled(place.gathered(table.targets()))
    whole = 8 * place.count * table.rows.shape[1] <= settings().memory // WHOLE_SHARE
    if whole or not machine.learns_from_bins(*table.rows.shape):
        matrix = np.asarray(place.gathered(table.rows), dtype=np.float64)
        return _named(matrix, table), targets, weights
    mapped = place.count * machine.bytes_of_row(table.rows.shape[1]) > settings().memory
    return FileRows(table, place.folder if mapped else None), targets, weights


def _named(matrix: NDArray, table: BlockedTable) -> Any:
    if table.names is None:
        return matrix
    return data_frame(matrix, schema=table.names)


class FileRows:
    """Rows in files as trees see them: some of them for the edges of bins, and the bins of all.

    Parameters
    ----------
    table : BlockedTable
        The rows.
    folder : Folder, optional
        Where the bins are kept, if not in memory.
    """

    def __init__(self, table: BlockedTable, folder: Folder | None = None):
        self.table, self.shape, self.names, self._folder = table, table.rows.shape, table.names, folder
        self._some: dict[int, NDArray] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """All rows for ``[:]``; else the entries of some rows in one column."""
        if isinstance(key, slice) and key == slice(None):
            return self
        if not isinstance(key, tuple):
            raise Unsuitable("class_weight leaves out rows, which must be in memory; leave out the class in the files.")
        rows, column = key
        with self._lock:
            if id(rows) not in self._some:
                self._some = {id(rows): self._rows(rows)}
            return self._some[id(rows)][:, column]

    def _blocks(self) -> Iterator[tuple[int, NDArray]]:
        """The blocks, each with the number of its first row."""
        start = 0
        for block in self.table.blocks():
            check_stop()
            yield start, np.ascontiguousarray(block, dtype=np.float64)
            start += len(block)

    def _rows(self, chosen: NDArray[np.intp]) -> NDArray:
        """The chosen rows, which are in order."""
        found = []
        for start, block in self._blocks():
            first, last = np.searchsorted(chosen, [start, start + len(block)])
            found.append(block[chosen[first:last] - start])
        return np.concatenate(found)

    def row_hashes(self) -> NDArray[np.uint64]:
        """A hash of the content of each row, as of the rows in memory."""
        return np.concatenate([row_hashes(block) for _, block in self._blocks()])

    def binned(self, binning: Binning, by_row: bool) -> BinnedRows:
        """The bins of all rows, made block by block."""
        count, width = self.shape
        rows = aligned(count, width, self._room) if by_row else aligned(0, width)
        by_column = self._room(width * count).reshape(width, count)
        for start, block in self._blocks():
            part = binning.codes(block, by_row)
            by_column[:, start : start + len(block)] = part.by_column
            if by_row:
                rows[start : start + len(block), :width] = part.by_row[:, :width]
        return BinnedRows(rows, by_column)

    def _room(self, size: int) -> NDArray[np.uint8]:
        """Room for so many bins."""
        what = f"The bins of {self.shape[0]} rows"
        if self._folder is not None and size:
            return self._folder.mapped(size, what)
        require(size, what, "raise it, or use fewer rows or columns")
        return new_bytes(size)
