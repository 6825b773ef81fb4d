"""The command ``empirisk``. What a command needs is imported when it runs, so that help comes at once."""

import os
import shlex
import sys
from importlib import import_module
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from empirisk import __version__
from empirisk.cli.outputs import keep_open, lost, say
from empirisk.errors import LETTERS, EmpiriskError

#: The commands in the order of help; each is the function ``command`` of the module of its name.
COMMANDS = {
    "learn": "Learn a table, and write a model and a report.",
    "predict": "Predict the rows of a table with a model.",
    "score": "Score a model on new rows, and say whether they look like the old.",
    "show": "Show what a model is: machine, scores, columns, equation.",
    "serve": "Answer predictions over HTTP on this machine.",
    "datasets": "List the bundled tables.",
}


class Typed(NamedTuple):
    """When a command began, on the clock of `perf_counter`, and the command itself."""

    begin: float
    command: str


class Lazy(TyperGroup):
    """Commands that are imported when they are called; an error that a user can act on is one sentence."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The real command of a name, instead of the line that help shows."""
        if args[0] in COMMANDS:
            # The imports of a command count for its limit of time.
            ctx.obj = Typed(perf_counter(), shlex.join(["empirisk", *args]))
            if sys.stderr.isatty():  # they take a while; the next line is written over this one
                sys.stderr.write(f"{args[0]}: starting ...\r")
                sys.stderr.flush()
            return args[0], load(args[0]), args[1:]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (EmpiriskError, MemoryError, ImportError, OSError) as error:
            say(f"empirisk: {told(error)}", error=True)
            raise typer.Exit(1) from error


def told(error: Exception) -> str:
    """An error in one sentence."""
    if isinstance(error, MemoryError):
        return "there is not enough memory; give fewer rows."
    if isinstance(error, EmpiriskError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        place = f" {error.filename!r}" if error.filename else ""
        return f"reading or writing{place} failed ({error.strerror}); make room, or choose another place."
    said = " ".join(str(error).split())[:LETTERS]
    return f"a library could not be loaded ({said}); allow more memory, or install empirisk again."


def load(name: str) -> Any:
    """The command in the module of its name."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(import_module(f"empirisk.cli.{name}").command)
    return typer.main.get_command(single)


app = typer.Typer(
    cls=Lazy,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Classical machine learning on one equation: learn a table, predict, serve.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"empirisk {__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before a command."""


for _name, _text in COMMANDS.items():
    app.command(_name, help=_text)(lambda: None)  # what help lists; `Lazy` runs the command itself


def run() -> None:
    """The command as a process. It ends at once: work that there was no time for may still run on threads.

    To take down all modules one by one would last half a second of the processor, longer than many a command.
    """
    keep_open()
    try:
        app(prog_name="empirisk")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
        sys.stdout.flush()
        error = lost(sys.stdout)
        if error is not None:  # a full disk takes no answer
            code = code or 1
            sys.stderr.write(f"empirisk: {told(error)}\n")
        sys.stderr.flush()
        os._exit(code)
