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


@pytest.mark.row("K17")
@pytest.mark.parametrize("degree", [1, 2, 3, 6])
@pytest.mark.parametrize("constant", [0.0, 0.3, 1.0, 7.0])
def test_products_of_the_map_of_a_polynomial_kernel_are_the_kernel(degree, constant):
    X = np.random.default_rng(0).normal(size=(20, 4))
    phi, kernel = er.maps.PolynomialKernel(degree, constant).fit(X), er.kernels.Polynomial(degree, constant)
    mapped, K = phi.transform(X), kernel(X)
    np.testing.assert_allclose(mapped @ mapped.T, K, atol=1e-14 * np.abs(K).max())
    assert mapped.shape[1] == len(phi.get_feature_names_out()) == len(phi.weights_)
    few = sparse.random_array((20, 4), density=0.5, rng=np.random.default_rng(1), format="csr")
    by_rows = phi.transform(few)
    assert sparse.issparse(by_rows)
    np.testing.assert_allclose(by_rows.toarray(), phi.transform(few.toarray()), atol=1e-14)
    assert phi.transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.row("K17")
def test_a_linear_machine_on_the_map_is_the_kernel_machine():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X[:, 0] * X[:, 1] - X[:, 2]
    explicit = er.Ridge(features=er.maps.PolynomialKernel(2), C=2.0).fit(X, y)
    implicit = er.Ridge(features=er.kernels.Polynomial(2), C=2.0).fit(X, y)
    np.testing.assert_allclose(explicit.predict(X), implicit.predict(X), atol=1e-6)
    names = list(explicit.features_.get_feature_names_out(["a", "b", "c"]))
    assert names == ["1", "a", "b", "c", "a^2", "a b", "a c", "b^2", "b c", "c^2"]
    weight = dict(zip(names, explicit.features_.weights_, strict=True))
    assert [weight[name] for name in ("1", "a", "a b", "c^2")] == pytest.approx([1.0, 2**0.5, 2**0.5, 1.0])


@pytest.mark.row("K17")
def test_a_map_beyond_the_memory_is_refused_before_it_is_listed():
    with pytest.raises(er.errors.TooLarge, match=r"104071785999568101 monomials.*kernels\.Polynomial\(8, 1\)"):
        er.maps.PolynomialKernel(8).fit(np.ones((3, 500)))
    few = er.maps.PolynomialKernel(3).fit(np.ones((1, 20)))
    with er.config(memory="10MB"), pytest.raises(er.errors.TooLarge, match="1771 monomials"):
        few.transform(np.ones((2000, 20)))
    for bad, sentence in [((0, 1.0), "degree=0"), ((101, 1.0), "at most 100"), ((2, -1), "constant=-1")]:
        with pytest.raises(er.errors.EmpiriskError, match=sentence):
            er.maps.PolynomialKernel(*bad).fit(np.eye(2))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("made", [er.maps.Polynomial(3), er.maps.PolynomialKernel(3)], ids=repr)
def test_products_that_are_no_numbers_are_refused(made, form):
    X = form([[1e100, 2.0], [1.0, 3.0]])
    assert np.isfinite(made.fit(X).transform(form([[1e50, 2.0]])).sum())
    with pytest.raises(er.errors.EmpiriskError, match="Products of the columns of X overflow; divide X by its size"):
        made.transform(1e10 * X)
