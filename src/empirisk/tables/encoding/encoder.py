"""The encoder: a table in, numbers out, everything learned from the training rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_count
from empirisk.contract.inputs import class_codes, sorted_classes
from empirisk.names import Estimator
from empirisk.tables.encoding.categories import OTHER, Means, Words
from empirisk.tables.encoding.numbers_and_texts import Numbers
from empirisk.tables.understanding.column import Column
from empirisk.tables.understanding.coordinates import coordinate_pairs
from empirisk.tables.understanding.schema import Schema

TREE_WORDS = 1000  # of a column of text: trees look at every one of them, in every row
MOST_OUTPUTS = 10  # classes up to which mean targets of words are used
WIDE, THIN = 200, 0.2  # a table with more columns, of which fewer are filled, is kept sparse


def _wrong_blocks(its: Mapping[str, Any]) -> str | None:
    """What is wrong where the blocks of a loaded encoder do not go with its schema."""
    schema, numbers, words, blocks = (its[name] for name in ("schema", "numbers_", "words_", "blocks_"))
    coded = schema.named(lambda kind: kind.coded)
    plain = sum(len(column.type.parts) for column in schema.used)
    indicators = sum(len(column.type.indicators) for column in schema.used)
    found = len(numbers.middle), len(words.levels), its["n_features_in_"]
    if found != (plain, len(coded), len(schema.used)) or len(blocks) != len(_in_blocks(schema)):
        return "schema has other columns than the blocks"
    if not set(its["many_"]) <= set(coded):
        return "many_ names no column of words"
    means = sum(table.shape[1] for table in its["means_"].means)
    words_width = len(coded) if its["codes"] else int(words.widths.sum())
    width = plain + len(numbers.flagged) + means + indicators + words_width
    width += sum(len(block.names()) for block in blocks)
    return None if width == len(its["names_"]) else "names_ has not one name for each number"


def _in_blocks(schema: Schema) -> list[Column]:
    """The columns that have a block of their own: neither numbers nor single words."""
    return [column for column in schema.used if not column.type.parts and not column.type.coded]


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, Estimator):
    """Turn the columns of a table into numbers, as learned from the training rows.

    Numbers are filled with the median, flagged where missing, centred and scaled. Dates become days, the phase of the
    year and of the day, and the weekday. Words become indicators of the frequent ones, rare and unseen ones sharing
    one; a column of more words than that also gives the mean target of each word, of other folds for training rows.
    Texts become tf-idf weights of their words, and of the groups of two to four letters in them; several values in a
    cell become an indicator each; sequences become letters by their place, and counts of short pieces. What a column
    becomes, its kind says (`empirisk.tables.kinds`).

    Parameters
    ----------
    schema : Schema
        What the columns hold, from `understand`.
    max_categories : int
        Most indicators of a column of words.
    max_words, max_letters : int
        Most words of a column of text, and most groups of letters; 0 for none of these.
    scale : bool
        Whether numbers are centred and scaled; trees do not need it.
    sparse : bool or "auto"
        Whether the result is a sparse matrix; "auto" decides by its width and how full it is.
    codes : bool
        Whether a column of words becomes one of codes, NaN where missing, as trees like them; they are at the places
        `coded_places`, and the result is no sparse matrix.
    letters : bool
        Whether a column of sequences becomes the code points of their letters, as kernels on strings like them; they
        are at the places `spelled_places`, and the result is no sparse matrix.

    Attributes
    ----------
    names_ : list of str
        Names of the numbers.
    sources_ : array of int
        For each of them, the place of its column among ``schema.used``.
    sparse_ : bool
        Whether the result is sparse.

    Examples
    --------
    >>> table = {"age": [30.0, None, 22.0, 51.0], "town": ["Ulm", "Ulm", "Bonn", None]}
    >>> encoder = er.tables.TableEncoder(er.tables.understand(table))
    >>> encoder.fit_transform(table).round(2)
    array([[-0.3 ,  0.  ,  1.  ,  0.  ,  0.  ],
           [-0.3 ,  1.  ,  1.  ,  0.  ,  0.  ],
           [-1.05,  0.  ,  0.  ,  1.  ,  0.  ],
           [ 1.65,  0.  ,  0.  ,  0.  ,  1.  ]])
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age missing', 'town=Ulm', 'town=Bonn', 'town=(missing)']
    """

    _state = state.State(
        _wrong_blocks,
        schema=state.part(Schema),
        codes=state.optional(state.flag()),  # older files have none
        letters=state.optional(state.flag()),
        max_letters=state.optional(state.whole()),
        n_features_in_=state.size("columns"),
        numbers_=state.part(Numbers),
        words_=state.part(Words),
        blocks_=state.several(state.part(has="names")),
        many_=state.names("many"),
        means_=state.part(Means, columns="many"),
        names_=state.names("width"),
        sources_=state.array("i", "width", below="columns"),
        sparse_=state.flag(),
    )

    schema: Schema
    _: KW_ONLY
    max_categories: int = 30
    max_words: int = 5000
    max_letters: int = 5000
    scale: bool = True
    sparse: bool | str = "auto"
    codes: bool = False
    letters: bool = False

    def for_strings(self) -> TableEncoder:
        """The encoder that kernels on strings like; itself where there are no sequences."""
        return clone(self).set_params(letters=True) if self.schema.named(lambda kind: kind.spelled) else self

    def for_trees(self) -> TableEncoder:
        """The encoder that trees like: with codes of categories, or fewer columns of text; itself where neither is."""
        if self.schema.named(lambda kind: kind.wide):
            return clone(self).set_params(max_words=min(self.max_words, TREE_WORDS), max_letters=0)
        return clone(self).set_params(codes=True) if self.schema.named(lambda kind: kind.coded) else self

    def categories(self) -> list[NDArray[Any] | None]:
        """For each of the numbers that is a code the words that it stands for; None for the others."""
        found: list[NDArray[Any] | None] = [None] * len(self.names_)
        for place, kept in zip(self.coded_places, self.words_.levels, strict=False):
            found[place] = np.array([*kept, OTHER], dtype=object)
        return found

    @property
    def coded_places(self) -> list[int]:
        """Which of the numbers are codes of words."""
        first = sum(len(column.type.parts) for column in self.schema.used)
        return list(range(first, first + len(self._coded))) if self.codes else []

    @property
    def spelled_places(self) -> list[list[int]]:
        """For each column of sequences, which of the numbers are its letters."""
        names = self.schema.named(lambda kind: kind.spelled) if self.letters else []
        used = [column.name for column in self.schema.used]
        return [np.flatnonzero(self.sources_ == used.index(name)).tolist() for name in names]

    @property
    def coordinate_places(self) -> list[tuple[int, int]]:
        """Which of the numbers are a latitude, and the longitude beside it."""
        place = {column.name: number for number, column in enumerate(self.schema.used)}

        def first(name: str) -> int:
            """The number itself, which comes before the flag of missing ones."""
            return int(np.argmax(self.sources_ == place[name]))

        return [(first(one), first(other)) for one, other in coordinate_pairs(self.schema)]

    def levels(self, name: str) -> list[str]:
        """The frequent words of a column, the most frequent first; none where it is no column of words."""
        return list(self.words_.levels[self._coded.index(name)]) if name in self._coded else []

    def column_blocks(self) -> Iterator[tuple[str, Any]]:
        """The columns that have a block of their own, such as texts, with it."""
        return zip((column.name for column in _in_blocks(self.schema)), self.blocks_, strict=True)

    def fit(self, X: Any, y: ArrayLike | None = None) -> TableEncoder:
        """Learn from the rows of a table; the target serves the means of words."""
        self._learn(X, y)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **_: Any) -> Any:
        """Learn from the rows and encode them; the means of words are those of other folds."""
        return self._learn(X, y)

    def transform(self, X: Any) -> Any:
        """Encode rows; words not met in training are "other", and columns that lack are an error with the name."""
        check_is_fitted(self)
        frame = self.schema.features(X)
        return self._joined(frame, self.means_.transform([frame[name] for name in self.many_], frame.height))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """The names of the numbers."""
        check_is_fitted(self)
        return np.array(self.names_, dtype=object)

    @state.renewing
    def _learn(self, X: Any, y: Any) -> Any:
        for name, low in (("max_categories", 1), ("max_words", 1), ("max_letters", 0)):
            check_count(name, getattr(self, name), low)
        frame = self.schema.features(X)
        rows = frame.height
        words = [frame[name] for name in self._coded]
        least = least_rows(rows)
        self.numbers_ = Numbers.fit(self._numbers(frame), self.scale)
        self.words_ = Words.fit(words, self.max_categories, least)
        self.blocks_ = tuple(
            column.type.fit_block(column, frame[column.name], self, least) for column in _in_blocks(self.schema)
        )
        outputs = _outputs(y)
        crowded = [column.name for column in words if column.n_unique() > self.max_categories]
        self.many_ = crowded if outputs is not None else []
        many = [frame[name] for name in self.many_]
        self.means_, means = Means.fit(many, np.zeros((rows, 1)) if outputs is None else outputs, 0)
        self._name(1 if outputs is None else outputs.shape[1])
        self.n_features_in_ = len(self.schema.used)
        self.feature_names_in_ = np.array([column.name for column in self.schema.used], dtype=object)
        thin = len(self.names_) > WIDE and self._fill(frame) < THIN
        self.sparse_ = bool(thin if self.sparse == "auto" else self.sparse) and not self.codes and not self.letters
        return self._joined(frame, means)

    @property
    def _coded(self) -> list[str]:
        """The columns of words."""
        return self.schema.named(lambda kind: kind.coded)

    @property
    def _numeric(self) -> list[Column]:
        """The columns that become numbers: first those that are numbers, then those that have several."""
        return sorted((column for column in self.schema.used if column.type.parts), key=_parts)

    def _numbers(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        """Numbers, truth values and the numbers in dates, NaN where missing."""
        found = [np.empty((frame.height, 0))]
        for _, columns in groupby(self._numeric, key=_parts):
            alike = list(columns)
            found.append(alike[0].type.numbers([frame[column.name] for column in alike]))
        numbers = np.hstack(found)
        infinite = np.isinf(numbers)
        return np.where(infinite, np.nan, numbers) if infinite.any() else numbers

    def _indicators(self, frame: pl.DataFrame) -> list[NDArray[np.float64]]:
        """The indicators of columns whose kind has some."""
        return [column.type.indicate([frame[column.name]]) for column in self.schema.used if column.type.indicators]

    def _joined(self, frame: pl.DataFrame, means: NDArray[np.float64]) -> Any:
        """All blocks side by side."""
        numbers, flags = self.numbers_.transform(self._numbers(frame))
        words = [frame[name] for name in self._coded]
        codes = [self.words_.codes(words, frame.height)] if self.codes else []
        dense = [numbers, *codes, flags, means, *self._indicators(frame)]
        thin = self._thin(frame)
        if self.sparse_:
            return sparse.hstack([sparse.csr_matrix(np.hstack(dense)), *thin], format="csr")
        return np.hstack([*dense, *(block.toarray() for block in thin)])

    def _thin(self, frame: pl.DataFrame) -> list[Any]:
        """The indicators of words and the weights of texts."""
        coded = [] if self.codes else [self.words_.transform([frame[name] for name in self._coded], frame.height)]
        return coded + [block.transform(frame[name]) for name, block in self.column_blocks()]

    def _fill(self, frame: pl.DataFrame) -> float:
        """About which share of the numbers is not zero: words give one for each column, texts one for each word."""
        indicated = sum(bool(column.type.indicators) for column in self.schema.used)
        dense = len(self.numbers_.middle) + len(self.many_) + indicated
        head = frame.head(200)  # enough for a share of two digits
        thin = sum(block.nnz for block in self._thin(head))
        return (dense + thin / max(head.height, 1)) / max(len(self.names_), 1)

    def _name(self, outputs: int) -> None:
        """Names and sources of all numbers, in the order of the blocks."""
        parts = [
            (f"{column.name} {part}" if part else column.name, column.name)
            for column in self._numeric
            for part in column.type.parts
        ]
        pairs = [*parts, *((name, name) for name in self._coded if self.codes)]
        pairs += [(f"{parts[k][0]} missing", parts[k][1]) for k in self.numbers_.flagged.tolist()]
        many = [f" {k}" for k in range(outputs)] if outputs > 1 else [""]
        pairs += [(f"{name} mean target{k}", name) for name in self.many_ for k in many]
        for column in self.schema.used:
            pairs += [(f"{column.name} {indicator}", column.name) for indicator in column.type.indicators]
        if not self.codes:
            widths = zip(self._coded, self.words_.widths, strict=True)
            sources = [name for name, width in widths for _ in range(width)]
            pairs += zip(self.words_.names(self._coded), sources, strict=True)
        for name, block in self.column_blocks():
            pairs += [(f"{name}: {word}", name) for word in block.names()]
        place = {column.name: number for number, column in enumerate(self.schema.used)}
        self.names_ = [name for name, _ in pairs]
        self.sources_ = np.array([place[source] for _, source in pairs], dtype=np.int64)


def least_rows(rows: int) -> int:
    """Rows that a word of a category must have to be told from others: few enough not to be lost among them."""
    return 1 if rows < 50 else 2 if rows < 500 else max(3, rows // 2000)


def _parts(column: Column) -> int:
    return len(column.type.parts)


def _outputs(y: Any) -> NDArray[np.float64] | None:
    """The target as numbers whose means can be taken: itself, or an indicator of each class but the first."""
    if y is None:
        return None
    y = np.asarray(y)
    if y.dtype.kind == "f":
        return y.reshape(len(y), -1).astype(np.float64)
    classes = sorted_classes(y, np.ones(len(y)))
    if len(classes) > MOST_OUTPUTS:
        return None
    codes = class_codes(y, classes)
    return (codes[:, None] == np.arange(1, max(len(classes), 2))).astype(np.float64)
