"""Trees of a forest: each on a bootstrap sample, and judged on the rows outside it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empirisk.contract.outputs import squared_errors, wrong_labels
from empirisk.contract.resample import Groups
from empirisk.trees.binned.alone import STEPS_PER_CALL, BinnedGrowth, grow_alone, room_for
from empirisk.trees.binned.bins import Binning, BinValues
from empirisk.trees.binned.splits import HALF, LOW, RULE_NAMES, SplitWorkspace, describe_columns, unit
from empirisk.trees.nodes import NO_TABLE, Packed, pack_trees
from empirisk.trees.predict import flatten
from empirisk.trees.walk import COLUMN, TASK, Flat, walk, walk_swapped

Array = NDArray[np.float64]

DRAWS = 4  # draws for each group of rows up to which they are made one by one
MOST_ROWS = 1 << 28  # rows that whole numbers of draws may count
JUDGED = 256  # rows outside its sample on which a tree judges its columns


@dataclass(frozen=True, eq=False)
class BinnedTarget:
    """What the trees learn: numbers, of one output or of several columns, or the numbers of ``classes`` classes.

    ``classes`` is 0 for numbers. ``centre`` is their mean; ``purity`` turns a gain in impurity times weight into one of
    the search. ``labels`` tells where the columns of each of several labels end, whose classes they stand for by 0 and
    1: the squared error of such columns is the Gini impurity.
    """

    y: NDArray
    classes: int = 0
    centre: Array | float = 0.0
    purity: float = 1.0
    labels: tuple[int, ...] = ()

    @classmethod
    def of_classes(cls, codes: NDArray, classes: int, entropy: bool) -> "BinnedTarget":
        """Class numbers. For two classes the search looks at the second one only, which is half of the Gini gain."""
        return cls(codes.astype(np.int64), classes, purity=0.5 if classes <= 2 and not entropy else 1.0)

    @property
    def several(self) -> int:
        """Number of classes or of outputs where it takes more than one number to describe a leaf, else 0."""
        if self.y.ndim == 2:
            return self.y.shape[1]
        return self.classes if self.classes > 2 else 0

    @property
    def outputs(self) -> int:
        """Numbers that describe a leaf."""
        return max(self.several, 1)

    def loss(self, answers: Array, rows: NDArray) -> Array:
        """Squared error of each row's answer, the mean over several outputs; or whether a class is another one."""
        if self.labels:
            return wrong_labels(answers, self.y[rows], self.labels)
        if self.y.ndim == 2:
            return squared_errors(answers, self.y[rows])
        if self.classes == 0:
            return (answers[:, 0] - self.y[rows]) ** 2
        chosen = answers.argmax(axis=1) if self.several else answers[:, 0] >= 0.5
        return (chosen != self.y[rows]).astype(np.float64)

    def in_units(self, rows: NDArray, counts: NDArray) -> tuple[NDArray[np.int64], float]:
        """Target times count of each row, in whole units, and the unit: so fine that sums just fit 31 bits."""
        if self.classes or self.labels:
            return (self.y[rows].T * counts.astype(np.int64)).T, 1.0
        centred = self.y[rows] - self.centre
        total = float(np.max(np.abs(centred).T @ counts))
        if counts.dtype.kind == "i":  # rounded before they are counted: equal targets stay equal
            step = unit(total, int(counts.sum()))
            return (np.rint(centred / step).astype(np.int64).T * counts).T, step
        step = unit(total, len(rows))
        return np.rint((centred.T * counts).T / step).astype(np.int64), step


