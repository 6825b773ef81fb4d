"""empirisk warm: the loops of common machines compiled once, so that no first fit waits for them."""

from empirisk.cli.outputs import say
from empirisk.warming import COMMON, warm


def command() -> None:
    """Compile the loops of common machines for the processor of this machine, on all cores; they are kept in files."""
    done: list[str] = []

    def tell(name: str) -> None:
        done.append(name)
        say(f"{len(done):3} of {len(COMMON)}  {name}")

    folder = warm(tell=tell)
    if folder is None:
        say("Nothing can be written, so nothing is kept; set NUMBA_CACHE_DIR to a folder that lasts.", error=True)
    else:
        say(f"Compiled loops are kept under {folder}.")
