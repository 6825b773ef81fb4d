"""Every convex loss with every penalty, on data of every kind: the objective is that of a general convex solver, and
the gap bounds what is missing."""

import warnings

import numpy as np
import pytest

import empirisk as er
from empirisk import losses
from empirisk.fits.fit import Limits, Run
from tests import catalog
from tests.cases import KINDS, SHAPES, make
from tests.truth import optimum

CONVEX = [loss for loss in catalog.LOSSES if loss.convex]
PENALTIES = ("l2", "l1", "elastic_net", "none")
LIMITS = Limits(tol=1e-6, max_iter=None, max_time=None)


def value_scale(problem, value: float) -> float:
    return max(abs(value), 1e-6 * problem.origin_value)


@pytest.mark.row("E1")
@pytest.mark.row("E4")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_objective_is_the_optimum_and_the_gap_bounds_it(loss, penalty, shape, kind):
    intercept = len(kind) % 2 == 0
    C = 0.05 if shape == "tall" else 2.0
    problem, arguments = make(loss, penalty, C, shape, kind, intercept)
    certificate = Run("auto", LIMITS)([problem])[0].certificate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the general solver's own doubts
        best = optimum(*arguments)
    scale = value_scale(problem, best)
    assert certificate.converged, certificate
    assert certificate.primal <= best + 1e-6 * scale
    # The general solver is itself exact to about 1e-8 of the value.
    assert certificate.gap >= certificate.primal - best - 1e-8 * scale


@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_the_gap_of_any_point_bounds_its_suboptimality(loss):
    from empirisk.certificate import verify
    from empirisk.problem import Point

    random = np.random.default_rng(1)
    for penalty in PENALTIES:
        problem, _ = make(loss, penalty, 0.3)
        best = Run("auto", LIMITS)([problem])[0].certificate.primal
        for _ in range(5):
            w = random.normal(size=problem.width) * random.choice([0.01, 0.3])
            b = random.normal(size=problem.classes) if problem.classes else random.normal()
            certificate = verify(problem, Point(w, b))
            assert certificate.gap >= certificate.primal - best - 1e-6 * abs(best)


def test_other_peoples_losses_are_welcome():
    class Huber(losses.base.ResidualLoss):
        """A loss that a user wrote: quadratic near zero, straight beyond one."""

        interval = (-1.0, 1.0)
        curvature_bound = 1.0

        def phi(self, e):
            return np.where(np.abs(e) < 1, 0.5 * e**2, np.abs(e) - 0.5)

        def slope(self, e):
            return np.clip(e, -1, 1)

        def bend(self, e):
            return (np.abs(e) < 1).astype(float)

        def phi_conjugate(self, v):
            return 0.5 * v**2

        def phi_prox(self, e, step):
            return np.where(np.abs(e) <= 1 + step, e / (1 + step), e - step * np.sign(e))

    random = np.random.default_rng(0)
    X = random.normal(size=(50, 3))
    y = X[:, 0] + random.standard_t(2, size=50)
    machine = er.Regressor(loss=Huber(), penalty="l2").fit(X, y)
    assert machine.certificate_.converged
