"""Kernel machines with corners: the classifier, the regressor and the perceptron behind a kernel."""

import warnings

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import NotSeparable

KERNEL = er.kernels.Gaussian.from_gamma(0.5)


def classes(n=150, count=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    f = X[:, 0] * X[:, 1] + 0.4 * X[:, 2] + 0.2 * random.normal(size=n)
    return X, np.digitize(f, np.quantile(f, np.linspace(0, 1, count + 1)[1:-1]))


def numbers(n=150, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=n)


@pytest.mark.row("K6")
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_classifier_is_libsvm_s(C, weighted):
    X, y = classes()
    weights = np.random.default_rng(1).uniform(0.3, 2.0, len(y)) if weighted else None
    machine = er.SVM(C=C, features=KERNEL).fit(X, y, weights)
    rival = svm.SVC(C=C, gamma=0.5, tol=1e-9).fit(X, y, weights)
    assert machine.solver_ == "decomposition"
    assert machine.certificate_.relative_gap <= 1e-6
    np.testing.assert_allclose(machine.decision_function(X), rival.decision_function(X), atol=2e-4)
    assert set(machine.support_) >= set(rival.support_[np.abs(rival.dual_coef_[0]) > 1e-3 * C])


@pytest.mark.row("K7")
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_regressor_is_libsvm_s(epsilon):
    X, y = numbers()
    machine = er.SVR(C=2.0, epsilon=epsilon, features=KERNEL).fit(X, y)
    rival = svm.SVR(C=2.0, epsilon=epsilon, gamma=0.5, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), rival.predict(X), atol=1e-3)
    assert machine.certificate_.converged


@pytest.mark.row("K6")
@pytest.mark.parametrize("intercept", [True, False])
def test_the_linear_kernel_is_the_linear_classifier(intercept):
    X, y = classes()
    linear = er.SVM(C=2.0, fit_intercept=intercept).fit(X, y)
    kernel = er.SVM(C=2.0, fit_intercept=intercept, features="linear").fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(kernel.linear_part(), linear.coef_, atol=2e-4)


@pytest.mark.row("K7")
def test_the_linear_kernel_is_the_linear_regressor():
    X, y = numbers()
    linear = er.SVR(C=2.0).fit(X, y)
    kernel = er.SVR(C=2.0, features="linear").fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(kernel.predict(X), linear.predict(X), atol=2e-3)


@pytest.mark.row("K6")
@pytest.mark.parametrize("machine", [er.SVM(features=KERNEL), er.SVR(features=KERNEL)], ids=["SVM", "SVR"])
def test_weight_two_is_the_row_twice(machine):
    X, y = classes() if isinstance(machine, er.SVM) else numbers()
    twice = np.arange(len(y)) % 3 == 0
    repeated = machine.fit(np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]])).certificate_.primal
    assert machine.fit(X, y, 1.0 + twice).certificate_.primal == pytest.approx(repeated, rel=2e-6)


@pytest.mark.row("K6")
@pytest.mark.parametrize("scheme", ["one_vs_rest", "one_vs_one"])
def test_more_than_two_classes(scheme):
    X, y = classes(200, 4)
    machine = er.SVM(C=10.0, features=KERNEL, multiclass=scheme).fit(X, y)
    assert machine.certificate_.converged
    assert machine.dual_coef_.shape == (4 if scheme == "one_vs_rest" else 6, len(machine.support_))
    if scheme == "one_vs_one":
        pair = np.isin(y, np.flatnonzero(machine.codes_[0]))
        alone = er.SVM(C=10.0, features=KERNEL).fit(X[pair], y[pair])
        mine = machine._scores(X)[:, 0]
        np.testing.assert_allclose(np.abs(mine), np.abs(alone.decision_function(X)), atol=1e-3)
    assert machine.score(X, y) > 0.8


@pytest.mark.row("K6")
def test_the_hard_margin_behind_a_kernel():
    X, _ = classes()
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    machine = er.SVM(C=np.inf, features=KERNEL).fit(X, y)
    margins = machine.decision_function(X) * (2 * y - 1)
    assert margins.min() == pytest.approx(1.0, abs=1e-4)
    rival = svm.SVC(C=1e8, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), rival.decision_function(X), atol=1e-2)
    both = np.concatenate([X, X[:2]]), np.concatenate([y, 1 - y[:2]])
    with pytest.raises(NotSeparable, match="rows 0, 1, 150, 151") as caught:
        er.SVM(C=np.inf, features=KERNEL).fit(*both)
    assert list(caught.value.rows) == [0, 1, 150, 151]


@pytest.mark.row("K6")
def test_C_is_chosen_along_a_warm_path():
    X, y = classes(200)
    machine = er.SVM(C="cv", Cs=[0.1, 1.0, 10.0], features=KERNEL, random_state=0).fit(X, y)
    assert machine.C_ in (0.1, 1.0, 10.0)
    assert machine.certificate_.converged


