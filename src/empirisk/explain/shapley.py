"""Shapley values of trees: how much each column of a row moves the prediction away from the mean, exactly.

A leaf is reached by the rows that keep to all splits on its path. With the columns of the path as players, of which
those in S are known and the others drawn as the training rows were, leaf value v counts with

    v * prod_{j in S} o_j * prod_{j not in S} z_j,

where o_j is 1 if the row keeps to all splits of column j on the path, else 0, and z_j is the product of the shares of
training rows that do. Sums over all S of one size are the coefficients of prod_j (z_j + o_j t), so that the Shapley
values of a leaf with m columns take m^2 steps (the path-dependent TreeSHAP of Lundberg and others, leaf by leaf).
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from empirisk.linalg.compiled import loop
from empirisk.linalg.threads import parallel_map

if TYPE_CHECKING:
    from empirisk.trees.nodes import Nodes

Array = NDArray[np.float64]

ROWS = 64  # of one task
#: The weight, in rows, of a node that no training row reached: its share of its parent must not be 0 / 0.
UNREACHED_WEIGHT = 1e-9


def node_weights(nodes: "Nodes", X: Array) -> Array:
    """How many of the rows come through each node."""
    leaves = nodes.predict_leaf(X)
    weights = np.bincount(leaves.ravel(), minlength=len(nodes)).astype(np.float64)
    parents = nodes.parents()
    for node in range(len(weights) - 1, -1, -1):  # children come after their parents
        if parents[node] >= 0:
            weights[parents[node]] += weights[node]
    return weights


def shapley_values(nodes: "Nodes", weights: Array, X: Array, n_outputs: int | None = None) -> Array:
    """Shapley values of the sum of trees, rows x columns x outputs.

    Over the columns they add up to the prediction of the row minus the mean over the nodes' weights.

    Parameters
    ----------
    nodes : Nodes
        One tree, or many joined.
    weights : array
        Training weight of each node, see `node_weights`.
    X : array
        The rows.
    n_outputs : int, optional
        For trees of one value each, of which tree t adds to output t mod n_outputs.

    Examples
    --------
    >>> from empirisk.trees.nodes import Nodes
    >>> stump = Nodes.from_splits(feature=[0, -1, -1], threshold=[0.5, np.nan, np.nan], left=[1, -1, -1],
    ...                           value=[[0.0], [-1.0], [1.0]], n_features=2)
    >>> shapley_values(stump, np.array([4.0, 3.0, 1.0]), np.array([[0.0, 7.0]]))[0, :, 0]
    array([-0.5,  0. ])
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    outputs = nodes.value.shape[1] if n_outputs is None else n_outputs
    found = np.zeros((len(X), X.shape[1], outputs))
    leaves = np.flatnonzero(nodes.is_leaf)
    trees = np.searchsorted(nodes.roots, leaves, side="right") - 1
    first_output = (trees % outputs if nodes.value.shape[1] == 1 else np.zeros(len(leaves))).astype(np.int64)
    parents = nodes.parents().astype(np.int64)
    weighed = np.maximum(weights, UNREACHED_WEIGHT)

    def run(start: int) -> None:
        rows = slice(start, start + ROWS)
        _explain(
            X[rows],
            found[rows],
            (leaves, first_output, parents, weighed, nodes.value),
            (nodes.feature, nodes.threshold, nodes.left, nodes.missing_left),
            (nodes.category_start, nodes.category_bits, nodes.category_counts),
        )

    parallel_map(run, range(0, len(X), ROWS))
    return found


@loop
def _explain(X, out, paths, splits, sets):
    """`shapley_values` on one thread."""
    leaves, first_output, parents, weights, value = paths
    feature, threshold, left, missing_left = splits
    start, bits, counts = sets
    most = X.shape[1] + 1
    columns, zero, one = np.empty(most, np.int64), np.empty(most), np.empty(most)
    whole, rest = np.empty(most + 1), np.empty(most + 1)
    for r in range(X.shape[0]):
        for place in range(leaves.shape[0]):
            node, m = leaves[place], 0
            while parents[node] >= 0:
                above = parents[node]
                column = feature[above]
                x = X[r, column]
                if start[above] >= 0:
                    goes = missing_left[above]
                    if x == x and 0 <= x < counts[column]:
                        code = np.int64(x)
                        goes = (bits[start[above] + code // 64] >> np.uint64(code % 64)) & np.uint64(1) == np.uint64(1)
                else:
                    goes = missing_left[above] if x != x else x <= threshold[above]
                keeps = 1.0 if goes == (node == left[above]) else 0.0
                k = 0
                while k < m and columns[k] != column:
                    k += 1
                if k == m:
                    columns[m], zero[m], one[m] = column, 1.0, 1.0
                    m += 1
                zero[k] *= weights[node] / weights[above]
                one[k] *= keeps
                node = above
            # The coefficients of the product over all columns of the path.
            whole[0] = 1.0
            for k in range(m):
                whole[k + 1] = 0.0
                for size in range(k + 1, 0, -1):
                    whole[size] = zero[k] * whole[size] + one[k] * whole[size - 1]
                whole[0] *= zero[k]
            for k in range(m):
                if one[k] == 0.0:
                    for size in range(m):
                        rest[size] = whole[size] / zero[k]
                else:  # divided by zero[k] + t, from the highest power
                    rest[m - 1] = whole[m]
                    for size in range(m - 1, 0, -1):
                        rest[size - 1] = whole[size] - zero[k] * rest[size]
                share, total = 1.0 / m, 0.0  # size! (m - size - 1)! / m!
                for size in range(m):
                    total += share * rest[size]
                    share *= (size + 1) / max(m - size - 1, 1)
                for output in range(value.shape[1]):
                    moved = (one[k] - zero[k]) * total * value[leaves[place], output]
                    out[r, columns[k], first_output[place] + output] += moved
