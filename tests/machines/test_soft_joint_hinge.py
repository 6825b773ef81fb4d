"""The soft joint hinge in linear, kernel, network and boosting classifiers."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.trees import naive_boost

pytestmark = pytest.mark.row("E12")
TEMPERATURES = pytest.mark.parametrize("temperature", [0.02, 0.3, 2.0])


def classes(count=300, several=4):
    return make_classification(count, 6, n_informative=4, n_classes=several, random_state=0)


@pytest.mark.parametrize("features", [None, er.kernels.Gaussian(3.0)], ids=repr)
def test_the_ends_are_softmax_and_crammer_singer(features):
    X, y = classes(150)
    for loss, other in (("softmax", (0.0, 1.0)), ("crammer_singer", (1.0, 1e-4))):
        known = er.Classifier(loss, features, tol=1e-9).fit(X, y)
        soft = er.Classifier(er.losses.SoftCrammerSinger(*other), features).fit(X, y)
        near = 1e-6 if loss == "softmax" else 1e-3
        assert soft.certificate_.primal == pytest.approx(known.certificate_.primal, rel=near)


@TEMPERATURES
@pytest.mark.parametrize("several", [2, 4])
@pytest.mark.parametrize(
    "features", [None, er.kernels.Gaussian(3.0), er.Network([16], n_init=1, random_state=0)], ids=repr
)
def test_classifiers_learn_and_tell_probabilities(temperature, several, features):
    X, y = classes(several=several)
    machine = er.Classifier(er.losses.SoftCrammerSinger(temperature=temperature), features).fit(X, y)
    assert machine.certificate_.converged
    assert machine.score(X, y) > (0.55 if features is None else 0.7)
    p = machine.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X))
    if temperature >= 0.3:  # nearly a hinge tells on which side of the margin a row is, and little else
        assert log_loss(y, p) < log_loss(y, np.full(p.shape, 1 / several))


@TEMPERATURES
@pytest.mark.parametrize("several", [2, 4])
def test_boosting_learns(temperature, several):
    X, y = classes(500, several)
    loss = er.losses.SoftCrammerSinger(temperature=temperature)
    machine = er.BoostingClassifier(loss, n_estimators=60).fit(X, y)
    assert machine.score(X, y) > 0.85
    assert machine.history_["loss"][-1] < 0.5 * machine.history_["loss"][0]
    p = machine.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X))


def test_boosting_is_the_naive_loop():
    X, y = classes(120, 3)
    loss, rate, leaves, l2 = er.losses.SoftCrammerSinger(0.5, 0.7), 0.3, 5, 0.5
    F = np.tile(loss.best_constant(y, np.ones(len(y))), (len(y), 1))
    equal = loss.value(np.zeros(1), np.zeros((1, 3)))[0]
    for _ in range(4):
        G = loss.derivative(y, F)
        H = 1.5 * np.einsum("ikk->ik", loss.curvature(y, F))
        H = np.maximum(H, np.abs(G) / (2 * equal))
        trees = [naive_boost.grow(X, g, h, leaves, l2) for g, h in zip(G.T, H.T, strict=True)]
        steps = [naive_boost.predict(*each, l2) for each in zip(trees, G.T, H.T, strict=True)]
        F = F + rate * np.array(steps).T
    options = {
        "learning_rate": rate,
        "max_leaf_nodes": leaves,
        "l2_regularization": l2,
        "n_estimators": 4,
        "min_samples_leaf": 0,
    }
    machine = er.BoostingClassifier(loss, **options).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), F, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("wrong", [{"margin": -1.0}, {"temperature": 0.0}, {"temperature": "hot"}], ids=repr)
def test_wrong_parameters_are_refused(wrong):
    X, y = classes(60)
    (name,) = wrong
    with pytest.raises(EmpiriskError, match=f"^{name}=.* of SoftCrammerSinger must be .*; .*crammer_singer"):
        er.Classifier(er.losses.SoftCrammerSinger(**wrong)).fit(X, y)
