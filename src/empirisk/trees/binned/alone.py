"""Trees grown by one thread each, column by column: those of forests, where a node looks at a few columns drawn at
random; and those of boosting on small tables, where threads that meet would cost more than they save."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import draw, plain, plain_loop
from empirisk.trees.binned.bins import MISSING, WIDTH, Binning, Codes
from empirisk.trees.binned.splits import (
    CURVATURE,
    GRADIENT,
    HALF,
    LOW,
    NODE,
    RULE_NAMES,
    SCORE,
    STATE,
    TIMES,
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
    set_score,
    take_next,
    try_column,
    try_several,
)

Array = NDArray[np.float64]

STEPS_PER_CALL = 1 << 26  # additions between two returns to Python, where the stop flag is checked
SMALL, SPARSE = 16, 128  # rows up to which sorting beats counting, and listing bins beats looking at all of them

#: Lines of the room to work in: all bins; some bins, and their sums; a histogram that is all zero between two columns.
EVERY, BINS, SUMS, HISTOGRAM = range(4)


class BinnedGrowth(NamedTuple):
    """All that the growth of a tree works on, for compiled code.

    ``columns`` are the bins by column; ``rows`` and ``packed`` two buffers each. ``order`` holds the columns to look
    at, ``seed`` the state of the random numbers. ``times`` says for how many rows each stands; it is empty in boosting
    where each stands for itself, and in forests, which count by weight.
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
    times: NDArray[np.int64]


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
        times=np.zeros(0, dtype=np.int64),
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
        heaviest = node.start  # a row without curvature is like any other
        for k in range(node.start + 1, node.stop):
            heaviest = k if packed[k] & LOW > packed[heaviest] & LOW else heaviest
        first, times = float(packed[heaviest] >> HALF), packed[heaviest] & LOW
        for k in range(node.start, node.stop):
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


@plain
def count_rows(growth, node):
    """Note for how many rows a node stands."""
    node.count = node.sum & LOW
    if growth.state[0].by_rows != 0:
        node.count = node.stop - node.start
        for k in range(node.start, node.stop if len(growth.times) > 0 else node.start):
            node.count += growth.times[growth.rows[node.depth & 1, k]] - 1


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
        count_rows(growth, nodes[0])
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
        count_rows(growth, nodes[state.nodes])
        nodes[state.nodes + 1].count = node.count - nodes[state.nodes].count
        state.nodes += 2


@plain_loop
def step_leaves(growth, data, find, add):
    """Find the values of the leaves, Newton steps, and add them to the scores, where asked."""
    state = growth.state[0]
    for number in range(state.nodes):
        node, g, h = growth.nodes[number], 0.0, 0.0
        rows = growth.rows[node.depth & 1]
        if node.left >= 0:
            continue
        if find:
            for k in range(node.start, node.stop):
                g += data[GRADIENT, rows[k]]
                h += data[CURVATURE, rows[k]]
            node.value = leaf_value(state, node, g, h)
        for k in range(node.start, node.stop if add else node.start):
            data[SCORE, rows[k]] += node.value


class LoneGrower:
    """Does what `empirisk.trees.binned.together.TeamGrower` does, alone, and finds the same trees.

    Parameters
    ----------
    binning, columns : Binning, (n_features, n_rows) uint8
        The table in bins.
    monotone, groups : (n_features,) int8 and int64
        Constraints on the columns, and the groups in which they may be split together.
    max_leaf_nodes : int
        The largest number of leaves.
    stop : callable
        Asked now and then; true ends the growth without a tree.
    """

    def __init__(
        self,
        binning: Binning,
        columns: Codes,
        monotone: NDArray[np.int8],
        groups: NDArray[np.int64],
        max_leaf_nodes: int,
        stop: Callable[[], bool],
    ):
        self.stop, self._nodes = stop, 2 * max_leaf_nodes + 1
        self._growth = room_for(columns, describe_columns(binning, monotone, groups), columns.shape[1], self._nodes)

    def grow(
        self, data: Array, rows: NDArray[np.int32] | None, features: NDArray[np.int32], rules: NDArray, values: bool
    ) -> NDArray[np.void] | None:
        """The nodes of a tree; see `TeamGrower`."""
        count = data.shape[1] if rows is None else len(rows)
        if count != self._growth.rows.shape[1]:
            self._growth = room_for(self._growth.columns, self._growth.looked, count, self._nodes)
        growth = self._growth._replace(order=features.astype(np.int64), state=np.zeros(1, dtype=STATE))
        part = data if rows is None else data[:, rows]
        growth.rows[0] = np.arange(count) if rows is None else rows
        ones = np.floor(part[:2] / [rules["gradient_unit"], rules["curvature_unit"]] + 0.5)
        if len(data) > TIMES:  # equal rows that one row stands for are rounded as one of them is
            growth = growth._replace(times=data[TIMES].astype(np.int64))
            units = np.array([rules["gradient_unit"], rules["curvature_unit"]]) * part[TIMES]
            ones = np.floor(part[:2] / units + 0.5) * part[TIMES]
        g, h = ones.astype(np.int64)
        growth.packed[0] = (g << HALF) + h
        state = growth.state
        state[RULE_NAMES] = rules
        state["by_rows"], state["columns"] = 1, len(features)
        self._growth = growth
        while not grow_alone(growth, None, STEPS_PER_CALL):
            if self.stop():
                return None
        step_leaves(growth, data, values, values and rows is None)
        return growth.nodes.take(np.arange(state["nodes"][0]))  # a copy would go field by field

    def add(self, tree: NDArray[np.void], data: Array) -> None:
        """Add the values of the leaves of the tree grown last to the scores of its rows."""
        self._growth.nodes["value"][: len(tree)] = tree["value"]
        step_leaves(self._growth, data, False, True)

    def rows(self, node: NDArray[np.void]) -> NDArray[np.int32]:
        """The rows of a node of the tree grown last: in rising order."""
        return self._growth.rows[node["depth"] & 1, node["start"] : node["stop"]]
