"""About a hundred small tables that are damaged, or mean far more than they hold, by name and with an ending.

Run as a process, with a folder and a limit of memory, it writes them there, reads each and prints what became of it.
"""

import bz2
import gzip
import io
import json
import lzma
import resource
import signal
import struct
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from tests.tables.reading.test_sources import SHEETS, TEXT, WORKBOOK, cell

SECONDS = 10  # of the processor for one table
MEMORY = 3 * 10**8  # bytes that tables may have, as `er.config` is told
SLACK = 4 * MEMORY  # bytes that the process may take while it reads one: texts, frames and copies of them
ZEROS = b"a,b\n" + b"0,0\n" * 100_000


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def zipped(files: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    def write(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w", kind) as archive:
            for name, data in files.items():
                archive.writestr(name, data)

    return written(write)


def book(sheet: str, **changes: str) -> bytes:
    """A workbook with this XML between the tags of its sheet."""
    parts = WORKBOOK | {"xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}">{sheet}</worksheet>'} | changes
    return zipped({name: text.encode() for name, text in parts.items()})


def row(number: int, cells: str) -> str:
    return f'<row r="{number}">{cells}</row>'


def far(place: str) -> bytes:
    """A workbook with two cells, the second of which stands far away."""
    number = "".join(filter(str.isdigit, place))
    return book(f"<sheetData>{row(1, cell('A1', 1))}{row(int(number), cell(place, 1))}</sheetData>")


def bombs() -> dict[str, bytes]:
    """What unpacks to gigabytes; a gigabyte of zeros is repeated, not made."""
    block = b"0,0\n" * (1 << 20)
    packed = gzip.compress(block, 9)
    square = bz2.compress(block, 9)
    long = lzma.compress(block)

    def member(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("t.csv", "w") as to:
            for _ in range(100):
                to.write(block)

    sheet = f'<worksheet xmlns="{SHEETS}"><sheetData>'.encode()

    def cells(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, text in WORKBOOK.items():
                if "sheet1" not in name:
                    archive.writestr(name, text)
            with archive.open("xl/worksheets/sheet1.xml", "w") as to:
                to.write(sheet)
                for _ in range(100):
                    to.write(b" " * (1 << 22))

    return {
        "gigabytes.csv.gz": packed * 300,
        "gigabytes.csv.bz2": square * 300,
        "gigabytes.csv.xz": long * 300,
        "gigabytes.zip": written(member),
        "gigabytes.xlsx": written(cells),
        "packed thrice.csv.gz": gzip.compress(gzip.compress(gzip.compress(gzip.compress(TEXT)))),
        "rows.parquet": written(pl.DataFrame({"a": pl.repeat(0, 10**8, eager=True, dtype=pl.Int8)}).write_parquet),
        "nothing.arrow": written(pl.DataFrame({"a": pl.repeat(None, 10**9, dtype=pl.Null, eager=True)}).write_ipc),
    }


#: Cells far away whose place a reader finds that knows quotes, prefixes or tags of any length.
HIDDEN = {
    "less than": """<c x="<" r="XFD1048576">""",
    "greater than": """<c x=">" r="XFD1048576">""",
    "place in a value": """<c x=" r='A1' " r="XFD1048576">""",
    "two places": """<c r="A1" r="XFD1048576">""",
    "dash in a prefix": """<a-b:c r="XFD1048576">""",
    "slash in a prefix": """<a/b:c r="XFD1048576">""",
    "no prefix": """<:c r="XFD1048576">""",
    "quote in a prefix": """<a"b:c r="XFD1048576" x='"'>""",
    "long prefix": f"""<{"a" * 70_000}:c r="XFD1048576">""",
    "before a long tag": f"""<c r="XFD1048576"><v>1</v></c></row></sheetData><z {" " * 70_000}""",
}


COUNTS = {
    "after a quote": 'x=">" uniqueCount="4000000000"',
    "with a sign": 'uniqueCount="+4000000000"',
    "with zeros": f'uniqueCount="{4 * 10**9:040}"',
    "without end": f'uniqueCount="{"9" * 30}"',
}


def hidden(tag: str) -> str:
    """Rows of a sheet, the last of which has such a cell."""
    return f'<sheetData>{row(1, cell("A1", 1))}<row r="1048576">{tag}<v>1</v></c></row></sheetData>'


def workbooks() -> dict[str, bytes]:
    """Workbooks that are none, or whose cells lie far apart."""
    first = row(1, "".join("<c><v>1</v></c>" for _ in range(16_384)))
    good = book(f"<sheetData>{row(1, cell('A1', 'a'))}{row(2, cell('A2', 1))}</sheetData>")
    return {
        "far.xlsx": far("XFD1048576"),
        "low.xlsx": far("AZZ1048576"),
        "beyond.xlsx": far("ZZZZZZ4294967295"),
        **{f"{name}.xlsx": book(hidden(tag)) for name, tag in HIDDEN.items()},
        "no places.xlsx": book(f"<sheetData>{first}{row(1048576, cell('A1048576', 1))}</sheetData>"),
        "single quotes.xlsx": book(
            "<sheetData><row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'>"
            "<c r = 'XFD1048576'><v>1</v></c></row></sheetData>"
        ),
        "prefixed.xlsx": book(
            '<x:sheetData xmlns:x="y"><x:row r="1"><x:c r="A1"><x:v>1</x:v></x:c></x:row>'
            '<x:row r="1048576"><x:c r="XFD1048576"><x:v>1</x:v></x:c></x:row></x:sheetData>'
        ),
        "dimension.xlsx": book('<dimension ref="A1:XFD1048576"/><sheetData></sheetData>'),
        "empty.xlsx": book("<sheetData></sheetData>"),
        "no sheet.xlsx": zipped({name: text.encode() for name, text in WORKBOOK.items() if "sheet1" not in name}),
        "no book.xlsx": zipped({"[Content_Types].xml": b"<Types/>"}),
        "binary book.xlsb": zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.bin": b"\x00"}),
        "open document.ods": zipped({"[Content_Types].xml": b"<Types/>", "content.xml": b"<a/>", "mimetype": b"x"}),
        "not closed.xlsx": book("<sheetData><row r='1'><c r='A1'><v>1"),
        "long tag.xlsx": book("<sheetData><row r='1'><c " + "x" * 3_000_000),
        "no XML.xlsx": book("\x00\x01\x02"),
        "strings.xlsx": book(
            '<sheetData><row r="1"><c r="A1" t="s"><v>99999999</v></c></row></sheetData>',
            **{"xl/sharedStrings.xml": f'<sst xmlns="{SHEETS}" count="4000000000" uniqueCount="4000000000"></sst>'},
        ),
        **{
            f"strings {name}.xlsx": book(
                '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>',
                **{"xl/sharedStrings.xml": f'<sst xmlns="{SHEETS}" {count}></sst>'},
            )
            for name, count in COUNTS.items()
        },
        "numbers.xlsx": book('<sheetData><row r="x"><c r="1A"><v>nan</v></c></row></sheetData>'),
        "style.xlsx": book('<sheetData><row r="1"><c r="A1" s="99999"><v>1e999</v></c></row></sheetData>'),
        "cut.xlsx": good[: len(good) // 2],
        "changed.xlsx": good[:300] + bytes(60) + good[360:],
    }


def archives() -> dict[str, bytes]:
    """Archives that are damaged."""
    packed, found = gzip.compress(TEXT * 50), {}
    for ending, data in (("gz", packed), ("bz2", bz2.compress(TEXT * 50)), ("xz", lzma.compress(TEXT * 50))):
        found |= {
            f"half.csv.{ending}": data[: len(data) // 2],
            f"changed.csv.{ending}": data[:20] + bytes(10) + data[30:],
            f"start.csv.{ending}": data[:6],
            f"tail.csv.{ending}": data + b"and more",
        }
    whole = zipped({"t.csv": TEXT * 50})
    changed = bytearray(whole)
    changed[45:55] = bytes(10)
    lies = bytearray(zipped({"t.csv": ZEROS}))
    place = lies.index(b"PK\x01\x02")
    lies[place + 24 : place + 28] = struct.pack("<I", 10)  # the size that it states
    locked = bytearray(whole)
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    method = bytearray(whole)
    method[8:10] = struct.pack("<H", 77)
    method[method.index(b"PK\x01\x02") + 10 : method.index(b"PK\x01\x02") + 12] = struct.pack("<H", 77)
    return found | {
        "checksum.csv.gz": packed[:-8] + bytes(8),
        "zstd.csv.zst": b"\x28\xb5\x2f\xfd" + bytes(30),
        "half.zip": whole[: len(whole) // 2],
        "changed.zip": bytes(changed),
        "lies.zip": bytes(lies),
        "locked.zip": bytes(locked),
        "method.zip": bytes(method),
        "none.zip": zipped({}),
        "folders.zip": zipped({"a/": b"", "b/": b""}),
        "zip in zip.zip": zipped({"inner.zip": whole}),
        "bz2 in zip.zip": _damaged(zipped({"t.csv": TEXT * 50}, zipfile.ZIP_BZIP2)),
        "lzma in zip.zip": _damaged(zipped({"t.csv": TEXT * 50}, zipfile.ZIP_LZMA)),
        "deflated in zip.zip": _damaged(whole),
        "start.zip": b"PK\x03\x04",
        "end.zip": b"PK\x05\x06" + bytes(18),
    }


def _damaged(data: bytes) -> bytes:
    middle = 50 + (len(data) - 150) // 2
    return data[:middle] + b"\xff\x00\xff\x00" + data[middle + 4 :]


def binaries() -> dict[str, bytes]:
    """Parquet and Arrow files that are damaged."""
    found = {}
    frame = pl.DataFrame({"a": np.arange(200), "b": ["x", "y"] * 100})
    files = {
        "parquet": written(frame.write_parquet),
        "arrow": written(frame.write_ipc),
        "arrows": written(frame.write_ipc_stream),
    }
    for ending, data in files.items():
        for share in (0.1, 0.5, 0.9):
            found[f"cut at {share}.{ending}"] = data[: int(len(data) * share)]
            place = int(len(data) * share)
            found[f"changed at {share}.{ending}"] = data[:place] + b"\xff" * 8 + data[place + 8 :]
        found[f"footer.{ending}"] = data[:-8] + b"\xff\xff\xff\x7f" + data[-4:]
    return found | {
        "text.parquet": TEXT,
        "start.parquet": b"PAR1",
        "twice.parquet": b"PAR1PAR1",
        "start.arrow": b"ARROW1",
        "start of a stream": b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    }


def texts() -> dict[str, bytes]:
    """Texts in odd encodings, with NUL, without end, or that are no tables."""
    random = np.random.default_rng(0)
    return {
        "empty.csv": b"",
        "spaces.csv": b" \n \n",
        "mark.csv": b"\xef\xbb\xbf",
        "header.csv": b"a,b\n",
        "zeros.csv": bytes(1000),
        "late zeros.csv": b"a,b\n" + b"1,2\n" * 3000 + b"\x00,\x00\n",
        "random.csv": random.bytes(5000),
        "random lines.csv": b"a,b\n" + b"\n".join(random.bytes(20) for _ in range(500)),
        "utf-16 cut.csv": "a,b\n1,2\n".encode("utf-16")[:-1],
        "utf-16 surrogate.csv": b"\xff\xfea\x00\n\x00\x00\xd8\n\x00",
        "utf-32.csv": "a,b\n1,2\n".encode("utf-32"),
        "ebcdic.csv": "a,b\n1,2\n".encode("cp500"),
        "quote.csv": b'a,b\n1,"2\n' + b"3,4\n" * 1000,
        "quotes.csv": b'"' * 5001,
        "long line.csv": b"a" * 10_000_000,
        "columns.csv": b"," * 300_000 + b"\n" + b"," * 300_000,
        "one name.csv": b"a,a\n1,2\n",
        "long cell.csv": b'a,b\n1,"' + b"x" * 5_000_000 + b'"\n',
        "returns.csv": b"a,b\r\r\r1,2\r\r",
        "form feeds.csv": b"\x0c\x0b\x1c\x1d\n\x85\n",
        "controls.csv": b"\x1b[31ma,b\x07\n1,2\n",
        "ragged.csv": b"a,b\n1\n1,2,3\n",
        "delimiters.csv": b",;\t|\n;,|\t\n",
        "huge numbers.csv": b"a,b\n" + b"9" * 5000 + b",1e99999\n",
        "deep.json": b"[" * 100_000 + b"]" * 100_000,
        "deep objects.json": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        "deep lines.jsonl": (b'{"a":' * 200 + b"1" + b"}" * 200 + b"\n") * 3,
        "open.json": b"[" * 1000,
        "cut.jsonl": b'{"a": 1}\n{"a": ',
        "mixed.jsonl": b'{"a": 1}\n[1]\n3\n',
        "scalars.json": b"[1, 2, 3]",
        "number.json": b"7",
        "word.json": b"null",
        "empty lines.jsonl": b"\n\n\n",
        "surrogates.jsonl": b'{"a": "\\ud800"}\n',
        "keys.jsonl": b'{"a": 1, "a": 2}\n',
        "many keys.jsonl": json.dumps({str(number): 1 for number in range(50_000)}).encode(),
        "nan.jsonl": b'{"a": NaN}\n{"a": 1e999}\n',
        "picture.csv": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "program.csv": b"\x7fELF" + bytes(100),
        "pickle.csv": b"\x80\x04\x95" + random.bytes(200),
    }


def tables() -> dict[str, bytes]:
    return {**bombs(), **workbooks(), **archives(), **binaries(), **texts()}


def main(folder: Path) -> None:
    """Read every table of the folder, one after the other, and print a line of JSON for each."""
    import empirisk as er
    from empirisk.errors import EmpiriskError

    for name in ("t.csv", "t.parquet", "t.jsonl", "t.arrow", "t.xlsx"):  # what readers need is loaded, and not counted
        er.tables.read(folder / "good" / name)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SLACK, used + SLACK))
    er.config(memory=MEMORY)
    warnings.simplefilter("ignore")
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        print(json.dumps({"trying": path.name}), flush=True)
        begin = time.process_time()
        signal.alarm(10 * SECONDS)  # one that never ends ends the process
        try:
            frame = er.tables.read(path)
            said = f"read: {frame.height} x {frame.width}"
        except EmpiriskError as error:
            said = f"refused: {error}"
        except BaseException as error:  # noqa: BLE001  the point of the exercise
            said = f"{type(error).__name__}: {error}"
        spent = time.process_time() - begin
        print(json.dumps({"table": path.name, "said": said, "seconds": spent}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
