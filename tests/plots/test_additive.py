"""The parts of an additive machine as curves and pictures."""

import numpy as np
import pandas as pd
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable

pytestmark = pytest.mark.row("K17")


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] + 0.0 * X[:, 2]


def test_curves_are_the_parts_of_the_machine(data):
    X, y = data
    machine = er.Ridge(features=er.kernels.Anova(), C=5.0).fit(X, y)
    figure = er.plots.additive(machine, X)
    assert figure.axes[0].get_xlabel() == "x0"  # it spreads most
    for axes in figure.axes:
        number = int(axes.get_xlabel()[1:])
        places, values = axes.lines[0].get_xydata().T
        rows = np.zeros((len(places), 3))
        rows[:, number] = places
        np.testing.assert_allclose(values, machine.parts(rows)[:, number], atol=1e-12)
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert_readable(figure)


def test_pairs_are_pictures_and_the_rest_is_told(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["age", "rooms", "floor"])
    machine = er.Ridge(features=er.kernels.Anova(order=3), C=5.0).fit(frame, y)
    figure = er.plots.additive(machine, frame)
    labels = {frozenset((axes.get_xlabel(), axes.get_ylabel())) for axes in figure.axes}
    assert frozenset(("age", "floor")) in labels
    assert figure._suptitle.get_text() == "Ridge: 6 parts, 1 more not drawn"
    assert "5 more not drawn" in er.plots.additive(machine, frame, most=2)._suptitle.get_text()
    assert_readable(figure)


def test_what_cannot_be_drawn_is_refused(data):
    X, y = data
    several = er.SVM(features=er.kernels.Anova()).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert len(er.plots.additive(several, X, output=2).axes) == 3
    with pytest.raises(EmpiriskError, match="output=3 must be a number from 0 to 2"):
        er.plots.additive(several, X, output=3)
    with pytest.raises(EmpiriskError, match="No part of features="):
        er.plots.additive(er.Ridge(features="gaussian").fit(X, y), X)
    with pytest.raises(EmpiriskError, match="not fitted"):
        er.plots.additive(er.Ridge(features=er.kernels.Anova()), X)
    with pytest.raises(EmpiriskError, match="sum of kernels"):
        er.plots.additive(er.Ridge().fit(X, y), X)
