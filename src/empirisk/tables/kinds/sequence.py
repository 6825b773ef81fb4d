"""Sequences over a small alphabet (DNA, proteins, codes of states): letters by their place, and short pieces."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from empirisk import state
from empirisk.tables.kinds.base import Input, Sample
from empirisk.tables.kinds.worded import Worded

if TYPE_CHECKING:
    from empirisk.tables.encoding.encoder import TableEncoder
    from empirisk.tables.understanding.column import Column

#: Letters of an alphabet, and the mean length from which words over it are sequences: names use more letters.
SMALL, SMALL_LENGTH = 8, 6.0
LARGE, LARGE_LENGTH = 25, 20.0  # proteins: twenty letters and a few marks, and longer than words
LETTERS = r"^[A-Za-z*-]+$"  # with marks of gaps and ends
FEW_ROWS = 20  # different sequences, at the least
SELDOM_EQUAL = 0.2  # of the rows have different ones, at the least
#: The share of the rows that have the usual length where a place means the same in all of them, and places read.
ALIGNED, MOST_PLACES = 0.9, 300
PIECES = (1, 4)  # letters of a piece, from and to
MOST_LETTERS = 1000  # of a sequence that is compared as a whole: the others are left out
MOST_PIECES = 2000  # the most frequent ones: rarer ones are met too seldom to be learned from


class Sequence(Worded):
    """A string over a small alphabet."""

    name = "sequence"
    any_text = False
    spelled = True
    wide = True

    def recognise(self, sample: Sample) -> str | None:
        present = sample.present
        distinct = present.n_unique()
        if distinct <= max(SELDOM_EQUAL * len(present), FEW_ROWS) or not sample.few.str.contains(LETTERS).all():
            return None
        length = float(present.str.len_chars().mean())  # type: ignore[arg-type]
        letters = len(set().union(*sample.few.to_list()))
        long = length >= SMALL_LENGTH if letters <= SMALL else length >= LARGE_LENGTH and letters <= LARGE
        return "" if long and present.str.contains(LETTERS).all() else None

    def describe(self, column: "Column") -> str:
        return f", {column.distinct} different"

    def fit_block(self, column: "Column", series: pl.Series, encoder: "TableEncoder", least: int) -> Any:
        return Spelling.fit(series) if encoder.letters else Pieces.fit(series, least)

    def graph_block(self, x: Any, block: Any, words: Any) -> Any:
        return words.weights_of_sequence(x, self.markers, block)

    def sizes(self, series: pl.Series) -> NDArray[np.float64] | None:
        """Lengths."""
        return series.str.len_chars().cast(pl.Float64).to_numpy()

    def input(self, words: list[str]) -> Input:
        return Input("textarea")


@dataclass(frozen=True, eq=False)
class Pieces:
    """Sequences as numbers: a letter at its place, and how often each short piece occurs.

    The counts of the pieces of a sequence have length one together: their products are a spectrum kernel, so that a
    linear machine on them is one with a string kernel.

    Attributes
    ----------
    vectorizer : TfidfVectorizer or None
        Of the pieces; None where the training rows held none.
    places : tuple of str
        Which letter at which place has an indicator, such as "3:A".
    """

    _state = state.State(vectorizer=state.maybe(state.part(TfidfVectorizer)), places=state.names(None))

    vectorizer: Any
    places: tuple[str, ...]

    @classmethod
    def fit(cls, column: pl.Series, least: int) -> "Pieces":
        """Learn the pieces, and where most sequences are of one length the places, that ``least`` rows have."""
        rows = column.drop_nulls()
        lengths = rows.str.len_chars()
        usual = int(lengths.mode().max()) if len(rows) else 0  # type: ignore[arg-type]
        places: list[str] = []
        if len(rows) and (lengths == usual).mean() >= ALIGNED:  # type: ignore[operator]
            for place in range(min(usual, MOST_PLACES)):
                counts = rows.str.slice(place, 1).value_counts(name="rows").filter(pl.col("rows") >= least)
                places += sorted(f"{place + 1}:{letter}" for letter in counts[rows.name].to_list() if letter)
        pieces = TfidfVectorizer(
            analyzer="char", ngram_range=PIECES, lowercase=False, use_idf=False, max_features=MOST_PIECES, min_df=least
        )
        try:
            return cls(pieces.fit(rows.to_list()), tuple(places))
        except ValueError:  # scikit-learn's word for an empty vocabulary
            return cls(None, tuple(places))

    def transform(self, column: pl.Series) -> sparse.csr_matrix:
        """The letters at their places, and the pieces."""
        rows = column.fill_null("").to_list()
        number = {name: k for k, name in enumerate(self.places)}
        found = [[number.get(f"{k + 1}:{letter}", -1) for k, letter in enumerate(row[:MOST_PLACES])] for row in rows]
        flat = [[k for k in row if k >= 0] for row in found]
        ends = np.cumsum([0, *map(len, flat)])
        indices = np.array([k for row in flat for k in row], dtype=np.int64)
        there = sparse.csr_matrix((np.ones(len(indices)), indices, ends), shape=(len(rows), len(self.places)))
        return there if self.vectorizer is None else sparse.hstack([there, self.vectorizer.transform(rows)], "csr")

    def names(self) -> list[str]:
        """The places, and the pieces."""
        return [*self.places, *([] if self.vectorizer is None else self.vectorizer.get_feature_names_out().tolist())]


@dataclass(frozen=True, eq=False)
class Spelling:
    """Sequences letter by letter, for kernels on strings (`empirisk.kernels.strings.Spelled`): code points, then zeros.

    Attributes
    ----------
    width : int
        Letters of the longest training sequence; further ones are left out.
    """

    _state = state.State(width=state.whole(1, MOST_LETTERS))

    width: int

    @classmethod
    def fit(cls, column: pl.Series) -> "Spelling":
        """Learn the longest length."""
        return cls(int(np.clip(column.str.len_chars().max() or 1, 1, MOST_LETTERS)))  # type: ignore[arg-type]

    def transform(self, column: pl.Series) -> sparse.csr_matrix:
        """The code point of each letter at its place."""
        rows = column.fill_null("").str.slice(0, self.width).to_list()
        ends = np.cumsum([0, *map(len, rows)])
        codes = np.frombuffer("".join(rows).encode("utf-32-le"), np.uint32).astype(np.float64)
        places = np.arange(ends[-1]) - np.repeat(ends[:-1], np.diff(ends))
        return sparse.csr_matrix((codes, places, ends), shape=(len(rows), self.width))

    def names(self) -> list[str]:
        """The places."""
        return [f"letter {place + 1}" for place in range(self.width)]
