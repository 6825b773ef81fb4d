"""Trees grown by one thread each: those of forests, on bootstrap samples, where a node looks at a few columns drawn at
random and sums one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import draw, plain, plain_loop
from empirisk.trees.binned.bins import MISSING, WIDTH, Binning
from empirisk.trees.binned.splits import (
    HALF,
    LOW,
    NODE,
    RULE_NAMES,
    STATE,
    Several,
    class_score,
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
    try_classes,
    try_column,
    unit,
)
from empirisk.trees.nodes import Packed, pack_trees
from empirisk.trees.predict import flatten
from empirisk.trees.resample import Groups
from empirisk.trees.walk import COLUMN, CROWD, NO_LEAVES, TASK, Flat, walk, walk_swapped

Array = NDArray[np.float64]

TURN = 1 << 26  # steps between two questions whether to stop
DRAWS = 4  # draws for each group of rows up to which they are made one by one
MOST_ROWS = 1 << 28  # rows that whole numbers of draws may count
SMALL, SPARSE = 16, 128  # rows up to which sorting beats counting, and listing bins beats looking at all of them
JUDGED = 256  # rows outside its sample on which a tree judges its columns

#: Lines of the room to work in: all bins; some bins, and their sums; a histogram that is all zero between two columns.
EVERY, BINS, SUMS, HISTOGRAM = range(4)


class Growth(NamedTuple):
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
def look(growth, several, node):
    """Find a split of a node among columns drawn at random; columns that are constant here do not count."""
    state, order, here = growth.state[0], growth.order, node.depth & 1
    rows, packed, node.gain = growth.rows[here], growth.packed[here], 0.0
    # Pure nodes stay whole: one class, or numbers equal but for the rounding of both.
    weight, pure = node.sum & LOW, True
    if several is not None:
        own, weight, pure = class_score(state, several, packed, node)
    else:
        own, _ = score_of(node.sum, state, node.lowest, node.highest)
        first, times = float(packed[node.start] >> HALF), packed[node.start] & LOW
        for k in range(node.start + 1, node.stop):
            often = packed[k] & LOW
            pure &= 2.0 * abs((packed[k] >> HALF) * float(times) - first * often) < times + often
    if pure or node.depth >= state.max_depth or weight < 2 or weight < 2 * state.least:
        return
    node.count = weight
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
            score = try_classes(state, several, column, codes, rows, packed, node, growth.seed, best)
        else:
            score = look_at(state, column, codes, rows, packed, node, growth.room, best)
        if score == score:
            looked += 1
            best = score
    node.gain = best - own if best > own else 0.0


@plain_loop
def grow_alone(growth, several, work):
    """Grow for about ``work`` steps; whether the tree is complete. The next call goes on where this one stood.

    ``several`` is None, or the room that more than two classes need.
    """
    state, nodes, spent = growth.state[0], growth.nodes, np.int64(0)
    if state.nodes == 0:
        total = np.int64(0)
        for k in range(growth.rows.shape[1]):
            total += growth.packed[0, k]
        open_root(nodes, growth.rows.shape[1], total)
        state.nodes = 1
    while True:
        while state.looked < state.nodes:
            node = nodes[state.looked]
            look(growth, several, node)
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
        state.nodes += 2


@plain_loop
def value_leaves(growth, y):
    """The mean of the target in each leaf: a Newton step from zero on the squared error."""
    state = growth.state[0]
    for number in range(state.nodes):
        node = growth.nodes[number]
        if node.left < 0:
            here, total, weight = node.depth & 1, 0.0, 0.0
            for k in range(node.start, node.stop):
                times = growth.packed[here, k] & LOW
                total += times * y[growth.rows[here, k]]
                weight += times
            node.value = leaf_value(state, node, -total, weight)


@dataclass(frozen=True, eq=False)
class Target:
    """What the trees learn: numbers, or the numbers of ``classes`` classes (0 for a regression).

    ``centre`` is the mean of the numbers; ``purity`` turns a gain in impurity times weight into one of the search.
    """

    y: NDArray
    classes: int = 0
    centre: float = 0.0
    purity: float = 1.0

    @classmethod
    def of_classes(cls, codes: NDArray, classes: int, entropy: bool) -> "Target":
        """Class numbers. For two classes the search looks at the second one only, which is half of the Gini gain."""
        return cls(codes.astype(np.int64), classes, purity=0.5 if classes <= 2 and not entropy else 1.0)

    @property
    def several(self) -> int:
        """Number of classes where it takes more than one number to describe a leaf, else 0."""
        return self.classes if self.classes > 2 else 0

    @property
    def outputs(self) -> int:
        """Numbers that describe a leaf."""
        return max(self.several, 1)

    def loss(self, answers: Array, rows: NDArray) -> Array:
        """Squared error of each row's answer, or whether it is another class."""
        if self.classes == 0:
            return (answers[:, 0] - self.y[rows]) ** 2
        chosen = answers.argmax(axis=1) if self.several else answers[:, 0] >= 0.5
        return (chosen != self.y[rows]).astype(np.float64)

    def in_units(self, rows: NDArray, counts: NDArray) -> tuple[NDArray[np.int64], float]:
        """Target times count of each row, in whole units, and the unit: so fine that sums just fit 31 bits."""
        if self.classes:
            return self.y[rows] * counts.astype(np.int64), 1.0
        centred = self.y[rows] - self.centre
        total = float(np.abs(centred) @ counts)
        if counts.dtype.kind == "i":  # rounded before they are counted: equal targets stay equal
            step = unit(total, int(counts.sum()))
            return np.rint(centred / step).astype(np.int64) * counts, step
        step = unit(total, len(rows))
        return np.rint(centred * counts / step).astype(np.int64), step


