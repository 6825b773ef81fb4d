"""One Gaussian and mixtures: likelihoods by SciPy, scikit-learn's optima, rounds, weights, floors, refusals."""

import signal

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Theirs

import empirisk as er
from empirisk.clusters.expectation import Moments
from empirisk.errors import EmpiriskError
from tests.callbacks import Watching
from tests.estimator_checks import check_contract

RANDOM = np.random.default_rng(0)
X = np.concatenate(
    [
        RANDOM.normal(size=(150, 3)) @ [[1.0, 0.5, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 2.0]],
        RANDOM.normal(size=(100, 3)) * [0.5, 2.0, 0.2] + [4.0, 1.0, -2.0],
        RANDOM.normal(loc=[-3.0, 5.0, 3.0], size=(50, 3)),
    ]
)
TYPES = {"full": "full", "tied": "tied", "diagonal": "diag", "spherical": "spherical"}


@pytest.mark.parametrize(
    "machine",
    [er.GaussianDensity(), er.GaussianDensity("spherical"), er.GaussianMixture(), er.GaussianMixture(2, "tied")],
    ids=repr,
)
def test_the_contract_holds(machine):
    check_contract(machine, least=40)


# --- one Gaussian -----------------------------------------------------------------------------------------------------


@pytest.mark.row("U6")
def test_maximum_likelihood():
    full = er.GaussianDensity().fit(X)
    np.testing.assert_allclose(full.mean_, X.mean(axis=0))
    np.testing.assert_allclose(full.covariance_, np.cov(X.T, bias=True))
    np.testing.assert_allclose(full.score_samples(X), multivariate_normal(full.mean_, full.covariance_).logpdf(X))
    diagonal = er.GaussianDensity("diagonal").fit(X)
    np.testing.assert_allclose(diagonal.covariance_, X.var(axis=0))
    spherical = er.GaussianDensity("spherical").fit(X)
    # One variance: the squared distances to the mean, divided by n * d.
    assert spherical.covariance_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum() / X.size)
    for density in (full, diagonal, spherical):
        best = density.score(X)
        for factor in (0.97, 1.03):  # nothing near is more likely
            other = er.GaussianDensity(density.covariance_type).fit(X)
            other.covariance_ = density.covariance_ * factor
            assert other.score(X) < best


@pytest.mark.row("U6")
@pytest.mark.row("U8")
@pytest.mark.parametrize("quantile", [0.0, 0.05, 0.3])
def test_anomalies_are_below_the_quantile(quantile):
    density = er.GaussianDensity(quantile=quantile).fit(X)
    outside = density.predict(X) == -1
    assert outside.mean() <= quantile
    assert outside.mean() > quantile - 0.01
    np.testing.assert_array_equal(density.decision_function(X), density.score_samples(X) - density.offset_)
    assert density.predict([[100.0, 0.0, 0.0]]) == -1
    mixture = er.GaussianMixture(3, quantile=quantile, random_state=0).fit(X)
    assert quantile - 0.01 < mixture.anomalies(X).mean() <= quantile
    assert mixture.anomalies([[100.0, 0.0, 0.0]])


@pytest.mark.row("U8")
def test_densities_and_the_one_class_machine_agree_on_what_is_strange():
    rows = np.concatenate([X[:60], [[30.0, 30.0, 30.0]]])
    detectors = [er.GaussianDensity(), er.OneClassSVM(nu=0.1, features=er.kernels.Gaussian(3.0))]
    assert [detector.fit(X[:60]).predict(rows)[-1] for detector in detectors] == [-1, -1]


def test_samples_have_the_moments():
    density = er.GaussianDensity().fit(X)
    rows = density.sample(20_000, random_state=0)
    np.testing.assert_allclose(rows.mean(axis=0), density.mean_, atol=0.1)
    np.testing.assert_allclose(np.cov(rows.T), density.covariance_, atol=0.4)


# --- mixtures ---------------------------------------------------------------------------------------------------------


