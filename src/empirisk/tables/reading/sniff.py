"""The bytes of a text table: their encoding, their delimiter, their header, and rows that do not fit it."""

import csv
import io

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import EmpiriskError

DELIMITERS = (",", ";", "\t", "|")
#: What texts of wide letters begin with; those of UTF-32 are followed, or preceded, by two zeros.
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
#: Lines above a header at the most, lines below them that must be alike, and those that are compared.
MOST_TITLES, MIN_LINES, LOOKED_AT = 4, 3, 6
SNIFFED = 1 << 20  # bytes looked at for the delimiter
DEEPEST = 64  # lists and objects of JSON inside each other
BLOCK = 1 << 24  # bytes looked at together


def decode(data: bytes, name: str) -> bytes:
    """The table as UTF-8, whatever it was: UTF-8 with or without mark, UTF-16, UTF-32, or Latin-1 as Windows writes it.

    >>> decode("Köln".encode("latin-1"), "towns.csv").decode()
    'Köln'
    """
    if data.startswith(WIDE_MARKS):
        kind = "UTF-32" if b"\x00\x00" in data[:4] else "UTF-16"
        try:
            return data.decode(kind).encode()
        except UnicodeDecodeError as error:
            raise EmpiriskError(f"The table {name!r} is not proper {kind} text; save it as UTF-8.") from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\x00" in data[:4096]:  # what is not text shows it in its first block
        raise EmpiriskError(f"The table {name!r} is not text; give CSV, TSV, Parquet, Arrow or JSON lines.")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        try:
            return data.decode("cp1252").encode()
        except UnicodeDecodeError:
            return data.decode("latin-1").encode()
    return data


