"""Several encodings of a table side by side, for votes whose machines read different ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.names import Estimator
from empirisk.tables.encoding.encoder import TableEncoder
from empirisk.tables.understanding.schema import Schema


@dataclass(eq=False, repr=False)
class JoinedEncoder(TransformerMixin, Estimator):
    """What several encoders make of the columns of a table, side by side.

    Parameters
    ----------
    encoders : dict of TableEncoder
        Encoders of the same columns, by name.

    Attributes
    ----------
    encoders_ : list of TableEncoder
        The fitted ones, in this order.

    Examples
    --------
    >>> table = {"town": ["Ulm", "Bonn"] * 30}
    >>> words = er.tables.TableEncoder(er.tables.understand(table))
    >>> joined = JoinedEncoder({"numbers": words, "codes": words.for_trees()}).fit(table)
    >>> joined.transform({"town": ["Ulm"]})
    array([[0., 1., 1.]])
    >>> joined.reader("codes").transform(joined.transform({"town": ["Ulm"]}))
    array([[1.]])
    """

    _state = state.State(
        filled=("encoders",),
        n_features_in_=state.size("columns"),
        encoders_=state.several(state.part(TableEncoder), "encoders"),
    )

    encoders: dict[str, TableEncoder]

    def fit(self, X: Any, y: ArrayLike | None = None) -> JoinedEncoder:
        """Let each of them learn from the rows of a table."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **_: Any) -> Any:
        """Let each of them learn from the rows, and encode them."""
        fitted: list[Any] = [clone(one) for one in self.encoders.values()]
        encoded = [one.fit_transform(X, y) for one in fitted]
        self._take(fitted)
        return side_by_side(encoded)

    @classmethod
    def of(cls, fitted: Mapping[str, TableEncoder]) -> JoinedEncoder:
        """Encoders that have learned already, as they are."""
        unfitted: dict[str, Any] = {name: clone(one) for name, one in fitted.items()}
        found = cls(unfitted)
        found._take(list(fitted.values()))
        return found

    def _take(self, fitted: list[TableEncoder]) -> None:
        self.encoders_ = fitted
        self.n_features_in_, self.feature_names_in_ = fitted[0].n_features_in_, fitted[0].feature_names_in_

    def transform(self, X: Any) -> Any:
        """Encode rows."""
        check_is_fitted(self)
        return side_by_side([one.transform(X) for one in self.encoders_])

    def reader(self, name: str) -> EncodingReader:
        """A step that keeps what one of the encoders made."""
        place, widths = list(self.encoders).index(name), [len(one.names_) for one in self.encoders_]
        first, one = sum(widths[:place]), self.encoders_[place]
        return EncodingReader(first, widths[place], one.sparse_).fit(np.zeros((1, sum(widths))))

    @property
    def schema(self) -> Schema:
        """What the columns hold."""
        return self.encoders_[0].schema

    @property
    def names_(self) -> list[str]:
        """Names of the numbers: those of one column may be there twice."""
        return [name for one in self.encoders_ for name in one.names_]

    @property
    def sources_(self) -> NDArray[np.int64]:
        """For each of the numbers, the place of its column among ``schema.used``."""
        return np.concatenate([one.sources_ for one in self.encoders_])

    @property
    def sparse_(self) -> bool:
        """Whether the result is sparse: whether that of one of them is."""
        return any(one.sparse_ for one in self.encoders_)

    def levels(self, name: str) -> list[str]:
        """The frequent words of a column, the most frequent first; none where it is no column of words."""
        return self.encoders_[0].levels(name)

    def column_blocks(self) -> Iterator[tuple[str, Any]]:
        """The columns that have a block of their own, such as texts, with the first that one of them has."""
        return self.encoders_[0].column_blocks()

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """The names of the numbers."""
        check_is_fitted(self)
        return np.array(self.names_, dtype=object)


def _too_wide(its: Mapping[str, Any]) -> str | None:
    """What is wrong where a loaded reader would keep numbers that are not there."""
    return "count goes beyond the columns" if its["first"] + its["count"] > its["n_features_in_"] else None


@dataclass(eq=False, repr=False)
class EncodingReader(TransformerMixin, Estimator):
    """Keep the numbers of one of several encodings that are side by side.

    Parameters
    ----------
    first, count : int
        The place of the first of them, and how many they are.
    sparse : bool
        Whether they may stay sparse.

    Examples
    --------
    >>> EncodingReader(1, 2).fit_transform(np.array([[1.0, 2.0, 3.0]]))
    array([[2., 3.]])
    """

    _state = state.State(
        _too_wide,
        first=state.whole(),
        count=state.whole(),
        sparse=state.flag(),
        n_features_in_=state.size("columns"),
        sizes={"width": lambda its: its["count"]},
    )

    first: int
    count: int
    sparse: bool = False

    def fit(self, X: Any, y: Any = None) -> EncodingReader:
        """Note the width of all of them."""
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The numbers that are kept."""
        kept = X[:, self.first : self.first + self.count]
        return kept.toarray() if sparse.issparse(kept) and not self.sparse else kept


def side_by_side(encoded: Sequence[Any]) -> Any:
    """Encoded tables as one, which is sparse where one of them is."""
    if any(sparse.issparse(X) for X in encoded):
        return sparse.hstack([sparse.csr_matrix(X) for X in encoded], format="csr")
    return np.hstack(encoded)
