"""Columns of words: one indicator for each frequent word, and the mean target of each word where there are many."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from empirisk import state
from empirisk.tables.kinds.base import FEW, counted

Array = NDArray[np.float64]

FOLDS = 5  # a row's own target is not in the mean that its word gets: four fifths of the others' are
PRIOR = 10.0  # rows that the overall mean counts for in the mean of a word
OTHER, MISSING = "(other)", "(missing)"


@dataclass(frozen=True, eq=False)
class Words:
    """Indicators of the frequent words of several columns; the others share one, and so do missing values.

    Attributes
    ----------
    levels : tuple of tuples of str
        The words of each column that have an indicator, the most frequent first.
    others, missing : arrays of bool
        Whether a column has an indicator for other words, and for missing values.
    """

    _state = state.State(
        levels=state.several(state.names(None), "columns"),
        others=state.array("b", "columns"),
        missing=state.array("b", "columns"),
    )

    levels: tuple[tuple[str, ...], ...]
    others: NDArray[np.bool_]
    missing: NDArray[np.bool_]

    @classmethod
    def fit(cls, columns: list[pl.Series], most: int, least: int) -> "Words":
        """Keep for each column the ``most`` frequent words that ``least`` rows have."""
        missing = [column.null_count() for column in columns]
        return cls.of_counts([counted(column) for column in columns], [False] * len(columns), missing, most, least)

    @classmethod
    def of_counts(
        cls, columns: list[pl.DataFrame], others: list[bool], missing: list[int], most: int, least: int
    ) -> "Words":
        """The same of the words of each column with their rows, of whether there are others, and of missing values."""
        levels, more = [], []
        for counts, other in zip(columns, others, strict=True):
            kept = counts.filter(counts["rows"] >= least).head(most)["value"].to_list()
            levels.append(tuple(kept))
            more.append(other or len(kept) < counts.height)
        return cls(tuple(levels), np.array(more, dtype=bool), np.array(missing, dtype=np.int64) > 0)

    @property
    def widths(self) -> NDArray[np.int64]:
        """Indicators of each column."""
        return self._sizes + self.others + self.missing

    @property
    def _sizes(self) -> NDArray[np.int64]:
        return np.array([len(kept) for kept in self.levels], dtype=np.int64)

    def names(self, columns: list[str]) -> list[str]:
        """Names of the indicators, such as ``town=Ulm``."""
        found = []
        for name, kept, other, missing in zip(columns, self.levels, self.others, self.missing, strict=True):
            found += [f"{name}={word}" for word in (*kept, *[OTHER] * bool(other), *[MISSING] * bool(missing))]
        return found

    def codes(self, columns: list[pl.Series], rows: int) -> Array:
        """The place of each word among the levels, others sharing the next; NaN where it is missing, or was not met."""
        codes = self._codes(columns, rows)
        return np.where(codes < self._sizes + self.others, codes, np.nan)

    def transform(self, columns: list[pl.Series], rows: int) -> sparse.csr_matrix:
        """One entry for each row and column at most: an unseen word is an "other", or nothing where none was met."""
        codes, widths = self._codes(columns, rows), self.widths
        gaps = codes > self._sizes
        present = np.where(gaps, self.missing, (codes < self._sizes) | self.others)
        places = codes - (gaps & ~self.others) + np.cumsum(widths) - widths
        ends = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        return sparse.csr_matrix((np.ones(int(ends[-1])), places[present], ends), shape=(rows, int(widths.sum())))

    def _codes(self, columns: list[pl.Series], rows: int) -> NDArray[np.int64]:
        """The codes of all columns, as `code_words` gives them."""
        found = [code_words(column, kept) for column, kept in zip(columns, self.levels, strict=True)]
        return np.column_stack([np.empty((rows, 0), dtype=np.int64), *found])


def code_words(column: pl.Series, levels: tuple[str, ...]) -> NDArray[np.int64]:
    """The place of each word among the levels, ``len(levels)`` for another word and one more for a missing value.

    >>> import polars as pl
    >>> code_words(pl.Series(["b", "x", None, "a"]), ("a", "b")).tolist()
    [1, 2, 3, 0]
    """
    if len(column) <= FEW:
        place = {word: number for number, word in enumerate(levels)}
        count = len(levels)
        return np.array(
            [count + 1 if word is None else place.get(word, count) for word in column.to_list()], dtype=np.int64
        )
    if not levels:
        return np.where(column.is_null().to_numpy(), 1, 0).astype(np.int64)
    codes = column.cast(pl.Enum(levels), strict=False).to_physical().cast(pl.Int64).fill_null(len(levels)).to_numpy()
    return np.where(column.is_null().to_numpy(), len(levels) + 1, codes)


@dataclass(frozen=True, eq=False)
class Means:
    """The mean target of the rows with each word, drawn towards the overall mean: for columns of many words.

    With s the sum of the target over the n rows of a word and m the overall mean:  (s + 10 m) / (n + 10).
    Training rows get means of the other folds only, so that no row sees its own target.

    Attributes
    ----------
    levels : tuple of tuples of str
        The words of each column.
    means : tuple of arrays
        For each column, words x outputs; the last row is for words not met.
    """

    _state = state.State(
        lambda its: (
            None
            if all(len(means) == len(kept) + 1 for means, kept in zip(its["means"], its["levels"], strict=True))
            else "means has not one row for each word"
        ),
        levels=state.several(state.names(None), "columns"),
        means=state.several(state.array("f8", None, "outputs"), "columns"),
    )

    levels: tuple[tuple[str, ...], ...]
    means: tuple[Array, ...]

    @classmethod
    def fit(cls, columns: list[pl.Series], outputs: Array, seed: int) -> tuple["Means", Array]:
        """Learn the means, and return those that the training rows themselves may see."""
        fold = np.random.default_rng(seed).permutation(len(outputs)) % FOLDS
        found, codes = [], []
        for column in columns:
            kept = tuple(column.drop_nulls().unique().sort().to_list())
            codes.append(np.minimum(code_words(column, kept), len(kept)))
            found.append((kept, *_sums(codes[-1], fold, outputs, len(kept) + 1)))
        learned, seen = cls.of_sums(found)
        own = [table[fold, each] for table, each in zip(seen, codes, strict=True)]
        return learned, np.hstack([*own, np.empty((len(outputs), 0))])

    @classmethod
    def of_sums(cls, columns: list[tuple[tuple[str, ...], Array, Array]]) -> tuple["Means", list[Array]]:
        """The same of the words of each column with sums of outputs and counts of rows, folds x words (x outputs).

        Training rows may see the table of their fold, of the list of folds x words x outputs.
        """
        levels, means, seen = [], [], []
        for kept, sums, counts in columns:
            overall = sums.sum(axis=(0, 1)) / counts.sum()
            table = (sums.sum(axis=0) + PRIOR * overall) / (counts.sum(axis=0)[:, None] + PRIOR)
            levels.append(kept)
            means.append(table)
            elsewhere = sums.sum(axis=0) - sums, (counts.sum(axis=0) - counts)[:, :, None]
            outside = elsewhere[0].sum(axis=1, keepdims=True) / np.maximum(elsewhere[1].sum(axis=1, keepdims=True), 1)
            seen.append((elsewhere[0] + PRIOR * outside) / (elsewhere[1] + PRIOR))
        return cls(tuple(levels), tuple(means)), seen

    def transform(self, columns: list[pl.Series], rows: int) -> Array:
        """The means of the words of each row."""
        found = [
            means[np.minimum(code_words(column, kept), len(kept))]
            for column, kept, means in zip(columns, self.levels, self.means, strict=True)
        ]
        return np.hstack([*found, np.empty((rows, 0))])


def _sums(codes: NDArray, fold: NDArray, outputs: Array, count: int) -> tuple[Array, Array]:
    """Sums of the outputs and counts of rows, folds x words."""
    cell = fold * count + codes
    counts = np.bincount(cell, minlength=FOLDS * count).reshape(FOLDS, count).astype(np.float64)
    sums: Array = np.stack([np.bincount(cell, y, FOLDS * count).astype(np.float64) for y in outputs.T], axis=1)
    return sums.reshape(FOLDS, count, outputs.shape[1]), counts
