"""Kernels on graphs against labels written out in full, Kronecker products and the matrix exponential."""

import networkx as nx
import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm

import empirisk as er
from empirisk.errors import EmpiriskError, TooLarge
from empirisk.kernels import Diffusion, RandomWalk, WeisfeilerLehman
from tests.kernel_catalog import RING, graphs
from tests.kernels import naive_kernels as naive

pytestmark = pytest.mark.row("K5")

X, Z = graphs(12), graphs(5, seed=1)


def table(function, rows, columns, *arguments):
    return np.array([[function(g, h, *arguments) for h in columns] for g in rows], dtype=float)


def as_networkx(graph):
    edges, labels = graph
    made = nx.Graph()
    made.add_nodes_from((f"node {i}", {"label": label}) for i, label in enumerate(labels))
    made.add_edges_from((f"node {u}", f"node {v}", {"label": mark}) for u, v, mark in edges)
    return made


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_weisfeiler_lehman_counts_equal_neighbourhoods(rounds):
    kernel = WeisfeilerLehman(rounds)
    np.testing.assert_array_equal(kernel(X), table(naive.weisfeiler_lehman, X, X, rounds))
    np.testing.assert_array_equal(kernel(X, Z), table(naive.weisfeiler_lehman, X, Z, rounds))
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(kernel(X)))


@pytest.mark.parametrize(("decay", "length"), [(0.03, None), (0.039, None), (0.3, 0), (0.3, 1), (0.7, 6)])
def test_random_walk_is_the_kronecker_solve(decay, length):
    kernel = RandomWalk(decay, length)
    np.testing.assert_allclose(kernel(X), table(naive.random_walk, X, X, decay, length), rtol=1e-11)
    np.testing.assert_allclose(kernel(X, Z), table(naive.random_walk, X, Z, decay, length), rtol=1e-11)
    np.testing.assert_array_equal(kernel.diagonal(X), np.diag(kernel(X)))


@pytest.mark.parametrize("kernel", [WeisfeilerLehman(2), RandomWalk(0.03), RandomWalk(0.3, 3)], ids=repr)
def test_every_way_to_give_a_graph_gives_the_same(kernel):
    expected = kernel(X)
    np.testing.assert_allclose(kernel([as_networkx(graph) for graph in X]), expected, rtol=1e-13)
    named = [([(f"n{u}", f"n{v}", mark) for u, v, mark in edges], {f"n{i}": x for i, x in enumerate(labels)})
             for edges, labels in X]  # fmt: skip
    np.testing.assert_allclose(kernel(named), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel(X, [(edges, np.array(labels)) for edges, labels in X]), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel(X, [as_networkx(graph) for graph in X]), expected, rtol=1e-13)
    A = kernel.prepare(X)
    np.testing.assert_array_equal(kernel.between(A[[3, 0]], A[4:7]), expected[[3, 0], 4:7])
    K = kernel.set_params(normalise=True)(X)
    assert np.array_equal(K, K.T)
    assert np.all(np.diag(K) == 1)
    np.testing.assert_allclose(K, expected / np.sqrt(np.outer(np.diag(expected), np.diag(expected))), rtol=1e-12)
    kernel.set_params(normalise=False)


def test_other_attributes_hold_the_labels():
    def coloured(colours):
        graph = nx.path_graph(3)
        nx.set_node_attributes(graph, dict(enumerate(colours)), "colour")
        return graph

    data = [coloured("rgr"), coloured("rrr")]
    assert WeisfeilerLehman(0)(data)[0, 1] == 9  # no labels: all nodes are alike
    assert WeisfeilerLehman(0, node_label="colour")(data)[0, 1] == 6
    assert RandomWalk(0.1, length=0, node_label="colour")(data)[0, 1] == 6


def test_the_decay_of_walks_of_every_length_is_bounded():
    triangle = ([(0, 1), (1, 2), (0, 2)], None)
    with pytest.raises(EmpiriskError, match=r"decay=0.25 is too large for graph 1 of X.*below 0.25"):
        RandomWalk(0.25)([([(0, 1)], None), triangle])
    assert np.isfinite(RandomWalk(0.249)([triangle])).all()
    assert np.isfinite(RandomWalk(0.25, length=5)([triangle])).all()


def test_products_of_graphs_obey_the_budget():
    with er.config(memory="1KB"), pytest.raises(TooLarge, match="product of two graphs"):
        RandomWalk(0.01)([nx.complete_graph(5)])


