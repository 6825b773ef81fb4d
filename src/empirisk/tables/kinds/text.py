"""Texts: several words each, seldom equal."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.tables.encoding.numbers_and_texts import Texts
from empirisk.tables.kinds.base import Input, Sample
from empirisk.tables.kinds.worded import Worded

if TYPE_CHECKING:
    from empirisk.tables.encoding.encoder import TableEncoder
    from empirisk.tables.understanding.column import Column

WORDS_IN_TEXT = 3.0  # on average: names have one or two
SELDOM_EQUAL = 0.2  # of the rows have different texts, at the least
FEW_ROWS = 20  # different texts, at the least
A_TEXT = "some words"  # an example


class Text(Worded):
    """Sentences and descriptions."""

    name = "text"
    wide = True

    def recognise(self, sample: Sample) -> str | None:
        distinct, count = sample.present.n_unique(), len(sample.present)
        if distinct <= max(SELDOM_EQUAL * count, FEW_ROWS):
            return None
        words = float(sample.present.str.count_matches(r"\S+").mean())  # type: ignore[arg-type]
        return "" if words >= WORDS_IN_TEXT else None

    def fit_block(self, column: "Column", series: pl.Series, encoder: "TableEncoder", least: int) -> Any:
        return Texts.fit(series, encoder.max_words, encoder.max_letters)

    def graph_block(self, x: Any, block: Any, words: Any) -> Any:
        return words.weights_of_text(words.without(words.trimmed(x), self.markers), block)

    def graph_trials(self, column: "Column", levels: list[str]) -> list[Any]:
        return [*column.examples, A_TEXT, "some some WORDS\twith  blanks"]

    def sizes(self, series: pl.Series) -> NDArray[np.float64] | None:
        """Lengths."""
        return series.str.len_chars().cast(pl.Float64).to_numpy()

    def example(self, column: "Column", words: list[str]) -> Any:
        return A_TEXT

    def input(self, words: list[str]) -> Input:
        return Input("textarea")
