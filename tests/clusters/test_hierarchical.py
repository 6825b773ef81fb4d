"""Hierarchical clustering: SciPy's trees, kernel distances, weights, cells, cuts and refusals."""

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.clusters import hierarchical
from empirisk.errors import EmpiriskError, TooLarge
from tests.estimator_checks import check_contract

X = np.random.default_rng(0).normal(size=(600, 3))
METHODS = ["single", "complete", "average", "ward"]

pytestmark = pytest.mark.row("U3")


def partition(labels):
    """Clusters as sets of rows."""
    return {frozenset(np.flatnonzero(labels == label)) for label in np.unique(labels)}


@pytest.mark.parametrize("machine", [er.Hierarchical(), er.Hierarchical("ward", "gaussian", cells=4)], ids=repr)
def test_the_contract_holds(machine):
    check_contract(machine)


@pytest.mark.parametrize("method", METHODS)
def test_the_tree_is_that_of_scipy(method):
    machine = er.Hierarchical(method, n_clusters=7).fit(X)
    expected = linkage(X, method)
    np.testing.assert_allclose(machine.linkage_, expected, atol=1e-12)
    assert is_valid_linkage(machine.linkage_)
    assert partition(machine.labels_) == partition(fcluster(expected, 7, "maxclust"))
    assert machine.n_clusters_ == 7
    np.testing.assert_array_equal(machine.cut(7), machine.labels_)
    height = expected[-21:-19, 2].mean()
    assert partition(machine.cut(height=height)) == partition(fcluster(expected, height, "distance"))
    far = er.Hierarchical(method, distance_threshold=height).fit(X)
    np.testing.assert_array_equal(far.labels_, machine.cut(height=height))
    # Numbered from the first row on.
    assert machine.labels_[0] == 0
    firsts = [np.flatnonzero(machine.labels_ == k)[0] for k in range(7)]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("method", METHODS)
def test_squared_distances(method):
    plain, squared = (er.Hierarchical(method, squared=squared).fit(X[:80]).linkage_ for squared in (False, True))
    if method == "average":
        expected = linkage(pdist(X[:80]) ** 2, "average")
        np.testing.assert_allclose(squared, expected, atol=1e-12)
    else:
        np.testing.assert_allclose(squared[:, 2], plain[:, 2] ** 2, atol=1e-12)
        np.testing.assert_array_equal(squared[:, :2], plain[:, :2])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(2.0)], ids=str)
def test_weights_are_repetition(method, features):
    amounts = np.random.default_rng(1).integers(0, 4, size=60)
    weighted = er.Hierarchical(method, features, n_clusters=5).fit(X[:60], sample_weight=amounts)
    repeated = er.Hierarchical(method, features, n_clusters=5).fit(np.repeat(X[:60], amounts, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, amounts), repeated.labels_)
    merges = len(weighted.linkage_)
    np.testing.assert_allclose(weighted.linkage_[:, 2], repeated.linkage_[-merges:, 2], atol=1e-7)
    assert (weighted.labels_[amounts == 0] == -1).all()


def products(A, B):
    return A @ B.T


@pytest.mark.parametrize("features", [None, er.kernels.Linear(), er.kernels.Callable(products)], ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_rows_does_not_matter_where_distances_are_equal(method, features):
    random = np.random.default_rng(0)
    rows, order = (random.random((40, 6)) < 0.5).astype(float), random.permutation(40)
    plain, moved = (er.Hierarchical(method, features).fit(table) for table in (rows, rows[order]))
    np.testing.assert_allclose(moved.linkage_[:, 2], plain.linkage_[:, 2])
    for count in (2, 5):
        one, two = plain.cut(count)[order], moved.cut(count)
        assert np.array_equal(one[:, None] == one, two[:, None] == two)


@pytest.mark.row("K15")
@pytest.mark.parametrize("method", METHODS)
def test_kernel_distances(method):
    kernel = er.kernels.Gaussian(1.5)
    K = kernel(X[:100])
    distances = np.sqrt(np.maximum(2 - 2 * K, 0))
    np.fill_diagonal(distances, 0)
    machine = er.Hierarchical(method, kernel).fit(X[:100])
    # SciPy takes Ward's distances for Euclidean, which these are in the feature space.
    np.testing.assert_allclose(machine.linkage_, linkage(squareform(distances), method), atol=1e-8)
    given = er.Hierarchical(method, "precomputed").fit(K)
    np.testing.assert_allclose(given.linkage_, machine.linkage_)
    linear = er.Hierarchical(method, er.kernels.Linear()).fit(X[:100])
    np.testing.assert_allclose(linear.linkage_, linkage(X[:100], method), atol=1e-7)
    words = er.Hierarchical(method, er.kernels.Spectrum(2), n_clusters=2).fit(["banana", "bandana", "phone", "phones"])
    np.testing.assert_array_equal(words.labels_, [0, 0, 1, 1])


def test_sparse_rows_float32_and_maps():
    thin = X[:150] * (np.abs(X[:150]) > 0.5)
    dense = er.Hierarchical().fit(thin)
    np.testing.assert_allclose(er.Hierarchical().fit(sparse.csc_array(thin)).linkage_, dense.linkage_, atol=1e-7)
    single = er.Hierarchical().fit(thin.astype(np.float32))
    np.testing.assert_allclose(single.linkage_[:, 2], dense.linkage_[:, 2], atol=1e-5)
    scaled = er.Hierarchical(features=StandardScaler()).fit(X * [1, 10, 100])
    np.testing.assert_allclose(scaled.linkage_, linkage(StandardScaler().fit_transform(X), "average"), atol=1e-9)


def test_rows_far_from_the_origin_keep_their_digits():
    machine = er.Hierarchical().fit(X + 1e7)
    np.testing.assert_allclose(machine.linkage_[:, 2], linkage(X + 1e7, "average")[:, 2], rtol=1e-9)


@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(3.0)], ids=str)
def test_cells_of_k_means_come_first(features):
    rows = np.concatenate([X, X + 12])
    machine = er.Hierarchical(features=features, cells=20, n_clusters=2, random_state=0).fit(rows)
    assert machine.linkage_.shape == (19, 4)
    assert partition(machine.labels_) == {frozenset(range(600)), frozenset(range(600, 1200))}
    if features is None:
        cells = er.KMeans(20, n_init=1, random_state=0).fit(rows)
        expected = linkage(cells.cluster_centers_, "average")
        np.testing.assert_allclose(machine.linkage_[0, 2], expected[0, 2])


