"""Kernels on samples against means of a double loop and numerical integrals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone

from empirisk.errors import EmpiriskError
from empirisk.kernels import ExpectedLikelihood, Gaussian, Linear, MeanEmbedding, Polynomial, distributions
from tests.kernel_catalog import samples
from tests.kernels import naive_kernels as naive

pytestmark = pytest.mark.row("K5")

X, Z = samples(8), samples(5, seed=1)


@pytest.mark.parametrize("kernel", [Gaussian("median"), Linear(), Polynomial(2) * Gaussian(1.0)], ids=repr)
@pytest.mark.parametrize("points", [4096, 5])
def test_mean_embedding_is_the_mean_of_all_pairs(kernel, points, monkeypatch):
    monkeypatch.setattr(distributions, "POINTS", points)
    made = MeanEmbedding(clone(kernel)).fit(X)
    inner = made.child("kernel")
    expected = np.array([[naive.block(inner, p, q).mean() for q in X] for p in X])
    np.testing.assert_allclose(made(X), expected, rtol=1e-12)
    assert np.array_equal(made(X), made(X).T)
    np.testing.assert_allclose(made.diagonal(X), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(made(X, Z), [[naive.block(inner, p, q).mean() for q in Z] for p in X], rtol=1e-12)
    A = made.prepare(X)
    np.testing.assert_allclose(made.between(A[[4, 1]], A[2:6]), expected[[4, 1], 2:6], rtol=1e-12)
    np.testing.assert_allclose(
        made.set_params(normalise=True).fit(X)(X),
        expected / np.sqrt(np.outer(np.diag(expected), np.diag(expected))),
        rtol=1e-12,
    )


def test_mean_embedding_keeps_float32_and_reaches_in():
    kernel = MeanEmbedding(Gaussian("median"))
    assert kernel.fit(X)([sample.astype(np.float32) for sample in X]).dtype == np.float32
    assert clone(kernel).set_params(kernel__width=2.0) == MeanEmbedding(Gaussian(2.0))
    assert repr(MeanEmbedding(Gaussian(2.0), normalise=True)) == "MeanEmbedding(Gaussian(2.0), normalise=True)"


def test_expected_likelihood_is_the_integral_of_the_product():
    items = [([0.0], [[1.0]]), ([2.0], [[0.3]]), ([-1.0], [[4.0]])]

    def integral(first, second):
        p, q = (norm(mean[0], np.sqrt(covariance[0][0])) for mean, covariance in (first, second))
        return quad(lambda x: p.pdf(x) * q.pdf(x), -20, 20)[0]

    expected = [[integral(first, second) for second in items] for first in items]
    np.testing.assert_allclose(ExpectedLikelihood(0.0)(items), expected, rtol=1e-8)


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_expected_likelihood_fits_gaussians_to_samples(ridge):
    def density(p, q):
        covariance = sum(np.cov(s, rowvar=False, bias=True) + ridge * np.eye(2) for s in (p, q))
        return multivariate_normal(p.mean(axis=0), covariance).pdf(q.mean(axis=0))

    kernel = ExpectedLikelihood(ridge)
    np.testing.assert_allclose(kernel(X, Z), [[density(p, q) for q in Z] for p in X], rtol=1e-9)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=1e-13)
    np.testing.assert_allclose(
        ExpectedLikelihood(ridge, normalise=True)(X, Z), kernel.normalised()(X, Z), rtol=1e-9, atol=1e-300
    )


def test_normalised_likelihoods_survive_many_dimensions():
    X = [np.random.default_rng(seed).normal(size=(5, 800)) * 1e-3 for seed in range(3)]
    for scale in (1.0, 1e6):
        with pytest.raises(EmpiriskError, match=r"X\[0\].*normalise=True"):
            ExpectedLikelihood(0.01 * scale)([sample * scale for sample in X])
    K = ExpectedLikelihood(normalise=True)(X)
    assert np.all(np.diag(K) == 1)
    assert np.linalg.eigvalsh(K)[0] > 0


@pytest.mark.parametrize(
    ("kernel", "data", "message"),
    [
        (MeanEmbedding(), [], "it holds none"),
        (MeanEmbedding(), [[[1.0]], [[1.0, 2.0]]], r"X\[1\] has 2 columns and X\[0\] has 1"),
        (MeanEmbedding(), [[[np.nan]]], r"X\[0\] contains NaN"),
        (MeanEmbedding(), [[1.0]], r"X\[0\] has 1 dimension"),
        (MeanEmbedding(Gaussian(-1.0)), X, "width=-1.0"),
        (ExpectedLikelihood(-1.0), X, "ridge=-1.0"),
        (ExpectedLikelihood(), [], "at least one"),
        (ExpectedLikelihood(0.0), [[[1.0, 2.0]]], "larger ridge"),
        (ExpectedLikelihood(), [([0.0], [[1.0, 2.0], [0.0, 1.0]])], r"X\[0\] must be \(mean, covariance\)"),
    ],
)
def test_bad_input_is_refused(kernel, data, message):
    with pytest.raises(EmpiriskError, match=message):
        kernel(data)


def test_moments_and_columns_are_checked():
    kernel = ExpectedLikelihood()
    for items, words in [
        ([([np.nan], [[1.0]])], "NaN"),
        ([(["a"], [[1.0]])], "not numbers"),
        (None, "list of samples"),
    ]:
        with pytest.raises(EmpiriskError, match=words):
            kernel(items)
    with pytest.raises(EmpiriskError, match="2 columns and Z has 3"):
        kernel([np.eye(2)], [np.eye(3)])
