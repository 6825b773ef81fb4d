"""Trees of a forest: bootstrap sample, growth, leaf values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.binned.alone import grow_alone
from empirisk.trees.binned.bins import Binning
from empirisk.trees.binned.cuts import (
    CATEGORICAL,
    DEPTH,
    INTS,
    LEAST,
    LEAST_GAIN,
    LEFT,
    LOW,
    MAX_DEPTH,
    REALS,
    START,
    WIDTH,
)
from empirisk.trees.binned.finish import Packed, finish
from empirisk.trees.binned.grow import GROWING, NODES
from empirisk.trees.resample import Groups

Array = NDArray[np.float64]

TURN = 1 << 26  # steps between two questions whether to stop
DRAWS = 4  # draws for each group of rows up to which they are made one by one
MOST_ROWS = 1 << 28  # rows that whole numbers of draws may count
ROOM = 1 << 31  # units that the sum over all rows may reach


def unit(total: float, rows: int) -> float:
    """The finest power of two in which ``rows`` numbers of absolute sum ``total`` stay below 2^31 units.

    >>> unit(total=3.0, rows=3)
    1.862645149230957e-09
    """
    if not 0.0 < total < np.inf:
        return 1.0
    # Not finer than 2^-1000: divided by a smaller unit, numbers would overflow.
    return float(2.0 ** max(np.ceil(np.log2(total / (ROOM - 2 * rows - 2))), -1000.0))


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


class Sample(NamedTuple):
    """Rows of a sample (two buffers), each with its packed number; units of weight 1 and of the target."""

    rows: NDArray[np.int32]
    packed: NDArray[np.int64]
    scale: float
    step: float


class SampleGrower:
    """Grows the trees of one forest.

    Parameters
    ----------
    binning, columns : Binning, (n_features, n_rows) uint8
        The table in bins.
    target : Target
        What to learn.
    groups : Groups
        Equal rows and their weights.
    rules : array
        How trees grow (see `empirisk.trees.binned.cuts`); the least weight and gain are per unit of weight here.
    bootstrap : bool
        Whether each tree sees a bootstrap sample, or all rows with their weights.
    part : float
        Size of a sample, as a part of the rows.
    """

    def __init__(
        self,
        binning: Binning,
        columns: NDArray[np.uint8],
        target: Target,
        groups: Groups,
        rules: Array,
        bootstrap: bool,
        part: float,
    ):
        self.binning, self.columns, self.target, self.groups, self.rules = binning, columns, target, groups, rules
        self.bootstrap, self.part = bootstrap, part
        few = groups.size <= DRAWS * len(groups.share)
        self._uniform = few and bool((groups.share == groups.share[0]).all())
        self._kinds = np.zeros((len(binning.counts), 2), dtype=np.int64)
        self._kinds[:, CATEGORICAL] = binning.categorical

    def grow(self, seed: int, stop: Callable[[], bool]) -> tuple[Packed, NDArray[np.intp]] | None:
        """One tree, and the rows that are not in its sample; None if it was stopped."""
        random = np.random.default_rng(seed)
        counts = self._draw(random) if self.bootstrap else self.groups.share * self.groups.size
        sample = self._sample(counts)
        rules = self._rules(float(counts.sum()), sample)
        outside = np.flatnonzero(counts[self.groups.member] == 0) if self.bootstrap else np.zeros(0, dtype=np.intp)
        size, several = sample.rows.shape[1], self.target.several
        nodes, counters = np.empty((2 * size, INTS), dtype=np.int64), np.zeros(GROWING, dtype=np.int64)
        reals, frontier = np.empty((2 * size, REALS)), np.empty(size + 1, dtype=np.int32)
        room, chosen = np.zeros((3, WIDTH), dtype=np.int64), np.arange(len(self._kinds), dtype=np.int32)
        state = np.array([random.integers(2**63)], dtype=np.uint64)
        classes = None
        if several:
            ranks = np.empty(WIDTH, dtype=np.int64)
            classes = np.empty((2, size), dtype=np.int32), np.zeros((4, several)), ranks
        table, bag, tree = (self.columns, self._kinds), (sample.rows, sample.packed), (nodes, reals)
        while not grow_alone(table, rules, bag, tree, (frontier, counters), room, (chosen, state), classes, TURN):
            if stop():
                return None
        nodes = nodes[: counters[NODES]]
        slot, table = self._values(nodes, sample)
        return finish(nodes, slot, np.zeros(1, dtype=np.int32), table, self.binning), outside

    def leaf(self, seed: int) -> Packed:
        """A tree of one leaf, which takes no time."""
        rules, self.rules = self.rules, self.rules.copy()
        self.rules[MAX_DEPTH] = 0
        grown = self.grow(seed, lambda: False)
        self.rules = rules
        assert grown is not None
        return grown[0]

    def _draw(self, random: np.random.Generator) -> NDArray[np.int64]:
        """How often each group of equal rows is in a bootstrap sample."""
        count = len(self.groups.share)
        if not self._uniform:
            return self.groups.draw(self.part, random)
        drawn = random.integers(count, size=max(1, round(self.part * self.groups.size)))  # as `draw`, but faster
        return np.bincount(drawn, minlength=count)

    def _sample(self, counts: NDArray) -> Sample:
        """The drawn rows as compiled code takes them."""
        whole = np.rint(counts)
        if whole.sum() < MOST_ROWS and np.allclose(whole, counts, rtol=1e-12, atol=0.0):
            counts = whole.astype(np.int64)
        rows, counts = self.groups.first[counts > 0], counts[counts > 0]
        whole, scale = counts, 1.0
        if counts.dtype.kind != "i" or counts.sum() >= MOST_ROWS:
            counts = counts.astype(np.float64)
            scale = 1.0 / unit(float(counts.sum()), len(counts))
            whole = np.maximum(np.rint(counts * scale), 1).astype(np.int64)
        if self.target.several:
            target, step = self.target.y[rows], 1.0
        else:
            target, step = self.target.in_units(rows, whole if self.target.classes else counts)
        both = np.empty((2, len(rows)), dtype=np.int32), np.empty((2, len(rows)), dtype=np.int64)
        both[0][0], both[1][0] = rows, (target << 32) + whole
        return Sample(*both, scale, step)

    def _rules(self, weight: float, sample: Sample) -> Array:
        rules, scale, step = self.rules.copy(), sample.scale, sample.step
        # Rounded up, but for what rounding of the scaled weights can lose.
        rules[LEAST] = max(1.0, np.ceil(rules[LEAST] * scale * (1 - 1e-12)))
        least = rules[LEAST_GAIN] * weight * self.target.purity
        rules[LEAST_GAIN] = least / scale / step / step if self.target.classes == 0 else least * scale
        return rules

    def _values(self, nodes: NDArray[np.int64], sample: Sample) -> tuple[Array, Array]:
        """The value of each leaf, and the table of the class shares of impure leaves."""
        leaves = np.flatnonzero(nodes[:, LEFT] < 0)
        leaves = leaves[np.argsort(nodes[leaves, START])]  # from left to right, so that they cover the rows in order
        starts: NDArray[np.int64] = nodes[leaves, START]
        lengths = np.diff(starts, append=np.int64(sample.rows.shape[1]))
        side, place = np.repeat(nodes[leaves, DEPTH] & 1, lengths), np.arange(lengths.sum())
        rows, packed, slot = sample.rows[side, place], sample.packed[side, place], np.zeros(len(nodes))
        counts = packed & LOW
        if self.target.several:
            slot[leaves], table = _class_shares(packed >> 32, counts, starts, lengths, self.target.classes)
            return slot, table
        slot[leaves] = np.add.reduceat(counts * self.target.y[rows], starts) / np.add.reduceat(counts, starts)
        return slot, np.zeros((0, 1))


def _class_shares(labels: NDArray, counts: NDArray, starts: NDArray, lengths: NDArray, classes: int):
    """The row of each leaf in a table of class shares, and the table; it begins with a pure leaf of each class."""
    leaf = np.repeat(np.arange(len(starts)), lengths)
    pure = np.minimum.reduceat(labels, starts) == np.maximum.reduceat(labels, starts)
    place = np.where(pure, labels[starts], classes + np.cumsum(~pure) - 1)
    mixed = ~pure[leaf]
    table = np.zeros((int((~pure).sum()), classes))
    np.add.at(table, (place[leaf[mixed]] - classes, labels[mixed]), counts[mixed])
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    return place.astype(np.float64), np.vstack([np.eye(classes), shares])
