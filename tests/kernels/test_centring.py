"""Centred kernels: H K H on the data, and the same map for new items."""

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.kernels import Centred, Gaussian, Linear, Polynomial, Spectrum, centre
from tests.kernel_catalog import VECTOR_KERNELS, points, words

pytestmark = pytest.mark.row("K4")


def H(n):
    return np.eye(n) - np.ones((n, n)) / n


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=repr)
def test_on_the_data_it_is_h_k_h(kernel):
    X = points("random")
    K = kernel.fit(X)(X)
    centred = Centred(kernel).fit(X)
    np.testing.assert_allclose(centred(X), H(18) @ K @ H(18), rtol=1e-10, atol=1e-13 * np.abs(K).max())
    np.testing.assert_allclose(centre(K), centred(X), rtol=1e-10, atol=1e-13 * np.abs(K).max())
    assert np.array_equal(centred(X), centred(X).T)
    assert np.array_equal(centre(K), centre(K).T)


def test_new_items_are_moved_by_the_mean_of_the_data():
    X, Z, V = points("random"), points("random", 7, seed=1), points("random", 4, seed=2)
    mean = X.mean(axis=0)
    centred = Centred(Linear()).fit(X)
    np.testing.assert_allclose(centred(Z, V), (Z - mean) @ (V - mean).T, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(centred.diagonal(Z), ((Z - mean) ** 2).sum(axis=1), rtol=1e-10)
    gram = Gaussian(0.5)(X)
    np.testing.assert_allclose(centre(Gaussian(0.5)(Z, X), gram), Centred(Gaussian(0.5)).fit(X)(Z, X), atol=1e-14)


def test_a_gap_holds_for_the_kernel_without_the_rounding_of_its_mean():
    """Rows far from zero: the values cancel, and what is left of them has few digits."""
    random = np.random.default_rng(0)
    X, y = 1000.0 + random.normal(size=(13, 1)), 10.0 * random.normal(size=13)
    kernel = Centred(Polynomial())
    machine = er.Ridge(C=1e-4, features=kernel, fit_intercept=False, tol=1e-5).fit(X, y)
    phi = np.concatenate([2**0.5 * (X - 1000), (X - 1000) * (X + 1000)], axis=1)  # (1 + x z)^2, moved by a constant
    phi = phi - phi.mean(axis=0)
    K = phi @ phi.T
    loss = np.linalg.solve(np.eye(13) + 2e-4 * K, y) * 2e-4
    best = 0.5 * loss @ K @ loss + 1e-4 * np.sum((y - K @ loss) ** 2)
    assert abs(machine.certificate_.primal - best) <= machine.certificate_.gap


def test_any_kernel_is_centred_in_chunks():
    X = words(1100, 6)
    centred = Centred(Spectrum(1)).fit(X)
    np.testing.assert_allclose(centred(X).mean(axis=0), 0, atol=1e-12)


def test_a_block_needs_the_gram_matrix_of_the_data():
    with pytest.raises(EmpiriskError, match=r"pass centre\(K, train\)"):
        centre(np.ones((2, 3)))
    with pytest.raises(EmpiriskError, match="K contains NaN"):
        centre([[np.nan]])


@pytest.mark.parametrize(
    "kernel",
    [
        Centred(Gaussian(0.7)),
        0.5 * Centred(Polynomial(2)) + Linear(),
        er.kernels.Anova(Centred(Gaussian(0.7)), order=2),
        er.maps.SeveralKernels([Centred(Gaussian(0.7)), Linear()], norm=2),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "machine", [er.Ridge(fit_intercept=False, tol=1e-9), er.OneClassSVM(nu=0.5, features=None, tol=1e-9)], ids=repr
)
def test_a_row_of_weight_two_is_two_rows_in_the_mean(kernel, machine, tmp_path):
    random = np.random.default_rng(3)
    X, times = random.normal(size=(12, 2)), random.integers(0, 4, 12)
    y = X[:, 0] + random.normal(size=12)
    weighted = clone(machine).set_params(features=kernel).fit(X, y, sample_weight=times)
    repeated = clone(machine).set_params(features=kernel).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    Z = random.normal(size=(5, 2))
    np.testing.assert_allclose(weighted.features_(Z), repeated.features_(Z), atol=1e-4)
    er.save(weighted, tmp_path / "weighted.model")
    np.testing.assert_array_equal(er.load(tmp_path / "weighted.model").features_(Z), weighted.features_(Z))
