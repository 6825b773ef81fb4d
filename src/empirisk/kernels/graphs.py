"""Kernels on graphs and on the nodes of a graph."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk import state
from empirisk.errors import EmpiriskError
from empirisk.kernels.base import require_positive, require_whole
from empirisk.kernels.counts import CountKernel, digest
from empirisk.kernels.graph_arrays import LabelledGraph, read_all, weights_of
from empirisk.kernels.items import Objects, as_objects
from empirisk.kernels.tiles import by_rows, result
from empirisk.kernels.wrappers import Cosine
from empirisk.linalg.compiled import loop
from empirisk.linalg.threads import interruptible_call
from empirisk.linalg.tiled import mirror
from empirisk.settings import require


@loop
def _product(first, second):
    """The product of two graphs (labels of nodes, ends of edges, labels of edges): its size, its edges from and to."""
    (labels, ends, marks), (other_labels, other_ends, other_marks) = first, second
    place = np.full((len(labels), len(other_labels)), -1)
    count = 0
    for u in range(len(labels)):
        for v in range(len(other_labels)):
            if labels[u] == other_labels[v]:
                place[u, v] = count
                count += 1
    edges = 0
    for filling in range(2):
        sources, targets = np.empty(edges, np.int64), np.empty(edges, np.int64)
        edges = 0
        for e in range(len(marks)):
            for f in range(len(other_marks)):
                source, target = place[ends[0, e], other_ends[0, f]], place[ends[1, e], other_ends[1, f]]
                if marks[e] == other_marks[f] and source >= 0 and target >= 0:
                    if filling:
                        sources[edges], targets[edges] = source, target
                    edges += 1
    return count, sources, targets


@loop
def _step(values, sources, targets, decay):
    """decay A values."""
    out = np.zeros_like(values)
    for e in range(len(sources)):
        out[sources[e]] += decay * values[targets[e]]
    return out


@loop
def count_walks(first, second, decay, length):
    """sum_{l <= length} decay^l 1' A^l 1 of the product graph."""
    count, sources, targets = _product(first, second)
    values = np.ones(count)
    total = values.sum()
    for _ in range(length):
        values = _step(values, sources, targets, decay)
        total += values.sum()
    return total


@loop
def sum_walks(first, second, decay):
    """1' (I - decay A)^-1 1 of the product graph, by conjugate gradients: the matrix is positive definite."""
    count, sources, targets = _product(first, second)
    x = np.zeros(count)
    residual = np.ones(count)
    direction = residual.copy()
    square = float(count)
    # In exact arithmetic ``count`` rounds are enough; with rounding a few more.
    for _ in range(2 * count + 10):
        # The residual is then rounding: its square, at the start the count, has lost all 28 digits of two doubles.
        if square <= 1e-28 * count:
            break
        image = direction - _step(direction, sources, targets, decay)
        size = square / (direction @ image)
        x += size * direction
        residual -= size * image
        before, square = square, residual @ residual
        direction = residual + (square / before) * direction
    return x.sum()


MOST_STEPS = 10_000  # of rounds and walks that a file may ask for: each goes through all edges


@dataclass(eq=False, repr=False)
class WeisfeilerLehman(CountKernel):
    """Shared neighbourhoods: k(G, H) = sum over rounds and labels of (nodes of G with it) (nodes of H with it).

    In each round the label of a node becomes its label together with those of its neighbours, so that after r rounds it
    describes everything within r steps. Labels of edges count where they are given.

    Parameters
    ----------
    rounds : int
        The number of rounds, at least 0.
    node_label, edge_label : str
        The attributes of a networkx graph that hold the labels.
    normalise : bool
        Whether to divide by sqrt(k(G, G) k(H, H)).

    Examples
    --------
    >>> path, triangle = ([(0, 1), (1, 2)], None), ([(0, 1), (1, 2), (0, 2)], None)
    >>> er.kernels.WeisfeilerLehman(1)([path, triangle])
    array([[14., 12.],
           [12., 18.]])
    """

    _state = state.State(rounds=state.whole(0, MOST_STEPS))

    takes = "graphs"

    rounds: int = 3
    _: KW_ONLY
    node_label: str = "label"
    edge_label: str = "label"

    def check(self):
        require_whole(self.rounds, "rounds", 0)

    def bags(self, X):
        for network in read_all(X, self.node_label, self.edge_label):
            yield self._bag(network)

    def _bag(self, network: LabelledGraph) -> Counter:
        labels = [digest(label) for label in network.labels]
        bag = Counter(labels)
        for _ in range(int(self.rounds)):
            around: list[list[tuple]] = [[] for _ in labels]
            for u, v, label in network.edges:
                around[u].append((repr(label), labels[v]))
            labels = [digest(own, sorted(others)) for own, others in zip(labels, around, strict=True)]
            bag.update(labels)
        return bag


