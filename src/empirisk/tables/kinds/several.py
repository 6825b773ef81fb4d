"""Several values in a cell, such as ``web;phone``: each of them has an indicator of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import sparse

from empirisk import state
from empirisk.tables.kinds.base import Forms, Sample, cleaned
from empirisk.tables.kinds.category import Category

if TYPE_CHECKING:
    from empirisk.tables.encoding.encoder import TableEncoder
    from empirisk.tables.understanding.column import Column

SEPARATORS = (";", "|", ",")
SHARE = 0.1  # of the cells hold several values, at the least
MOST_VALUES = 100  # different ones
REPEATED = 5  # cells for each value, on average
LONGEST = 40  # letters of a value: more are a text


class Several(Category):
    """A set of some words. The form is what separates them; values in another order are the same set."""

    name = "several"
    task = None
    coded = False
    any_text = False
    json = ("string", "array", "null")

    def claims(self, dtype: pl.DataType) -> bool:
        return isinstance(dtype, pl.List) and dtype.inner == pl.String

    def recognise(self, sample: Sample) -> str | None:
        return next((mark for mark in SEPARATORS if _is_separator(mark, sample.present)), None)

    def forms(self, series: pl.Series) -> list[str]:
        """What separates the values of most cells."""
        if isinstance(series.dtype, pl.List):
            return [SEPARATORS[0]]
        text = series.cast(pl.String)
        return [max(SEPARATORS, key=lambda mark: text.str.contains(mark, literal=True).sum())]

    def parse(self, series: pl.Series, form: str) -> pl.Series:
        mark = form or SEPARATORS[0]
        if isinstance(series.dtype, pl.List):
            items = series.list.eval(pl.element().cast(pl.String).str.replace_all(mark, " ", literal=True))
        else:
            items = cleaned(series, self.markers).str.split(mark)
        items = items.list.eval(pl.element().str.strip_chars())
        items = items.list.eval(pl.element().filter(pl.element() != "")).list.unique().list.sort()
        return items.set(items.list.len() == 0, None).list.join(mark)

    def final_form(self, series: pl.Series, present: pl.Series, form: str) -> str:
        return form or SEPARATORS[0]  # lists have none of their own

    def describe(self, column: "Column") -> str:
        return f", {column.distinct} different sets of values between {column.form!r}"

    def fit_block(self, column: "Column", series: pl.Series, encoder: "TableEncoder", least: int) -> Any:
        return Items.fit(series, column.form, encoder.max_categories, least)

    def graph_block(self, x: Any, block: Any, words: Any) -> Any:
        return words.holding(x, block.levels, block.separator)

    def graph_trials(self, column: "Column", levels: list[str]) -> list[Any]:
        return [*column.examples, f"something else{column.form}more"]

    def unusual(self, column: "Column", series: pl.Series, kept: dict[str, Any]) -> Iterator[tuple[int, str]]:
        if kept.get("all"):
            known = {item for word in kept["words"] for item in word.split(column.form)}
            for row, cell in enumerate(series.to_list()):
                for item in () if cell is None else set(cell.split(column.form)) - known:
                    yield row, f"{column.name}={item!r} was not met in training"

    def texts_of(self, given: list[Any], form: str) -> set[Any]:
        return set()

    def read(self, value: Any, column: "Column", known: Forms) -> str | None:
        mark = column.form or SEPARATORS[0]
        values = value if isinstance(value, list) else [value]
        texts = [super(Several, self).read(one, column, known) or "" for one in values]
        return self.parse(pl.Series(column.name, [mark.join(texts)]), mark)[0]


def _is_separator(mark: str, present: pl.Series) -> bool:
    """Whether a mark stands between values that repeat in other company; alone, they must be found in some cells."""
    has = present.str.contains(mark, literal=True)
    if not SHARE * len(present) < has.sum() < len(present):
        return False
    items = present.str.split(mark).list.eval(pl.element().str.strip_chars()).explode()
    items = items.filter(items != "")
    distinct = items.n_unique()
    short = int(items.str.len_chars().max() or 0) <= LONGEST  # type: ignore[arg-type]
    few = distinct <= MOST_VALUES and distinct * REPEATED <= len(items)
    return short and few and distinct <= present.n_unique()


@dataclass(frozen=True, eq=False)
class Items:
    """Indicators of the values of a column with several in a cell.

    Attributes
    ----------
    separator : str
        What stands between the values.
    levels : tuple of str
        The values that have an indicator, the most frequent first.
    """

    _state = state.State(separator=state.text(*SEPARATORS), levels=state.names(None))

    separator: str
    levels: tuple[str, ...]

    @classmethod
    def fit(cls, column: pl.Series, separator: str, most: int, least: int) -> "Items":
        """Keep the ``most`` frequent values that ``least`` rows have."""
        items = column.drop_nulls().str.split(separator).explode().alias("value")
        counts = items.value_counts(name="rows").sort(["rows", "value"], descending=[True, False])
        return cls(separator, tuple(counts.filter(counts["rows"] >= least).head(most)["value"].to_list()))

    def transform(self, column: pl.Series) -> sparse.csr_matrix:
        """One entry for each value of a row that has an indicator."""
        place = {item: number for number, item in enumerate(self.levels)}
        rows = [[] if cell is None else cell.split(self.separator) for cell in column.to_list()]
        places = [[place[item] for item in items if item in place] for items in rows]
        ends = np.cumsum([0, *map(len, places)])
        flat = np.array([number for row in places for number in row], dtype=np.int64)
        return sparse.csr_matrix((np.ones(len(flat)), flat, ends), shape=(len(rows), len(self.levels)))

    def names(self) -> list[str]:
        """The values."""
        return list(self.levels)
