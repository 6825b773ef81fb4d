"""Linear machines with support vectors are their kernel twins: the same rows, coefficients and weights."""

import numpy as np
import pytest
from scipy import sparse

import empirisk as er

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(90, 3))
TWO = np.where(X[:, 0] + 0.4 * RANDOM.normal(size=90) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[(X @ RANDOM.normal(size=(3, 3)) + 0.3 * RANDOM.normal(size=(90, 3))).argmax(axis=1)]
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.3 * RANDOM.normal(size=90)
CASES = [
    (er.SVM(C=0.7), TWO),
    (er.SVM(C=0.7, fit_intercept=False), TWO),
    (er.SVM(multiclass="one_vs_one"), THREE),
    (er.SVM(multiclass="one_vs_rest"), THREE),
    (er.Classifier("crammer_singer"), THREE),
    (er.Classifier("squared_hinge"), TWO),
    (er.SVR(), NUMBERS),
    (er.SVR(), np.column_stack([NUMBERS, X[:, 1]])),
]


@pytest.mark.row("L11")
@pytest.mark.parametrize(("machine", "y"), CASES, ids=[repr(machine) for machine, _ in CASES])
def test_the_support_is_that_of_the_kernel_twin(machine, y):
    weights = RANDOM.integers(0, 3, len(X)).astype(float)
    machine = machine.set_params(tol=1e-10).fit(X, y, weights)
    twin = type(machine)(**machine.get_params() | {"features": er.kernels.Linear()}).fit(X, y, weights)
    ours, theirs = (np.zeros((*fitted.dual_coef_.shape[:-1], len(X))) for fitted in (machine, twin))
    ours[..., machine.support_], theirs[..., twin.support_] = machine.dual_coef_, twin.dual_coef_
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_array_equal(machine.support_, np.flatnonzero(np.atleast_2d(np.abs(theirs) > 1e-8).any(axis=0)))
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    np.testing.assert_allclose(machine.dual_coef_ @ machine.support_vectors_, machine.coef_, atol=1e-6)
    assert 0 < len(machine.support_) < np.count_nonzero(weights)


def test_sparse_rows_hard_margins_and_solvers_without_a_dual_point():
    whole = er.SVM(multiclass="one_vs_one").fit(X, THREE)
    thin = er.SVM(multiclass="one_vs_one").fit(sparse.csc_array(X), THREE)
    assert sparse.issparse(thin.support_vectors_)
    np.testing.assert_array_equal(thin.support_, whole.support_)
    np.testing.assert_allclose(thin.support_vectors_.toarray(), whole.support_vectors_)
    hard = er.SVM(C=np.inf).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    assert hard.support_.tolist() == [1, 2]
    np.testing.assert_allclose(hard.dual_coef_, [[-0.5, 0.5]])
    rough = er.Classifier("squared_hinge", solver="gradient_descent").fit(X, TWO)
    inside = np.where(TWO == "yes", 1, -1) * rough.decision_function(X) < 1
    assert set(np.flatnonzero(inside)) == set(rough.support_)


def test_who_has_no_support():
    for machine in (
        er.LogisticRegression(),
        er.Classifier("squared_hinge", penalty="l1"),
        er.SVM(features=er.maps.Polynomial(2)),
    ):
        assert not hasattr(machine.fit(X, TWO), "support_")
    assert not hasattr(er.LeastAbsolute().fit(X, NUMBERS), "support_")


def test_the_support_is_saved(tmp_path):
    machine = er.SVM().fit(X, TWO)
    er.save(machine, tmp_path / "svm.model")
    again = er.load(tmp_path / "svm.model")
    np.testing.assert_array_equal(again.support_vectors_, machine.support_vectors_)
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
