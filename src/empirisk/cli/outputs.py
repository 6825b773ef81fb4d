"""Standard output and error that survive closed pipes and full disks: a command must not lose its work to them."""

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

import typer

from empirisk.formats import printable


class Enduring(io.FileIO):
    """A file whose writes never raise: after the first error everything is dropped, and the error is kept.

    Attributes
    ----------
    failed : OSError or None
        The error of the first write that failed.
    """

    failed: OSError | None = None

    def write(self, data: Any) -> int:
        """Write, or drop after a failure."""
        if self.failed is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failed = error
        return memoryview(data).nbytes


def keep_open() -> None:
    """Make standard input, output and error safe to use for the rest of the process.

    The descriptor of a closed stream would be given to the next file that is opened: messages could then be written
    into the model. Characters that the encoding of an output lacks are written as escapes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  for as long as the process lasts
    sys.stdout, sys.stderr = _enduring(sys.stdout, 1), _enduring(sys.stderr, 2)


def _enduring(stream: TextIO | None, number: int) -> TextIO:
    """A text stream with the encoding of the one given, on an `Enduring` file."""
    if sys.platform == "win32" and stream is not None and stream.isatty():
        return stream  # a console of Windows takes UTF-16, which Python's own stream writes
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if stream is not None:
        stream.flush()
    raw = Enduring(number, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=raw.isatty())


def say(text: str, *, error: bool = False) -> None:
    """Print a line; control characters, which names in a table may hold, are printed as text."""
    typer.echo(printable(text), err=error)


def lost(stream: Any) -> OSError | None:
    """The error that made a stream drop text; None without one, and for a pipe whose reader has stopped reading."""
    failed = getattr(getattr(getattr(stream, "buffer", None), "raw", None), "failed", None)
    return None if isinstance(failed, BrokenPipeError) else failed
