"""The way from a kernel to columns: which solvers are asked, and how often."""

import numpy as np

import empirisk as er
from empirisk.certificate import Status
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
