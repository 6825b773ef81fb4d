"""The interface of a kind of column: how its values are read, recognised, encoded, compared, drawn and asked for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.errors import LETTERS, EmpiriskError, Unsuitable

if TYPE_CHECKING:
    from empirisk.tables.encoding.encoder import TableEncoder
    from empirisk.tables.understanding.column import Column

#: Text that stands for "missing" wherever it is met.
MARKERS = ("", "NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "Null", "?", "#N/A")
#: Text that stands for "missing" among numbers, dates and truth values only; among words it may be a word.
SOFT_MARKERS = ("-", "--", ".", "none", "None", "NONE", "missing", "unknown", "*")
#: The share of the cells that may be junk in a column of numbers or dates, the cells that it takes to say so, and the
#: different values that must be left: a few codes and words are categories.
JUNK_SHARE, MIN_CELLS, MIN_DISTINCT = 0.2, 20, 3
LOOKED_AT = 1000  # cells of a column that tell whether it may be of a kind at all
FEW = 64  # values that are handled one by one: a query costs more than a loop

#: What values of JSON stand for that are written in the way of a column.
Forms = dict[Any, Any]


class Sample(NamedTuple):
    """The text of a column whose kind is to be found.

    Attributes
    ----------
    present : Series
        The values that are not missing.
    strict : Series
        The different ones that do not stand for "missing" among numbers.
    few : Series
        Some of those, from all over the column: a quick no for most kinds. Empty for codes such as 007, which would
        be 7 as numbers.
    """

    present: pl.Series
    strict: pl.Series
    few: pl.Series


class Input(NamedTuple):
    """The field of a form: an HTML element, and the values that it offers."""

    tag: str = "input"
    choices: tuple[str, ...] = ()


class Kind:
    """What a column may hold. A kind states all that depends on it; the rest of the code asks for no kind by name.

    Attributes
    ----------
    name : str
        As `Column.kind` and ``types=`` have it.
    unused_because : str
        Why machines do not learn from such a column; empty where they do.
    dtype : Polars type
        Of the values in the form that machines learn from.
    dtypes : tuple of Polars types
        Columns of these types are of this kind, whatever their values are.
    expected : str
        What a value is called where one is not understood, such as "a number"; empty where any value will do.
    task : str or None
        What predicting such a column is called; None where that has no meaning.
    drawn : str
        "numbers", "dates", "levels" (a few names) or, for what is not drawn, empty.
    truth : bool
        Whether the values are true and false, as 1 and 0, which people are told as yes and no.
    names_rows : bool
        Whether the values tell one row from another, and nothing else.
    any_text : bool
        Whether any text at all may be such a value, so that junk in a column of numbers makes it one of these.
    parts : tuple of str
        Names of the numbers that the encoder makes of a value; an empty name for the value itself.
    indicators : tuple of str
        Names of the indicators that it makes besides.
    coded : bool
        Whether the values are words that are encoded together with those of other columns.
    spelled : bool
        Whether the letters of the values may be compared by kernels on strings.
    wide : bool
        Whether one column becomes thousands of numbers.
    json : list of str
        Types of JSON that a value may have.
    graph_type : str
        "string" or "double": what an exported graph takes for a value.
    """

    name = ""
    unused_because = ""
    dtype: pl.DataType = pl.String()
    dtypes: tuple[Any, ...] = ()
    expected = ""
    markers = MARKERS + SOFT_MARKERS
    task: str | None = None
    drawn = ""
    truth = False
    names_rows = False
    any_text = False
    parts: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()
    coded = False
    spelled = False
    wide = False
    json: tuple[str, ...] = ("string", "null")
    graph_type = "string"

    @property
    def used(self) -> bool:
        """Whether machines learn from such a column."""
        return not self.unused_because

    # Reading

    def claims(self, dtype: pl.DataType) -> bool:
        """Whether columns of a Polars type are of this kind, whatever their values are."""
        return dtype.base_type() in self.dtypes

    def recognise(self, sample: Sample) -> str | None:
        """How the values of a column of text are written if they are of this kind, else None."""
        return None

    def recognise_most(self, sample: Sample) -> str | None:
        """How the values are written if nearly all of them are of this kind, the others junk; else None."""
        return None

    def forms(self, series: pl.Series) -> list[str]:
        """Ways in which the values may be written if a user says that they are of this kind."""
        return [""]

    def parse(self, series: pl.Series, form: str) -> pl.Series:
        """The values in the form that machines learn from, null where one is missing or of another kind."""
        raise Unsuitable(f"Column {series.name!r} is of the kind {self.name!r}, which is not learned from.")

    def final_form(self, series: pl.Series, present: pl.Series, form: str) -> str:
        """The form to keep, once the values are known."""
        return form

    def range(self, present: pl.Series) -> tuple[float | None, float | None]:
        """The least and the largest of the values, where they are ordered."""
        return None, None

    # Words

    def written(self, value: float, form: str) -> str:
        """A value as people write it."""
        return str(value)

    def describe(self, column: "Column") -> str:
        """What is worth saying of a column after its kind."""
        if column.low is not None and column.high is not None:
            return f" from {column.written(column.low)} to {column.written(column.high)}"
        return ""

    def why_not(self, column: "Column") -> str:
        """Why machines do not learn from a column."""
        return self.unused_because

    def remark(self, column: "Column") -> str:
        """How the values were read, where a user should look whether that is right; else empty."""
        return ""

    # As a target

    def target_problem(self, column: "Column") -> str:
        """Why such a column cannot be predicted, to be completed by what to do; empty where it can."""
        return ""

    # Numbers for machines

    def numbers(self, columns: list[pl.Series]) -> NDArray[np.float64]:
        """The numbers of `parts`, for one column after the other, NaN where missing."""
        return np.empty((len(columns[0]), 0))

    def indicate(self, columns: list[pl.Series]) -> NDArray[np.float64]:
        """The indicators, for one column after the other, zero where missing."""
        return np.empty((len(columns[0]), 0))

    def fit_block(self, column: "Column", series: pl.Series, encoder: "TableEncoder", least: int) -> Any:
        """What turns the column into a sparse matrix, learned from training rows; None where nothing does.

        It has ``transform(series)`` and ``names()``; ``least`` rows must have what is worth a number of its own.
        """
        return None

    # Comparing

    def ranks(self, series: pl.Series) -> NDArray[np.float64] | None:
        """Numbers in which equal values are equal, and by which rows can be grouped; None where they cannot."""
        return None

    def profile(self, series: pl.Series) -> dict[str, Any] | None:
        """What to keep of how the training rows are spread: ``cuts`` of numbers or ``words``; None for nothing."""
        return None

    def unusual(self, column: "Column", series: pl.Series, kept: dict[str, Any]) -> Iterator[tuple[int, str]]:
        """Rows with a value that no training row had, and a sentence about each."""
        return iter(())

    def groups(self, series: pl.Series, most: int) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Groups of rows by their values, at most so many, each with words that follow the column's name."""
        return iter(())

    # Drawing

    def trial_values(self, series: pl.Series, most: int) -> list[Any]:
        """Values of the column, in order, whose effect on a prediction is worth looking at."""
        return []

    def level_name(self, value: Any) -> str:
        """The name of one of a few values."""
        return str(value)

    def sizes(self, series: pl.Series) -> NDArray[np.float64] | None:
        """Numbers whose histogram shows the column; None where counts of its values do."""
        return None

    # Exported graphs, in which columns are tensors with one column and ``words`` has the operations on text
    # (`empirisk.exports.words`)

    def graph_numbers(self, x: Any, column: "Column", words: Any) -> Any:
        """The numbers of `parts` from the values as they are in a table, NaN where missing."""
        raise NotImplementedError

    def graph_indicators(self, x: Any, column: "Column", words: Any) -> Any:
        """The indicators, zero where missing."""
        raise NotImplementedError

    def graph_codes(self, x: Any, column: "Column", levels: tuple[str, ...], words: Any) -> Any:
        """The place of each word among the levels, as `encoding.categories.code_words` gives it."""
        raise NotImplementedError

    def graph_block(self, x: Any, block: Any, words: Any) -> Any:
        """What the block of `fit_block` makes of the values."""
        raise NotImplementedError

    def graph_trials(self, column: "Column", levels: list[str]) -> list[Any]:
        """Values on which an exported graph is compared with the model, besides missing ones."""
        return [*(levels or column.examples), "something else"]

    # Asking people and programs

    def example(self, column: "Column", words: list[str]) -> Any:
        """A value that the column may have, as JSON holds it."""
        return words[0] if words else None

    def as_json(self, value: Any) -> Any:
        """A value in the form that machines learn from, as JSON holds it, in a few digits."""
        return value

    def input(self, words: list[str]) -> Input:
        """The field of a form for such a value."""
        return Input("input", tuple(words))

    def texts_of(self, given: list[Any], form: str) -> set[Any]:
        """Those of the values of JSON that only the column's form tells how to read."""
        return set()

    def read(self, value: Any, column: "Column", known: Forms) -> Any:
        """A value of JSON in the form that machines learn from; a `ValueError` says what is wrong with it."""
        raise ValueError(f"{shown(value)} is not {self.expected}")


