"""The choice of C: which rows are divided into folds, and which values are tried."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.fits.choice import along, natural_range
from empirisk.fits.fit import Limits, SolverRun
from empirisk.solvers.corners.interior_point import InteriorIterate


def rows(random, count=60):
    X = random.normal(size=(count, 3))
    return X, X[:, 0] + 0.3 * random.normal(size=count)


@pytest.mark.parametrize("machine", [er.Lasso(C="cv"), er.LogisticRegression(C="cv")])
def test_a_row_without_weight_could_as_well_be_absent(machine):
    random = np.random.default_rng(0)
    X, y = rows(random)
    y = y if isinstance(machine, er.Lasso) else y > 0
    weights = (random.random(len(y)) < 0.5).astype(float)
    kept = weights > 0
    weighted = machine.fit(X, y, sample_weight=weights).choice_.losses
    np.testing.assert_allclose(weighted, machine.fit(X[kept], y[kept]).choice_.losses, rtol=1e-6)


def test_rows_that_are_zero_but_for_rounding_have_a_natural_range_of_numbers():
    random = np.random.default_rng(0)
    X, y = rows(random)
    (problem,) = er.Ridge().problems(X, y)
    problem.design.squared_columns = lambda _: np.full(X.shape[1], 1e-310)
    assert np.all(np.isfinite(natural_range([problem])))


@pytest.mark.parametrize(
    "machine",
    [er.SVM(C="cv"), er.LogisticRegression(C="cv", fit_intercept=False), er.SVR(C="cv"), er.Ridge(C="cv")],
    ids=repr,
)
@pytest.mark.parametrize("constant", [0.0, 1e6])
def test_the_format_of_the_rows_has_no_say(machine, constant):
    random = np.random.default_rng(0)
    X = np.column_stack([sparse.random(120, 5, 0.3, random_state=0).toarray(), np.full(120, constant)])
    y = X[:, :5] @ random.normal(size=5) + 0.1 * random.normal(size=120)
    y = y > y.mean() if is_classifier(machine) else y
    weights = random.uniform(0.5, 2.0, 120)
    dense, thin, wide = (
        clone(machine).fit(rows, y, sample_weight=weights).choice_
        for rows in (X, sparse.csr_array(X), sparse.csc_array(X))
    )
    for other in (thin, wide):
        np.testing.assert_allclose(other.values, dense.values, rtol=1e-9)
        assert np.argmin(other.mean) == np.argmin(dense.mean)


@pytest.mark.parametrize("penalty", ["l1", er.penalties.GroupL1(2)], ids=str)
@pytest.mark.parametrize("machine", [er.SVM(), er.SVR(), er.Classifier("crammer_singer")], ids=repr)
def test_the_values_to_try_do_not_depend_on_where_columns_have_their_zero(machine, penalty):
    """Beside the best constant many rows lie at a corner of the loss, where any of many slopes is right."""
    X, y = rows(np.random.default_rng(0))
    y = np.digitize(y, np.quantile(y, [0.3, 0.8])) if is_classifier(machine) else y
    found = []
    for moved in (X, X + 100.0, sparse.csr_array(X), sparse.csr_array(X + 100.0)):
        found.append(natural_range(clone(machine).set_params(penalty=penalty, tol=1e-6).problems(moved, y)))
    np.testing.assert_allclose(found[1:], [found[0]] * 3, rtol=1e-9)


def test_of_weighted_rows_the_natural_range_is_that_of_repeated_ones():
    random = np.random.default_rng(0)
    X, y = rows(random)
    times = random.integers(1, 4, len(y))
    weighted, repeated = er.Ridge().problems(X, y, times), er.Ridge().problems(X.repeat(times, 0), y.repeat(times))
    np.testing.assert_allclose(natural_range(weighted), natural_range(repeated), rtol=1e-12)


def test_held_out_losses_beyond_all_numbers_are_no_warnings():
    random = np.random.default_rng(0)
    X, y = rows(random)
    machine = er.ElasticNet(C="cv", solver="sgd", max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="finished"):
        machine.fit(X, 1e45 * y, sample_weight=np.full(len(y), 1e45))
    assert np.isfinite(machine.C_)


def test_where_no_loss_is_left_the_other_values_take_no_steps(monkeypatch):
    """Of classes that a plane divides the fit is the same from some C on: its proof is found in the one before."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 8)), np.arange(12) % 2
    (problem,) = er.SVM(penalty="l1").problems(X, y)
    advance, steps = InteriorIterate.advance, []
    monkeypatch.setattr(InteriorIterate, "advance", lambda iterate: steps.append(iterate) or advance(iterate))
    values = np.geomspace(1e3, 1e6, 10)
    fits = [fit for (fit,) in along([problem], values, SolverRun("interior_point", Limits(1e-4, None, None)))]
    assert 0 < len(steps) <= fits[0].certificate.iterations
    assert all(fit.certificate.converged for fit in fits)
    alone = er.solve(problem.with_C(values[-1]), "interior_point")
    np.testing.assert_allclose(fits[-1].certificate.primal, alone.certificate.primal, rtol=1e-4)


