"""Pruning: smaller trees that are as good, on rows held out or by cost and complexity."""

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from empirisk import state
from empirisk.extras import data_frame
from empirisk.stop import check_stop
from empirisk.trees.exact.scan import ERROR, SQUARED
from empirisk.trees.nodes import Nodes
from empirisk.trees.text import Labels

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]

ROUNDING = 1 + 1e-12  # alphas within this factor are equal


@dataclass(frozen=True, eq=False)
class Pruned:
    """What pruning took away.

    Attributes
    ----------
    method : str
        "holdout" or "cost complexity".
    leaves_before, leaves_after : int
        Number of leaves.
    loss_before, loss_after : float
        Holdout: mean loss on the rows held out (share of errors, or mean squared or absolute error). Cost complexity:
        the impurity of the tree, sum over leaves of weight * impurity / total weight.
    alpha : float or None
        The price of a leaf, for cost-complexity pruning.
    removed : dict of arrays
        For each split that went its ``node`` in the tree before, its ``condition``, ``weight`` and ``gain``.
    """

    _state = state.State(method=state.text(), leaves_before=state.whole(), leaves_after=state.whole())

    method: str
    leaves_before: int
    leaves_after: int
    loss_before: float
    loss_after: float
    alpha: float | None
    removed: dict[str, NDArray]


def holdout_cuts(nodes: Nodes, losses: Array) -> tuple[NDArray[np.bool_], float]:
    """The splits whose removal does not raise the loss held out, found from the bottom up, and the loss that remains.

    ``losses`` are the sums of the loss over the rows held out that pass each node, if that node were a leaf.
    """
    best, cuts = losses.copy(), np.zeros(len(nodes), dtype=bool)
    for node in range(len(nodes) - 1, -1, -1):  # children come after their parents
        if nodes.feature[node] >= 0:
            below = best[nodes.left[node]] + best[nodes.left[node] + 1]
            cuts[node] = losses[node] <= below
            best[node] = losses[node] if cuts[node] else below
    return cuts, float(best[0])


def node_losses(nodes: Nodes, X: Array, y: Array, weights: Array, criterion: int) -> Array:
    """For each node, the loss of its value summed over the rows that pass it: what it would cost as a leaf.

    ``y`` has shape (n_rows, n_outputs); with `ERROR` it holds class numbers.
    """
    value = nodes.value.argmax(axis=1)[:, None].astype(np.float64) if criterion == ERROR else nodes.value
    losses, parents, place = np.zeros(len(nodes)), nodes.parents(), nodes.predict_leaf(X)[:, 0]
    while len(place):  # one level up with every turn, until all rows are beyond the root
        away = np.abs(y - value[place])
        if criterion == ERROR:
            away = (away > 0.0).astype(np.float64)
        losses += np.bincount(place, weights * (away**2 if criterion == SQUARED else away).sum(axis=1), len(nodes))
        inside = parents[place] >= 0
        y, weights, place = y[inside], weights[inside], parents[place][inside]
    return losses


def collapse_alphas(nodes: Nodes) -> Array:
    """For each split the alpha (cost of a leaf) from which on it is collapsed (weakest-link pruning).

    The cost of a tree is R(T) + alpha * leaves, R the sum over leaves of weight * impurity / total weight. A split t
    with the branch T_t pays until alpha reaches  (R(t) - R(T_t)) / (leaves of T_t - 1).  Leaves have infinity.
    """
    cost = nodes.weight * nodes.impurity / nodes.weight[0]
    branch, leaves = np.where(nodes.is_leaf, cost, 0.0), nodes.is_leaf.astype(np.int64)
    parents = nodes.parents()
    for node in range(len(nodes) - 1, 0, -1):
        branch[parents[node]] += branch[node]
        leaves[parents[node]] += leaves[node]
    # Lists: single entries of arrays take several times as long.
    alphas, gone, left = [np.inf] * len(nodes), nodes.is_leaf.tolist(), nodes.left.tolist()
    cost, branch, leaves, parents = cost.tolist(), branch.tolist(), leaves.tolist(), parents.tolist()
    queue = [(_link(cost, branch, leaves, node), node) for node in np.flatnonzero(~nodes.is_leaf).tolist()]
    heapq.heapify(queue)
    alpha = 0.0
    while queue:
        link, node = heapq.heappop(queue)
        if gone[node] or link != _link(cost, branch, leaves, node):
            continue  # collapsed, or the branch has shrunk since: a newer entry waits
        check_stop()
        alpha = max(alpha, link)
        below = [node]
        while below:
            inner = below.pop()
            gone[inner], alphas[inner] = True, min(alphas[inner], alpha)
            below += [child for child in (left[inner], left[inner] + 1) if not gone[child]]
        saved, fewer = cost[node] - branch[node], leaves[node] - 1
        while node >= 0:
            branch[node] += saved
            leaves[node] -= fewer
            if not gone[node]:
                heapq.heappush(queue, (_link(cost, branch, leaves, node), node))
            node = parents[node]
    return np.array(alphas)


