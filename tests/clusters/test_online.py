"""Learning on the fly: `partial_fit` and `warm_start` of k-means and mixtures."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

import empirisk as er
from empirisk.errors import EmpiriskError

pytestmark = pytest.mark.row("L16")

X, _ = make_blobs(3000, 3, centers=4, cluster_std=2.0, random_state=1)
TYPES = ["full", "tied", "diagonal", "spherical"]


def in_parts(machine, rows, parts):
    for part in np.array_split(np.arange(rows.shape[0]), parts):
        machine.partial_fit(rows[part])
    return machine


# --- k-means ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_means_of_clusters_are_those_of_all_rows_that_they_were_given(dtype):
    machine = er.KMeans(4, random_state=0).partial_fit(X[:100].astype(dtype))
    means, counts = machine.cluster_centers_.copy(), machine.counts_.copy()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=200)
    for start in (100, 150, 200, 250):
        rows, amounts = X[start : start + 50].astype(dtype), weights[start - 100 : start - 50]
        machine.partial_fit(rows, sample_weight=amounts)
        labels = ((rows[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
        for k in range(4):
            given = amounts[labels == k]
            total = counts[k] + given.sum()
            means[k] = (counts[k] * means[k] + given @ rows[labels == k]) / total
            counts[k] = total
        np.testing.assert_allclose(machine.cluster_centers_, means, rtol=1e-6)
        np.testing.assert_allclose(machine.counts_, counts)
    assert machine.n_iter_ == len(machine.history_["inertia"]) == 5
    assert machine.stopped_ == "partial_fit"
    np.testing.assert_array_equal(machine.labels_, machine.predict(rows))


@pytest.mark.parametrize("parts", [1, 30, 600])
def test_k_means_comes_near_a_fit_of_all_rows(parts):
    best = er.KMeans(4, random_state=0).fit(X).inertia_
    assert -in_parts(er.KMeans(4, random_state=0), X, parts).score(X) <= 1.05 * best


def test_k_means_takes_sparse_rows_and_maps():
    thin = np.where(np.abs(X) > 4, X, 0.0)
    dense = in_parts(er.KMeans(4, random_state=0), thin, 10)
    thinly = in_parts(er.KMeans(4, random_state=0), sparse.csr_array(thin), 10)
    np.testing.assert_allclose(dense.cluster_centers_, thinly.cluster_centers_, atol=1e-8)
    scaled = in_parts(er.KMeans(4, features=StandardScaler(), random_state=0), X, 10)
    np.testing.assert_allclose(scaled.features_.mean_, X[:300].mean(axis=0))


def test_k_means_goes_on_after_a_fit():
    machine = er.KMeans(4, random_state=0).fit(X)
    before = machine.cluster_centers_.copy()
    machine.partial_fit(X[:1])
    assert 0 < np.abs(machine.cluster_centers_ - before).max() < 0.05
    assert machine.counts_.sum() == 3001
    machine.set_params(n_clusters=3).partial_fit(X[:100])  # another number: anew
    assert machine.cluster_centers_.shape == (3, 3)


def test_rows_without_weight_do_not_move_means():
    weights = np.where(np.arange(100) % 3 == 0, 0.0, 1.0)
    first, second = (er.KMeans(4, random_state=0).partial_fit(X[:100]) for _ in range(2))
    first.partial_fit(X[100:200], sample_weight=weights)
    second.partial_fit(X[100:200][weights > 0])
    np.testing.assert_allclose(first.cluster_centers_, second.cluster_centers_, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"features": er.kernels.Gaussian(10.0)}, {"batch_size": 50}])
def test_k_means_begins_where_it_has_ended(options):
    rows = X[:500]
    machine = er.KMeans(4, random_state=0, warm_start=True, **options).fit(rows)
    inertia, rounds = machine.inertia_, machine.n_iter_
    machine.fit(rows)
    assert machine.inertia_ <= inertia * (1 + 0.02 * ("batch_size" in options))
    if not options:
        assert machine.n_iter_ < max(rounds, 3)
    machine.fit(X[500:900])  # other rows
    machine.set_params(n_clusters=5).fit(X[500:900])  # another number: anew
    assert len(np.unique(machine.labels_)) == 5


# --- mixtures ---------------------------------------------------------------------------------------------------------


def test_a_step_is_that_of_the_mean_sums():
    machine = er.GaussianMixture(2, random_state=0).partial_fit(X[:300])
    w, m, S = machine.weights_.copy(), machine.means_.copy(), machine.covariances_.copy()
    rows, weights = X[300:400], np.random.default_rng(0).uniform(0.5, 2.0, size=100)
    machine.partial_fit(rows, sample_weight=weights)
    share = (weights.sum() / (300 + weights.sum())) ** 0.7
    logs = np.log(w) + np.stack(
        [
            -0.5 * np.einsum("ij,jk,ik->i", rows - m[k], np.linalg.inv(S[k]), rows - m[k])
            - 0.5 * np.linalg.slogdet(2 * np.pi * S[k])[1]
            for k in range(2)
        ],
        axis=1,
    )
    np.testing.assert_allclose(machine.lower_bound_, np.average(logsumexp(logs, axis=1), weights=weights))
    shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) * (weights / weights.sum())[:, None]
    for k in range(2):
        zero = share * shares[:, k].sum() + (1 - share) * w[k]
        one = share * shares[:, k] @ rows + (1 - share) * w[k] * m[k]
        two = share * (shares[:, [k]] * rows).T @ rows + (1 - share) * w[k] * (S[k] + np.outer(m[k], m[k]))
        np.testing.assert_allclose(machine.weights_[k], zero)
        np.testing.assert_allclose(machine.means_[k], one / zero)
        np.testing.assert_allclose(machine.covariances_[k], two / zero - np.outer(one, one) / zero**2, rtol=1e-6)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_mixtures_come_near_a_fit_of_all_rows(covariance_type):
    machine = er.GaussianMixture(4, covariance_type, random_state=0)
    best, first = clone(machine).fit(X).score(X), clone(machine).fit(X[:100]).score(X)
    many = in_parts(clone(machine), X, 30).score(X)
    single = in_parts(clone(machine).partial_fit(X[:100]), X[100:], 2900).score(X)
    assert best - 0.01 <= many <= best + 1e-3
    assert best - 0.05 <= single
    assert single > first


def test_what_is_told_of_a_mixture_in_the_midst():
    machine = in_parts(er.GaussianMixture(4, random_state=0), X, 10)
    assert machine.n_iter_ == len(machine.history_["log_likelihood"]) == 10
    assert machine.stopped_ == "partial_fit"
    assert not machine.converged_
    np.testing.assert_allclose(machine.seen_["weight"], 3000)
    np.testing.assert_allclose(machine.seen_["mean"], X.mean(axis=0))
    np.testing.assert_allclose(machine.seen_["variances"], X.var(axis=0))
    assert 0.02 < machine.anomalies(X).mean() < 0.1
    fitted = er.GaussianMixture(4, random_state=0).fit(X)
    before = fitted.means_.copy()
    assert 0 < np.abs(fitted.partial_fit(X[:3]).means_ - before).max() < 0.5


@pytest.mark.parametrize("covariance_type", TYPES)
def test_mixtures_begin_where_they_have_ended(covariance_type):
    machine = er.GaussianMixture(4, covariance_type, random_state=0, n_init=3, warm_start=True).fit(X[:1000])
    likelihood, rounds = machine.lower_bound_, machine.n_iter_
    machine.fit(X[:1000])
    assert machine.n_iter_ < rounds
    assert machine.lower_bound_ >= likelihood - 1e-10
    machine.fit(X[1000:])
    machine.fit(X[:500, :2])  # other columns, and another form: anew
    machine.set_params(covariance_type="full", n_components=2).fit(X[:500])
    assert machine.converged_


# --- both -------------------------------------------------------------------------------------------------------------

MACHINES = [er.KMeans(4, random_state=0), *(er.GaussianMixture(4, form, random_state=0) for form in TYPES)]


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_a_file_in_the_midst_goes_on_to_the_same_bits(machine, tmp_path):
    machine = in_parts(clone(machine), X[:600], 6)
    er.save(machine, tmp_path / "a.model")
    loaded = er.load(tmp_path / "a.model")
    for one in (machine, loaded):
        in_parts(one, X[600:1200], 6)
    np.testing.assert_array_equal(machine.predict(X), loaded.predict(X))
    name = "means_" if hasattr(machine, "means_") else "cluster_centers_"
    np.testing.assert_array_equal(getattr(machine, name), getattr(loaded, name))


@pytest.mark.parametrize("machine", MACHINES[:2], ids=repr)
def test_bad_calls_are_refused_and_change_nothing(machine):
    with pytest.raises(EmpiriskError, match="exceeds the 2"):
        clone(machine).partial_fit(X[:2])
    machine = clone(machine).partial_fit(X[:100])
    before = dict(vars(machine))
    with pytest.raises(ValueError, match="X has 2 features"):
        machine.partial_fit(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        machine.partial_fit(X * np.nan)
    with pytest.raises(EmpiriskError, match="zero for every row"):
        machine.partial_fit(X, sample_weight=np.zeros(3000))
    with pytest.raises(EmpiriskError, match="warm_start=1 must be True or False"):
        clone(machine).set_params(warm_start=1).fit(X)
    assert dict(vars(machine)) == before


def test_time_that_is_over_is_told_and_changes_nothing():
    rows = np.random.default_rng(0).normal(size=(300_000, 20))
    machine = er.GaussianMixture(8, random_state=0).partial_fit(rows[:1000])
    before = dict(vars(machine))
    machine.max_time = 1e-6
    with pytest.raises(EmpiriskError, match="give fewer rows, or raise it"):
        machine.partial_fit(rows)
    machine.max_time = None
    assert dict(vars(machine)) == before


def test_behind_a_kernel_there_is_no_partial_fit():
    assert not hasattr(er.KMeans(features="gaussian"), "partial_fit")
    assert hasattr(er.KMeans(features=er.maps.Nystrom(er.kernels.Gaussian(), rank=10)), "partial_fit")
