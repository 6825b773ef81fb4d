"""empirisk serve: predictions over HTTP on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from empirisk.cli.models import load_model
from empirisk.extras import need

LOCAL = ("127.0.0.1", "localhost", "::1")


def command(
    model: Annotated[Path, typer.Argument(help="A model that `empirisk learn` wrote.")],
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is for this machine only.")
    ] = "127.0.0.1",
    limit: Annotated[int, typer.Option(help="Largest body of a request, in bytes.", min=100)] = 1_000_000,
    rows: Annotated[int, typer.Option(help="Most rows of a request.", min=1)] = 1000,
) -> None:
    """Answer predictions over HTTP: a form at /, JSON at /predict, its description at /docs."""
    need("empirisk serve", "serve", "starlette", "uvicorn")
    import uvicorn

    from empirisk.service.app import make_app
    from empirisk.service.connections import OPTIONS

    hosts = ["localhost", "127.0.0.1", host] if host in LOCAL else None
    app = make_app(load_model(model), hosts, limit, rows)
    if host not in LOCAL:
        typer.echo(
            f"empirisk: {host} can be reached from other machines, and nobody is asked for a password.", err=True
        )
    typer.echo(f"Serving {model} at http://{host}:{port}/ (Ctrl-C ends it)")
    uvicorn.run(app, host=host, port=port, log_level="warning", **OPTIONS)
