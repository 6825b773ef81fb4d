"""Rows in blocks as a design: every product is one pass, in which a block is a dense design of its own."""

from __future__ import annotations

from collections.abc import Callable
from operator import iand
from typing import Any, cast

import numpy as np

from empirisk.linalg.design import Array, DenseDesign, Design, local_sums
from empirisk.scale.blocks import Blocked, TableRows, add, chained, left_behind


class BlockedDesign(Design):
    """A = X - 1 shift', of which a block of rows is in memory at a time.

    Parameters
    ----------
    rows : Rows
        X, where it lies.
    shift : array, optional
        What is subtracted from every row.
    """

    in_memory = False

    def __init__(self, rows: TableRows, shift: Array | None = None):
        self.rows_there, self.place, self.shift = rows, rows.place, shift
        self.shape = (rows.shape[0], rows.shape[1])

    def __reduce__(self):
        return left_behind, ()

    @property
    def rowspace(self):
        return self.place

    @property
    def remark(self):
        blocks = len(self.place.lengths)
        return f"{self.place.passes} passes over {self.shape[0]} rows in {blocks} block{'s' if blocks > 1 else ''}"

    def _run(self, function: Callable[..., Any], *vectors: Any, outputs: int = 0, combine: Any = None) -> Any:
        """function(design of a block, *blocks) for all blocks, as `Place.run`."""
        shift = self.shift
        return self.place.run(
            lambda X, *parts: function(DenseDesign(X, shift), *parts),
            self.rows_there,
            *vectors,
            outputs=outputs,
            combine=combine,
        )

    def dot(self, w):
        return self._run(lambda A: A.dot(w), outputs=1)

    def predict(self, w, b):
        return self._run(lambda A: A.predict(w, b), outputs=1)

    def tdot(self, u):
        return self._run(lambda A, u: A.tdot(u), u, combine=add)

    def predict_and_correlate(self, w, b, slopes, *vectors):
        return self._run(
            lambda A, *parts: A.predict_and_correlate(w, b, slopes, *parts), *vectors, outputs=2, combine=add
        )

    def local_sums(self, w, b, model, *vectors, outputs=0):
        def run(A: DenseDesign, *parts: Array) -> tuple:
            kept, sums = local_sums(A, w, b, model, *parts)
            return (*kept, sums) if outputs else sums

        found = self._run(run, *vectors, outputs=outputs, combine=add)
        return (found[:-1], found[-1]) if outputs else ((), found)

    def sum_of_predictions(self, w, b, function, *vectors):
        return self._run(lambda A, *parts: function(A.predict(w, b), *parts), *vectors, combine=add)

    def gram(self, weights=None):
        return self._weighted(DenseDesign.gram, weights)

    def squared_columns(self, weights=None):
        return self._weighted(DenseDesign.squared_columns, weights)

    def _weighted(self, sums: Callable[..., Array], weights: Any) -> Array:
        """The sums of a block, with or without weights, over all blocks."""
        return self._run(sums, *(() if weights is None else (weights,)), combine=add)

    def squared_rows(self):
        return self._run(lambda A: A.squared_rows(), outputs=1)

    def columns(self, chosen):
        return self._run(lambda A: A.columns(chosen), outputs=1)

    def rows(self, chosen):
        if isinstance(chosen, Blocked):
            return BlockedDesign(cast(TableRows, self.place.filtered(chosen)(self.rows_there)), self.shift)
        # Some rows of every block, in memory: copies, for a view would keep its block.
        some = self.place.run(lambda X: [np.array(X[chosen])], self.rows_there, combine=chained)
        return DenseDesign(np.concatenate(some), self.shift)

    def centred(self):
        def sums(X: Array) -> tuple[Array, list[Array]]:
            return DenseDesign(X).tdot(np.ones(len(X))), [np.array(X[0], float)]

        total, firsts = self.place.run(sums, self.rows_there, combine=add)
        means, first = total / self.shape[0], firsts[0]
        # A constant column is shifted to exact zeros, as in memory.
        near = np.flatnonzero(np.isclose(means, first, rtol=1e-9, atol=0.0) & (np.array(firsts) == first).all(axis=0))
        if len(near):
            same = self.place.run(lambda X: (X[:, near] == first[near]).all(axis=0), self.rows_there, combine=iand)
            means[near[same]] = first[near[same]]
        return BlockedDesign(self.rows_there, means)

    def shifted(self, shift):
        return BlockedDesign(self.rows_there, shift)
