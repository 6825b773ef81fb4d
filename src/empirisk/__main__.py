"""``python -m empirisk``: the shell."""

from empirisk.cli.main import app

if __name__ == "__main__":
    app(prog_name="empirisk")