@pytest.mark.parametrize("beta", [0.0, 0.3, 2.0])
def test_diffusion_is_the_matrix_exponential(beta):
    weights = np.triu(np.random.default_rng(0).random((7, 7)), 1)
    weights += weights.T
    K = expm(-beta * (np.diag(weights.sum(axis=1)) - weights))
    nodes, others = [0, 6, 3, 3, 1], [5, 0]
    kernel = Diffusion(weights, beta)
    np.testing.assert_allclose(kernel(nodes, others), K[np.ix_(nodes, others)], rtol=1e-11, atol=1e-14)
    block = kernel(nodes)
    assert np.array_equal(block, block.T)
    np.testing.assert_allclose(kernel.diagonal(nodes), np.diag(K)[nodes], rtol=1e-11)
    np.testing.assert_allclose(Diffusion(sparse.csr_matrix(weights), beta)(nodes), block, rtol=1e-12)
    kernel.set_params(beta=beta + 1.0)
    assert not np.allclose(kernel(nodes), block)


def test_diffusion_on_the_nodes_of_networkx_graphs_and_of_edges():
    cycle = nx.relabel_nodes(nx.cycle_graph(6), {i: f"n{i}" for i in range(6)})
    expected = Diffusion(RING, 0.5)([0, 2, 5])
    np.testing.assert_allclose(Diffusion(cycle, 0.5)(["n0", "n2", "n5"]), expected, rtol=1e-12)
    np.testing.assert_allclose(Diffusion(cycle, 0.5)(np.array([["n0"], ["n2"], ["n5"]])), expected, rtol=1e-12)
    edges = [(i, (i + 1) % 6) for i in range(6)]
    np.testing.assert_allclose(Diffusion((edges, None), 0.5)(np.array([0, 2, 5])), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "data", "message"),
    [
        (WeisfeilerLehman(-1), X, "rounds=-1"),
        (RandomWalk(0.0), X, "decay=0.0"),
        (RandomWalk(0.1, 1.5), X, "length=1.5"),
        (WeisfeilerLehman(), nx.path_graph(3), "a single graph"),
        (WeisfeilerLehman(), X[0], "not a tuple"),
        (WeisfeilerLehman(), [3], "entry 0 is of type int"),
        (WeisfeilerLehman(), [([(0, 9)], ["a"])], "edge to node 9, which has no label"),
        (WeisfeilerLehman(), [nx.DiGraph([(0, 1)])], "undirected"),
        (Diffusion(), [0], "graph=None"),
        (Diffusion(RING, -1.0), [0], "beta=-1.0"),
        (Diffusion(RING), [0, 17], "17 is not among them"),
        (Diffusion(RING), [], "X is empty"),
        (Diffusion(np.triu(RING)), [0], "symmetric adjacency matrix"),
    ],
)
def test_bad_input_is_refused(kernel, data, message):
    with pytest.raises(EmpiriskError, match=message):
        kernel(data)


@pytest.mark.parametrize("kernel", [er.kernels.WeisfeilerLehman(2), er.kernels.RandomWalk(0.05)])
def test_an_edge_listed_in_both_directions_is_one_edge(kernel):
    edges, labels = [(0, 1), (1, 2), (2, 0), (2, 3)], list("aabb")
    both = edges + [(v, u) for u, v in edges]
    other = ([(0, 1), (1, 2)], list("aba"))
    np.testing.assert_array_equal(kernel([(edges, labels), other]), kernel([(both, labels), other]))


def test_weights_of_networkx_edges_reach_the_diffusion_kernel():
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, {edge: 0.5 + number for number, edge in enumerate(graph.edges)}, "weight")
    expected = expm(-0.7 * nx.laplacian_matrix(graph).toarray())
    np.testing.assert_allclose(Diffusion(graph, 0.7)(list(graph)), expected, atol=1e-12)
    twice = nx.MultiGraph([(0, 1), (0, 1)])
    np.testing.assert_allclose(Diffusion(twice)([0, 1]), Diffusion(np.array([[0, 2], [2, 0]]))([0, 1]), rtol=1e-12)


@pytest.mark.parametrize("edges", [[0, 1], [(0, 1, 2, 3)], [(0,)], ["ab"]])
def test_an_edge_that_is_none_is_named(edges):
    with pytest.raises(EmpiriskError, match="holds a graph with the edge"):
        WeisfeilerLehman()([(edges, None)])
