"""empirisk message: the page of a code such as ER001."""

from typing import Annotated

import typer

from empirisk.errors import EmpiriskError, did_you_mean
from empirisk.messages import CODES, page


def command(
    code: Annotated[
        str | None, typer.Argument(help="The code at the end of a message; without one, all are listed.")
    ] = None,
) -> None:
    """Explain a warning or an error by its code: what happened, why it matters, what to do."""
    if code is None:
        typer.echo("\n".join(f"{known}  {title}" for known, title in CODES.items()))
        return
    name = code.strip("[]").upper()
    if name not in CODES:
        rest = did_you_mean(name, CODES, "empirisk message lists them.")
        raise EmpiriskError(f"code={code!r} is not known; {rest}")
    typer.echo(page(name))
