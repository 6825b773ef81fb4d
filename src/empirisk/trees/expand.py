"""Growing a tree node by node on sorted columns: find the best split of a node, divide its rows, describe the children.

Every column keeps its keys sorted within the node: a node is the same range ``start:stop`` in all columns, and a split
divides each range in place, keeping the order.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from empirisk.trees.describe import DEVIATION, VARIANCE, describe
from empirisk.trees.deviation import scan_absolute
from empirisk.trees.presort import MISSING, ROW
from empirisk.trees.scan import HEAVIER, LEFT, NO_SPLIT, scan_sums, scan_variance
from empirisk.trees.subsets import find_subset

NODES, WORDS, WAITING, LEAVES = range(4)  # places in Tree.counters
DONE, LARGE, FULL, PAUSE = range(4)  # why `grow_small` returned


class Sorted(NamedTuple):
    """The columns; `empirisk.trees.presort.Presorted` with the number of categories of each column.

    The absolute criterion adds one more row of keys: the rows in the order of y.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    first: NDArray[np.int64]
    counts: NDArray[np.int32]


class Rules(NamedTuple):
    """When to stop, in the numbers of the compiled code."""

    max_depth: int
    max_leaves: int  # 0: no limit, and nodes are expanded depth first
    least: float  # whole-number weight that a child needs
    min_gain: float
    max_features: int


