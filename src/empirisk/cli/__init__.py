"""The shell: one file for each command, imported when it is called."""

from empirisk.extras import need

need("The shell", "learn", "typer", "rich", "polars", "matplotlib", "jinja2")
