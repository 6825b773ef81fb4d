"""Trees of boosting on small tables, where threads that meet would cost more than they save."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.binned.alone import TURN, describe_columns, grow_alone, room_for
from empirisk.trees.binned.bins import Binning, Codes
from empirisk.trees.binned.splits import HALF, RULE_NAMES
from empirisk.trees.binned.together import CURVATURE, GRADIENT, SCORE, TIMES
from empirisk.trees.compiled import plain_loop

Array = NDArray[np.float64]


@plain_loop
def step_leaves(growth, data, find, add):
    """Find the values of the leaves, Newton steps, and add them to the scores, where asked."""
    state = growth.state[0]
    bound = state.gradient_unit / state.curvature_unit
    for number in range(state.nodes):
        node, g, h = growth.nodes[number], 0.0, 0.0
        rows = growth.rows[node.depth & 1]
        if node.left >= 0:
            continue
        if find:
            for k in range(node.start, node.stop):
                g += data[GRADIENT, rows[k]]
                h += data[CURVATURE, rows[k]]
            weight, low, high = h + state.true_l2, node.lowest * bound, node.highest * bound
            value = -g / weight if weight > 0.0 else 0.0
            node.value = state.rate * (low if value < low else high if value > high else value)
        for k in range(node.start, node.stop if add else node.start):
            data[SCORE, rows[k]] += node.value


class SmallGrower:
    """Does what `empirisk.trees.binned.together.TeamGrower` does, alone, and finds the same trees.

    Parameters
    ----------
    binning, columns : Binning, (n_features, n_rows) uint8
        The table in bins.
    monotone : (n_features,) int8
        Constraints on the columns.
    max_leaves : int
        The largest number of leaves.
    stop : callable
        Asked now and then; true ends the growth without a tree.
    """

    def __init__(
        self, binning: Binning, columns: Codes, monotone: NDArray[np.int8], max_leaves: int, stop: Callable[[], bool]
    ):
        self.stop, self._nodes = stop, 2 * max_leaves + 1
        self._growth = room_for(columns, describe_columns(binning, monotone), columns.shape[1], self._nodes)

    def grow(
        self, data: Array, rows: NDArray[np.int32] | None, features: NDArray[np.int32], rules: NDArray, values: bool
    ) -> NDArray[np.void] | None:
        """The nodes of a tree; see `TeamGrower`."""
        count = data.shape[1] if rows is None else len(rows)
        if count != self._growth.rows.shape[1]:
            self._growth = room_for(self._growth.columns, self._growth.looked, count, self._nodes)
        growth = self._growth._replace(order=features.astype(np.int64))
        part = data if rows is None else data[:, rows]
        growth.rows[0] = np.arange(count) if rows is None else rows
        ones = np.floor(part[:2] / [rules["gradient_unit"], rules["curvature_unit"]] + 0.5)
        if len(data) > TIMES:  # equal rows that one row stands for are rounded as one of them is
            growth = growth._replace(times=data[TIMES].astype(np.int64))
            units = np.array([rules["gradient_unit"], rules["curvature_unit"]]) * part[TIMES]
            ones = np.floor(part[:2] / units + 0.5) * part[TIMES]
        g, h = ones.astype(np.int64)
        growth.packed[0] = (g << HALF) + h
        state = growth.state
        state[:] = 0
        state[RULE_NAMES] = rules
        state["by_rows"], state["columns"] = 1, len(features)
        self._growth = growth
        while not grow_alone(growth, None, TURN):
            if self.stop():
                return None
        step_leaves(growth, data, values, values and rows is None)
        return growth.nodes[: state["nodes"][0]].copy()

    def add(self, tree: NDArray[np.void], data: Array) -> None:
        """Add the values of the leaves of the tree grown last to the scores of its rows."""
        self._growth.nodes["value"][: len(tree)] = tree["value"]
        step_leaves(self._growth, data, False, True)

    def rows(self, node: NDArray[np.void]) -> NDArray[np.int32]:
        """The rows of a node of the tree grown last: in rising order."""
        return self._growth.rows[node["depth"] & 1, node["start"] : node["stop"]]