#: One node: what `empirisk.trees.nodes.Nodes` holds, its range of rows, and the split found for it. Records, because
#: compiled code handles one array much faster than twenty, and is itself compiled faster.
NODE = np.dtype(
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

#: The best split that a column offers a node; see `empirisk.trees.scan`.
OFFER = np.dtype([("gain", np.float64), ("cut", np.int64), ("upper", np.int64), ("side", np.int64)])


class Tree(NamedTuple):
    """The nodes so far, their values and sets of categories, and the nodes that wait to be split."""

    counters: NDArray[np.int64]
    nodes: NDArray[np.void]
    value: NDArray[np.float64]
    category_bits: NDArray[np.uint64]
    waiting: NDArray[np.int32]


class Search(NamedTuple):
    """Room to work in: what each column offers, the two children's sums, marks of rows."""

    chosen: NDArray[np.int32]
    offers: NDArray[np.void]
    in_left: NDArray[np.bool_]  # (n_features, most categories): ranks that go left
    total: NDArray[np.float64]  # (2, 1 + n_sums): of the left and of the right child
    limits: NDArray[np.float64]  # (2, 4): see `empirisk.trees.describe.describe_classes`
    goes_left: NDArray[np.bool_]
    scratch: NDArray[np.int64]  # (n_threads, n_rows)
    random: NDArray[np.uint64]


@njit(cache=True, nogil=True)
def scan_column(columns, target, search, child, start, stop, column):
    """Write what the best split of this column offers a node."""
    keys = columns.keys[column, start:stop]
    present = len(keys)
    missing = np.zeros(search.total.shape[1])
    while present > 0 and keys[present - 1] >> 32 == MISSING:
        present -= 1
        row = keys[present] & ROW
        missing[0] += target.rows[row, 0]
        for j in range(target.slots.shape[1]):
            missing[1 + target.slots[row, j]] += target.rows[row, 1 + j]
    gone, keys = keys[present:], keys[:present]
    total, limits = search.total[child], search.limits[child]
    ordered = target.ordered[start:stop] if target.form == DEVIATION else target.ordered
    cut, upper = np.int64(-1), np.int64(-1)
    if columns.counts[column] > 0:
        in_left = search.in_left[column]
        in_left.fill(False)
        gain, side = find_subset(target, keys, gone, ordered, total, missing, limits, in_left)
    elif target.form == VARIANCE:
        gain, cut, upper, side = scan_variance(keys, target.rows, total, missing, limits)
    elif target.form == DEVIATION:
        gain, cut, upper, side = scan_absolute(keys, gone, target.rows, target.places, ordered, total, limits)
    else:
        gain, cut, upper, side = scan_sums(target.criterion, keys, target.rows, target.slots, total, missing, limits)
    search.offers[column].gain, search.offers[column].cut, search.offers[column].upper = gain, cut, upper
    search.offers[column].side = side


@njit(cache=True, nogil=True)
def scan_columns(columns, target, search, child, start, stop, chosen):
    """`scan_column` for each of the chosen columns."""
    for column in chosen:
        scan_column(columns, target, search, child, start, stop, column)


@njit(cache=True, nogil=True)
def choose_columns(columns, rules, search, start, stop):
    """The columns to look at in a node: ``max_features`` of those that are not constant there, in their order."""
    count = 0
    for column in range(len(columns.counts)):
        if columns.keys[column, start] >> 32 != columns.keys[column, stop - 1] >> 32:
            search.chosen[count] = column
            count += 1
    if count <= rules.max_features:
        return search.chosen[:count]
    kept = 0
    for place in range(count):  # each is kept with the chance that leaves all subsets equally likely
        if _below(search.random, count - place) < rules.max_features - kept:
            search.chosen[kept] = search.chosen[place]
            kept += 1
    return search.chosen[:kept]


@njit(cache=True, nogil=True)
def _below(random, bound):
    """A random whole number below ``bound`` (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = random[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.int64(mixed >> np.uint64(1)) % bound


@njit(cache=True, nogil=True)
def settle(columns, rules, tree, search, child, node, chosen):
    """Keep the best of the columns' offers; the node waits for its split if that gains enough."""
    best, winner = NO_SPLIT, -1
    slack, factor = search.limits[child, 1], search.limits[child, 3]
    for column in chosen:
        if search.offers[column].gain > NO_SPLIT and (winner < 0 or search.offers[column].gain > best + slack):
            best, winner = search.offers[column].gain, column
    if winner < 0 or (best + slack) * factor < rules.min_gain:
        return
    tree.nodes[node].column, tree.nodes[node].cut, tree.nodes[node].upper = (
        winner,
        search.offers[winner].cut,
        search.offers[winner].upper,
    )
    tree.nodes[node].side, tree.nodes[node].found_gain = search.offers[winner].side, best * factor
    count = columns.counts[winner]
    if count > 0:
        words = tree.counters[WORDS]
        tree.nodes[node].category_start = words
        tree.counters[WORDS] += (count + 63) // 64
        for word in range(words, tree.counters[WORDS]):
            tree.category_bits[word] = 0
        first = columns.first[winner]
        for rank in range(columns.first[winner + 1] - first):
            if search.in_left[winner, rank]:
                _set_bit(tree.category_bits, words, np.int64(columns.values[first + rank]))
    push(rules, tree, node)


@njit(cache=True, nogil=True)
def _set_bit(bits, start, code):
    bits[start + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)


@njit(cache=True, nogil=True)
def _comes_before(tree, node, other):
    if tree.nodes[node].found_gain == tree.nodes[other].found_gain:
        return node < other
    return tree.nodes[node].found_gain > tree.nodes[other].found_gain


@njit(cache=True, nogil=True)
def push(rules, tree, node):
    """Let a node wait: on a stack, or on a heap by gain where the number of leaves is limited."""
    place = tree.counters[WAITING]
    tree.counters[WAITING] += 1
    while rules.max_leaves > 0 and place > 0 and _comes_before(tree, node, tree.waiting[(place - 1) // 2]):
        tree.waiting[place] = tree.waiting[(place - 1) // 2]
        place = (place - 1) // 2
    tree.waiting[place] = node


@njit(cache=True, nogil=True)
def top(rules, tree):
    """The node to expand next."""
    return tree.waiting[0 if rules.max_leaves > 0 else tree.counters[WAITING] - 1]


@njit(cache=True, nogil=True)
def pop(rules, tree):
    """Take the next node off the stack or heap."""
    tree.counters[WAITING] -= 1
    size = tree.counters[WAITING]
    if rules.max_leaves == 0:
        return tree.waiting[size]
    first, last = tree.waiting[0], tree.waiting[size]
    place, child = 0, 1
    while child < size:
        if child + 1 < size and _comes_before(tree, tree.waiting[child + 1], tree.waiting[child]):
            child += 1
        if not _comes_before(tree, tree.waiting[child], last):
            break
        tree.waiting[place] = tree.waiting[child]
        place, child = child, 2 * child + 1
    tree.waiting[place] = last
    return first


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def partition_columns(columns, search, lane, start, stop, split, chosen):
    """`partition` for each chosen column but the one of the split, which is divided already."""
    for column in chosen:
        if column != split:
            partition(columns.keys[column, start:stop], search.goes_left, search.scratch[lane])


@njit(cache=True, nogil=True)
def mark(columns, target, tree, search, node):
    """Mark the rows that go left; returns whether missing values do."""
    column, cut, side = tree.nodes[node].column, tree.nodes[node].cut, tree.nodes[node].side
    keys = columns.keys[column, tree.nodes[node].start : tree.nodes[node].stop]
    first, words = columns.first[column], tree.nodes[node].category_start
    weight_left, weight_right = 0.0, 0.0
    for key in keys:
        rank, row = key >> 32, key & ROW
        if rank == MISSING:
            left = side == LEFT
        elif words >= 0:
            code = np.int64(columns.values[first + rank])
            left = (tree.category_bits[words + (code >> 6)] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)
        else:
            left = rank <= cut
        search.goes_left[row] = left
        if left:
            weight_left += target.rows[row, 0]
        else:
            weight_right += target.rows[row, 0]
    missing_left = side == LEFT or (side == HEAVIER and weight_left >= weight_right)
    if words >= 0 and missing_left:
        _complete(columns, tree, node, keys)
    return missing_left


@njit(cache=True, nogil=True)
def _complete(columns, tree, node, keys):
    """Send the categories that the node does not hold where missing values go: to the left."""
    column, words = tree.nodes[node].column, tree.nodes[node].category_start
    held = np.zeros(columns.counts[column], dtype=np.bool_)
    first = columns.first[column]
    for key in keys:
        if key >> 32 != MISSING:
            held[np.int64(columns.values[first + (key >> 32)])] = True
    for code in range(len(held)):
        if not held[code]:
            _set_bit(tree.category_bits, words, code)


@njit(cache=True, nogil=True)
def threshold_between(low, high):
    """The midpoint, or the lower value where rounding leaves nothing between."""
    middle = 0.5 * low + 0.5 * high
    return middle if middle < high else low


@njit(cache=True, nogil=True)
def split_node(columns, target, rules, tree, search, node):
    """Give a node its two children; returns which of them may be split further (bit 0: left, bit 1: right)."""
    start, stop, column = tree.nodes[node].start, tree.nodes[node].stop, tree.nodes[node].column
    tree.nodes[node].missing_left = mark(columns, target, tree, search, node)
    count = partition(columns.keys[column, start:stop], search.goes_left, search.scratch[0])
    described = column
    if target.form == DEVIATION:
        described = len(columns.counts)
        partition(columns.keys[described, start:stop], search.goes_left, search.scratch[0])
    if tree.nodes[node].category_start < 0:
        first, upper = columns.first[column], tree.nodes[node].upper
        tree.nodes[node].threshold = (
            np.inf
            if upper == MISSING
            else threshold_between(columns.values[first + tree.nodes[node].cut], columns.values[first + upper])
        )
    left = tree.counters[NODES]
    tree.counters[NODES] += 2
    tree.counters[LEAVES] += 1
    tree.nodes[node].feature, tree.nodes[node].left, tree.nodes[node].gain = column, left, tree.nodes[node].found_gain
    alive = 0
    for child in range(2):
        tree.nodes[left + child].start = start if child == 0 else start + count
        tree.nodes[left + child].stop = start + count if child == 0 else stop
        tree.nodes[left + child].depth = tree.nodes[node].depth + 1
        if open_node(columns, target, rules, tree, search, left + child, child, described):
            alive |= 1 << child
    return alive


@njit(cache=True, nogil=True)
def open_node(columns, target, rules, tree, search, node, child, described):
    """Describe a new node, as yet a leaf; returns whether it may be split."""
    start, stop = tree.nodes[node].start, tree.nodes[node].stop
    tree.nodes[node].feature, tree.nodes[node].left, tree.nodes[node].category_start = -1, -1, -1
    tree.nodes[node].threshold, tree.nodes[node].missing_left, tree.nodes[node].gain = np.nan, False, 0.0
    total, limits = search.total[child], search.limits[child]
    limits[0] = rules.least
    keys = columns.keys[described, start:stop]
    tree.nodes[node].impurity, pure = describe(target, keys, start, total, limits, tree.value[node])
    tree.nodes[node].weight = total[0] * target.unit
    return not pure and tree.nodes[node].depth < rules.max_depth and total[0] >= 2 * rules.least


@njit(cache=True, nogil=True)
def grow_small(columns, target, rules, tree, search, limits):
    """Expand waiting nodes until none is left, or the next is large, or room or patience ends; says which.

    ``limits`` are the number of values that makes a node large, and of values to look at before a pause.
    """
    width, looked = len(columns.counts), 0
    words = 2 * ((search.in_left.shape[1] + 63) // 64)
    every = np.arange(columns.keys.shape[0]).astype(np.int32)
    while tree.counters[WAITING] > 0:
        if rules.max_leaves > 0 and tree.counters[LEAVES] >= rules.max_leaves:
            break
        node = top(rules, tree)
        size = (tree.nodes[node].stop - tree.nodes[node].start) * width
        if size >= limits[0]:
            return LARGE
        if tree.counters[NODES] + 2 > len(tree.nodes) or tree.counters[WORDS] + words > len(tree.category_bits):
            return FULL
        if looked > limits[1]:
            return PAUSE
        looked += size
        pop(rules, tree)
        start, stop = tree.nodes[node].start, tree.nodes[node].stop
        alive = split_node(columns, target, rules, tree, search, node)
        if alive:
            last = len(every) if target.form != DEVIATION else width  # the order of y is divided already
            partition_columns(columns, search, 0, start, stop, tree.nodes[node].column, every[:last])
        for child in range(1, -1, -1):
            if alive >> child & 1:
                branch = tree.nodes[node].left + child
                start, stop = tree.nodes[branch].start, tree.nodes[branch].stop
                chosen = choose_columns(columns, rules, search, start, stop)
                scan_columns(columns, target, search, child, start, stop, chosen)
                settle(columns, rules, tree, search, child, branch, chosen)
    return DONE
