"""Trees of a forest: bootstrap sample, growth, leaf values, and what a tree says about the rows outside its sample."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.bins import BinnedRows, Binning
from empirisk.trees.forest_loops import NODES, Bag, Rules, Sprout, find_leaves, grow, new_bag, new_sprout
from empirisk.trees.histogram import Table, unit
from empirisk.trees.resample import Groups

Array = NDArray[np.float64]

TURN = 1 << 26  # steps between two questions whether to stop
DRAWS = 4  # draws for each group of rows up to which they are made one by one
MOST_ROWS = 1 << 28  # rows that whole numbers of draws may count


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

    def loss(self, answers: Array, rows: NDArray[np.int32]) -> Array:
        """Squared error of each row's answer, or whether it is another class."""
        if self.classes == 0:
            return (answers[:, 0] - self.y[rows]) ** 2
        chosen = answers.argmax(axis=1) if self.several else answers[:, 0] > 0.5
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


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A tree in bins, and the value of each node: a mean, the share of the second class, or a row of ``table``.

    The first rows of the table, those of pure leaves, are not written: row k < n_classes is class k for certain.
    ``seed`` decided its sample.
    """

    sprout: Sprout
    value: Array
    table: Array
    seed: int

    def answers(self, by_row: NDArray[np.uint8], rows: NDArray[np.int32], classes: int, column: int = -1, others=None):
        """Predictions (n_rows, n_outputs) for binned rows, with one column taken from other rows where asked."""
        leaves = np.empty(len(rows), dtype=np.int32)
        find_leaves(self.sprout, by_row, rows, column, rows if others is None else others, leaves)
        value = self.value[leaves]
        if classes == 0:
            return value[:, None]
        return np.vstack([np.eye(classes), self.table])[value.astype(np.intp)]


class Planter:
    """Grows the trees of one forest.

    Parameters
    ----------
    binning, rows : Binning, BinnedRows
        The table in bins.
    target : Target
        What to learn.
    groups : Groups
        Equal rows and their weights.
    rules : Rules
        How trees grow; the limits ``leaf`` and ``gain`` are per unit of weight here.
    bootstrap : bool
        Whether each tree sees a bootstrap sample, or all rows with their weights.
    part : float
        Size of a sample, as a part of the rows.
    """

    def __init__(
        self,
        binning: Binning,
        rows: BinnedRows,
        target: Target,
        groups: Groups,
        rules: Rules,
        bootstrap: bool,
        part: float,
    ):
        self.binning, self.target, self.groups, self.rules = binning, target, groups, rules
        self.bootstrap, self.part = bootstrap, part
        few = groups.size <= DRAWS * len(groups.share)
        self._uniform = few and bool((groups.share == groups.share[0]).all())
        monotone = np.zeros(len(binning.counts), dtype=np.int8)
        self.table = Table(rows.by_row, rows.by_column, binning.counts, binning.categorical, monotone)

    def plant(self, seed: int, stop: Callable[[], bool]) -> GrownTree | None:
        """One tree; None if it was stopped."""
        random = np.random.default_rng(seed)
        drawn, counts = self._sample(random)
        bag, scale, step = self._bag(drawn, counts)
        least = self.rules.gain * float(counts.sum()) * self.target.purity
        rules = self.rules._replace(
            leaf=max(1, int(np.ceil(self.rules.leaf * scale * (1 - 1e-12)))),
            gain=least / scale / step / step if self.target.classes == 0 else least * scale,
        )
        categorical = bool(self.binning.categorical.any())
        sprout = new_sprout(len(drawn), len(self.binning.counts), categorical, int(random.integers(2**63)))
        while not grow(self.table, bag, sprout, rules, TURN):
            if stop():
                return None
        count = int(sprout.count[NODES])
        sets = int(sprout.set.max(initial=-1)) + 1
        kept = {name: getattr(sprout, name)[:count].copy() for name in _KEPT}
        kept["by_set"] &= kept["left"] >= 0
        value, table = self._values(kept["left"], sprout.start, bag)
        kept |= {name: getattr(sprout, name)[:0].copy() for name in _SPENT}
        sprout = sprout._replace(marks=sprout.marks[:sets].copy(), **kept)
        return GrownTree(sprout, value, table, seed)

    def outside(self, tree: GrownTree) -> NDArray[np.int32]:
        """The rows that are not in the sample of a tree. Drawn again: kept, they would be larger than the tree."""
        if not self.bootstrap:
            return np.zeros(0, dtype=np.int32)
        counts = self._draw(np.random.default_rng(tree.seed))
        return np.flatnonzero(counts[self.groups.member] == 0).astype(np.int32)

    def without_columns(self) -> "Planter":
        """A copy that needs half the memory: it can tell what was outside a sample, but not plant."""
        light = copy(self)
        light.table = self.table._replace(by_column=np.zeros((0, 0), dtype=np.uint8))
        return light

    def leaf(self, seed: int) -> GrownTree:
        """A tree of one leaf, which takes no time."""
        shallow = copy(self)
        shallow.rules = self.rules._replace(depth=0)
        tree = shallow.plant(seed, lambda: False)
        assert tree is not None
        return tree

    def _sample(self, random: np.random.Generator) -> tuple[NDArray, NDArray]:
        """Rows of a sample and their weights: whole numbers where they can be."""
        counts = self._draw(random) if self.bootstrap else self.groups.share * self.groups.size
        whole = np.rint(counts).astype(np.int64)
        if whole.sum() < MOST_ROWS and np.allclose(whole, counts, rtol=1e-12, atol=0.0):
            counts = whole
        return self.groups.first[counts > 0], counts[counts > 0]

    def _draw(self, random: np.random.Generator) -> NDArray[np.int64]:
        """How often each group of equal rows is in a bootstrap sample."""
        count = len(self.groups.share)
        if not self._uniform:
            return self.groups.draw(self.part, random)
        drawn = random.integers(count, size=max(1, round(self.part * self.groups.size)))  # as `draw`, but faster
        return np.bincount(drawn, minlength=count)

    def _bag(self, rows: NDArray, counts: NDArray) -> tuple[Bag, float, float]:
        """The rows as compiled code takes them, how many units weight 1 is, and the unit of the target."""
        whole, scale = counts, 1.0
        if counts.dtype.kind != "i" or counts.sum() >= MOST_ROWS:
            counts = counts.astype(np.float64)
            scale = 1.0 / unit(float(counts.sum()), len(counts))
            whole = np.maximum(np.rint(counts * scale), 1).astype(np.int64)
        if self.target.several:
            target, step = self.target.y[rows], 1.0
        else:
            target, step = self.target.in_units(rows, whole if self.target.classes else counts)
        return new_bag(rows.astype(np.int32), (target << 32) + whole, self.target.several), scale, step

    def _values(self, left: NDArray[np.int32], start: NDArray[np.int32], bag: Bag) -> tuple[Array, Array]:
        """The value of each leaf, and the table of the class shares of impure leaves."""
        leaves = np.flatnonzero(left < 0)
        leaves = leaves[np.argsort(start[leaves])]  # from left to right, so that they cover the rows in order
        starts = start[leaves]
        value = np.zeros(len(left))
        if self.target.several:
            value[leaves], table = _class_shares(bag, starts, self.target.classes)
            return value, table
        counts = bag.packed & 0xFFFFFFFF
        value[leaves] = np.add.reduceat(counts * self.target.y[bag.rows], starts) / np.add.reduceat(counts, starts)
        return value, np.zeros((0, 1))


_KEPT = ("feature", "bin", "missing_left", "by_set", "set", "left")
_SPENT = ("start", "stop", "depth", "gain", "open")


def _class_shares(bag: Bag, starts: NDArray, classes: int) -> tuple[Array, Array]:
    """For each leaf its class if it is pure, else ``classes`` plus its row in the table of shares that follows."""
    labels, counts = bag.packed >> 32, bag.packed & 0xFFFFFFFF
    leaf = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(labels))))
    pure = np.minimum.reduceat(labels, starts) == np.maximum.reduceat(labels, starts)
    place = np.where(pure, labels[starts], classes + np.cumsum(~pure) - 1)
    mixed = ~pure[leaf]
    table = np.zeros((int((~pure).sum()), classes))
    np.add.at(table, (place[leaf[mixed]] - classes, labels[mixed]), counts[mixed])
    return place.astype(np.float64), table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)


def pack_trees(trees: list[GrownTree], binning: Binning, classes: int) -> dict[str, NDArray]:
    """Grown trees in the form of `Nodes.pack`: about 15 bytes a node."""
    sizes = np.array([len(tree.value) for tree in trees])
    shift = np.cumsum(sizes) - sizes
    left = np.concatenate([tree.sprout.left for tree in trees])
    leaf = left < 0
    feature = np.where(leaf, -1, np.concatenate([tree.sprout.feature for tree in trees]))
    slot = binning.edges[feature, np.concatenate([tree.sprout.bin for tree in trees])]
    slot[leaf] = np.concatenate(_leaf_slots(trees, classes))
    narrow = np.int16 if len(binning.counts) <= np.iinfo(np.int16).max else np.int32
    packed = {
        "roots": shift.astype(np.int32),
        "feature": feature.astype(narrow),
        "left": np.where(leaf, -1, left + np.repeat(shift, sizes)).astype(np.int32),
        "slot": slot,
        "missing_left": np.packbits(np.concatenate([tree.sprout.missing_left for tree in trees]) & ~leaf),
        "category_bits": np.zeros(0, dtype=np.uint64),
        "category_counts": binning.category_counts,
        "leaf_values": np.vstack([np.eye(classes), *(tree.table for tree in trees)]) if classes else np.zeros((0, 1)),
    }
    categorical = np.concatenate([tree.sprout.by_set for tree in trees])
    if categorical.any():
        marks = np.concatenate([tree.sprout.marks[tree.sprout.set[tree.sprout.by_set]] for tree in trees])
        places = np.flatnonzero(categorical)
        sets = [_category_set(binning, int(feature[node]), row) for node, row in zip(places, marks, strict=True)]
        slot[places] = np.cumsum([0, *map(len, sets[:-1])])
        packed |= {"category_bits": np.concatenate(sets), "categorical": np.packbits(categorical)}
    return packed


def _category_set(binning: Binning, column: int, marks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return binning.category_set(
        column, np.unpackbits(marks.astype("<u8").view(np.uint8), bitorder="little").astype(bool)
    )


def _leaf_slots(trees: list[GrownTree], classes: int) -> list[Array]:
    """The values of the leaves; rows of a tree's own table come behind those of the trees before it."""
    slots, before = [], 0
    for tree in trees:
        value = tree.value[tree.sprout.left < 0]
        slots.append(np.where(value >= classes, value + before, value) if classes else value)
        before += len(tree.table)
    return slots
