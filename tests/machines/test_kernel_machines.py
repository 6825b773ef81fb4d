"""Every machine behind kernels: the optimum, the linear machine as a special case, objects, pipelines and searches."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import empirisk as er
from empirisk.errors import NotAKernel, Unsuitable
from empirisk.fits import leave_one_out as loo
from tests.truth import ACCURACY, optimum

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(45, 3))
NEW = RANDOM.normal(size=(20, 3))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RANDOM.normal(size=45)
WEIGHTS = RANDOM.uniform(0.3, 3.0, 45)
KERNELS = {
    "gaussian": er.kernels.Gaussian(1.2),
    "sum": er.kernels.Gaussian(0.7).on([0]) * er.kernels.Polynomial(2) + 0.5 * er.kernels.Linear(),
}
MACHINES = {
    "svm": er.SVM(C=2.0),
    "svm without b": er.SVM(C=2.0, fit_intercept=False),
    "svr": er.SVR(C=2.0),
    "logistic": er.LogisticRegression(C=2.0),
    "ridge": er.Ridge(C=2.0),
    "absolute": er.Regressor("absolute", C=2.0),
    "power": er.Regressor(er.losses.Power(1.5), C=2.0),
    "squared hinge": er.Classifier("squared_hinge", C=2.0),
    "exponential": er.Classifier("exponential", C=0.5),
    "least squares": er.Classifier("squared", C=2.0),
}
JOINT = {"softmax": er.LogisticRegression(C=2.0), "crammer_singer": er.Classifier("crammer_singer", C=2.0)}


def features_of(kernel, X):
    """A table with the Gram matrix of the kernel."""
    values, vectors = np.linalg.eigh(np.asarray(kernel(X), dtype=float))
    kept = values > 1e-9 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def target_of(machine):
    return np.where(F > 0, 1.0, -1.0) if hasattr(machine, "multiclass") else F


@pytest.fixture
def _enough_digits(monkeypatch):
    """What the general solver can promise where a Gram matrix is nearly singular."""
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        monkeypatch.setitem(ACCURACY, name, 1e-9)


@pytest.mark.usefixtures("_enough_digits")
@pytest.mark.row("K6")
@pytest.mark.row("K7")
@pytest.mark.row("K8")
@pytest.mark.row("K9")
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
def test_the_optimum_behind_a_kernel(name, kernel, weights):
    kernel, y = KERNELS[kernel], target_of(MACHINES[name])
    machine = clone(MACHINES[name]).set_params(features=kernel).fit(X, y, weights)
    given = np.ones(len(y)) if weights is None else weights
    truth = optimum(machine.loss, "l2", machine.C, features_of(kernel, X), y, given, machine.fit_intercept)
    certificate = machine.certificate_
    assert certificate.converged
    assert certificate.primal == pytest.approx(truth, rel=1e-6)
    assert certificate.primal - certificate.gap <= truth * (1 + 1e-8)  # a true bound
    f = machine.decision_function(NEW) if hasattr(machine, "decision_function") else machine.predict(NEW)
    by_hand = kernel(NEW, machine.support_vectors_) @ np.ravel(machine.dual_coef_) + np.ravel(machine.intercept_)
    np.testing.assert_allclose(f, by_hand, rtol=1e-9, atol=1e-9)


@pytest.mark.row("K8")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", JOINT)
def test_joint_losses_behind_a_kernel(name, kernel):
    kernel, y = KERNELS[kernel], np.digitize(F, [-0.5, 0.5]).astype(float)
    machine = clone(JOINT[name]).set_params(features=kernel).fit(X, y, WEIGHTS)
    truth = optimum(name, "l2", 2.0, features_of(kernel, X), y, WEIGHTS, True, 3)
    assert machine.certificate_.converged
    assert machine.certificate_.primal == pytest.approx(truth, rel=1e-6)
    assert machine.decision_function(NEW).shape == (20, 3)


@pytest.mark.row("K6")
@pytest.mark.row("K9")
@pytest.mark.parametrize("name", MACHINES)
def test_the_linear_kernel_is_the_linear_machine(name):
    machine, y = clone(MACHINES[name]).set_params(tol=1e-9), target_of(MACHINES[name])
    linear = clone(machine).fit(X, y, WEIGHTS)
    behind = clone(machine).set_params(features="linear").fit(X, y, WEIGHTS)
    assert behind.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(np.ravel(behind.linear_part()), np.ravel(linear.coef_), atol=1e-5)
    np.testing.assert_allclose(np.ravel(behind.intercept_), np.ravel(linear.intercept_), atol=1e-5)
    with pytest.raises(Unsuitable, match="coef_"):
        linear.linear_part()


@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one", "error_correcting"])
def test_codes_of_several_classes(scheme):
    y = np.array(list("xyz"))[np.digitize(F, [-0.5, 0.5])]
    machine = er.SVM(features=KERNELS["gaussian"], multiclass=scheme, random_state=0)
    linear = er.SVM(multiclass=scheme, random_state=0)
    assert machine.fit(X, y).score(X, y) > 0.8
    behind = clone(machine).set_params(features="linear").fit(X, y).decision_function(NEW)
    np.testing.assert_allclose(behind, linear.fit(X, y).decision_function(NEW), atol=1e-3)


@pytest.mark.row("K15")
def test_nearest_centroid_behind_a_kernel():
    y = np.digitize(F, [-0.5, 0.5])
    plain = er.NearestCentroid().fit(X, y, WEIGHTS)
    linear = er.NearestCentroid(features="linear").fit(X, y, WEIGHTS)
    np.testing.assert_allclose(linear.decision_function(NEW), plain.decision_function(NEW), atol=1e-9)
    kernel = KERNELS["gaussian"]
    machine = er.NearestCentroid(features=kernel).fit(X, y, WEIGHTS)
    squares = []
    for label in range(3):
        share = np.where(y == label, WEIGHTS, 0.0) / WEIGHTS[y == label].sum()
        squares.append(1 - 2 * kernel(NEW, X) @ share + share @ kernel(X) @ share)
    np.testing.assert_array_equal(machine.predict(NEW), np.argmin(squares, axis=0))


@pytest.mark.row("K14")
def test_the_linear_part_of_a_semi_parametric_machine_is_readable():
    data = RANDOM.normal(size=(300, 2))
    y = 3 * data[:, 0] - 2 * data[:, 1] + 0.5 * np.sin(5 * data[:, 0])
    kernel = 0.1 * er.kernels.Gaussian(0.3) + 100.0 * er.kernels.Linear()
    machine = er.Ridge(C=10.0, features=kernel).fit(data, y)
    w = machine.linear_part()
    np.testing.assert_allclose(w, [3.0, -2.0], atol=0.1)
    rest = 0.1 * er.kernels.Gaussian(0.3)(data, machine.support_vectors_) @ machine.dual_coef_
    np.testing.assert_allclose(machine.predict(data), data @ w + rest + machine.intercept_, atol=1e-8)
    classes = er.SVM(features=kernel).fit(data, y > 0)
    assert classes.linear_part().shape == (1, 2)
    assert er.SVM(features="gaussian").fit(data, y > 0).linear_part() is None


@pytest.mark.row("K16")
def test_precomputed_equals_the_kernel_in_fits_folds_and_searches():
    kernel = KERNELS["gaussian"]
    K, rows = kernel(X), kernel(NEW, X)
    for name, machine in MACHINES.items():
        y = target_of(machine)
        direct = clone(machine).set_params(features=kernel).fit(X, y, WEIGHTS)
        given = clone(machine).set_params(features="precomputed").fit(K, y, WEIGHTS)
        np.testing.assert_allclose(given.predict(rows), direct.predict(NEW), atol=1e-5, err_msg=name)
        assert given.n_features_in_ == len(X)
        np.testing.assert_array_equal(given.support_vectors_, given.support_)
    machine = er.Ridge(features="precomputed")
    folds = cross_val_predict(machine, K, F, cv=5)
    np.testing.assert_allclose(folds, cross_val_predict(er.Ridge(features=kernel), X, F, cv=5), atol=1e-9)
    search = GridSearchCV(make_pipeline(er.Ridge(features="precomputed")), {"ridge__C": [0.1, 1.0]}, cv=3).fit(K, F)
    assert search.best_score_ == pytest.approx(
        GridSearchCV(er.Ridge(features=kernel), {"C": [0.1, 1.0]}, cv=3).fit(X, F).best_score_
    )
    for C in ("loo", "cv"):
        assert clone(machine).set_params(C=C).fit(K, F).C_ == er.Ridge(C=C, features=kernel).fit(X, F).C_
    weighted = er.SVM(features="precomputed").fit(K, F > 0, np.arange(45) % 3)
    np.testing.assert_allclose(
        weighted.decision_function(rows),
        er.SVM(features=kernel).fit(X, F > 0, np.arange(45) % 3).decision_function(NEW),
        atol=1e-5,
    )


@pytest.mark.row("K16")
@pytest.mark.row("K3")
def test_matrices_that_are_no_gram_matrices_are_refused():
    K = KERNELS["gaussian"](X)
    tilted, bad = K.copy(), K - 0.5
    tilted[0, 1] += 0.1
    for matrix, message in ((bad, "eigenvalue -"), (tilted, "differ by 0.1"), (K[:10], "square matrix")):
        for machine in (er.SVM(), er.Ridge(), er.NearestCentroid()):
            with pytest.raises(ValueError, match=message):
                machine.set_params(features="precomputed").fit(matrix, F[: len(matrix)] > 0)
    nearly = K - 1e-9 * np.eye(len(K))
    assert er.Ridge(features="precomputed").fit(nearly, F).certificate_.converged
    fitted = er.SVM(features="precomputed").fit(K, F > 0)
    with pytest.raises(ValueError, match="expecting 45 features"):
        fitted.predict(K[:, :5])


def test_large_matrices_are_checked_by_their_bounds(monkeypatch):
    monkeypatch.setattr("empirisk.kernels.precomputed.WHOLE", 10)
    K = KERNELS["gaussian"](X)
    kernel = er.kernels.Precomputed()
    assert kernel.fit(K).size_ == 45
    for change, message in (
        (lambda K: K - 2 * np.eye(45), "its diagonal holds -1"),
        (lambda K: K + np.triu(np.ones_like(K), 1), "not symmetric"),
        (lambda K: 1.5 * K - 0.5 * np.eye(45), "exceeds"),
    ):
        with pytest.raises(NotAKernel, match=message):
            kernel.fit(change(K) if message != "exceeds" else np.where(np.eye(45) > 0, 0.1, K))


@pytest.mark.row("K16")
def test_functions_of_pairs_and_of_blocks():
    def of_pairs(x, z):
        return float(np.exp(-np.sum((x - z) ** 2) / 2))

    def of_blocks(A, B):
        return er.kernels.Gaussian(1.0)(A, B)

    expected = er.SVM(features=er.kernels.Gaussian(1.0)).fit(X, F > 0).decision_function(NEW)
    for function in (of_pairs, of_blocks):
        machine = er.SVM(features=function).fit(X, F > 0)
        np.testing.assert_allclose(machine.decision_function(NEW), expected, atol=1e-5)


@pytest.mark.row("K16")
def test_lists_of_objects_through_pipelines_and_searches():
    words = [letters * n for n in range(1, 9) for letters in ("ab", "ba", "xy", "zx", "aab")]
    labels = np.array(["x" in word for word in words])
    pipeline = Pipeline([("machine", er.SVM(features=er.kernels.Spectrum(2)))])
    assert cross_val_score(pipeline, words, labels, cv=4).mean() > 0.9
    search = GridSearchCV(pipeline, {"machine__features__length": [1, 2], "machine__C": [0.1, 1.0]}, cv=4)
    assert search.fit(words, labels).predict(["abab", "xyxy"]).tolist() == [False, True]
    letters = er.LogisticRegression(features=lambda x, z: float(len(set(x) & set(z)))).fit(words, labels)
    assert letters.score(words, labels) == 1.0


@pytest.mark.row("K16")
def test_searches_reach_into_expressions():
    machine = er.SVM(features=er.kernels.Gaussian(1.0) + er.kernels.Linear())
    search = GridSearchCV(machine, {"features__left__width": [0.1, 1.0, 10.0]}, cv=3).fit(X, F > 0)
    assert search.best_params_["features__left__width"] in (0.1, 1.0, 10.0)
    assert machine.features.left.width == 1.0
    single = GridSearchCV(er.Ridge(features=er.kernels.Gaussian()), {"features__width": [0.5, 2.0]}, cv=3).fit(X, F)
    again = er.Ridge(features=er.kernels.Gaussian(single.best_params_["features__width"])).fit(X, F)
    np.testing.assert_allclose(single.predict(NEW), again.predict(NEW))
    scaled = make_pipeline(StandardScaler(), er.SVM(features=er.kernels.Gaussian("median")))
    frame = pd.DataFrame(X, columns=list("abc"))
    assert scaled.fit(frame, F > 0).score(frame, F > 0) > 0.7


@pytest.mark.parametrize("machine", [er.SVM(features="gaussian"), er.Ridge(features="gaussian")], ids=repr)
def test_contract(machine):
    check_estimator(machine)


def test_sparse_and_single_precision_rows():
    for machine in (er.Ridge(features="gaussian"), er.LogisticRegression(features=er.kernels.Polynomial(2))):
        y = F if isinstance(machine, er.Regressor) else F > 0
        dense = clone(machine).fit(X, y)
        thin = clone(machine).fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(thin.predict(sparse.csr_matrix(NEW)), dense.predict(NEW), atol=1e-6)
        small = clone(machine).fit(X.astype(np.float32), y)
        assert small.certificate_.converged
        np.testing.assert_allclose(small.predict(NEW.astype(np.float32)), dense.predict(NEW), atol=1e-2)


@pytest.mark.row("V3")
@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_of_kernel_ridge_is_that_of_refitting(intercept):
    kernel, Cs = KERNELS["gaussian"], [0.01, 1.0, 100.0]
    machine = er.Ridge(C="loo", features=kernel, Cs=Cs, fit_intercept=intercept).fit(X, F, WEIGHTS)
    for column, C in enumerate(Cs):
        for i in range(0, 45, 7):
            others = np.arange(45) != i
            left = er.Ridge(C=C, features=kernel, fit_intercept=intercept).fit(X[others], F[others], WEIGHTS[others])
            off = (left.predict(X[[i]])[0] - F[i]) ** 2
            assert machine.choice_.losses[i, column] == pytest.approx(off, rel=1e-8, abs=1e-12)


@pytest.mark.row("V3")
@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_by_a_thin_factor_is_that_of_refitting(monkeypatch, intercept):
    monkeypatch.setattr(loo, "ROWS", 20)
    data = X[:, :1]  # of one variable, the Gram matrix has few directions
    kernel, Cs = er.kernels.Gaussian(2.0), [0.01, 1.0, 100.0]
    factors = []
    thin_factor = loo._thin_factor
    monkeypatch.setattr(loo, "_thin_factor", lambda K: factors.append(thin_factor(K)) or factors[-1])
    thin = er.Ridge(C="loo", features=kernel, Cs=Cs, fit_intercept=intercept).fit(data, F, WEIGHTS)
    monkeypatch.setattr(loo, "THIN", 0.0)
    whole = er.Ridge(C="loo", features=kernel, Cs=Cs, fit_intercept=intercept).fit(data, F, WEIGHTS)
    np.testing.assert_allclose(thin.choice_.losses, whole.choice_.losses, rtol=1e-8, atol=1e-12)
    assert thin.choice_.chosen == whole.choice_.chosen
    assert factors[0].shape[1] < 0.4 * len(X)
    assert factors[1] is None


def test_what_has_no_meaning_behind_a_kernel_is_refused():
    for machine in (er.Lasso(features="gaussian"), er.SVM(penalty="l1", features="gaussian")):
        with pytest.raises(Unsuitable, match=r"maps\.Nystrom"):
            machine.fit(X, F > 0)
    with pytest.raises(Unsuitable, match="explicit features"):
        er.SVM(features="gaussian", solver="envelope").fit(X, F > 0)
    with pytest.raises(Unsuitable, match="it needs a kernel as features"):
        er.LogisticRegression(solver="decomposition").fit(X, F > 0)


@pytest.mark.parametrize(
    "kernel", [er.kernels.Gaussian("median"), er.kernels.Laplacian("median") + er.kernels.Linear()]
)
def test_a_learned_width_knows_weights(kernel):
    """Weight 2 is the row twice and weight 0 no row, also for the width that is learned from the rows."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 3)), random.normal(size=40)
    weights = random.integers(0, 3, size=40)
    weighted = er.Ridge(features=kernel).fit(X, y, sample_weight=weights)
    repeated = er.Ridge(features=kernel).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)


