"""Explicit maps against their formulas."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

import empirisk as er


@pytest.mark.row("F1")
def test_polynomial_is_the_monomials_without_the_constant():
    X = np.random.default_rng(0).normal(size=(60, 3))
    np.testing.assert_array_equal(
        er.maps.Polynomial(3).fit_transform(X), PolynomialFeatures(3, include_bias=False).fit_transform(X)
    )
    names = er.maps.Polynomial(2, interaction_only=True).fit(X).get_feature_names_out(["a", "b", "c"])
    assert list(names) == ["a", "b", "c", "a b", "a c", "b c"]
    cubic = er.LeastSquares(features=er.maps.Polynomial(3)).fit(X, X[:, 0] ** 3 - X[:, 1] * X[:, 2] + 2)
    np.testing.assert_allclose(cubic.predict([[2.0, 1.0, 3.0]]), [7.0], atol=1e-6)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_entries_of_a_sparse_row_may_come_twice_and_in_any_order(form):
    X = np.random.default_rng(0).normal(size=(4, 3))
    twice = sparse.csr_matrix((np.repeat(X[:, ::-1] / 2, 2), np.tile([2, 2, 1, 1, 0, 0], 4), np.arange(0, 25, 6)))
    if form == "csc":
        twice = sparse.csc_matrix(
            (np.repeat(X[::-1].T / 2, 2), np.tile([3, 3, 2, 2, 1, 1, 0, 0], 3), np.arange(0, 25, 8))
        )
    expanded = er.maps.Polynomial(2).fit_transform(twice)
    np.testing.assert_allclose(expanded.toarray(), er.maps.Polynomial(2).fit_transform(X))
    assert twice.nnz == 24  # as it was given


@pytest.mark.row("F2")
def test_periodic_is_sines_and_cosines():
    X = np.random.default_rng(0).normal(size=(7, 2))
    phi = er.maps.Periodic(harmonics=2).fit_transform(X)
    for j in range(2):
        for k in (1, 2):
            np.testing.assert_allclose(phi[:, 4 * j + 2 * (k - 1)], np.sin(k * X[:, j]))
            np.testing.assert_allclose(phi[:, 4 * j + 2 * (k - 1) + 1], np.cos(k * X[:, j]))
    weekly = er.maps.Periodic(harmonics=1, period=7.0).fit(X)
    np.testing.assert_allclose(weekly.transform(X), weekly.transform(X + 7.0), atol=1e-12)
    assert list(weekly.get_feature_names_out()) == ["sin(1 x0)", "cos(1 x0)", "sin(1 x1)", "cos(1 x1)"]
    with pytest.raises(ValueError, match="length"):
        weekly.get_feature_names_out(["only one"])
