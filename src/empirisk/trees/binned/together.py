"""Trees of boosting, each grown by a team of threads that meet inside compiled code; on small tables the team is one.

Every column has a histogram of packed sums in each node. Of two siblings only the smaller one's is summed up from its
rows: the other is what remains of the parent's. Sums of whole numbers are exact, and what is summed in floats is summed
in fixed pieces: the number of threads changes no bit.

Work comes in phases of chunks. A thread claims the next chunk of its share, or of another's when its own is done: phase
after phase it meets the same part of the data, which its near memory still holds. The one that finishes the last chunk
opens the next phase. Nobody waits for a thread that has not claimed anything: more threads than processors, or threads
that come late, cost nothing but their own time.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import plain, plain_loop
from empirisk.linalg.threads import run_shares
from empirisk.linalg.versions import internals_known
from empirisk.settings import settings
from empirisk.trees.binned.bins import LINE, MISSING, WIDTH, BinnedRows, Binning, aligned
from empirisk.trees.binned.splits import (
    CURVATURE,
    GRADIENT,
    HALF,
    LOW,
    NODE,
    RULE_NAMES,
    SCORE,
    STATE,
    TARGET,
    TIMES,
    WEIGHT,
    WORDS,
    clear,
    count_left,
    describe_columns,
    leaf_value,
    least_weight,
    list_bins,
    move_rows,
    open_children,
    open_root,
    score_of,
    score_to_beat,
    take_next,
    try_column,
)

if internals_known("numba", numba.__version__):
    from empirisk.trees.binned.atomics import MOST_THREADS, atomic_add, atomic_load, atomic_swap, fetch, let_others_run
else:
    from empirisk.trees.binned.no_atomics import (
        MOST_THREADS,
        atomic_add,
        atomic_load,
        atomic_swap,
        fetch,
        let_others_run,
    )

Array = NDArray[np.float64]

# --- meeting ----------------------------------------------------------------------------------------------------------

APART = 8  # distance of numbers that different threads write, a processor's cache line
#: Places of the shared counters: chunks of this phase, those not done yet, whether the work has ended; then, for each
#: thread, the chunks left in its share, and a number of its own.
CHUNKS, UNDONE, ENDED, SHARES = range(0, 4 * APART, APART)
OWN = SHARES + 1  # in the cache line of the share
SPINS = 256  # looks at the counters before another thread is let run


@plain
def claim(counters, thread, threads):
    """A chunk that is now this thread's, waiting for one if there is none; -1 at the end of the work."""
    looks = 0
    while atomic_load(counters, ENDED) == 0:
        for step in range(threads):
            share = (thread + step) % threads
            # A claim that comes too late finds zero or less; the next phase overwrites what it leaves.
            if atomic_load(counters, SHARES + share * APART) > 0:
                left = atomic_add(counters, SHARES + share * APART, -1)
                if left > 0:
                    return (share + 1) * counters[CHUNKS] // threads - left
        looks += 1
        if looks % SPINS == 0:
            let_others_run()
    return np.int64(-1)


@plain
def is_last(counters):
    """Note that a claimed chunk is done; whether it was the last of its phase."""
    return atomic_add(counters, UNDONE, -1) == 1


@plain
def open_phase(counters, chunks, threads):
    """Offer so many chunks: for the thread that finished the last chunk before."""
    counters[CHUNKS] = chunks
    atomic_swap(counters, UNDONE, chunks)
    for share in range(threads):
        size = (share + 1) * chunks // threads - share * chunks // threads
        atomic_swap(counters, SHARES + share * APART, size)


# --- growing ----------------------------------------------------------------------------------------------------------

#: A chunk of rows: how many of them go left (then, where those begin), and for how many rows they stand. A piece of a
#: leaf: its rows, and the sums of gradient and curvature. In the k-th, ``slot`` is the k-th free histogram.
PART = np.dtype(
    [(name, np.int64) for name in ("left", "count", "leaf", "start", "stop", "slot")]
    + [(name, np.float64) for name in ("g", "h")]
)
#: Phases: find gradient and curvature of the logistic loss; pack the rows and sum the root's; count the rows that go
#: left; sum a node's; move rows and sum those of the smaller child; search columns for splits; sum the pieces of the
#: leaves; add leaf values to the scores; choose a node.
DERIVE, PACK, TALLY, BUILD, MOVE, SEARCH, SUM_LEAVES, ADD, CHOOSE = range(9)
DONE, PAUSED = 1, 2  # why a team stopped

