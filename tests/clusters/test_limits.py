"""What all machines without a target, and the metrics, have in common: limits, Ctrl-C, callbacks, plain refusals."""

import signal
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.clusters.hierarchical import Hierarchical
from empirisk.clusters.lloyd import fill_empty
from empirisk.clusters.mixture import _Run
from empirisk.errors import EmpiriskError
from empirisk.maps.implicit import GramDesign
from empirisk.stop import Deadline
from tests.callbacks import Watching

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 6)) + 4 * rng.integers(0, 3, 400)[:, None]
Y = (X[:, 0] > 4).astype(int)
GAUSSIAN = er.kernels.Gaussian(3.0)

MACHINES = {
    "k-means": er.KMeans(5, init="random", random_state=0),
    "mini-batches": er.KMeans(5, batch_size=50, random_state=0),
    "kernel k-means": er.KMeans(5, GAUSSIAN, init="random", random_state=0),
    "hierarchical": er.Hierarchical(),
    "kernel hierarchical": er.Hierarchical("complete", GAUSSIAN),
    "mixture": er.GaussianMixture(3, init="random", tol=0, random_state=0),
    "pca": er.PCA(3),
    "kernel pca": er.PCA(3, GAUSSIAN),
    "dictionary": er.Dictionary(4, coding="omp", nonzeros=2, tol=0, random_state=0),
    "contrastive metric": er.ContrastiveMetric(tol=0),
    "large-margin metric": er.LargeMarginMetric(tol=0),
}
DENSITY = {"density": er.GaussianDensity()}


@pytest.fixture(autouse=True)
def long_data(monkeypatch):
    """As if the rows were many: restarts one after the other, merges in pieces, directions in many rounds."""
    monkeypatch.setattr("empirisk.clusters.lloyd.SMALL", 0)
    monkeypatch.setattr("empirisk.clusters.hierarchical.MERGES", 20)
    monkeypatch.setattr("empirisk.projections.pca.SMALL", 0)
    monkeypatch.setattr("empirisk.projections.pca.LEAST", 5)
    monkeypatch.setattr("empirisk.projections.pca.FOR_PAIRS", 0)
    monkeypatch.setattr("empirisk.linalg.leading.BLOCK", 1)
    monkeypatch.setattr("empirisk.linalg.leading.DEPTH", 1)


class Watcher(Watching):
    """Counts the pieces of a fit, and stops it or presses Ctrl-C after some."""

    def __init__(self, after, press=False):
        self.pieces, self.after, self.press = 0, after, press

    def on_fit_task_end(self, estimator, context):
        if context.parent is None:
            return False
        self.pieces += 1
        if self.press and self.pieces == self.after:
            signal.raise_signal(signal.SIGINT)
        return not self.press and self.pieces >= self.after


def usable(machine):
    """Whether a fitted machine answers, with finite numbers, and says how it went."""
    assert machine.history_
    assert all(len(values) for values in machine.history_.values())
    answers = [
        getattr(machine, name)(X) for name in ("predict", "transform", "score_samples") if hasattr(machine, name)
    ]
    answers += [machine.labels_] if hasattr(machine, "labels_") else []
    return bool(answers) and all(len(found) == len(X) and np.isfinite(found).all() for found in answers)


@pytest.mark.parametrize("name", MACHINES)
def test_a_callback_follows_a_fit_and_stops_it(name):
    watcher = Watcher(2)
    machine = clone(MACHINES[name]).set_callbacks(watcher).fit(X, Y)
    assert (machine.stopped_, watcher.pieces) == ("callback", 2)
    assert usable(machine)


@pytest.mark.parametrize("name", MACHINES)
def test_ctrl_c_keeps_what_is_there(name):
    machine = clone(MACHINES[name]).set_callbacks(Watcher(2, press=True))
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted") as caught:
        machine.fit(X, Y)
    assert caught[0].filename == __file__
    assert machine.stopped_ == "interrupted"
    assert usable(machine)


