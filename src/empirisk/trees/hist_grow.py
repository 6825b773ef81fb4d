"""Growing trees on histograms, best split first, on several threads with the same result for any number of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.settings import settings
from empirisk.trees.bins import MISSING, WIDTH, Binning
from empirisk.trees.crew import Crew
from empirisk.trees.hist_loops import SCRATCH, count_rows, new_growth
from empirisk.trees.hist_run import Run
from empirisk.trees.histogram import Limits, Table, total
from empirisk.trees.nodes import Nodes

Array = NDArray[np.float64]

POOL = 1 << 28  # bytes for histograms that are kept for subtraction


@dataclass(frozen=True, eq=False)
class BinnedTree:
    """A tree in terms of bins. Arrays by node; the root is node 0, children are ``left`` and ``left + 1``.

    ``feature`` and ``left`` are -1 in a leaf; ``bin`` is the last bin that goes left in a numeric split, ``marks`` the
    bins that go left in any; ``value`` the prediction, which monotone constraints bound by ``low`` and ``high``;
    ``gain`` the gain of the split in packed units; the training rows in node k are ``rows[start[k] : stop[k]]``, in
    rising order in a leaf.
    """

    feature: NDArray[np.int32]
    bin: NDArray[np.int32]
    left: NDArray[np.int32]
    marks: NDArray[np.uint64]
    value: Array
    low: Array
    high: Array
    gain: Array
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    rows: NDArray[np.int32]

    def nodes(self, binning: Binning) -> Nodes:
        """The tree in terms of the values in the columns."""
        split, feature = self.left >= 0, self.feature
        categorical = split & binning.categorical[feature]
        threshold = np.where(split & ~categorical, binning.edges[feature, self.bin], np.nan)
        starts, words = np.full(len(feature), -1), [np.zeros(0, dtype=np.uint64)]
        for node in np.flatnonzero(categorical):
            left = np.unpackbits(self.marks[node].astype("<u8").view(np.uint8), bitorder="little").astype(bool)
            starts[node] = sum(map(len, words))
            words.append(binning.category_set(feature[node], left))
        missing_left = self.marks[:, MISSING >> 6] >> np.uint64(MISSING & 63) != 0
        return Nodes.from_splits(
            feature,
            threshold,
            self.left,
            self.value[:, None],
            len(binning.counts),
            missing_left=missing_left,
            category_start=starts,
            category_bits=np.concatenate(words),
            category_counts=binning.category_counts,
            gain=self.gain,
        )


class Grower:
    """Grows trees of at most ``max_leaves`` leaves on one binned table, reusing its memory.

    Parameters
    ----------
    table : Table
        The binned columns.
    times : array of int32
        For how many equal rows each row stands; empty if each stands for itself.
    n_features : int
        The number of columns that each tree looks at.
    max_leaves : int
        The largest number of leaves.
    crew : Crew
        The threads that work on a tree. The result does not depend on their number.
    stop : callable
        Asked before each task; true ends the growth without a tree.
    """

    def __init__(
        self,
        table: Table,
        times: NDArray[np.int32],
        n_features: int,
        max_leaves: int,
        crew: Crew,
        stop: Callable[[], bool],
    ):
        self.table, self.crew, self.stop = table, crew, stop
        self.max_splits = max_leaves - 1
        # A node tried ahead of time may turn out not to belong to the tree: at most as many again.
        splits = 2 * self.max_splits
        histogram = n_features * WIDTH * 8
        kept = min(splits + 1, max(2, min(POOL, settings().memory // 4) // histogram))
        self.slots = list(range(SCRATCH * crew.threads + kept))
        self.growth = new_growth(len(table.by_row), times, 2 * splits + 1, n_features, len(self.slots))
        self._worth = 0.0

    def grow(
        self, by_row: NDArray[np.uint8], rows: NDArray[np.int32], features: NDArray[np.int32], limits: Limits
    ) -> BinnedTree | None:
        """A tree on some rows and columns; the rows' gradients are in ``growth.packed``, their bins in ``by_row``.

        ``by_row`` has the columns ``features`` only, in that order.
        """
        growth = self.growth
        growth.rows[: len(rows)] = rows
        growth.start[0], growth.stop[0], growth.left[0], growth.depth[0] = 0, len(rows), 0, 0
        growth.low[0], growth.high[0] = -np.inf, np.inf
        growth.sum[0], growth.count[0] = total(growth.packed, rows), count_rows(growth, 0, len(rows))
        growth.slot[0] = self.slots[SCRATCH * self.crew.threads]
        run = Run(self, self.table._replace(by_row=by_row), features, limits, self._worth)
        if not run.grow():
            return None
        self._worth = run.worth()
        return self._tree(run.order, limits)

    def _tree(self, order: list[int], limits: Limits) -> BinnedTree:
        """The tree made of the splits in ``order``, its nodes in the order in which they entered it."""
        growth, found = self.growth, self.growth.found
        child = growth.left[np.array(order, dtype=np.intp)]
        kept = np.concatenate([[0], np.column_stack([child, child + 1]).ravel()]).astype(np.intp)
        left = np.full(len(kept), -1, dtype=np.int32)
        place = {node: k for k, node in enumerate(kept.tolist())}
        left[[place[node] for node in order]] = 2 * np.arange(len(order)) + 1
        start, stop = growth.start[kept], growth.stop[kept]
        for node in np.flatnonzero((left < 0) & (growth.left[kept] > 0)):
            # Split ahead of time in vain: its rows are out of order, and sums would depend on that.
            growth.rows[start[node] : stop[node]].sort(kind="stable")  # few runs, each in order: it merges them
        split = left >= 0
        return BinnedTree(
            feature=np.where(split, found.feature[kept], -1).astype(np.int32),
            bin=np.where(split, found.bin[kept], 0).astype(np.int32),
            left=left,
            marks=np.where(split[:, None], found.left[kept], np.uint64(0)),
            value=np.zeros(len(kept)),
            low=growth.low[kept] * limits.value,
            high=growth.high[kept] * limits.value,
            gain=np.where(split, found.gain[kept], 0.0),
            start=start,
            stop=stop,
            rows=growth.rows,
        )
