"""Sums of kernels: equal to the product with the whole matrix, whatever the blocks."""

import numpy as np
import pytest
from scipy import sparse

import empirisk as er
from empirisk.maps.implicit import kernel_sums

KERNELS = [er.kernels.Gaussian(1.5), er.kernels.Polynomial(2) + er.kernels.Linear(), er.kernels.Laplacian(2.0)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize(("centres", "others"), [(1, 0), (7, 30), (513, 40), (1100, 1025)])
def test_sums_equal_the_product_with_the_whole_matrix(kernel, shape, centres, others):
    random = np.random.default_rng(centres)
    X, c = random.normal(size=(centres + others, 3)), random.normal(size=(centres, *shape))
    items, K = kernel.prepare(X), kernel(X)
    rest = items[centres:]
    own, other = kernel_sums(kernel, items[:centres], c, rest, among=True)
    scale = 1e-13 * np.abs(K[:, :centres]) @ np.abs(c) + 1e-300
    assert np.all(np.abs(own - K[:centres, :centres] @ c) <= scale[:centres])
    assert np.all(np.abs(other - K[centres:, :centres] @ c) <= scale[centres:])
    if others:
        only = kernel_sums(kernel, items[:centres], c, rest, among=False)
        np.testing.assert_array_equal(only[1], other)
        assert not only[0].any()


def test_neither_threads_nor_memory_matter():
    random = np.random.default_rng(0)
    X, c = random.normal(size=(1500, 4)), random.normal(size=700)
    kernel = er.kernels.Gaussian(1.0)
    found = []
    for threads in (1, 2, 3):
        with er.config(threads=threads):
            found.append(kernel_sums(kernel, X[:700], c, X[700:], among=True))
    for own, other in found[1:]:
        np.testing.assert_array_equal(own, found[0][0])
        np.testing.assert_array_equal(other, found[0][1])
    with er.config(memory="200KB"):
        little = kernel_sums(kernel, X[:700], c, X[700:], among=True)
    for part, whole in zip(little, found[0], strict=True):
        np.testing.assert_allclose(part, whole, atol=1e-12)


def test_single_precision_and_sparse_rows_are_summed_in_double():
    random = np.random.default_rng(0)
    X = (random.normal(size=(900, 60)) * (random.random((900, 60)) < 0.01)).astype(np.float32)
    kernel, c = er.kernels.Gaussian(1.0), random.normal(size=600)
    exact = kernel(X.astype(np.float64))[:, :600] @ c
    for items in (X, sparse.csr_matrix(X)):
        own, other = kernel_sums(kernel, items[:600], c, items[600:], among=True)
        assert own.dtype == other.dtype == np.float64
        np.testing.assert_allclose(np.concatenate([own, other]), exact, atol=1e-4)


def test_one_fuller_row_among_thin_ones_is_summed_like_the_others():
    random = np.random.default_rng(0)
    table = np.where(random.random((60, 200)) < 0.01, random.normal(size=(60, 200)), 0.0)
    table[0, :50] = random.normal(size=50)
    X, c, kernel = sparse.csr_matrix(table), random.normal(size=60), er.kernels.Gaussian(3.0)
    own, other = kernel_sums(kernel, kernel.prepare(X), c, kernel.prepare(X[:7]), among=True)
    np.testing.assert_allclose(own, kernel(table) @ c, rtol=1e-10)
    np.testing.assert_allclose(other, own[:7], rtol=1e-10)