@pytest.mark.row("K2")
def test_columns_by_name_reach_the_kernels_of_machines():
    table, new = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(NEW, columns=list("abc"))
    named = er.kernels.Gaussian("median").on(["a", "c"]) + er.kernels.Linear().on("b")
    placed = er.kernels.Gaussian("median").on([0, 2]) + er.kernels.Linear().on(1)
    for wrap in (lambda kernel: kernel, lambda kernel: er.maps.Nystrom(kernel, rank=45)):
        machine = er.Ridge(features=wrap(named)).fit(table, F)
        np.testing.assert_allclose(
            machine.predict(new), er.Ridge(features=wrap(placed)).fit(X, F).predict(NEW), rtol=1e-9
        )


@pytest.mark.row("K3")
def test_a_function_that_is_no_kernel_is_refused_by_every_machine():
    def sigmoid(A, B):
        return np.tanh(A @ B.T - 1)

    machines = [er.SVM(), er.LogisticRegression(), er.SVR(), er.Ridge(), er.OneClassSVM(), er.Perceptron()]
    for machine in [*machines, er.NearestCentroid(), er.KNNClassifier()]:
        for features in (sigmoid, er.kernels.Linear() + er.kernels.Callable(sigmoid)):
            with pytest.raises(NotAKernel, match="eigenvalue"):
                machine.set_params(features=features).fit(X, F > 0)
    with pytest.raises(NotAKernel, match="eigenvalue"):
        er.SVM(features=er.maps.SeveralKernels([sigmoid, "gaussian"])).fit(X, F > 0)
    many = np.random.default_rng(0).normal(size=(400, 3))
    with pytest.raises(NotAKernel, match="eigenvalue"):  # tested on some of the items
        er.SVM(features=sigmoid).fit(many, many[:, 0] > 0)


