"""Nystrom features: projections on the span of the landmarks, and machines that stream over them."""

import time
import tracemalloc
from itertools import count

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import empirisk as er
from empirisk.errors import TooLarge
from empirisk.maps.streamed import SAMPLE
from empirisk.stop import listening_to

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 3))
Y = np.sin(X[:, 0]) + 0.1 * RANDOM.normal(size=300)


@pytest.mark.row("K12")
def test_contract():
    check_estimator(er.maps.Nystrom(rank=5, random_state=0))


@pytest.mark.row("K12")
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "leverage"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_the_projection_on_the_landmarks(landmarks, dtype):
    kernel = er.kernels.Gaussian(1.5)
    phi = er.maps.Nystrom(kernel, 20, landmarks, random_state=0).fit(X.astype(dtype))
    features = phi.transform(X.astype(dtype))
    assert features.dtype == dtype
    cross = kernel.block(X, phi.landmarks_)
    expected = cross @ np.linalg.pinv(kernel.block(np.asarray(phi.landmarks_, dtype=float)), rcond=1e-9) @ cross.T
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-6 if dtype == np.float64 else 2e-3)
    exact = kernel.block(X)
    gap = np.linalg.eigvalsh(exact - np.asarray(features, dtype=float) @ features.T)
    assert gap.min() > -1e-3 * len(X) ** 0.5 if dtype == np.float32 else gap.min() > -1e-9
    whole = np.linalg.norm(exact - features @ features.T) / np.linalg.norm(exact)
    assert phi.error_ == pytest.approx(whole, rel=1e-2)  # 300 rows are all in the sample


def test_all_rows_as_landmarks_are_exact():
    phi = er.maps.Nystrom(er.kernels.Gaussian(0.7), rank=1000).fit(X)
    assert phi.error_ < 1e-9
    exact = er.Ridge(C=2.0, features=er.kernels.Gaussian(0.7)).fit(X, Y)
    mapped = er.Ridge(C=2.0, features=er.maps.Nystrom(er.kernels.Gaussian(0.7), rank=1000)).fit(X, Y)
    np.testing.assert_allclose(mapped.predict(X), exact.predict(X), atol=1e-6)
    assert mapped.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-6)


def test_more_landmarks_err_less_and_chosen_ones_less_than_random_ones():
    kernel = er.kernels.Gaussian(1.0)
    errors = [er.maps.Nystrom(kernel, rank, random_state=0).fit(X).error_ for rank in (5, 20, 80)]
    assert errors == sorted(errors, reverse=True)
    cloud = np.vstack([0.05 * RANDOM.normal(size=(970, 2)), 4 + 0.3 * RANDOM.normal(size=(30, 2))])
    mean = {
        way: np.mean([er.maps.Nystrom(kernel, 6, way, random_state=seed).fit(cloud).error_ for seed in range(10)])
        for way in ("uniform", "leverage", "kmeans")
    }
    assert mean["leverage"] < mean["uniform"]
    assert mean["kmeans"] < mean["uniform"]


def test_given_landmarks_names_and_output():
    phi = er.maps.Nystrom(er.kernels.Gaussian(), landmarks=X[:7]).set_output(transform="pandas").fit(X)
    frame = phi.transform(X)
    assert list(frame.columns) == [f"nystrom{j}" for j in range(7)]
    np.testing.assert_allclose((frame @ frame.T).to_numpy()[:7, :7], er.kernels.Gaussian()(X[:7]), atol=1e-8)


def test_sparse_rows_strings_and_functions():
    thin = sparse.csr_matrix(X * (X > 0))
    np.testing.assert_allclose(
        er.maps.Nystrom(rank=9, random_state=0).fit_transform(thin),
        er.maps.Nystrom(rank=9, random_state=0).fit_transform(thin.toarray()),
        atol=1e-6,
    )
    function = er.maps.Nystrom(lambda x, z: float(x @ z), rank=3, random_state=0).fit(X)
    assert function.error_ < 1e-6


def test_bad_arguments_are_sentences():
    with pytest.raises(ValueError, match="landmarks='best' must be one of"):
        er.maps.Nystrom(landmarks="best").fit(X)
    with pytest.raises(ValueError, match="rank=0"):
        er.maps.Nystrom(rank=0).fit(X)


