"""The interior-point method: where it begins, and weights that are never negative."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from tests import catalog


def test_columns_of_tiny_numbers_do_not_begin_far_away():
    """Weights of a column of squares may be as large as 1e96, but the penalty holds them at 1e48."""
    random = np.random.default_rng(0)
    x = 1e-48 * random.normal(size=(20, 1))
    X, y = np.hstack([x, x**2]), np.arange(20) % 3
    machine = er.LogisticRegression(C=1e48, penalty="l1", solver="interior_point").fit(X, y)
    assert machine.certificate_.converged
    assert machine.certificate_.iterations < 40


def test_weights_that_are_never_negative_are_those_of_the_proximal_method():
    """Every loss with every such penalty, joint ones too, which need not be told that a weight is zero."""
    random, wrong = np.random.default_rng(0), []
    X = random.normal(size=(30, 4))
    f = X @ [1.0, 0.5, -1.0, 0.0] + 0.3 * random.normal(size=30)
    for loss in catalog.MARGIN_LOSSES + catalog.RESIDUAL_LOSSES + catalog.DEVIANCES + catalog.JOINT_LOSSES:
        numbers = loss in catalog.RESIDUAL_LOSSES + catalog.DEVIANCES
        labels = np.searchsorted([-0.5, 0.5][loss in catalog.MARGIN_LOSSES :], f)
        y = labels if not numbers else np.abs(f) if loss.positive else f
        kind = er.Regressor if numbers else er.Classifier
        for penalty in (*catalog.POSITIVE, er.penalties.Positive("none")):
            if not loss.convex:
                continue
            with warnings.catch_warnings():  # no weight is worth anything to the loss of the perceptron
                warnings.simplefilter("ignore", ConvergenceWarning)
                machines = [
                    kind(loss, penalty=penalty, C=0.7, tol=1e-7, solver=solver).fit(X, y)
                    for solver in ("interior_point", er.solvers.Proximal())
                ]
            ours, theirs = (machine.certificate_ for machine in machines)
            far = abs(ours.primal - theirs.primal) > 2e-7 * max(abs(ours.primal), 1e-3)
            if not ours.converged or ours.iterations > 100 or machines[0].coef_.min() < 0 or far:
                wrong.append((machines[0], ours, theirs))
    assert not wrong


def test_weights_held_at_zero_are_zero():
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 5))
    y = X @ [1.0, -1.0, 2.0, -2.0, 0.0] + random.normal(size=60) > 0
    for loss in ("logistic", "hinge", "exponential"):
        machine = er.Classifier(loss, penalty=er.penalties.Positive("l1"), C=0.5).fit(X, y)
        assert machine.solver_ == "interior_point"
        assert ((machine.coef_ > 1e-3) == [[True, False, True, False, False]]).all()
        assert (machine.coef_[:, [1, 3]] == 0).all()


def test_columns_of_heavy_tails_do_not_take_thousands_of_steps():
    """The proximal method took 50 000 steps, for each pair of six classes, and came not nearer than a tenth."""
    random = np.random.default_rng(3)
    X, y = random.standard_cauchy((13, 12)) ** 3, np.arange(13) % 6
    machine = er.SVM(class_weight="balanced", penalty=er.penalties.Positive(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.certificate_.iterations < 1000
