"""A table whose rows lie in blocks somewhere: rows, targets and weights, ready for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.inputs import check_weight_range
from empirisk.errors import EmpiriskError
from empirisk.scale.blocks import Blocked, ConstantVector, Mapped, Place, TableRows, add, chained
from empirisk.scale.disk import FileBlock
from empirisk.settings import settings

#: The type of targets that are numbers.
DOUBLE = np.dtype(np.float64)
#: Classes that a target may have: more are numbers that a regressor should learn.
MOST_CLASSES = 10_000
#: Rows of a sample in memory, and the share of the memory budget that they may take.
SAMPLE_ROWS, SAMPLE_SHARE = 100_000, 16


@dataclass(frozen=True)
class BlockedTable:
    """Rows in blocks, with their targets and weights.

    Attributes
    ----------
    rows : Rows
        The numbers of the columns.
    y : Blocked or None
        The targets: numbers, or the places of labels among ``labels``.
    labels : array or None
        What the numbers in y stand for, where they are no numbers themselves.
    kind : numpy.dtype
        The type that the targets had.
    weights : Blocked
        The weights of the rows.
    names : list of str or None
        The names of the columns.
    """

    rows: TableRows
    y: Blocked | None
    weights: Blocked
    labels: NDArray[Any] | None = None
    kind: np.dtype = DOUBLE
    names: list[str] | None = None

    @property
    def place(self) -> Place:
        """Where they lie."""
        return self.rows.place

    def blocks(self) -> Iterator[NDArray]:
        """The rows of files, block by block."""
        for handle, length in zip(self.rows.base, self.place.lengths, strict=True):
            yield self.rows.read(handle.load() if isinstance(handle, FileBlock) else handle, length)

    def targets(self) -> Blocked:
        """The targets, which must be there."""
        if self.y is None:
            raise EmpiriskError("y is missing: name the column of the targets, as in er.scan(files, target='y').")
        return self.y

    def labelled(self, y: NDArray | None) -> NDArray:
        """Targets in memory as they were given."""
        if y is None:
            raise EmpiriskError("y is missing: name the column of the targets, as in er.scan(files, target='y').")
        return y.astype(self.kind) if self.labels is None else self.labels[y.astype(int)]

    def counting(self) -> BlockedTable:
        """The table without the rows of weight zero."""
        return self.counting_with(None)[0]

    def counting_with(self, vector: Blocked | None) -> tuple[BlockedTable, Blocked | None]:
        """The table without the rows of weight zero, and a vector without their entries."""
        if self.weights.min() > 0:
            return self, vector
        mask = self.place.run(lambda weights: (weights > 0).astype(float), self.weights, outputs=1)
        choose = self.place.filtered(mask)
        y = None if self.y is None else choose(self.y)
        rest = replace(self, rows=choose(self.rows), y=y, weights=choose(self.weights))
        return rest, None if vector is None else choose(vector)

    def classes(self) -> tuple[NDArray[Any], Blocked]:
        """The sorted classes, and the number of every row's class among them."""
        y = self.targets()
        found = self.place.run(_distinct, y, combine=_united)
        if len(found) > MOST_CLASSES:
            raise EmpiriskError(
                f"y holds more than {MOST_CLASSES} different values, too many to be classes; take a regressor."
            )
        codes = self.place.run(lambda y: np.searchsorted(found, y).astype(float), y, outputs=1)
        if self.labels is None:
            return found.astype(self.kind), codes
        names = self.labels[found.astype(int)]
        order = np.argsort(names, kind="stable")
        ranks = np.argsort(order).astype(float)
        return names[order], self.place.run(lambda codes: ranks[codes.astype(int)], codes, outputs=1)

    def sample(self) -> tuple[NDArray, NDArray | None, NDArray]:
        """Some rows of every block in memory, with their targets and weights."""
        room = settings().memory // (SAMPLE_SHARE * 8 * (self.rows.shape[1] + 1))
        every = max(1, -(-self.place.count // max(1, min(SAMPLE_ROWS, room))))

        def some(*parts: NDArray) -> list[tuple[NDArray, ...]]:
            return [tuple(np.array(part[::every]) for part in parts)]

        vectors = (self.rows, self.weights) if self.y is None else (self.rows, self.weights, self.y)
        found = self.place.run(some, *vectors, combine=chained)
        X, weights, *y = (np.concatenate(each) for each in zip(*found, strict=True))
        return X, y[0] if y else None, weights

    def mapped(self, transform: Callable[[NDArray], Any]) -> BlockedTable:
        """The table after a map, which is applied to each block as it is read."""
        first = self.place.run(_few, self.rows, combine=chained)
        width = int(_dense(transform(np.concatenate(first)[:2])).shape[1])
        return replace(self, rows=Mapped(self.rows, lambda X: _dense(transform(X)), width), names=None)


def _few(X: NDArray) -> list[NDArray]:
    return [np.array(X[:1])]


def _dense(matrix: Any) -> NDArray:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


def _distinct(y: NDArray) -> NDArray:
    """The different values, of which more than a few too many are not counted."""
    return np.unique(y)[: MOST_CLASSES + 1]


def _united(left: NDArray, right: NDArray) -> NDArray:
    return np.union1d(left, right)[: MOST_CLASSES + 1]


def checked_weights(weights: Blocked) -> Blocked:
    """The weights of the rows: none negative, not all zero, none without a value."""
    check_weight_range(weights.min(), weights.max())
    return weights


def ones(place: Place) -> Blocked:
    """The weight one for every row."""
    return ConstantVector(place, 1.0)


def total_weights(place: Place, codes: Blocked, weights: Blocked, classes: int) -> NDArray:
    """The weight of each class."""
    return place.run(
        lambda codes, weights: np.bincount(codes.astype(int), weights, classes), codes, weights, combine=add
    )
