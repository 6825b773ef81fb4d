"""Tables in files that are larger than memory: read in blocks by Polars, checked, and kept as blocks of numbers."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.inputs import LARGEST
from empirisk.errors import EmpiriskError, MissingValues, did_you_mean, listed
from empirisk.extras import need
from empirisk.scale.answers import BlockedAnswers
from empirisk.scale.blocks import Blocked, TableRows
from empirisk.scale.disk import Disk, FileBlock, Folder, block_bytes
from empirisk.scale.table import BlockedTable, checked_weights, ones
from empirisk.stop import check_stop, flag_or_request, interruptible, stopping

if TYPE_CHECKING:
    import polars as pl

#: The endings of files, and which of Polars' readers takes them.
READERS = {
    ".parquet": "scan_parquet",
    ".pq": "scan_parquet",
    ".csv": "scan_csv",
    ".tsv": "scan_csv",
    ".txt": "scan_csv",
    ".arrow": "scan_ipc",
    ".feather": "scan_ipc",
    ".ipc": "scan_ipc",
}


def scan(
    paths: str | os.PathLike | Sequence[str | os.PathLike], *, target: str | None = None, weight: str | None = None
) -> Scan:
    """A table in files that may be larger than memory, to be given to machines as X.

    Machines read it in blocks within ``er.config(memory=...)``: first all files once, by Polars, into blocks of numbers
    in a temporary folder (that of the environment variable ``TMPDIR``), and these as often as they need. The answer is
    that of the same table in memory.

    Parameters
    ----------
    paths : path, or list of paths
        Parquet, CSV, TSV, Arrow or Feather files; a pattern such as ``"part-*.parquet"``, or a folder, stands for all
        files in it. All files have the same columns.
    target : str, optional
        The column of the targets, which `fit` then takes from here.
    weight : str, optional
        The column of the weights of the rows.

    Returns
    -------
    Scan
        With `columns`, the names of the other columns, and `files`.

    Examples
    --------
    >>> import polars as pl, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in range(3):
    ...     x = np.arange(10.0) + 10 * part
    ...     pl.DataFrame({"x": x, "y": 2 * x + 1}).write_parquet(folder / f"part-{part}.parquet")
    >>> table = er.scan(folder / "part-*.parquet", target="y")
    >>> machine = er.LeastSquares().fit(table)
    >>> machine.coef_.round(6), round(machine.intercept_, 6)
    (array([2.]), 1.0)
    >>> machine.predict(table).frame().shape
    (30, 1)
    """
    need("er.scan", "scale", "polars")
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [file for each in given for file in _files(os.fspath(each))]
    if not files:
        raise EmpiriskError(f"paths={paths!r} names no file; give files, a pattern or a folder that has some.")
    return Scan(files, target, weight)


def _files(path: str) -> list[Path]:
    """The files of a path, a folder or a pattern, in the order of their names."""
    if os.path.isdir(path):
        return sorted(file for file in Path(path).iterdir() if file.suffix.lower() in READERS)
    if os.path.exists(path):
        return [Path(path)]
    found = sorted(glob.glob(path))
    if not found:
        raise EmpiriskError(f"paths: there is no file {path!r}; give files, a pattern or a folder.")
    return [file for each in found for file in _files(each)]


class Encoder(Protocol):
    """What makes numbers of the rows of a frame."""

    @property
    def classes(self) -> NDArray[Any] | None:
        """What the numbers of the targets stand for; None for numbers."""
        ...

    def __call__(self, frame: pl.DataFrame) -> tuple[Any, NDArray[np.float64]]:
        """The numbers of the columns, and the targets."""
        ...


class Scan:
    """Files as one table; see `scan`.

    Attributes
    ----------
    files : list of pathlib.Path
        The files, in order.
    columns : list of str
        The columns but for target and weight.
    """

    def __init__(
        self,
        files: list[Path],
        target: str | None = None,
        weight: str | None = None,
        encode: Encoder | None = None,
    ):
        self.files, self.target, self.weight, self.encode = files, target, weight, encode
        self.schema = self._lazy(files[0]).collect_schema()
        for name, role in ((target, "target"), (weight, "weight")):
            if name is not None and name not in self.schema:
                hint = did_you_mean(name, self.schema, f"the columns are {listed(list(self.schema))}.")
                raise EmpiriskError(f"{role}={name!r} is no column of {files[0]}; {hint}")
        for file in files[1:]:
            self._require_same_columns(file)
        self.columns = [name for name in self.schema if name not in (target, weight)]
        self._stored: BlockedTable | None = None

    def __repr__(self) -> str:
        return f"<scan of {len(self.files)} file{'s' if len(self.files) > 1 else ''}, {len(self.columns)} columns>"

    def encoded(self, encode: Encoder) -> Scan:
        """The same files, of which encode(frame) makes the numbers of rows and targets, of as many rows as it likes."""
        return Scan(self.files, encode=encode)

    def _require_same_columns(self, file: Path) -> None:
        schema = self._lazy(file).collect_schema()
        lacking = [name for name in self.schema if name not in schema]
        more = [name for name in schema if name not in self.schema]
        if lacking or more:
            what = f"lacks {listed(lacking)}" if lacking else f"has {listed(more)} besides"
            raise EmpiriskError(f"{file} {what}, unlike {self.files[0]}; give files with the same columns.")
        for name in self.schema:
            if self.schema[name].is_numeric() != schema[name].is_numeric():
                raise EmpiriskError(
                    f"{file} holds {schema[name]} in the column {name!r}, and {self.files[0]} holds "
                    f"{self.schema[name]}; give the column one type."
                )

    def _lazy(self, file: Path) -> pl.LazyFrame:
        import polars as pl

        reader = READERS.get(file.suffix.lower())
        if reader is None:
            raise EmpiriskError(f"{file} ends in none of {listed(list(READERS))}; name its format by its ending.")
        options: dict[str, Any] = {"separator": "\t"} if file.suffix.lower() == ".tsv" else {}
        try:
            return getattr(pl, reader)(file, **options)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise EmpiriskError(f"{file} cannot be read ({error}); give another file.") from error

    # --- in blocks ----------------------------------------------------------------------------------------------------

    def pieces(self, rows: int) -> Iterator[Piece]:
        """The table in pieces of so many rows, which end with the file."""
        import polars as pl

        names = [*self.columns, *(name for name in (self.target, self.weight) if name is not None)]
        for file in self.files:
            start, kept = 0, None
            try:
                for batch in self._lazy(file).select(names).collect_batches(chunk_size=rows, maintain_order=True):
                    check_stop()
                    kept = batch if kept is None else pl.concat([kept, batch], how="vertical_relaxed")
                    while kept.height >= rows:
                        yield Piece(file, start, kept[:rows])
                        start, kept = start + rows, kept[rows:]
            except pl.exceptions.PolarsError as error:
                raise EmpiriskError(
                    f"{file} cannot be read after row {start} ({error}); mend it or leave it out."
                ) from error
            if kept is not None and kept.height:
                yield Piece(file, start, kept)

    def rows(self) -> int:
        """The number of rows, which text files tell only when they are read."""
        import polars as pl

        return sum(self._lazy(file).select(pl.len()).collect(engine="streaming").item() for file in self.files)

    def sample(self, most: int) -> pl.DataFrame:
        """About so many rows from all over the table, with all columns, as a frame."""
        import polars as pl

        kept: list[Any] = []
        every, count = 1, 0
        for piece in self.pieces(max(1, block_bytes() // (8 * len(self.schema)))):
            kept.append(piece.frame.gather_every(every))
            count += kept[-1].height
            if count > 2 * most:  # half of what there is, and from now on half of what comes
                kept, every = [frame.gather_every(2) for frame in kept], 2 * every
                count = sum(frame.height for frame in kept)
        return pl.concat(kept)

    def table(self, y: Any = None, sample_weight: Any = None) -> BlockedTable:
        """The rows, targets and weights, checked and kept in blocks of numbers."""
        if self._stored is None:
            with interruptible(), stopping(flag_or_request()):
                self._stored = Ingest(self).table()
        found = self._stored
        if y is not None:
            labels = np.asarray(y)
            if self.target is not None:
                raise EmpiriskError("y is given twice: as the target of er.scan and as an argument; leave one out.")
            found = _with_labels(found, labels)
        if sample_weight is not None:
            found = replace(found, weights=_scattered(found, "sample_weight", np.asarray(sample_weight, float)))
        return replace(found, weights=checked_weights(found.weights))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """The rows in memory, where they fit."""
        table = self.table()
        return table.place.gathered(table.rows).astype(dtype, copy=False)

    def map_blocks(self, function: Callable[[Any], Any], named: bool = False) -> BlockedAnswers:
        """function(block) of every block of rows: answers that are computed as they are read."""
        return BlockedAnswers(self.table(), function, named and self.encode is None)


def _scattered(table: BlockedTable, name: str, array: NDArray) -> Blocked:
    if array.shape[:1] != (table.place.count,):
        raise EmpiriskError(
            f"{name} has {array.shape[0]} entries, and X has {table.place.count} rows; give one for each."
        )
    return table.place.scattered(array)


def _with_labels(table: BlockedTable, labels: NDArray) -> BlockedTable:
    """The table with other targets, which are in memory."""
    if labels.dtype.kind in "biuf":
        return replace(table, y=_scattered(table, "y", labels.astype(float)), labels=None, kind=labels.dtype)
    names, codes = np.unique(labels, return_inverse=True)
    return replace(table, y=_scattered(table, "y", codes.astype(float)), labels=names)


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, which begin at a row of it."""

    file: Path
    start: int
    frame: Any

    def at(self, row: int) -> str:
        """Where a row of it stands, in words."""
        return f"{self.file}, row {self.start + row + 1}"


