"""Blocks of an encoded table: numbers, dates, words and texts, each learned from training rows and applied to others.

Every block has ``fit``, ``transform`` into arrays with a column for each of its ``names``, and ``sources``: the column
of the table that each of them comes from.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from empirisk import state
from empirisk.tables.encoding.letters import Letters

Array = NDArray[np.float64]

FAR = 1e100  # what comes of numbers near the largest float is kept finite, and its square too
ALIKE = 8  # so many columns of one range are no accident: pixels, answers on one scale, indicators


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers in place of columns: missing ones become the median and a flag, all are centred and scaled.

    Columns of one unit, such as pixels, are scaled alike: a rare speck in a corner is no large number.

    Attributes
    ----------
    middle, mean, scale : arrays
        Median, mean and standard deviation of each column on the training rows, or the root mean square of the
        deviations where columns share a unit.
    flagged : array of int
        The columns that had missing values there.
    """

    _state = state.State(
        middle=state.array("f8", "columns"),
        mean=state.array("f8", "columns"),
        scale=state.array("f8", "columns"),
        flagged=state.array("i", "flagged", below="columns"),
    )

    middle: Array
    mean: Array
    scale: Array
    flagged: NDArray[np.int64]

    @classmethod
    def fit(cls, X: Array, scaled: bool) -> "Numbers":
        """Learn from rows with NaN where a value is missing."""
        missing = np.isnan(X)
        holes = np.flatnonzero(missing.any(axis=0))
        middle = np.zeros(X.shape[1])
        whole = np.setdiff1d(np.arange(X.shape[1]), holes)
        if len(X):
            middle[whole] = np.median(X[:, whole], axis=0)
        for column in holes:
            present = X[~missing[:, column], column]
            middle[column] = np.median(present) if len(present) else 0.0
        if not scaled or not len(X):
            return cls(middle, np.zeros(X.shape[1]), np.ones(X.shape[1]), holes)
        filled = np.where(missing, middle, X) if len(holes) else X
        # Numbers near the largest float would overflow when squared; they are learned from at a smaller size.
        size = np.maximum(np.abs(filled).max(axis=0), np.finfo(float).tiny)
        mean = (filled / size).mean(axis=0) * size
        spread = np.sqrt(np.square(filled / size - mean / size).mean(axis=0)) * size
        return cls.of_moments(middle, holes, (mean, spread, size, filled.min(axis=0), filled.max(axis=0)), scaled)

    @classmethod
    def of_moments(
        cls, middle: Array, holes: NDArray[np.int64], moments: tuple[Array, Array, Array, Array, Array], scaled: bool
    ) -> "Numbers":
        """From medians, and of the filled columns mean, standard deviation, size, and smallest and largest number."""
        mean, spread, size, low, high = moments
        if not scaled:
            return cls(middle, np.zeros(len(middle)), np.ones(len(middle)), holes)
        varies = spread > 10 * np.finfo(float).eps * size
        alike = _of_one_unit(low, high, varies)
        top = spread.max(where=alike, initial=0.0)
        spread[alike] = top * np.sqrt(np.square(spread[alike] / top).sum() / max(alike.sum(), 1))
        return cls(middle, mean, np.where(varies, spread, 1.0), holes)

    def transform(self, X: Array) -> tuple[Array, Array]:
        """The scaled numbers and the flags of missing ones."""
        missing = np.isnan(X)
        filled = np.where(missing, self.middle, X) if missing.any() else X
        with np.errstate(over="ignore"):
            scaled = np.clip((filled - self.mean) / self.scale, -FAR, FAR)
        return scaled, missing[:, self.flagged].astype(np.float64)


def _of_one_unit(low: Array, high: Array, varies: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The columns that begin where most do, if most of those that vary, and not a few, have one range.

    >>> _of_one_unit(np.zeros(10), np.ones(10), np.arange(10) < 9).sum()
    np.int64(9)
    """
    ranges, counts = np.unique(np.stack([low, high])[:, varies], axis=1, return_counts=True)
    if counts.max(initial=0) < max(ALIKE, varies.sum() / 2):
        return np.zeros_like(varies)
    least, most = ranges[:, counts.argmax()]
    return varies & (low == least) & (high <= most)


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of text as weighted counts (tf-idf) of its words and of the groups of letters in them.

    Attributes
    ----------
    vectorizer : TfidfVectorizer or None
        Of the words, fitted on the training rows; None where they held no word worth keeping.
    letters : Letters or None
        Of the groups of letters.
    """

    _state = state.State(
        vectorizer=state.maybe(state.part(TfidfVectorizer)),
        letters=state.optional(state.maybe(state.part(Letters))),  # older files have none
    )

    vectorizer: Any
    letters: Letters | None = None

    @classmethod
    def fit(cls, column: pl.Series, max_words: int, max_letters: int) -> "Texts":
        """Learn from the training rows, without what is met once where there are many rows."""
        rows = column.fill_null("").to_list()
        least = 2 if len(rows) >= 50 else 1  # of fewer rows, half of the words that matter are met once
        vectorizer = TfidfVectorizer(sublinear_tf=True, strip_accents="unicode", max_features=max_words, min_df=least)
        letters = Letters.fit(rows, max_letters, least) if max_letters else None
        try:
            return cls(vectorizer.fit(rows), letters)
        except ValueError:  # scikit-learn's word for an empty vocabulary
            return cls(None, letters)

    def transform(self, column: pl.Series) -> sparse.csr_matrix:
        """The weights of the words, and of the letters."""
        rows = column.fill_null("").to_list()
        found = [part.transform(rows) for part in (self.vectorizer, self.letters) if part is not None]
        return sparse.hstack([sparse.csr_matrix((len(rows), 0)), *found], format="csr")

    def names(self) -> list[str]:
        """The words, and the letters."""
        words = [] if self.vectorizer is None else self.vectorizer.get_feature_names_out().tolist()
        return words + ([] if self.letters is None else self.letters.names())
