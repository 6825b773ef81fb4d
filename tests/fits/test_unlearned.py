"""A fit that ends at w = 0 by its parts says so; one that has nothing to learn from does not."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import empirisk as er

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)) + 2.0
LABELS, NUMBERS = (X[:, 0] > 2).astype(int), X[:, 0] - X[:, 1]

ODD = [
    (er.Classifier("perceptron"), LABELS, "er.Perceptron"),
    (er.Classifier("perceptron", penalty="l1"), LABELS, "er.Perceptron"),
    (er.Classifier("perceptron", penalty="none"), LABELS, "er.Perceptron"),
    (er.Classifier("perceptron", features="gaussian"), LABELS, "er.Perceptron"),
    (er.Classifier("perceptron"), np.arange(40) % 3, "er.Perceptron"),
    (er.SVR(epsilon=20.0), NUMBERS, "a smaller epsilon"),
    (er.SVR(epsilon=20.0, features="gaussian"), NUMBERS, "a smaller epsilon"),
]
SPARSE = [
    (er.Lasso(C=1e-5), NUMBERS),
    (er.Lasso(C=1e-5, fit_intercept=False), NUMBERS),
    (er.Lasso(C=1e-5), np.column_stack([NUMBERS, X[:, 2]])),
    (er.LogisticRegression(C=1e-5, penalty="l1"), LABELS),
    (er.LogisticRegression(C=1e-5, penalty="l1"), np.arange(40) % 3),
    (er.Regressor("squared", penalty=er.penalties.GroupL1(3), C=1e-5), NUMBERS),
    (er.SVM(C=1e-5, penalty="l1"), LABELS),
]


@pytest.mark.parametrize(("machine", "y", "remedy"), ODD, ids=str)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_loss_that_is_least_at_zero_is_warned_of(machine, y, remedy, kind):
    rows = X if machine.features is not None else kind(X)
    with pytest.warns(ConvergenceWarning, match=f"has learned nothing, w = 0: .*{re.escape(remedy)}"):
        machine.fit(rows, y)
    assert machine.certificate_.converged
    assert remedy in machine.certificate_.reason


@pytest.mark.parametrize(("machine", "y"), SPARSE, ids=str)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_weights_that_are_all_zero_at_a_small_C_are_an_answer_that_the_certificate_explains(machine, y, kind):
    machine.fit(kind(X), y)
    assert machine.certificate_.converged
    assert re.search(r"w = 0: no weight is worth its penalty.*raise C", machine.certificate_.reason)


@pytest.mark.parametrize("machine", [er.Lasso(), er.LogisticRegression(penalty="l1")], ids=str)
def test_the_C_that_is_named_is_where_the_first_weight_wakes_up(machine):
    y = NUMBERS if isinstance(machine, er.Regressor) else LABELS
    reason = machine.set_params(C=1e-4).fit(X, y).certificate_.reason
    named = float(re.search(r"below C=(\S+);", reason).group(1))
    assert machine.set_params(C=1.02 * named).fit(X, y).coef_.any()
    assert "w = 0" not in machine.certificate_.reason
    assert not machine.set_params(C=0.98 * named).fit(X, y).coef_.any()


NOTHING = [
    ("equal targets", X, np.ones(40), None),
    ("constant columns", np.ones((40, 2)), NUMBERS, None),
    ("columns of zeros", np.zeros((40, 2)), NUMBERS, None),
    ("columns that do not go with the targets", np.repeat([[1.0], [-1.0]], 20, axis=0), np.arange(40) % 2, None),
    ("one target with weight", X, NUMBERS, np.eye(40)[3]),
]


@pytest.mark.parametrize(("what", "rows", "y", "weights"), NOTHING, ids=[case[0] for case in NOTHING])
def test_data_without_anything_to_learn_are_no_reason_to_warn(what, rows, y, weights):
    for machine in (er.Lasso(C=1e-4), er.Ridge(), er.SVR(), er.SVR(epsilon=50.0), er.LeastSquares()):
        with warnings.catch_warnings(action="error"):
            machine.fit(rows, y, weights)
        assert "w = 0" not in machine.certificate_.reason


def test_a_rounding_below_zero_behind_a_kernel_is_no_length():
    kernel = er.kernels.Anova(er.kernels.Polynomial(2), order=3) + er.kernels.Gaussian(0.8)
    y = np.minimum(np.arange(13) % 3, 1)
    y[0] = 2
    machine = er.LogisticRegression(C=0.1, features=kernel, multiclass="one_vs_one")
    assert np.isfinite(machine.fit(np.zeros((13, 5)), y).decision_function(np.zeros((2, 5)))).all()
