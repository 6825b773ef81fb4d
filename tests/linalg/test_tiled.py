"""Factors by tiles against NumPy's, on any number of threads, and Gram matrices around them."""

import threading

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from numpy.testing import assert_allclose, assert_array_equal

import empirisk as er
from empirisk.linalg import tiled
from empirisk.linalg.factor import Cholesky
from empirisk.linalg.gram_factor import FactoredGram, ScaledGram
from empirisk.stop import Stopped, stopping

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(301, 70))
K = X @ X.T / 70  # with tiles of 16 and strips of 64 rows the last ones are cut
PRECISIONS = [(np.float32, 1e-3), (np.float64, 1e-11)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(tiled, "TILE", 16)
    monkeypatch.setattr(tiled, "STRIP", 64)


@pytest.mark.parametrize(("dtype", "close"), PRECISIONS)
@pytest.mark.parametrize("count", [1, 16, 17, 64, 200, 301])
def test_the_factor_is_the_one_of_numpy(count, dtype, close):
    matrix = (K[:count, :count] + np.eye(count)).astype(dtype)
    found = matrix.copy()
    tiled.factor(found)
    assert_allclose(np.tril(found), np.linalg.cholesky(matrix.astype(float)), rtol=0, atol=close)
    for right in (RANDOM.normal(size=count), RANDOM.normal(size=(count, 3))):
        solution = tiled.solve(found, right)
        assert solution.dtype == dtype
        assert solution.shape == right.shape
        assert_allclose(solution, np.linalg.solve(matrix.astype(float), right), rtol=0, atol=close)


@pytest.mark.parametrize(("dtype", "close"), PRECISIONS)
def test_the_bits_are_the_same_on_any_number_of_threads(dtype, close):
    right, found = RANDOM.normal(size=301), []
    for threads in (1, 2, 5):
        with er.config(threads=threads):
            factor = ScaledGram(K, dtype)
            factor.renew(None, 1.0)
            found.append(factor.solve(right))
    assert_allclose(found[0], np.linalg.solve(K + np.eye(301), right), rtol=0, atol=close)
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("threads", [1, 4])
def test_a_matrix_that_is_not_positive_definite_is_refused_by_all_threads(threads):
    matrix = K + np.eye(301)
    matrix[150, 150] = -1.0
    with er.config(threads=threads), pytest.raises(LinAlgError, match="not positive definite"):
        tiled.factor(matrix)


def test_the_flag_ends_it():
    raised = threading.Event()
    raised.set()
    with er.config(threads=3), stopping(raised.is_set), pytest.raises(Stopped):
        tiled.factor(K + np.eye(301))


def test_a_scaled_matrix_of_any_size():
    root, ridge = RANDOM.uniform(0.5, 2.0, 301), RANDOM.uniform(1.0, 2.0, 301)
    matrix = np.diag(ridge) + root[:, None] * K * root
    for dtype, close in PRECISIONS:
        factor = ScaledGram(K, dtype)
        factor.renew(root, ridge)
        for scale in (1.0, 1e60):  # float32 ends at 3e38
            right = scale * RANDOM.normal(size=(301, 2))
            assert_allclose(factor.solve(right), np.linalg.solve(matrix, right), rtol=0, atol=close * scale)


def test_one_array_for_a_matrix_and_its_factor():
    ridge = RANDOM.uniform(1.0, 2.0, 301)
    memory = K.copy()
    system = FactoredGram(memory, ridge)
    for right in (RANDOM.normal(size=301), RANDOM.normal(size=(301, 3))):
        assert_allclose(system.product(right), K @ right, rtol=0, atol=1e-11)
        assert_allclose(system.solve(right), np.linalg.solve(K + np.diag(ridge), right), rtol=0, atol=1e-11)
    assert_allclose(system.response, system.solve(np.ones(301)))
    restored = system.restored()
    assert restored is memory
    assert_array_equal(restored, np.triu(K) + np.triu(K, 1).T)


def test_normal_equations_of_many_columns_are_factored_by_tiles(monkeypatch):
    monkeypatch.setattr("empirisk.linalg.factor.MIN_INTERRUPTIBLE_ORDER", 100)
    for matrix, ridge in ((K + np.eye(301), 0.0), (K, 1e-13)):  # the second has rank 70
        factor = Cholesky(matrix)
        assert (factor.ridge > 0) == (ridge > 0)
        right = matrix @ RANDOM.normal(size=301)
        assert_allclose(matrix @ factor.solve(right), right, rtol=0, atol=1e-6)


def test_products_of_rows_are_symmetric_to_the_bit():
    for dtype, close in PRECISIONS:
        found = tiled.outer(X.astype(dtype))
        assert found.dtype == dtype
        assert_allclose(found, X @ X.T, rtol=0, atol=70 * close)
        assert_array_equal(found, found.T)
