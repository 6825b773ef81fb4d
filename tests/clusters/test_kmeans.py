"""k-means: against scikit-learn and plain Lloyd, its identities, starts, weights, limits and refusals."""

import signal
import warnings

import networkx as nx
import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as Theirs
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.clusters.dense_rows import DenseRows
from empirisk.clusters.lloyd import Ends, run_lloyd, shift_means
from empirisk.errors import EmpiriskError, Unsuitable
from tests.callbacks import Watching
from tests.estimator_checks import check_contract
from tests.naive import lloyd

X, Y = make_blobs(300, 5, centers=6, cluster_std=2.5, random_state=3)
RANDOM = np.random.default_rng(7)
NEW = np.random.default_rng(1).normal(scale=6, size=(50, 5))
INITS = ["k-means++", "random", "box", "splitting", "assignment"]

pytestmark = pytest.mark.row("U1")


@pytest.mark.parametrize(
    "machine", [er.KMeans(3), er.KMeans(3, features="gaussian"), er.KMeans(3, batch_size=20, init="random")], ids=repr
)
def test_the_contract_holds(machine):
    check_contract(machine)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_every_round_is_that_of_exact_arithmetic(dtype, shift):
    """Bounds and float32 products decide nothing: after any number of rounds, labels and means are plain Lloyd's."""
    random = np.random.default_rng(0)
    rows = (random.normal(size=(3000, 7)) + shift).astype(dtype)
    start = rows[:20].astype(np.float64)
    for rounds in (1, 2, 5, 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine = er.KMeans(20, init=start, max_iter=rounds).fit(rows)
        centres, labels = lloyd(rows.astype(np.float64), start, rounds)
        np.testing.assert_allclose(machine.cluster_centers_, centres, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(machine.labels_, labels)


def test_rows_that_float32_cannot_tell_apart_are_told_apart():
    """Two clusters at a distance of a millionth of the spread."""
    far = np.array([[1000.0, 0.0]])
    near = np.array([[0.0, 0.0], [0.0, 1e-7], [1e-5, 0.0], [1e-5, 1e-7]])
    machine = er.KMeans(3, random_state=0).fit(np.concatenate([near, far]))
    assert machine.labels_[0] == machine.labels_[1] != machine.labels_[2] == machine.labels_[3]
    assert machine.inertia_ == pytest.approx(1e-14, rel=1e-6)


def test_equally_good_as_scikit_learn():
    rows, _ = make_blobs(300, 5, centers=6, cluster_std=1.5, random_state=3)
    for seed in range(5):
        one, other = er.KMeans(6, random_state=seed).fit(rows), Theirs(6, n_init=10, random_state=seed).fit(rows)
        assert one.inertia_ <= other.inertia_ * (1 + 1e-9)


def test_answers_are_distances_to_the_means():
    ours = er.KMeans(6, random_state=0).fit(X)
    assert ours.stopped_ == "converged"
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)
    distances = euclidean_distances(NEW, ours.cluster_centers_)
    np.testing.assert_allclose(ours.transform(NEW), distances)
    np.testing.assert_array_equal(ours.predict(NEW), distances.argmin(axis=1))
    assert ours.score(X) == pytest.approx(-ours.inertia_)
    assert list(ours.get_feature_names_out()) == [f"kmeans{k}" for k in range(6)]


@pytest.mark.parametrize("init", [*INITS, X[:6]], ids=str)
def test_a_fit_is_a_fixed_point_and_the_inertia_never_rises(init):
    machine = er.KMeans(6, init=init, n_init=2, random_state=0).fit(X)
    inertia = machine.history_["inertia"]
    assert (np.diff(inertia) <= 1e-12 * inertia[0]).all()
    means = np.array([X[machine.labels_ == k].mean(axis=0) for k in range(6)])
    np.testing.assert_allclose(machine.cluster_centers_, means)
    np.testing.assert_array_equal(euclidean_distances(X, means).argmin(axis=1), machine.labels_)
    exact = sum(((X[machine.labels_ == k] - means[k]) ** 2).sum() for k in range(6))
    assert machine.inertia_ == pytest.approx(exact)
    assert inertia[-1] == pytest.approx(exact)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_weights_are_repetition_in_any_order(init, form):
    random = np.random.default_rng(0)
    amounts = random.integers(0, 4, size=len(X))
    order = random.permutation(len(X))
    made = sparse.csr_array if form == "sparse" else np.asarray
    machine = er.KMeans(6, init=init, n_init=3, random_state=0)
    repeated = machine.fit(made(np.repeat(X, amounts, axis=0))).predict(made(X))
    inertia = machine.inertia_
    weighted = machine.fit(made(X[order]), sample_weight=amounts[order])
    assert weighted.inertia_ == pytest.approx(inertia)
    np.testing.assert_array_equal(weighted.predict(made(X)), repeated)
    np.testing.assert_array_equal(weighted.labels_, repeated[order])


@pytest.mark.parametrize("init", INITS)
def test_sparse_rows_give_the_same_clusters(init):
    thin = X * (np.abs(X) > 1)
    dense = er.KMeans(6, init=init, random_state=0).fit(thin)
    for format in ("csr_matrix", "csc_array"):
        machine = er.KMeans(6, init=init, random_state=0).fit(getattr(sparse, format)(thin))
        np.testing.assert_array_equal(machine.labels_, dense.labels_)
        np.testing.assert_allclose(machine.cluster_centers_, dense.cluster_centers_)
        np.testing.assert_allclose(machine.transform(sparse.csr_array(NEW)), dense.transform(NEW))


def test_the_same_bits_on_any_number_of_threads():
    random = np.random.default_rng(0)
    rows = random.normal(size=(9000, 3))
    found = []
    for threads in (1, 3):
        with er.config(threads=threads):
            machine = er.KMeans(15, n_init=2, random_state=0).fit(rows)
            found.append((machine.cluster_centers_, machine.labels_, machine.inertia_, machine.predict(rows)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_two_clusters_are_the_hyperplane_of_the_nearest_centroid():
    machine = er.KMeans(2, random_state=0).fit(X)
    centroid = er.NearestCentroid().fit(X, machine.labels_)
    np.testing.assert_allclose(centroid.centroids_, machine.cluster_centers_)
    np.testing.assert_array_equal(machine.predict(NEW), centroid.predict(NEW))
    first, second = machine.cluster_centers_
    np.testing.assert_allclose(centroid.coef_[0], 2 * (second - first))


def test_a_map_comes_first():
    inside = er.KMeans(4, StandardScaler(), random_state=0).fit(X * [1, 10, 100, 1, 1])
    scaled = StandardScaler().fit_transform(X * [1, 10, 100, 1, 1])
    np.testing.assert_array_equal(inside.labels_, er.KMeans(4, random_state=0).fit(scaled).labels_)
    np.testing.assert_array_equal(inside.predict(X * [1, 10, 100, 1, 1]), inside.labels_)
    streamed = er.KMeans(3, er.maps.Nystrom(er.kernels.Gaussian(5.0), 20, random_state=0), random_state=0).fit(X)
    assert streamed.cluster_centers_.shape == (3, 20)


def test_empty_clusters_move_to_the_worst_fitted_rows():
    rows = np.array([[0.0], [1.0], [2.0], [50.0], [100.0]])
    start = np.array([[0.0], [1e6], [2e6]])
    machine = er.KMeans(3, init=start).fit(rows)
    assert machine.inertia_ == pytest.approx(2.0)
    assert set(np.bincount(machine.labels_)) == {3, 1}
    same = np.repeat(rows, [1, 2, 1, 3, 3], axis=0)
    np.testing.assert_array_equal(er.KMeans(3, init=start).fit(same).predict(rows), machine.labels_)


def test_a_shift_of_means_frees_a_fit_that_is_stuck():
    """Two means in one blob and one for two blobs: rounds alone stay there."""
    rows = np.concatenate([RANDOM.normal(loc=[30 * blob, 0], size=(40, 2)) for blob in range(4)])
    stuck = np.repeat([0, 1, 2, 2], 40)
    stuck[:40][rows[:40, 0] > 0] = 3
    alone = er.KMeans(4, init=stuck).fit(rows)
    ends = Ends(lambda: False, lambda: False, lambda run: False)
    run = run_lloyd(
        DenseRows(rows, np.ones(160), np.arange(160)).begin(),
        lambda state: state.start_from_labels(stuck, 4),
        99,
        ends,
    )
    assert run.inertia == pytest.approx(alone.inertia_)
    freed = shift_means(run, 5, 99, ends)
    assert freed.inertia == pytest.approx(er.KMeans(4, random_state=0).fit(rows).inertia_)
    assert freed.inertia < 0.1 * alone.inertia_
    assert (np.diff(freed.history["inertia"]) <= 0).all()


@pytest.mark.row("U10")
def test_splitting_needs_no_luck():
    one, other = (er.KMeans(6, init="splitting", random_state=seed).fit(X) for seed in (0, 1))
    np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.row("U10")
def test_splitting_moves_halves_of_the_worst_cluster_half_way_to_its_farthest_row():
    """5.75 becomes 5.75 -+ (12 - 5.75) / 2; then of {0, 1} and {10, 12} the second is split, at 11 -+ 1/2."""
    rows = np.array([[0.0], [1.0], [10.0], [12.0]])
    two, three = (er.KMeans(k, init="splitting").half_steps(rows)[0].means for k in (2, 3))
    np.testing.assert_allclose(np.sort(two, axis=0), [[2.625], [8.875]])
    np.testing.assert_allclose(np.sort(three, axis=0), [[0.5], [10.5], [11.5]])


@pytest.mark.row("U10")
@pytest.mark.parametrize("clusters", [2, 3, 5, 8])
def test_splitting_finds_clusters_that_are_far_apart(clusters):
    """Without shifts and in one start; the best inertia is known from the clusters the rows were drawn from."""
    random = np.random.default_rng(clusters)
    places = 100.0 * np.unique(random.integers(-9, 9, size=(50, 3)), axis=0)
    places = places[random.choice(len(places), clusters, replace=False)]
    truth = np.repeat(np.arange(clusters), random.integers(5, 30, size=clusters))
    rows = places[truth] + random.normal(size=(len(truth), 3))
    machine = er.KMeans(clusters, init="splitting", shifts=0).fit(rows)
    best = sum(((rows[truth == k] - rows[truth == k].mean(axis=0)) ** 2).sum() for k in range(clusters))
    assert machine.inertia_ == pytest.approx(best)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("made", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("distinct", [[[0.1, 0.3], [0.7, 0.2]], [[0.0, 1.0], [1e-9, 1.0], [1.0, 1.0]]])
def test_equal_rows_with_a_rounded_mean_are_one_row(init, made, distinct):
    """The mean of ten rows 0.1 is not 0.1: the distance to it is rounding, and no reason to look for more clusters."""
    rows, count = made(np.repeat(distinct, 10, axis=0)), len(distinct)
    for more in (1, 3):
        with pytest.raises(EmpiriskError, match=f"n_clusters={count + more} exceeds the {count} distinct rows"):
            er.KMeans(count + more, init=init, random_state=0).fit(rows)
    assert er.KMeans(count, init=init, random_state=0).fit(rows).inertia_ <= 1e-20


def test_mini_batches_come_close_and_see_weights():
    random = np.random.default_rng(0)
    rows = np.concatenate(
        [random.normal(size=(4000, 2)) + 8 * corner for corner in np.eye(2)] + [np.full((1, 2), 40.0)]
    )
    weights = np.where(rows[:, 0] > 30, 400.0, 1.0)
    whole = er.KMeans(3, random_state=0).fit(rows, sample_weight=weights)
    machine = er.KMeans(3, batch_size=200, random_state=0).fit(rows, sample_weight=weights)
    np.testing.assert_allclose(np.sort(machine.cluster_centers_[:, 0]), np.sort(whole.cluster_centers_[:, 0]), atol=0.3)
    assert machine.stopped_ == "converged"
    assert machine.inertia_ <= 1.02 * whole.inertia_
    thin = er.KMeans(3, batch_size=200, random_state=0).fit(sparse.csr_array(rows), sample_weight=weights)
    assert thin.inertia_ <= 1.02 * whole.inertia_


def test_rows_without_weight_only_get_a_label():
    weights = np.ones(len(X))
    weights[::3] = 0
    machine = er.KMeans(4, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(machine.labels_, machine.predict(X))
    np.testing.assert_allclose(
        machine.cluster_centers_, er.KMeans(4, random_state=0).fit(X[weights > 0]).cluster_centers_
    )


class Watcher(Watching):
    """Counts rounds, and stops the fit or presses Ctrl-C after some."""

    def __init__(self, after, press=False):
        self.rounds, self.after, self.press = 0, after, press

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "round":
            self.rounds += 1
            assert len(fitted_estimator.predict(X)) == len(X)
            if self.press and self.rounds == self.after:
                signal.raise_signal(signal.SIGINT)
        return not self.press and self.rounds >= self.after


@pytest.fixture
def long_rows(monkeypatch):
    """As if the rows were many: restarts run one after the other."""
    monkeypatch.setattr("empirisk.clusters.lloyd.SMALL", 0)
    return X


def test_callbacks_follow_and_stop_a_fit(long_rows):
    watcher = Watcher(3)
    machine = er.KMeans(6, init="random", random_state=1).set_callbacks(watcher).fit(long_rows)
    assert watcher.rounds == 3
    assert machine.stopped_ == "callback"
    np.testing.assert_array_equal(machine.labels_, machine.predict(X))


def test_an_interrupt_keeps_what_is_there(long_rows):
    machine = er.KMeans(6, init="random", random_state=1).set_callbacks(Watcher(2, press=True))
    with (
        er.config(interrupt="keep"),
        pytest.warns(ConvergenceWarning, match=r"KMeans was stopped \(interrupted\) after 2 rounds") as caught,
    ):
        machine.fit(long_rows)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(machine.labels_, machine.predict(X))


@pytest.mark.parametrize("options", [{}, {"batch_size": 50}, {"features": "linear"}])
def test_time_ends_a_fit(options):
    machine = er.KMeans(6, init="random", max_time=1e-9, random_state=0, **options)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(X)
    assert machine.n_iter_ == 1
    np.testing.assert_array_equal(machine.labels_, machine.predict(X))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        er.KMeans(6, max_iter=1, init="random", random_state=0, **options).fit(X)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"n_clusters": 0}, X, "n_clusters=0 must be a whole number"),
        ({"n_clusters": 301}, X, "exceeds the 300 distinct rows"),
        ({"n_clusters": 3}, [[0.0], [0.0], [1.0], [1.0]], "n_clusters=3 exceeds the 2 distinct rows"),
        ({"n_clusters": 3, "init": "random"}, [[0.0], [0.0], [1.0], [1.0]], "exceeds the 2 distinct rows"),
        ({"n_clusters": 3, "init": "splitting"}, [[0.0], [0.0], [1.0], [1.0]], "exceeds the 2 distinct rows"),
        ({"n_clusters": 3, "init": "assignment"}, [[0.0], [0.0], [1.0], [1.0]], "exceeds the 2 distinct rows"),
        ({"n_clusters": 3, "init": "box"}, [[0.0], [0.0], [1.0], [1.0]], "exceeds the 2 distinct rows"),
        ({"n_clusters": 3, "features": "linear"}, [[0.0], [0.0], [1.0], [1.0]], "exceeds the 2 distinct rows"),
        ({"n_clusters": 2}, [[1.0, 2.0]], "exceeds the 1 distinct rows"),
        ({"init": "best"}, X, "init='best' is not known"),
        ({"init": np.ones((2, 5))}, X, "init has shape"),
        ({"init": np.full((3, 5), np.nan)}, X, "finite"),
        ({"init": np.full(300, 3)}, X, "from 0 to 2"),
        ({"init": np.zeros(20, int)}, X, "one for each row"),
        ({"n_init": 0}, X, "n_init=0"),
        ({"max_time": -1}, X, "max_time=-1"),
        ({"batch_size": 0}, X, "batch_size=0"),
        ({"batch_size": 5, "init": np.zeros(300, int)}, X, "needs all rows"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(options, rows, message):
    machine = er.KMeans(3, random_state=0).fit(X)
    before = machine.cluster_centers_
    with pytest.raises(EmpiriskError, match=message):
        machine.set_params(**options).fit(rows)
    assert machine.cluster_centers_ is before


def test_bad_rows_and_weights_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        er.KMeans().fit([[np.nan], [1.0], [2.0], [3.0]])
    with pytest.raises(EmpiriskError, match="negative"):
        er.KMeans().fit(X, sample_weight=-np.ones(len(X)))
    constant = np.column_stack([X, np.ones(len(X))])
    np.testing.assert_array_equal(
        er.KMeans(4, random_state=0).fit(constant).inertia_, pytest.approx(er.KMeans(4, random_state=0).fit(X).inertia_)
    )


def test_bounds_skip_most_of_the_work():
    """After the first rounds few rows are multiplied with all centres: their bounds are not touched."""
    rows = DenseRows(X, np.ones(len(X)), np.arange(len(X))).begin()
    rows.start_at(er.KMeans(6, random_state=0).fit(X).cluster_centers_)
    rows.assign()
    before = rows.bounds[:, 1].copy()
    rows.assign()
    assert np.mean(rows.bounds[:, 1] > before) < 0.05


# --- behind a kernel --------------------------------------------------------------------------------------------------


@pytest.mark.row("U2")
@pytest.mark.row("K15")
@pytest.mark.parametrize("init", ["k-means++", "random", "assignment"])
def test_the_linear_kernel_is_k_means(init):
    amounts = np.random.default_rng(0).integers(1, 4, size=len(X))
    plain = er.KMeans(6, init=init, random_state=0).fit(X, sample_weight=amounts)
    kernel = er.KMeans(6, er.kernels.Linear(), init=init, random_state=0).fit(X, sample_weight=amounts)
    np.testing.assert_array_equal(kernel.labels_, plain.labels_)
    assert kernel.inertia_ == pytest.approx(plain.inertia_)
    np.testing.assert_allclose(kernel.history_["inertia"], plain.history_["inertia"])
    np.testing.assert_array_equal(kernel.predict(NEW), plain.predict(NEW))
    np.testing.assert_allclose(kernel.transform(NEW), plain.transform(NEW))
    np.testing.assert_allclose(kernel.dual_coef_ @ kernel.support_vectors_, plain.cluster_centers_)


@pytest.mark.row("U2")
@pytest.mark.parametrize("kept", [True, False])
def test_kernel_k_means_is_k_means_on_explicit_features(kept):
    """k(x, z) = <phi(x), phi(z)> with phi from the eigenvectors of the Gram matrix; weights are repetition."""
    kernel = er.kernels.Gaussian(4.0)
    rows = X[:80]
    values, vectors = np.linalg.eigh(kernel(rows))
    phi = vectors * np.sqrt(np.maximum(values, 0))
    labels = np.arange(80) % 5
    explicit = er.KMeans(5, init=labels).fit(phi)
    with er.config(memory="2GB" if kept else 100_000):
        machine = er.KMeans(5, kernel, init=labels).fit(rows)
        amounts = np.random.default_rng(0).integers(0, 3, size=80)
        weighted = er.KMeans(5, kernel, random_state=0).fit(rows, sample_weight=amounts)
        repeated = er.KMeans(5, kernel, random_state=0).fit(np.repeat(rows, amounts, axis=0))
    np.testing.assert_array_equal(machine.labels_, explicit.labels_)
    assert machine.inertia_ == pytest.approx(explicit.inertia_)
    assert (np.diff(machine.history_["inertia"]) <= 1e-12).all()
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    np.testing.assert_array_equal(weighted.predict(NEW), repeated.predict(NEW))
    np.testing.assert_array_equal(weighted.labels_, weighted.predict(rows))


@pytest.mark.row("U2")
@pytest.mark.row("K15")
def test_strings_graphs_and_gram_matrices():
    words = ["banana", "bananas", "bandana", "xylophone", "xylophones", "telephone"]
    machine = er.KMeans(2, er.kernels.Spectrum(2), random_state=0).fit(words)
    assert len(set(machine.labels_[:3])) == len(set(machine.labels_[3:])) == 1
    assert machine.predict(["banana split"]) == machine.labels_[0]
    kernel = er.kernels.Gaussian(4.0)
    given = er.KMeans(4, "precomputed", init=np.arange(len(X)) % 4).fit(kernel(X))
    direct = er.KMeans(4, kernel, init=np.arange(len(X)) % 4).fit(X)
    np.testing.assert_array_equal(given.labels_, direct.labels_)
    np.testing.assert_array_equal(given.predict(kernel(NEW, X)), direct.predict(NEW))
    triangle, path = [(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (2, 3)]
    shapes = [nx.Graph(edges) for edges in (triangle, path, triangle, path)]
    graphs = er.KMeans(2, er.kernels.WeisfeilerLehman(2), random_state=0).fit(shapes)
    assert graphs.labels_[0] == graphs.labels_[2] != graphs.labels_[1] == graphs.labels_[3]


@pytest.mark.parametrize("options", [{"init": "box"}, {"init": "splitting"}, {"init": X[:3]}, {"batch_size": 10}])
def test_what_a_kernel_cannot_do_is_refused(options):
    with pytest.raises(Unsuitable, match="behind a kernel"):
        er.KMeans(3, "gaussian", **options).fit(X)


@pytest.mark.parametrize("batch_size", [None, 20])
def test_sparse_rows_far_from_zero_have_the_clusters_of_dense_ones(batch_size):
    far = X + 1e8
    dense = er.KMeans(6, batch_size=batch_size, random_state=0).fit(far)
    thin = er.KMeans(6, batch_size=batch_size, random_state=0).fit(sparse.csr_array(far))
    np.testing.assert_allclose(thin.inertia_, dense.inertia_, rtol=1e-6)


def test_fewer_distinct_rows_than_clusters_are_refused_by_every_start_and_form():
    """Batches of rows in a box, or split, left clusters without a row where all other fits were refused."""
    X = np.eye(2)[np.arange(20) % 2] * [1.37, 0.73]
    for rows in (X, sparse.csr_matrix(X), np.asfortranarray(X)):
        for init in ("k-means++", "random", "box", "splitting", "assignment"):
            for batch_size in (None, 5):
                machine = er.KMeans(3, init=init, batch_size=batch_size, n_init=1, random_state=0)
                with pytest.raises(EmpiriskError, match="n_clusters=3 exceeds the 2 distinct rows"):
                    machine.fit(rows)
                assert not hasattr(machine, "labels_")


def test_centres_farther_apart_than_float32_can_tell():
    """A row without weight 1e45 away from the others, which a centre moves away from."""
    X, weights = np.append(np.linspace(-1.0, 1.0, 7), 1e45)[:, None], np.append(np.ones(7), 0.0)
    machine = er.KMeans(2, init=np.array([[0.0], [1e45]]), n_init=1).fit(X, sample_weight=weights)
    assert np.all(np.isfinite(machine.cluster_centers_[machine.labels_[:7]]))
    assert machine.inertia_ <= np.sum(X[:7] ** 2)
