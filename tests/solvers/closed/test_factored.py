"""The way from a kernel to columns: which solvers are asked, and how often."""

import numpy as np

import empirisk as er
from empirisk.certificate import verify
from empirisk.fits.fit import MAX_FALLBACK_FAILURES, Limits, SolverRun
from empirisk.solvers import InteriorPoint, Proximal, Watch, choose
from empirisk.solvers.closed.factored import Factored
from empirisk.stop import Ending


def test_a_solver_that_stalled_is_not_asked_for_more_digits(monkeypatch):
    asked = []

    class Stalls(Proximal):
        def solve(self, problem, watch, start=None):
            asked.append(watch.tol)
            watch.status = Ending.STALLED
            return problem.origin()

    monkeypatch.setattr(choose, "ranked", lambda problem: [(Stalls(), "first"), (Proximal(), "then")])
    X = np.random.default_rng(0).normal(size=(12, 2))
    (problem,) = er.LogisticRegression(features=er.kernels.Gaussian()).problems(X, X[:, 0] > 0)
    watch = Watch(tol=1e-4)
    Factored().solve(problem, watch)
    assert len(asked) == 1
    assert watch.ran_by == "proximal"
    assert watch.status == Ending.CONVERGED


def test_where_others_did_no_better_the_first_is_asked_alone(monkeypatch):
    asked = []

    class Stalls(Proximal):
        def solve(self, problem, watch, start=None):
            asked.append(id(self))
            watch.status = Ending.STALLED
            return problem.origin()

    first, second = Stalls(), Stalls()
    monkeypatch.setattr(choose, "ranked", lambda problem: [(first, "first"), (second, "then")])
    X = np.random.default_rng(0).normal(size=(12, 2))
    (problem,) = er.LogisticRegression(features=er.kernels.Gaussian()).problems(X, X[:, 0] > 0)
    SolverRun(Factored(), Limits(tol=1e-4, max_iter=None, max_time=None), resisted=[])([problem] * 10)
    assert asked.count(id(first)) == 10
    assert asked.count(id(second)) == MAX_FALLBACK_FAILURES


def test_a_point_is_not_lost_on_its_way_back_where_slopes_are_huge(monkeypatch):
    asked, table = [], choose.ranked

    def ranked(problem):
        for solver, reason in table(problem):
            asked.append(solver.name())
            yield solver, reason

    monkeypatch.setattr(choose, "ranked", ranked)
    random = np.random.default_rng(1)
    X = np.hstack([random.normal(size=(8, 4)), np.full((8, 1), 10.0)])
    machine = er.LogisticRegression(C=1e-4, features=er.kernels.Normalised(er.kernels.Linear()))
    (problem,) = machine.problems(X, random.permutation([0, 0, 1, 0, 1, 0, 0, 0]), sample_weight=np.full(8, 1e30))
    watch = Watch(tol=1e-13)
    with np.errstate(all="ignore"):
        point = Factored().solve(problem, watch)
    assert asked == ["newton"]
    assert watch.status == Ending.CONVERGED
    assert np.all(problem.y * problem.predict(point) > 0)
    assert problem.primal(point) < 1e-15 * problem.origin_value


def test_weights_stand_in_for_a_dual_point_that_misses_them(monkeypatch):
    """Where C is large, -u/l2 is far off however small the gap on the factor; its weights have that very gap."""
    asked = []

    class Inner(InteriorPoint):
        def solve(self, problem, watch, start=None):
            asked.append(watch.tol)
            return super().solve(problem, watch, start)

    monkeypatch.setattr(choose, "ranked", lambda problem: [(Inner(), "first")])
    random = np.random.default_rng(0)
    X, y = random.normal(size=(16, 12)), random.normal(size=16)
    for C in 1e4, 1e5, 1e6, 1e7:
        asked.clear()
        (problem,) = er.Regressor("absolute", er.kernels.Gaussian(width=3.0), C=C).problems(X, y)
        watch = Watch(tol=1e-4)
        point = Factored().solve(problem, watch)
        assert watch.status == Ending.CONVERGED
        assert verify(problem, point).relative_gap <= 1e-4
        assert len(asked) == 1


def test_the_certificate_tells_who_found_the_best_point(monkeypatch):
    class Wanders(Proximal):
        def solve(self, problem, watch, start=None):
            watch(problem.origin())
            watch.status = Ending.MAX_ITER
            return problem.origin()

    monkeypatch.setattr(choose, "ranked", lambda problem: [(InteriorPoint(), "first"), (Wanders(), "then")])
    random = np.random.default_rng(0)
    X, y = random.normal(size=(16, 2)), random.normal(size=16)
    (problem,) = er.Regressor("absolute", er.kernels.Gaussian(), C=1.0).problems(X, y)
    watch = Watch(tol=0.0)
    point = Factored().solve(problem, watch)
    assert verify(problem, point).relative_gap <= 1e-9
    assert (watch.ran_by, watch.notes, watch.status) == ("interior_point", ["first"], Ending.STALLED)
