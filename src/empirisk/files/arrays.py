"""Plain arrays as ``.npy`` members: the types allowed, the header, and reading of files that may be hostile.

The header is a fixed function of type, shape and order. Reading compares it byte by byte with the one that the tree
announces, so nothing in it is ever evaluated.
"""

import math
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError
from empirisk.files.account import Damaged
from empirisk.files.archive import TREE, Chunks, Reader

#: Little-endian numbers, as every processor we run on stores them.
TYPES = frozenset(
    ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16", "<M8[us]"]
)
ALIGNMENT = 64  # bytes, as in NumPy's own files: data can be mapped into memory
LONGEST_SHAPE = 32  # dimensions
TOO_LARGE = 2**47  # entries: no process can address so many


def header(kind: str, shape: Sequence[int], fortran: bool) -> bytes:
    r"""The bytes before the numbers in a ``.npy`` file of version 1.0.

    >>> header("<f8", (3,), False)[:8]
    b'\x93NUMPY\x01\x00'
    """
    text = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    prefix = 10
    padding = -(prefix + len(text) + 1) % ALIGNMENT
    line = (text + " " * padding + "\n").encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line


def describe(array: NDArray[Any], where: str = "This") -> tuple[str, list[int], bool]:
    """Type, shape and order of an array as a file states them; ``where`` is the path to it, for the error."""
    kind = array.dtype.newbyteorder("<").str
    if kind not in TYPES:
        raise EmpiriskError(f"{where} is an array of type {array.dtype}, which a model file cannot hold.")
    fortran = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    return kind, list(array.shape), fortran


def chunks(array: NDArray[Any]) -> Chunks:
    """The header of an array, and its numbers in the order that the header states."""
    kind, shape, fortran = describe(array)
    flat = np.ascontiguousarray(array.T if fortran else array, dtype=kind)
    return header(kind, shape, fortran), flat.reshape(-1).view(np.uint8).data


def check_description(kind: Any, shape: Any, fortran: Any) -> int:
    """The bytes that an array of this type and shape takes, or an error if it is not one that files hold."""
    if not isinstance(kind, str) or kind not in TYPES or not isinstance(fortran, bool):
        raise Damaged("an array in it has a type that model files do not hold")
    return entries(shape) * np.dtype(kind).itemsize


def entries(shape: Any) -> int:
    """How many entries an array of a shape has, or an error if it is none."""
    proper = isinstance(shape, list) and len(shape) <= LONGEST_SHAPE
    if not proper or not all(type(size) is int and 0 <= size < TOO_LARGE for size in shape):
        raise Damaged("an array in it has no proper shape")
    return math.prod(shape)


def read(file: BinaryIO, size: int, kind: str, shape: list[int], fortran: bool) -> NDArray[Any]:
    """The array in a member of ``size`` bytes, once its header and size are those announced."""
    needed = check_description(kind, shape, fortran)
    start = header(kind, shape, fortran)
    if size != len(start) + needed or file.read(len(start)) != start:
        raise Damaged("an array in it is not of the size or type that it announces")
    flat = np.empty(needed // np.dtype(kind).itemsize, dtype=kind)
    room = flat.view(np.uint8).data
    filled = 0
    while filled < needed:
        # A megabyte at a time: a size that the file only claims is never asked of memory at once.
        block = file.read(min(needed - filled, 1 << 20))
        if not block:
            raise Damaged("an array in it ends too early")
        room[filled : filled + len(block)] = block
        filled += len(block)
    if kind == "|b1" and flat.view(np.uint8).max(initial=0) > 1:
        raise Damaged("an array of true and false in it holds something else")
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


class Stored:
    """The arrays in the members of an opened file; those that were read are kept, so that unused ones can be told."""

    def __init__(self, reader: Reader):
        self._reader = reader
        self._found: dict[int, NDArray[Any]] = {}

    def get(self, number: int, kind: str, shape: list[int], fortran: bool) -> NDArray[Any]:
        if number not in self._found:
            with self._reader.member(f"arrays/{number}.npy") as (file, size):
                self._found[number] = frozen(read(file, size, kind, shape, fortran))
        return self._found[number]

    def unused(self) -> str | None:
        others = set(self._reader.listed) - {TREE, *(f"arrays/{number}.npy" for number in self._found)}
        return min(others, default=None)


class ArraysToSave:
    """The arrays of a model that is about to be saved, as `Stored` would give them."""

    def __init__(self, arrays: list[NDArray[Any]]):
        self._arrays = arrays

    def get(self, number: int, kind: str, shape: list[int], fortran: bool) -> NDArray[Any]:
        return frozen(self._arrays[number].astype(kind, copy=False).view())  # a view: the owner may go on to write

    def unused(self) -> None:
        return None


#: Where the arrays of a tree come from.
Source = Stored | ArraysToSave


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only array: what was checked cannot be changed afterwards."""
    array.flags.writeable = False
    return array
