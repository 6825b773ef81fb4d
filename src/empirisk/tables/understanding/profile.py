"""How the columns of training rows were spread: whether new rows look like them, row by row and column by column."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import chi2

from empirisk.formats import percent, written
from empirisk.tables.kinds.base import counted
from empirisk.tables.understanding.schema import Schema

Profile = dict[str, dict[str, Any]]

#: A column has moved when chance makes it so with less than this probability, over all columns, and more than this
#: share of the rows would have to change to undo it.
SURPRISE, NOTABLE = 0.01, 0.05
TOLD = 10  # columns or rows that are told of


def profile(frame: pl.DataFrame, schema: Schema) -> Profile:
    """What to keep of the training rows, given as `Schema.features` makes them: edges, words and their shares.

    >>> table = {"age": [20.0, 30.0, 40.0, 50.0], "town": ["Ulm", "Ulm", "Bonn", None]}
    >>> schema = er.tables.understand(table)
    >>> profile(schema.features(table), schema)["town"]
    {'rows': 4, 'shares': [0.5, 0.25, 0.25, 0.0], 'words': ['Ulm', 'Bonn'], 'all': True}
    """
    found: Profile = {}
    for column in schema.used:
        series = frame[column.name]
        kept = column.type.profile(series)
        if kept is None:
            continue
        found[column.name] = {"rows": len(series), "shares": _shares(series, kept).tolist(), **kept}
    return found


class Drift(NamedTuple):
    """How far a column has moved: its name, the share of rows that would have to change, and a sentence."""

    column: str
    moved: float
    sentence: str


def drift(known: Profile, frame: pl.DataFrame) -> list[Drift]:
    """The columns of new rows that are spread otherwise than those of the training rows, the most first.

    A column is cut into parts (tenths of the training rows, or words; missing values are a part). With the shares p of
    the m training rows and q of the n new ones, the distance is half the sum of |p - q|; chance is judged by the
    two-sample chi-square statistic, with Bonferroni's correction for the number of columns.
    """
    found = []
    for name, kept in known.items():
        before, now = np.array(kept["shares"]), _shares(frame[name], kept)
        distance = float(np.abs(before - now).sum() / 2)
        m, n = kept["rows"], frame.height
        pooled = (m * before + n * now) / (m + n)
        parts = pooled > 0
        statistic = float((np.square(before - now)[parts] / pooled[parts]).sum() * m * n / (m + n))
        probability = float(chi2.sf(statistic, max(int(parts.sum()) - 1, 1)))
        if distance > NOTABLE and probability * len(known) < SURPRISE:
            found.append(Drift(name, distance, _most_moved(name, kept, before, now)))
    return sorted(found, key=lambda entry: -entry.moved)


def unusual(known: Profile, schema: Schema, frame: pl.DataFrame) -> dict[int, list[str]]:
    """What no training row had: new words, and numbers and dates far outside their range; by row number, from 0."""
    found: dict[int, list[str]] = {}
    for column in schema.used:
        for row, sentence in column.type.unusual(column, frame[column.name], known.get(column.name, {})):
            found.setdefault(row, []).append(sentence)
    return dict(sorted(found.items()))


def sentences(found: Mapping[int, list[str]]) -> list[str]:
    """What is unusual, a line for each row, as far as one reads.

    >>> sentences({2: ["town='Oslo' was not met in training"]})
    ["row 3: town='Oslo' was not met in training"]
    """
    lines = [f"row {row + 1}: {'; '.join(what)}" for row, what in list(found.items())[:TOLD]]
    return [*lines, f"and {len(found) - TOLD:,} more rows"] if len(found) > TOLD else lines


def _numbers(series: pl.Series) -> NDArray[np.float64]:
    """Numbers, truth values and moments as floats, NaN where missing."""
    return (series.cast(pl.Int64) if series.dtype.is_temporal() else series).cast(pl.Float64).to_numpy()


def _shares(series: pl.Series, kept: Mapping[str, Any]) -> NDArray[np.float64]:
    """The share of the rows in each part: of numbers between cuts, of words and of others; missing ones come last but
    one among words, where others come last, and last among numbers.
    """
    rows = max(len(series), 1)
    if "cuts" in kept:
        values = _numbers(series)
        missing = ~np.isfinite(values)
        places = np.searchsorted(kept["cuts"], values[~missing], side="right")
        return np.append(np.bincount(places, minlength=len(kept["cuts"]) + 1), missing.sum()) / rows
    counts = dict(counted(series).rows())
    listed = [counts.get(word, 0) for word in kept["words"]]
    missing = series.null_count()
    return np.array([*listed, missing, len(series) - missing - sum(listed)]) / rows


def _most_moved(name: str, kept: Mapping[str, Any], before: NDArray, now: NDArray) -> str:
    """The part of a column that has changed most, in words."""
    part = int(np.abs(before - now).argmax())
    if "cuts" in kept:
        # The first ten letters of a time are its day.
        cuts = [str(np.datetime64(int(cut), "us"))[:10] if kept["dates"] else written(cut) for cut in kept["cuts"]]
        between = [f"from {low} to {high}" for low, high in pairwise(cuts)]
        parts = [f"below {cuts[0]}", *between, f"{cuts[-1]} and above"] if cuts else ["known"]
        parts.append("missing")
    else:
        parts = [*map(repr, kept["words"]), "missing", "another word"]
    return f"{name} {parts[part]}: {percent(before[part], 0)} of the training rows, {percent(now[part], 0)} of these"
