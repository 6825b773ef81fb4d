"""``python -m empirisk``, and the command ``empirisk``: the shell."""

import sys

from empirisk.errors import MissingExtra


def run() -> None:
    """Run the command; where the packages of the shell are not installed, say how to install them."""
    try:
        from empirisk.cli import main
    except MissingExtra as error:
        sys.exit(f"empirisk: {error}")
    main.run()


if __name__ == "__main__":
    run()
