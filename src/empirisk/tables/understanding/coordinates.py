"""Pairs of columns that say where on the Earth something is."""

import re

from empirisk.tables.understanding.column import Column
from empirisk.tables.understanding.schema import Schema

#: The word of a latitude, and of a longitude, in the name of a column, with what each may be at the most.
LATITUDE, LONGITUDE = (r"lat(?:itude)?", 90.0), (r"(?:lon|lng|long|longitude)", 180.0)


def coordinate_pairs(schema: Schema) -> list[tuple[str, str]]:
    """The latitudes and longitudes among the columns, by their names and ranges; several are told by the rest of those.

    >>> table = {"pickup_lat": [48.1, 48.2], "price": [9.0, 7.0], "pickup_lng": [11.5, 11.6], "flat": [1, 2]}
    >>> coordinate_pairs(er.tables.understand(table))
    [('pickup_lat', 'pickup_lng')]
    """
    first, second = ({_rest(column.name, word): column.name for column in schema.used if _is_one(column, word, most)}
                     for word, most in (LATITUDE, LONGITUDE))  # fmt: skip
    return [(name, second[rest]) for rest, name in first.items() if rest in second]


def _is_one(column: Column, word: str, most: float) -> bool:
    """Whether a column of numbers has the word in its name, and such a range."""
    inside = column.low is not None and column.high is not None and -most <= column.low <= column.high <= most
    return column.kind == "number" and inside and _rest(column.name, word) != _plain(column.name)


def _rest(name: str, word: str) -> str:
    """The name without the word."""
    return re.sub(rf"(?:^|_){word}(?=_|$)", "_", _plain(name), count=1)


def _plain(name: str) -> str:
    """The words of a name between underscores: those of camel case too."""
    return re.sub(r"[\W_]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).lower()
