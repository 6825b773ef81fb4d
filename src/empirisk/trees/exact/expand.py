"""Growing a tree node by node on sorted columns: split a node, divide its rows, look for the splits of its children.

Every column keeps its keys sorted within the node: a node is the same range ``start:stop`` in all columns, and a split
divides each range in place, keeping the order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.compiled import draw, inner, loop
from empirisk.trees.exact.describe import describe
from empirisk.trees.exact.offers import scan_columns
from empirisk.trees.exact.presort import MISSING, ROW
from empirisk.trees.exact.scan import HEAVIER, LEFT, NO_SPLIT

# Places in Tree.counters: nodes, words and waiting nodes in use, leaves; then where growing stands: its phase, the
# node that was split, the first of its children, which children may be split, the one in hand, its columns.
NODES, WORDS, WAITING, LEAVES, PHASE, NODE, CHILDREN, ALIVE, CHILD, CHOSEN = range(10)
OPEN, NEXT, DIVIDE, SCAN, SETTLE = range(5)  # phases
DONE, DIVIDE_LARGE, SCAN_LARGE, FULL, PAUSE = range(5)  # why `grow` returned

#: One node: what `empirisk.trees.nodes.Nodes` holds, its range of rows, and the split found for it. Records, because
#: code for one array of them compiles much faster than code for twenty arrays.
RECORD = np.dtype(
    [
        ("feature", np.int32),
        ("left", np.int32),
        ("category_start", np.int32),
        ("missing_left", np.bool_),
        ("threshold", np.float64),
        ("weight", np.float64),
        ("impurity", np.float64),
        ("gain", np.float64),
        ("depth", np.int32),
        ("start", np.int64),
        ("stop", np.int64),
        ("column", np.int32),
        ("cut", np.int64),
        ("upper", np.int64),
        ("side", np.int64),
        ("found_gain", np.float64),
    ],
    align=True,
)


class Rules(NamedTuple):
    """When to stop, in the numbers of the compiled code."""

    max_depth: int
    max_leaves: int  # 0: no limit, and nodes are split depth first
    least: float  # whole-number weight that a child needs
    min_gain: float
    max_features: int
    words: int  # in the largest set of categories


class Tree(NamedTuple):
    """The nodes so far, their values and sets of categories, and the nodes that wait to be split."""

    counters: NDArray[np.int64]
    nodes: NDArray[np.void]
    value: NDArray[np.float64]
    category_bits: NDArray[np.uint64]
    waiting: NDArray[np.int32]


class Room(NamedTuple):
    """Room to work in: columns looked at, marks of rows, keys being moved, the random state."""

    chosen: NDArray[np.int32]
    goes_left: NDArray[np.bool_]
    scratch: NDArray[np.int64]  # (n_threads, n_rows)
    random: NDArray[np.uint64]


@loop
def grow(columns, target, rules, tree, search, room, pace):
    """Grow until no node waits, or there is work for threads, or room or patience ends; says which.

    ``pace`` holds the number of values that makes a node large, and of values to look at before a pause. Growing
    goes on where it stood with the next call.
    """
    state, looked, width = tree.counters, 0, len(columns.counts)
    while True:
        if state[PHASE] == OPEN:
            open_root(columns, target, rules, tree, search)
        elif state[PHASE] == NEXT:
            if state[WAITING] == 0 or (rules.max_leaves > 0 and state[LEAVES] >= rules.max_leaves):
                return DONE
            if state[NODES] + 2 > len(tree.nodes) or state[WORDS] + 2 * rules.words > len(tree.category_bits):
                return FULL
            if looked > pace[1]:
                return PAUSE
            split_node(columns, target, rules, tree, search, room, pop(rules, tree))
        elif state[PHASE] == DIVIDE:
            state[PHASE] = SCAN
            node = tree.nodes[state[NODE]]
            looked += (node.stop - node.start) * width
            if (node.stop - node.start) * width >= pace[0]:
                return DIVIDE_LARGE
            for column in range(width):
                if column != node.column:
                    partition(columns.keys[column, node.start : node.stop], room.goes_left, room.scratch[0])
        elif state[PHASE] == SCAN:
            if state[CHILD] < 0:
                state[PHASE] = NEXT
            elif state[ALIVE] >> state[CHILD] & 1:
                state[PHASE] = SETTLE
                node = tree.nodes[state[CHILDREN] + state[CHILD]]
                choose_columns(columns, rules, state, room, node.start, node.stop)
                if (node.stop - node.start) * state[CHOSEN] >= pace[0]:
                    return SCAN_LARGE
                chosen = room.chosen[: state[CHOSEN]]
                scan_columns(columns, target, search, state[CHILD], node.start, node.stop, chosen)
            else:
                state[CHILD] -= 1
        else:
            settle(columns, rules, tree, search, room)
            state[CHILD] -= 1
            state[PHASE] = SCAN


@inner
def open_root(columns, target, rules, tree, search):
    """Describe the node of all rows."""
    tree.nodes[0].start, tree.nodes[0].stop, tree.nodes[0].depth = 0, columns.keys.shape[1], 0
    # The last row of keys is the order of y where there is one, which the median needs.
    splittable = open_node(target, rules, tree, search, 0, 0, columns.keys[-1])
    state = tree.counters
    state[NODES], state[LEAVES], state[CHILDREN], state[CHILD] = 1, 1, 0, 0
    state[ALIVE] = 1 if splittable else 0
    state[PHASE] = SCAN


@inner
def open_node(target, rules, tree, search, number, child, keys):
    """Describe a new node, as yet a leaf; returns whether it may be split."""
    node = tree.nodes[number]
    node.feature, node.left, node.category_start = -1, -1, -1
    node.threshold, node.missing_left, node.gain = np.nan, False, 0.0
    total, limits = search.total[child], search.limits[child]
    limits[0] = rules.least
    impurity, pure = describe(target, keys, node.start, total, limits, tree.value[number])
    node.impurity, node.weight = impurity, total[0] * target.unit
    return not pure and node.depth < rules.max_depth and total[0] >= 2 * rules.least


@inner
def split_node(columns, target, rules, tree, search, room, number):
    """Give a node its two children, and say which of them may be split further."""
    state, node, left = tree.counters, tree.nodes[number], tree.counters[NODES]
    keys = columns.keys[node.column, node.start : node.stop]
    node.missing_left = mark(keys, target.rows, columns, tree, node, room.goes_left)
    middle = node.start + partition(keys, room.goes_left, room.scratch[0])
    described = node.column
    if columns.keys.shape[0] > len(columns.counts):  # the order of y is divided along
        described = columns.keys.shape[0] - 1
        partition(columns.keys[described, node.start : node.stop], room.goes_left, room.scratch[0])
    if node.category_start < 0:
        values = columns.values[columns.first[node.column] :]
        node.threshold = np.inf if node.upper == MISSING else midpoint(values[node.cut], values[node.upper])
    node.feature, node.left, node.gain = node.column, left, node.found_gain
    state[NODES], state[LEAVES] = left + 2, state[LEAVES] + 1
    state[NODE], state[CHILDREN], state[CHILD], state[ALIVE] = number, left, 1, 0
    for child in range(2):
        branch = tree.nodes[left + child]
        branch.start = node.start if child == 0 else middle
        branch.stop = middle if child == 0 else node.stop
        branch.depth = node.depth + 1
        part = columns.keys[described, branch.start : branch.stop]
        if open_node(target, rules, tree, search, left + child, child, part):
            state[ALIVE] |= 1 << child
    if state[ALIVE] > 0:
        state[PHASE] = DIVIDE


@inner
def mark(keys, rows, columns, tree, node, goes_left):
    """Mark the rows that go left; returns whether missing values do."""
    values, words = columns.values[columns.first[node.column] :], node.category_start
    weight_left, weight_right = 0.0, 0.0
    for key in keys:
        rank, row = key >> 32, key & ROW
        if rank == MISSING:
            left = node.side == LEFT
        elif words >= 0:
            code = np.int64(values[rank])
            left = (tree.category_bits[words + (code >> 6)] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)
        else:
            left = rank <= node.cut
        goes_left[row] = left
        if left:
            weight_left += rows[row, 0]
        else:
            weight_right += rows[row, 0]
    missing_left = node.side == LEFT or (node.side == HEAVIER and weight_left >= weight_right)
    if words >= 0 and missing_left:  # so do the categories that the node does not hold
        for code in range(columns.counts[node.column]):
            tree.category_bits[words + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)
        for key in keys:
            if key >> 32 != MISSING and not goes_left[key & ROW]:
                code = np.int64(values[key >> 32])
                tree.category_bits[words + (code >> 6)] &= ~(np.uint64(1) << np.uint64(code & 63))
    return missing_left


@loop
def partition(keys, goes_left, scratch):
    """Bring the keys of the rows that go left to the front; both parts keep their order."""
    left, right = 0, 0
    for key in keys:
        keys[left] = key
        scratch[right] = key
        step = 1 if goes_left[key & ROW] else 0
        left += step
        right += 1 - step
    for place in range(right):
        keys[left + place] = scratch[place]
    return left


@inner
def midpoint(low, high):
    """The midpoint of two values, or the lower one where rounding leaves nothing between."""
    middle = 0.5 * low + 0.5 * high
    return middle if middle < high else low


@inner
def choose_columns(columns, rules, state, room, start, stop):
    """List the columns to look at in a node: ``max_features`` of those that are not constant there, in their order."""
    count, kept = 0, 0
    for column in range(len(columns.counts)):
        if columns.keys[column, start] >> 32 != columns.keys[column, stop - 1] >> 32:
            room.chosen[count] = column
            count += 1
    wanted = min(count, rules.max_features)
    for place in range(count):  # each is kept with the chance that makes all subsets equally likely
        if wanted == count or draw(room.random, count - place) < wanted - kept:
            room.chosen[kept] = room.chosen[place]
            kept += 1
    state[CHOSEN] = kept


@inner
def settle(columns, rules, tree, search, room):
    """Keep the best of the columns' offers; the node waits for its split if that gains enough."""
    state = tree.counters
    number, child = state[CHILDREN] + state[CHILD], state[CHILD]
    best, winner = NO_SPLIT, -1
    slack, factor = search.limits[child, 1], search.limits[child, 3]
    for column in room.chosen[: state[CHOSEN]]:
        gain = search.offers[column].gain
        if gain > NO_SPLIT and (winner < 0 or gain > best + slack):
            best, winner = gain, column
    if winner >= 0 and (best + slack) * factor >= rules.min_gain:
        node, offer = tree.nodes[number], search.offers[winner]
        node.column, node.cut, node.upper, node.side = winner, offer.cut, offer.upper, offer.side
        node.found_gain = best * factor
        if columns.counts[winner] > 0:
            node.category_start = state[WORDS]
            keep_subset(columns, tree, search.in_left, winner)
        push(rules, tree, number)