SCRATCH = 2  # histograms for nodes that cannot keep theirs, after one for each thread
STEPS = 1 << 16  # additions in one chunk of rows, about: a small part of a millisecond
LEAST_ROWS = 512  # rows in a chunk at least
SUMMED = 1 << 14  # rows of a leaf summed at once: a fixed number, so that sums do not depend on threads
ADDITIONS_PER_CALL = 1 << 28  # additions between two returns to Python, where the stop flag is checked
GOLDEN = 40503  # 2^16 / golden ratio: its multiples spread evenly over 16 bits
AHEAD = 32  # rows asked of memory before they are summed
POOL = 1 << 28  # bytes for histograms that are kept for subtraction
SHARE = 1 << 16  # values in the table for each thread that joins in: for less, meeting costs more than it saves
COARSE = 1 << 20  # rows from which units are so coarse that the way of rounding matters


class Team(NamedTuple):
    """All that a team works on, for compiled code.

    ``codes`` and ``columns`` are the bins by row (of the columns looked at) and by column; ``data`` what is known of
    each row (see `GRADIENT`); ``rows`` and ``packed`` two buffers each. ``histograms`` are one for each thread, then
    scratch, then those that nodes keep. The first line of ``room`` lists all bins, two more for each thread are room to
    list some and their sums. Behind the nodes, each column notes what it offers the two children of a split.
    ``counters``: see `CHUNKS`.
    """

    shared: NDArray[np.void]
    counters: NDArray[np.int64]
    codes: NDArray[np.uint8]
    columns: NDArray[np.uint8]
    looked: NDArray[np.void]
    data: Array
    rows: NDArray[np.int32]
    packed: NDArray[np.int64]
    histograms: NDArray[np.int64]
    room: NDArray[np.int64]
    nodes: NDArray[np.void]
    parts: NDArray[np.void]


@plain
def sum_rows(codes, rows, packed, start, stop, histogram):
    """Add the packed numbers of rows to the bins of every column."""
    width, k = np.uint64(histogram.shape[0]), start
    # Four rows at a time: their additions overlap instead of waiting for one another. Unsigned numbers index without
    # a test for negative ones.
    while k + 4 <= stop:
        a, b, c, d = np.uint64(rows[k]), np.uint64(rows[k + 1]), np.uint64(rows[k + 2]), np.uint64(rows[k + 3])
        at_a, at_b, at_c, at_d = packed[k], packed[k + 1], packed[k + 2], packed[k + 3]
        if k + AHEAD + 4 <= stop:
            for ahead in range(k + AHEAD, k + AHEAD + 4):
                for column in range(0, histogram.shape[0], LINE):
                    fetch(codes, np.int64(rows[ahead]), column)
        for j in range(width):
            histogram[j, codes[a, j]] += at_a
            histogram[j, codes[b, j]] += at_b
            histogram[j, codes[c, j]] += at_c
            histogram[j, codes[d, j]] += at_d
        k += 4
    while k < stop:
        row = np.uint64(rows[k])
        for j in range(width):
            histogram[j, codes[row, j]] += packed[k]
        k += 1


@plain
def derive(data, part, start, stop):
    """Gradient and curvature of the logistic loss, and the sums of their sizes."""
    g, h = 0.0, 0.0
    for k in range(start, stop):
        share = 1.0 / (1.0 + math.exp(-data[SCORE, k]))
        data[GRADIENT, k] = data[WEIGHT, k] * (share - data[TARGET, k])
        data[CURVATURE, k] = data[WEIGHT, k] * (share - share * share)
        g += abs(data[GRADIENT, k])
        h += data[CURVATURE, k]
    part.g = g
    part.h = h


