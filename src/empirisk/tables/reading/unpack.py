"""Packed tables: unpacked piece by piece, and measured against ``er.config(memory=...)`` before each piece is kept."""

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from empirisk.errors import LETTERS, EmpiriskError
from empirisk.settings import require

PIECE = 1 << 20  # bytes unpacked at once
#: What damaged archives raise, in Python's own readers.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    OSError,
    EOFError,
    RuntimeError,  # a password, or a way of packing that is not known
    ValueError,
    struct.error,
    IndexError,
)


def _zstd(file: BinaryIO) -> Any:
    try:
        from compression.zstd import ZstdFile  # since Python 3.14 # pyright: ignore[reportMissingImports]
    except ImportError:
        raise EmpiriskError("A table packed by zstd needs Python 3.14; unpack it: zstd -d.") from None
    return ZstdFile(file)


#: How packed files begin, what their names end with, and how they are opened.
PACKED: dict[bytes, tuple[str, Callable[[BinaryIO], Any]]] = {
    b"\x1f\x8b": (".gz", lambda file: gzip.GzipFile(fileobj=file)),
    b"BZh": (".bz2", bz2.BZ2File),
    b"\xfd7zXZ\x00": (".xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": (".zst", _zstd),
}
DEEPEST = 3  # packings of packed files: some files unpack to themselves


@contextmanager
def sound(name: str) -> Iterator[None]:
    """Turn what a damaged archive raises into a sentence."""
    try:
        yield
    except EmpiriskError:
        raise
    except BROKEN as error:
        reason = " ".join(str(error).split())[:LETTERS] or "it ends too early"
        raise EmpiriskError(f"The table {name!r} is not properly packed ({reason}); pack it again.") from error


def pieces(file: Any, name: str, before: int = 0) -> Iterator[bytes]:
    """The contents of an opened file; beyond the memory allowed they are `TooLarge`.

    ``before`` bytes have been unpacked of the same table.
    """
    size = before
    while piece := file.read(PIECE):
        size += len(piece)
        require(size, f"The table {name!r}", "give a part of it, or raise the limit")
        yield piece


def whole(file: Any, name: str) -> bytes:
    """The contents of an opened file, in one piece."""
    kept = io.BytesIO()
    for piece in pieces(file, name):
        kept.write(piece)
    return kept.getvalue()


def unpacked(data: bytes, name: str) -> tuple[bytes, str]:
    """Bytes and their name, unpacked where they are packed.

    >>> unpacked(gzip.compress(b"a,b"), "t.csv.gz")
    (b'a,b', 't.csv')
    """
    for _ in range(DEEPEST):
        kind = next((kind for mark, kind in PACKED.items() if data.startswith(mark)), None)
        if kind is None:
            return data, name
        ending, opened = kind
        with sound(name), opened(io.BytesIO(data)) as file:
            data, name = whole(file, name), name.removesuffix(ending)
    raise EmpiriskError(f"The table {name!r} is packed in packed files; unpack it.")
