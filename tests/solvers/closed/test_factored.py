"""The way from a kernel to columns: which solvers are asked, and how often."""

from dataclasses import replace

import numpy as np

import empirisk as er
from empirisk.certificate import Status
from empirisk.fits.fit import IN_VAIN, Limits, Run
from empirisk.solvers import Proximal, Watch, choose
from empirisk.solvers.closed.factored import Factored


def test_a_solver_that_stalled_is_not_asked_for_more_digits(monkeypatch):
    asked = []

    class Stalls(Proximal):
        def solve(self, problem, watch, start=None):
            asked.append(watch.tol)
            watch.status = Status.STALLED
            return problem.origin()

    monkeypatch.setattr(choose, "ranked", lambda problem: [(Stalls(), "first"), (Proximal(), "then")])
    X = np.random.default_rng(0).normal(size=(12, 2))
    (problem,) = er.LogisticRegression(features=er.kernels.Gaussian()).problems(X, X[:, 0] > 0)
    watch = Watch(tol=1e-4)
    Factored().solve(problem, watch)
    assert len(asked) == 1
    assert watch.ran_by == "proximal"
    assert watch.status == Status.CONVERGED


def test_where_others_did_no_better_the_first_is_asked_alone(monkeypatch):
    asked = []

    class Stalls(Proximal):
        def solve(self, problem, watch, start=None):
            asked.append(id(self))
            watch.status = Status.STALLED
            return problem.origin()

    first, second = Stalls(), Stalls()
    monkeypatch.setattr(choose, "ranked", lambda problem: [(first, "first"), (second, "then")])
    X = np.random.default_rng(0).normal(size=(12, 2))
    (problem,) = er.LogisticRegression(features=er.kernels.Gaussian()).problems(X, X[:, 0] > 0)
    Run(Factored(), Limits(tol=1e-4, max_iter=None, max_time=None), resisted=[])([problem] * 10)
    assert asked.count(id(first)) == 10
    assert asked.count(id(second)) == IN_VAIN


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
    assert watch.status == Status.CONVERGED
    assert np.all(problem.y * problem.predict(point) > 0)
    assert problem.primal(point) < 1e-15 * problem.origin_value


def test_the_best_point_is_named_after_the_solver_that_found_it(monkeypatch):
    class Wanders(Proximal):
        def solve(self, problem, watch, start=None):
            watch.status = Status.ITERATIONS
            return replace(problem.origin(), w=np.full(problem.width, 1e6))

    class Rests(Proximal):
        def solve(self, problem, watch, start=None):
            watch.status = Status.STALLED
            return problem.origin()

        @classmethod
        def name(cls):
            return "rests"

    monkeypatch.setattr(choose, "ranked", lambda problem: [(Rests(), "first"), (Wanders(), "then")])
    X = np.random.default_rng(0).normal(size=(12, 2))
    (problem,) = er.LogisticRegression(features=er.kernels.Gaussian()).problems(X, X[:, 0] > 0)
    watch = Watch(tol=1e-4)
    point = Factored().solve(problem, watch)
    assert (watch.ran_by, watch.notes, watch.status) == ("rests", ["first"], Status.STALLED)
    assert problem.primal(point) <= problem.origin_value