class Ingest:
    """One pass over the files: the numbers of all columns, checked, in blocks of a temporary folder."""

    def __init__(self, table: Scan):
        self.scan, self.folder = table, Folder()
        types = [table.schema[name] for name in table.columns]
        self.single = bool(types) and all(str(kind) == "Float32" for kind in types)
        self.labels: dict[Any, int] = {}
        target = None if table.target is None else table.schema[table.target]
        self.kind = _numpy_kind(target)
        self.worded = target is not None and self.kind is None

    def table(self) -> BlockedTable:
        """The table in blocks."""
        X, y, weights = (self.folder.new_file() for _ in range(3))
        handles: list[tuple[FileBlock, FileBlock | None, FileBlock | None]] = []
        width = None
        for piece in self.scan.pieces(max(1, block_bytes() // (8 * max(len(self.scan.columns), 1)))):
            matrix, targets, masses = self._read(piece)
            if width is None:
                width = matrix.shape[1]
                self.folder.require(self._rows() * width * matrix.itemsize, "The table in blocks of numbers")
            if not len(matrix):  # an encoder may leave out all rows of a piece
                continue
            handles.append(
                (
                    X.append(matrix),
                    None if targets is None else y.append(targets),
                    None if masses is None else weights.append(masses),
                )
            )
        if width is None or not handles:
            raise EmpiriskError(f"{self.scan.files[0]} holds no rows; give files that do.")
        place = Disk([handle[0].shape[0] for handle in handles], self.folder)
        columns = list(zip(*handles, strict=True))
        names = np.array(list(self.labels), dtype=object) if self.worded else None
        if self.scan.encode is not None:
            names = self.scan.encode.classes
        return BlockedTable(
            TableRows(place, list(columns[0]), (width,)),
            None if columns[1][0] is None else Blocked(place, list(columns[1])),
            ones(place) if self.scan.weight is None else Blocked(place, list(columns[2])),
            None if names is None else names.astype(str) if all(isinstance(name, str) for name in names) else names,
            np.dtype(np.float64) if self.kind is None else self.kind,
            self.scan.columns if self.scan.encode is None else None,
        )

    def _rows(self) -> int:
        """The rows of files that tell how many they have."""
        import polars as pl

        counted = [file for file in self.scan.files if READERS[file.suffix.lower()] != "scan_csv"]
        return sum(self.scan._lazy(file).select(pl.len()).collect().item() for file in counted)

    def _read(self, piece: Piece) -> tuple[NDArray, NDArray | None, NDArray | None]:
        """The numbers, targets and weights of a piece."""
        if self.scan.encode is not None:
            matrix, targets = self.scan.encode(piece.frame)
            dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
            return np.ascontiguousarray(dense, dtype=np.float64), targets, None
        targets = None if self.scan.target is None else self.targets(piece)
        return self.numbers(piece), targets, None if self.scan.weight is None else self.weights(piece)

    def numbers(self, piece: Piece) -> NDArray:
        """The numbers of the columns of a piece."""
        import polars as pl

        frame = piece.frame.select(self.scan.columns)
        worded = [
            name for name in frame.columns if not (frame[name].dtype.is_numeric() or frame[name].dtype == pl.Boolean)
        ]
        if worded:
            raise EmpiriskError(
                f"The column {worded[0]!r} of {piece.file} holds {frame[worded[0]].dtype}, no numbers; leave it out, "
                "encode it as numbers, or use empirisk learn, which encodes tables."
            )
        matrix = frame.cast(pl.Float32 if self.single else pl.Float64).to_numpy(order="c")
        self._check(piece, matrix)
        return matrix

    def _check(self, piece: Piece, matrix: NDArray) -> None:
        """Raise where a number is missing or too large, with its place in the files."""
        with np.errstate(over="ignore", invalid="ignore"):
            if float(np.vdot(matrix, matrix)) <= LARGEST**2:
                return
        wrong = np.argwhere(~(np.abs(matrix) <= LARGEST))
        if len(wrong):
            row, column = wrong[0]
            name, value = self.scan.columns[column], matrix[row, column]
            what = "no value" if np.isnan(value) else f"{value:.1e}, which is too large,"
            raise MissingValues(
                f"{piece.at(int(row))} holds {what} in the column {name!r}; fill it in, or drop the row."
            )

    def targets(self, piece: Piece) -> NDArray:
        """The targets of a piece as numbers; of words, the places at which they first came."""
        column = piece.frame[self.scan.target]
        if self.worded:
            self._require(piece, column.is_null().to_numpy(), "target")
            found = column.unique(maintain_order=True).to_list()
            for label in found:
                self.labels.setdefault(label, len(self.labels))
            return column.replace_strict(found, [float(self.labels[label]) for label in found]).to_numpy()
        values = column.cast(float).to_numpy()
        self._require(piece, ~(np.abs(values) <= LARGEST), "target")
        return np.asarray(values, dtype=np.float64)

    def weights(self, piece: Piece) -> NDArray:
        """The weights of a piece."""
        values = np.asarray(piece.frame[self.scan.weight].cast(float).to_numpy(), dtype=np.float64)
        self._require(piece, ~(values >= 0) | ~(values <= LARGEST), "weight")
        return values

    def _require(self, piece: Piece, wrong: NDArray, role: str) -> None:
        if wrong.any():
            raise EmpiriskError(
                f"{piece.at(int(np.argmax(wrong)))} has no usable {role} in the column {getattr(self.scan, role)!r}; "
                "fill it in, or drop the row."
            )


def _numpy_kind(kind: Any) -> np.dtype | None:
    """The type in NumPy of a column of numbers; None for words and for no column."""
    if kind is None:
        return None
    if kind.is_numeric():
        return np.dtype(np.int64) if kind.is_integer() else np.dtype(np.float64)
    return np.dtype(bool) if str(kind) == "Boolean" else None
