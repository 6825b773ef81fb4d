"""Graphs as arrays: read from networkx graphs, from edges with labels, or from an adjacency matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from empirisk.errors import EmpiriskError
from empirisk.kernels.counts import number
from empirisk.kernels.items import as_matrix, as_objects
from empirisk.kernels.tiles import dense

FORMS = "give networkx graphs or tuples (edges, labels)"


class LabelledGraph:
    """An undirected graph: the label of every node, and every edge in both directions with its label."""

    def __init__(self, nodes: list, labels: list, edges: list[tuple[int, int, Any]]):
        self.nodes = nodes
        self.labels = [_plain(label) for label in labels]
        edges = [(u, v, _plain(label)) for u, v, label in edges]
        self.edges = edges + [(v, u, label) for u, v, label in edges if u != v]

    def arrays(self) -> tuple[NDArray, NDArray, NDArray]:
        """Labels of nodes, ends of edges (2 x m) and labels of edges, as numbers that mean the same in every call."""
        ends = np.array([(u, v) for u, v, _ in self.edges], dtype=np.int64).reshape(-1, 2)
        return (
            np.array([number(label) for label in self.labels], dtype=np.int64),
            np.ascontiguousarray(ends.T),
            np.array([number(label) for _, _, label in self.edges], dtype=np.int64),
        )

    def adjacency(self, weighted: bool = False) -> sparse.csr_matrix:
        """The symmetric adjacency matrix; its labels are the weights of edges if they are ``weighted``, else 1."""
        _, (sources, targets), _ = self.arrays()
        weights = [label if weighted and label is not None else 1.0 for _, _, label in self.edges]
        shape = (len(self.nodes), len(self.nodes))
        return sparse.csr_matrix((np.array(weights, dtype=np.float64), (sources, targets)), shape=shape)


def _plain(label: Any) -> Any:
    """The label 3 of a list and the label 3 of an array are the same."""
    return label.item() if isinstance(label, np.generic) else label


def is_networkx(graph: Any) -> bool:
    """Whether an object is a networkx graph; networkx itself is not imported."""
    return hasattr(graph, "adjacency") and hasattr(graph, "is_directed")


def read(graph: Any, node_label: str, edge_label: str) -> LabelledGraph:
    """The network of a networkx graph or of a tuple (edges, labels)."""
    try:
        return _from_networkx(graph, node_label, edge_label) if is_networkx(graph) else _from_edges(*graph)
    except TypeError as error:  # a list, which cannot be looked up
        raise EmpiriskError(
            f"X holds a graph with a node or label that is no name; {FORMS}, numbers or texts."
        ) from error


def _from_networkx(graph: Any, node_label: str, edge_label: str) -> LabelledGraph:
    if graph.is_directed():
        raise EmpiriskError("directed graphs have no place in these kernels; give undirected ones: to_undirected().")
    position = {node: i for i, node in enumerate(graph.nodes)}
    labels = [data.get(node_label) for _, data in graph.nodes(data=True)]
    edges = [(position[u], position[v], data.get(edge_label)) for u, v, data in graph.edges(data=True)]
    return LabelledGraph(list(position), labels, edges)


def _edge(edge: Any) -> tuple:
    """The two ends of an edge and its label."""
    if not hasattr(edge, "__len__") or isinstance(edge, str) or len(edge) not in (2, 3):
        raise EmpiriskError(
            f"X holds a graph with the edge {edge!r}; a graph is a tuple (edges, labels) where each edge is (u, v) or "
            "(u, v, label), and labels may be None."
        )
    return tuple(edge) if len(edge) == 3 else (*edge, None)


def _from_edges(edges: Any, labels: Any) -> LabelledGraph:
    edges = [_edge(edge) for edge in edges]
    if labels is None:
        labels = dict.fromkeys(node for u, v, _ in edges for node in (u, v))
    elif not hasattr(labels, "keys"):
        labels = dict(enumerate(labels))
    position = {node: i for i, node in enumerate(labels)}
    unknown = {node for u, v, _ in edges for node in (u, v)} - set(position)
    if unknown:
        raise EmpiriskError(
            f"X holds a graph with an edge to node {min(unknown, key=repr)!r}, which has no label; "
            "give labels for all nodes, as a list for nodes 0, 1, ... or as a dictionary."
        )
    placed = [(position[u], position[v], _plain(label)) for u, v, label in edges]
    # Many lists hold every edge in both directions; it is one edge all the same.
    once = dict.fromkeys((min(u, v), max(u, v), label) for u, v, label in placed)
    return LabelledGraph(list(position), list(labels.values()), list(once))


def _is_graph(value: Any) -> bool:
    return is_networkx(value) or (isinstance(value, (tuple, list)) and len(value) == 2)


def read_all(X: Any, node_label: str, edge_label: str) -> list[LabelledGraph]:
    """The networks of a list of graphs."""
    if is_networkx(X):
        raise EmpiriskError(f"X is a single graph, but a list of graphs is needed; {FORMS} in a list.")
    if isinstance(X, tuple):
        raise EmpiriskError(f"X must be a list of graphs, not a tuple; {FORMS} in a list.")
    return [read(graph, node_label, edge_label) for graph in as_objects(X, "graphs", _is_graph)]


def weights_of(graph: Any) -> tuple[list, NDArray]:
    """The nodes and the dense symmetric matrix of edge weights of a single graph."""
    if graph is None:
        raise EmpiriskError("graph=None: give the graph whose nodes are compared, or its adjacency matrix.")
    if is_networkx(graph) or isinstance(graph, tuple):
        network = read(graph, "label", "weight")
        weights = network.adjacency(weighted=is_networkx(graph)).toarray()
        if 0 in weights.shape or not np.isfinite(weights).all():
            raise EmpiriskError("graph must have nodes, and finite weights of its edges.")
        return network.nodes, weights
    matrix = dense(as_matrix(graph, name="graph")).astype(np.float64, copy=False)
    if matrix.shape[0] != matrix.shape[1] or not np.array_equal(matrix, matrix.T):
        raise EmpiriskError(f"graph of shape {matrix.shape} must be a symmetric adjacency matrix.")
    return list(range(len(matrix))), matrix
