"""Bootstrap samples in which weight 2 equals the row twice, whatever the order of the rows.

Equal rows (in X and y) form one group, and groups are ordered by a hash of their content. The numbers of draws are then
decided for groups, in proportion to their weights: a table with weights and the table with repeated rows have the
same groups, and so the same samples.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.hashes import equal_rows

Array = NDArray[np.float64]

MOST_DRAWS = 10**9  # rows that whole weights may count, as NumPy draws no more; beyond, weights are chances


def draw_groups(member: NDArray[np.intp], part: float, random: np.random.Generator) -> NDArray[np.bool_]:
    """Mark the rows of this part of the groups, at least one of them, drawn at random."""
    count = int(member.max()) + 1
    drawn = np.zeros(count, dtype=bool)
    drawn[random.choice(count, max(1, round(part * count)), replace=False, shuffle=False)] = True
    return drawn[member]


def split_groups(
    member: NDArray[np.intp], strata: NDArray[np.intp], part: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark the rows of about this part of the groups in every stratum; no stratum is marked whole, if that can be."""
    count = int(member.max()) + 1
    stratum, key = np.empty(count, dtype=np.intp), random.random(count)
    stratum[member] = strata
    sizes = np.bincount(stratum)
    order = np.lexsort((key, stratum))
    rank = np.arange(count) - (np.cumsum(sizes) - sizes)[stratum[order]]
    marked = np.zeros(count, dtype=bool)
    marked[order] = rank < np.minimum(np.rint(part * sizes), sizes - 1)[stratum[order]]
    if not marked.any():
        marked[np.argmin(np.where(stratum == sizes.argmax(), key, np.inf))] = True
    return marked[member]


def hold_out(
    member: NDArray[np.intp], target: NDArray, fraction: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark the rows that are held out: equal rows stay together, classes (targets of whole numbers) keep their shares.

    ``member`` says which rows are equal, see `Groups`.
    """
    whole = target.dtype.kind == "i"
    strata = np.unique(target, axis=0, return_inverse=True)[1] if whole else np.zeros(len(target), dtype=np.intp)
    return split_groups(member, strata, fraction, random)


@dataclass(frozen=True, eq=False)
class Groups:
    """Equal rows as groups.

    Attributes
    ----------
    member : (n_rows,) int
        The group of each row.
    first : (n_groups,) int
        One row of each group.
    share : (n_groups,) float
        Weight of each group, as a part of the whole.
    size : int
        Draws in a bootstrap sample: the sum of the weights where they are whole numbers (counts of rows), else the
        number of rows with a positive weight.
    counts : (n_groups,) int or None
        Rows in each group, where the weights count rows and nothing else changes their chances.
    """

    member: NDArray[np.intp]
    first: NDArray[np.intp]
    share: Array
    size: int
    counts: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, X: Any, y: NDArray, weights: Array, factors: Array | None = None) -> "Groups":
        """Group the rows; ``factors`` multiply the weights, but do not count rows."""
        first, member = equal_rows(X, y)
        scaled = np.ldexp(weights, -int(np.frexp(weights.max())[1]))  # exactly, and no sum of them overflows
        mass = np.bincount(member, scaled if factors is None else scaled * factors)
        whole = bool((weights == np.rint(weights)).all()) and len(weights) * weights.max() < MOST_DRAWS
        size = int(weights.sum()) if whole else int((weights > 0).sum())
        counts = np.bincount(member, weights).astype(np.int64) if whole and factors is None else None
        return cls(member, first, mass / mass.sum(), size, counts)

    def draw(self, part: float, random: np.random.Generator) -> NDArray[np.int64]:
        """How often each group is drawn in a bootstrap sample of this part of the rows."""
        counts = np.zeros(len(self.share), dtype=np.int64)
        some = self.share > 0  # a group without weight must not use up random numbers: it could as well be absent
        counts[some] = random.multinomial(max(1, round(part * self.size)), self.share[some])
        return counts

    def draw_once(self, part: float, random: np.random.Generator) -> NDArray[np.int64]:
        """How often each group is in a sample without replacement of this part of the rows.

        Rows are drawn where weights count them; otherwise groups are, in proportion to their weights.
        """
        if self.counts is not None:
            return random.multivariate_hypergeometric(self.counts, max(1, round(part * self.size)), method="marginals")
        drawn, some = np.zeros(len(self.share), dtype=np.int64), np.flatnonzero(self.share > 0)
        number = max(1, round(part * len(some)))
        drawn[random.choice(some, number, replace=False, p=self.share[some], shuffle=False)] = 1
        return drawn
