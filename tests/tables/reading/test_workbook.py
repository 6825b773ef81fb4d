"""How large a sheet is: cells that stand far away are found however they are written, or refused in a sentence."""

import struct
import zipfile
import zlib

import pytest

from empirisk.errors import EmpiriskError, TooLarge
from empirisk.tables import read
from empirisk.tables.reading.workbook import Extent
from tests.tables.reading.hostile import COUNTS, HIDDEN, hidden, zipped
from tests.tables.reading.test_sources import FRAME, WORKBOOK

SHEET = "xl/worksheets/sheet1.xml"


def extent(sheet: str, size: int = 1 << 20) -> Extent:
    """The rectangle of the cells of a sheet that comes in pieces."""
    found, text = Extent(), sheet.encode()
    for start in range(0, len(text), size):
        found.add(text[start : start + size], "t.xlsx")
    return found


def measured(sheet: str) -> tuple[int, int] | str:
    """Rows and columns, where the sheet is not refused."""
    try:
        return extent(sheet).shape
    except EmpiriskError:
        return "refused"


@pytest.mark.parametrize("tag", HIDDEN.values(), ids=HIDDEN.keys())
def test_no_cell_far_away_is_missed(tag):
    assert measured(hidden(tag)) in ((1048576, 16384), "refused")


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_pieces_of_any_size_make_one_sheet(size):
    rows = """<x:row spans="1" r="2" x:y='"'><x:c s="1" r = 'B2' t="n"><x:v>1</x:v></x:c><c r="D2" s="1"/></x:row>"""
    assert extent(f"<sheetData>{rows}<row><c><v>1</v></c></row></sheetData>", size).shape == (2, 2)


def test_pictures_and_texts_are_no_cells():
    assert extent("<c <row r=<c/ \"' > <c x=").shape == (0, 0)
    text = """<row spans=">" r="1"><c r="A1"><is><t>a:c "r" > 'row' </t></is></c></row>"""
    assert extent(f"<sheetData>{text}</sheetData>").shape == (1, 1)


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS.keys())
def test_every_number_of_texts_is_measured(count):
    with pytest.raises(TooLarge, match="texts"):
        extent(f"<sst {count}></sst>")


class Archive:
    """A zip of stored files in its parts: the files, the directory of them, and how many there are."""

    def __init__(self, files: dict[str, str]):
        data = zipped({name: text.encode() for name, text in files.items()}, zipfile.ZIP_STORED)
        end = data.rindex(b"PK\5\6")
        self.count, size, self.start = struct.unpack("<HLL", data[end + 10 : end + 20])
        self.files, self.directory = data[: self.start], data[self.start : self.start + size]

    def moved(self, by: int) -> bytes:
        """The directory for files that stand so many bytes later."""
        found, place = bytearray(self.directory), 0
        while place < len(found):
            lengths = struct.unpack_from("<3H", found, place + 28)
            struct.pack_into("<L", found, place + 42, struct.unpack_from("<L", found, place + 42)[0] + by)
            place += 46 + sum(lengths)
        return bytes(found)

    def end(self, start: int, comment: bytes = b"", length: int | None = None) -> bytes:
        """The end of an archive whose directory begins there."""
        sizes = 0, 0, self.count, self.count, len(self.directory), start, len(comment) if length is None else length
        return b"PK\5\6" + struct.pack("<4H2LH", *sizes) + comment


def by_offset(good: Archive, other: Archive) -> bytes:
    """Where the directory ends tells of one, where it says to begin of the other."""
    before = other.files + other.directory
    shift = len(before) + len(good.files) - other.start
    return before + good.files + good.moved(len(before) - shift) + good.end(other.start)


def by_comment(good: Archive, other: Archive) -> bytes:
    """The last end has a comment that is cut; all of the archive that it is of is the comment of the end before."""
    first = len(other.files + other.directory) + 22
    inner = good.files + good.moved(first) + good.end(first + len(good.files), b"cut", 9)
    return other.files + other.directory + other.end(other.start, inner)


def by_size(good: Archive, other: Archive) -> bytes:
    """The end for large archives tells of one, the usual one of the other."""
    body = other.files + other.directory + good.files
    directory = good.moved(len(other.files + other.directory))
    sizes = 44, 45, 45, 0, 0, good.count, good.count, len(directory), len(body)
    large = b"PK\6\6" + struct.pack("<Q2H2L4Q", *sizes)
    place = b"PK\6\7" + struct.pack("<LQL", 0, len(body + directory), 1)
    return body + directory + large + place + other.end(other.start)


@pytest.mark.parametrize("joined", [by_offset, by_comment, by_size])
def test_of_two_workbooks_in_one_file_the_measured_one_is_read(joined, tmp_path):
    longer = WORKBOOK[SHEET].replace("<sheetData>", f"<!--{'x' * 5000}--><sheetData>").replace("<v>1<", "<v>9<")
    data = joined(Archive(WORKBOOK), Archive(WORKBOOK | {SHEET: longer}))
    (tmp_path / "t.xlsx").write_bytes(data)
    assert read(tmp_path / "t.xlsx").equals(FRAME)


def test_what_lies_beyond_the_size_of_a_part_is_not_read(tmp_path):
    """A packed sheet of which the directory states a part, with the check sum of this part."""
    data = bytearray(zipped({name: text.encode() for name, text in WORKBOOK.items()}))
    sheet = WORKBOOK[SHEET].encode()
    place, part = data.rindex(SHEET.encode()) - 46, sheet[: sheet.index(b'<row r="3"')]
    struct.pack_into("<L", data, place + 16, zlib.crc32(part))
    struct.pack_into("<L", data, place + 24, len(part))
    (tmp_path / "t.xlsx").write_bytes(data)
    with pytest.raises(EmpiriskError, match="cannot be read"):
        read(tmp_path / "t.xlsx")