def check_depth(data: bytes, name: str) -> None:
    """Raise where JSON holds lists in lists without end: readers go down by calling themselves."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # a quote that is left begins or ends a text
    depth, quoted = 0, 0
    for start in range(0, len(plain), BLOCK):
        block = np.frombuffer(plain, dtype=np.uint8, count=min(BLOCK, len(plain) - start), offset=start)
        inside = np.bitwise_xor.accumulate((block == ord('"')).view(np.uint8)) ^ np.uint8(quoted)
        steps = np.isin(block, (ord("["), ord("{"))).astype(np.int32) - np.isin(block, (ord("]"), ord("}")))
        depths = depth + np.cumsum(np.where(inside, 0, steps))
        if depths.max() > DEEPEST:
            raise EmpiriskError(f"The table {name!r} holds lists in lists without end; give plain columns.")
        depth, quoted = int(depths[-1]), int(inside[-1])


def without_title(data: bytes) -> bytes:
    r"""The table without lines above its header: titles, and what spreadsheets fill these up with.

    >>> without_title(b"Sales of May, in EUR\n\nday;shop;amount\n1;a;3\n2;b;4\n")
    b'day;shop;amount\n1;a;3\n2;b;4\n'
    """
    lines = data[:SNIFFED].split(b"\n")
    for title in range(1, min(MOST_TITLES + 1, len(lines))):
        below = [line for line in lines[title:] if line.strip()][:LOOKED_AT]
        for delimiter in map(str.encode, DELIMITERS) if len(below) >= MIN_LINES and lines[title].strip() else []:
            counts = [line.count(delimiter) for line in below]
            if counts[0] >= 2 and len(set(counts)) == 1 and _is_title(lines[:title], below, delimiter):
                return data[sum(len(line) + 1 for line in lines[:title]) :]
    return data


def _is_title(above: list[bytes], below: list[bytes], delimiter: bytes) -> bool:
    """Whether lines are no part of the table below: they lack its delimiter, or fill one cell above a row of names.

    Where an empty line sets them off they may fill more of them, but not all. Lines that another delimiter cuts as it
    cuts those below are its header, above numbers with a decimal comma.
    """
    header = below[0]
    if not any(delimiter in line for line in above):
        whole = [line for line in above if line.strip()] + below
        return not any(
            other in header and len({line.count(other) for line in whole}) == 1 for other in map(str.encode, DELIMITERS)
        )
    names = [cell.strip() for cell in header.split(delimiter)]
    filled = [sum(bool(cell.strip()) for cell in line.split(delimiter)) for line in above]
    most = 1 if filled[-1] else len(names) - 1
    return max(filled) <= most and all(cell.strip(b"+-.,0123456789") for cell in names)


def find_delimiter(data: bytes, name: str = "") -> str:
    r"""The character between the fields: that which cuts the first lines into the same number of fields, the most.

    >>> find_delimiter(b"a;b\n1,5;2\n")
    ';'
    """
    if name.lower().endswith((".tsv", ".tab")):
        return "\t"
    start = np.frombuffer(data[:SNIFFED], dtype=np.uint8)
    best, score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        counts, blank, open_fields, _ = _fields(start, ord(delimiter), 0, 0)
        counts = counts[~blank] if len(counts) else np.array([open_fields + 1])  # one line, perhaps without an end
        if len(counts) and counts[0] >= 2:
            score, best = max((score, best), ((float((counts == counts[0]).mean()), int(counts[0])), delimiter))
    return best


def first_row(data: bytes, delimiter: str, name: str) -> list[str]:
    """The cells of the first row that is not empty."""
    # Four megabytes: no row is longer.
    start = io.StringIO(data[: 1 << 22].decode("utf-8", errors="replace"), newline="")
    try:
        first = next((row for row in csv.reader(start, delimiter=delimiter) if any(cell.strip() for cell in row)), None)
    except csv.Error as error:
        raise EmpiriskError(f"The header of the table {name!r} cannot be read: {error}.") from error
    if first is None:
        raise EmpiriskError(f"The table {name!r} is empty; give a file with a header and rows.")
    return first


def read_header(data: bytes, delimiter: str, name: str) -> list[str]:
    """The names of the columns; two of one name are an error, columns without one are numbered."""
    first = first_row(data, delimiter, name)
    names = [cell.strip() or f"column_{number + 1}" for number, cell in enumerate(first)]
    seen: set[str] = set()
    twice = [cell for cell in names if cell in seen or seen.add(cell)]
    if twice:
        raise EmpiriskError(f"The table {name!r} has two columns named {twice[0]!r}; rename one of them.")
    return names


def check_rows(data: bytes, delimiter: str, columns: int, name: str) -> None:
    """Raise at the first row that has not as many fields as the header; inside quotes nothing ends one."""
    if columns == 1:
        return
    data = data.rstrip(b" \r\n")
    line, fields, quoted = 0, 0, 0
    for start in range(0, len(data), BLOCK):
        block = np.frombuffer(data, dtype=np.uint8, count=min(BLOCK, len(data) - start), offset=start)
        counts, blank, fields, quoted = _fields(block, ord(delimiter), fields, quoted)
        wrong = np.flatnonzero((counts != columns) & ~blank)
        if len(wrong):
            raise _ragged(name, line + int(wrong[0]) + 1, int(counts[wrong[0]]), columns)
        line += len(counts)
    if fields + 1 != columns:
        raise _ragged(name, line + 1, fields + 1, columns)


def _fields(block: NDArray[np.uint8], delimiter: int, before: int, quoted: int) -> tuple[NDArray, NDArray, int, int]:
    """Fields of each line that ends in the block, which lines are blank, and what is open at its end."""
    cuts, ends, last = block == delimiter, block == ord("\n"), quoted
    quotes = block == ord('"')
    if quoted or quotes.any():
        inside = np.bitwise_xor.accumulate(quotes.view(np.uint8)) ^ np.uint8(quoted)
        cuts, ends, last = cuts & (inside == 0), ends & (inside == 0), int(inside[-1])
    places = np.flatnonzero(ends)
    starts = np.concatenate([[0], places + 1])
    closed = starts[-1] == len(block)
    counts = np.add.reduceat(cuts.view(np.uint8), starts[: len(starts) - closed], dtype=np.int64)
    if len(counts):
        counts[0] += before
    rest = 0 if closed else int(counts[-1])
    counts, lengths = counts[: len(places)], np.diff(places, prepend=-1) - 1
    # A line without delimiters that is empty, or a lone carriage return, is no row.
    blank = (counts == 0) & ((lengths == 0) | ((lengths == 1) & (block[np.maximum(places - 1, 0)] == ord("\r"))))
    return counts + 1, blank, rest, last


def _ragged(name: str, line: int, found: int, columns: int) -> EmpiriskError:
    return EmpiriskError(
        f"Line {line} of the table {name!r} has {found} fields where the header has {columns}; "
        "correct it, and look for a stray quote or delimiter."
    )
