"""Blocks of rows in files of a temporary folder: read, computed with and written on all threads, in a fixed order."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import TooLarge
from empirisk.linalg.threads import ordered_map
from empirisk.scale.blocks import BlockCall, Blocked, Place
from empirisk.settings import settings
from empirisk.stop import check_stop

#: The share of the memory budget that one row vector may take before it is written to a file: fits have about ten.
VECTOR_SHARE = 32
#: The share of the budget that a block may take: every thread has some, with copies of them.
BLOCK_SHARE = 64
#: Bytes of a block at least and at most: calls cost nothing beside the work on it, and it is read at one go.
LEAST_BLOCK, LARGEST_BLOCK = 1 << 20, 1 << 25


def block_bytes() -> int:
    """Bytes of a block within the memory budget."""
    return min(max(settings().memory // BLOCK_SHARE, LEAST_BLOCK), LARGEST_BLOCK)


class Folder:
    """A temporary folder, removed when nothing in it is used any more."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="empirisk-"))
        self._close = finalize(self, shutil.rmtree, self.path, True)
        self._lock, self._number = Lock(), 0

    def new_file(self) -> BlockFile:
        """An empty file in it."""
        with self._lock:
            self._number += 1
            return BlockFile(self, self.path / str(self._number))

    def mapped(self, size: int, what: str) -> NDArray[np.uint8]:
        """Bytes in a file, as an array of which the system keeps in memory what there is room for."""
        self.require(size, what)
        file = self.new_file()
        room = np.memmap(file.path, np.uint8, "w+", shape=(size,))
        finalize(room._mmap, lambda _: None, file)  # type: ignore[attr-defined]  # which is deleted after it
        return np.asarray(room)

    def require(self, size: int, what: str) -> None:
        """Raise where so many bytes would not fit on the disk."""
        free = shutil.disk_usage(self.path).free
        if size > free:
            raise TooLarge(
                f"{what} needs {size / 1e9:.1f} GB of disk in {self.path.parent}, which has {free / 1e9:.1f} GB free; "
                "set the environment variable TMPDIR to a folder with more."
            )


class BlockFile:
    """A file to which blocks are appended by any thread; it is deleted with the last block that refers to it."""

    def __init__(self, folder: Folder, path: Path):
        self.folder, self.path = folder, path
        self._end, self._lock = 0, Lock()
        path.touch()
        finalize(self, path.unlink, True)

    def append(self, block: NDArray) -> FileBlock:
        """Write a block, and say where it is."""
        block = np.ascontiguousarray(block)
        with self._lock:
            start, self._end = self._end, self._end + block.nbytes
        with self.path.open("r+b", buffering=0) as file:  # each thread has its own place in the file
            file.seek(start)
            data, done = _bytes(block), 0
            while done < block.nbytes:
                done += file.write(data[done:])
        return FileBlock(self, start, block.shape, block.dtype)

    def load(self, start: int, out: NDArray) -> None:
        """Fill an array with what was written there."""
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            data, done = _bytes(out), 0
            while done < out.nbytes:
                done += file.readinto(data[done:])


def _bytes(array: Any) -> memoryview:
    return memoryview(array).cast("B") if array.size else memoryview(b"")


@dataclass(frozen=True)
class FileBlock:
    """An array in a file."""

    file: BlockFile
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype

    def load(self) -> NDArray:
        """The array."""
        out = np.empty(self.shape, self.dtype)
        self.file.load(self.start, out)
        return out


class Disk(Place):
    """Blocks of rows in files; vectors that are small beside the memory budget stay in memory.

    >>> from operator import add
    >>> place = Disk([2, 1])
    >>> vector = place.scattered(np.array([1.0, 2.0, 4.0]))
    >>> place.run(lambda part: part.sum(), vector * 2.0, combine=add)
    np.float64(14.0)
    """

    def __init__(self, lengths: Sequence[int], folder: Folder | None = None):
        super().__init__(lengths)
        self.folder = Folder() if folder is None else folder

    def like(self, lengths):
        return Disk(lengths, self.folder)

    def _run(self, call: BlockCall, handles: list[tuple], combine: Callable[[Any, Any], Any] | None):
        files: list[BlockFile | None] = [self._storage() for _ in range(call.outputs)]

        def run(number: int) -> tuple[list[Any], Any]:
            check_stop()
            parts = [each.load() if isinstance(each, FileBlock) else each for each in handles[number]]
            found = call(self.lengths[number], *parts)
            pairs = zip(files, found[: call.outputs], strict=True)
            kept = [(each if file is None else file.append(each), each.shape[1:]) for file, each in pairs]
            return kept, found[-1] if call.combined else None

        kept, combined = [], None
        for number, (outputs, value) in enumerate(ordered_map(run, range(len(self.lengths)))):
            kept.append(outputs)
            if combine is not None:
                combined = combine(combined, value) if number else value
        return [([handle for handle, _ in column], column[0][1]) for column in zip(*kept, strict=True)], combined

    def _storage(self) -> BlockFile | None:
        """A file for a vector of all rows; None where it stays in memory."""
        return self.folder.new_file() if 8 * self.count > settings().memory // VECTOR_SHARE else None

    def scattered(self, array):
        ends = np.cumsum((0, *self.lengths))
        parts = [array[start:stop] for start, stop in pairwise(ends)]
        return Blocked(self, parts, array.shape[1:])
