"""``python -m empirisk``: the shell."""

from empirisk.cli.main import run

if __name__ == "__main__":
    run()
