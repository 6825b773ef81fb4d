"""What comes with extras: one sentence names the packages that are not installed, and the line that installs them."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from empirisk.errors import MissingExtra

if TYPE_CHECKING:
    import polars as pl


def missing(what: str, extra: str, *packages: str) -> str | None:
    """The sentence about packages that ``what`` needs and that are not installed; None where all of them are.

    >>> missing("A view", "plots", "json", "no_such_package")
    "A view needs no_such_package; install it with: pip install 'empirisk[plots]'"
    """
    lacking = [package for package in packages if find_spec(package) is None]
    if not lacking:
        return None
    *others, last = lacking
    named, it = (f"{', '.join(others)} and {last}", "them") if others else (last, "it")
    return f"{what} needs {named}; install {it} with: pip install 'empirisk[{extra}]'"


def need(what: str, extra: str, *packages: str) -> None:
    """Raise `MissingExtra` unless the packages that ``what`` needs are installed.

    >>> need("A view", "plots", "no_such_package")
    Traceback (most recent call last):
    empirisk.errors.MissingExtra: A view needs no_such_package; install it with: pip install 'empirisk[plots]'. [ER017]
    """
    sentence = missing(what, extra, *packages)
    if sentence is not None:
        raise MissingExtra(f"{sentence}.")


def data_frame(columns: Any, schema: Any = None) -> "pl.DataFrame":
    """A data frame of Polars, which is loaded when the first one is made.

    >>> data_frame({"x": [1, 2]}).shape
    (2, 1)
    """
    need("A data frame", "learn", "polars")
    import polars as pl

    return pl.DataFrame(columns, schema=schema)
