"""The zip around a model: written atomically, and read as a file that may be hostile.

Members are stored, never compressed: a file cannot unfold into more than its own size, and every size is known before
anything is allocated. ``manifest.json`` states the format, the versions, and size and SHA-256 of every other member.
"""

import hashlib
import json
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from empirisk.errors import LETTERS, EmpiriskError, NotLoaded
from empirisk.files.account import Account, Damaged
from empirisk.files.atomic import whole_file

FORMAT = 1  # the version of the layout; a reader refuses later ones
MANIFEST = "manifest.json"
TREE = "tree.json"
#: Bytes of memory that one byte of JSON can become: {"":0} and a comma take seven bytes in the text and 240 in memory.
JSON_GROWTH = 35
_STAMP = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes
_BROKEN = (zipfile.BadZipFile, struct.error, EOFError, NotImplementedError, RuntimeError, UnicodeError, OverflowError)

Chunks = tuple[bytes | memoryview, ...]


# --- writing --------------------------------------------------------------------------------------------------------


def write(path: Path, about: dict[str, Any], members: dict[str, Chunks]) -> None:
    """Write a model file whole or not at all: an existing file stays until the new one is on the disk."""
    listed = {}
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, chunks in members.items():
            digest = hashlib.sha256()
            with archive.open(zipfile.ZipInfo(name, _STAMP), "w", force_zip64=True) as member:
                for chunk in chunks:
                    member.write(chunk)
                    digest.update(chunk)
            listed[name] = {"size": sum(map(len, chunks)), "sha256": digest.hexdigest()}
        manifest = json.dumps(about | {"format": FORMAT, "members": listed}, indent=1)
        archive.writestr(zipfile.ZipInfo(MANIFEST, _STAMP), manifest)


# --- reading --------------------------------------------------------------------------------------------------------


class Reader:
    """The members of an opened model file, each checked against the manifest when it is read."""

    def __init__(self, archive: zipfile.ZipFile, limit: int, length: int):
        self._archive, self.account = archive, Account(limit, length)
        self._infos = _checked_infos(archive, length)
        self.account.take(sum(info.file_size for info in self._infos.values()))
        if MANIFEST not in self._infos:
            raise NotLoaded("The file is a zip, but not a model file: it has no manifest; give a file of er.save.")
        self.about = self._json(MANIFEST)
        self.listed = _checked_manifest(self.about, self._infos)

    def tree(self) -> Any:
        """The JSON tree of the model."""
        if TREE not in self.listed:
            raise Damaged("its tree is missing")
        self._check_digest(TREE)
        return self._json(TREE)

    @contextmanager
    def member(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """An open member and its size, once its digest is the one listed."""
        if name not in self.listed:
            raise Damaged(f"its member {name[:LETTERS]!r} is missing")
        self._check_digest(name)
        with self._archive.open(self._infos[name]) as file:
            yield file, self._infos[name].file_size  # type: ignore[misc]

    def _check_digest(self, name: str) -> None:
        with self._archive.open(self._infos[name]) as file:
            # Block by block: a file need not fit into memory to be checked.
            digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
        if digest.hexdigest() != self.listed[name]["sha256"]:
            raise Damaged(f"its member {name!r} is not the one that was written")

    def _json(self, name: str) -> Any:
        info = self._infos[name]
        self.account.take(info.file_size * JSON_GROWTH)
        try:
            return json.loads(self._archive.read(info).decode("utf-8"), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise Damaged(f"its {name!r} is not proper JSON") from error


@contextmanager
def reading(path: Path, limit: int) -> Iterator[Reader]:
    """Open a model file; whatever is wrong with it is one `EmpiriskError`."""
    if not path.is_file():
        raise EmpiriskError(f"path={str(path)!r} is not a file; give the path of a file that er.save wrote.")
    try:
        with zipfile.ZipFile(path) as archive:
            yield Reader(archive, limit, path.stat().st_size)
    except zipfile.BadZipFile as error:
        raise NotLoaded(
            f"path={str(path)!r} is not a whole model file (it is no zip, or was cut short or changed); copy it again."
        ) from error
    except _BROKEN as error:
        raise Damaged("its zip structure does not hold together") from error
    except OSError as error:
        raise EmpiriskError(f"path={str(path)!r} cannot be read ({error.strerror or error}).") from error


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _checked_infos(archive: zipfile.ZipFile, length: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name, none twice, none compressed, hidden, linked or outside the archive."""
    infos: dict[str, zipfile.ZipInfo] = {}
    end = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = info.filename
        if name in infos:
            raise Damaged(f"its member {name[:LETTERS]!r} is there twice")
        if name not in (MANIFEST, TREE) and not _is_array(name):
            raise Damaged(f"it holds {name[:LETTERS]!r}, which no model file has")
        # A member's type stands in the upper half of the attributes; zero is what we write, 8 a plain file.
        if (info.external_attr >> 28) not in (0, 8) or info.flag_bits & 1 or info.is_dir():
            raise Damaged(f"its member {name!r} is not a plain file")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise Damaged(f"its member {name!r} is compressed, which no model file is")
        if info.header_offset < end:
            raise Damaged(f"its member {name!r} lies inside another")
        end = info.header_offset + info.file_size
        infos[name] = info
    if end > length:
        raise Damaged("it announces more than it holds")
    return infos


def _is_array(name: str) -> bool:
    number = name.removeprefix("arrays/").removesuffix(".npy")
    # No file holds a million million arrays; longer numbers are someone's attack on the reader.
    return name == f"arrays/{number}.npy" and number.isascii() and number.isdigit() and len(number) <= 12


def _checked_manifest(about: Any, infos: dict[str, zipfile.ZipInfo]) -> dict[str, dict[str, Any]]:
    """The list of members, once the format is ours and the list is that of the zip."""
    if not isinstance(about, dict) or type(about.get("format")) is not int:
        raise Damaged("its manifest states no format")
    if about["format"] > FORMAT:
        raise NotLoaded(
            f"The model file has format {about['format']}, newer than this version of Empirisk reads ({FORMAT}); "
            "update Empirisk."
        )
    if about["format"] < 1:
        raise Damaged("its manifest states an impossible format")
    listed = about.get("members")
    if not isinstance(listed, dict) or set(listed) != set(infos) - {MANIFEST}:
        raise Damaged("its members are not those that its manifest lists")
    for name, entry in listed.items():
        if not isinstance(entry, dict) or entry.get("size") != infos[name].file_size or "sha256" not in entry:
            raise Damaged(f"its member {name!r} has not the size that its manifest states")
    return listed
