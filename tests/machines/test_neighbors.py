"""Nearest neighbours against the obvious loops: distances, votes, weights as repetition, and k by leave-one-out."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import empirisk as er
from empirisk.machines.neighbors.nearest import EuclideanSearch

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 3))
NEW = RANDOM.normal(size=(50, 3))
F = np.sin(X[:, 0]) + 0.3 * RANDOM.normal(size=120)
Y = np.array(list("abc"))[np.digitize(F, [-0.4, 0.4])]


def naive(distances, weights, values, k, by_distance):
    """The mean of values over the nearest rows until their weights reach k."""
    out = []
    for row in distances:
        order = np.argsort(row, kind="stable")
        left, amounts = float(k), np.zeros(len(row))
        for j in order:
            amounts[j] = min(weights[j], left)
            left -= amounts[j]
        if by_distance:
            exact = (row == 0) & (amounts > 0)
            amounts = np.where(exact, amounts, 0.0) if exact.any() else amounts / np.where(row == 0, 1.0, row)
        out.append(amounts @ values / amounts.sum())
    return np.array(out)


def kernel_distances(kernel, A, B):
    squares = kernel.diagonal(A)[:, None] - 2 * kernel.block(A, B) + kernel.diagonal(B)
    return np.sqrt(np.maximum(squares, 0.0))


@pytest.mark.row("N1")
@pytest.mark.parametrize(
    "machine", [er.KNNClassifier(), er.KNNRegressor(), er.KNNRegressor(features="gaussian")], ids=repr
)
def test_contract(machine):
    missed = [result["check_name"] for result in check_estimator(machine, on_skip=None) if result["status"] != "passed"]
    # There is nothing to check in a method that does not exist.
    assert set(missed) <= {"check_classifiers_multilabel_output_format_decision_function"}


@pytest.mark.row("N1")
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 7])
def test_equal_to_scikit_learn(k, weights):
    ours = er.KNNClassifier(k, weights=weights).fit(X, Y)
    theirs = KNeighborsClassifier(k, weights=weights).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-12)
    np.testing.assert_array_equal(ours.predict(NEW), ours.classes_[ours.predict_proba(NEW).argmax(axis=1)])
    several = np.column_stack([F, X[:, 0]])
    mean = er.KNNRegressor(k, weights=weights).fit(X, several).predict(NEW)
    np.testing.assert_allclose(mean, KNeighborsRegressor(k, weights=weights).fit(X, several).predict(NEW))
    distances, places = ours.kneighbors(NEW)
    expected, where = theirs.kneighbors(NEW)
    np.testing.assert_allclose(distances, expected)
    np.testing.assert_array_equal(places, where)


@pytest.mark.row("N1")
@pytest.mark.row("K15")
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("kernel", [None, er.kernels.Polynomial(2), er.kernels.Gaussian(0.8)], ids=repr)
def test_weights_are_amounts_of_neighbours(kernel, weights):
    amounts = RANDOM.choice([0.0, 0.5, 1.0, 2.0, 3.3], len(X))
    machine = er.KNNRegressor(4, kernel, weights=weights).fit(X, F, amounts)
    distances = kernel_distances(kernel or er.kernels.Linear(), NEW, X)
    expected = naive(distances, amounts, F, 4, weights == "distance")
    np.testing.assert_allclose(machine.predict(NEW), expected, rtol=1e-6)


def test_weight_two_is_the_row_twice():
    amounts = RANDOM.integers(0, 4, len(X))
    weighted = er.KNNClassifier("loo").fit(X, Y, amounts)
    repeated = er.KNNClassifier("loo").fit(np.repeat(X, amounts, axis=0), np.repeat(Y, amounts))
    np.testing.assert_allclose(weighted.choice_.mean, repeated.choice_.mean)
    assert weighted.n_neighbors_ == repeated.n_neighbors_
    np.testing.assert_allclose(weighted.predict_proba(NEW), repeated.predict_proba(NEW))


@pytest.mark.parametrize(
    ("rows", "columns", "values", "features"),
    [(2500, 2, 8, None), (30, 12, 2, er.maps.Periodic()), (300, 7, 2, None)],
    ids=["by a tree", "equal but for rounding", "by products"],
)
def test_weight_two_is_the_row_twice_where_many_distances_are_equal(rows, columns, values, features):
    rng = np.random.default_rng(0)
    X, y, times = rng.integers(0, values, (rows, columns)), rng.normal(size=rows), rng.integers(1, 4, rows)
    each, queries = np.repeat(np.arange(rows), times), X[:600] + 0.5 * (features is None)
    weighted = er.KNNRegressor(features=features).fit(X, y, sample_weight=times)
    repeated = er.KNNRegressor(features=features).fit(X[each], y[each])
    np.testing.assert_allclose(weighted.predict(queries), repeated.predict(queries), rtol=1e-12, atol=1e-12)


@pytest.mark.row("N1")
@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(1.0)], ids=repr)
def test_k_by_leave_one_out_is_that_of_refitting(features):
    machine = er.KNNRegressor("loo", features, weights="distance", ks=[1, 3, 8, 20]).fit(X, F)
    for k, loss in zip(machine.choice_.values, machine.choice_.mean, strict=True):
        off = []
        for i in range(len(X)):
            others = np.arange(len(X)) != i
            left = er.KNNRegressor(int(k), features, weights="distance").fit(X[others], F[others])
            off.append((left.predict(X[[i]])[0] - F[i]) ** 2)
        assert loss == pytest.approx(np.mean(off), rel=1e-9)
    assert machine.n_neighbors_ == machine.choice_.values[machine.choice_.mean.argmin()]
    chosen = er.KNNClassifier("loo").fit(X, Y)
    assert len(chosen.choice_.values) == 30
    assert chosen.choice_.mean.min() == chosen.choice_.mean[chosen.n_neighbors_ - 1]


def test_the_rule_of_one_standard_error_takes_the_largest_k():
    machine = er.KNNRegressor("loo", rule="1se").fit(X, F)
    choice = machine.choice_
    limit = choice.mean.min() + choice.error[choice.mean.argmin()]
    assert (
        machine.n_neighbors_
        == choice.values[choice.mean <= limit].max()
        > er.KNNRegressor("loo").fit(X, F).n_neighbors_
    )
    amounts = RANDOM.integers(1, 4, len(X))
    weighted = er.KNNRegressor("loo").fit(X, F, amounts).choice_
    repeated = er.KNNRegressor("loo").fit(np.repeat(X, amounts, axis=0), np.repeat(F, amounts)).choice_
    np.testing.assert_allclose(weighted.error, repeated.error)


def test_a_tie_of_two_classes_goes_to_the_second_and_of_more_to_the_first():
    two = er.KNNClassifier(2).fit([[0.0], [1.0]], ["a", "b"])
    assert two.predict([[0.4]]).tolist() == ["b"]
    assert two.predict_proba([[0.4]]).argmax() == 1
    three = er.KNNClassifier(3).fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    assert three.predict([[0.4]]).tolist() == ["a"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_the_search_is_exact_where_single_precision_is_not(dtype, shift):
    known = (RANDOM.normal(size=(3000, 5)) * 1e-3 + shift).astype(dtype)
    known[1000:1200] = known[:200]  # duplicates: many equal distances
    queries = known[:300]
    squares, places, unit = EuclideanSearch(known).find(queries, 6)
    squares = squares * unit**2
    exact = ((queries[:, None].astype(float) - known[None].astype(float)) ** 2).sum(axis=2)
    order = np.argsort(exact, axis=1, kind="stable")[:, :6]
    np.testing.assert_allclose(squares, np.take_along_axis(exact, order, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(places, order)


def test_huge_and_tiny_numbers_are_found_too():
    for scale in (1e-200, 1e-30, 1e30, 1e307):
        places = EuclideanSearch(X * scale).find(NEW * scale, 5).places
        np.testing.assert_array_equal(places, EuclideanSearch(X).find(NEW, 5)[1])


def test_sparse_rows_and_any_number_of_threads():
    machine = er.KNNClassifier(3).fit(X, Y)
    for format in ("csr_matrix", "csc_array"):
        thin = er.KNNClassifier(3).fit(getattr(sparse, format)(X), Y)
        np.testing.assert_allclose(thin.predict_proba(getattr(sparse, format)(NEW)), machine.predict_proba(NEW))
    with er.config(threads=1):
        one = er.KNNRegressor(3).fit(X, F).predict(NEW)
    np.testing.assert_array_equal(one, er.KNNRegressor(3).fit(X, F).predict(NEW))


@pytest.mark.row("K15")
@pytest.mark.row("K16")
def test_kernels_on_objects_and_precomputed():
    words = ["aab", "aba", "baa", "xyz", "yzx", "zyx"] * 3
    labels = [0, 0, 0, 1, 1, 1] * 3
    machine = er.KNNClassifier(3, er.kernels.Spectrum(2)).fit(words, labels)
    assert machine.predict(["aba", "zxy"]).tolist() == [0, 1]
    kernel = er.kernels.Gaussian(0.8)
    direct = er.KNNClassifier(5, kernel).fit(X, Y)
    given = er.KNNClassifier(5, "precomputed").fit(kernel(X), Y)
    np.testing.assert_array_equal(given.predict(kernel(NEW, X)), direct.predict(NEW))
    np.testing.assert_allclose(cross_val_score(given, kernel(X), Y, cv=3), cross_val_score(direct, X, Y, cv=3))
    with pytest.raises(ValueError, match=r"k\(x, x\) of new items"):
        er.KNNClassifier(5, "precomputed", weights="distance").fit(kernel(X), Y).predict(kernel(NEW, X))


def test_maps_pipelines_searches_and_copies():
    mapped = er.KNNClassifier(5, StandardScaler()).fit(X * [1, 10, 100], Y)
    piped = make_pipeline(StandardScaler(), er.KNNClassifier(5)).fit(X * [1, 10, 100], Y)
    np.testing.assert_array_equal(mapped.predict(NEW * [1, 10, 100]), piped.predict(NEW * [1, 10, 100]))
    search = GridSearchCV(
        er.KNNClassifier(features=er.kernels.Gaussian()), {"features__width": [0.5, 2.0], "n_neighbors": [1, 9]}
    )
    assert set(search.fit(X, Y).best_params_) == {"features__width", "n_neighbors"}
    assert clone(er.KNNRegressor("loo", ks=[2, 4])).fit(X, F).n_neighbors_ in (2, 4)


def test_class_weights_move_votes():
    plain = er.KNNClassifier(15).fit(X, Y).predict_proba(NEW)
    heavy = er.KNNClassifier(15, class_weight={"a": 3.0}).fit(X, Y).predict_proba(NEW)
    expected = plain * [3.0, 1.0, 1.0]
    np.testing.assert_allclose(heavy, expected / expected.sum(axis=1, keepdims=True))


def test_more_neighbours_than_rows_are_all_rows():
    np.testing.assert_allclose(er.KNNRegressor(1000).fit(X, F).predict(NEW), F.mean())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number"),
        ({"n_neighbors": "cv"}, "n_neighbors='cv' must be"),
        ({"weights": "equal"}, "weights='equal' must be one of"),
        ({"n_neighbors": "loo", "ks": [0.5]}, "ks="),
    ],
)
def test_bad_arguments_are_sentences(parameters, message):
    with pytest.raises(ValueError, match=message):
        er.KNNClassifier(**parameters).fit(X, Y)


@pytest.mark.row("K16")
def test_as_many_new_items_as_old_ones_are_not_taken_for_them():
    new = np.random.default_rng(5).normal(size=X.shape)
    machine = er.KNNRegressor(3, "precomputed", weights="distance").fit(X @ X.T, F)
    np.testing.assert_allclose(machine.predict(X @ X.T), er.KNNRegressor(3, weights="distance").fit(X, F).predict(X))
    with pytest.raises(ValueError, match=r"k\(x, x\) of new items"):
        machine.predict(new @ X.T)
    with pytest.raises(ValueError, match=r"k\(x, x\) of new items"):
        machine.kneighbors(new @ X.T)


@pytest.mark.row("K16")
def test_the_number_of_neighbours_is_chosen_on_a_gram_matrix():
    kernel = er.kernels.Gaussian(0.8)
    chosen, direct = (
        er.KNNClassifier("loo", features).fit(rows, Y) for features, rows in [("precomputed", kernel(X)), (kernel, X)]
    )
    # Vectors are kept in an order of their own, so that the losses are added up in another one.
    np.testing.assert_allclose(chosen.choice_.mean, direct.choice_.mean, rtol=1e-14)


def test_rows_so_large_that_products_overflow_are_refused_behind_a_kernel():
    with pytest.raises(er.errors.EmpiriskError, match="their products overflow"):
        er.KNNRegressor(n_neighbors=1, features=er.kernels.Linear().normalised()).fit([[1e160], [2e160]], [0.0, 1.0])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("far", [1e12, 1e30, 1e170])
def test_a_new_row_far_beyond_the_others_has_neighbours_without_a_warning(make, far):
    rows = np.arange(12.0)[:, None]
    machine = er.KNNRegressor(1).fit(make(rows), np.arange(12.0))
    assert machine.predict(make([[far]])) == (11.0 if far < 1e15 else 0.0)  # beyond, all are equally far


def test_rows_so_large_that_squares_overflow():
    large = er.KNNRegressor(3, weights="distance").fit(X * 1e300, F)
    np.testing.assert_allclose(
        large.predict(NEW * 1e300), er.KNNRegressor(3, weights="distance").fit(X, F).predict(NEW)
    )
    np.testing.assert_allclose(
        large.kneighbors(NEW * 1e300)[0], 1e300 * er.KNNRegressor(3).fit(X, F).kneighbors(NEW)[0]
    )


@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(1.0)], ids=repr)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_ties_are_broken_by_values_and_not_by_the_order_of_the_rows(features, make):
    random = np.random.default_rng(3)
    known, target = random.integers(0, 3, size=(300, 2)).astype(float), random.integers(0, 3, size=300)
    amounts = random.integers(0, 3, size=300)
    machines = (er.KNNClassifier(4, features), er.KNNRegressor(4, features, weights="distance"))
    expected = [machine.fit(make(known), target, amounts).predict(make(known)) for machine in machines]
    for _ in range(3):
        order = random.permutation(300)
        for machine, before in zip(machines, expected, strict=True):
            again = clone(machine).fit(make(known[order]), target[order], amounts[order])
            np.testing.assert_array_equal(again.predict(make(known)), before)


@pytest.mark.parametrize(("rows", "columns"), [(3000, 3), (2500, 12)])
def test_trees_and_products_find_what_the_loops_find(rows, columns):
    random = np.random.default_rng(1)
    known, queries = random.normal(size=(rows, columns)), random.normal(size=(600, columns))
    known[100:200] = known[:100]
    found = []
    for threads in (1, 3):
        with er.config(threads=threads):
            found.append(EuclideanSearch(known).find(queries, 7))
    np.testing.assert_array_equal(found[0].places, found[1].places)
    exact = ((queries[:, None] - known[None]) ** 2).sum(axis=2)
    order = np.argsort(exact, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(found[0].places, order)
    np.testing.assert_allclose(found[0].squares * found[0].unit ** 2, np.take_along_axis(exact, order, axis=1))


@pytest.mark.parametrize("far", [1e8, 1e20, 1e140])
def test_one_far_row_leaves_the_others_their_order(far):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[7, 1] = far
    exact = np.argsort(((X[:, None] - X[None]) ** 2).sum(axis=2), axis=1, kind="stable")
    for rows in (X, sparse.csr_matrix(X)):
        _, places = er.KNNRegressor(n_neighbors=5).fit(rows, X[:, 0]).kneighbors(rows)
        others = np.arange(40) != 7
        np.testing.assert_array_equal(places[others], exact[others, :5])
        assert places[7, 0] == 7


def test_sparse_rows_far_from_the_origin_have_the_neighbours_of_dense_ones():
    random = np.random.default_rng(1)
    X = random.normal(size=(30, 3)) + 1e8
    X[5] = X[6]
    dense, thin = (
        er.KNNRegressor(n_neighbors=3, weights="distance").fit(X, X[:, 0]),
        er.KNNRegressor(n_neighbors=3, weights="distance"),
    )
    thin.fit(sparse.csr_matrix(X), X[:, 0])
    for one, two in zip(dense.kneighbors(X), thin.kneighbors(sparse.csr_matrix(X)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_range_of_numbers_is_that_of_files(tmp_path):
    X = np.array([[1e304, 0.0], [0, 1e303], [1e302, 1e304], [5e303, 5e303]])
    machine = er.KNNClassifier(n_neighbors=1).fit(X, [0, 1, 0, 1])
    er.save(machine, tmp_path / "far.model")
    np.testing.assert_array_equal(er.load(tmp_path / "far.model").predict(X), [0, 1, 0, 1])


@pytest.mark.parametrize("kernel", [er.kernels.Linear().normalised(), er.kernels.Gaussian() + er.kernels.Linear()])
def test_equal_distances_through_a_composed_kernel_do_not_depend_on_the_order(kernel):
    X, y = np.zeros((6, 2)), np.array([0, 1, 2, 0, 1, 2])
    first = er.KNNClassifier(n_neighbors=1, features=kernel).fit(X, y)
    second = er.KNNClassifier(n_neighbors=1, features=kernel).fit(X, y[::-1])
    assert np.array_equal(first.predict(X), second.predict(X))


def test_equal_items_behind_a_kernel_have_no_distance():
    X = np.random.default_rng(0).normal(size=(20, 3))
    machine = er.KNNRegressor(n_neighbors=3, features=er.kernels.Gaussian(0.7), weights="distance").fit(
        X, np.arange(20.0)
    )
    np.testing.assert_array_equal(machine.predict(X), np.arange(20.0))
    assert not machine.kneighbors(X, 1)[0].any()
