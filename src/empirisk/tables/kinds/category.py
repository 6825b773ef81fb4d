"""Words that repeat: categories, and codes that are written as numbers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.tables.kinds.base import Sample, counted
from empirisk.tables.kinds.date import WEEKDAYS
from empirisk.tables.kinds.names import CODE_NAME
from empirisk.tables.kinds.worded import NUMBERS, Worded, code_form

if TYPE_CHECKING:
    from empirisk.tables.understanding.column import Column

REPEATED = 2  # rows for each of the codes, at the least
MOST_WORDS = 200  # whose shares are kept with a model
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


class Category(Worded):
    """One of some words."""

    name = "category"
    task = "classification"
    drawn = "levels"
    coded = True
    json = ("string", "number", "null")

    def recognise(self, sample: Sample) -> str | None:
        return ""

    def final_form(self, series: pl.Series, present: pl.Series, form: str) -> str:
        return NUMBERS if series.dtype.is_numeric() else code_form(present)

    def ranks(self, series: pl.Series) -> NDArray[np.float64] | None:
        """Words by their frequency, the most frequent first."""
        place = {word: float(number) for number, word in enumerate(counted(series)["value"].to_list())}
        return np.array([np.nan if word is None else place[word] for word in series.to_list()])

    def profile(self, series: pl.Series) -> dict[str, Any] | None:
        words = counted(series)["value"].to_list()
        return {"words": words[:MOST_WORDS], "all": len(words) <= MOST_WORDS}

    def unusual(self, column: "Column", series: pl.Series, kept: dict[str, Any]) -> Iterator[tuple[int, str]]:
        if kept.get("all"):
            for row in np.flatnonzero((series.is_not_null() & ~series.is_in(kept["words"])).to_numpy()):
                yield int(row), f"{column.name}={series[int(row)]!r} was not met in training"

    def groups(self, series: pl.Series, most: int) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        if series.n_unique() <= most:
            for word in series.drop_nulls().unique().sort().to_list():
                yield f"is {word}", (series == word).fill_null(value=False).to_numpy()

    def trial_values(self, series: pl.Series, most: int) -> list[Any]:
        return in_own_order(counted(series).head(most)["value"].to_list())


def in_own_order(words: list[str]) -> list[str]:
    """Numbers, weekdays and months in the order that they have of their own; other words as they come.

    >>> in_own_order(["Sunday", "Fri", "monday"]), in_own_order(["10", "9"]), in_own_order(["b", "a"])
    (['monday', 'Fri', 'Sunday'], ['9', '10'], ['b', 'a'])
    """
    for calendar in (WEEKDAYS, MONTHS):
        places = [
            [k for k, name in enumerate(calendar) if len(word) > 2 and name.casefold().startswith(word.casefold())]
            for word in words
        ]
        if all(places):
            return [words[k] for k in np.argsort([found[0] for found in places], kind="stable")]
    try:
        return sorted(words, key=float)
    except ValueError:
        return words


def holds_codes(series: pl.Series, distinct: int, present: int) -> bool:
    """Whether whole numbers are codes: they are named like that, and repeat."""
    repeated = 2 < distinct <= present / REPEATED
    return repeated and series.dtype.is_integer() and CODE_NAME.search(series.name) is not None
