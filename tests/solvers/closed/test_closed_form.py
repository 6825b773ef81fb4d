"""Closed forms of the squared loss, and factors of Gram matrices: what they ask of LAPACK is left when it is late."""

import threading

import numpy as np
import pytest

import empirisk as er
from empirisk.linalg import threads
from empirisk.solvers.closed import closed_form
from empirisk.solvers.closed.factored import Factor


@pytest.mark.parametrize("name", ["svd", "eigh"])
def test_a_decomposition_is_left_when_the_flag_goes_up(name, monkeypatch):
    X = np.random.default_rng(0).normal(size=(4, 6))
    (problem,) = er.LeastSquares().problems(X, X[:, 0])
    ask = {
        "svd": lambda: closed_form._singular_parts(problem, np.full(4, 0.25), np.ones(4)),
        "eigh": lambda: Factor(X @ X.T),
    }
    monkeypatch.setattr(threads, "LONG", 1)
    seen = threading.Event()
    monkeypatch.setattr(np.linalg, name, lambda *_, **__: seen.wait(10))  # it goes on until nobody waits for it
    with pytest.raises(threads.Stopped), threads.stopping(lambda: True):
        ask[name]()
    seen.set()
