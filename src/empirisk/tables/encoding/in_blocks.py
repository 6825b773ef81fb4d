"""What an encoder learns of a table that comes in blocks: numbers, words and mean targets of all rows, in one pass.

Blocks of texts and sequences stay as they are: their vocabularies are those of the rows that the encoder was fitted on.
"""

from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from empirisk.tables.encoding.categories import FOLDS, Means, Words, code_words
from empirisk.tables.encoding.encoder import MOST_OUTPUTS, TableEncoder, least_rows
from empirisk.tables.encoding.numbers_and_texts import Numbers

Array = NDArray[np.float64]
Folds = NDArray[np.int64]

#: Values of a level of a sketch: up to so many the median is exact, and beyond its rank is off by a ten-thousandth.
KEPT = 4096
#: Words of a column that are counted: of more, the rarest are taken for others when a block has come.
MOST_WORDS = 1 << 17


class MedianSketch:
    """The median of numbers that come in blocks, of which few are kept.

    A value on level h stands for 2^h: of a full level, sorted, every other value goes up.

    >>> sketch = MedianSketch()
    >>> for start in range(0, 1_000_000, 1000):
    ...     sketch.add(np.arange(start, start + 1000.0))
    >>> abs(sketch.median() - 500_000) < 500
    True
    """

    def __init__(self):
        self._levels: list[Array] = [np.empty(0)]
        self._upper = False

    def add(self, values: Array) -> None:
        """Take in some numbers."""
        coming, level = values, 0
        while True:
            here = np.concatenate([self._levels[level], coming])
            if len(here) <= KEPT:
                self._levels[level] = here
                return
            here.sort()
            even = len(here) - len(here) % 2
            self._levels[level], coming = here[even:].copy(), here[int(self._upper) : even : 2]
            self._upper, level = not self._upper, level + 1
            if level == len(self._levels):
                self._levels.append(np.empty(0))

    def median(self) -> float:
        """The median, and 0 where there was no number."""
        values = np.concatenate(self._levels)
        if len(values) == 0 or len(self._levels) == 1:
            return float(np.median(values)) if len(values) else 0.0
        weights = np.repeat(2.0 ** np.arange(len(self._levels)), [len(each) for each in self._levels])
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(weights[order])
        return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])


class NumberSums:
    """What `Numbers` learns, gathered from blocks."""

    def __init__(self, columns: int):
        self.sketches = [MedianSketch() for _ in range(columns)]
        self.missing = np.zeros(columns)
        self.low, self.high = np.full(columns, np.inf), np.full(columns, -np.inf)
        #: Of each block the numbers that are there, their mean and their standard deviation.
        self.parts: list[tuple[Array, Array, Array]] = []

    def add(self, X: Array) -> None:
        """Take in rows with NaN where a value is missing."""
        there = ~np.isnan(X)
        self.missing += (~there).sum(axis=0)
        for column, sketch in enumerate(self.sketches):
            sketch.add(X[there[:, column], column])
        self.low = np.minimum(self.low, np.where(there, X, np.inf).min(axis=0, initial=np.inf))
        self.high = np.maximum(self.high, np.where(there, X, -np.inf).max(axis=0, initial=-np.inf))
        known = np.where(there, X, 0.0)
        # At a smaller size, as `Numbers` learns from rows in memory: squares would overflow.
        size, counts = np.maximum(np.abs(known).max(axis=0, initial=0.0), np.finfo(float).tiny), there.sum(axis=0)
        mean = (known / size).sum(axis=0) / np.maximum(counts, 1)
        spread = np.sqrt((np.where(there, known / size - mean, 0.0) ** 2).sum(axis=0) / np.maximum(counts, 1))
        self.parts.append((counts.astype(float), mean * size, spread * size))

    def numbers(self, scaled: bool) -> Numbers:
        """What was learned: a missing value counts as the median."""
        middle = np.array([sketch.median() for sketch in self.sketches])
        holes = np.flatnonzero(self.missing)
        parts = [*self.parts, (self.missing, middle, np.zeros(len(middle)))]
        counts, means, spreads = (np.array(each) for each in zip(*parts, strict=True))
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in (self.low, self.high))
        size = np.maximum(np.maximum(np.abs(low), np.abs(high)), np.finfo(float).tiny)
        total = np.maximum(counts.sum(axis=0), 1)
        mean = (counts * (means / size)).sum(axis=0) / total
        squares = counts * ((spreads / size) ** 2 + (means / size - mean) ** 2)
        spread = np.sqrt(squares.sum(axis=0) / total)
        return Numbers.of_moments(middle, holes, (mean * size, spread * size, size, low, high), scaled)


