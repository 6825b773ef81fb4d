"""Growing trees on histograms, best split first, on several threads with the same result for any number of them."""

import heapq
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition

import numpy as np
from numpy.typing import NDArray

from empirisk.settings import settings
from empirisk.trees.bins import MISSING, WIDTH, Binning
from empirisk.trees.hist_loops import (
    SCRATCH,
    count_rows,
    evaluate,
    evaluate_root,
    expand,
    merge_parts,
    new_growth,
    open_children,
)
from empirisk.trees.histogram import Limits, Table, total
from empirisk.trees.nodes import Nodes

Array = NDArray[np.float64]

TOGETHER = 1 << 19  # steps in a node from which all threads share it
LONGEST = 1 << 27  # steps that no call exceeds, so that interrupts are heard
TURN = 1 << 19  # steps of a task while other threads may wait for what it finds
BATCH = 16  # splits that one task may make
POOL = 1 << 28  # bytes for histograms that are kept for subtraction


@dataclass(frozen=True, eq=False)
class BinnedTree:
    """A tree in terms of bins. Arrays by node; the root is node 0, children are ``left`` and ``left + 1``.

    ``left`` is -1 in a leaf; ``bin`` the last bin that goes left in a numeric split; ``marks`` the bins that go left;
    ``value`` the prediction, which monotone constraints bound by ``low`` and ``high``; ``gain`` the gain of the split
    in packed units; the training rows in node k are ``rows[start[k] : stop[k]]``, in rising order in a leaf.
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
        split = self.left >= 0
        feature = np.where(split, self.feature, -1)
        categorical = split & binning.categorical[feature]
        threshold = np.where(split & ~categorical, binning.edges[feature, self.bin], np.nan)
        starts, words = np.full(len(feature), -1), [np.zeros(0, dtype=np.uint64)]
        for node in np.flatnonzero(categorical):
            left = np.unpackbits(self.marks[node].astype("<u8").view(np.uint8), bitorder="little").astype(bool)
            starts[node] = sum(map(len, words))
            words.append(binning.category_set(feature[node], left))
        missing_left = split & (self.marks[:, MISSING >> 6] >> np.uint64(MISSING & 63) != 0)
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
    threads : int
        How many threads work on a tree. The result does not depend on it.
    stop : callable
        Asked before each task; true ends the growth without a tree.
    """

    def __init__(
        self,
        table: Table,
        times: NDArray[np.int32],
        n_features: int,
        max_leaves: int,
        threads: int,
        stop: Callable[[], bool],
    ):
        self.table = table
        self.stop = stop
        self.max_splits = max_leaves - 1
        self.threads = threads
        # A node tried ahead of time may turn out not to belong to the tree: at most as many again.
        splits = 2 * self.max_splits
        histogram = n_features * WIDTH * 8
        kept = min(splits + 1, max(2, min(POOL, settings().memory // 4) // histogram))
        self.slots = list(range(SCRATCH * threads + kept))
        self.growth = new_growth(len(table.by_row), times, 2 * splits + 1, n_features, len(self.slots))
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()

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
        growth.slot[0] = self.slots[SCRATCH * self.threads]
        run = _Run(self, self.table._replace(by_row=by_row), features, limits)
        run.start()
        if self._pool is not None and run.frontier:
            others = [self._pool.submit(run.work, worker) for worker in range(1, self.threads)]
            try:
                run.work(0)
            finally:
                run.stop()
                for other in others:
                    other.result()
        else:
            run.work(0)
        return None if run.abandoned else run.tree()


class _Run:
    """The growth of one tree: which node is split next, and which splits belong to the tree.

    The tree is grown best first: of its leaves, always the one with the largest gain is split. Threads that find that
    leaf taken split the next best one ahead of time. A split enters the tree (`_commit`) only when its turn has come,
    so what was tried ahead changes nothing but the time.
    """

    def __init__(self, grower: Grower, table: Table, features: NDArray[np.int32], limits: Limits):
        self.grower, self.growth = grower, grower.growth
        self.table, self.features, self.limits = table, features, limits
        self.threads, self.max_splits = grower.threads, grower.max_splits
        scratch = SCRATCH * grower.threads
        self.scratch = [grower.slots[SCRATCH * k : SCRATCH * (k + 1)] for k in range(grower.threads)]
        self.free = grower.slots[scratch + 1 :]
        self.numbers = list(range(2 * self.max_splits - 1, -1, -1))
        self.idle: list[tuple[float, int, int]] = []  # nodes to split, the best first
        self.frontier: list[tuple[float, int, int]] = []  # leaves of the tree that can be split, the best first
        self.order: list[int] = []  # nodes whose splits are in the tree, in order
        self.taken: set[int] = set()
        self.done: set[int] = set()
        self.ahead = 0  # splits made or under way that are not in the tree yet
        self.stopped = self.abandoned = False
        self.change = Condition()

    # --- what all threads do together -------------------------------------------------------------------------------

    def start(self) -> None:
        """Look for the root's split, and split the nodes that are worth the effort of all threads at once."""
        if self.max_splits == 0:
            return
        parts = self._parts(len(self.growth.rows[: self.growth.stop[0]]))
        self._map(lambda part: evaluate_root(self.table, self.features, self.growth, self.limits, part), parts)
        merge_parts(self.growth.found, 0, parts[0][2], len(parts))
        self._offer(0, self.frontier)
        self._offer(0, self.idle)
        while (node := self._shared()) >= 0:
            self._expand_together(node)

    def _shared(self) -> int:
        """A node to be split by all threads together, or -1."""
        if self.ahead >= self.max_splits - len(self.order):
            return -1
        self.abandoned = self.abandoned or self.grower.stop()
        if self.abandoned:
            return -1
        for _, _, node in self.idle:
            rows = int(self.growth.stop[node] - self.growth.start[node])
            steps = rows * len(self.features)
            large = self.threads > 1 and steps >= TOGETHER and rows * self.threads > self.growth.stop[0]
            if node not in self.taken and (large or steps > LONGEST):
                return node
        return -1

    def _expand_together(self, node: int) -> None:
        growth, number = self.growth, self.numbers.pop()
        self.taken.add(node)
        self.ahead += 1
        slot = self.free.pop() if self.free else -1
        subtracting = open_children(self.table, growth, self.limits, node, number, slot)
        parts = self._parts(int(growth.stop[node] - growth.start[node]))
        scratch = np.array(self.scratch[0])

        def run(part):
            evaluate(self.table, self.features, growth, self.limits, node, subtracting, part, scratch)

        self._map(run, parts)
        child = int(growth.left[node])
        for side in range(2):
            merge_parts(growth.found, child + side, parts[0][2] + side, len(parts))
            if growth.found.gain[child + side] == 0.0 and growth.slot[child + side] >= 0:
                self.free.append(int(growth.slot[child + side]))
                growth.slot[child + side] = -1
        with self.change:
            self._finish([number], node)

    def _parts(self, rows: int) -> list[tuple[int, int, int, int]]:
        """The features in groups: one for each thread, more where a group would take long."""
        count = len(self.features)
        threads = self.threads if rows * count >= TOGETHER else 1
        groups = min(count, max(threads, -(-rows * count // LONGEST)))
        bounds = [count * k // groups for k in range(groups + 1)]
        first = len(self.growth.left)
        return [(bounds[k], bounds[k + 1], first + 2 * k, first + 2 * k + 1) for k in range(groups)]

    def _map(self, function, parts) -> None:
        pool = self.grower._pool
        if pool is None:
            for part in parts:
                function(part)
            return
        others = [pool.submit(function, part) for part in parts[1:]]
        function(parts[0])
        for other in others:
            other.result()

    # --- what each thread does on its own ---------------------------------------------------------------------------

    def work(self, worker: int) -> None:
        """Split nodes until the tree is complete."""
        turn = TURN if self.threads > 1 else LONGEST
        try:
            while (task := self._take(worker)) is not None:
                node, numbers, free, bar = task
                used, left = expand(
                    self.table, self.features, self.growth, self.limits, node, np.array(numbers), free, bar, turn
                )
                with self.change:
                    self.free.extend(free[SCRATCH:left].tolist())
                    self.numbers.extend(numbers[used:])
                    self.ahead -= len(numbers) - used
                    self._finish(numbers[:used], node)
        finally:
            self.stop()  # an error in one thread must not leave the others waiting

    def stop(self) -> None:
        """Make every thread return after its current task."""
        with self.change:
            self.stopped = True
            self.change.notify_all()

    def _take(self, worker: int):
        """The next task: a node, numbers for its splits, free histograms, and the gain to beat; None at the end."""
        with self.change:
            while True:
                remaining = self.max_splits - len(self.order)
                if self.stopped or remaining == 0 or not self.frontier:
                    return None
                self.abandoned = self.abandoned or self.grower.stop()
                if self.abandoned:
                    return None
                node = self._next(remaining)
                if node >= 0:
                    break
                self.change.wait()
            self.taken.add(node)
            bar = -self.idle[0][0] if self._drop_taken() else 0.0
            count = max(1, min(BATCH, remaining - self.ahead))
            numbers = [self.numbers.pop() for _ in range(count)]
            self.ahead += count
            given = [self.free.pop() for _ in range(min(count, len(self.free)))]
            return node, numbers, np.array(self.scratch[worker] + given + [-1] * (count + 2)), bar

    def _next(self, remaining: int) -> int:
        """The best node that nobody has taken, if it can still enter the tree; -1 if there is none."""
        if self._drop_taken() and self.ahead < remaining:
            return self.idle[0][2]
        first = self.frontier[0][2]
        return first if first not in self.taken else -1

    def _drop_taken(self) -> bool:
        while self.idle and self.idle[0][2] in self.taken:
            heapq.heappop(self.idle)
        return bool(self.idle)

    def _offer(self, node: int, heap: list) -> None:
        gain = float(self.growth.found.gain[node])
        if gain > 0.0:
            # Of equal gains the node further left goes first, whichever thread found it.
            heapq.heappush(heap, (-gain, int(self.growth.start[node]), node))

    def _finish(self, numbers: list[int], node: int) -> None:
        """Note the splits that a task made, and let into the tree those whose turn has come."""
        children = [child for number in numbers for child in (2 * number + 1, 2 * number + 2)]
        split = [node] + [child for child in children if self.growth.left[child] > 0]
        self.done.update(split)
        self.taken.update(split)
        for child in children:
            if child not in self.taken:
                self._offer(child, self.idle)
        while len(self.order) < self.max_splits and self.frontier and self.frontier[0][2] in self.done:
            _, _, first = heapq.heappop(self.frontier)
            self.order.append(first)
            self.ahead -= 1
            child = int(self.growth.left[first])
            self._offer(child, self.frontier)
            self._offer(child + 1, self.frontier)
        self.change.notify_all()

    def tree(self) -> BinnedTree:
        """The tree, its nodes in the order in which they entered it."""
        growth, found = self.growth, self.growth.found
        child = growth.left[np.array(self.order, dtype=np.intp)]
        kept = np.concatenate([[0], np.column_stack([child, child + 1]).ravel()]).astype(np.intp)
        left = np.full(len(kept), -1, dtype=np.int32)
        place = {node: k for k, node in enumerate(kept.tolist())}
        left[[place[node] for node in self.order]] = 2 * np.arange(len(self.order)) + 1
        start, stop = growth.start[kept], growth.stop[kept]
        for node in np.flatnonzero((left < 0) & (growth.left[kept] > 0)):
            # Split ahead of time in vain: its rows are out of order, and sums would depend on that.
            growth.rows[start[node] : stop[node]].sort()
        return BinnedTree(
            feature=found.feature[kept],
            bin=found.bin[kept],
            left=left,
            marks=found.left[kept],
            value=np.zeros(len(kept)),
            low=growth.low[kept] * self.limits.value,
            high=growth.high[kept] * self.limits.value,
            gain=np.where(left >= 0, found.gain[kept], 0.0),
            start=start,
            stop=stop,
            rows=growth.rows,
        )
