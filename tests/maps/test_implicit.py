"""Samples behind a kernel: the design in the coordinates of coefficients."""

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import TooLarge, Unsuitable
from empirisk.maps import implicit
from empirisk.maps.implicit import GramDesign
from empirisk.penalties import L1, L2, NoPenalty


@pytest.fixture
def sample():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4))
    kernel = er.kernels.Gaussian(1.5)
    return kernel, X, kernel(X), random


def test_products_are_those_of_the_gram_matrix(sample):
    kernel, X, K, random = sample
    design = GramDesign(kernel, X, X)
    for shape in [(30,), (30, 3)]:
        w = random.normal(size=shape)
        np.testing.assert_allclose(design.dot(w), K @ w, atol=1e-12)
        np.testing.assert_allclose(design.squared_norms(w), np.einsum("i...,i...->...", w, K @ w), atol=1e-12)
        np.testing.assert_array_equal(design.tdot(w), w)
    np.testing.assert_allclose(design.squared_rows(), np.ones(30))


def test_products_that_are_known_are_only_brought_up_to_date(sample, monkeypatch):
    _, X, K, random = sample
    monkeypatch.setattr(implicit, "KEPT_BYTES", 0)
    asked = []

    class Counting(er.kernels.Gaussian):
        def between(self, A, B=None, out=None):
            asked.append(len(A) * len(A if B is None else B))
            return super().between(A, B, out)

    design = GramDesign(Counting(1.5), X, X)
    w = random.normal(size=30)
    np.testing.assert_allclose(design.dot(w), K @ w, atol=1e-12)
    changed = w.copy()
    changed[[3, 7]] += 1.0
    np.testing.assert_allclose(design.dot(changed), K @ changed, atol=1e-12)
    np.testing.assert_allclose(design.dot(w), K @ w, atol=1e-12)
    assert asked == [30 * 30, 2 * 2, 2 * 28]


def test_a_matrix_of_wide_rows_that_many_machines_share_may_be_larger(sample, monkeypatch):
    _, X, _, _ = sample
    monkeypatch.setattr(implicit, "KEPT_BYTES", 8 * 30 * 30 // 3)
    for classes, columns, kept in [(2, 300, False), (3, 300, True), (3, 4, False)]:
        rows = np.tile(X, (1, 75))[:, :columns]
        problem = er.SVM(features=er.kernels.Gaussian()).problems(rows, np.arange(30) % classes)[0]
        assert problem.design.keeps_matrix is kept


def test_a_product_does_not_change_under_the_hands_of_its_owner(sample, monkeypatch):
    kernel, X, K, _ = sample
    monkeypatch.setattr(implicit, "KEPT_BYTES", 0)
    design = GramDesign(kernel, X, X)
    w = np.ones(30)
    product = design.dot(w)
    product += 5.0
    np.testing.assert_allclose(design.dot(w), K @ w, atol=1e-12)


def test_parts_of_the_samples(sample):
    kernel, X, K, random = sample
    design = GramDesign(kernel, X, X)
    chosen, others = np.array([4, 1, 9]), np.array([0, 2, 3, 5])
    part = design.rows(chosen)
    assert part.shape == (3, 3)
    assert part.root is design
    np.testing.assert_allclose(part.matrix, K[np.ix_(chosen, chosen)], atol=1e-12)
    seen = design.cross_design(others, chosen)
    w = random.normal(size=3)
    np.testing.assert_allclose(seen.dot(w), K[np.ix_(others, chosen)] @ w, atol=1e-12)


def test_single_precision(sample):
    kernel, X, K, _ = sample
    block = GramDesign(kernel, X, X).single.block(np.arange(5), np.arange(30))
    assert block.dtype == np.float32
    np.testing.assert_allclose(block, K[:5], atol=1e-6)


def test_penalties_in_the_coordinates_of_coefficients(sample):
    kernel, X, K, random = sample
    design = GramDesign(kernel, X, X)
    norm, beta = design.penalty_in_coordinates(L2()), random.normal(size=30)
    assert norm.value(beta) == pytest.approx(0.5 * beta @ K @ beta)
    assert norm.conjugate(beta) == pytest.approx(0.5 * beta @ K @ beta)
    assert design.penalty_in_coordinates(NoPenalty()).value(beta) == 0.0
    with pytest.raises(Unsuitable, match=r"penalty=L1\(\) needs the weights themselves"):
        design.penalty_in_coordinates(L1())


def test_a_matrix_beyond_the_budget_is_refused(sample):
    kernel, X, _, _ = sample
    with er.config(memory="1KB"), pytest.raises(TooLarge, match="Nystrom"):
        _ = GramDesign(kernel, X, X).matrix


@pytest.mark.row("E1")
@pytest.mark.parametrize("machine", [er.Lasso, er.ElasticNet])
def test_a_kernel_has_no_l1(sample, machine):
    kernel, X, _, random = sample
    with pytest.raises(Unsuitable, match="penalty='l2'"):
        machine(features=kernel).fit(X, random.normal(size=30))


@pytest.mark.parametrize("shape", [(30,), (30, 3)])
def test_the_product_with_zero_needs_no_matrix(sample, monkeypatch, shape):
    kernel, X, _, _ = sample
    monkeypatch.setattr(GramDesign, "matrix", property(lambda self: pytest.fail("a matrix was made")))
    np.testing.assert_array_equal(GramDesign(kernel, X, X).dot(np.zeros(shape)), np.zeros(shape))
