"""Newton's method on rounded corners: rows far from every corner are left out, and the solution is the same."""

import numpy as np
import pytest
from scipy import sparse

from empirisk import losses, penalties
from empirisk.certificate import verify
from empirisk.linalg.design import design_of
from empirisk.problem import Problem
from empirisk.solvers import Envelope, InteriorPoint, Watch
from empirisk.solvers.corners.rounded_corners import RoundedCorners
from empirisk.stop import Deadline, Ending
from tests.cases import targets

CORNERED = [losses.Hinge(), losses.Absolute(), losses.EpsilonInsensitive(0.3)]


def make(loss, penalty, intercept, rows=6000, columns=60, form=np.asarray, C=0.3):
    random = np.random.default_rng(rows)
    X = random.normal(size=(rows, columns)) * (random.uniform(size=(rows, columns)) < 0.3)
    y = targets(loss, X, random)
    design = design_of(form(X), centre=intercept and form is np.asarray)
    return Problem(loss, penalty, C, design, y, random.uniform(0.3, 3.0, rows), intercept)


def solved(problem, solver, tol=1e-7):
    watch = Watch(tol=tol)
    return verify(problem, solver.solve(problem, watch)), watch


@pytest.fixture
def parts(monkeypatch):
    """The numbers of rows that the steps were taken on, where not on all."""
    taken = []
    on = RoundedCorners._on
    monkeypatch.setattr(RoundedCorners, "_on", lambda state, near: taken.append(len(near)) or on(state, near))
    return taken


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [penalties.L2(), penalties.NoPenalty()], ids=repr)
@pytest.mark.parametrize("loss", CORNERED, ids=repr)
def test_steps_on_the_rows_near_a_corner_reach_the_optimum(loss, penalty, intercept, parts):
    problem = make(loss, penalty, intercept)
    certificate, watch = solved(problem, Envelope())
    assert watch.status == Ending.CONVERGED
    assert certificate.relative_gap <= 1e-7
    assert parts
    assert max(parts) < 3000
    assert certificate.primal == pytest.approx(solved(problem, InteriorPoint())[0].primal, rel=2e-7)


@pytest.mark.parametrize("form", [sparse.csr_matrix, lambda X: X.astype(np.float32)], ids=["csr", "float32"])
def test_other_forms_of_the_data(form, parts):
    problem = make(losses.Hinge(), penalties.L2(), True, form=form)
    certificate, watch = solved(problem, Envelope())
    assert watch.status == Ending.CONVERGED
    assert parts
    assert certificate.primal == pytest.approx(solved(problem, InteriorPoint())[0].primal, rel=2e-7)


def test_a_loss_that_bends_everywhere_needs_all_rows(parts):
    problem = make(losses.SquaredAbsolute(), penalties.L2(), True)
    certificate, watch = solved(problem, Envelope())
    assert watch.status == Ending.CONVERGED
    assert not parts
    assert certificate.primal == pytest.approx(solved(problem, InteriorPoint())[0].primal, rel=2e-7)


def test_a_time_limit_ends_the_steps_on_some_rows():
    problem = make(losses.Hinge(), penalties.L2(), True)
    watch = Watch(tol=1e-12, deadline=Deadline(0.0))
    point = Envelope().solve(problem, watch)
    assert watch.status == Ending.MAX_TIME
    assert np.isfinite(problem.primal(point))