@pytest.mark.parametrize(
    ("machine", "degree"),
    [
        (er.LeastAbsolute(penalty="l2"), 1.0),
        (er.Regressor(loss="power"), 0.5),
        (er.Regressor(loss="power", fit_intercept=False), 0.5),
        (er.Ridge(), 0.0),
    ],
)
@pytest.mark.parametrize("unit", [1e-30, 1e4, 1e30])
def test_the_values_to_try_follow_the_unit_of_the_targets(machine, degree, unit):
    """In units of y the loss has the degree p and the penalty 2: the same models have C times unit^(2 - p)."""
    X, y = rows(np.random.default_rng(0))
    plain, changed = (np.array(natural_range(machine.problems(X, size * y))) for size in (1.0, unit))
    np.testing.assert_allclose(changed / plain, unit**degree)
    assert plain[0] * np.sum((X - machine.fit_intercept * X.mean(axis=0)) ** 2) == pytest.approx(1.0)


def test_targets_and_margins_without_a_size_leave_the_values_alone():
    X, y = rows(np.random.default_rng(0))
    for machine, targets in (er.LeastAbsolute(penalty="l2"), 0 * y), (er.SVR(epsilon=100.0), y), (er.SVM(), y > 0):
        smallest, largest = natural_range(machine.problems(X, targets))
        assert (smallest, largest) == pytest.approx(tuple(np.array([1.0, 1e8]) / np.sum((X - X.mean(axis=0)) ** 2)))


@pytest.mark.parametrize("loss", ["absolute", "power"])
def test_a_choice_of_C_has_no_unit(loss):
    X, y = rows(np.random.default_rng(0), 30)
    machine = er.Regressor(loss=loss, C="cv", Cs=5, features=er.kernels.Gaussian(), tol=1e-3)
    expected = machine.fit(X, y).predict(X)
    np.testing.assert_allclose(machine.fit(X, 1e-40 * y).predict(X), 1e-40 * expected, rtol=1e-2, atol=1e-42)
    assert machine.certificate_.converged


@pytest.mark.parametrize("penalty", ["l1", "elastic_net", "group_l1"])
def test_constant_columns_make_no_path_of_huge_C(penalty):
    """Their correlations are rounding: ten thousand times the C at which that wakes up a weight would be 1e19."""
    X, y = np.full((5, 6), [0.1, 0.3, 0.7, 1e6, -3.7, 0.2]), np.random.default_rng(0).normal(size=5)
    machine = er.Regressor(loss="squared", penalty=penalty, C="cv").fit(X, y)
    assert machine.C_ < 1e6
    assert machine.certificate_.converged
    (problem,) = er.Regressor(loss="squared", penalty=penalty, C=1.0).problems(X, y)
    assert problem.critical_C == np.inf


def test_l1_behind_a_kernel_is_refused_where_C_is_chosen_too():
    X = np.random.default_rng(0).normal(size=(13, 3))
    for C in ("cv", 1.0, er.Constraint(1.0)):
        machine = er.Regressor(loss="squared", penalty="l1", C=C, features=er.kernels.Gaussian())
        with pytest.raises(er.errors.EmpiriskError, match="kernel"):
            machine.fit(X, X[:, 0])


def test_a_choice_is_shown_in_one_line():
    machine = er.Ridge(C="loo", Cs=[0.1, 1.0, 10.0]).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    assert repr(machine.choice_) == "Choice(10 of 3 values from 0.1 to 10, best)"


def test_a_constant_column_has_one_grid_dense_and_sparse():
    """What the sums of squares of equal rows differ by is rounding, not a direction along which rows vary."""
    X, y = np.full((13, 1), 1e6), np.random.default_rng(0).normal(size=13)
    weights = np.arange(13) % 2.0
    grids = [er.Ridge(C="loo").fit(rows, y, sample_weight=weights).choice_.values for rows in (X, sparse.csr_matrix(X))]
    np.testing.assert_allclose(*grids)
