"""Float32 where it is enough: the results agree to its precision, and where it is not enough it is not used."""

import numpy as np
import pytest
from scipy import sparse

from empirisk.linalg import single_precision
from empirisk.linalg.design import DenseDesign, design_of
from empirisk.linalg.single_precision import CoarseDesign, coarse, single_suffices

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


def test_single_precision_suffices_beside_a_ridge_alone(monkeypatch):
    monkeypatch.setattr(single_precision, "LEAST", 100)
    K, root = np.ones((200, 200)), np.full(200, 2.0)
    edge = single_precision.EPSILON * 4 * 200 / single_precision.COARSE  # the largest eigenvalue is 4 * 200
    assert single_suffices(K, root, 1.01 * edge)
    assert not single_suffices(K, root, 0.99 * edge)
    assert not single_suffices(K[:50, :50], root[:50], 1.0)
    assert not single_suffices(1e32 * K, root, 1e32)
    assert not single_suffices(1e-40 * K, root, 1e-30)
