"""The one-class machine against a general solver, libsvm, and its own promises about nu."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM as LibsvmOneClass

import empirisk as er
from tests.estimator_checks import check_contract
from tests.truth import ACCURACY

pytestmark = pytest.mark.row("K11")
KERNELS = [er.kernels.Gaussian.from_gamma(0.5), er.kernels.Polynomial(2), er.kernels.Laplacian(1.0)]


def rows(n=80, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 3)) + np.array([2.0, 0.0, 0.0])


def optimum(K, nu, weights):
    """The smallest  1/2 |w|^2 - rho + 1/(nu n) sum_i c_i max(0, rho - f_i)  on features V S^1/2 of K = V S V'."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    w, rho = cp.Variable(features.shape[1]), cp.Variable()
    missing = weights @ cp.pos(rho - features @ w) / (nu * weights.sum())
    return float(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) - rho + missing)).solve(cp.CLARABEL, **ACCURACY))


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.77])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [*KERNELS, None], ids=repr)
def test_the_optimum_is_that_of_a_general_solver(kernel, weighted, nu):
    X = rows()
    weights = np.random.default_rng(1).uniform(0.2, 2.0, len(X)) if weighted else np.ones(len(X))
    machine = er.OneClassSVM(nu=nu, features=kernel).fit(X, sample_weight=weights)
    best = optimum((er.kernels.Linear() if kernel is None else kernel)(X), nu, weights)
    certificate = machine.certificate_
    assert certificate.converged
    assert certificate.primal == pytest.approx(best, rel=1e-6)
    assert certificate.dual <= best + 1e-9 * abs(best)
    outside = weights[machine.predict(X) < 0].sum() / weights.sum()
    assert outside <= nu + 1e-12
    assert weights[machine.support_].sum() / weights.sum() >= nu - 1e-12


def test_it_is_libsvm_s_up_to_scale():
    X = rows(300)
    machine = er.OneClassSVM(nu=0.2, features=KERNELS[0]).fit(X)
    rival = LibsvmOneClass(nu=0.2, gamma=0.5, tol=1e-9).fit(X)
    scale = 0.2 * 300
    np.testing.assert_allclose(scale * machine.score_samples(X), rival.score_samples(X), rtol=1e-4)
    assert scale * machine.offset_ == pytest.approx(float(rival.offset_[0]), rel=1e-4)
    np.testing.assert_allclose(machine.decision_function(X), machine.score_samples(X) - machine.offset_)
    assert np.mean(machine.predict(X) == rival.predict(X)) > 0.9  # theirs puts rows on the boundary anywhere


def test_explicit_features_and_the_linear_kernel_agree():
    X = rows()
    plain = er.OneClassSVM(nu=0.2, features=None).fit(X)
    kernel = er.OneClassSVM(nu=0.2, features="linear").fit(X)
    mapped = er.OneClassSVM(nu=0.2, features=er.maps.Polynomial(2)).fit(X)
    np.testing.assert_allclose(plain.decision_function(X), kernel.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(plain.score_samples(X), X @ plain.coef_[0])
    np.testing.assert_allclose(
        er.OneClassSVM(nu=0.2, features=None).fit(sparse.csr_matrix(X)).coef_, plain.coef_, atol=1e-6
    )
    assert mapped.coef_.shape[1] == er.maps.Polynomial(2).fit_transform(X).shape[1]


def test_weight_two_is_the_row_twice():
    X = rows()
    twice = np.arange(len(X)) % 3 == 0
    weighted = er.OneClassSVM(nu=0.3, features=KERNELS[0]).fit(X, sample_weight=1.0 + twice)
    repeated = er.OneClassSVM(nu=0.3, features=KERNELS[0]).fit(np.concatenate([X, X[twice]]))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


def test_extremes_of_nu_and_of_the_data():
    X = rows(40)
    everything = er.OneClassSVM(nu=1.0, features=KERNELS[0]).fit(X)
    assert everything.certificate_.converged
    np.testing.assert_allclose(everything.dual_coef_, 1 / 40)
    assert er.OneClassSVM(nu=0.5, features=KERNELS[0]).fit(X[:1]).predict(X[:1])[0] == 1
    around = er.OneClassSVM(nu=0.5, features=None).fit(
        np.concatenate([X, -X])
    )  # no hyperplane keeps these from the origin
    assert np.abs(around.coef_).max() < 1e-3
    for nu in (0.0, 1.5, -1.0):
        with pytest.raises(er.errors.EmpiriskError, match="nu="):
            er.OneClassSVM(nu=nu).fit(X)


@pytest.mark.parametrize("machine", [er.OneClassSVM(), er.OneClassSVM(features=None)], ids=repr)
def test_check_estimator_passes_with_nothing_skipped(machine):
    check_contract(machine)


def test_features_that_do_not_fit_are_named():
    many = np.random.default_rng(0).normal(size=(5000, 3))
    with er.config(memory="2MB"), pytest.raises(er.errors.TooLarge, match="features of 5000 rows"):
        er.OneClassSVM(features=er.maps.Nystrom(er.kernels.Gaussian(), rank=100)).fit(many)


def test_squares_that_rounding_puts_below_zero_warn_of_nothing():
    """Behind a centred kernel of numbers far from zero the square of a sample may be rounding."""
    kernel = er.kernels.Centred(er.kernels.Anova(er.kernels.Polynomial(), order=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in (11, 13):
            random = np.random.default_rng(seed)
            X = random.normal(size=(5, 2)) + 10.0 ** random.integers(3, 9)
            er.OneClassSVM(1.0, features=kernel).fit(X, sample_weight=random.integers(1, 4, 5))
