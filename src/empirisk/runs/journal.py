"""A journal on disk: what is done is written down at once, so that a run that was killed goes on where it was.

One JSON object a line. The first names the work by a fingerprint of data and parameters; each other holds one finished
piece. A line is flushed to the disk before the next piece counts as done; a last line that was cut short is dropped.
"""

import base64
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import sklearn
from scipy.sparse import issparse

import empirisk
from empirisk.errors import EmpiriskError, NotWritten

try:
    import fcntl
except ImportError:  # Windows has no flock: two runs that write the same files are not noticed there
    fcntl = None

KIND = "empirisk journal 1"


@contextmanager
def file_lock(out: Path) -> Iterator[None]:
    """Within, this process alone may write the files that start with ``out``; raise if another run holds the lock.

    The operating system releases the lock when the process ends, also after a crash.
    """
    lock = out.with_name(f".{out.name}.lock")
    try:
        file = lock.open("ab")
    except OSError as error:
        raise NotWritten(f"out={str(out)!r} cannot be written ({error.strerror}); choose another place.") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another run may have deleted the file between `open` and `flock`: the lock would be of no file.
                held = os.path.samestat(os.fstat(file.fileno()), lock.stat())
            except OSError:
                held = False
            if not held:
                raise NotWritten(f"out={str(out)!r} is being written by another run; wait for it, or choose another.")
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def fingerprint(*things: Any) -> str:
    """A hash of data and parameters that is the same in every process.

    >>> fingerprint(np.arange(3), er.Ridge(C=2.0)) == fingerprint(np.arange(3), er.Ridge(C=2.0))
    True
    >>> fingerprint(er.Ridge(C=2.0)) == fingerprint(er.Ridge(C=2.5))
    False
    """
    digest = hashlib.sha256(f"{empirisk.__version__} {sklearn.__version__} {np.__version__}".encode())
    for thing in things:
        _feed(digest, thing)
    return digest.hexdigest()


def _feed(digest: Any, thing: Any) -> None:
    """Add one thing: arrays by their bytes, machines by class and parameters, the rest by its text."""
    digest.update(type(thing).__name__.encode())
    if nw.dependencies.is_into_dataframe(thing):
        frame = nw.from_native(thing, eager_only=True)
        for name in frame.columns:
            _feed(digest, name)
            _feed(digest, frame[name].to_numpy())
    elif issparse(thing):
        coo = thing.tocoo()
        for part in (np.array(coo.shape), coo.row, coo.col, coo.data):
            _feed(digest, np.asarray(part))
    elif isinstance(thing, np.ndarray):
        digest.update(f"{thing.dtype} {thing.shape}".encode())
        plain = thing.dtype.kind not in "OV"
        digest.update(np.ascontiguousarray(thing).tobytes() if plain else repr(thing.tolist()).encode())
    elif isinstance(thing, Mapping):
        for key in sorted(thing, key=str):
            _feed(digest, key)
            _feed(digest, thing[key])
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            _feed(digest, item)
    elif hasattr(thing, "get_params") and not isinstance(thing, type):
        _feed(digest, thing.get_params(deep=False))
    elif hasattr(thing, "dist") and hasattr(thing, "kwds"):  # a distribution of scipy.stats
        _feed(digest, [thing.dist.name, thing.args, thing.kwds])
    else:
        text = getattr(thing, "__qualname__", None) or repr(thing)
        digest.update(re.sub(r" at 0x[0-9a-f]+", "", text).encode())  # addresses differ between processes


class Journal:
    """Results of the finished pieces of a run, in memory and, with a path, on disk (a write-ahead log)."""

    def __init__(self, path: Any, fingerprint: Callable[[], str]):
        self.done: dict[str, Any] = {}
        self._path = None if path is None else Path(path)
        self._lock = threading.Lock()
        if self._path is None:
            return
        mark = fingerprint()
        if self._path.exists() and self._path.stat().st_size:
            self._read(mark)
        if not self._path.exists() or not self._path.stat().st_size:
            self._append({"kind": KIND, "fingerprint": mark})

    def _read(self, mark: str) -> None:
        assert self._path is not None
        whole, newline, _ = self._path.read_bytes().rpartition(b"\n")
        lines = [self._parse(line, number) for number, line in enumerate(whole.split(b"\n"), 1)] if newline else []
        if not lines and self._path.read_bytes()[:1] != b"{":
            raise self._foreign("is no journal of Empirisk")
        if lines and (not isinstance(lines[0], dict) or lines[0].get("kind") != KIND):
            raise self._foreign("is no journal of Empirisk")
        if lines and lines[0]["fingerprint"] != mark:
            raise self._foreign("was written for other data, other parameters or another version")
        with self._path.open("r+b") as file:  # remove an incomplete last line: the next one would be appended to it
            file.truncate(len(whole) + len(newline))
        self.done = {line["key"]: line["value"] for line in lines[1:]}

    def _parse(self, line: bytes, number: int) -> Any:
        try:
            return json.loads(line)
        except ValueError as error:
            raise self._foreign(f"cannot be read at line {number}") from error

    def _foreign(self, why: str) -> EmpiriskError:
        return EmpiriskError(f"journal={str(self._path)!r} {why}; give another path, or delete the file.")

    def _append(self, line: dict[str, Any]) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("ab") as file:
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            # An incomplete line is removed when the journal is read again.
            raise NotWritten(
                f"journal={str(self._path)!r} cannot be written ({error.strerror}); make room or give another path: "
                "what is done so far is kept."
            ) from error

    def add(self, key: str, value: Any) -> None:
        """Store the result of a finished piece; ``value`` must be representable in JSON."""
        with self._lock:
            self._append({"key": key, "value": value})
            self.done[key] = value


def pack(array: np.ndarray | None) -> Any:
    """An array as JSON, bit for bit: dtype, shape, and its bytes in base64."""
    if array is None:
        return None
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": array.shape, "data": data}


def unpack(packed: Any) -> Any:
    """The array that `pack` stored."""
    if packed is None:
        return None
    flat = np.frombuffer(base64.b64decode(packed["data"]), dtype=packed["dtype"])
    return flat.reshape(packed["shape"]).copy()


def freeze(value: Any) -> Any:
    """A parameter as JSON: plain values as they are, objects such as losses and kernels by their repr."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [freeze(item) for item in value]
    if isinstance(value, Mapping):
        return {"map": {str(key): freeze(item) for key, item in value.items()}}
    return {"text": repr(value)}


def thaw(value: Any, known: Iterable[Any]) -> Any:
    """The parameter that `freeze` stored; objects are looked up by their repr among those known, else stay text."""
    if isinstance(value, list):
        return [thaw(item, known) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "map" in value:
        return {key: thaw(item, known) for key, item in value["map"].items()}
    return next((part for part in known if repr(part) == value["text"]), value["text"])
