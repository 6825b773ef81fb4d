"""Trees of boosting from sums alone: the tree is grown here, and its rows are divided where they lie.

Growth is by the best split first, as in memory, and asks for the sums of the children of a node when that is split. One
pass over the rows then divides all nodes that may still be split, so that a tree takes about as many passes as it is
deep. Sums are of whole numbers: they, and so the trees, do not depend on the order in which rows were summed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import plain_loop
from empirisk.trees.binned.bins import MISSING, WIDTH
from empirisk.trees.binned.splits import (
    LOW,
    NODE,
    RULE_NAMES,
    STATE,
    WORDS,
    least_weight,
    list_bins,
    open_children,
    open_root,
    score_of,
    score_to_beat,
    take_next,
    try_column,
)
from empirisk.trees.binned.together import derive, sum_rows

#: What happens to the rows of a place: the bins of a column that go left, the place of the left child (the right one's
#: is the next; -1: they stay), and the histogram that rows which are there afterwards are summed in (-1: none).
PLACE = np.dtype([("marks", np.int64, (WORDS,)), ("feature", np.int64), ("child", np.int64), ("slot", np.int64)])

#: From the places to the rows that each holds now, in numbers and in rows that they stand for, and the histograms.
Divide = Callable[[NDArray[np.void]], tuple[NDArray[np.int64], NDArray[np.int64]]]


class LevelTree:
    """A tree that grows from histograms of its nodes.

    Parameters
    ----------
    looked : array of COLUMN
        The columns that it looks at.
    rules : array of RULES
        See `empirisk.trees.binned.splits`.
    rows, count, total : int
        All rows, for how many they stand, and their packed sum.
    histogram : (n_columns, 256) int64
        The packed sums of all rows by bin.

    Attributes
    ----------
    owner : list of int
        The node to which the rows of each place belong.
    """

    def __init__(
        self,
        looked: NDArray[np.void],
        rules: NDArray[np.void],
        rows: int,
        count: int,
        total: int,
        histogram: NDArray[np.int64],
    ):
        self.looked, self.state = looked, np.zeros(1, dtype=STATE)
        self.state[RULE_NAMES] = rules
        self._leaves = int(rules["max_leaf_nodes"][0])
        self.nodes = np.zeros(2 * self._leaves + 1, dtype=NODE)
        self._room = np.tile(np.arange(WIDTH), (3, 1))
        self.owner, self._place = [0], {0: 0}
        self._histograms: dict[int, NDArray[np.int64]] = {}
        #: Of nodes whose rows are divided: the place of the left child, which child was summed, its rows, its sums.
        self._divided: dict[int, tuple[int, int, NDArray[np.int64], NDArray[np.int64]]] = {}
        open_tree(self.nodes, self.state, rows, count, total)
        self._search(0, histogram)

    def grow(self, divide: Divide, most: int) -> NDArray[np.void]:
        """The nodes of the grown tree; ``most`` nodes are divided in one pass."""
        while (number := int(next_node(self.nodes, self.state))) >= 0:
            if number not in self._divided:
                self._divide([number, *self._likely(most - 1)], divide)
            self._open(number)
        return self.nodes.take(np.arange(self.state["nodes"][0]))  # a copy would go field by field

    def _likely(self, most: int) -> list[int]:
        """Waiting nodes that may be split yet: those of the largest gains, as many as leaves may be added."""
        waiting = self.nodes["waiting"][: self.state["open"][0]]
        left = self._leaves - (int(self.state["nodes"][0]) + 1) // 2 - 1
        order = waiting[np.argsort(-self.nodes["gain"][waiting], kind="stable")][:left]
        return [number for number in order.tolist() if number not in self._divided][:most]

    def _divide(self, numbers: list[int], divide: Divide) -> None:
        first = len(self.owner)
        places = np.zeros(first + 2 * len(numbers), dtype=PLACE)
        places["child"] = places["slot"] = -1
        sides = []
        for slot, number in enumerate(numbers):
            node, child = self.nodes[number], first + 2 * slot
            here = self._place[number]
            places["marks"][here], places["feature"][here], places["child"][here] = (
                node["marks"],
                node["feature"],
                child,
            )
            sides.append(int(2 * (node["left_sum"] & LOW) > node["sum"] & LOW))  # the lighter child is summed
            places["slot"][child + sides[-1]] = slot
        counts, histograms = divide(places)
        for slot, number in enumerate(numbers):
            child = first + 2 * slot
            self._divided[number] = child, sides[slot], counts[child], histograms[slot]
            self.owner += [number, number]

    def _open(self, number: int) -> None:
        """Give a node its children, and look for their splits."""
        place, side, (rows, count), summed = self._divided.pop(number)
        child = int(open_both(self.nodes, self.state, number, rows, count))
        rest = self._histograms.pop(number)
        rest -= summed
        for k in range(2):
            self.owner[place + k], self._place[child + k] = child + k, place + k
            self._search(child + k, summed if k == side else rest)

    def _search(self, number: int, histogram: NDArray[np.int64]) -> None:
        if search_node(self.state, self.looked, histogram, self.nodes, number, self._room):
            self._histograms[number] = histogram


@plain_loop
def open_tree(nodes, state, rows, count, total):
    """The node of all rows."""
    open_root(nodes, rows, total)
    nodes[0].count = count
    state[0].nodes = 1


@plain_loop
def open_both(nodes, state, number, rows, count):
    """The two children of a node, of which the left one has so many rows; the number of that one."""
    child = state[0].nodes
    open_children(nodes, number, child, nodes[number].start + rows, state[0])
    nodes[child].count = count
    nodes[child + 1].count = nodes[number].count - count
    state[0].nodes = child + 2
    return child


@plain_loop
def next_node(nodes, state):
    """The node to split next, or -1."""
    return take_next(nodes, state[0])


@plain_loop
def search_node(state, looked, histogram, nodes, number, room):
    """Look for the best split of a node, which waits if there is one: whether there is."""
    rules, node = state[0], nodes[number]
    node.gain = 0.0
    full = rules.max_leaf_nodes > 0.0 and rules.nodes >= 2 * rules.max_leaf_nodes - 1
    large = node.sum & LOW > 1 and node.stop - node.start > 1 and node.count >= 2 * rules.least
    if full or not large or node.depth >= rules.max_depth:
        return False
    node.least = least_weight(rules, node)
    own, _ = score_of(node.sum, rules, node.lowest, node.highest)
    first = score_to_beat(rules, own)
    best = first
    for j in range(len(looked)):
        column, bins, sums, missing = looked[j], room[0], histogram[j], histogram[j, MISSING]
        count = column.bins
        if column.categorical != 0:
            bins, sums, missing = room[1], room[2], np.int64(0)
            count = list_bins(column, histogram[j], bins, sums)
        best = try_column(column, bins, sums, count, missing, rules, node, best)
    if not best > first:
        return False
    node.gain = best - own
    nodes[rules.open].waiting = number
    rules.open += 1
    return True


# --- where the rows are -----------------------------------------------------------------------------------------------


@plain_loop
def move_to_children(codes, places, at, times, counts, starts):
    """Move rows to the places of the children, count those of each place, and those of each slot behind its number."""
    for k in range(len(at)):
        here = places[at[k]]
        if here.child >= 0:
            code = codes[k, here.feature]
            at[k] = here.child + 1 - ((here.marks[code >> 6] >> (code & 63)) & 1)
        counts[at[k], 0] += 1
        counts[at[k], 1] += times[k] if len(times) > 0 else 1
        starts[places[at[k]].slot + 1] += 1


@plain_loop
def sum_places(codes, places, at, packed, starts, rows, ordered, histograms):
    """Sum the packed numbers of the rows in each slot, slot after slot; ``starts`` is where the rows of each begin."""
    for k in range(len(at)):
        slot = places[at[k]].slot
        if slot >= 0:
            rows[starts[slot]] = k
            ordered[starts[slot]] = packed[k]
            starts[slot] += 1
    first = np.int64(0)
    for slot in range(len(histograms)):
        sum_rows(codes, rows, ordered, first, starts[slot], histograms[slot])
        first = starts[slot]


@plain_loop
def derive_block(data, parts):
    """Write gradient and curvature of the logistic loss, as in memory."""
    derive(data, parts[0], 0, data.shape[1])


def divide_block(
    codes: NDArray[np.uint8],
    looked: NDArray[np.uint8],
    packed: NDArray[np.int64],
    at: NDArray[Any],
    times: NDArray[np.int64],
    places: NDArray[np.void],
) -> tuple[NDArray[Any], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Where the rows of a block are now, the counts of the places, and the histograms of what is summed.

    ``looked`` are the bins of the columns that the tree looks at, ``at`` are the places before.
    """
    slots, at = int(places["slot"].max()) + 1, np.array(at)
    counts, starts = np.zeros((len(places), 2), dtype=np.int64), np.zeros(slots + 1, dtype=np.int64)
    move_to_children(codes, places, at, times, counts, starts)
    starts[0] = 0  # rows that are not summed
    begins = np.cumsum(starts)[:-1]
    histograms = np.zeros((slots, looked.shape[1], WIDTH), dtype=np.int64)
    rows, ordered = np.empty(len(at), dtype=np.int32), np.empty(len(at), dtype=np.int64)
    sum_places(looked, places, at, packed, begins, rows, ordered, histograms)
    return at, (counts, histograms)
