"""Tables that come with the library, to try it on."""

from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from empirisk.errors import EmpiriskError

_DATA = Path(__file__).parent / "data"


class Bundled(NamedTuple):
    """A bundled table: what it is about, its target, and the loader of scikit-learn, or the file, that holds it."""

    about: str
    target: str
    source: str


_TABLES = {
    "iris": Bundled("three species of iris by their flowers", "species", "load_iris"),
    "wine": Bundled("three cultivars of wine by chemistry", "cultivar", "load_wine"),
    "breast_cancer": Bundled("benign or malignant, by measures of cell nuclei", "diagnosis", "load_breast_cancer"),
    "digits": Bundled("ten handwritten digits, 8 x 8 grey levels", "digit", "load_digits"),
    "diabetes": Bundled("progress of diabetes after a year, a number", "progress", "load_diabetes"),
    "tickets": Bundled("made-up support tickets: numbers, words, dates, text, gaps", "escalated", "tickets.csv"),
}
NAMES = tuple(_TABLES)


def table(name: str) -> pl.DataFrame:
    """A bundled table.

    >>> table("wine").height
    178
    """
    _, target, source = about(name)
    if source.endswith(".csv"):
        return pl.read_csv(_DATA / source, infer_schema_length=None)
    from sklearn import datasets  # takes a while to import

    data: Any = getattr(datasets, source)()
    columns = [str(name).replace(" (cm)", "").replace(" ", "_").replace("/", "_") for name in data.feature_names]
    labels = data.target_names[data.target] if "target_names" in data else data.target
    return pl.DataFrame(data.data, schema=columns).with_columns(pl.Series(target, labels.tolist()))


def about(name: str) -> Bundled:
    """What a bundled table is.

    >>> about("iris").target
    'species'
    """
    if name not in _TABLES:
        raise EmpiriskError(f"There is no bundled table {name!r}; choose one of {list(NAMES)}.")
    return _TABLES[name]