def test_without_a_wish_the_cut_is_where_heights_rise_most():
    rows = np.concatenate([X[:50], X[50:100] + 30, X[100:150] - 30])
    machine = er.Hierarchical().fit(rows)
    assert machine.n_clusters_ == 3
    assert er.Hierarchical().fit(np.ones((4, 2))).n_clusters_ == 1


def test_small_steps_and_smaller_matrices_change_nothing(monkeypatch):
    expected = er.Hierarchical().fit(X).linkage_
    monkeypatch.setattr(hierarchical, "MERGES", 7)
    monkeypatch.setattr(hierarchical, "SMALLEST", 2)
    np.testing.assert_array_equal(er.Hierarchical().fit(X).linkage_, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linkage": "median"}, "linkage='median' is not known"),
        ({"n_clusters": 0}, "n_clusters=0"),
        ({"n_clusters": 601}, "exceeds the 600 distinct rows"),
        ({"n_clusters": 2, "distance_threshold": 1.0}, "give one of them"),
        ({"distance_threshold": -1.0}, "distance_threshold"),
        ({"cells": 1}, "cells=1"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(options, message):
    with pytest.raises(EmpiriskError, match=message):
        er.Hierarchical(**options).fit(X)


def test_bad_rows_and_cuts_are_refused():
    machine = er.Hierarchical().fit(X)
    for wrong in ({}, {"n_clusters": 2, "height": 1.0}):
        with pytest.raises(EmpiriskError, match="one of them"):
            machine.cut(**wrong)
    with pytest.raises(EmpiriskError, match="exceeds"):
        machine.cut(601)
    with pytest.raises(EmpiriskError, match="more than one sample"):
        er.Hierarchical().fit([[1.0]])
    with pytest.raises(ValueError, match="NaN"):
        er.Hierarchical().fit([[np.nan], [1.0]])
    with er.config(memory=1000), pytest.raises(TooLarge, match="cells="):
        er.Hierarchical().fit(X)


def test_weights_are_rows_to_the_bit_where_distances_are_equal():
    X = np.random.default_rng(0).integers(0, 2, (30, 12)).astype(float)
    times = np.random.default_rng(1).integers(1, 4, 30)
    one = er.Hierarchical(n_clusters=1).fit(X, sample_weight=times).linkage_[:, 2]
    two = er.Hierarchical(n_clusters=1).fit(np.repeat(X, times, axis=0)).linkage_[:, 2]
    np.testing.assert_array_equal(one[one > 0], two[two > 0])


def test_cells_without_rows_are_no_leaves():
    # Rows whose differences no square can hold: of cells that are as near all rows go to the first.
    X = np.column_stack([np.full(20, 0.7), 1e-48 * np.random.default_rng(0).normal(size=20)])
    empty = 0
    for seed in range(6):
        for link in ("single", "complete", "average", "ward"):
            machine = er.Hierarchical(link, cells=8, n_clusters=2, random_state=seed).fit(X)
            assert np.isfinite(machine.linkage_).all()
            assert machine.n_leaves_ == max(2, len(np.unique(machine.leaves_)))
            empty += machine.n_leaves_ < 8
    assert empty
