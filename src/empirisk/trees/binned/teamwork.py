"""Trees of boosting: the memory that a team of threads works in, and one tree after another in it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import together
from empirisk.settings import settings
from empirisk.trees.binned.bins import BinnedRows, Binning
from empirisk.trees.binned.cuts import CATEGORICAL, DEPTH, INTS, LEFT, MONOTONE, REALS, START, STOP, VALUE, WIDTH
from empirisk.trees.binned.grow import NODES
from empirisk.trees.binned.team import CHUNKS, COUNTERS, ENDED, UNDONE
from empirisk.trees.binned.together import (
    ADD,
    ALTERNATE,
    APART,
    CHOOSE,
    DONE,
    EVERY,
    FILLING,
    FREE,
    LEAST_ROWS,
    PACK,
    PHASE,
    PIECE,
    PIECES,
    ROWS,
    SCRATCH,
    STATE,
    STEPS,
    VALUES,
    work,
)

Array = NDArray[np.float64]

POOL = 1 << 28  # bytes for histograms that are kept for subtraction
SHARE = 1 << 16  # values in the table for each thread that joins in: for less, meeting costs more than it saves
COARSE = 1 << 20  # rows from which units are so coarse that the way of rounding matters


class GrownTree(NamedTuple):
    """A tree in bins: whole numbers and reals of its nodes (see `empirisk.trees.binned.cuts`)."""

    nodes: NDArray[np.int64]
    reals: Array

    @property
    def leaves(self) -> NDArray[np.intp]:
        """The nodes that are leaves."""
        return np.flatnonzero(self.nodes[:, LEFT] < 0)


class TeamGrower:
    """Grows trees of at most ``max_leaves`` leaves on one binned table, one after the other in the same memory.

    Parameters
    ----------
    binning, table : Binning, BinnedRows
        The table in bins.
    monotone : (n_features,) int8
        Constraints on the columns.
    times : array of int32
        For how many equal rows each row stands; empty if each stands for itself.
    width : int
        The number of columns that each tree looks at.
    max_leaves : int
        The largest number of leaves.
    threads : int
        How many threads work on a tree. The result does not depend on it.
    stop : callable
        Asked now and then; true ends the growth without a tree.
    """

    def __init__(
        self,
        binning: Binning,
        table: BinnedRows,
        monotone: NDArray[np.int8],
        times: NDArray[np.int32],
        width: int,
        max_leaves: int,
        threads: int,
        stop: Callable[[], bool],
    ):
        self.table, self.times, self.stop = table, times, stop
        rows = len(table.by_row)
        self.threads = max(1, min(threads, rows * width // SHARE))
        self.kinds = np.zeros((len(binning.counts), 2), dtype=np.int64)
        self.kinds[:, CATEGORICAL], self.kinds[:, MONOTONE] = binning.categorical, monotone
        nodes = 2 * max_leaves + 1
        room = max(2, min(POOL, settings().memory // 4) // (width * WIDTH * 8))
        self._kept = min(max_leaves + 1, room)
        self._chunk = max(STEPS // width, LEAST_ROWS)
        pieces = max_leaves + rows // PIECE + 1
        self._codes = table.by_row
        self._rows, self._packed = np.empty((2, rows), dtype=np.int32), np.empty((2, rows), dtype=np.int64)
        self._histograms = np.empty((self.threads + SCRATCH + self._kept, width, WIDTH), dtype=np.int64)
        self._stamps = np.zeros(APART * self.threads, dtype=np.int64)
        self._room = np.empty((self.threads, 2, WIDTH), dtype=np.int64)
        # The rows behind those of the nodes note what each column offers the two children of a split.
        self._nodes = np.zeros((nodes + 2 * width, INTS), dtype=np.int64)
        self._reals = np.zeros((nodes + 2 * width, REALS))
        self._frontier = np.empty(nodes, dtype=np.int32)
        self._tally = np.empty((rows // self._chunk + 2, 2), dtype=np.int64)
        self._pieces, self._sums = np.empty((pieces, 3), dtype=np.int64), np.empty((pieces, 2))
        self._slots = np.empty(self._kept, dtype=np.int64)
        # Behind what the team shares, each thread keeps the number of its chunk.
        self._state = np.zeros(STATE + APART * self.threads, dtype=np.int64)
        self._counters = np.zeros(COUNTERS, dtype=np.int64)

    def grow(
        self,
        derivatives: Array,
        rows: NDArray[np.int32] | None,
        features: NDArray[np.int32],
        rules: Array,
        units: Array,
        scores: Array | None,
    ) -> GrownTree | None:
        """A tree on some rows (None: all) and columns; None if it was stopped.

        ``derivatives`` are gradient and curvature of every row, ``units`` theirs, l2 and the learning rate. Where
        ``scores`` are given, leaves get the value of a Newton step, which is added to the scores if all rows take part.
        """
        count = self._rows.shape[1] if rows is None else len(rows)
        if rows is not None:
            self._rows[0, :count] = rows
        whole = len(features) == len(self.kinds)
        self._codes = self.table.by_row if whole else np.ascontiguousarray(self.table.by_row[:, features])
        state, kept = self._state, self._kept
        state[:FILLING] = 0
        state[FILLING] += 1
        state[EVERY], state[VALUES], state[FREE] = rows is None, scores is not None, kept - 1
        state[ROWS] = count
        state[ALTERNATE] = (self.times.sum() if len(self.times) else count) > COARSE
        self._slots[: kept - 1] = np.arange(kept - 1, 0, -1) + self.threads + SCRATCH
        parts = (derivatives, features, rules, units, derivatives[0] if scores is None else scores)
        if not self._run(PACK, count // self._chunk + 1, *parts):
            return None
        size = int(state[NODES])
        return GrownTree(self._nodes[:size].copy(), self._reals[:size].copy())

    def add(
        self, tree: GrownTree, derivatives: Array, features: NDArray[np.int32], rules: Array, scores: Array
    ) -> None:
        """Add the values of the leaves of the tree grown last to the scores of its rows."""
        self._reals[: len(tree.reals), VALUE] = tree.reals[:, VALUE]
        self._state[VALUES] = self._state[EVERY] = 1
        self._run(ADD, int(self._state[PIECES]), derivatives, features, rules, np.ones(4), scores)

    def rows(self, node: NDArray[np.int64]) -> NDArray[np.int32]:
        """The rows of a node of the tree grown last, from its whole numbers: in rising order."""
        return self._rows[node[DEPTH] & 1, node[START] : node[STOP]]

    def _run(self, phase, chunks, derivatives, features, rules, units, scores) -> bool:
        """Let the team work from a phase on; whether it came to the end."""
        state, counters = self._state, self._counters
        table = (self._codes, self.table.by_column, features, self.kinds)
        data = (derivatives, self.times, scores)
        memory = (self._rows, self._packed, self._histograms, self._stamps, self._room)
        lists = (self._frontier, self._tally, self._pieces, self._sums, self._slots)
        growing = ((self._nodes, self._reals), lists)

        def share(thread: int) -> None:
            work(thread, self.threads, counters, state, table, (rules, units), data, memory, growing)

        while True:
            state[PHASE] = phase
            counters[ENDED] = 0
            counters[UNDONE] = counters[CHUNKS] = chunks
            together(share, self.threads)
            if counters[ENDED] == DONE:
                return True
            if self.stop():
                return False
            phase, chunks = CHOOSE, 1
