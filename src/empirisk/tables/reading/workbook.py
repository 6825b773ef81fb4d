"""Workbooks, measured before they are read: the reader allots room for every cell between the first and the last."""

import re
import zipfile
from pathlib import Path

import polars as pl

from empirisk.errors import EmpiriskError
from empirisk.extras import need
from empirisk.settings import require
from empirisk.tables.reading.unpack import pieces, sound

CONTENTS, BOOK = "[Content_Types].xml", "xl/workbook.xml"
CELL_BYTES = 64  # of a cell in the reader, and of its entry in the frame
LONGEST_TAG = 1 << 16  # bytes
#: Rows and cells of a sheet, with their place, and whether they are empty; "<" stands in no text.
TAG = re.compile(rb"<(?:\w+:)?(c|row)(?=[\s/>])[^<>]*?(?:\sr\s*=\s*[\"']([A-Za-z]{0,7})(\d{0,18})[\"'][^<>]*?)?(/?)>")
#: How many texts a workbook says that it has: the reader believes it.
COUNT = re.compile(rb"<[^<>]*?[cC]ount\s*=\s*[\"'](\d{1,18})[\"']")
OPEN = re.compile(rb"<(?:\w+:)?(?:c|row)\s")
OTHER_BOOKS = ("xl/workbook.bin", "content.xml")  # of formats that nothing here measures


def read_workbook(path: Path, archive: zipfile.ZipFile, header: bool) -> pl.DataFrame:
    """The first sheet of a workbook in the format .xlsx."""
    if BOOK not in archive.namelist() or any(name in archive.namelist() for name in OTHER_BOOKS):
        raise EmpiriskError(f"The workbook {str(path)!r} is not in the format .xlsx; save it as .xlsx or CSV.")
    with sound(str(path)):
        _measure(archive, str(path))
    need("A workbook (or save it as CSV)", "excel", "fastexcel")
    return pl.read_excel(path, has_header=header)


def _measure(archive: zipfile.ZipFile, name: str) -> None:
    """Raise `TooLarge` where the parts of a workbook, or the cells between its corners, exceed the memory allowed.

    All parts are unpacked, and not kept: the sizes that an archive states may be wrong, which this finds out too.
    """
    size = 0
    for info in archive.infolist():
        with archive.open(info) as file:
            extent = Extent()  # a sheet may have any name
            for piece in pieces(file, name, size):
                size += len(piece)
                extent.add(piece, name)
        rows, columns = extent.shape
        require(
            rows * columns * CELL_BYTES,
            f"The table {name!r} of {rows} rows and {columns} columns between its first and last cell",
            "clear cells that stand far away, or export it as CSV",
        )


class Extent:
    """The rectangle of the cells that hold something, from the XML of a sheet, which comes in pieces."""

    def __init__(self):
        self._rest = b""
        self._row = self._column = 0  # of the last cell, counted from 1
        self._rows: tuple[int, int] = (0, -1)
        self._columns: tuple[int, int] = (0, -1)
        self._known: dict[bytes, int] = {}  # columns by their letters

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are from the first to the last."""
        return self._rows[1] - self._rows[0] + 1, self._columns[1] - self._columns[0] + 1

    def add(self, piece: bytes, name: str) -> None:
        """Look at the next piece; a tag that is cut waits for the next one."""
        text = self._rest + piece
        cut = text.rfind(b"<")
        whole, self._rest = (text, b"") if cut < 0 or b">" in text[cut:] else (text[:cut], text[cut:])
        if len(self._rest) > LONGEST_TAG:
            if OPEN.match(self._rest) is None:
                self._rest = b""  # a picture
                return
            raise EmpiriskError(f"The table {name!r} has a tag without an end; save it again.")
        for count in COUNT.findall(whole) if b"ount" in whole else ():
            require(int(count) * CELL_BYTES, f"The table {name!r} with {int(count)} texts", "save it again")
        for tag, letters, digits, empty in TAG.findall(whole):
            if tag == b"row":
                self._row, self._column = int(digits) if digits else self._row + 1, 0
                continue
            # A cell without a place follows the one before.
            self._row = int(digits) if digits else self._row
            self._column = self._number(letters) if letters else self._column + 1
            if not empty:
                self._rows = _stretched(self._rows, self._row)
                self._columns = _stretched(self._columns, self._column)

    def _number(self, letters: bytes) -> int:
        if letters not in self._known:
            number = 0
            for letter in letters.upper():
                number = 26 * number + letter - ord("A") + 1
            self._known[letters] = number
        return self._known[letters]


def _stretched(span: tuple[int, int], place: int) -> tuple[int, int]:
    low, high = span
    return (place, place) if high < low else span if low <= place <= high else (min(low, place), max(high, place))
