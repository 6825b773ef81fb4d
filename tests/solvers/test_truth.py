"""Every convex loss with every penalty, on data of every kind: the objective is that of a general convex solver, and
the gap bounds what is missing."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.fits.fit import Limits, SolverRun
from empirisk.problem import Point
from empirisk.stop import Ending
from tests import catalog
from tests.cases import KINDS, SHAPES, make
from tests.fuzz import data, rivals
from tests.fuzz.equation import Piece, pieces
from tests.truth import minimiser

CONVEX = [loss for loss in catalog.LOSSES if loss.convex]
PENALTIES = ("l2", "l1", "elastic_net", "none")
LIMITS = Limits(tol=1e-6, max_iter=None, max_time=None)


@pytest.mark.row("E1")
@pytest.mark.row("E4")
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_objective_is_the_optimum_and_the_gap_bounds_it(loss, penalty):
    wrong = {}
    for case in product(SHAPES, KINDS, (True, False)):
        try:
            check_optimum(loss, penalty, *case)
        except AssertionError as error:
            wrong[case] = error
    assert wrong == {}, "(shape, kind of data, intercept): what does not hold"


def check_optimum(loss, penalty, shape, kind, intercept):
    """The objective of a fit is that of a general convex solver, as far as each is sure of itself."""
    C = 0.05 if shape == "tall" else 2.0
    problem, arguments = make(loss, penalty, C, shape, kind, intercept)
    certificate = SolverRun("auto", LIMITS)([problem])[0].certificate
    rival, optimal = general_solution(*arguments)
    scale = max(abs(rival), 1e-6 * problem.origin_value)
    if certificate.status == Ending.SEPARABLE:  # the infimum is zero, and no point attains it
        assert not loss.attained
        assert penalty == "none"
        assert certificate.primal <= 1e-6 * problem.origin_value
        return
    assert certificate.converged or (certificate.status == Ending.UNATTAINED and penalty == "none"), certificate
    # What another solver found, valued by the formulas in extended precision, is no better than the gap allows ...
    assert rival >= certificate.primal - certificate.gap - 1e-12 * scale
    assert rival >= certificate.primal - 1e-6 * scale
    # ... and, where that solver is sure of itself, no worse either: both minimise the same thing; below zero is none.
    attained = certificate.status != Ending.UNATTAINED
    assert not (optimal and attained) or certificate.primal == 0 or rival <= certificate.primal + 1e-5 * scale


def general_solution(loss, penalty, C, X, y, weights, intercept, classes) -> tuple[float, bool]:
    """The objective at the point of a general convex solver, and whether that solver calls it optimal."""
    found = minimiser(loss, penalty, C, X, y, weights, intercept, classes)
    piece = Piece(
        losses.find(loss), penalties.find(penalty), C, data.plain(X), y, weights, intercept, classes, False, found.point
    )
    return piece.value(found.point), found.optimal


@pytest.mark.row("E4")
@pytest.mark.parametrize("near", [False, True], ids=["anywhere", "near the optimum"])
@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_the_gap_of_any_point_bounds_its_suboptimality(loss, near):
    random = np.random.default_rng(1)
    for penalty in PENALTIES:
        problem, _ = make(loss, penalty, 0.3)
        fit = SolverRun("auto", LIMITS)([problem])[0]
        best, point = fit.certificate.primal, fit.point
        shape = (problem.classes,) if problem.classes else ()
        for step in (1e-1, 1e-3, 1e-5, 1e-7, 1e-9) if near else (0.01, 0.3, 0.3, 0.01, 1.0):
            w, b = step * random.normal(size=problem.width), step * random.normal(size=shape)
            if near:
                w, b = point.w + w * np.abs(point.w).max(), point.b + b
            certificate = verify(problem, Point(w, b if problem.classes else float(b)))
            # The best value is itself known to its own gap.
            assert certificate.gap >= certificate.primal - best - 1e-14 * abs(best)


NAMED = [
    er.SVM(C=0.5),
    er.LogisticRegression(C=0.5),
    er.LeastSquaresClassifier(),
    er.LeastSquares(),
    er.Ridge(C=0.5),
    er.Lasso(C=0.05),
    er.ElasticNet(C=0.05, l1_ratio=0.3),
    er.LeastAbsolute(),
    er.SVR(C=0.5, epsilon=0.2),
    er.SVM(C=0.5, features=er.kernels.Gaussian()),
    er.LogisticRegression(C=0.5, features=er.kernels.Polynomial(2)),
    er.Ridge(C=0.5, features=er.maps.Polynomial(2)),
    er.Classifier("squared_hinge", penalty="l1", C=0.2),
    er.Regressor("power", penalty="elastic_net", C=0.2),
    er.Classifier(er.losses.SoftCrammerSinger(temperature=0.3), C=0.5),
    er.Classifier("soft_crammer_singer", er.kernels.Gaussian(), C=0.5),
    er.Classifier("soft_crammer_singer", penalty="l1", C=0.5),
    er.Regressor(er.losses.Quantile(0.8), C=0.5),
    er.Regressor(er.losses.Quantile(0.2), er.kernels.Gaussian(), C=0.5),
    er.Regressor(er.losses.Huber(0.3), penalty="l1", C=0.5),
    er.Regressor("huber", er.kernels.Gaussian(), C=0.5),
    er.Regressor("poisson", er.kernels.Gaussian(), C=0.5),
    er.Regressor("gamma", er.kernels.Polynomial(2), C=0.5),
    er.Regressor("tweedie", er.maps.Polynomial(2), penalty="l1", C=0.5),
]


@pytest.mark.row("E1")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("machine", NAMED, ids=str)
def test_public_machines_store_the_optimum_of_their_equation(machine, classes):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3)) + 5.0
    f = X[:, 0] + 0.5 * random.normal(size=40)
    if isinstance(machine, er.Regressor):
        y = np.exp(f - 5.0) if losses.find(machine.loss).positive else f
    else:
        y = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    weights = random.uniform(0.5, 2.0, 40)
    machine = clone(machine).fit(X, y, weights)
    parts = pieces(machine, X, y, weights)
    stored = sum(part.value(part.found) for part in parts)
    best = sum(min(part.value(rival) for rival in rivals.points(part)) for part in parts)
    assert machine.certificate_.converged
    assert machine.certificate_.primal == pytest.approx(stored, rel=1e-9)
    assert stored == pytest.approx(best, rel=1e-6)
    assert best >= machine.certificate_.primal - machine.certificate_.gap - 1e-12 * stored


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_of_zeros_behind_a_kernel_leave_the_intercepts_alone(classes):
    X, y = np.zeros((13, 5)), np.arange(13) % classes
    machine = er.Classifier("crammer_singer", features=er.kernels.Linear(), class_weight="balanced", tol=1e-10)
    (part,) = pieces(machine.fit(X, y), X, y, None)
    attained = min(part.value(point) for point in rivals.points(part))
    assert machine.certificate_.primal == pytest.approx(attained, rel=1e-9)


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


def test_columns_that_nearly_depend_on_each_other_let_large_weights_below_no_bound():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 1)) + 1e-12 * random.normal(size=(30, 4))
    y = np.where(random.random(30) < 0.5, 1, -1)
    machine = er.Classifier(loss="exponential", penalty="none", fit_intercept=False, tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    (part,) = pieces(machine, X, y, None)
    attained = min(part.value(point) for point in rivals.points(part))
    assert attained < 0.999 * part.value((X[0] * 0, np.zeros(())))
    assert machine.certificate_.primal - machine.certificate_.gap <= attained


def test_rounding_of_targets_far_from_zero_is_in_the_gap_where_a_loss_has_no_slope_but_beside_its_minimum():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(5, 5)), random.normal(size=5) + 1e8
    weights = 10.0 ** random.uniform(-9, 9, 5)
    machine = er.Regressor(loss="power", penalty="l1", C=10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y, weights)
    (part,) = pieces(machine, X, y, weights)
    certificate = machine.certificate_
    assert abs(part.value(part.found) - certificate.primal) <= certificate.gap


def test_the_rounding_of_an_intercept_far_from_the_origin_is_in_the_gap():
    for seed in range(20):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(5, 5)) + 1e8, np.array([0, 1, 0, 1, 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine = er.SVM(C=100.0).fit(X, y)
        (part,) = pieces(machine, X, y, None)
        certificate = machine.certificate_
        assert part.value(part.found) <= certificate.primal + certificate.gap