class WordSums:
    """The rows and the sums of targets of every word of a column, by fold."""

    def __init__(self, outputs: int):
        self.names = [f"output {k}" for k in range(outputs)]
        self.missing, self.others = 0, False
        schema = {"value": pl.String, "fold": pl.Int64, "rows": pl.Int64} | dict.fromkeys(self.names, pl.Float64)
        self._rows = pl.DataFrame(schema=schema)

    def add(self, column: pl.Series, fold: Folds, outputs: Array) -> None:
        """Take in the words of some rows; those that are missing are counted under None."""
        self.missing += column.null_count()
        values = {name: outputs[:, k] for k, name in enumerate(self.names)}
        block = pl.DataFrame({"value": column, "fold": fold, "rows": np.ones(len(fold), np.int64), **values})
        self._rows = _summed(pl.concat([self._rows, _summed(block)]))
        words = self.counts()
        if words.height > 2 * MOST_WORDS:
            self.others, kept = True, words.head(MOST_WORDS)["value"]
            known = pl.when(pl.col("value").is_in(kept.implode())).then(pl.col("value"))
            self._rows = _summed(self._rows.with_columns(value=known))

    def counts(self) -> pl.DataFrame:
        """The words and their rows, the most frequent first."""
        counts = self._rows.drop_nulls("value").group_by("value").agg(pl.col("rows").sum())
        return counts.sort(["rows", "value"], descending=[True, False])

    def tables(self) -> tuple[tuple[str, ...], Array, Array]:
        """The words in order, and the sums and the counts of rows, folds x words (x outputs); last what is no word."""
        kept = tuple(self._rows["value"].drop_nulls().unique().sort().to_list())
        codes = np.minimum(code_words(self._rows["value"], kept), len(kept))
        fold, count = self._rows["fold"].to_numpy(), len(kept) + 1
        sums, counts = np.zeros((FOLDS, count, len(self.names))), np.zeros((FOLDS, count))
        np.add.at(counts, (fold, codes), self._rows["rows"].to_numpy())
        np.add.at(sums, (fold, codes), self._rows.select(self.names).to_numpy())
        return kept, sums, counts


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """The sums of equal words of a fold, added in the order of the rows: Polars would add in that of its threads."""
    word = rows["value"].cast(pl.Categorical).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    place = word * FOLDS + rows["fold"].to_numpy()
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-2 * FOLDS))
    ordered = rows[order]
    sums = {name: np.add.reduceat(ordered[name].to_numpy(), starts) for name in rows.columns[2:] if len(starts)}
    return ordered[starts].with_columns(**sums)


class FoldDraws:
    """The fold of every row, in the order of the rows: the same for any blocks."""

    def __init__(self):
        self._random = np.random.default_rng(0)

    def __call__(self, rows: int) -> Folds:
        """The folds of the next rows."""
        return (FOLDS * self._random.random(rows)).astype(np.int64)


def outputs_of(y: Array, classes: int | None) -> Array | None:
    """Targets as numbers whose means can be taken: themselves, or an indicator of each class number but 0."""
    if classes is None:
        return y[:, None]
    return (y[:, None] == np.arange(1, max(classes, 2))).astype(float) if classes <= MOST_OUTPUTS else None


class OwnEncoder:
    """An encoder that has learned from blocks, for these very rows: their means of words are those of other folds.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted on some of the rows; it stays as it is.
    blocks : iterable of (frame, array)
        The features of all rows, and their targets.
    classes : int or None
        The number of classes that the targets are the numbers of.

    Attributes
    ----------
    encoder : TableEncoder
        The one that has learned from all rows, for others.
    """

    def __init__(self, encoder: TableEncoder, blocks: Iterable[tuple[pl.DataFrame, Array]], classes: int | None):
        learned, draw, rows = copy(encoder), FoldDraws(), 0
        known = outputs_of(np.empty(0), classes)
        width = 1 if known is None else known.shape[1]
        numbers = NumberSums(len(encoder.numbers_.middle))
        words = [WordSums(width) for _ in encoder._coded]
        for frame, y in blocks:
            frame = encoder.schema.features(frame)
            numbers.add(encoder._numbers(frame))
            fold, outputs = draw(frame.height), outputs_of(y, classes)
            for name, sums in zip(encoder._coded, words, strict=True):
                sums.add(frame[name], fold, np.zeros((frame.height, 1)) if outputs is None else outputs)
            rows += frame.height
        learned.numbers_ = numbers.numbers(encoder.scale)
        counted = [sums.counts() for sums in words]
        learned.words_ = Words.of_counts(
            counted,
            [sums.others for sums in words],
            [sums.missing for sums in words],
            encoder.max_categories,
            least_rows(rows),
        )
        crowded = [
            each.height + (sums.missing > 0) > encoder.max_categories for each, sums in zip(counted, words, strict=True)
        ]
        many = [k for k, full in enumerate(crowded) if full and known is not None]
        learned.many_ = [encoder._coded[k] for k in many]
        learned.means_, self._seen = Means.of_sums([words[k].tables() for k in many])
        learned._name(width)
        self.encoder, self._draw = learned, FoldDraws()

    def transform(self, frame: pl.DataFrame) -> Any:
        """Encode the next of the rows that were learned from; they come in the same order."""
        frame, fold = self.encoder.schema.features(frame), self._draw(frame.height)
        means = [np.empty((frame.height, 0))]
        for name, kept, seen in zip(self.encoder.many_, self.encoder.means_.levels, self._seen, strict=True):
            means.append(seen[fold, np.minimum(code_words(frame[name], kept), len(kept))])
        return self.encoder._joined(frame, np.hstack(means))