class Grown(NamedTuple):
    """A tree of a forest, and its out-of-bag answers, on rows that are not in its sample.

    ``rises`` says how much its loss on some of those rows rises when they swap the values of each column, ``gains``
    the share of each column in the impurity that its splits take away.
    """

    packed: Packed
    outside: NDArray[np.intp]
    answers: Array
    rises: Array
    gains: Array


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
        target: BinnedTarget,
        groups: Groups,
        weights: Array,
        rules: NDArray[np.void],
        bootstrap: bool,
        part: float,
    ):
        self.binning, self.target, self.groups, self.rules = binning, target, groups, rules
        self.columns = binning.codes(X, by_row=False).by_column
        self.X = X if isinstance(X, np.ndarray) else BinValues(binning, self.columns)
        self.weights, self.bootstrap, self.part = weights, bootstrap, part
        few = groups.size <= DRAWS * len(groups.share)
        self._uniform = few and bool((groups.share == groups.share[0]).all())
        self._looked = describe_columns(binning)

    def grow(self, seed: int, stop: Callable[[], bool]) -> Grown | None:
        """One tree, and its answers on the out-of-bag rows; None if it was stopped."""
        random = np.random.default_rng(seed)
        counts = self._draw(random) if self.bootstrap else self.groups.share * self.groups.size
        growth, several, scale, step = self._sample(counts, int(random.integers(2**63)))
        self._scale(growth.state, float(counts.sum()), scale, step)
        while not grow_alone(growth, several, STEPS_PER_CALL):
            if stop():
                return None
        nodes = growth.nodes[: growth.state["nodes"][0]]
        packed = pack_trees([nodes], self.binning, self._value(nodes, growth))
        outside = np.flatnonzero(counts[self.groups.member] == 0) if self.bootstrap else np.zeros(0, dtype=np.intp)
        flat, answers = flatten(packed), np.zeros((len(outside), self.target.outputs))
        for start in range(0, len(outside), TASK):
            rows = slice(start, start + TASK)
            walk(flat, self.X[outside[rows]], answers[rows])
        judged = outside[self.weights[outside] > 0]
        rises = self._rises(flat, judged, np.random.default_rng([1, seed]))
        return Grown(packed, outside, answers, rises, self._gains(nodes))

    def leaf(self, seed: int) -> Packed:
        """A tree of one leaf, for when the time is up."""
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

    def _sample(self, counts: NDArray, seed: int) -> tuple[BinnedGrowth, SplitWorkspace | None, float, float]:
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
        several, step = None, 1.0
        if self.target.several and self.target.classes:
            several, target = SplitWorkspace.of(len(rows), self.target.classes), self.target.y[rows]
        else:
            exact = self.target.classes or self.target.labels
            target, step = self.target.in_units(rows, whole if exact else counts)
            if self.target.several:
                several, target = SplitWorkspace.of(len(rows), target.shape[1], target), np.arange(len(rows))
        growth = room_for(self.columns, self._looked, len(rows), 2 * len(rows))
        growth.seed[0] = seed
        growth.state[RULE_NAMES] = self.rules
        growth.state["cuts"] *= 1 + seed % (1 << 52)
        growth.rows[0], growth.packed[0] = rows, (target << HALF) + whole
        return growth, several, scale, step

    def _scale(self, rules: NDArray[np.void], weight: float, scale: float, step: float) -> None:
        """Bring the rules to the units of a sample."""
        # Rounded up, but for what rounding of the scaled weights can lose.
        rules["split"] = np.where(rules["split"] == 2, 0.0, rules["split"])  # any two rows can be parted
        for name, part in (("least", rules["least_part"]), ("split", 0.0)):
            asked = np.where(rules[name] < 1, rules[name] * weight, rules[name])
            rules[name] = np.maximum(1.0, np.ceil(np.maximum(asked, part * weight) * scale * (1 - 1e-12)))
        rules["noise"] = -np.inf  # a split without gain is a split too
        least = rules["least_gain"] * weight * self.target.purity
        exact = self.target.classes or self.target.labels
        rules["least_gain"] = least * scale if exact else least / scale / step / step

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
        walk_swapped(flat, self.X[rows], columns, values, answers)
        losses = np.array([self.target.loss(answers[line], rows) for line in range(len(answers))]) @ self.weights[rows]
        rises[used] = (losses[1:] - losses[0]) / self.weights[rows].sum()
        return rises

    def _gains(self, nodes: NDArray[np.void]) -> Array:
        split = nodes["left"] >= 0
        gains = np.bincount(nodes["feature"][split], nodes["gain"][split], minlength=self.X.shape[1])
        return gains / (gains.sum() or 1.0)

    def _value(self, nodes: NDArray[np.void], growth: BinnedGrowth) -> Array:
        """Give the leaves their values: means, or rows in the table of class shares or of means, which is returned.

        That of shares begins with a pure leaf of each class.
        """
        leaves, classes = np.flatnonzero(nodes["left"] < 0), self.target.classes if self.target.several else 0
        if self.target.classes and not classes:  # sums of whole numbers are exact
            nodes["value"][leaves] = (nodes["sum"][leaves] >> HALF) / (nodes["sum"][leaves] & LOW)
            return NO_TABLE
        leaves = leaves[np.argsort(nodes["start"][leaves])]  # from left to right, so that they cover the rows in order
        starts: NDArray[np.int64] = nodes["start"][leaves]
        lengths = np.diff(starts, append=np.int64(growth.rows.shape[1]))
        at = np.repeat(nodes["depth"][leaves] & 1, lengths), np.arange(growth.rows.shape[1])
        labels, counts = growth.packed[at] >> HALF, growth.packed[at] & LOW
        if not classes:
            sums = np.add.reduceat((self.target.y[growth.rows[at]].T * counts).T, starts)
            means = (sums.T / np.add.reduceat(counts, starts)).T
            if not self.target.several:
                nodes["value"][leaves] = means
                return NO_TABLE
            table, places = np.unique(means, axis=0, return_inverse=True)
            nodes["value"][leaves] = places.ravel()
            return table
        pure = np.minimum.reduceat(labels, starts) == np.maximum.reduceat(labels, starts)
        place = np.where(pure, labels[starts], classes + np.cumsum(~pure) - 1)
        leaf = np.repeat(np.arange(len(starts)), lengths)
        mixed, table = ~pure[leaf], np.zeros((int((~pure).sum()), classes))
        np.add.at(table, (place[leaf[mixed]] - classes, labels[mixed]), counts[mixed])
        nodes["value"][leaves] = place
        return np.vstack([np.eye(classes), table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)])
