"""Structural risk: the table by direct computation, the choice, the weights, and how often the bound fails."""

import numpy as np
import pytest

import empirisk as er
from empirisk.selection import structural_risk
from empirisk.theory import Bound, margin_bound, tree_bound, vc_bound, vc_dimension

pytestmark = pytest.mark.row("V8")

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-1, 1, size=(3000, 2))
Y = ((X**2).sum(axis=1) > 0.6) ^ (RANDOM.random(3000) < 0.05)
POLYNOMIAL = er.LogisticRegression(C=1e3, features=er.maps.Polynomial())


def test_degrees_of_polynomials_by_direct_computation():
    found = structural_risk(POLYNOMIAL, X, Y, "features__degree", [1, 2, 3, 4], delta=0.1)
    expected = []
    for place, degree in enumerate([1, 2, 3, 4], start=1):
        machine = er.LogisticRegression(C=1e3, features=er.maps.Polynomial(degree)).fit(X, Y)
        error = np.mean(machine.predict(X) != Y)
        dimension = vc_dimension("polynomial", 2, degree=degree).value
        expected.append(vc_bound(dimension, 3000, error, 0.1 / (place * (place + 1))).value)
        row = found.classes[place - 1]
        assert row.training_error == pytest.approx(error)
        assert row.training_error + row.penalty == row.bound
        assert row.bound == pytest.approx(expected[-1])
    assert found.index == int(np.argmin(expected)) == 1
    assert found.value == 2
    assert found.machine.features.degree == 2
    assert found.bound == min(expected)


def test_leaves_of_trees_and_margins_by_direct_computation():
    weights = [0.2, 0.5, 0.3]
    found = structural_risk(er.TreeClassifier(), X, Y, "max_leaf_nodes", [2, 4, 12], weights=weights)
    for one, weight in zip(found.classes, weights, strict=True):
        tree = er.TreeClassifier(max_leaf_nodes=one.value).fit(X, Y)
        assert one.bound == pytest.approx(tree_bound(tree, X, Y, delta=0.05 * weight).value)
    assert found.bound == min(one.bound for one in found.classes)
    easy = X[:, 0] > 0
    apart = X + np.where(easy, 0.5, -0.5)[:, None] * [1.0, 0.0]
    found = structural_risk(er.SVM(), apart, easy, "C", [1e-4, 1e-2, 1.0], bound="margin")
    for place, one in enumerate(found.classes, start=1):
        machine = er.SVM(C=one.value).fit(apart, easy)
        assert one.bound == pytest.approx(margin_bound(machine, apart, easy, 0.05 / (place * (place + 1))).value)


def test_a_bound_of_the_users_own_decides():
    calls = []

    def bound(machine, X, y, delta):
        calls.append(delta)
        return Bound(abs(machine.max_leaf_nodes - 4), False, "")

    found = structural_risk(
        er.TreeClassifier(), X, Y, "max_leaf_nodes", [2, 4, 6], bound=bound, weights=[0.5, 0.25, 0.25]
    )
    assert found.value == 4
    np.testing.assert_allclose(sorted(calls), [0.0125, 0.0125, 0.025])
    even = structural_risk(er.TreeClassifier(), X, Y, "max_leaf_nodes", [2, 4], bound=lambda *_: Bound(0.5, False, ""))
    assert even.index == 0  # of equal bounds the smaller class


def test_the_chosen_bound_fails_rarely():
    """Thresholds of two signs, x > cut, on uniform x: the true error is known."""
    random, failures = np.random.default_rng(1), 0
    for _ in range(30):
        x = random.uniform(-1, 1, size=(400, 1))
        y = (x[:, 0] > 0.2) ^ (random.random(400) < 0.1)
        machine = structural_risk(POLYNOMIAL, x, y, "features__degree", [1, 2, 3])
        grid = np.linspace(-1, 1, 2001)[:, None]
        wrong = machine.machine.predict(grid) != (grid[:, 0] > 0.2)
        failures += 0.1 + 0.8 * wrong.mean() > machine.bound
    assert failures <= 2


def test_it_prints_and_leaves_the_machine_alone():
    machine = er.TreeClassifier()
    found = structural_risk(machine, X, Y, "max_leaf_nodes", [2, 4])
    assert not hasattr(machine, "classes_")
    assert "<- chosen" in str(found)
    assert "except with probability 0.05" in str(found)
    assert "<table" in found._repr_html_()
    assert "vacuous" in str(structural_risk(machine, X[:10], Y[:10], "max_leaf_nodes", [2]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameter": "degree"}, "parameter='degree' is none of"),
        ({"values": []}, "values must hold"),
        ({"weights": [0.9, 0.9]}, "sum at most 1"),
        ({"weights": [1.0]}, "2 positive numbers"),
        ({"bound": "luck"}, "bound='luck' is not known"),
        ({"delta": 0}, "delta=0"),
    ],
)
def test_bad_structures_are_refused(options, message):
    given = {"parameter": "max_leaf_nodes", "values": [2, 4]} | options
    with pytest.raises(er.errors.EmpiriskError, match=message):
        structural_risk(er.TreeClassifier(), X, Y, **given)


def test_numbers_and_several_classes_are_refused():
    with pytest.raises(er.errors.EmpiriskError, match="y holds numbers"):
        structural_risk(er.Ridge(), X, X[:, 0], "C", [1.0])
    with pytest.raises(er.errors.EmpiriskError, match="two classes, but y holds 3"):
        structural_risk(er.LogisticRegression(), X, np.arange(3000) % 3, "C", [1.0])