def mostly(cells: pl.Series, fits: pl.Series) -> bool:
    """Whether the cells that do not fit are so few, and so unlike codes, that they are junk such as "ERR".

    >>> cells = pl.Series(["ERR", *map(str, range(30))])
    >>> mostly(cells, cells.str.contains(r"^\\d+$"))
    True
    """
    junk = cells.filter(~fits)
    if len(cells) < MIN_CELLS or not 0 < len(junk) <= JUNK_SHARE * len(cells):
        return False
    distinct = cells.filter(fits).n_unique()
    coded = junk.str.contains(r"\d") & junk.str.contains(r"[A-Za-z]")  # 85123A among numbers is an article
    return distinct >= MIN_DISTINCT and junk.n_unique() < distinct and 2 * int(coded.sum()) <= len(junk)


def spread_out(cells: pl.Series, most: int) -> pl.Series:
    """At most about so many cells, from all over a column."""
    return cells.gather_every(max(len(cells) // most, 1))


def cleaned(series: pl.Series, markers: tuple[str, ...]) -> pl.Series:
    """Values as text without blanks around them, null where they stand for a missing one."""
    if series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object):
        raise EmpiriskError(f"Column {series.name!r} holds lists or other nested values; give single values.")
    text = series.cast(pl.String)
    if len(text) <= FEW:
        words = [None if word is None else word.strip() for word in text.to_list()]
        return pl.Series(series.name, [None if word in markers else word for word in words], dtype=pl.String)
    text = text.str.strip_chars()
    return text.set(text.is_in(list(markers)), None)


def counted(series: pl.Series) -> pl.DataFrame:
    """The values of a column and the rows that have each, the most frequent first; a column may have any name.

    >>> import polars as pl
    >>> counted(pl.Series("rows", ["b", "a", "b", None])).rows()
    [('b', 2), ('a', 1)]
    """
    counts = series.drop_nulls().alias("value").value_counts(name="rows")
    return counts.sort(["rows", "value"], descending=[True, False])


def shown(value: Any) -> str:
    """A value in a message, not too long."""
    return repr(value)[:LETTERS]


def by_form(value: str | float, column: "Column", known: Forms) -> Any:
    """A value of JSON in the way that the column of the table was written."""
    if known.get(value) is not None:
        return known[value]
    try:
        return column.convert(pl.Series(column.name, [value]))[0]
    except EmpiriskError as error:
        raise ValueError(str(error)) from None
    except (OverflowError, pl.exceptions.PolarsError):
        raise ValueError(f"{shown(value)} is no number of a usual size") from None