@pytest.mark.parametrize("name", MACHINES)
def test_time_ends_a_fit(name):
    machine = clone(MACHINES[name]).set_params(max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(X, Y)
    assert machine.stopped_ == "max_time"
    if name not in ("dictionary", *METRICS):  # these are stopped before a first value
        assert usable(machine)
    else:
        assert np.isfinite(machine.transform(X)).all()
    with pytest.raises(EmpiriskError, match="max_time=-1"):
        clone(machine).set_params(max_time=-1).fit(X, Y)


def test_directions_in_no_time_are_those_of_some_rows():
    """Scaled to all rows: with few columns and many rows they are all but the true ones."""
    rows = np.random.default_rng(1).normal(size=(20_000, 4)) * [5.0, 3.0, 1.0, 0.5]
    with pytest.warns(ConvergenceWarning, match="max_time"):
        quick = er.PCA(2, max_time=1e-9).fit(rows)
    slow = er.PCA(2).fit(rows)
    np.testing.assert_allclose(quick.explained_variance_, slow.explained_variance_, rtol=0.2)
    assert (np.abs(np.sum(quick.components_ * slow.components_, axis=1)) > 0.98).all()


def test_a_tree_in_no_time_links_cells_where_there_are_many_rows(monkeypatch):
    monkeypatch.setattr("empirisk.clusters.hierarchical.QUICK", 100)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = er.Hierarchical(n_clusters=3, max_time=1e-9, random_state=0).fit(X)
    assert len(machine.linkage_) == 255
    assert len(np.unique(machine.labels_)) == 3
    repeated = np.repeat(X[:5], 80, axis=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert len(er.Hierarchical(max_time=1e-9, random_state=0).fit(repeated).linkage_) == 4


class Looks:
    """A clock that says how often it was looked at, and that the time is up from some look on."""

    def __init__(self, monkeypatch, last=np.inf):
        self.count, self.last = 0, last
        monkeypatch.setattr(Deadline, "__call__", lambda clock: self._look(clock))

    def _look(self, clock):
        self.count += 1
        if self.count > self.last:
            clock.reason = "max_time"
        return bool(clock.reason)


class Passed(Watching):
    """Keeps the means with which every round began."""

    def __init__(self):
        self.means = []

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "round":
            self.means.append(fitted_estimator.means_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", ["full", "tied", "diagonal", "spherical"])
def test_a_mixture_stopped_anywhere_is_one_that_it_passed(form, monkeypatch):
    monkeypatch.setattr("empirisk.clusters.expectation.PIECE", 1)
    monkeypatch.setattr("empirisk.clusters.expectation.BATCH_BYTES", 1)
    passed, plain = Passed(), er.GaussianMixture(3, form, max_iter=4, tol=0, random_state=0)
    rows = np.random.default_rng(2).normal(size=X.shape)  # in no clusters: no round is the last
    pieces = len(rows) // 8  # the smallest batch
    looks = Looks(monkeypatch)
    whole = clone(plain).set_callbacks(passed).fit(rows)
    assert looks.count > 5 * pieces  # four rounds, and the likelihood of what they made
    likelihoods, means = [*whole.history_["log_likelihood"], whole.lower_bound_], [*passed.means, whole.means_]
    seen = set()
    for last in range(0, looks.count, 7):
        stopping = Looks(monkeypatch, last)
        machine = clone(plain).fit(rows)
        assert stopping.count <= last + 5  # it ends soon after
        assert machine.stopped_ == "max_time"
        assert usable(machine)
        rounds = machine.n_iter_
        seen.add(rounds)
        if rounds:
            # What the last round began with, or what it made once the likelihood of that is known too.
            assert machine.lower_bound_ in likelihoods[rounds - 1 : rounds + (rounds == 4)]
            np.testing.assert_array_equal(machine.means_, means[likelihoods.index(machine.lower_bound_)])
            np.testing.assert_array_equal(machine.history_["log_likelihood"], likelihoods[:rounds])
        else:
            assert np.isfinite(machine.lower_bound_)
            assert len(machine.history_["log_likelihood"]) == 1
    assert seen == {0, 1, 2, 3, 4}


def test_a_mixture_that_is_asked_nothing_has_the_same_bits_in_pieces(monkeypatch):
    plain = er.GaussianMixture(3, init="random", random_state=0)
    whole = clone(plain).fit(X)
    monkeypatch.setattr("empirisk.clusters.expectation.PIECE", 1)
    pieces = clone(plain).fit(X)
    for name in ("means_", "covariances_", "lower_bound_", "offset_"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))


def test_ctrl_c_in_the_first_round_keeps_the_start(monkeypatch):
    monkeypatch.setattr("empirisk.clusters.expectation.PIECE", 1)
    monkeypatch.setattr("empirisk.clusters.mixture._Run.rounds_until", pressed_before(_Run.rounds_until))
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match=r"stopped \(interrupted\) after 0 rounds"):
        machine = er.GaussianMixture(3, random_state=0).fit(X)
    assert usable(machine)


def pressed_before(function):
    """The function, with Ctrl-C right before it."""

    def run(*args):
        signal.raise_signal(signal.SIGINT)
        return function(*args)

    return run


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("features", [None, GAUSSIAN], ids=["rows", "kernel"])
@pytest.mark.parametrize("linkage", ["average", "ward"])
def test_a_tree_without_time_is_that_of_some_rows(linkage, features, monkeypatch):
    monkeypatch.setattr("empirisk.clusters.hierarchical.QUICK", 100)
    monkeypatch.setattr("empirisk.clusters.hierarchical.CELLS", 20)
    chosen, link = [], Hierarchical._link_some
    monkeypatch.setattr(Hierarchical, "_link_some", lambda *args: chosen.append(args[-1]) or link(*args))
    evaluated, block = [], GramDesign.block
    monkeypatch.setattr(GramDesign, "block", lambda *args: evaluated.append(block(*args)) or evaluated[-1])
    with monkeypatch.context() as hurry:
        Looks(hurry, 0)
        machine = er.Hierarchical(linkage, features).fit(X)
    assert machine.stopped_ == "max_time"
    assert sum(part.size for part in evaluated) <= 20 * len(X) + 20**2
    (some,) = chosen
    nearest = np.sum((X[:, None] - X[some]) ** 2, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(machine.leaves_, nearest)
    tree = er.Hierarchical(linkage, features).fit(X[some], sample_weight=np.bincount(nearest))
    np.testing.assert_allclose(machine.linkage_[0, 2], tree.linkage_[0, 2], rtol=1e-9)
    np.testing.assert_array_equal(np.diff(machine.linkage_[:, 2]) >= 0, True)


def test_a_tree_of_equal_rows_without_time_has_one_cluster(monkeypatch):
    monkeypatch.setattr("empirisk.clusters.hierarchical.QUICK", 100)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = er.Hierarchical(max_time=1e-9).fit(np.zeros((200, 2)))
    assert machine.n_clusters_ == 1


def test_merges_that_were_found_in_time_are_those_of_the_whole_tree():
    watcher = Watcher(5)
    part = er.Hierarchical("average").set_callbacks(watcher).fit(X)
    whole = er.Hierarchical("average").fit(X)
    known = int(part.history_["merges"][-1])
    assert known == 100
    found = part.linkage_[part.linkage_[:, 2] < part.linkage_[-1, 2], 2]
    assert len(found) >= known - 1
    assert all(np.isclose(whole.linkage_[:, 2], height, rtol=1e-12).any() for height in found)
    assert (np.diff(part.linkage_[:, 2]) >= 0).all()


def test_starts_of_k_means_look_at_the_clock():
    rows = np.random.default_rng(0).normal(size=(30_000, 8))
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = er.KMeans(500, max_iter=1, max_time=1e-9, random_state=0).fit(rows)
    assert len(np.unique(machine.labels_)) == 500
    assert machine.history_["inertia"].shape == (1,)
    assert time.perf_counter() > start


KINDS = {
    "rows": (None, X),
    "float32": (None, X.astype(np.float32)),
    "sparse": (None, sparse.csr_array(np.where(X > 4, X, 0.0))),
    "kernel": (GAUSSIAN, X),
}


@pytest.fixture
def long_rounds(monkeypatch):
    """As if every round took long, and 30 rows were all there always is time for."""
    monkeypatch.setattr("empirisk.clusters.rows.LONG_ROUND", 0)
    monkeypatch.setattr("empirisk.clusters.rows.QUICK", 0)
    monkeypatch.setattr("empirisk.clusters.dense_rows.PIECE", 1)
    monkeypatch.setattr("empirisk.clusters.dense_rows.SMALLEST_SHARE", 64)
    monkeypatch.setattr("empirisk.clusters.kmeans.SOME", 30)
    monkeypatch.setattr("empirisk.clusters.kmeans.SOME_AT_ONCE", 100)


INITS = [(kind, init) for kind in KINDS for init in ("k-means++", "assignment", "box", "splitting")]
INITS = [(kind, init) for kind, init in INITS if kind != "kernel" or init in ("k-means++", "assignment")]


@pytest.mark.usefixtures("long_rounds")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "init"), INITS)
def test_k_means_stopped_anywhere_has_rows_at_their_nearest_means(kind, init, monkeypatch):
    features, rows = KINDS[kind]
    plain = er.KMeans(5, features, init=init, n_init=2, max_iter=4, random_state=0)
    on_some, fit_some = [], er.KMeans._fit_some
    monkeypatch.setattr(er.KMeans, "_fit_some", lambda *args: on_some.append(args[0]) or fit_some(*args))
    with monkeypatch.context() as patience:
        looks = Looks(patience)
        clone(plain).fit(rows)
    assert looks.count > 15
    assert not on_some
    rounds = set()
    for last in range(0, looks.count, 1 + looks.count // 60):
        on_some.clear()
        with monkeypatch.context() as hurry:
            stopping = Looks(hurry, last)
            machine = clone(plain).fit(rows)
        assert stopping.count <= last + 10  # it ends soon after
        assert machine.stopped_ in ("max_time", "converged")
        assert machine.n_iter_ == len(machine.history_["changes"]) == len(machine.history_["inertia"])
        squares = machine.transform(rows).astype(float) ** 2
        own = squares[np.arange(len(squares)), machine.labels_]
        rounds.add(0 if on_some else machine.n_iter_)
        assert np.isfinite(own).all()
        if not on_some:
            # Of equally near means the own one wins; float32 has seven digits.
            np.testing.assert_allclose(own, squares.min(axis=1), rtol=1e-5, atol=1e-9)
            np.testing.assert_allclose(machine.inertia_, own.sum(), rtol=1e-5)
    assert {0, 1, 2} <= rounds


@pytest.mark.usefixtures("long_rounds")
@pytest.mark.parametrize("kind", KINDS)
def test_k_means_without_time_is_that_of_some_rows(kind, monkeypatch):
    monkeypatch.setattr("empirisk.clusters.kmeans.LABELLING_SECONDS", np.inf)
    evaluated, block = [], GramDesign.block
    monkeypatch.setattr(GramDesign, "block", lambda *args: evaluated.append(block(*args)) or evaluated[-1])
    features, rows = KINDS[kind]
    plain = er.KMeans(3, features, random_state=0)
    weights = np.random.default_rng(3).integers(0, 3, len(X)).astype(float)
    with pytest.warns(ConvergenceWarning, match=r"stopped \(max_time\) after 1 rounds"):
        machine = clone(plain).set_params(max_time=1e-9).fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(machine.labels_, machine.predict(rows))
    assert len(np.unique(machine.labels_)) == 3
    assert sum(part.size for part in evaluated) <= 30 * len(X)
    true = weights @ machine.transform(rows).astype(float).min(axis=1) ** 2
    np.testing.assert_allclose(machine.inertia_, true, rtol=0.5)
    np.testing.assert_array_equal(machine.history_["inertia"].shape, 1)
    if features is not None:
        assert set(machine.support_) <= set(np.flatnonzero(weights))
    Looks(monkeypatch, 0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        quick = clone(plain).fit(rows)
    assert len(np.unique(quick.labels_)) == 3  # as the rows near them, before any is compared with the means


@pytest.mark.usefixtures("long_rounds")
@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_within_a_round_of_k_means_keeps_what_is_there(kind, monkeypatch):
    features, rows = KINDS[kind]
    monkeypatch.setattr("empirisk.clusters.lloyd.fill_empty", pressed_before(fill_empty))
    machine = er.KMeans(5, features, n_init=1, random_state=0)
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match=r"stopped \(interrupted\) after 1 rounds"):
        machine.fit(rows)
    np.testing.assert_array_equal(machine.labels_, machine.predict(rows))


@pytest.mark.parametrize("kind", ["rows", "float32"])
def test_k_means_in_pieces_has_the_same_bits(kind, monkeypatch):
    features, rows = KINDS[kind]
    plain = er.KMeans(5, features, n_init=2, random_state=0)
    whole = clone(plain).fit(rows)
    monkeypatch.setattr("empirisk.clusters.dense_rows.PIECE", 1)
    pieces = clone(plain).fit(rows)
    for name in ("cluster_centers_", "labels_", "inertia_"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))


