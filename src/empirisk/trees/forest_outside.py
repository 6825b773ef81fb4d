"""What the trees of a forest say about rows that were not in their samples: errors, and importances of the columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.threads import in_threads
from empirisk.trees.forest_grow import GrownTree, Planter

Array = NDArray[np.float64]


@dataclass
class Outside:
    """Sums of the answers that rows get from trees that did not see them."""

    total: Array
    seen: NDArray[np.int64]

    @classmethod
    def nothing(cls, rows: int, outputs: int) -> "Outside":
        """No answers yet."""
        return cls(np.zeros((rows, outputs)), np.zeros(rows, dtype=np.int64))

    def add(self, rows: NDArray[np.int32], answers: Array) -> None:
        """Add the answers of one tree."""
        self.total[rows] += answers
        self.seen[rows] += 1

    def mean(self) -> Array:
        """Mean answer of each row, NaN where every tree saw it."""
        return np.where(self.seen[:, None] > 0, self.total / np.maximum(self.seen, 1)[:, None], np.nan)


@dataclass(frozen=True, eq=False)
class Training:
    """What a forest keeps of its training rows (in bins) for importances that are asked for later."""

    planter: Planter
    trees: list[GrownTree]
    weights: Array

    def importances(self) -> Array:
        """For each column, how much the mean loss of a tree on rows outside its sample rises when they swap its values.

        The loss is the share of wrong classes, or the squared error. Columns that a tree does not use cannot change
        its answers.
        """
        return np.mean(in_threads(self._rises, self.trees), axis=0)

    def _rises(self, tree: GrownTree) -> Array:
        by_row, several = self.planter.table.by_row, self.planter.target.several
        rises, rows = np.zeros(by_row.shape[1]), self.planter.outside(tree)
        rows = rows[self.weights[rows] > 0]
        if len(rows) < 2:
            return rises
        random = np.random.default_rng([1, tree.seed])
        before = self._loss(tree.answers(by_row, rows, several), rows)
        for column in np.unique(tree.sprout.feature[tree.sprout.left >= 0]):
            swapped = tree.answers(by_row, rows, several, column, random.permutation(rows))
            rises[column] = self._loss(swapped, rows) - before
        return rises

    def _loss(self, answers: Array, rows: NDArray[np.int32]) -> float:
        weights = self.weights[rows]
        return float(weights @ self.planter.target.loss(answers, rows) / weights.sum())
