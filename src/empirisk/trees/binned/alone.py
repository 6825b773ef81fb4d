"""Trees grown by one thread each, column by column: those of forests, where a node looks at a few columns drawn at
random."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import draw, plain, plain_loop
from empirisk.trees.binned.bins import MISSING, WIDTH, Codes
from empirisk.trees.binned.splits import (
    HALF,
    LOW,
    NODE,
    STATE,
    clear,
    count_left,
    least_weight,
    list_bins,
    move_rows,
    open_children,
    open_root,
    score_of,
    score_to_beat,
    set_score,
    take_next,
    try_column,
    try_several,
)

STEPS_PER_CALL = 1 << 26  # additions between two returns to Python, where the stop flag is checked
SMALL, SPARSE = 16, 128  # rows up to which sorting beats counting, and listing bins beats looking at all of them

#: Lines of the room to work in: all bins; some bins, and their sums; a histogram that is all zero between two columns.
EVERY, BINS, SUMS, HISTOGRAM = range(4)


class BinnedGrowth(NamedTuple):
    """All that the growth of a tree works on, for compiled code.

    ``columns`` are the bins by column; ``rows`` and ``packed`` two buffers each. ``order`` holds the columns to look
    at, ``seed`` the state of the random numbers.
    """

    state: NDArray[np.void]
    columns: NDArray[np.uint8]
    looked: NDArray[np.void]
    rows: NDArray[np.int32]
    packed: NDArray[np.int64]
    nodes: NDArray[np.void]
    room: NDArray[np.int64]
    order: NDArray[np.int64]
    seed: NDArray[np.uint64]


def room_for(columns: Codes, looked: NDArray[np.void], rows: int, nodes: int) -> BinnedGrowth:
    """Room for trees of so many nodes on so many rows."""
    return BinnedGrowth(
        state=np.zeros(1, dtype=STATE),
        columns=columns,
        looked=looked,
        rows=np.empty((2, rows), dtype=np.int32),
        packed=np.empty((2, rows), dtype=np.int64),
        nodes=np.empty(nodes, dtype=NODE),
        room=np.vstack([np.arange(WIDTH), np.zeros((3, WIDTH), dtype=np.int64)]),
        order=np.arange(len(looked)),
        seed=np.zeros(1, dtype=np.uint64),
    )


@plain
def list_few(column, rows, packed, start, stop, bins, sums):
    """List the bins of a few rows in rising order, and their sums; returns how many."""
    count = 0
    for k in range(start, stop):
        code, place = np.int64(column[np.uint64(rows[k])]), count
        while place > 0 and bins[place - 1] > code:
            place -= 1
        if place > 0 and bins[place - 1] == code:
            sums[place - 1] += packed[k]
            continue
        for j in range(count, place, -1):
            bins[j] = bins[j - 1]
            sums[j] = sums[j - 1]
        bins[place] = code
        sums[place] = packed[k]
        count += 1
    return count


@plain
def look_at(state, column, codes, rows, packed, node, room, bar):
    """Look for a split of a node in one column; the score to beat from now on, NaN where the column is constant."""
    bins, sums, count, missing = room[BINS], room[SUMS], column.bins, np.int64(0)
    histogram, categorical, size = room[HISTOGRAM], column.categorical != 0, node.stop - node.start
    if size <= SMALL:
        count = list_few(codes, rows, packed, node.start, node.stop, bins, sums)
    else:
        for k in range(node.start, node.stop):
            histogram[codes[np.uint64(rows[k])]] += packed[k]
        if size <= SPARSE or categorical:
            count = list_bins(column, histogram, bins, sums)
        else:
            bins, sums, missing = room[EVERY], histogram, histogram[MISSING]
    constant = count == 1
    if size > SPARSE and not categorical:
        constant = histogram[codes[np.uint64(rows[node.start])]] == node.sum
    elif bins[count - 1] == MISSING and not categorical:
        count -= 1
        missing = sums[count]
    if not constant:
        bar = try_column(column, bins, sums, count, missing, state, node, bar)
    if size > SMALL:
        clear(column, histogram)
    return np.nan if constant else bar


@plain
def find_split(growth, several, node):
    """Find a split of a node among columns drawn at random; columns that are constant here do not count."""
    state, order, here = growth.state[0], growth.order, node.depth & 1
    rows, packed, node.gain = growth.rows[here], growth.packed[here], 0.0
    # Pure nodes stay whole: one class, or numbers equal but for the rounding of both.
    weight, pure = node.sum & LOW, True
    if several is not None:
        own, weight, pure = set_score(state, several, several.targets, packed, node)
        node.count = weight
    else:
        own, _ = score_of(node.sum, state, node.lowest, node.highest)
        first, times = float(packed[node.start] >> HALF), packed[node.start] & LOW
        for k in range(node.start + 1, node.stop):
            often = packed[k] & LOW
            pure &= 2.0 * abs((packed[k] >> HALF) * float(times) - first * often) < times + often
    small = weight < 2 or node.count < 2 * state.least or node.count < state.split
    if pure or small or node.depth >= state.max_depth:
        return
    node.least = least_weight(state, node)
    best, looked, place = score_to_beat(state, own), 0, 0
    while looked < state.columns and place < len(order):
        number = order[place]
        if state.columns < len(order):
            other = place + draw(growth.seed, len(order) - place)
            number = order[other]
            order[other] = order[place]
            order[place] = number
        place += 1
        column, codes = growth.looked[number], growth.columns[number]
        if several is not None:
            targets, lines = several.targets, (rows, packed)
            score = try_several(state, several, targets, column, codes, lines, node, growth.seed, best)
        else:
            score = look_at(state, column, codes, rows, packed, node, growth.room, best)
        if score == score:
            looked += 1
            best = score
    node.gain = best - own if best > own else 0.0


@plain_loop
def grow_alone(growth, several, work):
    """Grow for about ``work`` steps; whether the tree is complete. The next call goes on where this one stood.

    ``several`` is None, or the room that more than two classes, or several outputs, need.
    """
    state, nodes, spent = growth.state[0], growth.nodes, np.int64(0)
    if state.nodes == 0:
        total = np.int64(0)
        for k in range(growth.rows.shape[1]):
            total += growth.packed[0, k]
        open_root(nodes, growth.rows.shape[1], total)
        nodes[0].count = total & LOW
        state.nodes = 1
    while True:
        while state.looked < state.nodes:
            node = nodes[state.looked]
            find_split(growth, several, node)
            spent += node.stop - node.start + WIDTH
            if node.feature >= 0:
                nodes[state.open].waiting = state.looked
                state.open += 1
            state.looked += 1
        if spent > work:
            return False
        number = take_next(nodes, state)
        if number < 0:
            return True
        node = nodes[number]
        column, here, start, stop = growth.columns[node.feature], node.depth & 1, node.start, node.stop
        middle = start + count_left(column, node.marks, growth.rows[here], start, stop)
        move_rows(column, node.marks, growth.rows, growth.packed, here, start, stop, start, middle)
        open_children(nodes, number, state.nodes, middle, state)
        for child in range(state.nodes, state.nodes + 2):
            nodes[child].count = nodes[child].sum & LOW
        state.nodes += 2