# --- plain refusals: what is wrong, and which machines it is wrong for ------------------------------------------------

EQUAL = np.repeat([[0.0, 1.0, 0.0, 2.0, 0.0, 0.5], [1.0, 0.0, 5.0, 1.0, 1.0, 1.5]], 20, axis=0)
CONSTANT = np.column_stack([X[:, :5], np.full(len(X), 3.0)])
HALVES = np.arange(len(X)) % 2
EVERY = [*MACHINES, *DENSITY]
DENSITIES = ("mixture", "density")
METRICS = ("contrastive metric", "large-margin metric")

CASES = {
    "nan": (np.where(np.arange(6) == 2, np.nan, X), {}, dict.fromkeys(EVERY, "NaN")),
    "infinite": (np.where(np.arange(6) == 2, np.inf, X), {}, dict.fromkeys(EVERY, "infinity")),
    "huge": (1e60 * X, {}, dict.fromkeys(EVERY, "X holds numbers as large as")),
    "vanishing column": (
        np.column_stack([X[:, :5], 5e-324 * HALVES]),
        {},
        dict.fromkeys(EVERY) | dict.fromkeys(DENSITIES, "Column 5 of X is constant"),
    ),
    "negative weights": (X, {"sample_weight": -np.ones(len(X))}, dict.fromkeys(EVERY, "sample_weight.*negative")),
    "no weights": (X, {"sample_weight": np.zeros(len(X))}, dict.fromkeys(EVERY, "sample_weight")),
    "one row": (
        X[:1],
        {},
        dict.fromkeys(EVERY, "one sample|n_samples=1|1 distinct rows|one class|at least two|1 sample")
        | {"dictionary": None},
    ),
    "equal rows": (
        EQUAL,
        {},
        dict.fromkeys(EVERY)
        | dict.fromkeys(["k-means", "mini-batches", "kernel k-means"], "n_clusters=5 exceeds the 2 distinct rows")
        | {"mixture": "n_components=3 exceeds the 2 distinct rows"},
    ),
    "fewer rows than columns": (X[:4], {}, dict.fromkeys(EVERY)
        | dict.fromkeys(["k-means", "mini-batches", "kernel k-means"], "n_clusters=5 exceeds the 4 distinct rows")),
    "constant column": (CONSTANT, {}, dict.fromkeys(EVERY) | dict.fromkeys(DENSITIES, "Column 5 of X is constant")),
    "nothing varies": (
        np.ones((40, 6)),
        {},
        dict.fromkeys(EVERY, "distinct|constant|equal")
        | dict.fromkeys(["dictionary", *METRICS, "hierarchical", "kernel hierarchical"]),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("case", CASES)
def test_rows_that_mean_nothing_are_refused_in_a_sentence_and_others_are_taken(case, name):
    rows, weights, refusals = CASES[case]
    machine = clone((MACHINES | DENSITY)[name]).fit(X, Y)
    before = dict(vars(machine))
    target = HALVES[: len(rows)]
    if refusals[name] is None:
        machine.fit(rows, target, **weights)
        return
    with pytest.raises(ValueError, match=refusals[name]) as caught:
        machine.fit(rows, target, **weights)
    assert str(caught.value).count("\n") <= 12  # scikit-learn's own sentence about NaN is the longest
    after = dict(vars(machine))
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before)


@pytest.mark.parametrize("linkage", ["single", "average"])
def test_a_tree_of_equal_rows_cannot_be_cut_into_more_clusters(linkage):
    with pytest.raises(EmpiriskError, match="n_clusters=3 exceeds the 2 distinct rows"):
        er.Hierarchical(linkage, n_clusters=3).fit(EQUAL)


# --- odd numbers and labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["contrastive metric", "large-margin metric"])
@pytest.mark.parametrize("labels", [["a", 1, "a", 1], ["a", None, "b", "a"]], ids=["mixed", "missing"])
def test_labels_of_several_kinds_are_refused_in_a_sentence(name, labels):
    with pytest.raises(EmpiriskError):
        clone(MACHINES[name]).fit(X[:4], np.array(labels, dtype=object))


@pytest.mark.parametrize("machine", [er.KMeans(2, er.kernels.Linear(), random_state=0), er.PCA(2, er.kernels.Linear())])
def test_fits_to_sparse_rows_answer_dense_ones(machine):
    sparse_rows = sparse.csr_array(np.where(X > 4, X, 0.0))
    machine = clone(machine).fit(sparse_rows)
    answer = machine.transform if isinstance(machine, er.PCA) else machine.predict
    np.testing.assert_allclose(answer(sparse_rows.toarray()), answer(sparse_rows), atol=1e-9)


@pytest.mark.parametrize("machine", [er.GaussianDensity(), er.GaussianMixture(1), er.GaussianMixture(2)])
def test_columns_that_do_not_vary_are_named_in_single_precision_too(machine):
    with pytest.raises(EmpiriskError, match="Column 0 of X is constant"):
        clone(machine).fit(np.zeros((8, 3), dtype=np.float32))


def test_batches_far_from_a_centre_do_not_overflow():
    far = rng.normal(size=(30, 2))
    far[7] = 1e40
    machine = er.KMeans(2, batch_size=5, random_state=0).fit(far)  # a warning would be an error
    assert np.all(np.isfinite(machine.cluster_centers_))


def test_single_precision_has_a_limit_that_is_told():
    with pytest.raises(EmpiriskError, match="divide them by their size"):
        clone(MACHINES["large-margin metric"]).fit(1e30 * X, Y)