@plain
def pack_rows(shared, data, rows, packed, part, start, stop):
    """Round gradient and curvature of rows to whole units, and note their sums."""
    every, alternate, weighted = shared.every != 0, shared.alternate != 0, data.shape[0] > TIMES
    per_gradient, per_curvature = 1.0 / shared.gradient_unit, 1.0 / shared.curvature_unit  # powers of two
    total, count, often = np.int64(0), np.int64(0), np.int64(1)
    for k in range(start, stop):
        row = k if every else np.int64(rows[k])
        # With coarse units, rows are rounded up and down in turns: rounding to the nearest would shift all rows of a
        # kind alike. Equal rows that one row stands for are rounded as one of them is.
        offset = ((row * GOLDEN) & 0xFFFF) / 65536.0 if alternate else 0.5
        g, h = data[GRADIENT, row] * per_gradient, data[CURVATURE, row] * per_curvature
        if weighted:
            often = np.int64(data[TIMES, row])
            g /= often
            h /= often
        both = ((np.int64(np.floor(g + offset)) << HALF) + np.int64(np.floor(h + offset))) * often
        rows[k] = row
        packed[k] = both
        total += both
        count += often
    part.left = total
    part.count = count


@plain
def row_chunk(team, thread, threads, chunk):
    """One chunk of a phase over rows."""
    shared, nodes, part = team.shared[0], team.nodes, team.parts[chunk]
    node, phase, here = nodes[shared.node], shared.phase, nodes[shared.node].depth & 1
    begin, end, slot = node.start, node.stop, node.slot
    if phase <= PACK:
        begin, end, here, slot = 0, shared.rows, 0, threads + SCRATCH
    start = begin + chunk * shared.step
    stop = start + shared.step if start + shared.step < end else end
    rows, packed = team.rows[here], team.packed[here]
    if phase == DERIVE:
        derive(team.data, part, start, stop)
        return
    if phase == PACK:
        pack_rows(shared, team.data, rows, packed, part, start, stop)
    elif phase != BUILD:
        column, marks = team.columns[node.feature], node.marks
        if phase == TALLY:
            part.left = part.count = count_left(column, marks, rows, start, stop)
            if team.data.shape[0] > TIMES:
                part.count = 0
                for k in range(start, stop):
                    code = column[rows[k]]
                    part.count += ((marks[code >> 6] >> (code & 63)) & 1) * np.int64(team.data[TIMES, rows[k]])
            return
        left, right = begin + part.left, nodes[node.left].stop + (start - begin) - part.left
        size, slot = stop - start, nodes[shared.smaller].slot
        after = move_rows(column, marks, team.rows, team.packed, here, start, stop, left, right)
        if shared.live == 0:
            return
        # What is summed now: the rows of the smaller child among those moved.
        rows, packed = team.rows[1 - here], team.packed[1 - here]
        start = left if shared.smaller == node.left else right
        stop = after if shared.smaller == node.left else right + size - (after - left)
    if stop > start:
        histogram = team.histograms[thread if threads > 1 else slot]
        if team.counters[OWN + thread * APART] != shared.filling:
            team.counters[OWN + thread * APART] = shared.filling
            for j in range(len(team.looked)):
                clear(team.looked[j], histogram[j])
        sum_rows(team.codes, rows, packed, start, stop, histogram)


@plain
def gather(counters, filling, histograms, threads, column, j, total):
    """Sum what the threads have summed of a column."""
    clear(column, total)
    for thread in range(threads):
        if counters[OWN + thread * APART] == filling:
            own = histograms[thread, j]
            for b in range(column.bins):
                total[b] += own[b]
            total[MISSING] += own[MISSING]


@plain
def search_column(shared, counters, looked, histograms, nodes, room, thread, threads, j):
    """Look for the best splits of a pair of siblings (or of the root) in one column."""
    column, first = looked[j], nodes.shape[0] - 2 * looked.shape[0] + 2 * j
    own = histograms[nodes[shared.smaller].slot, j]
    if threads > 1:
        gather(counters, shared.filling, histograms, threads, column, j, own)
    for side in range(2):
        node, offer = nodes[shared.larger if side else shared.smaller], nodes[first + side]
        offer.gain = 0.0
        if not (shared.live >> side) & 1:
            continue
        histogram = histograms[node.slot, j]
        if side:
            for b in range(column.bins):
                histogram[b] -= own[b]
            histogram[MISSING] -= own[MISSING]
        offer.sum = node.sum
        offer.lowest = node.lowest
        offer.highest = node.highest
        offer.groups = node.groups
        offer.least = least_weight(shared, node)
        score, _ = score_of(node.sum, shared, node.lowest, node.highest)
        bar = score_to_beat(shared, score)
        bins, sums, count, missing = room[0], histogram, column.bins, histogram[MISSING]
        if column.categorical != 0:
            bins, sums, missing = room[2 * thread + 1], room[2 * thread + 2], np.int64(0)
            count = list_bins(column, histogram, bins, sums)
        best = try_column(column, bins, sums, count, missing, shared, offer, bar)
        offer.gain = best - score if best > bar else 0.0


