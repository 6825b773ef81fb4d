"""empirisk studio: learning in the browser, on this machine."""

import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from empirisk.cli.outputs import say
from empirisk.errors import EmpiriskError
from empirisk.extras import need

LOOPBACK = "127.0.0.1"


def command(
    source: Annotated[
        Path | None, typer.Argument(help="A table to open, or a model that `empirisk learn` wrote.", show_default=False)
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> None:
    """Open the studio in the browser: a workbench for tables, and a playground for the equation."""
    need("empirisk studio", "serve", "starlette", "uvicorn")
    import uvicorn

    from empirisk.service.connections import OPTIONS
    from empirisk.studio.app import make_studio
    from empirisk.studio.workbench.opening import in_browser, open_source

    folder, start = open_source(Path.cwd(), source)
    announced: list[str] = []

    def announce(address: str) -> None:
        announced.append(f"{address}{start}")
        say(f"{'Another browser may open' if announced[1:] else 'Open'} {announced[-1]}")

    with socket.socket() as listener:
        if sys.platform != "win32":  # there two programs could take the same port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError as error:
            raise EmpiriskError(f"port={port} is taken ({error.strerror}); choose another, or 0.") from error
        app = make_studio(listener.getsockname()[1], announce, folder)
        with in_browser(folder, announced[0]) if browser else nullcontext():
            say("Ctrl-C ends the studio.")
            uvicorn.Server(uvicorn.Config(app, log_level="warning", **OPTIONS)).run([listener])
