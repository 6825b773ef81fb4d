"""Dictionaries: codes against the lasso and brute force, k-means and gain-shape k-means, spans, monotone objectives."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from tests.estimator_checks import check_contract

pytestmark = pytest.mark.row("U9")
WAYS = [
    ("alternating", {"coding": "l1"}),
    ("alternating", {"coding": "omp", "nonzeros": 2}),
    ("alternating", {"coding": "top_k", "nonzeros": 2}),
    ("alternating", {"coding": "top_k", "nonzeros": 2, "threshold": "soft"}),
    ("alternating", {"coding": "indicator"}),
    ("ksvd", {"coding": "omp", "nonzeros": 2}),
    ("ksvd", {"coding": "top_k", "nonzeros": 3}),
]


@pytest.fixture(scope="module")
def X():
    """Rows of two of eight atoms each, with a little noise."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(size=(8, 6))
    codes = rng.normal(size=(120, 8)) * (np.argsort(rng.random((120, 8)), axis=1) < 2)
    return codes @ atoms + 0.05 * rng.normal(size=(120, 6))


def fitted(X, method, arguments, **more):
    return er.Dictionary(8, method, **arguments, random_state=0, **more).fit(X)


def test_l1_codes_are_those_of_the_lasso(X):
    dictionary = er.Dictionary(10, C=3.0, random_state=0).fit(X)
    codes = dictionary.transform(X[:5])
    atoms = dictionary.components_
    for x, code in zip(X[:5], codes, strict=True):
        machine = er.Lasso(C=3.0, fit_intercept=False, tol=1e-10).fit(atoms.T, x)
        value = np.abs(code).sum() + 3.0 * np.sum((x - code @ atoms) ** 2)
        np.testing.assert_allclose(value, machine.certificate_.primal, rtol=1e-9)
        np.testing.assert_allclose(code, machine.coef_.ravel(), atol=1e-5)
    assert (codes == 0).any()


def test_pursuit_is_that_of_scikit_learn(X):
    dictionary = fitted(X, "alternating", {"coding": "omp", "nonzeros": 3})
    theirs = sparse_encode(X, dictionary.components_, algorithm="omp", n_nonzero_coefs=3)
    np.testing.assert_allclose(dictionary.transform(X), theirs, atol=1e-8)


def test_pursuit_passes_over_atoms_that_depend_on_the_chosen_ones():
    atoms = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    dictionary = er.Dictionary(3, coding="omp", nonzeros=3, init=atoms, tol=1.0).fit([[3.0, 1.0], [1.0, 2.0]])
    back = dictionary.inverse_transform(dictionary.transform([[3.0, 1.0]]))
    np.testing.assert_allclose(back, [[3.0, 1.0]])


def test_the_largest_codes_stay(X):
    hard = er.Dictionary(5, coding="top_k", nonzeros=2, random_state=0).fit(X)
    dense = X @ np.linalg.pinv(hard.components_)
    codes = hard.transform(X)
    assert ((codes != 0).sum(axis=1) == 2).all()
    kept = np.argsort(-np.abs(dense), axis=1)
    np.testing.assert_allclose(np.take_along_axis(codes, kept[:, :2], 1), np.take_along_axis(dense, kept[:, :2], 1))
    soft = hard.set_params(threshold="soft").transform(X)
    sizes = np.take_along_axis(np.abs(dense), kept, 1)
    np.testing.assert_allclose(np.sort(np.abs(soft), axis=1)[:, ::-1][:, :2], sizes[:, :2] - sizes[:, 2:3], atol=1e-10)


@pytest.mark.parametrize(("method", "arguments"), WAYS)
def test_the_objective_never_rises_and_is_what_it_says(X, method, arguments):
    dictionary = fitted(X, method, arguments)
    values = dictionary.history_["objective"]
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert values[-1] < 0.9 * values[0]
    assert dictionary.stopped_ == "converged"
    codes = dictionary.transform(X)
    errors = np.sum((X - dictionary.inverse_transform(codes)) ** 2)
    again = np.abs(codes).sum() + errors if arguments["coding"] == "l1" else errors
    assert again >= values[-1] * (1 - 1e-9)  # codes of a row may have been better in an earlier round
    if arguments["coding"] in ("l1", "indicator"):
        np.testing.assert_allclose(again, values[-1], rtol=1e-6)
    sizes = np.linalg.norm(dictionary.components_, axis=1)
    if arguments["coding"] == "l1":
        assert sizes.max() <= 1 + 1e-12
    elif arguments["coding"] != "indicator":
        np.testing.assert_allclose(sizes, 1.0)


