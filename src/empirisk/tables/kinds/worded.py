"""What kinds of words share: categories, texts and several values in a cell."""

from typing import TYPE_CHECKING, Any

import polars as pl

from empirisk.errors import EmpiriskError
from empirisk.tables.kinds.base import MARKERS, Forms, Kind, by_form, cleaned, shown
from empirisk.tables.kinds.number import parse_numbers

if TYPE_CHECKING:
    from empirisk.tables.understanding.column import Column

LONGEST = 100_000  # characters of one value of JSON
LARGEST = 2.0**63  # whole numbers beyond it have no place in a column


class Worded(Kind):
    """Values that are text, and may arrive as numbers."""

    markers = MARKERS
    any_text = True

    def parse(self, series: pl.Series, form: str) -> pl.Series:
        if not series.dtype.is_numeric():
            text = cleaned(series, self.markers)
            return _shortest_words(text) if form == NUMBERS else text
        if form == AS_WRITTEN:
            raise EmpiriskError(
                f"Column {series.name!r} holds numbers, but words in the table that was learned from, of which two are "
                "the same number; read it as text, as er.tables.read does."
            )
        words = shortest(series)
        return words.str.zfill(int(form)) if form.isdecimal() else words

    def graph_codes(self, x: Any, column: "Column", levels: tuple[str, ...], words: Any) -> Any:
        count, text = len(levels), words.trimmed(x, max((word.count(" ") for word in levels), default=0))
        places = {word: float(place) for place, word in enumerate(levels)}
        codes = words.lookup(text, places | dict.fromkeys(self.markers, count + 1.0), float(count))
        if column.form != NUMBERS:
            return codes
        numbers = parse_numbers(pl.Series(list(levels), dtype=pl.String)).to_list()
        of_number = {value: float(place) for place, value in enumerate(numbers) if value is not None}
        return words.where_number(text, lambda value: words.lookup(value, of_number, float(count)), codes)

    def describe(self, column: "Column") -> str:
        return f", {column.distinct} different"

    def texts_of(self, given: list[Any], form: str) -> set[Any]:
        return {value for value in given if type(value) in (int, float) and abs(value) < LARGEST}

    def read(self, value: Any, column: "Column", known: Forms) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError(f"{shown(value)} is not a text")
        text = value if isinstance(value, str) else by_form(value, column, known)
        if text is not None and len(text) > LONGEST:
            raise ValueError(f"is longer than {LONGEST} characters")
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise ValueError("holds half a character") from None
        return text


#: Ways in which a number stands for a word, beside the number of digits of a code.
NUMBERS, AS_WRITTEN = "numbers", "as written"
EXACT_DIGITS = 15  # a float holds all whole numbers of so many digits


def code_form(words: pl.Series) -> str:
    """How numbers stand for the words of a category, should they arrive instead.

    The number of digits, for codes of one length: 1234 is "01234". "numbers", where each word is another number: 1 is
    "1.0" too. "as written", where numbers do not tell words apart. Empty, where no word is a number, or each is its
    number's shortest writing.

    >>> import polars as pl
    >>> code_form(pl.Series(["01234", "56789"])), code_form(pl.Series(["7", "007"])), code_form(pl.Series(["a", "3"]))
    ('5', 'as written', '')
    """
    distinct = words.unique()
    numbers = parse_numbers(distinct)
    are = numbers.is_finite().fill_null(value=False)
    distinct, numbers = distinct.filter(are), numbers.filter(are)
    if len(distinct) == 0 or bool((shortest(numbers) == distinct).all()):
        return ""
    lengths = distinct.str.len_chars()
    if lengths.n_unique() == 1 and bool(distinct.str.contains(r"^\d+$").all()):
        return str(lengths[0])
    return NUMBERS if bool((lengths <= EXACT_DIGITS).all()) and numbers.n_unique() == len(numbers) else AS_WRITTEN


def shortest(numbers: pl.Series) -> pl.Series:
    """Numbers as words: a code such as 3 that came back as 3.0, because another row misses it, is still "3".

    >>> import polars as pl
    >>> shortest(pl.Series([3.0, 2.5, None])).to_list()
    ['3', '2.5', None]
    """
    if numbers.dtype.is_integer():
        return numbers.cast(pl.String)
    numbers = numbers.cast(pl.Float64).fill_nan(None)
    whole = (numbers == numbers.round()) & (numbers.abs() < 10.0**EXACT_DIGITS)
    return numbers.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole, numbers.cast(pl.String))


def _shortest_words(text: pl.Series) -> pl.Series:
    """Words, of which those that are numbers are written in the shortest way."""
    numbers = parse_numbers(text)
    return shortest(numbers).zip_with(numbers.is_finite().fill_null(value=False), text)
