"""Without a penalty, classes that a direction separates, but for ties, leave no minimiser: the certificate says so."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.stop import Ending

TIED = np.array([[0.0, 0], [0, 0], [1, 0], [0, 1], [-1, 1], [0, -1]])  # the first two rows are one, in both classes


@pytest.mark.parametrize("loss", ["logistic", "exponential", "soft_hinge"])
@pytest.mark.parametrize("tol", [1e-10, 1e-3])
def test_quasi_separable_classes_have_no_minimiser(loss, tol):
    y = np.array([0, 1, 1, 1, 0, 0])
    with pytest.warns(ConvergenceWarning, match="no minimiser exists"):
        machine = er.Classifier(loss=loss, penalty="none", tol=tol).fit(TIED, y)
    assert machine.stopped_ == Ending.SEPARABLE
    assert not machine.certificate_.converged


def test_quasi_separable_classes_of_a_joint_loss():
    X = np.vstack([TIED, [[5.0, 5.0]]])
    with pytest.warns(ConvergenceWarning, match="no minimiser exists"):
        er.LogisticRegression(penalty="none", multiclass="joint").fit(X, [0, 1, 1, 1, 0, 0, 2])


@pytest.mark.parametrize("multiclass", ["one_vs_rest", "joint"])
def test_classes_that_overlap_have_a_minimiser(multiclass):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), random.integers(0, 3, 60)
    X[0] = 30.0  # one far row, on its side of every plane, is no separation
    machine = er.LogisticRegression(penalty="none", multiclass=multiclass).fit(X, y)
    assert machine.certificate_.converged


def test_a_column_of_zeros_and_no_intercept_separate_nothing():
    machine = er.LogisticRegression(penalty="none", fit_intercept=False).fit(np.zeros((4, 1)), [0, 1, 0, 1])
    assert machine.certificate_.converged


def test_a_kernel_that_separates_all_but_ties():
    X = np.array([[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]])  # the first two rows are one, in both classes
    machine = er.Classifier("exponential", features=er.kernels.Gaussian(1.0), penalty="none")
    with pytest.warns(ConvergenceWarning, match="no minimiser exists"):
        machine.fit(X, [0, 1, 1, 0, 0, 1])