@inner
def keep_subset(columns, tree, in_left, column):
    """Append the set of categories that go left."""
    words = tree.counters[WORDS]
    tree.counters[WORDS] += (columns.counts[column] + 63) // 64
    for word in range(words, tree.counters[WORDS]):
        tree.category_bits[word] = 0
    if in_left is not None:
        first = columns.first[column]
        for rank in range(columns.first[column + 1] - first):
            if in_left[column, rank]:
                code = np.int64(columns.values[first + rank])
                tree.category_bits[words + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)


@inner
def comes_before(nodes, one, other):
    """Whether the split of one node is made before the other's: it gains more, or as much and is older."""
    gain, rival = nodes[one].found_gain, nodes[other].found_gain
    return gain > rival or (gain == rival and one < other)


@inner
def push(rules, tree, number):
    """Let a node wait: on a stack, or on a heap by gain where the number of leaves is limited."""
    place = tree.counters[WAITING]
    tree.counters[WAITING] += 1
    while rules.max_leaves > 0 and place > 0 and comes_before(tree.nodes, number, tree.waiting[(place - 1) // 2]):
        tree.waiting[place] = tree.waiting[(place - 1) // 2]
        place = (place - 1) // 2
    tree.waiting[place] = number


@inner
def pop(rules, tree):
    """Take the next node off the stack or heap."""
    tree.counters[WAITING] -= 1
    size = tree.counters[WAITING]
    last = tree.waiting[size]
    first = last if rules.max_leaves == 0 else tree.waiting[0]
    place, child = 0, 1
    while rules.max_leaves > 0 and child < size:
        if child + 1 < size and comes_before(tree.nodes, tree.waiting[child + 1], tree.waiting[child]):
            child += 1
        if not comes_before(tree.nodes, tree.waiting[child], last):
            break
        tree.waiting[place] = tree.waiting[child]
        place, child = child, 2 * child + 1
    if rules.max_leaves > 0:
        tree.waiting[place] = last
    return first