@pytest.mark.row("U7")
@pytest.mark.parametrize("form", TYPES)
def test_one_component_is_maximum_likelihood(form):
    mixture = er.GaussianMixture(1, form).fit(X)
    density = er.GaussianDensity("full" if form == "tied" else form).fit(X)
    np.testing.assert_allclose(mixture.means_[0], density.mean_)
    covariance = mixture.covariances_ if form == "tied" else mixture.covariances_[0]
    np.testing.assert_allclose(covariance, density.covariance_)
    np.testing.assert_allclose(mixture.score_samples(X), density.score_samples(X))
    assert mixture.converged_


@pytest.mark.row("U7")
@pytest.mark.parametrize("form", TYPES)
def test_the_optimum_is_scikit_learns(form):
    start = X[[0, 200, 270]]
    ours = er.GaussianMixture(3, form, init=start, tol=1e-13, max_iter=5000)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        first = clone(ours).set_params(max_iter=1).fit(X)
    ours.fit(X)
    # From the same components: their own start draws at random beside the means that it is given.
    kept = first.covariances_
    begin = {
        "weights_init": first.weights_,
        "means_init": first.means_,
        "precisions_init": np.linalg.inv(kept) if form in ("full", "tied") else 1 / kept,
    }
    theirs = Theirs(3, covariance_type=TYPES[form], reg_covar=0.0, tol=1e-13, max_iter=5000, **begin).fit(X)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-8)
    order, other = (np.argsort(m.means_[:, 0]) for m in (ours, theirs))
    np.testing.assert_allclose(ours.means_[order], theirs.means_[other], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.weights_[order], theirs.weights_[other], rtol=1e-4)
    assert ours.covariances_.shape == theirs.covariances_.shape
    if form != "tied":
        np.testing.assert_allclose(ours.covariances_[order], theirs.covariances_[other], rtol=1e-3, atol=1e-5)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-7)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-7)
    # Densities from their definition.
    terms = [
        weight * multivariate_normal(mean, covariance).pdf(X)
        for weight, mean, covariance in zip(ours.weights_, ours.means_, ours.whole_covariances(), strict=True)
    ]
    np.testing.assert_allclose(np.exp(ours.score_samples(X)), sum(terms))
    np.testing.assert_allclose(ours.predict_proba(X), (np.array(terms) / sum(terms)).T, atol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), ours.predict_proba(X).argmax(axis=1))


@pytest.mark.row("U7")
@pytest.mark.parametrize("form", TYPES)
@pytest.mark.parametrize("init", ["k-means", "random"])
def test_the_likelihood_never_falls(form, init):
    rows = load_iris().data
    mixture = er.GaussianMixture(4, form, init=init, n_init=2, tol=1e-8, max_iter=1000, random_state=1).fit(rows)
    likelihood = mixture.history_["log_likelihood"]
    assert np.diff(likelihood).min() >= -1e-11
    assert mixture.lower_bound_ == pytest.approx(mixture.score(rows), rel=1e-9)
    assert mixture.weights_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("form", TYPES)
def test_weights_are_repetition(form):
    amounts = np.random.default_rng(1).integers(0, 4, size=len(X))
    order = np.random.default_rng(2).permutation(len(X))
    machine = er.GaussianMixture(3, form, n_init=2, random_state=0)
    repeated = machine.fit(np.repeat(X, amounts, axis=0)).predict_proba(X)
    weighted = machine.fit(X[order], sample_weight=amounts[order])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated, atol=1e-8)
    if form != "tied":
        density = er.GaussianDensity(form, quantile=0.2)
        one = density.fit(np.repeat(X, amounts, axis=0)).decision_function(X)
        np.testing.assert_allclose(density.fit(X, sample_weight=amounts).decision_function(X), one)