class Grown(NamedTuple):
    """A tree of a forest, and what it says of rows that are not in its sample.

    ``rises`` says how much its loss on some of those rows rises when they swap the values of each column.
    """

    packed: Packed
    outside: NDArray[np.intp]
    answers: Array
    rises: Array


class SampleGrower:
    """Grows the trees of one forest.

    Parameters
    ----------
    X, binning : array, Binning
        The table, and how its values become bins.
    target : Target
        What to learn.
    groups : Groups
        Equal rows and their weights.
    weights : (n_rows,)
        Weights by which trees are judged.
    rules : array
        How trees grow (see `empirisk.trees.binned.splits`); the least weight and gain are per unit of weight here.
    bootstrap : bool
        Whether each tree sees a bootstrap sample, or all rows with their weights.
    part : float
        Size of a sample, as a part of the rows.
    """

    def __init__(
        self,
        X: Array,
        binning: Binning,
        target: Target,
        groups: Groups,
        weights: Array,
        rules: NDArray[np.void],
        bootstrap: bool,
        part: float,
    ):
        self.X, self.binning, self.target, self.groups, self.rules = X, binning, target, groups, rules
        self.columns = binning.codes(X, by_row=False).by_column
        self.weights, self.bootstrap, self.part = weights, bootstrap, part
        few = groups.size <= DRAWS * len(groups.share)
        self._uniform = few and bool((groups.share == groups.share[0]).all())
        self._looked = describe_columns(binning)
        self._y = target.y.astype(np.float64)

    def grow(self, seed: int, stop: Callable[[], bool]) -> Grown | None:
        """One tree, and what it says of the rows that are not in its sample; None if it was stopped."""
        random = np.random.default_rng(seed)
        counts = self._draw(random) if self.bootstrap else self.groups.share * self.groups.size
        growth, scale, step = self._sample(counts, int(random.integers(2**63)))
        self._scale(growth.state, float(counts.sum()), scale, step)
        classes, size = self.target.several, growth.rows.shape[1]
        several = Several.of(size, classes) if classes else None
        while not grow_alone(growth, several, TURN):
            if stop():
                return None
        nodes, table = growth.nodes[: growth.state["nodes"][0]], np.zeros((0, 1))
        if classes:
            nodes["value"], table = _class_shares(nodes, growth.packed, classes)
        else:
            value_leaves(growth, self._y)
        packed = pack_trees([nodes], self.binning, table)
        outside = np.flatnonzero(counts[self.groups.member] == 0) if self.bootstrap else np.zeros(0, dtype=np.intp)
        flat, answers = flatten(packed), np.zeros((len(outside), self.target.outputs))
        for start in range(0, len(outside), TASK):
            rows = slice(start, start + TASK)
            walk(flat, self.X[outside[rows]], answers[rows])
        judged = outside[self.weights[outside] > 0]
        return Grown(packed, outside, answers, self._rises(flat, judged, np.random.default_rng([1, seed])))

    def leaf(self, seed: int) -> Packed:
        """A tree of one leaf, which takes no time."""
        rules, self.rules = self.rules, self.rules.copy()
        self.rules["max_depth"] = 0
        grown = self.grow(seed, lambda: False)
        self.rules = rules
        assert grown is not None
        return grown.packed

    def _draw(self, random: np.random.Generator) -> NDArray[np.int64]:
        """How often each group of equal rows is in a bootstrap sample."""
        count = len(self.groups.share)
        if not self._uniform:
            return self.groups.draw(self.part, random)
        drawn = random.integers(count, size=max(1, round(self.part * self.groups.size)))  # as `draw`, but faster
        return np.bincount(drawn, minlength=count)

    def _sample(self, counts: NDArray, seed: int) -> tuple[Growth, float, float]:
        """The drawn rows as compiled code takes them; the units of weight 1 and of the target."""
        if counts.dtype.kind != "i":
            whole = np.rint(counts)
            if whole.sum() < MOST_ROWS and np.allclose(whole, counts, rtol=1e-12, atol=0.0):
                counts = whole.astype(np.int64)
        drawn = np.flatnonzero(counts > 0)
        rows, counts = self.groups.first[drawn], counts[drawn]
        whole, scale = counts, 1.0
        if counts.dtype.kind != "i" or counts.sum() >= MOST_ROWS:
            counts = counts.astype(np.float64)
            scale = 1.0 / unit(float(counts.sum()), len(counts))
            whole = np.maximum(np.rint(counts * scale), 1).astype(np.int64)
        if self.target.several:
            target, step = self.target.y[rows], 1.0
        else:
            target, step = self.target.in_units(rows, whole if self.target.classes else counts)
        growth = Growth(
            state=np.zeros(1, dtype=STATE),
            columns=self.columns,
            looked=self._looked,
            rows=np.empty((2, len(rows)), dtype=np.int32),
            packed=np.empty((2, len(rows)), dtype=np.int64),
            nodes=np.empty(2 * len(rows), dtype=NODE),
            room=np.vstack([np.arange(WIDTH), np.zeros((3, WIDTH), dtype=np.int64)]),
            order=np.arange(len(self._looked)),
            seed=np.array([seed], dtype=np.uint64),
        )
        growth.state[RULE_NAMES] = self.rules
        growth.rows[0], growth.packed[0] = rows, (target << HALF) + whole
        return growth, scale, step

    def _scale(self, rules: NDArray[np.void], weight: float, scale: float, step: float) -> None:
        """Bring the rules to the units of a sample."""
        # Rounded up, but for what rounding of the scaled weights can lose.
        rules["least"] = np.maximum(1.0, np.ceil(rules["least"] * scale * (1 - 1e-12)))
        rules["noise"] = -np.inf  # a split without gain is a split too
        least = rules["least_gain"] * weight * self.target.purity
        rules["least_gain"] = least / scale / step / step if self.target.classes == 0 else least * scale

    def _rises(self, flat: Flat, rows: NDArray[np.intp], random: np.random.Generator) -> Array:
        """How much the mean loss on some of these rows rises when they swap the values of each column.

        Columns that the tree does not use cannot change its answers.
        """
        rises = np.zeros(self.X.shape[1])
        if len(rows) < 2:
            return rises
        if len(rows) > JUDGED:
            rows = rows[np.sort(random.choice(len(rows), JUDGED, replace=False))]
        leaf = flat.node["left"] == np.arange(len(flat.node))
        used = np.unique(flat.node["feature"][~leaf] & COLUMN).astype(np.int64)
        others = random.permuted(np.tile(rows, (len(used), 1)), axis=1)
        columns = np.append(0, used)  # the first line keeps its values
        values = self.X[np.vstack([rows, others]), columns[:, None]]
        answers = np.zeros((*values.shape, self.target.outputs))
        walk_swapped(flat, self.X[rows], columns, values, answers, NO_LEAVES, np.empty((2, CROWD), dtype=np.int32))
        losses = np.array([self.target.loss(answers[line], rows) for line in range(len(answers))]) @ self.weights[rows]
        rises[used] = (losses[1:] - losses[0]) / self.weights[rows].sum()
        return rises


