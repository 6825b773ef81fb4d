"""Kernels on graphs and on the nodes of a graph."""

from collections import Counter
from collections.abc import Hashable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from empirisk.errors import EmpiriskError
from empirisk.kernels.base import require_positive, require_whole
from empirisk.kernels.counts import CountKernel, digest
from empirisk.kernels.graph_arrays import Network, read_all, weights_of
from empirisk.kernels.items import Objects, as_objects
from empirisk.kernels.tiles import mirror, result
from empirisk.kernels.walks import count_walks, sum_walks
from empirisk.kernels.wrappers import Cosine
from empirisk.linalg.threads import in_threads
from empirisk.settings import require


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

    takes = "graphs"

    def __init__(
        self, rounds: int = 3, *, node_label: str = "label", edge_label: str = "label", normalise: bool = False
    ):
        self.rounds = rounds
        self.node_label = node_label
        self.edge_label = edge_label
        self.normalise = normalise

    def check(self):
        require_whole(self.rounds, "rounds", 0)

    def bags(self, X):
        for network in read_all(X, self.node_label, self.edge_label):
            yield self._bag(network)

    def _bag(self, network: Network) -> Counter:
        labels = [digest(label) for label in network.labels]
        bag = Counter(labels)
        for _ in range(int(self.rounds)):
            around: list[list[tuple]] = [[] for _ in labels]
            for u, v, label in network.edges:
                around[u].append((repr(label), labels[v]))
            labels = [digest(own, sorted(others)) for own, others in zip(labels, around, strict=True)]
            bag.update(labels)
        return bag


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

    takes = "graphs"

    def __init__(
        self,
        decay: float = 0.05,
        length: int | None = None,
        *,
        node_label: str = "label",
        edge_label: str = "label",
        normalise: bool = False,
    ):
        self.decay = decay
        self.length = length
        self.node_label = node_label
        self.edge_label = edge_label
        self.normalise = normalise

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

    def _require_finite_sum(self, network: Network, place: int) -> None:
        adjacency = network.adjacency()
        if adjacency.nnz == 0:
            return
        # No eigenvalue exceeds the largest degree, which is cheap; only graphs near the limit need the eigenvalue.
        if self.decay * float(adjacency.sum(axis=1).max()) ** 2 < 1:
            return
        count = adjacency.shape[0]
        largest = float(eigh(adjacency.toarray(), eigvals_only=True, subset_by_index=[count - 1, count - 1])[0])
        if self.decay * largest**2 >= 1:
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
        out = result(len(A), len(others), np.float64, out)
        edges = (max(len(marks) for _, _, marks in side) for side in (A, others) if len(side))
        require(16 * prod(edges), "The product of two graphs", "use smaller graphs, or labels that fewer nodes share")

        def run(i: int) -> None:
            for j in range(i if B is None else 0, len(others)):
                out[i, j] = self._value(A.values[i], others.values[j])

        in_threads(run, range(len(A)))
        if B is None:
            mirror(out)
        return out

    def plain_norms(self, A):
        return np.array([self._value(graph, graph) for graph in A])


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

    takes = "nodes"

    def __init__(self, graph: Any = None, beta: float = 1.0, *, normalise: bool = False):
        self.graph = graph
        self.beta = beta
        self.normalise = normalise

    def check(self):
        require_positive(self.beta, "beta", zero=True)

    def _flow(self) -> None:
        nodes, weights = weights_of(self.graph)
        require(4 * weights.nbytes, "The diffusion kernel of all nodes", "use a smaller graph")
        laplacian = np.diag(weights.sum(axis=1)) - weights
        values, vectors = eigh(laplacian)
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
        block = self.gram_[np.ix_(A, A if B is None else B)]
        if out is None:
            return block
        out[...] = block
        return out

    def plain_norms(self, A):
        return self.gram_[A, A]
