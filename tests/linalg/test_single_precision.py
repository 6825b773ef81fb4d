"""Float32 where it is enough: the results agree to its precision, and where it is not enough it is not used."""

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from scipy import sparse

import empirisk as er
from empirisk.linalg import single_precision
from empirisk.linalg.design import DenseDesign, design_of
from empirisk.linalg.single_precision import CoarseDesign, SingleFactor, coarse, single_suffices

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3000, 70)) + 5.0
WEIGHTS = RANDOM.uniform(size=3000) * (RANDOM.uniform(size=3000) < 0.8)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_normal_matrix_in_single_precision(weights, centre):
    exact = design_of(X, centre)
    found = CoarseDesign(X, exact.shift).gram(weights)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, exact.gram(weights), rtol=0, atol=1e-6 * np.abs(found).max())


def test_only_dense_and_large_normal_matrices_beside_a_ridge_are_coarse():
    design = design_of(X, centre=True)
    total = float(WEIGHTS @ design.squared_rows())
    enough = single_precision.EPSILON * total / single_precision.ROUGH
    assert isinstance(coarse(design, WEIGHTS, 1.01 * enough), CoarseDesign)
    assert coarse(design, WEIGHTS, 0.99 * enough) is design
    assert coarse(design, WEIGHTS, 0.0) is design
    assert coarse(design, 1e-40 * WEIGHTS, 1e-30) is design
    small = DenseDesign(X[:100])
    assert coarse(small, WEIGHTS[:100], 1e9) is small
    thin = design_of(sparse.csr_matrix(X), centre=False)
    assert coarse(thin, WEIGHTS, 1e9) is thin


def test_a_factor_in_single_precision_solves_to_its_precision():
    K = X[:300] @ X[:300].T / 70
    root, ridge = RANDOM.uniform(0.5, 2.0, 300), RANDOM.uniform(1.0, 2.0, 300)
    matrix = np.diag(ridge) + root[:, None] * K * root
    for scale in (1.0, 1e60):  # float32 ends at 3e38
        right = scale * RANDOM.normal(size=(300, 2))
        factor = SingleFactor(K)
        factor.renew(root, ridge)
        np.testing.assert_allclose(factor.solve(right), np.linalg.solve(matrix, right), rtol=0, atol=1e-3 * scale)
    factor.renew(None, 1.0)
    np.testing.assert_allclose((K @ factor.solve(np.ones(300)) + factor.solve(np.ones(300))), 1.0, atol=1e-2)
    with pytest.raises(LinAlgError, match="single precision"):
        SingleFactor(-np.eye(3)).renew(None, 0.5)


def test_a_factor_of_many_tiles_has_the_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(single_precision, "ROWS", 16)
    monkeypatch.setattr(single_precision, "STRIP", 64)
    K = X[:301] @ X[:301].T / 70  # the last tile and the last strip are cut
    right, found = RANDOM.normal(size=301), []
    for threads in (1, 2, 5):
        with er.config(threads=threads):
            factor = SingleFactor(K)
            factor.renew(None, 1.0)
            found.append(factor.solve(right))
    np.testing.assert_allclose(found[0], np.linalg.solve(K + np.eye(301), right), rtol=0, atol=1e-3)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_single_precision_suffices_beside_a_ridge_alone(monkeypatch):
    monkeypatch.setattr(single_precision, "LEAST", 100)
    K, root = np.ones((200, 200)), np.full(200, 2.0)
    edge = single_precision.EPSILON * 4 * 200 / single_precision.COARSE  # the largest eigenvalue is 4 * 200
    assert single_suffices(K, root, 1.01 * edge)
    assert not single_suffices(K, root, 0.99 * edge)
    assert not single_suffices(K[:50, :50], root[:50], 1.0)
    assert not single_suffices(1e32 * K, root, 1e32)
    assert not single_suffices(1e-40 * K, root, 1e-30)