def _link(cost: list[float], branch: list[float], leaves: list[int], node: int) -> float:
    """What each leaf of a branch saves; infinite for a branch that is one leaf."""
    if leaves[node] < 2:
        return np.inf
    return max(0.0, (cost[node] - branch[node]) / (leaves[node] - 1))


def pruning_alphas(alphas: Array) -> Array:
    """The alphas of cost-complexity pruning at which the tree shrinks, rising from 0, without repetitions."""
    rising = np.sort(alphas[np.isfinite(alphas)])
    new = rising > np.concatenate([[0.0], rising[:-1]]) * ROUNDING
    return np.concatenate([[0.0], rising[new]])


def cuts_at(alphas: Array, alpha: float) -> NDArray[np.bool_]:
    """The splits that cost-complexity pruning collapses at this alpha."""
    return alphas <= alpha * ROUNDING


def impurity(nodes: Nodes) -> float:
    """R(T), the impurity of the tree: the sum over leaves of weight * impurity / total weight."""
    return float((nodes.weight * nodes.impurity)[nodes.is_leaf].sum() / nodes.weight[0])


def removed(labels: Labels, cuts: NDArray[np.bool_]) -> dict[str, NDArray]:
    """The splits that go when the marked nodes become leaves: those marked and all below them."""
    nodes = labels.nodes
    gone = cuts & ~nodes.is_leaf
    for node, parent in enumerate(nodes.parents()):
        gone[node] |= parent >= 0 and gone[parent]
    splits = np.flatnonzero(gone & ~nodes.is_leaf)
    conditions = np.array([labels.condition(int(node)) for node in splits], dtype=str)
    return {"node": splits, "condition": conditions, "weight": nodes.weight[splits], "gain": nodes.gain[splits]}


def path_arrays(nodes: Nodes) -> tuple[Array, NDArray[np.int64], Array]:
    """The trees of the cost-complexity path: prices of a leaf, numbers of leaves, impurities."""
    at = pruning_alphas(collapse_alphas(nodes))
    leaves = losses_along(nodes, np.ones(len(nodes)), at)
    impurity = losses_along(nodes, nodes.weight * nodes.impurity / nodes.weight[0], at)
    return at, leaves.astype(np.int64), np.maximum(impurity, 0.0)


def path_table(nodes: Nodes) -> "pl.DataFrame":
    """`path_arrays` as a table."""
    return data_frame(dict(zip(("alpha", "leaves", "impurity"), path_arrays(nodes), strict=True)))


def losses_along(nodes: Nodes, losses: Array, alphas: Array) -> Array:
    """The loss of the tree pruned at each of the (rising) prices ``alphas``, from the losses of its nodes.

    A node is a leaf from its own price on, until the price of an ancestor: the losses of all trees of the path are
    one sum over such intervals.
    """
    own = np.where(nodes.is_leaf, -np.inf, collapse_alphas(nodes))
    above = np.full(len(nodes), np.inf)
    for node, parent in enumerate(nodes.parents()):
        if parent >= 0:
            above[node] = min(above[parent], own[parent])
    at = alphas * ROUNDING
    first, last = np.searchsorted(at, own), np.searchsorted(at, above)
    change = np.zeros(len(alphas) + 1)
    np.add.at(change, first[first < last], losses[first < last])
    np.add.at(change, last[first < last], -losses[first < last])
    return np.cumsum(change)[:-1]
