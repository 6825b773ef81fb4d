"""Tables that come with the library, to try it on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from empirisk.errors import EmpiriskError

_DATA = Path(__file__).parent / "data"


class Bundled(NamedTuple):
    """A bundled table: what it is about, its target, and how it is made."""

    about: str
    target: str
    make: Callable[[], pl.DataFrame]


def _from_sklearn(loader: str, target: str, names: bool = True) -> Callable[[], pl.DataFrame]:
    def make() -> pl.DataFrame:
        from sklearn import datasets

        data: Any = getattr(datasets, loader)()
        columns = [str(name).replace(" (cm)", "").replace(" ", "_").replace("/", "_") for name in data.feature_names]
        frame = pl.DataFrame(data.data, schema=columns)
        labels = data.target_names[data.target] if names else data.target
        return frame.with_columns(pl.Series(target, labels.tolist()))

    return make


def _from_file(name: str) -> Callable[[], pl.DataFrame]:
    def make() -> pl.DataFrame:
        return pl.read_csv(_DATA / name, infer_schema_length=None)

    return make


_TABLES = {
    "iris": Bundled("three species of iris by their flowers", "species", _from_sklearn("load_iris", "species")),
    "wine": Bundled("three cultivars of wine by chemistry", "cultivar", _from_sklearn("load_wine", "cultivar")),
    "breast_cancer": Bundled(
        "benign or malignant, by measures of cell nuclei", "diagnosis", _from_sklearn("load_breast_cancer", "diagnosis")
    ),
    "digits": Bundled("ten handwritten digits, 8 x 8 grey levels", "digit", _from_sklearn("load_digits", "digit")),
    "diabetes": Bundled(
        "progress of diabetes after a year, a number",
        "progress",
        _from_sklearn("load_diabetes", "progress", names=False),
    ),
    "tickets": Bundled(
        "made-up support tickets: numbers, words, dates, text, gaps", "escalated", _from_file("tickets.csv")
    ),
}
NAMES = tuple(_TABLES)


def table(name: str) -> pl.DataFrame:
    """A bundled table.

    >>> table("wine").height
    178
    """
    return about(name).make()


def about(name: str) -> Bundled:
    """What a bundled table is.

    >>> about("iris").target
    'species'
    """
    if name not in _TABLES:
        raise EmpiriskError(f"There is no bundled table {name!r}; choose one of {list(NAMES)}.")
    return _TABLES[name]