@plain
def open_pair(shared, nodes, parts, threads):
    """After PACK or TALLY: the root, or the children of the node that is split; which of them may be split further."""
    node, size = nodes[shared.node], shared.rows
    if shared.phase == TALLY:
        size = node.stop - node.start
    left, on_left = np.int64(0), np.int64(0)
    for k in range(size // shared.step + 1):
        part = parts[k]
        count = part.left
        part.left = left  # where the rows of this chunk that go left begin
        left += count
        on_left += part.count
    shared.smaller = shared.nodes
    shared.larger = -1
    if shared.phase == PACK:
        open_root(nodes, size, left)
        node.count = on_left
        node.slot = threads + SCRATCH
        shared.nodes = 1
    else:
        child = shared.nodes
        shared.nodes = child + 2
        open_children(nodes, shared.node, child, node.start + left, shared)
        nodes[child].count = on_left
        nodes[child + 1].count = node.count - on_left
        shared.smaller = child if 2 * left <= size else child + 1
        shared.larger = 2 * child + 1 - shared.smaller
        nodes[shared.larger].slot = node.slot
    shared.live = 0
    full = shared.max_leaf_nodes > 0.0 and shared.nodes >= 2 * shared.max_leaf_nodes - 1
    for side in range(0 if full else 1 if shared.larger < 0 else 2):
        node = nodes[shared.larger if side else shared.smaller]
        large = node.sum & LOW > 1 and node.stop - node.start > 1 and node.count >= 2 * shared.least
        if large and node.depth < shared.max_depth:
            shared.live |= 1 << side
    if shared.phase == TALLY:
        nodes[shared.smaller].slot = threads
        if shared.live > 0 and shared.free > 0:
            shared.free -= 1
            nodes[shared.smaller].slot = parts[shared.free].slot


@plain
def settle_pair(shared, nodes, parts, threads, first):
    """After SEARCH: keep the best offer for each child, and give back the histograms of those that stay leaves."""
    for side in range(1 if shared.larger < 0 else 2):
        number = shared.larger if side else shared.smaller
        node, best = nodes[number], nodes[first + side]
        node.gain = 0.0
        if (shared.live >> side) & 1:
            for place in range(first + side, nodes.shape[0], 2):
                if nodes[place].gain > best.gain:
                    best = nodes[place]
            if best.gain > 0.0:
                node.gain = best.gain
                node.feature = best.feature
                node.bin = best.bin
                node.sign = best.sign
                node.below = best.below
                node.left_sum = best.left_sum
                for word in range(WORDS):
                    node.marks[word] = best.marks[word]
                nodes[shared.open].waiting = number
                shared.open += 1
        if node.slot < threads + SCRATCH:
            node.slot = -1
        elif node.gain == 0.0:
            parts[shared.free].slot = node.slot
            shared.free += 1
            node.slot = -1


@plain
def list_pieces(shared, nodes, parts):
    """Cut the leaves into pieces."""
    shared.pieces = 0
    for leaf in range(shared.nodes):
        node = nodes[leaf]
        for start in range(node.start, node.stop if node.left < 0 else node.start, SUMMED):
            part = parts[shared.pieces]
            part.leaf = leaf
            part.start = start
            part.stop = start + SUMMED if start + SUMMED < node.stop else node.stop
            shared.pieces += 1


@plain
def value_leaves(shared, nodes, parts):
    """After SUM_LEAVES: the value of each leaf, a Newton step."""
    g, h = 0.0, 0.0
    for p in range(shared.pieces):
        part = parts[p]
        node = nodes[part.leaf]
        if part.start == node.start:
            g, h = 0.0, 0.0
        g += part.g
        h += part.h
        node.value = leaf_value(shared, node, g, h)


@plain
def lead(shared, counters, looked, histograms, nodes, parts, threads, width):
    """What the thread that finished the last chunk of a phase does: draw the sum, and open the next phase."""
    before, phase, ended = shared.phase, shared.phase, 0
    if before == DERIVE or before == ADD:  # noqa: SIM109 - a tuple of choices takes longer to compile
        ended = DONE
    elif before <= TALLY:
        open_pair(shared, nodes, parts, threads)
        phase = SEARCH if before == PACK else MOVE
    elif before == BUILD:
        for j in range(width if threads > 1 else 0):
            total = histograms[nodes[shared.node].slot, j]
            gather(counters, shared.filling, histograms, threads, looked[j], j, total)
        phase = TALLY
    elif before == MOVE:
        phase = SEARCH
    elif before == SUM_LEAVES:
        value_leaves(shared, nodes, parts)
        phase = ADD
    elif before == SEARCH:
        settle_pair(shared, nodes, parts, threads, nodes.shape[0] - 2 * width)
        phase = CHOOSE
    if phase == CHOOSE and shared.spent > ADDITIONS_PER_CALL:
        shared.spent = 0
        ended = PAUSED
    elif phase == CHOOSE:
        number = take_next(nodes, shared)
        phase = TALLY
        if number < 0:
            list_pieces(shared, nodes, parts)
            phase = SUM_LEAVES
        else:
            shared.node = number
            if nodes[number].slot < 0:
                nodes[number].slot = threads + 1
                phase = BUILD
    if (phase == ADD and shared.every == 0) or (phase == SUM_LEAVES and shared.values == 0):
        ended = DONE
    shared.phase = phase
    if ended > 0:
        atomic_swap(counters, ENDED, ended)
        return
    chunks = shared.pieces
    if phase == SEARCH:  # where there is nothing to search, the phase settles the histograms
        chunks = width if shared.live > 0 else 1
    elif phase <= MOVE:
        size = nodes[shared.node].stop - nodes[shared.node].start
        chunks = size // shared.step + 1
        shared.spent += size * (width if phase != TALLY else 1)
        shared.filling += 1 if phase >= BUILD else 0
    open_phase(counters, chunks, threads)


@plain
def piece_of_leaf(add, data, rows, part, value):
    """Sum gradient and curvature of a piece of a leaf, or add its value to the scores."""
    g, h = 0.0, 0.0
    for k in range(part.start, part.stop):
        row = np.uint64(rows[k])
        if add:
            data[SCORE, row] += value
        else:
            g += data[GRADIENT, row]
            h += data[CURVATURE, row]
    part.g = g
    part.h = h


@plain_loop
def work(team, thread, threads):
    """One thread's share in a tree: take chunks until the team has finished, or pauses so that Python can be heard."""
    shared, counters, looked, nodes, width = team.shared[0], team.counters, team.looked, team.nodes, len(team.looked)
    while True:
        chunk = claim(counters, thread, threads)
        if chunk < 0:
            return
        phase = shared.phase
        if phase <= MOVE:
            row_chunk(team, thread, threads, chunk)
        elif phase == SEARCH and shared.live > 0:
            search_column(shared, counters, looked, team.histograms, nodes, team.room, thread, threads, chunk)
        elif SUM_LEAVES <= phase <= ADD:
            part = team.parts[chunk]
            node = nodes[part.leaf]
            piece_of_leaf(phase == ADD, team.data, team.rows[node.depth & 1], part, node.value)
        if is_last(counters):
            lead(shared, counters, looked, team.histograms, nodes, team.parts, threads, width)


class TeamGrower:
    """Grows trees of at most ``max_leaf_nodes`` leaves on one binned table, one after the other in the same memory.

    Parameters
    ----------
    binning, table : Binning, BinnedRows
        The table in bins.
    monotone, groups : (n_features,) int8 and int64
        Constraints on the columns, and the groups in which they may be split together.
    width : int
        The number of columns that each tree looks at.
    max_leaf_nodes : int
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
        groups: NDArray[np.int64],
        width: int,
        max_leaf_nodes: int,
        threads: int,
        stop: Callable[[], bool],
    ):
        self.table, self.stop = table, stop
        rows = len(table.by_row)
        self.threads = max(1, min(threads, self.shares(rows, width), MOST_THREADS))
        self.columns = describe_columns(binning, monotone, groups)
        memory = max(2, min(POOL, settings().memory // 4) // (width * WIDTH * 8))
        self._kept, self._step = min(max_leaf_nodes + 1, memory), max(STEPS // width, LEAST_ROWS)
        parts = max(rows // self._step + 2, max_leaf_nodes + rows // SUMMED + 1, self._kept)
        self._shared = np.zeros(1, dtype=STATE)
        self._team = Team(
            shared=self._shared,
            counters=np.zeros(SHARES + APART * self.threads, dtype=np.int64),
            codes=table.by_row,
            columns=table.by_column,
            looked=self.columns,
            data=np.zeros((0, 0)),
            rows=np.empty((2, rows), dtype=np.int32),
            packed=np.empty((2, rows), dtype=np.int64),
            histograms=np.zeros((self.threads + SCRATCH + self._kept, width, WIDTH), dtype=np.int64),
            room=np.tile(np.arange(WIDTH), (1 + 2 * self.threads, 1)),
            nodes=np.zeros(2 * max_leaf_nodes + 1 + 2 * width, dtype=NODE),
            parts=np.zeros(parts, dtype=PART),
        )

    @staticmethod
    def shares(rows: int, width: int) -> int:
        """How many threads a table of this size is worth."""
        return rows * width // SHARE

    def grow(
        self, data: Array, rows: NDArray[np.int32] | None, features: NDArray[np.int32], rules: NDArray, values: bool
    ) -> NDArray[np.void] | None:
        """The nodes of a tree on some rows (None: all) and columns; None if it was stopped.

        ``data``: see `GRADIENT`. With ``values``, leaves get the value of a Newton step, which is added to the scores
        if all rows take part.
        """
        team, shared = self._team, self._shared
        count = team.rows.shape[1] if rows is None else len(rows)
        if rows is not None:
            team.rows[0, :count] = rows
        if len(features) < len(self.columns):
            codes = aligned(len(self.table.by_row), len(features))
            codes[:, : len(features)] = self.table.by_row[:, features]
            team = team._replace(codes=codes, looked=self.columns[features])
        self._team = team._replace(data=data)
        filling = int(shared["filling"][0]) + 1
        shared[0] = np.zeros(1, dtype=STATE)[0]  # all at once, not field by field
        shared[RULE_NAMES] = rules
        shared["filling"], shared["every"], shared["values"] = filling, rows is None, values
        shared["rows"], shared["step"], shared["free"] = count, self._step, self._kept - 1
        shared["alternate"] = (data[TIMES].sum() if len(data) > TIMES else count) > COARSE
        team.parts["slot"][: self._kept - 1] = np.arange(self._kept - 1, 0, -1) + self.threads + SCRATCH
        if not self._run(PACK, count // self._step + 1):
            return None
        return team.nodes.take(np.arange(shared["nodes"][0]))  # a copy would go field by field

    def differentiate(self, data: Array) -> tuple[float, float]:
        """Write gradient and curvature of the logistic loss to the data; the sums of their sizes."""
        chunks = data.shape[1] // self._step + 1
        self._team = self._team._replace(data=data)
        self._shared["rows"], self._shared["step"] = data.shape[1], self._step
        self._run(DERIVE, chunks)
        return float(self._team.parts["g"][:chunks].sum()), float(self._team.parts["h"][:chunks].sum())

    def add(self, tree: NDArray[np.void], data: Array) -> None:
        """Add the values of the leaves of the tree grown last to the scores of its rows."""
        self._team = self._team._replace(data=data)
        self._team.nodes["value"][: len(tree)] = tree["value"]
        self._shared["values"] = self._shared["every"] = 1
        self._run(ADD, int(self._shared["pieces"][0]))

    @property
    def buffers(self) -> NDArray[np.int32]:
        """The two buffers in which the rows of the leaves of the tree grown last lie, by depth."""
        return self._team.rows

    def rows(self, node: NDArray[np.void]) -> NDArray[np.int32]:
        """The rows of a node of the tree grown last: in rising order."""
        return self._team.rows[node["depth"] & 1, node["start"] : node["stop"]]

    def _run(self, phase: int, chunks: int) -> bool:
        """Let the team work from a phase on; whether it came to the end."""
        team, counters = self._team, self._team.counters
        while True:
            self._shared["phase"] = phase
            counters[ENDED] = 0
            counters[CHUNKS] = counters[UNDONE] = chunks
            counters[SHARES::APART] = np.diff(np.arange(self.threads + 1) * chunks // self.threads)
            if self.threads == 1:
                work(team, 0, 1)
            else:
                run_shares(lambda thread: work(team, thread, self.threads), self.threads)
            if counters[ENDED] == DONE:
                return True
            if self.stop():
                return False
            phase, chunks = CHOOSE, 1
