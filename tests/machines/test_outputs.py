"""Several labels of a row, several targets, and a loss for each of them: every function as if it were alone."""

import numpy as np
import pytest
from scipy import sparse

import empirisk as er

random = np.random.default_rng(0)
X = random.normal(size=(120, 4))
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] + random.normal(size=120) > 0, X[:, 2] * X[:, 3] > 0]).astype(int)
TARGETS = np.column_stack([X[:, 0] + X[:, 1], np.abs(X[:, 2])])
WEIGHTS = random.integers(0, 3, 120)


@pytest.mark.row("W5")
@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(2.0)], ids=["linear", "kernel"])
def test_each_label_is_learned_as_if_it_were_alone(features, tmp_path):
    machine = er.LogisticRegression(C=3.0, features=features).fit(X, LABELS, WEIGHTS)
    for number, label in enumerate(LABELS.T):
        alone = er.LogisticRegression(C=3.0, features=features).fit(X, label, WEIGHTS)
        np.testing.assert_allclose(machine.decision_function(X)[:, number], alone.decision_function(X), atol=1e-9)
        np.testing.assert_allclose(machine.predict_proba(X)[:, number], alone.predict_proba(X)[:, 1], atol=1e-9)
        np.testing.assert_array_equal(machine.predict(X)[:, number], alone.predict(X))
    assert machine.certificate_.converged
    er.save(machine, tmp_path / "labels.model")
    np.testing.assert_array_equal(er.load(tmp_path / "labels.model").predict(X), machine.predict(X))


def test_labels_come_in_any_container():
    wanted = er.SVM().fit(X, LABELS).coef_
    for labels in (LABELS.tolist(), LABELS.astype(bool), LABELS.astype(float), sparse.csr_matrix(LABELS)):
        np.testing.assert_array_equal(er.SVM().fit(X, labels).coef_, wanted)


@pytest.mark.row("W5")
def test_every_target_has_its_own_loss():
    machine = er.Regressor(["squared", er.losses.Absolute()], C=3.0).fit(X, TARGETS, WEIGHTS)
    for number, loss in enumerate(("squared", "absolute")):
        alone = er.Regressor(loss, C=3.0).fit(X, TARGETS[:, number], WEIGHTS)
        np.testing.assert_allclose(machine.coef_[number], alone.coef_, atol=1e-9)
    assert machine.certificate_.converged
    assert er.Regressor(["squared", "absolute"], C="cv", Cs=[0.1, 1.0]).fit(X, TARGETS).C_ in (0.1, 1.0)


@pytest.mark.parametrize(
    ("machine", "y", "words"),
    [
        (er.SVM(), LABELS + 1, "must hold 0 and 1 only"),
        (er.SVM(), LABELS * [1, 1, 0], "same for all rows in column 2"),
        (er.SVM(class_weight="balanced"), LABELS, "class_weight has no meaning"),
        (er.Classifier("softmax"), LABELS, "use loss='logistic', multiclass='auto'"),
        (er.SVM(multiclass="one_vs_one"), LABELS, "use loss='logistic', multiclass='auto'"),
        (er.Regressor(["squared"] * 3), TARGETS, "3 losses, but y has 2 columns"),
        (er.Regressor(["squared", "hinge"]), TARGETS, "not a regression loss"),
        (er.Regressor(["squared", "absolute"], C="loo"), TARGETS, "not for Absolute"),
    ],
)
def test_what_makes_no_sense_is_named(machine, y, words):
    with pytest.raises(er.errors.EmpiriskError, match=words):
        machine.fit(X, y)


def test_leave_one_out_is_by_refitting_where_a_loss_is_not_squared():
    few, targets = X[:12], TARGETS[:12]
    machine = er.Regressor(["squared", "absolute"])
    found = er.evaluate(machine, few, targets, cv="loo", scoring="mae").score.value
    errors = []
    for row in range(12):
        others = np.arange(12) != row
        errors.append(np.abs(machine.fit(few[others], targets[others]).predict(few[[row]]) - targets[[row]]).mean())
    assert found == pytest.approx(np.mean(errors), rel=1e-9)
