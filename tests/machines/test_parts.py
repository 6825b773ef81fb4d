"""The parts of additive kernel machines: they add up, and each sees its own columns alone."""

import numpy as np
import pandas as pd
import pytest

import empirisk as er
from empirisk.errors import TooLarge, Unsuitable

pytestmark = pytest.mark.row("K17")
k = er.kernels
SUMS = {
    "columns": (k.Anova(), ["x0", "x1", "x2"]),
    "pairs": (k.Anova(k.Gaussian(0.7), order=2), ["x0", "x1", "x2", "x0 x1", "x0 x2", "x1 x2"]),
    "learned widths": (k.Anova(k.Laplacian("median")), ["x0", "x1", "x2"]),
    "sum": (k.Gaussian(2.0).on([0, 2]) + 0.3 * k.Linear() + 2.0 * k.Anova().on([2, 1]),
            ["x0 x2", "Linear()", "x2", "x1"]),
    "several": (er.maps.SeveralKernels(["linear", k.Gaussian(1.0).on([1])]), ["Linear()", "x1"]),
    "one": (k.Gaussian(2.0), ["Gaussian(2.0)"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(50, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + X[:, 0] * X[:, 2]


@pytest.mark.parametrize("name", SUMS)
def test_parts_add_up_to_the_function_less_its_intercept(name, data):
    X, y = data
    kernel, names = SUMS[name]
    machine = er.Ridge(features=kernel, C=3.0).fit(X, y)
    parts = machine.parts(X[:9])
    assert list(machine.part_names()) == names
    assert parts.shape == (9, len(names))
    np.testing.assert_allclose(parts.sum(axis=1) + machine.intercept_, machine.predict(X[:9]), atol=1e-12)


def test_a_part_sees_its_own_columns_alone(data):
    X, y = data
    machine = er.SVM(features=k.Anova(order=2)).fit(X, y > 0.5)
    moved = X.copy()
    moved[:, 1] += 1.0
    before, after = machine.parts(X), machine.parts(moved)
    same = ["x1" not in name for name in machine.part_names()]
    np.testing.assert_array_equal(before[:, same], after[:, same])
    assert np.abs(before - after)[:, np.logical_not(same)].max(axis=0).min() > 1e-3


def test_several_outputs_have_parts_each(data):
    X, y = data
    machine = er.SVM(features=k.Anova()).fit(X, np.digitize(y, [0.0, 1.5]))
    parts = machine.parts(X)
    assert parts.shape == (50, 3, 3)
    np.testing.assert_allclose(parts.sum(axis=1) + machine.intercept_, machine.decision_function(X), atol=1e-12)


def test_names_of_a_data_frame(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["age", "rooms", "floor"])
    machine = er.Ridge(features=k.Anova()).fit(frame, y)
    assert list(machine.part_names()) == ["age", "rooms", "floor"]
    np.testing.assert_array_equal(machine.parts(frame), er.Ridge(features=k.Anova()).fit(X, y).parts(X))


def test_what_has_no_parts_is_refused(data):
    X, y = data
    with pytest.raises(Unsuitable, match="machine behind a sum of kernels"):
        er.Ridge().fit(X, y).parts(X)
    with pytest.raises(Unsuitable, match="machine behind a sum of kernels"):
        er.Ridge(features=er.maps.Polynomial(2)).fit(X, y).part_names()
    wide = np.random.default_rng(0).normal(size=(10, 40))
    machine = er.Ridge(features=k.Anova(order=4)).fit(wide, wide[:, 0])
    with pytest.raises(TooLarge, match="102090 groups of columns"):
        machine.parts(wide)
    flat = er.SVM(features=k.Anova(), penalty="l2", C=1e-9).fit(X, y > 0)
    assert flat.parts(X).shape == (50, 3)