def test_as_likely_as_scikit_learns_at_its_defaults():
    for seed in range(3):
        rows, _ = make_blobs(400, 4, centers=5, cluster_std=1.5, random_state=seed)
        ours = er.GaussianMixture(5, random_state=0).fit(rows)
        theirs = Theirs(5, random_state=0).fit(rows)
        assert ours.score(rows) >= theirs.score(rows) - 1e-4


def test_a_component_cannot_shrink_to_a_point():
    """Five equal rows would have an infinite density: their variance stays at the floor."""
    rows = np.concatenate([X, np.tile([[20.0, 20.0, 20.0]], (5, 1))])
    mixture = er.GaussianMixture(2, init=np.array([[0.0, 0.0, 0.0], [20.0, 20.0, 20.0]]), max_iter=100).fit(rows)
    values = np.linalg.eigvalsh(mixture.covariances_)
    assert np.isfinite(mixture.score(rows))
    assert values.min() >= 0.9e-6 * rows.var(axis=0).min()
    assert np.diff(mixture.history_["log_likelihood"]).min() >= -1e-11


def test_a_lost_component_is_put_elsewhere():
    """Two starts far from all rows get none; the fit still ends with three components that have rows."""
    start = np.array([[0.0, 0.0, 0.0], [1e3, 1e3, 1e3], [-1e3, 1e3, 0.0]])
    mixture = er.GaussianMixture(3, init=start).fit(X)
    assert mixture.weights_.min() * len(X) > 3
    assert mixture.lower_bound_ > er.GaussianMixture(1).fit(X).lower_bound_ + 0.5
    assert np.diff(mixture.history_["log_likelihood"]).min() >= -1e-11


def test_samples_come_from_the_components():
    mixture = er.GaussianMixture(3, random_state=0).fit(X)
    rows, labels = mixture.sample(6000, random_state=0)
    np.testing.assert_allclose(np.bincount(labels) / 6000, mixture.weights_, atol=0.03)
    assert mixture.score(rows) == pytest.approx(mixture.score(X), abs=0.1)
    assert (mixture.predict(rows) == labels).mean() > 0.95


