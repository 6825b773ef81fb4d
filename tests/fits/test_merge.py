"""Rows that stand in the data many times, against the same rows with weights."""

import numpy as np
import pytest
from sklearn.base import clone

import empirisk as er
from empirisk.fits import passes as merging

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(20, 3))
X = ROWS[RANDOM.permutation(np.repeat(np.arange(20), 100))]
LABELS = np.digitize(X[:, 0] + RANDOM.normal(size=2000), [-0.5, 0.5])
WEIGHTS = RANDOM.uniform(0.5, 2.0, 2000)
KERNEL = er.kernels.Gaussian(1.0)
MACHINES = {
    "rest": er.SVM(features=KERNEL),
    "pairs": er.SVM(features=KERNEL, multiclass="one_vs_one"),
    "joint": er.LogisticRegression(features=KERNEL),
    "numbers": er.SVR(features=KERNEL),
    "several": er.SVM(features=er.maps.SeveralKernels([KERNEL, "linear"])),
}


@pytest.mark.row("K6")
@pytest.mark.parametrize("name", MACHINES)
def test_equal_rows_are_one_row_with_their_weight(name):
    many = clone(MACHINES[name]).fit(X, LABELS, WEIGHTS)
    assert len(many.support_) <= 60  # a row and a class
    unique, inverse = np.unique(np.column_stack([X, LABELS]), axis=0, return_inverse=True)
    few = clone(many).fit(unique[:, :3], unique[:, 3], np.bincount(inverse.ravel(), WEIGHTS))
    np.testing.assert_allclose(many.certificate_.primal, few.certificate_.primal, rtol=2e-6)
    f, expected = (getattr(machine, "decision_function", machine.predict)(ROWS) for machine in (many, few))
    np.testing.assert_allclose(f, expected, atol=1e-4)
    np.testing.assert_array_equal(X[many.support_], many.support_vectors_)


@pytest.mark.row("K6")
def test_merging_changes_no_objective_and_no_prediction(monkeypatch):
    machine = er.SVM(features=KERNEL).fit(X, LABELS > 0, WEIGHTS)
    f, primal = machine.decision_function(ROWS), machine.certificate_.primal
    monkeypatch.setattr(merging, "MANY", len(X) + 1)
    machine.fit(X, LABELS > 0, WEIGHTS)
    assert len(machine.support_) > 60
    np.testing.assert_allclose(machine.certificate_.primal, primal, rtol=2e-6)
    np.testing.assert_allclose(machine.decision_function(ROWS), f, atol=1e-4)