@pytest.mark.row("K16")
def test_a_gram_matrix_cannot_be_normalised_or_centred_after_the_fact():
    K = er.kernels.Linear()(X)
    machine = er.Ridge(features=er.kernels.Precomputed().normalised()).fit(K, F)
    with pytest.raises(ValueError, match=r"k\(x, x\) of new items"):
        machine.predict(NEW @ X.T)
    machine = er.Ridge(features=er.kernels.Centred(er.kernels.Precomputed())).fit(K, F)
    with pytest.raises(ValueError, match=r"kernels\.centre"):
        machine.predict(NEW @ X.T)


@pytest.mark.row("E4")
@pytest.mark.parametrize("shift", [1e3, 1e4, 1e5, 1e6])
def test_rounding_that_cancels_is_part_of_the_gap(shift):
    machine = er.Ridge(features="linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = machine.fit(X + shift, F).certificate_
    truth = er.Ridge().fit(X, F).certificate_.primal
    assert abs(found.primal - truth) <= found.gap
    assert found.dual - truth <= found.gap


@pytest.mark.row("V3")
def test_leave_one_out_of_rows_that_are_all_alike():
    machine = er.Ridge(C="loo", features="gaussian").fit(np.ones((12, 2)), F[:12])
    np.testing.assert_allclose(machine.predict([[1.0, 1.0]]), F[:12].mean(), rtol=1e-9)
    assert machine.certificate_.converged
    with pytest.raises(ValueError, match="has 1 sample only"):
        machine.fit(np.ones((1, 2)), [1.0])


@pytest.mark.parametrize("kernel", [er.kernels.Gaussian(2.0), er.kernels.Polynomial(3) + er.kernels.Linear()], ids=repr)
@pytest.mark.parametrize("machine", [er.SVM(100.0), er.LogisticRegression(100.0), er.OneClassSVM(0.1)], ids=str)
def test_the_objective_on_float32_rows_has_all_its_digits(machine, kernel):
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 5)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + 0.3 * random.normal(size=150) > 0
    machine = clone(machine).set_params(features=kernel, tol=1e-9)
    single, double = (clone(machine).fit(rows, y).certificate_ for rows in (X, X.astype(np.float64)))
    assert single.primal == pytest.approx(double.primal, rel=2e-9)