def test_the_same_bits_on_any_number_of_threads_and_float32():
    rows = np.random.default_rng(0).normal(size=(9000, 2)) * np.random.default_rng(1).choice([1, 4], size=(9000, 1))
    found = []
    for threads in (1, 3):
        with er.config(threads=threads):
            mixture = er.GaussianMixture(2, random_state=0).fit(rows)
            found.append((mixture.means_, mixture.covariances_, mixture.score_samples(rows)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    single = er.GaussianMixture(2, random_state=0).fit(rows.astype(np.float32))
    np.testing.assert_allclose(single.covariances_, found[0][1], rtol=1e-3, atol=1e-3)


def test_a_round_is_that_of_the_formulas():
    labels = np.arange(len(X)) % 3
    moments = Moments(X, np.ones(len(X)), "full", 1e-9)
    start = moments.of_cells(labels, X[:3])
    for k in range(3):
        np.testing.assert_allclose(start.means[k], X[labels == k].mean(axis=0))
        np.testing.assert_allclose(start.whole[k], np.cov(X[labels == k].T, bias=True))
    terms = np.array(
        [w * multivariate_normal(m, s).pdf(X) for w, m, s in zip(start.weights, start.means, start.whole, strict=True)]
    )
    likelihood, following = moments.round(start)
    assert likelihood == pytest.approx(np.log(terms.sum(axis=0)).mean())
    shares = terms / terms.sum(axis=0)
    np.testing.assert_allclose(following.weights, shares.mean(axis=1))
    for k in range(3):
        np.testing.assert_allclose(following.means[k], shares[k] @ X / shares[k].sum())
        np.testing.assert_allclose(following.whole[k], np.cov(X.T, aweights=shares[k], bias=True))


class Presser(Watching):
    """Presses Ctrl-C, or stops the fit, after the second round."""

    def __init__(self, press):
        self.rounds, self.press = 0, press

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "round":
            self.rounds += 1
            assert np.isfinite(fitted_estimator.score_samples(X)).all()
            if self.press and self.rounds == 2:
                signal.raise_signal(signal.SIGINT)
        return not self.press and self.rounds == 2


def test_limits_interrupts_and_callbacks():
    machine = er.GaussianMixture(3, init="random", random_state=0)
    with (
        er.config(interrupt="keep"),
        pytest.warns(ConvergenceWarning, match=r"GaussianMixture was stopped \(interrupted\) after 2 rounds") as seen,
    ):
        machine.set_callbacks(Presser(True)).fit(X)
    assert seen[0].filename == __file__
    assert machine.lower_bound_ == pytest.approx(machine.score(X))
    stopped = er.GaussianMixture(3, init="random", random_state=0).set_callbacks(Presser(False)).fit(X)
    assert (stopped.stopped_, stopped.n_iter_) == ("callback", 2)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        er.GaussianMixture(3, init="random", max_time=1e-9, random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        er.GaussianMixture(3, init="random", max_iter=2, random_state=0).fit(X)


@pytest.mark.parametrize("kind", [er.GaussianDensity, er.GaussianMixture])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0]], "more than one sample"),
        ([[1.0, 2.0], [1.0, 3.0], [1.0, 5.0]], "Column 0 of X is constant"),
        ([[np.nan], [1.0]], "NaN"),
    ],
)
def test_rows_without_a_density_are_refused(kind, rows, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(rows)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (er.GaussianDensity("tied"), "covariance_type='tied' is not known"),
        (er.GaussianDensity(quantile=1.0), "quantile=1.0"),
        (er.GaussianMixture(0), "n_components=0"),
        (er.GaussianMixture(301), "n_components=301 exceeds the 300 distinct rows"),
        (er.GaussianMixture(init="best"), "init='best'"),
        (er.GaussianMixture(2, init=np.zeros((3, 3))), "2 finite means of 3 columns"),
        (er.GaussianMixture(reg_covar=0.0), "reg_covar=0.0"),
        (er.GaussianMixture(covariance_type="round"), "covariance_type='round'"),
        (
            er.GaussianMixture(reg_covar=5e-324),
            "reg_covar=5e-324 is below 1e-14, where variances are rounding; give at least",
        ),
        (er.GaussianDensity(reg_covar=1e-100), "reg_covar=1e-100 is below 1e-14, .* or 0 for none"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(machine, message):
    with pytest.raises(EmpiriskError, match=message):
        machine.fit(X)


def test_rows_that_leave_a_direction_without_variance_need_a_floor_or_a_diagonal():
    few = np.random.default_rng(0).normal(size=(4, 10))
    dependent = np.column_stack([X, X @ [1.0, 2.0, 0.5]])
    for rows in (few, dependent):
        with pytest.raises(
            EmpiriskError, match=r"covariance_type='diagonal', or a reg_covar above 0, such as reg_covar=1e-6"
        ):
            er.GaussianDensity(reg_covar=0.0).fit(rows)
        for machine in (er.GaussianDensity("diagonal", reg_covar=0.0), er.GaussianDensity(), er.GaussianMixture(2)):
            assert np.isfinite(machine.fit(rows).score(rows))


@pytest.mark.parametrize("floor", [1e-14, 1e-12])
@pytest.mark.parametrize("columns", [2, 40])
def test_the_smallest_floors_leave_a_density_where_columns_depend_on_each_other(floor, columns):
    random = np.random.default_rng(0)
    dependent = random.normal(size=(60, 1)) * random.normal(size=columns)
    for machine in (er.GaussianDensity(reg_covar=floor), er.GaussianMixture(2, reg_covar=floor, random_state=0)):
        assert np.isfinite(machine.fit(dependent).score(dependent))
    one_hot = np.eye(2)[random.integers(0, 2, 30)]
    assert np.isfinite(er.GaussianDensity(reg_covar=floor).fit(one_hot).score(one_hot))
