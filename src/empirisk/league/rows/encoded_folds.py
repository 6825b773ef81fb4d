"""The training part of a table in folds, encoded once for all candidates."""

import time
from collections import defaultdict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from empirisk.league.records import ENOUGH_JUDGES
from empirisk.league.rows.encodings import AND, NUMBERS, different, encoders, encoding_of
from empirisk.settings import settings
from empirisk.tables.encoding.joined import JoinedEncoder, side_by_side

#: Rows of each class that a sample has, if there are as many: fewer are in too few folds of a calibration.
MIN_CLASS_ROWS = 5
#: Share of the memory that may be used in which encoded folds are kept: machines need the rest.
KEPT_SHARE = 1 / 4


class EncodedFolds:
    """Training and validation rows of every fold, encoded once and shared by all candidates, while memory allows.

    Parameters
    ----------
    frame, y
        The training part: columns without the target, and the target as class numbers or numbers.
    encoder : transformer
        Fitted anew on the training rows of every fold.
    folds : list of (train, validation)
        Row numbers.
    seed : int
        Draws the rows of a part.

    Attributes
    ----------
    encoders : dict
        The encoder of each encoding.
    seconds : float
        The longest that an encoding took.
    """

    def __init__(self, frame: Any, y: NDArray, encoder: Any, folds: Sequence[tuple[NDArray, NDArray]], seed: int = 0):
        self.frame, self.y, self.encoder, self.folds, self.seed = frame, y, encoder, list(folds), seed
        self.encoders = encoders(encoder)
        self.seconds = 0.0
        self._kept: dict[tuple[int, str], tuple] = {}
        self._locks: defaultdict[tuple[int, str], Lock] = defaultdict(Lock)
        self._bytes = 0

    @property
    def rows(self) -> int:
        """Training rows of the first fold."""
        return len(self.folds[0][0])

    @property
    def judges(self) -> int:
        """Validation rows of the first fold."""
        return len(self.folds[0][1])

    @property
    def total(self) -> int:
        """Training rows altogether."""
        return len(self.y)

    def __len__(self) -> int:
        return len(self.folds)

    def encoding(self, wanted: str) -> str:
        """An encoding, or several, as that of numbers where it would be the same."""
        return different(wanted, self.encoders)

    def part(self, rows: int) -> "EncodedFolds":
        """The first fold alone, with so many of its training rows at most, and enough rows that judge."""
        train, validation = self.folds[0]
        if rows >= len(train):
            whole = EncodedFolds(self.frame, self.y, self.encoder, self.folds[:1], self.seed)
            whole._kept, whole._locks = self._kept, self._locks  # the first fold is the same
            return whole
        judges = sample(self.y[validation], min(ENOUGH_JUDGES, 2 * rows), self.seed, validation)
        fold = sample(self.y[train], rows, self.seed, train), judges
        return EncodedFolds(self.frame, self.y, self.encoder, [fold], self.seed)

    def encoded(self, number: int, encoding: str = NUMBERS) -> bool:
        """Whether a fold is encoded already."""
        return all((number, one) in self._kept for one in self.encoding(encoding).split(AND))

    def fold(self, number: int, encoding: str = NUMBERS) -> tuple[Any, NDArray, Any, NDArray]:
        """Encoded training rows, their targets, encoded validation rows, their targets."""
        parts = self._parts(number, encoding)
        if len(parts) == 1:
            return parts[0][1:]
        X, X_new = (side_by_side([part[place] for part in parts]) for place in (1, 3))
        return X, parts[0][2], X_new, parts[0][4]

    def encoder_of(self, number: int, encoding: str) -> Any:
        """The encoder of a fold, fitted; of several encodings one that joins them."""
        fitted = [part[0] for part in self._parts(number, encoding)]
        names = self.encoding(encoding).split(AND)
        return fitted[0] if len(fitted) == 1 else JoinedEncoder.of(dict(zip(names, fitted, strict=True)))

    def pipeline(self, number: int, machine: Any) -> Pipeline:
        """The encoder of a fold, fitted, and a machine that learned from it."""
        return Pipeline([("table", self.encoder_of(number, encoding_of(machine))), ("machine", machine)])

    def _parts(self, number: int, encoding: str) -> list[tuple[Any, Any, NDArray, Any, NDArray]]:
        """A fold in each of the encodings."""
        return [self._encoded(number, one) for one in self.encoding(encoding).split(AND)]

    def _encoded(self, number: int, encoding: str) -> tuple[Any, Any, NDArray, Any, NDArray]:
        key = number, encoding
        with self._locks[key]:  # who needs the same rows waits for them
            return self._kept.get(key) or self._encode(key)

    def _encode(self, key: tuple[int, str]) -> tuple[Any, Any, NDArray, Any, NDArray]:
        """Encode a fold, and keep it while there is room."""
        begin = time.perf_counter()
        train, validation = self.folds[key[0]]
        encoder = clone(self.encoders[key[1]])
        # The encoding of training rows may differ: it must not know their own targets.
        encoded = encoder.fit_transform(self.frame[train], self.y[train]), encoder.transform(self.frame[validation])
        self.seconds = max(self.seconds, time.perf_counter() - begin)
        self._bytes += sum(getattr(X, "nbytes", 0) or X.data.nbytes for X in encoded)
        parts = encoder, encoded[0], self.y[train], encoded[1], self.y[validation]
        if self._bytes <= KEPT_SHARE * settings().memory:
            self._kept[key] = parts
        return parts


def sample(y: NDArray, count: int, seed: int, rows: NDArray) -> NDArray:
    """So many of the rows at most, drawn with the same seed; of classes each has its share, and a few rows at least.

    >>> sample(np.array(["a", "b"] * 50), 10, 0, np.arange(100)).shape
    (10,)
    """
    if count >= len(rows):
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))
    if y.dtype.kind == "f":
        return np.sort(rows[order[:count]])
    _, codes, sizes = np.unique(y[order], return_inverse=True, return_counts=True)
    # The place of each row among those of its class, in the order drawn.
    by_class = np.argsort(codes, kind="stable")
    place = np.empty(len(rows), dtype=np.int64)
    place[by_class] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    wanted = np.maximum(np.round(sizes * count / len(rows)), MIN_CLASS_ROWS)
    return np.sort(rows[order[place < wanted[codes]]])
