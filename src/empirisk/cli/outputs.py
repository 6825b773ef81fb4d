"""Outputs of the command that may be closed, full, or left by whoever read them: the work goes on, and is kept."""

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

import typer

from empirisk.formats import printable


class Enduring(io.FileIO):
    """A file to write to that never fails: what cannot be written is dropped, and why is noted.

    Attributes
    ----------
    failed : OSError or None
        What the first write that failed has raised.
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
    """Let nothing that is printed end a command, nor land in a file of ours.

    A closed output's number would be given to the next file that is opened, the model perhaps. Letters that an output
    has not are written as codes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  for as long as the process lasts
    sys.stdout, sys.stderr = _enduring(sys.stdout, 1), _enduring(sys.stderr, 2)


def _enduring(stream: TextIO | None, number: int) -> TextIO:
    """A text stream like the one given that endures failures."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if stream is not None:
        stream.flush()
    raw = Enduring(number, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=raw.isatty())


def say(text: str, *, error: bool = False) -> None:
    """Print a line; what steers a terminal in names that others wrote is shown as text."""
    typer.echo(printable(text), err=error)


def lost(stream: Any) -> OSError | None:
    """Why something printed to a stream is lost, None where nothing is, or where nobody wanted to read on."""
    failed = getattr(getattr(getattr(stream, "buffer", None), "raw", None), "failed", None)
    return None if isinstance(failed, BrokenPipeError) else failed