@pytest.mark.row("K6")
def test_time_limits_hold():
    X, y = classes(6000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        er.SVM(C=1e5, features=er.kernels.Gaussian(0.5), max_time=0.2).fit(X, y)


@pytest.mark.row("S6")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("machine", [er.SVM, er.SVR])
def test_dual_ascent_behind_a_kernel_has_the_same_optimum(machine, intercept):
    X, y = classes() if machine is er.SVM else numbers()
    best = machine(features=KERNEL, fit_intercept=intercept).fit(X, y)
    ascent = machine(features=KERNEL, fit_intercept=intercept, solver="dual_ascent").fit(X, y)
    assert ascent.solver_ == "dual_ascent"
    assert ascent.certificate_.converged
    assert ascent.certificate_.primal == pytest.approx(best.certificate_.primal, rel=2e-6)


@pytest.mark.row("S7")
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
@pytest.mark.parametrize("columns", [60, 512])
def test_doubly_stochastic_gradients_approach_the_optimum(loss, columns):
    X, y = classes(200)
    best = er.Classifier(loss, KERNEL, C=0.1).fit(X, y)
    solver = er.solvers.DoublyStochastic(columns=columns, batch_size=32)
    machine = er.Classifier(loss, KERNEL, C=0.1, solver=solver, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few passes may leave more than a hundredth
        machine.fit(X, y)
        again = clone(machine).fit(X, y)
    zero = 0.1 * 200 * losses_at_zero(loss)
    reached, least = machine.certificate_.primal, best.certificate_.primal
    assert (reached - least) / (zero - least) < (0.02 if columns == 512 else 0.2)
    np.testing.assert_array_equal(machine.dual_coef_, again.dual_coef_)
    assert machine.certificate_.status in ("finished", "converged")


def losses_at_zero(loss):
    return float(er.losses.find(loss).value(np.ones(1), np.zeros(1))[0])


@pytest.mark.row("S7")
@pytest.mark.parametrize(("rows", "loss"), [(60, "hinge"), (60, "absolute"), (500, "squared"), (500, "hinge")])
def test_the_defaults_of_doubly_stochastic_gradients_come_within_a_hundredth(rows, loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    labels = np.sign(X[:, 0] * X[:, 1] + 0.3 * random.normal(size=rows))
    kind = er.Classifier if loss == "hinge" else er.Regressor
    y = labels if loss == "hinge" else np.sin(2 * X[:, 0]) + 0.2 * random.normal(size=rows)
    kernel = er.kernels.Gaussian(1.0)
    (problem,) = kind(loss, kernel).problems(X, y)
    best = er.solve(problem).certificate.primal
    assert er.solve(problem, "doubly_stochastic").certificate.primal <= 1.01 * best


def test_doubly_stochastic_parameters_are_checked():
    for wrong in ({"batch_size": 0}, {"columns": 1.5}, {"rate": -1.0}):
        with pytest.raises(er.errors.EmpiriskError, match=next(iter(wrong))):
            er.SVM(features=KERNEL, solver=er.solvers.DoublyStochastic(**wrong)).fit(*classes(20))


@pytest.mark.row("K10")
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_kernel_perceptron_makes_the_mistakes_of_the_linear_one(average, weighted):
    X, y = classes(300)
    y = (X[:, 0] + 0.5 * X[:, 1] + 0.1 * X[:, 2] ** 2 > 0.1).astype(int)  # nearly linear
    weights = np.random.default_rng(0).integers(1, 4, size=300) if weighted else None
    linear = er.Perceptron(average=average, max_iter=20).fit(X, y, weights)
    kernel = er.Perceptron(average=average, max_iter=20, features=er.kernels.Linear()).fit(X, y, weights)
    np.testing.assert_array_equal(kernel.history_["mistakes"], linear.history_["mistakes"])
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-9)


@pytest.mark.row("K10")
def test_the_kernel_perceptron_separates_what_no_line_does():
    X, _ = classes(200)
    X = X[np.abs(X[:, 0] * X[:, 1]) > 0.1]
    y = X[:, 0] * X[:, 1] > 0
    machine = er.Perceptron(features=KERNEL).fit(X, y)
    assert machine.certificate_.converged
    assert machine.history_["mistakes"][-1] == 0
    assert machine.score(X, y) == 1.0
    with er.config(memory="200KB"):
        again = er.Perceptron(features=KERNEL).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), machine.decision_function(X), atol=1e-9)
    strings = ["aab", "aba", "abb", "bcc", "ccb", "cbc"]
    words = er.Perceptron(features=er.kernels.Spectrum(1)).fit(strings, [0, 0, 0, 1, 1, 1])
    assert list(words.predict(["aaa", "ccc"])) == [0, 1]


@pytest.mark.row("S9")
def test_a_gap_that_does_not_fall_at_first_is_no_reason_to_give_up():
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 5))
    y = X[:, 0] * X[:, 1] + 0.3 * random.normal(size=4000) > 0
    machine = er.SVM(features=er.kernels.Gaussian(2.0), solver=er.solvers.Decomposition(size=8)).fit(X, y)
    assert machine.certificate_.converged
