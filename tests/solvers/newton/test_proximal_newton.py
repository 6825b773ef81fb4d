"""Proximal Newton by name, where losses and penalties have corners: it comes to the minimum that others find."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import empirisk as er

PENALTIES = (er.penalties.L1(), er.penalties.ElasticNet(0.9), er.penalties.L2(), er.penalties.NoPenalty())
LOSSES = (er.losses.Absolute(), er.losses.EpsilonInsensitive(0.1), er.losses.Quantile(0.2))


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda part: part.name())
@pytest.mark.parametrize("loss", LOSSES, ids=lambda part: part.name())
def test_a_round_that_is_not_at_its_minimum_is_gone_on_with(loss, penalty):
    random = np.random.default_rng(0)
    for rows, columns, C in ((60, 20, 10.0), (200, 20, 100.0), (20, 8, 1.0)):
        X = random.normal(size=(rows, columns))
        y = X @ random.normal(size=columns) / np.abs(X).max() + 0.5 * random.normal(size=rows)
        one, best = (
            er.Regressor(loss, penalty=penalty, C=C, solver=solver).fit(X, y).certificate_
            for solver in (er.solvers.ProximalNewton(), "auto")
        )
        assert one.converged
        assert one.primal == pytest.approx(best.primal, rel=1e-5)


def test_a_direction_without_curvature_is_not_followed():
    """Of eight rows on one side of their corners the model is flat, and its minimum, but for rounding, nowhere."""
    random = np.random.default_rng(107)
    for C in (10.0, 1000.0):
        X, y = random.normal(size=(8, 8)), np.arange(8) % 2
        one, best = (
            er.Classifier("hinge", penalty="l1", C=C, solver=solver).fit(X, y).certificate_
            for solver in (er.solvers.ProximalNewton(), "auto")
        )
        assert one.primal == pytest.approx(best.primal, rel=1e-3)


def test_steps_that_gain_nothing_end():
    """Powers of nearly equal columns leave the models no digits, and each solution of one is as far off as the last."""
    random = np.random.default_rng(0)
    X = er.maps.Polynomial(2).fit_transform(random.normal(size=(8, 1)) + 1e-9 * random.normal(size=(8, 5)))
    y = 1e3 * random.normal(size=8)
    with pytest.warns(ConvergenceWarning):
        machine = er.Lasso(C=1e8, solver=er.solvers.ProximalNewton()).fit(X, y)
    assert machine.stopped_ == "stalled"
    assert machine.n_iter_ < 200