@dataclass(eq=False, repr=False)
class RandomWalk(Cosine):
    """Shared walks: k(G, H) = sum_l decay^l (pairs of walks of length l in G and H with the same labels on the way).

    The pairs of walks are the walks in the product graph: its nodes are the pairs of nodes with equal labels, its
    edges the pairs of edges with equal labels. Over all lengths k = 1' (I - decay A)^-1 1 with its adjacency A.

    Parameters
    ----------
    decay : float
        What each step costs. Without a ``length`` it must be below 1 / (largest eigenvalue of a graph)^2.
    length : int or None
        The largest number of steps; None counts walks of every length.
    node_label, edge_label : str
        The attributes of a networkx graph that hold the labels.
    normalise : bool
        Whether to divide by sqrt(k(G, G) k(H, H)).

    Examples
    --------
    >>> edge, triangle = ([(0, 1)], None), ([(0, 1), (1, 2), (0, 2)], None)
    >>> er.kernels.RandomWalk(0.1)([edge, triangle])
    array([[ 4.44444444,  7.5       ],
           [ 7.5       , 15.        ]])
    """

    _state = state.State(decay=state.number(0), length=state.maybe(state.whole(0, MOST_STEPS)))

    takes = "graphs"

    decay: float = 0.05
    length: int | None = None
    _: KW_ONLY
    node_label: str = "label"
    edge_label: str = "label"

    def check(self):
        require_positive(self.decay, "decay")
        if self.length is not None:
            require_whole(self.length, "length", 0)

    def plain_items(self, X):
        networks = read_all(X, self.node_label, self.edge_label)
        if self.length is None:
            for i, network in enumerate(networks):
                self._require_finite_sum(network, i)
        return Objects([network.arrays() for network in networks])

    def _require_finite_sum(self, network: LabelledGraph, place: int) -> None:
        adjacency = network.adjacency()
        if adjacency.nnz == 0:
            return
        # No eigenvalue exceeds the largest degree, which is cheap; only graphs near the limit need the eigenvalue.
        if self.decay * float(adjacency.sum(axis=1).max()) ** 2 < 1:
            return
        largest = float(np.linalg.eigvalsh(adjacency.toarray())[-1])
        if self.decay * largest**2 >= 1 - 1e-12:  # the rounding of an eigenvalue
            raise EmpiriskError(
                f"decay={self.decay!r} is too large for graph {place} of X: the sum over all walks is infinite; "
                f"choose decay below {1 / largest**2:.3g}, or give a length."
            )

    def _value(self, first: tuple, second: tuple) -> float:
        if self.length is None:
            return sum_walks(first, second, float(self.decay))
        return count_walks(first, second, float(self.decay), int(self.length))

    def plain_block(self, A, B, out):
        others = A if B is None else B
        edges = (max(len(marks) for _, _, marks in side) for side in (A, others) if len(side))
        require(16 * prod(edges), "The product of two graphs", "use smaller graphs, or labels that fewer nodes share")

        def fill_row(i: int, start: int, line: NDArray) -> None:
            for j in range(start, len(others)):
                line[j] = self._value(A.values[i], others.values[j])

        return by_rows(A, B, out, fill_row)

    def plain_diagonals(self, A):
        return np.array([self._value(graph, graph) for graph in A])


@dataclass(eq=False, repr=False)
class Diffusion(Cosine):
    """Heat that flows from node to node: K = exp(-beta L) with the Laplacian L = D - A of a graph.

    Items are nodes: those of the networkx graph, or positions in the adjacency matrix.

    Parameters
    ----------
    graph : networkx graph, tuple (edges, labels), or symmetric adjacency matrix
        The graph; weights of edges are those of the matrix, or the attribute ``weight`` of the networkx graph.
    beta : float
        The time for which heat flows.
    normalise : bool
        Whether to divide by sqrt(k(x, x) k(z, z)).

    Attributes
    ----------
    nodes_ : dict
        The position of each node, after first use.
    gram_ : ndarray
        K for all nodes, after first use.

    Examples
    --------
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> er.kernels.Diffusion(path, beta=0.5)([0, 1, 2]).round(3)
    array([[0.674, 0.259, 0.067],
           [0.259, 0.482, 0.259],
           [0.067, 0.259, 0.674]])
    """

    _state = state.State(
        lambda its: None if ("gram_" in its) == ("nodes_" in its) else "gram_ and nodes_ belong together",
        beta=state.number(0),
        gram_=state.optional(state.array("f8", "nodes", "nodes")),
        nodes_=state.optional(state.mapping(state.whole(below="nodes"), keys=Hashable)),
    )

    takes = "nodes"

    graph: Any = None
    beta: float = 1.0

    def check(self):
        require_positive(self.beta, "beta", zero=True)

    def _flow(self) -> None:
        nodes, weights = weights_of(self.graph)
        require(4 * weights.nbytes, "The diffusion kernel of all nodes", "use a smaller graph")
        laplacian = np.diag(weights.sum(axis=1)) - weights
        values, vectors = interruptible_call(lambda: np.linalg.eigh(laplacian), len(laplacian))
        half = vectors * np.exp(-0.5 * self.beta * values)
        gram = half @ half.T
        mirror(gram)
        self.gram_: NDArray = gram
        self.nodes_ = {node: i for i, node in enumerate(nodes)}

    def plain_items(self, X):
        if not hasattr(self, "gram_"):
            self._flow()
        nodes = as_objects(X, "nodes", lambda node: isinstance(node, Hashable))
        unknown = [node for node in nodes if node not in self.nodes_]
        if unknown:
            raise EmpiriskError(f"X must list nodes of the graph, and {unknown[0]!r} is not among them.")
        return np.array([self.nodes_[node] for node in nodes], dtype=np.intp)

    def plain_block(self, A, B, out):
        others = A if B is None else B
        return np.take(self.gram_[A], others, axis=1, out=result(len(A), len(others), np.float64, out))

    def plain_diagonals(self, A):
        return self.gram_[A, A]