def test_dense_codes_span_the_leading_singular_vectors(X):
    dictionary = er.Dictionary(3, coding="top_k", nonzeros=3, random_state=0, tol=1e-14, max_iter=2000).fit(X)
    vectors = np.linalg.svd(X, full_matrices=False)[2][:3]
    assert subspace_angles(dictionary.components_.T, vectors.T).max() < 1e-4
    values = np.linalg.svd(X, compute_uv=False)
    np.testing.assert_allclose(dictionary.history_["objective"][-1], np.sum(values[3:] ** 2), rtol=1e-8)


def test_indicator_codes_are_k_means(X):
    start = X[[0, 10, 20, 30]]
    dictionary = er.Dictionary(4, coding="indicator", init=start, tol=0).fit(X)
    theirs = KMeans(4, init=start, n_init=1, tol=0).fit(X)
    np.testing.assert_allclose(dictionary.components_, theirs.cluster_centers_, atol=1e-10)
    np.testing.assert_allclose(dictionary.history_["objective"][-1], theirs.inertia_)
    np.testing.assert_array_equal(dictionary.transform(X).argmax(axis=1), theirs.labels_)


def test_ksvd_with_one_entry_is_gain_shape_k_means(X):
    """Rows go to the line with the largest product; a line is the leading singular vector of its rows."""
    start = X[[0, 10, 20, 30]]
    dictionary = er.Dictionary(4, "ksvd", "omp", nonzeros=1, init=start, tol=0).fit(X)
    shapes = start / np.linalg.norm(start, axis=1, keepdims=True)
    for _ in range(len(dictionary.history_["objective"]) + 5):
        nearest = np.abs(X @ shapes.T).argmax(axis=1)
        shapes = np.array([np.linalg.svd(X[nearest == j])[2][0] for j in range(4)])
    np.testing.assert_allclose(np.abs(np.sum(shapes * dictionary.components_, axis=1)), 1.0, atol=1e-9)
    lost = np.sum(X**2) - np.sum(np.max((X @ shapes.T) ** 2, axis=1))
    np.testing.assert_allclose(dictionary.history_["objective"][-1], lost, rtol=1e-9)


def test_atoms_that_made_the_rows_are_found(X):
    errors = {}
    for seed, method in itertools.product(range(3), ("alternating", "ksvd")):
        dictionary = er.Dictionary(8, method, "omp", nonzeros=2, random_state=seed).fit(X)
        errors.setdefault(method, []).append(dictionary.history_["objective"][-1] / np.sum(X**2))
    assert min(errors["ksvd"]) < 0.05
    assert min(errors["alternating"]) < 0.05


@pytest.mark.parametrize(("method", "arguments"), WAYS)
def test_weight_two_is_the_row_twice_in_any_order(X, method, arguments):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, len(X))
    repeated = rng.permutation(np.repeat(X, counts, axis=0))
    weighted = er.Dictionary(4, method, **arguments, random_state=0, tol=0.01).fit(X, sample_weight=counts)
    other = er.Dictionary(4, method, **arguments, random_state=0, tol=0.01).fit(repeated)
    np.testing.assert_allclose(weighted.components_, other.components_, atol=1e-6)
    np.testing.assert_allclose(weighted.history_["objective"], other.history_["objective"], rtol=1e-8)


@pytest.mark.parametrize(("method", "arguments"), WAYS)
def test_rows_may_be_sparse_or_of_single_precision(X, method, arguments):
    X = X * (np.random.default_rng(0).random(X.shape) < 0.5)
    dense, thin = fitted(X, method, arguments), fitted(sparse.csr_matrix(X), method, arguments)
    np.testing.assert_allclose(thin.components_, dense.components_, atol=1e-6)
    np.testing.assert_allclose(thin.transform(sparse.csr_matrix(X)), dense.transform(X), atol=1e-6)
    single = fitted(X.astype(np.float32), method, arguments)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32


def test_the_bits_do_not_depend_on_threads():
    X = np.random.default_rng(0).normal(size=(3000, 30))
    for method, arguments in (("alternating", {"coding": "l1"}), ("ksvd", {"coding": "omp"})):
        found = []
        for threads in (1, 3):
            with er.config(threads=threads):
                dictionary = er.Dictionary(40, method, **arguments, random_state=0, tol=0.3).fit(X)
                found.append((dictionary.components_, dictionary.transform(X)))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_machine_takes_a_dictionary_as_features(X):
    y = X[:, 0] > 0
    machine = er.LogisticRegression(features=er.Dictionary(12, C=5.0, random_state=0)).fit(X, y)
    assert machine.coef_.shape[1] == 12
    assert machine.score(X, y) > 0.8


