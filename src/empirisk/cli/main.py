"""The command ``empirisk``. Modules are imported when their command runs, so that ``--help`` is fast."""

import os
import re
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
    "export": "Write a model for other programs: ONNX, Python or SQL.",
    "serve": "Answer predictions over HTTP on this machine.",
    "studio": "Learn and play in the browser.",
    "datasets": "List the bundled tables.",
    "message": "Explain a warning or an error by its code.",
    "warm": "Compile the loops of common machines, once on a computer.",
}


#: Options of the library at the beginning of a sentence, which have two dashes in a shell.
OPTIONS = (
    r"^(target|metric|test|folds|groups|time_order|machines|time|balance|drop|types|missing|jobs|seed|out|test_file"
    r"|prefer|refit|force|forecast|cluster|device)(=|:| is| has)"
)


class Typed(NamedTuple):
    """When a command began, on the clock of `perf_counter`, and the command itself."""

    begin: float
    command: str


class Lazy(TyperGroup):
    """A group of commands that are imported when they are called; errors that a user can mend are one sentence."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command of a name; the group itself holds only placeholders for the help text."""
        if args[0] in COMMANDS:
            # The clock starts before the imports of the command: they count towards its time limit.
            ctx.obj = Typed(perf_counter(), shlex.join(["empirisk", *args]))
            if sys.stderr.isatty():  # the imports take a second; the next line overwrites this one
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
        return re.sub(OPTIONS, lambda found: f"--{found[1].replace('_', '-')}{found[2]}", str(error))
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
    app.command(_name, help=_text)(lambda: None)  # a placeholder for the help text; `Lazy` imports the command


def run() -> None:
    """Run the command and end the process at once, without Python's shutdown.

    Threads may still run fits that were abandoned at the time limit, and the shutdown of all modules would take half a
    second, longer than many a command.
    """
    keep_open()
    try:
        app(prog_name="empirisk")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
        sys.stdout.flush()
        error = lost(sys.stdout)
        if error is not None:  # the output is incomplete, for instance on a full disk
            code = code or 1
            sys.stderr.write(f"empirisk: {told(error)}\n")
        sys.stderr.flush()
        os._exit(code)
