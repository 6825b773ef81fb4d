"""The size of the terms that a value of a kernel sums, by which it rounds, is passed on by kernels made of others."""

import numpy as np
import pytest

from empirisk import kernels
from empirisk.maps import SeveralKernels

X = np.random.default_rng(0).normal(size=(6, 2)) + 1e6
CENTRED = kernels.Centred(kernels.Linear())


def first(X):
    return X[:, 0]


def terms_of(kernel):
    kernel = kernel.fit(X)
    return kernel.term_diagonals(kernel.prepare(X))


CASES = [
    (CENTRED, lambda size: size),
    (2.0 * CENTRED, lambda size: 2 * size),
    (CENTRED**2, lambda size: size**2),
    (kernels.polynomial(CENTRED, [1.0, 3.0]), lambda size: 1 + 3 * size),
    (kernels.exp(1e-3 * CENTRED), lambda size: 1e-3 * size),
    (CENTRED.on([0, 1]), lambda size: size),
    (CENTRED + kernels.Gaussian(1.0), lambda size: size + 1),
    (CENTRED * kernels.Gaussian(1.0), lambda size: size),
    (CENTRED.times(first), lambda size: size * X[:, 0] ** 2),
    (SeveralKernels([CENTRED, kernels.Gaussian(1.0)]), lambda size: 0.5 * size + 0.5),
]


@pytest.mark.row("K4")
@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=[repr(kernel) for kernel, _ in CASES])
def test_a_difference_rounds_like_what_it_is_taken_of_within_others_too(kernel, expected):
    size = terms_of(CENTRED)
    assert size.min() > 1e12  # the difference itself is about one
    np.testing.assert_allclose(terms_of(kernel), expected(size), rtol=0.01)


@pytest.mark.row("K4")
def test_cosines_of_differences_have_lost_the_digits_of_the_differences():
    normalised = CENTRED.normalised().fit(X)
    squares = CENTRED.fit(X).diagonal(X)
    np.testing.assert_allclose(terms_of(normalised), terms_of(CENTRED) / squares, rtol=1e-6)
    assert terms_of(normalised).min() > 1e9


@pytest.mark.row("K5")
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("kernel", [None, CENTRED, kernels.Gaussian(1.0) + kernels.Linear()], ids=repr)
def test_means_over_points_round_like_the_points(kernel, normalise):
    samples = [X[:1], X[1:3], X[3:]]
    embedding = kernels.MeanEmbedding(kernel, normalise=normalise).fit(samples)
    found = embedding.term_diagonals(embedding.prepare(samples))
    points = (kernel or kernels.Gaussian()).fit(X)
    lengths = np.sqrt(points.term_diagonals(points.prepare(X)))
    plain = kernels.MeanEmbedding(kernel).fit(samples).diagonal(samples)
    expected = np.array([np.mean(part) ** 2 for part in (lengths[:1], lengths[1:3], lengths[3:])])
    np.testing.assert_allclose(found, expected / plain if normalise else expected, rtol=1e-9)
    assert (found >= embedding.diagonal(samples) * (1 - 1e-9)).all()
