"""The rounds of k-means with the products on a device: all rows with all centres, doubts settled in float64 here."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from empirisk.clusters.dense_rows import Array, DenseRows, nearest, transfer
from empirisk.linalg.compiled import loop_with
from empirisk.linalg.threads import parallel_map

if TYPE_CHECKING:
    from empirisk.scale.accelerators import Accelerator


@loop_with({"reassoc", "contract", "nnan", "nsz"})
def settle(data, found, centres, none, state, span):
    """Give each row of the share the centre that was found for it, in doubt the nearest in float64; how many changed.

    ``data`` holds the rows as they came, their order and weights; ``found`` the centres, -1 - j for j in doubt;
    ``state`` labels and the sums of clusters; ``none`` a zero for every centre.
    """
    X, order, weights = data
    labels, sums = state
    changes = 0
    for row in range(span[0], span[1]):
        old, new, source = labels[row], found[row], order[row]
        if new < 0:
            new = nearest(X[source], centres, none, np.float32(0), old)
        if new != old:
            changes += 1
            labels[row] = new
            transfer(X[source], weights[row], old, new, sums)
    return changes


class DeviceRows(DenseRows):
    """Rows of an array whose products with the centres are made on a device.

    There are no bounds: a device multiplies all rows sooner than it would skip some.
    """

    def __init__(self, X: NDArray, weights: Array, order: NDArray[np.intp], device: "Accelerator"):
        super().__init__(X, weights, order)
        self._assignment = device.assignment(self.points, self.norms)

    def assign(self):
        table, _, squares = self.table()
        found = self._assignment.nearest(table, 2 * self.rounding * squares, self.rounding)
        none, data = np.zeros(len(table), np.float32), (self.X, self.order, self.weights)

        def run(share: int) -> int:
            return settle(data, found, self.centres, none, (self.labels, self._sums[share]), self.shares[share])

        return sum(parallel_map(run, range(len(self.shares))))
