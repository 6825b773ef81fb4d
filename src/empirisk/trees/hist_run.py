"""The growth of one tree on several threads: which node is split next, and which splits belong to the tree."""

import heapq
from threading import Condition
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import together
from empirisk.trees.hist_loops import (
    SCRATCH,
    divide,
    evaluate,
    expand,
    join_rows,
    merge_parts,
    open_children,
    part_rows,
    siblings,
)
from empirisk.trees.histogram import Limits, Table, accumulate

if TYPE_CHECKING:
    from empirisk.trees.hist_grow import Grower

TOGETHER = 1 << 19  # steps in a node from which all threads share it
LONGEST = 1 << 27  # steps that no call exceeds, so that interrupts are heard
TURN = 1 << 21  # steps of a task while other threads may wait for what it finds
BATCH = 16  # splits that one task may make

Heap = list[tuple[float, int, int]]  # minus the gain, where the rows begin, the node


class Run:
    """The growth of one tree.

    The tree is grown best first: of its leaves, always the one with the largest gain is split. Threads that find that
    leaf taken split another good one ahead of time. A split enters the tree (`_commit`) only when its turn has come,
    so what was tried ahead changes nothing but the time.

    Parameters
    ----------
    grower : Grower
        Owns the memory and the threads.
    table, features, limits
        What to grow on.
    worth : float
        The gain, as a share of the root's, from which a split is expected to belong to the tree.
    """

    def __init__(self, grower: "Grower", table: Table, features: NDArray[np.int32], limits: Limits, worth: float):
        self.growth, self.crew, self.stop = grower.growth, grower.crew, grower.stop
        self.table, self.features, self.limits = table, features, limits
        self.max_splits, self.threads = grower.max_splits, grower.crew.threads
        self.scratch = [grower.slots[SCRATCH * k : SCRATCH * (k + 1)] for k in range(self.threads)]
        self.free = grower.slots[SCRATCH * self.threads + 1 :]
        self.numbers = list(range(2 * self.max_splits - 1, -1, -1))
        self.idle: Heap = []  # nodes to split, the best first
        self.frontier: Heap = []  # leaves of the tree that can be split, the best first
        self.order: list[int] = []  # nodes whose splits are in the tree, in order
        self.taken: set[int] = set()
        self.done: set[int] = set()
        self.ahead = 0  # splits made or under way that are not in the tree yet
        self.ended = self.abandoned = False
        self.change = Condition()
        self._share = worth

    def grow(self) -> bool:
        """Grow the tree; whether it is complete."""
        if self.max_splits > 0:
            self._start()
            if self.frontier:
                together(self._work, self.threads)
        return not self.abandoned

    def worth(self) -> float:
        """The least gain in the tree, as a share of the root's."""
        gains = self.growth.found.gain
        return float(gains[self.order].min() / gains[0]) if len(self.order) == self.max_splits > 0 else 0.0

    # --- what all threads do together -------------------------------------------------------------------------------

    def _start(self) -> None:
        """Look for the root's split, and split the nodes that are worth the effort of all threads at once."""
        parts = self._parts(int(self.growth.stop[0]))
        self._evaluate((-1, 0), False, parts)
        merge_parts(self.growth.found, 0, parts[0][3], len(parts))
        self._offer(0, self.frontier)
        self._offer(0, self.idle)
        while (node := self._shared()) >= 0:
            self._expand_together(node)

    def _shared(self) -> int:
        """A node to be split by all threads together, or -1."""
        if self.ahead >= self.max_splits - len(self.order) or self._must_stop():
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
        middle = self._divide_together(node)
        subtracting = open_children(self.table, growth, self.limits, node, middle, number, slot)
        parts = self._parts(int(growth.stop[node] - growth.start[node]))
        small, large = siblings(growth, node)
        pair = (int(small), int(large))
        self._evaluate(pair, subtracting, parts)
        for side, child in enumerate(pair):
            merge_parts(growth.found, child, parts[0][2] + side, len(parts))
            if growth.found.gain[child] == 0.0 and growth.slot[child] >= 0:
                self.free.append(int(growth.slot[child]))
                growth.slot[child] = -1
        with self.change:
            self._finish([number], node)

    def _evaluate(self, pair: tuple[int, int], subtracting: bool, parts: list[tuple[int, int, int, int]]) -> None:
        """Fill histograms, each thread with some of the rows, and look for splits, each in some of the columns."""
        scratch = np.array(self.scratch[0])
        node = pair[0] if pair[0] >= 0 else pair[1]
        pieces = self._fill_pieces(node) if len(parts) == self.threads > 1 else scratch[:0]

        def run(part):
            evaluate(self.table, self.features, self.growth, self.limits, pair, subtracting, part, scratch, pieces)

        self.crew.map(run, parts)

    def _fill_pieces(self, node: int) -> NDArray[np.int64]:
        """Histograms of equal parts of a node's rows, one by each thread. Whole numbers add up in any order."""
        growth, pieces = self.growth, np.array([slots[0] for slots in self.scratch])
        bounds = self._blocks(node)

        def fill(k):
            rows = growth.rows[bounds[k] : bounds[k + 1]]
            accumulate(self.table.by_row, growth.packed, rows, 0, growth.histograms[pieces[k]])

        self.crew.map(fill, range(self.threads))
        return pieces

    def _divide_together(self, node: int) -> int:
        """Divide the rows of a node, each thread one block of them."""
        growth, found = self.growth, self.growth.found
        if self.threads == 1:
            return int(divide(self.table, growth, node))
        bounds = self._blocks(node)
        column, marks = self.table.by_column[found.feature[node]], found.left[node]
        sizes = self.crew.map(
            lambda k: part_rows(column, growth.rows, growth.spare, bounds[k], bounds[k + 1], marks),
            range(self.threads),
        )
        lefts, rights = np.array(sizes).T.copy()
        return int(join_rows(growth.rows, growth.spare, np.array(bounds[:-1]), lefts, rights))

    def _blocks(self, node: int) -> list[int]:
        """Where the blocks of a node's rows begin, one for each thread, and where the last one ends."""
        start, count = int(self.growth.start[node]), int(self.growth.stop[node] - self.growth.start[node])
        return [start + count * k // self.threads for k in range(self.threads + 1)]

    def _parts(self, rows: int) -> list[tuple[int, int, int, int]]:
        """The features in groups: one for each thread, more where a group would take long."""
        count = len(self.features)
        threads = self.threads if rows * count >= TOGETHER else 1
        groups = min(count, max(threads, -(-rows * count // LONGEST)))
        bounds = [count * k // groups for k in range(groups + 1)]
        first = len(self.growth.left)
        return [(bounds[k], bounds[k + 1], first + 2 * k, first + 2 * k + 1) for k in range(groups)]

    # --- what each thread does on its own ---------------------------------------------------------------------------

    def _work(self, worker: int) -> None:
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
            self._end()  # an error in one thread must not leave the others waiting

    def _end(self) -> None:
        """Make every thread return after its current task."""
        with self.change:
            self.ended = True
            self.change.notify_all()

    def _must_stop(self) -> bool:
        self.abandoned = self.abandoned or self.stop()
        return self.abandoned

    def _take(self, worker: int):
        """The next task: a node, numbers for its splits, free histograms, and the gain to beat; None at the end."""
        with self.change:
            while True:
                remaining = self.max_splits - len(self.order)
                if self.ended or remaining == 0 or not self.frontier or self._must_stop():
                    return None
                node = self._next(remaining)
                if node >= 0:
                    break
                self.change.wait()
            self.taken.add(node)
            bar = self._bar()
            count = max(1, min(BATCH, remaining - self.ahead))
            numbers = [self.numbers.pop() for _ in range(count)]
            self.ahead += count
            given = [self.free.pop() for _ in range(min(count, len(self.free)))]
            return node, numbers, np.array(self.scratch[worker] + given + [-1] * (count + 2)), bar

    def _bar(self) -> float:
        """The gain above which a task may go on below its node, without coming back to compare."""
        best = -self.idle[0][0] if self._drop_taken() else 0.0
        expected = self._share * float(self.growth.found.gain[0])
        # Alone, a thread follows the order strictly. With others, it goes on with what will belong to the tree anyway.
        return best if self.threads == 1 or expected == 0.0 else min(best, expected)

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

    def _offer(self, node: int, heap: Heap) -> None:
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
        self._commit()
        self.change.notify_all()

    def _commit(self) -> None:
        """Move splits from the frontier into the tree, as long as the best of them has been made."""
        while len(self.order) < self.max_splits and self.frontier and self.frontier[0][2] in self.done:
            _, _, first = heapq.heappop(self.frontier)
            self.order.append(first)
            self.ahead -= 1
            child = int(self.growth.left[first])
            self._offer(child, self.frontier)
            self._offer(child + 1, self.frontier)
