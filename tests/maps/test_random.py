"""Random Fourier features: unbiased, falling as one over the root of their number."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import empirisk as er

X = np.random.default_rng(0).normal(size=(200, 3))
KERNELS = [er.kernels.Gaussian(1.5), er.kernels.Laplacian(3.0), er.kernels.Laplacian(3.0, norm=2)]


@pytest.mark.row("K12")
def test_contract():
    check_estimator(er.maps.RandomFourier(rank=20, random_state=0))


@pytest.mark.row("K12")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_tend_to_the_kernel(kernel):
    exact = kernel.block(X)
    errors = []
    for rank in (1000, 16_000):
        phi = er.maps.RandomFourier(kernel, rank, random_state=0).fit(X)
        features = phi.transform(X)
        errors.append(np.linalg.norm(exact - features @ features.T) / np.linalg.norm(exact))
        assert phi.error_ == pytest.approx(errors[-1], rel=1e-6)
        np.testing.assert_allclose((features**2).sum(axis=1), 1.0)
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.04


def test_learned_widths_and_single_precision():
    phi = er.maps.RandomFourier(er.kernels.Gaussian("median"), 4000, random_state=0).fit(X.astype(np.float32))
    assert phi.transform(X.astype(np.float32)).dtype == np.float32
    assert phi.kernel_.width_ > 0
    assert phi.error_ < 0.1
    assert phi.get_feature_names_out()[0] == "randomfourier0"


def test_kernels_without_frequencies_are_refused():
    for kernel in (er.kernels.Polynomial(2), er.kernels.Gaussian() + er.kernels.Linear()):
        with pytest.raises(ValueError, match=r"maps\.Nystrom"):
            er.maps.RandomFourier(kernel).fit(X)
    with pytest.raises(ValueError, match="rank=3 must be even"):
        er.maps.RandomFourier(rank=3).fit(X)


def test_a_machine_on_random_features_comes_near_the_kernel_machine():
    y = np.sin(X[:, 0])
    exact = er.Ridge(C=1.0, features=KERNELS[0]).fit(X, y).predict(X)
    near = er.Ridge(C=1.0, features=er.maps.RandomFourier(KERNELS[0], 8000, random_state=0)).fit(X, y).predict(X)
    assert np.abs(exact - near).max() < 0.05
