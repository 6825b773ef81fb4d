"""Growing a tree node by node on sorted columns: split a node, divide its rows, look for the splits of its children.

Every column keeps its keys sorted within the node: a node is the same range ``start:stop`` in all columns, and a split
divides each range in place, keeping the order.

What the rows are to be divided by decides which code is compiled: ``slots`` are None where there is one response and
gains are those of its variance, else the sums that a row adds to, (n_rows, n_entries). Of three, one is not None:
``labels`` are the classes; ``y`` the outputs of a regression by means; ``median``, for the absolute criterion, the
place of each row in the order of y within its node, the responses in that order, and y. ``in_left`` marks the ranks of
categories that go left, None where there are none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import draw, inner, loop, plain
from empirisk.linalg.threads import parallel_map, workers
from empirisk.settings import require
from empirisk.trees.exact.describe import BITS, describe_classes, describe_means, describe_median
from empirisk.trees.exact.scan import (
    ABSOLUTE,
    EXACT,
    GINI,
    HEAVIER,
    LEFT,
    MISSING,
    NO_SPLIT,
    ROW,
    SQUARED,
    scan_absolute,
    scan_squares,
    scan_sums,
    scan_variance,
)
from empirisk.trees.exact.subsets import subset_by_mean, subset_by_median, subset_by_sums
from empirisk.trees.nodes import Nodes, gather_sets

Array = NDArray[np.float64]

LARGE_NODE = 1 << 18  # values in a node from which its columns are shared among threads
VALUES_PER_CALL = 1 << 25  # values scanned between two returns to Python, where the stop flag is checked
ROOM = 1 << 10  # nodes to start with
FIRST, ALONE = np.arange(2)  # the share of the thread that grows, where it has no others
OPEN, DIVIDE, SCAN, SETTLE = range(4)  # phases
DONE, SHARE, FULL, PAUSE = range(4)  # why `grow` returned

#: The rules: deepest node; most leaves, or 0: no limit, and nodes are split depth first; columns looked at; words in
#: the largest set of categories; the criterion; least whole-number weight of a child and of a node that is split,
#: least gain; what a whole-number weight is to be multiplied by. Then where growing stands: nodes, words, waiting nodes
#: and leaves in use; the phase, the node that was split, the first of its children, which children may be split, the
#: one in hand, how many columns it looks at; how many values make a node large, and how many to look at before a
#: pause.
STATE = np.dtype(
    [(name, np.int64) for name in ("max_depth", "max_leaf_nodes", "max_features", "set_words", "criterion")]
    + [(name, np.float64) for name in ("least", "split", "min_impurity_decrease", "unit")]
    + [(name, np.int64) for name in ("nodes", "words", "waiting", "leaves", "phase", "node", "children", "alive")]
    + [(name, np.int64) for name in ("child", "chosen", "large", "values_per_call")]
)
#: One node: what `empirisk.trees.nodes.Nodes` holds, its range of rows, the split found for it, what gains this close
#: are equal, and the factor that makes gains of the scan those of weight times impurity. In the k-th node, ``waiting``
#: is the k-th node that waits to be split.
NODE = np.dtype(
    [(name, np.int64) for name in ("feature", "left", "category_start", "missing_left", "depth", "start", "stop")]
    + [(name, np.int64) for name in ("column", "cut", "upper", "side", "waiting")]
    + [(name, np.float64) for name in ("threshold", "weight", "impurity", "gain", "found_gain", "slack", "factor")]
)
#: One column: where its distinct values begin, how many they are, its number of categories (0: numeric); what a split
#: is judged by, and the best one that it offers (see `empirisk.trees.exact.scan`). In the k-th column, ``chosen`` is
#: the k-th to look at.
COLUMN = np.dtype(
    [(name, np.int64) for name in ("first", "distinct", "categories", "chosen", "criterion", "cut", "upper", "side")]
    + [(name, np.float64) for name in ("least", "slack", "unit", "gain")]
)


class ExactGrowth(NamedTuple):
    """All that growing works on, for compiled code.

    ``keys`` and ``values`` are those of `Presorted`; for the absolute criterion one more row of keys holds the rows in
    the order of y. ``rows`` are weights as whole numbers, then what a row adds to the sums. ``sums`` are those of both
    children of a split, then three lines of room for each thread.
    """

    state: NDArray[np.void]
    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    columns: NDArray[np.void]
    rows: NDArray[np.float64]
    nodes: NDArray[np.void]
    value: NDArray[np.float64]
    category_bits: NDArray[np.uint64]
    sums: NDArray[np.float64]
    goes_left: NDArray[np.bool_]
    scratch: NDArray[np.int64]  # (n_threads, n_rows)
    random: NDArray[np.uint64]


@loop
def grow(growth, slots, labels, y, median, in_left, lane, lanes):
    """Grow until no node waits, there is work for threads, the table is full or the stop flag is due; returns which.

    Growing goes on where it stood with the next call. One of ``lanes`` threads that share the work calls with its
    number, the one that grows with -1.
    """
    state, nodes, looked = growth.state[0], growth.nodes, 0
    if lane >= 0:
        share(growth, slots, median, in_left, lane, lanes)
        return SHARE
    while True:
        if state.phase == OPEN:
            described, divided = len(growth.keys) - 1, state.nodes > 0
            if divided:
                if state.waiting == 0 or (state.max_leaf_nodes > 0 and state.leaves >= state.max_leaf_nodes):
                    return DONE
                if state.nodes + 2 > len(nodes) or state.words + 2 * state.set_words > len(growth.category_bits):
                    return FULL
                if looked > state.values_per_call:
                    return PAUSE
                state.node = pop(state, nodes)
                described = divide_node(growth, nodes[state.node])
            else:
                nodes[0].stop = growth.keys.shape[1]
            state.children = state.nodes
            state.child = 1 if divided else 0
            state.nodes += 1 + state.child
            state.leaves += 1
            state.alive = 0
            for child in range(state.child + 1):
                number, keys, total = state.children + child, growth.keys[described], growth.sums[child]
                node, value, pure = nodes[number], growth.value[number], True
                node.feature = node.left = node.category_start = -1
                node.threshold = np.nan
                node.missing_left = 0
                node.gain = 0.0
                # One of the three is there: the others are not compiled.
                if labels is not None:
                    pure = describe_classes(state, node, keys, growth.rows, slots, labels, total, value)
                if y is not None:
                    pure = describe_means(state, node, keys, growth.rows, y, total, value)
                if median is not None:
                    pure = describe_median(state, node, keys, growth.rows, median, total, value)
                node.weight = total[0] * state.unit
                if not (pure or node.depth >= state.max_depth or total[0] < state.split):
                    state.alive |= 1 << child
            state.phase = DIVIDE if divided and state.alive > 0 else SCAN
        elif state.phase == SETTLE:
            settle(state, growth.columns, nodes, growth.values, growth.category_bits, in_left)
            state.child -= 1
            state.phase = SCAN
        elif state.phase == SCAN and state.child < 0:
            state.phase = OPEN
        elif state.phase == SCAN and (state.alive >> state.child) & 1 == 0:
            state.child -= 1
        else:
            node, width = nodes[state.node], len(growth.columns)
            if state.phase == SCAN:
                node = nodes[state.children + state.child]
                choose_columns(state, growth.keys, growth.columns, growth.random, node)
                width = state.chosen
            state.phase += 1
            looked += (node.stop - node.start) * width
            if (node.stop - node.start) * width >= state.large:
                return SHARE
            share(growth, slots, median, in_left, FIRST, ALONE)


@inner
def share(growth, slots, median, in_left, lane, lanes):
    """What one of several threads does for a node, in its own room: every so many columns are its share.

    Their keys are divided, where columns are to be looked at next; else the best splits are found that they offer the
    child in hand. Each column's offer is found on its own, and the best is taken in their order: threads change no bit.
    """
    state, rows = growth.state[0], growth.rows
    if state.phase == SCAN:
        split = growth.nodes[state.node]
        for number in range(lane, len(growth.columns), lanes):
            if number != split.column:
                partition(growth.keys[number], split.start, split.stop, growth.goes_left, growth.scratch[lane])
        return
    node, total = growth.nodes[state.children + state.child], growth.sums[state.child]
    room = growth.sums[2 + 3 * lane :]
    start, stop, missing = node.start, node.stop, room[0]
    for place in range(lane, state.chosen, lanes):
        number = growth.columns[place].chosen
        column, keys, present = growth.columns[number], growth.keys[number], stop
        column.criterion = state.criterion
        column.least = state.least
        column.slack = node.slack
        column.unit = state.unit
        for k in range(len(missing)):
            missing[k] = 0.0
        while present > start and keys[present - 1] >> 32 == MISSING:
            present -= 1
            row = keys[present] & ROW
            missing[0] += rows[row, 0]
            if slots is None:
                missing[1] += rows[row, 1]
            else:
                for j in range(slots.shape[1]):
                    missing[1 + slots[row, j]] += rows[row, 1 + j]
        categorical = column.categories > 0
        if median is not None:
            here, gone, places, ordered = keys[start:present], keys[present:stop], median[0], median[1][start:stop]
            if not categorical:
                scan_absolute(here, gone, rows, places, ordered, total, column)
            elif in_left is not None:
                subset_by_median(here, gone, rows, places, ordered, total, column, in_left[number])
        elif slots is None:
            if not categorical:
                scan_variance(keys, start, present, rows, total, missing, column)
            elif in_left is not None:
                subset_by_mean(keys[start:present], rows, total, missing, column, in_left[number])
        elif not categorical:
            if state.criterion == GINI and present == stop and total[0] <= EXACT:
                scan_squares(keys, start, stop, rows, slots, total, room, column)
            else:
                scan_sums(keys, start, present, rows, slots, total, room, column)
        elif in_left is not None:
            subset_by_sums(keys[start:present], rows, slots, total, room, column, in_left[number])


@plain
def divide_node(growth, node):
    """Divide the rows of a node and open its children; returns the row of keys by which these are to be described."""
    state, keys, values, columns, nodes = growth.state[0], growth.keys, growth.values, growth.columns, growth.nodes
    column, goes_left, scratch, start, stop = (
        columns[node.column],
        growth.goes_left,
        growth.scratch[0],
        node.start,
        node.stop,
    )
    mark(keys[node.column], growth.rows, values, column, node, growth.category_bits, goes_left)
    middle, described = partition(keys[node.column], start, stop, goes_left, scratch), node.column
    if len(keys) > len(columns):  # the order of y is divided along
        described = len(keys) - 1
        partition(keys[described], start, stop, goes_left, scratch)
    if node.category_start < 0:
        low, high = values[column.first + node.cut], np.inf
        node.threshold = np.inf
        if node.upper != MISSING:  # the midpoint, or the lower value where rounding leaves nothing between
            high = values[column.first + node.upper]
            half = 0.5 * low + 0.5 * high
            node.threshold = half if half < high else low
    node.feature = node.column
    node.left = state.nodes
    node.gain = node.found_gain
    for child in range(2):
        branch = nodes[state.nodes + child]
        branch.start = middle if child else start
        branch.stop = stop if child else middle
        branch.depth = node.depth + 1
    return described


@plain
def mark(keys, rows, values, column, node, bits, goes_left):
    """Mark the rows of a node that go left; rows without a value go with the heavier child where there were none."""
    words, first, heavier = node.category_start, column.first, 0.0
    for k in range(node.start, node.stop):
        key = keys[k]
        rank, row = key >> 32, key & ROW
        left, weight = rank <= node.cut, rows[row, 0]
        if rank == MISSING:
            left = node.side == LEFT
        elif words >= 0:
            code = np.int64(values[first + rank])
            left = (bits[words + (code >> 6)] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)
        goes_left[row] = left
        heavier += weight if left else -weight
    node.missing_left = 1 if node.side == LEFT or (node.side == HEAVIER and heavier >= 0.0) else 0
    if words >= 0 and node.missing_left:  # so do the categories that the node does not hold
        for code in range(column.categories):
            bits[words + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)
        for k in range(node.start, node.stop):
            key = keys[k]
            if key >> 32 != MISSING and not goes_left[key & ROW]:
                code = np.int64(values[first + (key >> 32)])
                bits[words + (code >> 6)] &= ~(np.uint64(1) << np.uint64(code & 63))


@plain
def partition(keys, start, stop, goes_left, scratch):
    """Bring the keys of the rows that go left to the front of a range, keeping both orders; where the others begin."""
    left, right = start, 0
    for k in range(start, stop):
        key = keys[k]
        keys[left] = key
        scratch[right] = key
        step = 1 if goes_left[key & ROW] else 0
        left += step
        right += 1 - step
    for place in range(right):
        keys[left + place] = scratch[place]
    return left


@plain
def choose_columns(state, keys, columns, random, node):
    """List the columns to look at in a node: ``max_features`` of those that are not constant there, in their order."""
    count, kept = 0, 0
    for column in range(len(columns)):
        if keys[column, node.start] >> 32 != keys[column, node.stop - 1] >> 32:
            columns[count].chosen = column
            count += 1
    wanted = count if count < state.max_features else state.max_features
    for place in range(count):  # each is kept with the chance that makes all subsets equally likely
        if wanted == count or draw(random, count - place) < wanted - kept:
            columns[kept].chosen = columns[place].chosen
            kept += 1
    state.chosen = kept


@plain
def settle(state, columns, nodes, values, bits, in_left):
    """Keep the best of the columns' offers; the node waits for its split if that gains enough."""
    number, best, winner = state.children + state.child, NO_SPLIT, np.int64(-1)
    node = nodes[number]
    for place in range(state.chosen):
        gain = columns[columns[place].chosen].gain
        if gain > NO_SPLIT and (winner < 0 or gain > best + node.slack):
            best = gain
            winner = columns[place].chosen
    if winner < 0 or (best + node.slack) * node.factor < state.min_impurity_decrease:
        return
    offer = columns[winner]
    node.column = winner
    node.cut = offer.cut
    node.upper = offer.upper
    node.side = offer.side
    node.found_gain = best * node.factor
    if in_left is not None and offer.categories > 0:  # append the set of categories that go left
        node.category_start = state.words
        state.words += (offer.categories + 63) // 64
        for word in range(node.category_start, state.words):
            bits[word] = 0
        for rank in range(offer.distinct):
            if in_left[winner, rank]:
                code = np.int64(values[offer.first + rank])
                bits[node.category_start + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)
    # It waits on a stack, or on a heap by gain where the number of leaves is limited.
    place = state.waiting
    state.waiting += 1
    while state.max_leaf_nodes > 0 and place > 0 and comes_before(nodes, number, nodes[(place - 1) // 2].waiting):
        nodes[place].waiting = nodes[(place - 1) // 2].waiting
        place = (place - 1) // 2
    nodes[place].waiting = number


@plain
def comes_before(nodes, one, other):
    """Whether the split of one node is made before the other's: it gains more, or as much and is older."""
    gain, rival = nodes[one].found_gain, nodes[other].found_gain
    return gain > rival or (gain == rival and one < other)


@plain
def pop(state, nodes):
    """Take the next node off the stack or heap."""
    state.waiting -= 1
    size, last = state.waiting, nodes[state.waiting].waiting
    if state.max_leaf_nodes == 0:
        return last
    first, place, child = nodes[0].waiting, 0, 1
    while child < size:
        if child + 1 < size and comes_before(nodes, nodes[child + 1].waiting, nodes[child].waiting):
            child += 1
        if not comes_before(nodes, nodes[child].waiting, last):
            break
        nodes[place].waiting = nodes[child].waiting
        place, child = child, 2 * child + 1
    nodes[place].waiting = last
    return first


# --- sorted columns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Presorted:
    """Each column as a sorted list of keys, and the distinct values that the ranks stand for.

    A key is ``rank << 32 | row``: one number carries the order and the row, and rows of one value share a rank.

    Attributes
    ----------
    keys : (n_features, n_rows) int64
        Sorted keys of each column; missing values have the last rank.
    values : (n_distinct,) float64
        Distinct values of all columns, one column after the other.
    first : (n_features + 1,) int64
        Where each column starts in `values`.
    """

    keys: NDArray[np.int64]
    values: Array
    first: NDArray[np.int64]


def presort(X: Array) -> Presorted:
    """Sort every column of ``X`` (NaN is missing)."""
    n_rows, n_features = X.shape
    require(8 * n_rows * n_features, "the sorted columns of an exact tree", "use a forest or boosting, which bin them")
    keys = np.empty((n_features, n_rows), dtype=np.int64)

    def sort(column: int) -> Array:
        x = np.ascontiguousarray(X[:, column])
        order = np.argsort(x)
        x = x[order]
        starts = np.append(True, x[1:] != x[:-1])  # every NaN starts a rank of its own: they come last, and have none
        keys[column] = np.where(np.isnan(x), MISSING, np.cumsum(starts) - 1) << 32 | order
        return x[starts & ~np.isnan(x)]

    columns = range(n_features)
    distinct = parallel_map(sort, columns) if X.size >= LARGE_NODE else [sort(column) for column in columns]
    first = np.concatenate([[0], np.cumsum([len(values) for values in distinct])]).astype(np.int64)
    return Presorted(keys, np.concatenate(distinct), first)


# --- from a target to the nodes of a tree -----------------------------------------------------------------------------


class ExactTarget(NamedTuple):
    """What the rows are divided by (see `grow`); how many sums and values a node has."""

    criterion: int
    unit: float
    rows: Array
    sums: int
    values: int
    slots: NDArray[np.int64] | None = None
    labels: NDArray[np.int64] | None = None
    y: Array | None = None
    median: tuple[NDArray[np.int64], Array, Array] | None = None


@dataclass(frozen=True)
class TreeLimits:
    """When an exact tree stops growing; see `empirisk.TreeClassifier` for the meaning."""

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_features: int | None = None
    seed: int = 0


class Grower:
    """Exact trees on the same rows: the columns are sorted once, for any number of trees.

    Parameters
    ----------
    X : (n_rows, n_features) float64
        Numbers and category codes; NaN is missing.
    counts : (n_features,) int
        Number of categories of each column, 0 for a numeric one.
    limits : Limits
        When to stop.
    stopped : callable
        Asked now and then; once it says yes, nodes that wait for their split stay leaves.
    reuse : bool
        Whether there will be more than one tree; otherwise the first one uses the sorted columns up.
    """

    def __init__(
        self,
        X: Array,
        counts: NDArray[np.int32],
        limits: TreeLimits,
        stopped: Callable[[], bool] = lambda: False,
        reuse: bool = False,
    ):
        self._presorted = presort(X)
        self._reuse = reuse
        self._counts = np.ascontiguousarray(counts, dtype=np.int32)
        self._limits = limits
        self._stopped = stopped
        # Numbers, none of them missing: the rows that go left come first already.
        self._in_place = (self._counts == 0) & (self._presorted.keys[:, -1] >> 32 != MISSING)

    def classes(self, labels: NDArray[np.integer], n_classes: int, weights: Array, criterion: int) -> Nodes:
        """A classification tree for labels 0, ..., n_classes - 1."""
        whole, unit = whole_weights(weights)
        labels = labels.astype(np.int64)
        if criterion == GINI and n_classes == 2:
            rows = np.column_stack([whole, whole * labels])
            return self._grow(ExactTarget(criterion, unit, rows, 1, 2, labels=labels), weights)
        rows, slots = np.column_stack([whole, whole]), labels[:, None]
        return self._grow(ExactTarget(criterion, unit, rows, n_classes, n_classes, slots, labels), weights)

    def outputs(self, y: Array, weights: Array, criterion: int = SQUARED) -> Nodes:
        """A regression tree for outputs of shape (n_rows, n_outputs)."""
        whole, unit = whole_weights(weights)
        y = np.ascontiguousarray(y, dtype=np.float64)
        n_rows, n_outputs = y.shape
        rows = np.column_stack([whole, np.zeros_like(y)])
        if criterion == ABSOLUTE:
            median = np.zeros(n_rows, np.int64), np.zeros(n_rows), y
            return self._grow(ExactTarget(criterion, unit, rows, 2, 1, median=median), weights)
        slots = None if n_outputs == 1 else np.tile(np.arange(n_outputs), (n_rows, 1))
        return self._grow(ExactTarget(criterion, unit, rows, n_outputs, n_outputs, slots, y=y), weights)

    def _grow(self, target: ExactTarget, weights: Array) -> Nodes:
        keys = self._presorted.keys
        if target.median is not None:
            keys = np.vstack([keys, presort(target.median[2]).keys])
        elif self._reuse and self._limits.max_depth != 1:
            keys = keys.copy()  # they are divided in place as the tree grows
        growth = self._run(self._room(keys, target, weights), target)
        split = growth.nodes["feature"][0]
        if self._limits.max_depth == 1 and split >= 0 and not self._in_place[split]:
            keys[split].sort()  # the one column that a stump divides, in order again
        return _finished(growth, self._counts)

    def _room(self, keys: NDArray[np.int64], target: ExactTarget, weights: Array) -> ExactGrowth:
        """The memory in which a tree grows; compiled code looks at nothing else."""
        n_features, n_rows = len(self._counts), keys.shape[1]
        columns = np.zeros(n_features, COLUMN)
        columns["first"], columns["distinct"] = self._presorted.first[:-1], np.diff(self._presorted.first)
        columns["categories"] = self._counts
        state = _state(self._limits, self._counts, target, weights)
        return ExactGrowth(
            state=state,
            keys=keys,
            values=self._presorted.values,
            columns=columns,
            rows=target.rows,
            nodes=np.zeros(ROOM, NODE),
            value=np.zeros((ROOM, target.values)),
            category_bits=np.zeros(8 * int(state["set_words"][0]), np.uint64),
            sums=np.zeros((2 + 3 * workers(), 1 + target.sums)),
            goes_left=np.zeros(n_rows, np.bool_),
            scratch=np.zeros((workers(), n_rows), np.int64),
            random=np.array([self._limits.seed], np.uint64),
        )

    def _run(self, growth: ExactGrowth, target: ExactTarget) -> ExactGrowth:
        """Grow the whole tree: compiled code grows it, and hands the columns of large nodes to threads."""
        most, lanes = int(self._counts.max()), len(growth.scratch)
        in_left = np.zeros((len(self._counts), most), np.bool_) if most else None

        def run(lane: int) -> int:
            return grow(growth, target.slots, target.labels, target.y, target.median, in_left, lane, lanes)

        while (reason := run(-1)) != DONE:
            if self._stopped():
                break
            if reason == FULL:
                growth = _enlarged(growth)
            elif reason == SHARE:
                parallel_map(run, range(lanes))
        return growth


def whole_weights(weights: Array) -> tuple[Array, float]:
    """Weights as whole numbers, and the unit that turns them back.

    Their sum is at most `EXACT` where that loses nothing, as for counts of rows, else below 2^BITS.
    """
    for bits in (EXACT.bit_length() - 1, BITS):
        exponent = bits - int(np.frexp(weights.sum())[1])
        scaled = np.ldexp(weights, exponent)
        whole = np.rint(scaled)
        if np.array_equal(whole, scaled):
            break
    return whole, float(np.ldexp(1.0, -exponent))


def _state(limits: TreeLimits, counts: NDArray[np.int32], target: ExactTarget, weights: Array) -> NDArray[np.void]:
    """The rules, and where growing starts."""
    unit, state = target.unit, np.zeros(1, STATE)
    total = float(weights.sum())
    # One row is always enough for a leaf, whatever its weight; 1 is the least whole-number weight. Parts of all rows
    # are rounded down, so that half the weight can be asked of both children.
    least = _in_units(limits.min_samples_leaf, 1, total, unit)
    state["least"] = max(1.0, least, np.floor(limits.min_weight_fraction_leaf * total / unit))
    state["split"] = max(2 * float(state["least"][0]), _in_units(limits.min_samples_split, 2, total, unit))
    state["max_depth"] = np.iinfo(np.int64).max if limits.max_depth is None else limits.max_depth
    state["max_leaf_nodes"] = limits.max_leaf_nodes or 0
    state["max_features"] = len(counts) if limits.max_features is None else limits.max_features
    state["min_impurity_decrease"], state["set_words"] = (
        limits.min_impurity_decrease * float(weights.sum()),
        (int(counts.max()) + 63) // 64,
    )
    state["criterion"], state["unit"] = target.criterion, unit
    state["large"], state["values_per_call"] = LARGE_NODE, VALUES_PER_CALL
    return state


def _in_units(asked: float, free: float, total: float, unit: float) -> float:
    """A weight that is asked for, as a whole-number weight: below 1 a part of all; up to ``free`` nothing is asked."""
    if asked < 1:
        return float(np.floor(asked * total / unit))
    return asked / unit if asked > free else 0.0


def _enlarged(growth: ExactGrowth) -> ExactGrowth:
    """Twice the room for nodes and sets of categories."""
    names = ("nodes", "value", "category_bits")
    return growth._replace(**{name: np.concatenate([getattr(growth, name)] * 2) for name in names})


def _finished(growth: ExactGrowth, counts: NDArray[np.int32]) -> Nodes:
    """The nodes in arrays of their own."""
    nodes = growth.nodes[: growth.state["nodes"][0]]
    names = ("feature", "threshold", "left", "missing_left", "weight", "impurity", "gain")
    words = (counts[nodes["feature"]] + 63) // 64
    start = np.where(nodes["feature"] >= 0, nodes["category_start"], -1)
    start, bits = gather_sets(start, words, growth.category_bits)
    return Nodes.from_splits(
        **{name: nodes[name] for name in names},
        value=growth.value[: len(nodes)].copy(),
        n_features=len(counts),
        category_start=start,
        category_bits=bits,
        category_counts=counts,
    )