def test_more_atoms_than_rows_are_filled_with_random_directions():
    dictionary = er.Dictionary(6, coding="omp", nonzeros=1, random_state=0).fit(np.eye(3)[[0, 0, 1, 1]])
    np.testing.assert_allclose(np.linalg.norm(dictionary.components_, axis=1), 1.0)
    np.testing.assert_allclose(dictionary.history_["objective"][-1], 0.0, atol=1e-12)
    with pytest.raises(EmpiriskError, match="n_atoms=6 is more than the 2 rows of X that differ"):
        er.Dictionary(6, coding="indicator", random_state=0).fit(np.eye(3)[[0, 0, 1, 1]])


def test_a_fit_ends_in_time_and_can_be_kept(X, tmp_path):
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        dictionary = er.Dictionary(5, max_time=1e-9, random_state=0).fit(X)
    assert dictionary.stopped_ == "max_time"
    er.save(dictionary, tmp_path / "atoms.model")
    np.testing.assert_array_equal(er.load(tmp_path / "atoms.model").transform(X), dictionary.transform(X))


KINDS = [er.Dictionary(), er.Dictionary(8, "ksvd", "top_k"), er.Dictionary(4, coding="indicator")]


@pytest.mark.parametrize("machine", KINDS, ids=repr)
def test_the_contract_holds(machine):
    check_contract(machine)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n_atoms": 0}, "n_atoms=0"),
        ({"method": "other"}, "method='other' must be one of"),
        ({"coding": "other"}, "coding='other' must be one of"),
        ({"threshold": "firm"}, "threshold='firm' must be one of"),
        ({"C": 0}, "C=0 must be a number above 0"),
        ({"coding": "omp", "n_atoms": 3, "nonzeros": 4}, "nonzeros=4 must be at most the number of atoms"),
        ({"init": "best"}, "init='best' must be"),
        ({"init": [[1.0, 2.0]]}, r"init has shape \(1, 2\)"),
        ({"max_time": -1}, "max_time=-1"),
    ],
)
def test_wrong_arguments_are_named(X, arguments, match):
    with pytest.raises(EmpiriskError, match=match):
        er.Dictionary(**{"n_atoms": 8} | arguments).fit(X)


def test_ksvd_needs_codes_with_a_number_of_entries(X):
    for coding in ("l1", "indicator"):
        with pytest.raises(Unsuitable, match="use coding='omp' or 'top_k'"):
            er.Dictionary(4, "ksvd", coding).fit(X)
    with pytest.raises(EmpiriskError, match="Z has 2 columns for 4 atoms"):
        er.Dictionary(4, coding="omp", random_state=0).fit(X).inverse_transform(np.ones((1, 2)))


@pytest.mark.parametrize(("method", "coding"), [("alternating", "l1"), ("ksvd", "omp"), ("ksvd", "top_k")])
def test_weight_two_is_the_row_twice_to_the_last_bit(method, coding):
    """Also with more atoms than rows, where atoms that no row uses become the rows that are fitted worst."""
    random = np.random.default_rng(0)
    X, times = random.normal(size=(15, 6)), random.integers(0, 4, 15)
    rows = random.permutation(np.repeat(np.arange(15), times))
    for atoms in (4, 64):
        machine = er.Dictionary(atoms, method, coding, random_state=0)
        for form in (np.asarray, sparse.csr_array):
            weighted = clone(machine).fit(form(X), sample_weight=times)
            np.testing.assert_array_equal(weighted.components_, clone(machine).fit(form(X[rows])).components_)


def test_codes_by_atoms_that_point_the_same_way_do_not_hang_on_rounding():
    for seed in range(20):
        random = np.random.default_rng(seed)
        X = random.normal(size=(8, 1)) + 1e-8 * random.normal(size=(8, 5))
        for threshold in ("soft", "hard"):
            machine = er.Dictionary(2, "ksvd", "top_k", threshold=threshold, max_iter=20, random_state=0)
            first, second = (clone(machine).fit(rows).history_["objective"][0] for rows in (X, sparse.csr_matrix(X)))
            assert first == pytest.approx(second, rel=1e-6), (seed, threshold)