def _class_shares(nodes: NDArray, packed: NDArray[np.int64], classes: int) -> tuple[Array, Array]:
    """The row of each leaf in a table of class shares, and the table; it begins with a pure leaf of each class."""
    leaves = np.flatnonzero(nodes["left"] < 0)
    leaves = leaves[np.argsort(nodes["start"][leaves])]  # from left to right, so that they cover the rows in order
    starts: NDArray[np.int64] = nodes["start"][leaves]
    lengths = np.diff(starts, append=np.int64(packed.shape[1]))
    side, leaf = np.repeat(nodes["depth"][leaves] & 1, lengths), np.repeat(np.arange(len(starts)), lengths)
    packed = packed[side, np.arange(len(side))]
    labels, counts = packed >> HALF, packed & LOW
    pure = np.minimum.reduceat(labels, starts) == np.maximum.reduceat(labels, starts)
    place = np.where(pure, labels[starts], classes + np.cumsum(~pure) - 1)
    mixed = ~pure[leaf]
    table = np.zeros((int((~pure).sum()), classes))
    np.add.at(table, (place[leaf[mixed]] - classes, labels[mixed]), counts[mixed])
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    slot = np.zeros(len(nodes))
    slot[leaves] = place
    return slot, np.vstack([np.eye(classes), shares])
