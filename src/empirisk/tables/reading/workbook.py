"""Workbooks, measured before they are read: the reader allots room for every cell between the first and the last."""

import io
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
SHEET = b"sheetData"  # the element that rows and cells are in
PREFIX = rb"<(?:[^\s<>/:=\"']+:)?"
ATTRIBUTES = rb"(?:\s+(?!(?:[^\s<>/:=\"']*:)?r[\s=])[^\s<>/=\"']+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*"
#: Where a row or a cell begins, however it goes on, or what a forgiving reader may take for one.
BEGIN = re.compile(rb"<(?!/)(?:(?:[^\s<>:]*:)?(?:c|row)(?=[\s/>])|[^\s<>!?]*[\"'])")
#: Rows and cells of a sheet, with their place, and whether they are empty: of proper XML, which all readers read alike.
TAG = re.compile(
    PREFIX + rb"(c|row)" + ATTRIBUTES
    + rb"(?:\s+r\s*=\s*(?P<quote>[\"'])([A-Za-z]{0,7})(\d{0,18})(?P=quote)" + ATTRIBUTES + rb")?\s*(/?)>"
)  # fmt: skip
#: How many texts a workbook says that it has: the reader believes it.
COUNT = re.compile(rb"[cC]ount\s*=\s*[\"']\s*\+?(\d+)")
#: A tag that may yet become one of a row or a cell.
OPEN = re.compile(PREFIX + rb"(?:c|row)\s|<[^\s<>/]{1000}")
OTHER_BOOKS = ("xl/workbook.bin", "content.xml")  # of formats that nothing here measures


def read_workbook(path: Path, archive: zipfile.ZipFile, header: bool) -> pl.DataFrame:
    """The first sheet of a workbook in the format .xlsx."""
    if BOOK not in archive.namelist() or any(name in archive.namelist() for name in OTHER_BOOKS):
        raise EmpiriskError(f"The workbook {str(path)!r} is not in the format .xlsx; save it as .xlsx or CSV.")
    with sound(str(path)):
        measured = _measured(archive, str(path))
    need("A workbook (or save it as CSV)", "excel", "fastexcel")
    return pl.read_excel(measured, has_header=header)


def _measured(archive: zipfile.ZipFile, name: str) -> io.BytesIO:
    """The workbook packed once more; `TooLarge` where it, or the cells between its corners, exceed the memory allowed.

    Two readers may find different files in one archive: by another directory in it, or beyond the sizes that it states.
    So what is read is what was measured.
    """
    size, copy = 0, io.BytesIO()
    with zipfile.ZipFile(copy, "w") as measured:
        for part in dict.fromkeys(archive.namelist()):
            with archive.open(part) as file, measured.open(part, "w", force_zip64=True) as to:
                extent = Extent()  # a sheet may have any name
                for piece in pieces(file, name, size):
                    size += len(piece)
                    extent.add(piece, name)
                    to.write(piece)
            rows, columns = extent.shape
            require(
                rows * columns * CELL_BYTES,
                f"The table {name!r} of {rows} rows and {columns} columns between its first and last cell",
                "clear cells that stand far away, or export it as CSV",
            )
    return copy


class Extent:
    """The rectangle of the cells that hold something, from the XML of a sheet, which comes in pieces."""

    def __init__(self):
        self._rest = b""
        self._begun = False  # whether the cells have
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
            if OPEN.match(self._rest) is not None:
                raise EmpiriskError(f"The table {name!r} has a tag without an end; save it again.")
            self._rest = b""  # a picture
        for count in COUNT.findall(whole) if b"ount" in whole else ():
            require(int(count) * CELL_BYTES, f"The table {name!r} with {int(count)} texts", "save it again")
        self._begun = self._begun or SHEET in whole  # what comes before may be a picture
        tags = TAG.findall(whole) if self._begun else ()
        if self._begun and len(tags) < len(BEGIN.findall(whole)):
            raise EmpiriskError(f"The table {name!r} has a tag that is not proper XML; save it again.")
        for tag, _, letters, digits, empty in tags:
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
