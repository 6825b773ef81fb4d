"""Learned metrics: losses against brute force, monotone objectives, weights, impostors that are never missed."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.projections import metric_losses
from empirisk.projections.metric import neighbours
from empirisk.projections.metric_losses import ClassPairs, ListedPairs, Triplets, hinge_of_squares, square_of_hinge
from empirisk.stop import stopping
from tests.estimator_checks import check_contract

METRICS = [
    pytest.param(er.ContrastiveMetric(), marks=pytest.mark.row("N2")),
    pytest.param(er.ContrastiveMetric(loss="two_margins"), marks=pytest.mark.row("N2")),
    pytest.param(er.ContrastiveMetric(loss="triplets"), marks=pytest.mark.row("N2")),
    pytest.param(er.LargeMarginMetric(), marks=pytest.mark.row("N3")),
    pytest.param(er.LargeMarginMetric(form="pairs"), marks=pytest.mark.row("N3")),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(70) % 3
    X = rng.normal(size=(70, 4)) * [0.4, 1.0, 3.0, 1.0]
    X[:, 0] += y
    return X, y


def squares(Z):
    return np.sum((Z[:, None] - Z[None]) ** 2, axis=2)


def contrastive(Z, y, c, alpha, beta, margin):
    """The contrastive loss of all pairs, as the formula says."""
    same, pairs = y[:, None] == y, c[:, None] * c
    D = squares(Z)
    pushed = np.maximum(margin - np.sqrt(D), 0) ** 2
    return (
        alpha * np.sum((pairs * D)[same]) / pairs[same].sum()
        + beta * np.sum((pairs * pushed)[~same]) / pairs[~same].sum()
    )


def large_margin(Z, y, targets, amounts, c, C, margin):
    """The loss of large-margin neighbours, as the formula says."""
    D, total = squares(Z), 0.0
    for i in range(len(Z)):
        others = np.flatnonzero(y != y[i])
        for j, a in zip(targets[i], amounts[i], strict=True):
            total += c[i] * a * (D[i, j] + C * c[others] @ np.maximum(margin + D[i, j] - D[i, others], 0))
    return total


def assert_gradient(loss, Z):
    value, gradient = loss(Z)
    for i, k in [(0, 0), (3, 1), (len(Z) - 1, Z.shape[1] - 1)]:
        step = np.zeros_like(Z)
        step[i, k] = 1e-6
        numeric = (loss(Z + step)[0] - loss(Z - step)[0]) / 2e-6
        np.testing.assert_allclose(gradient[i, k], numeric, rtol=1e-4, atol=1e-6)
    return value


@pytest.mark.row("N2")
def test_the_contrastive_loss_is_its_formula(data):
    X, y = data
    c = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    totals = np.bincount(y, c)
    alike = totals @ totals
    loss = ClassPairs(y, c, 2.0 / alike, 3.0 / (c.sum() ** 2 - alike), 1.7)
    np.testing.assert_allclose(assert_gradient(loss, X), contrastive(X, y, c, 2.0, 3.0, 1.7), rtol=1e-12)


@pytest.mark.row("N3")
def test_the_loss_of_triplets_is_its_formula_in_lists_and_in_blocks(data, monkeypatch):
    X, y = data
    rng = np.random.default_rng(1)
    c, targets, amounts = rng.uniform(0.5, 2.0, 70), np.zeros((70, 2), int), rng.uniform(0, 1, (70, 2))
    for i in range(70):
        targets[i] = rng.choice(np.flatnonzero(y == y[i]), 2)
    monkeypatch.setattr(metric_losses, "ROWS", 16)
    for memory in (10**9, 100):
        with er.config(memory=memory):
            loss = Triplets(targets, amounts, y, c, 0.7, 1.3)
            value = assert_gradient(loss, X)
            np.testing.assert_allclose(value, large_margin(X, y, targets, amounts, c, 0.7, 1.3), rtol=1e-12)


@pytest.mark.row("N3")
def test_no_impostor_is_missed_while_the_images_move(data, monkeypatch):
    X, y = data
    _, places, counts = neighbours(X, np.ones(70), 3)
    loss = Triplets(places, counts, y, np.ones(70), 1.0, 0.2)
    searches, near = [], Triplets._near
    monkeypatch.setattr(Triplets, "_near", lambda *args: searches.append(1) or near(*args))
    rng, Z = np.random.default_rng(2), X.copy()
    for step in np.r_[np.full(15, 1e-3), np.full(5, 0.3)]:
        Z = Z + step * rng.normal(size=Z.shape)
        expected = large_margin(Z, y, places, counts, np.ones(70), 1.0, 0.2)
        np.testing.assert_allclose(loss(Z)[0], expected, rtol=1e-12)
    assert len(searches) < 20


@pytest.mark.row("N2")
def test_listed_pairs_are_their_formula(data):
    X, _ = data
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 70, (2, 40))
    pulls, pushes = rng.random((2, 40))
    D = np.sum((X[first] - X[second]) ** 2, axis=1)
    for push, cost in [
        (square_of_hinge(2.0), np.maximum(2.0 - np.sqrt(D), 0) ** 2),
        (hinge_of_squares(2.0), np.maximum(2.0 - D, 0)),
    ]:
        value = assert_gradient(ListedPairs(first, second, pulls, pushes, push), X)
        np.testing.assert_allclose(value, pulls @ D + pushes @ cost, rtol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_the_objective_never_rises_and_begins_at_the_euclidean_metric(metric, data):
    X, y = data
    fitted = metric.fit(X, y)
    values = fitted.history_["objective"]
    assert (np.diff(values) <= 0).all()
    assert values[-1] < values[0]
    assert fitted.stopped_ == "converged"
    assert fitted.n_iter_ == len(values) - 1 > 1
    np.testing.assert_allclose(fitted.transform(X), X @ fitted.components_.T, atol=1e-10)


@pytest.mark.row("N3")
def test_large_margin_is_never_worse_than_euclidean_on_its_own_objective(data):
    X, y = data
    fitted = er.LargeMarginMetric(n_neighbors=2, C=0.5).fit(X, y)
    c, targets, amounts = np.ones(70), np.zeros((70, 4), int), np.zeros((70, 4))
    for number in range(3):
        group = np.flatnonzero(y == number)
        _, places, counts = neighbours(X[group], np.ones(len(group)), 2)
        targets[group, : places.shape[1]], amounts[group, : places.shape[1]] = group[places], counts
    values = [large_margin(Z, y, targets, amounts, c, 0.5, fitted.margin_) for Z in (X, fitted.transform(X), 0.7 * X)]
    assert values[1] < min(values[0], values[2])
    np.testing.assert_allclose(fitted.history_["objective"][[0, -1]], values[:2], rtol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_weight_two_is_the_row_twice(metric, data):
    X, y = data
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    metric = clone(metric).set_params(tol=1e-9)
    weighted = metric.fit(X, y, sample_weight=counts)
    start, end = weighted.history_["objective"][[0, -1]]
    Z = weighted.transform(X)
    repeated = metric.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(repeated.history_["objective"][0], start, rtol=1e-9)
    np.testing.assert_allclose(repeated.history_["objective"][-1], end, rtol=1e-3)
    np.testing.assert_allclose(squares(repeated.transform(X)), squares(Z), atol=0.05 * squares(Z).max())


@pytest.mark.parametrize("metric", METRICS)
def test_rows_may_be_sparse_or_of_single_precision(metric, data):
    X, y = data
    X = X * (np.random.default_rng(0).random(X.shape) < 0.7)
    dense = metric.fit(X, y).components_
    np.testing.assert_allclose(metric.fit(sparse.csr_matrix(X), y).components_, dense, atol=2e-2)
    single = metric.fit(X.astype(np.float32), y)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("metric", METRICS)
def test_a_low_rank_starts_at_the_principal_directions(metric, data):
    X, y = data
    low = clone(metric).set_params(n_components=2).fit(X, y)
    assert low.components_.shape == (2, 4)
    assert (np.diff(low.history_["objective"]) <= 0).all()
    assert list(low.get_feature_names_out()) == [f"{type(metric).__name__.lower()}{k}" for k in range(2)]


@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_take_a_metric_as_features(metric, data):
    X, y = data
    machine = er.KNNClassifier(n_neighbors=3, features=metric).fit(X, y)
    Z = machine.features_.transform(X)
    np.testing.assert_array_equal(machine.predict(X), er.KNNClassifier(n_neighbors=3).fit(Z, y).predict(Z))
    pipeline = make_pipeline(metric, er.KNNClassifier(n_neighbors=3)).fit(X, y)
    np.testing.assert_array_equal(pipeline.predict(X), machine.predict(X))
    target = X[:, 0] + 0.01 * X[:, 1]
    plain = er.KNNRegressor(n_neighbors=3).fit(X[:50], target[:50]).score(X[50:], target[50:])
    assert er.KNNRegressor(n_neighbors=3, features=metric).fit(X[:50], target[:50]).score(X[50:], target[50:]) > plain


@pytest.mark.parametrize("metric", METRICS)
def test_the_units_of_the_columns_do_not_matter(metric, data):
    X, y = data
    metric = clone(metric).set_params(tol=1e-8)
    P = metric.fit(X, y).components_
    for unit in (1e-8, 1e8):
        np.testing.assert_allclose(metric.fit(unit * X, y).components_, P, atol=1e-3)


@pytest.mark.row("N3")
def test_three_neighbours_are_better_after_the_metric():
    X, y = load_wine(return_X_y=True)
    train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    plain = er.KNNClassifier(n_neighbors=3).fit(X[train], y[train]).score(X[test], y[test])
    learned = er.KNNClassifier(n_neighbors=3, features=er.LargeMarginMetric(n_neighbors=3)).fit(X[train], y[train])
    assert learned.score(X[test], y[test]) > plain + 0.1


@pytest.mark.row("N2")
def test_pairs_of_the_user_say_what_is_alike(data):
    X, y = data
    same = np.argwhere((y[:, None] == y) & (np.arange(70)[:, None] < np.arange(70)))
    other = np.argwhere((y[:, None] != y) & (np.arange(70)[:, None] < np.arange(70)))
    by_pairs = er.ContrastiveMetric(margin=2.0, strength=0.01, tol=1e-10).fit(X, similar=same, dissimilar=other)
    # All pairs of the classes, but for those of a row with itself, which the mean of the classes counts too.
    n = np.bincount(y)
    alpha = (n @ n) / (n @ (n - 1))
    by_class = er.ContrastiveMetric(alpha, margin=2.0, strength=0.01, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(by_pairs.history_["objective"][0], by_class.history_["objective"][0], rtol=1e-10)
    np.testing.assert_allclose(by_pairs.history_["objective"][-1], by_class.history_["objective"][-1], rtol=1e-4)


@pytest.mark.row("N2")
def test_a_form_without_a_margin_is_refused(data):
    for margin in (None, np.inf):
        with pytest.raises(Unsuitable, match="without a lower bound"):
            er.ContrastiveMetric(margin=margin).fit(*data)


@pytest.mark.row("N3")
def test_the_bits_do_not_depend_on_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 5)), rng.integers(0, 4, 900)
    for metric in (er.LargeMarginMetric(max_iter=5), er.ContrastiveMetric(max_iter=5)):
        found = []
        for threads in (1, 3):
            with er.config(threads=threads), pytest.warns(ConvergenceWarning, match="max_iter"):
                found.append(metric.fit(X, y).components_)
        np.testing.assert_array_equal(*found)


@pytest.mark.row("N3")
def test_a_fit_ends_in_time_with_what_it_has(data):
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        metric = er.LargeMarginMetric(max_time=1e-9).fit(*data)
    np.testing.assert_allclose(metric.components_, np.eye(4), atol=1e-15)
    assert metric.stopped_ == "max_time"


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_file_holds_a_metric(metric, data, tmp_path):
    fitted = metric.fit(*data)
    er.save(fitted, tmp_path / "metric.model")
    np.testing.assert_array_equal(er.load(tmp_path / "metric.model").transform(data[0]), fitted.transform(data[0]))


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(er.ContrastiveMetric(), marks=pytest.mark.row("N2")),
        pytest.param(er.ContrastiveMetric(loss="two_margins", convex=True), marks=pytest.mark.row("N2")),
        pytest.param(er.LargeMarginMetric(), marks=pytest.mark.row("N3")),
        pytest.param(er.LargeMarginMetric(form="pairs"), marks=pytest.mark.row("N3")),
    ],
    ids=repr,
)
def test_the_contract_holds(machine):
    check_contract(machine)


def test_wrong_arguments_are_named(data):
    X, y = data
    for metric, match in [
        (er.LargeMarginMetric(n_neighbors=0), "n_neighbors=0 must be a whole number"),
        (er.LargeMarginMetric(form="fours"), "form='fours' must be one of"),
        (er.LargeMarginMetric(C=0), "C=0 must be a number above 0"),
        (er.LargeMarginMetric(margin=-1.0), "margin=-1.0 must be"),
        (er.LargeMarginMetric(n_components=9), "n_components=9 is more than X allows, 4"),
        (er.LargeMarginMetric(max_iter=0), "max_iter=0"),
        (er.ContrastiveMetric(alpha=-1), "alpha=-1 must be"),
        (er.ContrastiveMetric(strength=-1), "strength=-1 must be"),
        (er.ContrastiveMetric(bins=1), "bins=1 must be"),
        (er.ContrastiveMetric(loss="three"), "loss='three' is not known"),
        (er.ContrastiveMetric(convex=True), "belong to loss='two_margins'"),
        (er.ContrastiveMetric(similar_margin=1.0), "belong to loss='two_margins'"),
        (er.ContrastiveMetric(loss="two_margins", similar_margin=-1.0), "similar_margin=-1.0"),
        (er.ContrastiveMetric(loss="two_margins", convex=True, n_components=9), "n_components=9 is more than X allows"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            metric.fit(X, y)
    with pytest.raises(EmpiriskError, match="one row only"):
        er.LargeMarginMetric().fit(X[:3], y[:3])
    with pytest.raises(EmpiriskError, match="belong together"):
        er.ContrastiveMetric().fit(X, similar=[[0, 1]])
    with pytest.raises(EmpiriskError, match="similar has shape"):
        er.ContrastiveMetric().fit(X, similar=[0, 1], dissimilar=[[0, 1]])
    with pytest.raises(EmpiriskError, match="dissimilar names the row 99; X has 70 rows"):
        er.ContrastiveMetric().fit(X, similar=[[0, 1]], dissimilar=[[0, 99]])


def test_the_margin_keeps_its_digits_where_one_class_outweighs_all_others(data):
    X, y = data
    weights = np.where(y == 0, 1e9, 1e-6)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        machine = er.ContrastiveMetric(max_iter=1).fit(X, y, sample_weight=weights)
    pairs = weights[:, None] * weights * (y[:, None] != y)
    np.testing.assert_allclose(machine.margin_**2, np.sum(pairs * squares(X)) / pairs.sum(), rtol=1e-10)


def test_rows_that_are_equal_but_for_rounding_have_a_margin_of_one():
    for seed in range(30):
        random = np.random.default_rng(seed)
        rows, weights = np.tile(random.normal(size=12), (9, 1)), 10.0 ** random.uniform(-9, 9, 9)
        for form in (np.asarray, sparse.csr_matrix):
            assert er.ContrastiveMetric().fit(form(rows), np.arange(9) % 2, sample_weight=weights).margin_ == 1.0


def test_pairs_of_classes_look_at_the_flag_between_rows_that_change_no_bit(data, monkeypatch):
    X, y = data
    loss = ClassPairs(np.unique(y, return_inverse=True)[1], np.ones(len(X)), 0.5, 2.0, 3.0)
    value, gradient = loss(X)
    monkeypatch.setattr(metric_losses, "PAIRS", 1)
    looks = []
    with stopping(lambda: looks.append(0) is not None):
        again = loss(X)
    assert again[0] == value
    np.testing.assert_array_equal(again[1], gradient)
    assert len(looks) >= len(X)