@pytest.mark.row("K12")
@pytest.mark.parametrize(
    ("machine", "target"),
    [
        (er.Ridge(C=3.0), Y),
        (er.SVM(C=3.0), Y > 0),
        (er.LogisticRegression(C=3.0), Y > 0),
        (er.SVR(C=3.0), Y),
        (er.Classifier("squared_hinge", penalty="l1"), Y > 0),
        (er.LogisticRegression(), np.digitize(Y, [-0.5, 0.5])),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_streaming_changes_the_memory_not_the_machine(machine, target):
    machine = clone(machine).set_params(features=er.maps.Nystrom(er.kernels.Gaussian(1.5), 30, random_state=0))
    kept = clone(machine).fit(X, target)
    with er.config(memory="260KB"):
        streamed = clone(machine).fit(X, target)
        scores = streamed.decision_function(X) if hasattr(streamed, "decision_function") else streamed.predict(X)
    assert streamed.certificate_.converged
    assert streamed.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=2e-6)
    expected = kept.decision_function(X) if hasattr(kept, "decision_function") else kept.predict(X)
    np.testing.assert_allclose(scores, expected, atol=2e-3)


@pytest.mark.row("K12")
def test_ridge_streams_within_the_budget():
    rows, rank = 60_000, 64
    data = RANDOM.normal(size=(rows, 2))
    machine = er.Ridge(features=er.maps.Nystrom(er.kernels.Gaussian(2.0), rank, random_state=0))
    with er.config(memory="40MB"):
        tracemalloc.start()
        machine.fit(data, np.sin(data[:, 0]))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert machine.certificate_.converged
    assert peak < 8 * rows * rank  # less than phi(X) alone would take
    assert machine.score(data, np.sin(data[:, 0])) > 0.99


def test_row_by_row_solvers_refuse_what_does_not_fit():
    machine = er.SVM(features=er.maps.Nystrom(er.kernels.Gaussian(), rank=30, random_state=0), solver="dual_ascent")
    with er.config(memory="60KB"), pytest.raises(TooLarge, match="features of 300 rows"):
        machine.fit(X, Y > 0)


@pytest.mark.row("K12")
def test_centres_of_k_means_are_rows_for_every_kernel_on_vectors():
    table = np.random.default_rng(0).normal(size=(60, 3))
    gaussian = er.kernels.Gaussian(1.5)
    for kernel in (gaussian.on([1, 2]), gaussian + er.kernels.Linear(), er.kernels.Anova(gaussian), lambda x, z: x @ z):
        phi = er.maps.Nystrom(kernel, rank=60, landmarks="kmeans", random_state=0).fit(table)
        assert phi.landmarks_.shape == (60, 3)
        np.testing.assert_allclose(phi.transform(table) @ phi.transform(table).T, phi.kernel_(table), atol=1e-6)
    with pytest.raises(ValueError, match="needs vectors"):
        er.maps.Nystrom(er.kernels.Spectrum(2), landmarks="kmeans").fit(["ab", "ba"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [er.maps.Nystrom, er.maps.RandomFourier])
@pytest.mark.parametrize(
    "machine", [er.SVM(multiclass="one_vs_one"), er.LogisticRegression(fit_intercept=False), er.Ridge()]
)
def test_the_time_of_a_fit_is_that_of_its_features_too(kind, machine, monkeypatch):
    """A clock that goes on by a second with every look: features are left half made, and the machine answers."""
    random = np.random.default_rng(0)
    rows, target = random.normal(size=(3000, 3)), random.integers(0, 3, 3000)
    features = kind("gaussian", rank=20, random_state=0).fit(rows)
    seconds, made = count(), []

    def raw(self, items, basis):
        made.append(len(items))
        return make(self, items, basis)

    make = kind.raw
    monkeypatch.setattr(kind, "raw", raw)
    monkeypatch.setattr("empirisk.maps.streamed.BLOCK_BYTES", 0)  # the fewest rows at a time
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(seconds)))
    late = clone(machine).set_params(features=features, max_time=10.0).fit(rows, target)
    assert late.stopped_ == late.certificate_.status == "max_time"
    assert sum(made) < SAMPLE + len(rows)
    assert np.isfinite(late.predict(rows[:3])).all()
    assert late.coef_.shape[-1] == features.transform(rows[:1]).shape[1]


@pytest.mark.parametrize("machine", [er.Ridge(), er.KMeans(3), er.PCA(2), er.OneClassSVM()], ids=repr)
@pytest.mark.parametrize("landmarks", ["uniform", "leverage"])
def test_a_map_that_learns_beyond_the_time_is_left(monkeypatch, machine, landmarks):
    monkeypatch.setattr("empirisk.contract.features.MAP_LEARNING_SECONDS", 0.0)
    late = clone(machine).set_params(features=er.maps.Nystrom("gaussian", 50, landmarks), max_time=1e-9)
    with pytest.raises(er.errors.EmpiriskError, match=r"max_time=1e-09 s were over before features=Nystrom.*raise it"):
        late.fit(X, Y)
    assert not hasattr(late, "features_")


@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "kmeans"])
def test_ctrl_c_leaves_a_map_that_learns(landmarks):
    machine = er.Ridge(features=er.maps.Nystrom("gaussian", 50, landmarks), max_time=60.0)
    with listening_to(lambda: True), pytest.raises(KeyboardInterrupt):
        machine.fit(X, Y)


def test_leverage_scores_in_single_precision_are_found_where_rows_nearly_agree():
    """Rounding of a kernel in single precision leaves eigenvalues far below zero: the ridge is above it."""
    for seed in range(8):
        X = (0.01 * np.random.default_rng(seed).normal(size=(8, 1))).astype(np.float32)
        found = er.maps.Nystrom(er.kernels.Gaussian(), rank=4, landmarks="leverage", random_state=0).fit(X)
        assert np.isfinite(found.transform(X)).all()
