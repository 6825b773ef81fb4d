"""Principal components: identities with the singular value decomposition, weights, sparse rows, kernels, pre-images."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.decomposition import KernelPCA
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError, TooLarge, Unsuitable
from empirisk.linalg.design import DenseDesign, Shifted, SparseDesign
from empirisk.linalg.leading import leading
from empirisk.projections import pca as module
from tests.estimator_checks import check_contract

pytestmark = pytest.mark.row("U4")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + 3.0


def reference(X, weights=None):
    """Singular values and right singular vectors of the centred rows, weighted."""
    weights = np.ones(len(X)) if weights is None else weights
    mean = weights @ X / weights.sum()
    _, values, vectors = np.linalg.svd((X - mean) * np.sqrt(weights)[:, None], full_matrices=False)
    return values, vectors, mean


def assert_same_directions(first, second, tolerance=1e-8):
    np.testing.assert_allclose(np.abs(np.sum(first * second, axis=1)), 1.0, atol=tolerance)


def test_directions_variances_and_mean_are_those_of_the_decomposition(X):
    pca = er.PCA(None).fit(X)
    values, vectors, mean = reference(X)
    np.testing.assert_allclose(pca.singular_values_, values, rtol=1e-10)
    np.testing.assert_allclose(pca.explained_variance_, values**2 / (len(X) - 1), rtol=1e-10)
    np.testing.assert_allclose(pca.explained_variance_, np.var(pca.transform(X), axis=0, ddof=1), rtol=1e-10)
    np.testing.assert_allclose(pca.explained_variance_ratio_.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(pca.mean_, mean, rtol=1e-12)
    assert_same_directions(pca.components_, vectors)
    largest = np.abs(pca.components_).argmax(axis=1)
    assert (pca.components_[np.arange(6), largest] > 0).all()


@pytest.mark.parametrize("shape", [(900, 450), (450, 900), (2600, 1100)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_large_tables_go_by_the_cheapest_way_to_the_same_directions(shape, kind, monkeypatch):
    rng = np.random.default_rng(1)
    strengths = np.r_[[9.0, 7.0, 5.0, 4.0], np.full(shape[1] - 4, 0.2)]
    X = rng.normal(size=shape) * strengths * (rng.random(shape) < 0.1)
    values, vectors, _ = reference(X)
    monkeypatch.setattr(module, "SMALL", 0)
    table = sparse.csr_matrix(X) if kind == "sparse" else X
    whole = sparse.csr_matrix.toarray
    monkeypatch.setattr(
        sparse.csr_matrix, "toarray", lambda A, **to: whole(A, **to) if A.shape != shape else pytest.fail("dense")
    )
    pca = er.PCA(4).fit(table)
    np.testing.assert_allclose(pca.singular_values_, values[:4], rtol=1e-8)
    assert_same_directions(pca.components_, vectors[:4], 1e-7)
    total = (values**2).sum()
    np.testing.assert_allclose(pca.explained_variance_ratio_, values[:4] ** 2 / total, rtol=1e-8)
    found = pca.transform(table)
    np.testing.assert_allclose(found, (X - X.mean(axis=0)) @ pca.components_.T, atol=1e-9)


def test_every_way_gives_the_same_pairs(X, monkeypatch):
    for table in (X, X[:5]):  # by columns, by rows
        monkeypatch.setattr(module, "SMALL", 1e8)
        exact = er.PCA(3).fit(table)
        monkeypatch.setattr(module, "SMALL", 0)
        other = er.PCA(3).fit(table)
        np.testing.assert_allclose(other.components_, exact.components_, atol=1e-9)
        np.testing.assert_allclose(other.explained_variance_, exact.explained_variance_, rtol=1e-9)


def test_a_share_of_the_variance_is_reached_with_as_few_directions_as_possible(X):
    ratios = er.PCA(None).fit(X).explained_variance_ratio_
    for share in (0.3, 0.7, 0.95, 1.0):
        pca = er.PCA(share).fit(X)
        assert pca.explained_variance_ratio_.sum() >= share - 1e-12
        assert share == 1.0 or ratios[: pca.n_components_ - 1].sum() < share
    assert er.PCA().n_components is None


def test_a_share_of_a_large_table_is_found_without_all_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 40)) @ rng.normal(size=(40, 900))
    calls = []
    monkeypatch.setattr(module, "leading", lambda *args: calls.append(args[2]) or leading(*args))
    pca = er.PCA(0.9).fit(X)
    values, _, _ = reference(X)
    needed = int(np.argmax(np.cumsum(values**2) / (values**2).sum() >= 0.9)) + 1
    assert pca.n_components_ == needed
    assert calls == [16, 32]


def test_pythagoras(X):
    pca = er.PCA(2).fit(X)
    errors = pca.reconstruction_error(X)
    back = pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(errors, np.sum((X - back) ** 2, axis=1), atol=1e-10)
    total = np.sum((X - X.mean(axis=0)) ** 2)
    np.testing.assert_allclose(errors.sum() + np.sum(pca.transform(X) ** 2), total, rtol=1e-12)
    np.testing.assert_allclose(errors.sum(), total * (1 - pca.explained_variance_ratio_.sum()), rtol=1e-9)


def test_no_centre_gives_singular_vectors_of_the_rows(X):
    pca = er.PCA(None, center=False).fit(X)
    _, values, vectors = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(pca.singular_values_, values, rtol=1e-10)
    assert_same_directions(pca.components_, vectors)
    np.testing.assert_array_equal(pca.mean_, np.zeros(6))


def test_whitened_coordinates_have_unit_variance(X):
    for features in (None, er.kernels.Gaussian(6.0)):
        Z = er.PCA(3, features, whiten=True).fit_transform(X)
        np.testing.assert_allclose(np.cov(Z.T), np.eye(3), atol=1e-9)
    pca = er.PCA(6, whiten=True).fit(X)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(X)), X, atol=1e-9)


@pytest.mark.row("U5")
@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(5.0), er.kernels.Linear(), er.maps.Polynomial(2)])
@pytest.mark.parametrize("center", [True, False])
def test_weight_two_is_the_row_twice(X, features, center):
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = er.PCA(3, features, center).fit(X, sample_weight=counts)
    repeated = er.PCA(3, features, center).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-7)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(weighted.explained_variance_ratio_, repeated.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(weighted.reconstruction_error(X), repeated.reconstruction_error(X), atol=1e-7)


def test_sparse_rows_give_what_dense_ones_give(X):
    X = X * (np.random.default_rng(0).random(X.shape) < 0.4)
    dense, thin = er.PCA(4).fit(X), er.PCA(4).fit(sparse.csr_matrix(X))
    np.testing.assert_allclose(thin.components_, dense.components_, atol=1e-8)
    np.testing.assert_allclose(thin.transform(sparse.csc_matrix(X)), dense.transform(X), atol=1e-8)
    np.testing.assert_allclose(
        thin.reconstruction_error(sparse.csr_matrix(X)), dense.reconstruction_error(X), atol=1e-8
    )


def test_shifted_sparse_rows_multiply_as_dense_ones_do(X):
    rng = np.random.default_rng(2)
    shift, weights, columns = rng.normal(size=6), rng.random(80), rng.random(6)
    thin, dense = Shifted(SparseDesign(sparse.csr_matrix(X)), shift), DenseDesign(X, shift)
    for name, argument in [("dot", rng.normal(size=(6, 2))), ("tdot", rng.normal(size=(80, 2)))]:
        np.testing.assert_allclose(getattr(thin, name)(argument), getattr(dense, name)(argument), atol=1e-10)
    np.testing.assert_allclose(thin.gram(weights), dense.gram(weights), atol=1e-9)
    np.testing.assert_allclose(thin.gram(), dense.gram(), atol=1e-9)
    np.testing.assert_allclose(thin.outer(columns), dense.outer(columns), atol=1e-9)
    np.testing.assert_allclose(thin.squared_rows(), dense.squared_rows(), atol=1e-9)


def test_single_precision_is_kept(X):
    single = er.PCA(3).fit(X.astype(np.float32))
    assert single.components_.dtype == single.mean_.dtype == np.float32
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(np.abs(single.components_), np.abs(er.PCA(3).fit(X).components_), atol=1e-4)
    kernel = er.PCA(3, er.kernels.Gaussian(5.0)).fit(X.astype(np.float32))
    assert kernel.transform(X.astype(np.float32)).dtype == np.float32


def test_columns_of_very_different_sizes_keep_their_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1e9, 1.0, 1e-9]
    values, _, _ = reference(X)
    np.testing.assert_allclose(er.PCA(3).fit(X).singular_values_, values, rtol=1e-6)


def test_directions_without_variance_are_orthonormal(monkeypatch):
    X = np.outer(np.arange(6.0), [1.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    monkeypatch.setattr(module, "SMALL", 0)
    for table in (X, X.T):
        pca = er.PCA(3).fit(table)
        np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(pca.explained_variance_[1:], 0.0, atol=1e-12)


def test_the_bits_do_not_depend_on_threads():
    X = np.random.default_rng(0).normal(size=(1200, 450))
    for features in (None, er.kernels.Gaussian(20.0)):
        found = []
        for threads in (1, 3):
            with er.config(threads=threads):
                found.append(er.PCA(5, features).fit(X).transform(X[:50]))
        np.testing.assert_array_equal(*found)


# --- kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.row("U5")
@pytest.mark.row("K15")
@pytest.mark.parametrize("center", [True, False])
def test_the_linear_kernel_gives_pca(X, center):
    plain, kernel = er.PCA(4, center=center).fit(X), er.PCA(4, er.kernels.Linear(), center).fit(X)
    np.testing.assert_allclose(np.abs(kernel.transform(X)), np.abs(plain.transform(X)), atol=1e-9)
    np.testing.assert_allclose(kernel.explained_variance_, plain.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(kernel.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(kernel.reconstruction_error(X + 1), plain.reconstruction_error(X + 1), atol=1e-8)
    # The pre-image of a linear kernel is exact, with rows enough around it.
    expected = plain.inverse_transform(plain.transform(X[:5]))
    np.testing.assert_allclose(kernel.inverse_transform(kernel.transform(X[:5])), expected, atol=1e-4)
    dropped = er.PCA(None, er.kernels.Linear(), center).fit(X)
    assert dropped.n_components_ == 6


@pytest.mark.row("U5")
def test_kernel_pca_is_that_of_scikit_learn_and_its_axes_have_unit_length(X):
    kernel = er.kernels.Gaussian(4.0)
    pca = er.PCA(5, kernel).fit(X)
    theirs = KernelPCA(5, kernel="rbf", gamma=0.5 / 16, eigen_solver="dense").fit(X)
    new = np.random.default_rng(5).normal(size=(20, 6)) + 3
    np.testing.assert_allclose(np.abs(pca.transform(new)), np.abs(theirs.transform(new)), atol=1e-9)
    np.testing.assert_allclose(pca.dual_coef_ @ kernel(X) @ pca.dual_coef_.T, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(pca.dual_coef_.sum(axis=1), 0.0, atol=1e-10)


@pytest.mark.row("U5")
def test_long_data_behind_a_kernel_go_by_products_and_within_the_budget():
    X = np.random.default_rng(0).normal(size=(600, 5))
    kernel = er.kernels.Gaussian(2.0)
    values = np.linalg.eigvalsh(er.kernels.centre(kernel(X)))[::-1]
    for memory in ("1GB", "5MB"):
        with er.config(memory=memory):
            pca = er.PCA(6, kernel).fit(X)
            np.testing.assert_allclose(pca.singular_values_**2, values[:6], rtol=1e-8)
    with er.config(memory="2MB"), pytest.raises(TooLarge, match="Nystrom"):
        er.PCA(300, kernel).fit(X)


@pytest.mark.row("U5")
def test_pre_images_take_the_noise_away():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = circle + 0.15 * rng.normal(size=circle.shape)
    pca = er.PCA(4, er.kernels.Gaussian(1.0)).fit(noisy)
    back = pca.inverse_transform(pca.transform(noisy))
    distance = np.abs(np.linalg.norm(back, axis=1) - 1)
    assert distance.mean() < 0.5 * np.abs(np.linalg.norm(noisy, axis=1) - 1).mean()


@pytest.mark.row("U5")
def test_a_gram_matrix_may_be_given(X):
    kernel = er.kernels.Gaussian(4.0)
    pca, given = er.PCA(3, kernel).fit(X), er.PCA(3, "precomputed").fit(kernel(X))
    np.testing.assert_allclose(given.transform(kernel(X[:9], X)), pca.transform(X[:9]), atol=1e-12)


@pytest.mark.row("U5")
def test_strings_are_projected_and_have_no_pre_image():
    words = ["banana", "bandana", "cabana", "kernel", "kernels", "colonel"]
    pca = er.PCA(2, er.kernels.Spectrum(2)).fit(words)
    Z = pca.transform(words)
    assert Z.shape == (6, 2)
    assert np.linalg.norm(Z[0] - Z[1]) < np.linalg.norm(Z[0] - Z[3])
    with pytest.raises(Unsuitable, match="no vectors"):
        pca.inverse_transform(Z)


def test_a_map_comes_first_and_last(X):
    scaled = er.PCA(6, StandardScaler()).fit(X)
    np.testing.assert_allclose(scaled.inverse_transform(scaled.transform(X)), X, atol=1e-9)
    phi = er.maps.Polynomial(2)
    np.testing.assert_allclose(
        er.PCA(3, phi).fit_transform(X), er.PCA(3).fit_transform(phi.fit_transform(X)), atol=1e-8
    )


@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(5.0), er.maps.Polynomial(2)])
def test_a_model_file_holds_it(X, features, tmp_path):
    pca = er.PCA(2, features, whiten=True).fit(X)
    er.save(pca, tmp_path / "pca.model")
    again = er.load(tmp_path / "pca.model")
    np.testing.assert_array_equal(again.transform(X), pca.transform(X))
    np.testing.assert_array_equal(again.reconstruction_error(X), pca.reconstruction_error(X))


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [er.PCA(), er.PCA(1, features=er.kernels.Gaussian())], ids=repr)
def test_the_contract_holds(machine):
    check_contract(machine)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_components": 0}, "n_components=0 must be a whole number from 1 to 6"),
        ({"n_components": 7}, "from 1 to 6"),
        ({"n_components": 1.5}, "at most 1.0"),
        ({"n_components": True}, "n_components=True"),
        ({"n_components": "many"}, "n_components='many'"),
        ({"center": 1}, "center=1 must be True or False"),
        ({"whiten": "yes"}, "whiten='yes' must be"),
    ],
)
def test_wrong_arguments_are_named_and_harm_nothing(X, change, match):
    pca = er.PCA(2).fit(X)
    before = pca.transform(X)
    with pytest.raises(EmpiriskError, match=match):
        pca.set_params(**change).fit(X)
    np.testing.assert_array_equal(pca.set_params(n_components=2, center=True, whiten=False).transform(X), before)


def test_rows_that_say_nothing_are_refused(X):
    with pytest.raises(EmpiriskError, match="one sample only"):
        er.PCA().fit(X[:1])
    with pytest.raises(EmpiriskError, match="All rows of X are equal"):
        er.PCA().fit(np.full((5, 3), 0.1))
    with pytest.raises(EmpiriskError, match="All rows of X are equal"):
        er.PCA(features=er.kernels.Polynomial(2)).fit(np.full((5, 3), 0.1))
    with pytest.raises(EmpiriskError, match="weights count rows"):
        er.PCA().fit(X, sample_weight=np.full(len(X), 1e-3))
    with pytest.raises(EmpiriskError, match="Z has 5 columns, but PCA has 2"):
        er.PCA(2).fit(X).inverse_transform(np.ones((3, 5)))


def test_a_copy_of_a_kernel_machine_answers_with_the_same_bits():
    rows = sparse.coo_array(np.random.default_rng(5).integers(-3, 4, (20, 5)).astype(float))
    pca = er.PCA(3, er.kernels.Linear()).fit(rows, sample_weight=np.full(20, 1e6))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pca)).transform(rows), pca.transform(rows))


def test_sparse_rows_that_are_all_equal_have_no_variance():
    for row in np.random.default_rng(0).normal(size=(20, 5)):
        with pytest.raises(EmpiriskError, match="All rows of X are equal"):
            er.PCA(1).fit(sparse.csr_array(np.tile(row, (5, 1))))


def test_rounding_behind_a_kernel_is_no_direction_whether_rows_are_weighed_or_repeated():
    for seed in range(30):
        random = np.random.default_rng(seed)
        X, counts = random.choice(0.1 * random.normal(size=2), size=(8, 1)), random.integers(1, 4, 8)
        if len(np.unique(X)) == 1:
            continue
        weighted = er.PCA(3, er.kernels.Gaussian()).fit(X, sample_weight=counts)
        repeated = er.PCA(3, er.kernels.Gaussian()).fit(np.repeat(X, counts, axis=0))
        assert weighted.n_components_ == repeated.n_components_ == 1  # two points have one direction
        assert weighted.explained_variance_ == pytest.approx(repeated.explained_variance_)


def test_pairs_of_few_different_rows_are_found_by_products():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 300, axis=0)
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    for count in (2, 5):
        found = er.PCA(count, er.kernels.Linear()).fit(X)
        np.testing.assert_allclose(found.singular_values_, values)
        np.testing.assert_allclose(found.explained_variance_ratio_.sum(), 1.0)


def test_directions_far_from_zero_are_found_as_far_as_products_have_digits():
    X = np.random.default_rng(0).normal(size=(20, 5)) + 1e7
    plain = er.PCA(2).fit(X)
    behind = er.PCA(2, er.kernels.Linear()).fit(X)
    np.testing.assert_allclose(behind.explained_variance_, plain.explained_variance_, rtol=0.05)
    assert behind.transform(X).shape == (20, 2)


def test_the_density_of_rows_on_a_plane():
    random = np.random.default_rng(0)
    flat = random.normal(size=(200, 2)) @ np.array([[1.0, 0.0, 1.0], [0.0, 2.0, 1.0]])
    pca = er.PCA().fit(flat)
    coordinates = er.PCA(2).fit(flat).transform(flat)
    truth = multivariate_normal(np.zeros(2), np.cov(coordinates.T)).logpdf(coordinates)
    np.testing.assert_allclose(pca.score_samples(flat), truth, rtol=1e-9)
    assert pca.score_samples([[1.0, 0.0, 0.0]]) == -np.inf
    whole = random.normal(size=(100, 3))
    np.testing.assert_allclose(
        er.PCA().fit(whole).score_samples(whole), multivariate_normal(whole.mean(axis=0), np.cov(whole.T)).logpdf(whole)
    )


def test_sparse_rows_far_from_zero_keep_their_variances_and_their_density():
    X = 1e7 + np.random.default_rng(0).normal(size=(13, 12))
    dense, thin = er.PCA().fit(X), er.PCA().fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.explained_variance_, dense.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(thin.score_samples(sparse.csr_array(X)), dense.score_samples(X), rtol=1e-6)
