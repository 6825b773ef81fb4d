"""Answers for rows that are not in memory: computed block by block, as they are read, written or collected."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.extras import data_frame
from empirisk.scale.table import BlockedTable
from empirisk.settings import require

if TYPE_CHECKING:
    import polars as pl


class BlockedAnswers:
    """What a machine says of the rows of a scan: an array for each block, in the order of the files.

    Iterate over it for the arrays; `write` puts all answers into a file, `frame` gives them as a Polars frame and
    `numpy.asarray` as an array, where they fit into memory.
    """

    def __init__(self, table: BlockedTable, function: Callable[[Any], Any], named: bool = False):
        self._table, self._function, self._named = table, function, named

    def __len__(self) -> int:
        return self._table.place.count

    def __repr__(self) -> str:
        return f"<answers for {len(self)} rows>"

    def __iter__(self) -> Iterator[NDArray]:
        for block in self._table.blocks():
            yield np.asarray(self._function(self._with_names(block) if self._named else block))

    def _with_names(self, block: NDArray) -> pl.DataFrame:
        return data_frame(block, schema=self._table.names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        first = next(iter(self))
        require(
            first.nbytes // len(first) * len(self), f"The answers for {len(self)} rows", "iterate over their blocks"
        )
        return np.concatenate(list(self)).astype(dtype or first.dtype, copy=False)

    def frame(self) -> pl.DataFrame:
        """All answers as a frame: a column ``prediction``, or one for each output."""
        import polars as pl

        return pl.concat([_frame(block) for block in self])

    def write(self, path: str | os.PathLike) -> Path:
        """Write all answers, block by block, to a file of CSV or Parquet; until the end an existing file stays."""
        from polars.io.plugins import register_io_source

        path = Path(path)
        if path.suffix.lower() not in (".csv", ".parquet"):
            raise EmpiriskError(f"{path} must end in .csv or .parquet, the formats in which answers are written.")
        schema = _frame(next(iter(self))).schema
        frames = register_io_source(lambda *_: map(_frame, self), schema=schema)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        try:
            frames.sink_csv(temporary) if path.suffix.lower() == ".csv" else frames.sink_parquet(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        return path


def _frame(block: NDArray) -> pl.DataFrame:
    if block.ndim == 1:
        return data_frame({"prediction": block})
    return data_frame({f"prediction_{number}": column for number, column in enumerate(block.T)})
